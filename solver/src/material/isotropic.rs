//! Isotropic linear elasticity with thermal expansion.
//!
//! Voigt order xx yy zz xy yz zx with engineering shear strains.
//!
//! Invariant: constants of one material; no state.

/// Constants of the law stress = lambda tr(e) I + 2 mu e, with e the strain less the thermal strain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Isotropic {
    /// First Lame constant, Pa.
    pub lambda: f64,
    /// Shear modulus, Pa.
    pub mu: f64,
    /// Coefficient of thermal expansion, 1/K.
    pub expansion: f64,
}

impl Isotropic {
    /// The law of a Young's modulus, Pa, a Poisson's ratio and a coefficient of thermal expansion, 1/K.
    pub fn new(young: f64, poisson: f64, expansion: f64) -> Self {
        let (e, nu) = (young, poisson);
        Isotropic {
            lambda: e * nu / ((1.0 + nu) * (1.0 - 2.0 * nu)),
            mu: e / (2.0 * (1.0 + nu)),
            expansion,
        }
    }

    /// Stress, Pa, at a total strain and a change of temperature, K.
    #[inline]
    pub fn stress(&self, strain: &[f64; 6], temperature_change: f64) -> [f64; 6] {
        let thermal = self.expansion * temperature_change;
        let [xx, yy, zz, xy, yz, zx] = *strain;
        let volumetric = self.lambda * (xx + yy + zz - 3.0 * thermal);
        let normal = |e: f64| volumetric + 2.0 * self.mu * (e - thermal);
        [
            normal(xx),
            normal(yy),
            normal(zz),
            self.mu * xy,
            self.mu * yz,
            self.mu * zx,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::Isotropic;
    #[test]
    fn uniaxial_stress_and_free_expansion() {
        let law = Isotropic::new(200.0, 0.25, 1e-3);
        let thermal = 1e-3 * 50.0;
        let strain = [
            0.01 + thermal,
            -0.0025 + thermal,
            -0.0025 + thermal,
            0.0,
            0.0,
            0.02,
        ];
        let stress = law.stress(&strain, 50.0);
        for (value, expected) in stress.iter().zip([2.0, 0.0, 0.0, 0.0, 0.0, 1.6]) {
            assert!((value - expected).abs() < 1e-13, "{stress:?}");
        }
    }
}
