//! The law of linear elasticity at a cell, whatever its symmetry.
//!
//! Voigt order xx yy zz xy yz zx with engineering shear strains, global axes.
//!
//! Invariant: constants only; no state.

use super::Isotropic;

/// Stress = D (strain - expansion times the change of temperature).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elastic {
    /// The stiffness D, symmetric and positive definite, Pa.
    pub d: [[f64; 6]; 6],
    /// Thermal strain per kelvin, 1/K; shears engineering.
    pub expansion: [f64; 6],
}

impl From<Isotropic> for Elastic {
    fn from(law: Isotropic) -> Self {
        let mut d = [[0.0; 6]; 6];
        for i in 0..3 {
            d[i][..3].fill(law.lambda);
            d[i][i] += 2.0 * law.mu;
            d[i + 3][i + 3] = law.mu;
        }
        let e = law.expansion;
        Elastic {
            d,
            expansion: [e, e, e, 0.0, 0.0, 0.0],
        }
    }
}
