//! A linear elastic law at one point and one temperature: stress over strain, and thermal strain per kelvin.
//!
//! Turning follows the tensor rule e' = R e R^T for strains, from which that for stiffness follows by invariance of the
//! energy (Ting, Anisotropic Elasticity, 1996, section 2.9).
//!
//! Invariant: plain numbers in some right-handed axes; which axes and which temperature is the caller's business.

use super::Isotropic;
use super::orientation::Axes;

/// The pairs of tensor indices in the order xx yy zz xy yz zx.
const PAIRS: [(usize, usize); 6] = [(0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0)];

/// Elastic constants and thermal expansion, in the order xx yy zz xy yz zx with engineering shear strains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elastic {
    /// Stress over strain, Pa; symmetric.
    pub d: [[f64; 6]; 6],
    /// Thermal strain per kelvin, 1/K.
    pub expansion: [f64; 6],
}

impl Elastic {
    /// Stress, Pa, at an elastic strain: the total less the thermal one.
    #[inline]
    pub fn stress(&self, strain: &[f64; 6]) -> [f64; 6] {
        self.d.map(|row| {
            let mut sum = 0.0;
            for (d, e) in row.iter().zip(strain) {
                sum += d * e;
            }
            sum
        })
    }

    /// The law in global axes, if this is the law in `axes`.
    pub fn to_global(&self, axes: &Axes) -> Elastic {
        Elastic {
            d: self.global_stiffness(axes),
            expansion: self.global_expansion(axes),
        }
    }

    /// `d` in global axes, if this is the law in `axes`.
    pub fn global_stiffness(&self, axes: &Axes) -> [[f64; 6]; 6] {
        let t = strain_rotation(axes);
        let mut half = [[0.0; 6]; 6];
        for i in 0..6 {
            for j in 0..6 {
                half[i][j] = (0..6).map(|k| self.d[i][k] * t[k][j]).sum();
            }
        }
        let mut d = [[0.0; 6]; 6];
        for i in 0..6 {
            for j in i..6 {
                d[i][j] = (0..6).map(|k| t[k][i] * half[k][j]).sum();
                d[j][i] = d[i][j];
            }
        }
        d
    }

    /// `expansion` in global axes, if this is the law in `axes`.
    pub fn global_expansion(&self, axes: &Axes) -> [f64; 6] {
        let back: Axes = std::array::from_fn(|i| std::array::from_fn(|j| axes[j][i]));
        rotate_strain(&self.expansion, &back)
    }
}

impl From<Isotropic> for Elastic {
    fn from(law: Isotropic) -> Elastic {
        let mut d = [[0.0; 6]; 6];
        for i in 0..3 {
            d[i][..3].fill(law.lambda);
            d[i][i] += 2.0 * law.mu;
            d[3 + i][3 + i] = law.mu;
        }
        let a = law.expansion;
        Elastic {
            d,
            expansion: [a, a, a, 0.0, 0.0, 0.0],
        }
    }
}

/// Components in `axes` of a strain given in global ones.
pub fn rotate_strain(strain: &[f64; 6], axes: &Axes) -> [f64; 6] {
    strain_rotation(axes).map(|row| row.iter().zip(strain).map(|(t, e)| t * e).sum())
}

/// The matrix that takes strains in global axes to strains in `axes`.
fn strain_rotation(r: &Axes) -> [[f64; 6]; 6] {
    PAIRS.map(|(i, j)| {
        PAIRS.map(|(k, l)| match (i == j, k == l) {
            (true, true) => r[i][k] * r[i][k],
            (true, false) => r[i][k] * r[i][l],
            (false, true) => 2.0 * r[i][k] * r[j][k],
            (false, false) => r[i][k] * r[j][l] + r[i][l] * r[j][k],
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{Elastic, rotate_strain};
    use crate::material::{Axes, Isotropic};
    use fem_io::case::ElasticInput;

    /// Axes turned about a skew line.
    pub(crate) fn skew() -> Axes {
        let (s, c) = 0.7f64.sin_cos();
        let about_z = [[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]];
        let (s, c) = 0.4f64.sin_cos();
        let about_x = [[1.0, 0.0, 0.0], [0.0, c, s], [0.0, -s, c]];
        std::array::from_fn(|i| {
            std::array::from_fn(|j| (0..3).map(|k| about_x[i][k] * about_z[k][j]).sum())
        })
    }

    fn ply() -> Elastic {
        let constants = ElasticInput::Engineering {
            young: [140.0, 10.0, 9.0],
            poisson: [0.3, 0.25, 0.4],
            shear: [5.0, 4.0, 3.0],
        };
        Elastic {
            d: constants.stiffness(),
            expansion: [-1.0, 28.0, 30.0, 0.0, 0.0, 0.0],
        }
    }

    #[test]
    fn strains_turn_as_tensors() {
        let (strain, r) = ([1.0, -2.0, 0.5, 0.3, 0.8, -0.6], skew());
        let tensor = |e: [f64; 6]| {
            let [xy, yz, zx] = [0.5 * e[3], 0.5 * e[4], 0.5 * e[5]];
            [[e[0], xy, zx], [xy, e[1], yz], [zx, yz, e[2]]]
        };
        let (global, local) = (tensor(strain), tensor(rotate_strain(&strain, &r)));
        for i in 0..3 {
            for j in 0..3 {
                let mut sum = 0.0;
                for k in 0..3 {
                    for l in 0..3 {
                        sum += r[i][k] * global[k][l] * r[j][l];
                    }
                }
                assert!((local[i][j] - sum).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn energy_does_not_depend_on_the_axes() {
        let (law, axes) = (ply(), skew());
        let turned = law.to_global(&axes);
        let strain = [0.1, -0.2, 0.3, 0.4, 0.1, -0.3];
        let local = rotate_strain(&strain, &axes);
        let energy = |law: &Elastic, e: &[f64; 6]| -> f64 {
            law.stress(e).iter().zip(e).map(|(s, e)| s * e).sum()
        };
        assert!((energy(&turned, &strain) - energy(&law, &local)).abs() < 1e-12);
        let expansion = rotate_strain(&turned.expansion, &axes);
        for (found, expected) in expansion.iter().zip(law.expansion) {
            assert!((found - expected).abs() < 1e-13);
        }
    }

    #[test]
    fn off_axis_modulus_of_a_ply() {
        // 1/Ex = c^4/E1 + (1/G12 - 2 nu12/E1) s^2 c^2 + s^4/E2 (Jones, Mechanics of Composite Materials, 1999, eq. 2.97).
        for degrees in [0.0f64, 15.0, 45.0, 60.0, 90.0] {
            let (s, c) = degrees.to_radians().sin_cos();
            let law = ply().to_global(&[[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]);
            let d = nalgebra::Matrix6::from_fn(|i, j| law.d[i][j]);
            let modulus = 1.0 / d.try_inverse().unwrap()[(0, 0)];
            let (e1, e2, nu12, g12) = (140.0, 10.0, 0.3, 5.0);
            let expected = 1.0
                / (c.powi(4) / e1 + (1.0 / g12 - 2.0 * nu12 / e1) * s * s * c * c + s.powi(4) / e2);
            assert!((modulus - expected).abs() < 1e-11 * expected, "{degrees}");
        }
    }

    #[test]
    fn an_isotropic_law_is_the_same_in_all_axes() {
        let law = Isotropic::new(200.0, 0.25, 1e-5);
        let (plain, turned) = (Elastic::from(law), Elastic::from(law).to_global(&skew()));
        for (a, b) in plain.d.as_flattened().iter().zip(turned.d.as_flattened()) {
            assert!((a - b).abs() < 1e-12);
        }
        let strain = [0.01, 0.02, -0.01, 0.03, 0.0, -0.02];
        for (a, b) in plain.stress(&strain).iter().zip(law.stress(&strain, 0.0)) {
            assert!((a - b).abs() < 1e-13);
        }
    }
}
