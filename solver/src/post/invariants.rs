//! Scalars of a stress tensor.
//!
//! Invariant: Voigt order xx yy zz xy yz zx; one point at a time.

use nalgebra::Matrix3;

/// Von Mises equivalent stress, Pa.
pub fn von_mises(stress: &[f64; 6]) -> f64 {
    let [xx, yy, zz, xy, yz, zx] = *stress;
    let normal = (xx - yy).powi(2) + (yy - zz).powi(2) + (zz - xx).powi(2);
    (0.5 * normal + 3.0 * (xy * xy + yz * yz + zx * zx)).sqrt()
}

/// Principal stresses, Pa, largest first.
pub fn principal(stress: &[f64; 6]) -> [f64; 3] {
    let [xx, yy, zz, xy, yz, zx] = *stress;
    let values = Matrix3::new(xx, xy, zx, xy, yy, yz, zx, yz, zz).symmetric_eigenvalues();
    let mut sorted = [values[0], values[1], values[2]];
    sorted.sort_by(|a, b| b.total_cmp(a));
    sorted
}

#[cfg(test)]
mod tests {
    use super::{principal, von_mises};

    #[test]
    fn known_states() {
        assert_eq!(von_mises(&[5.0, 0.0, 0.0, 0.0, 0.0, 0.0]), 5.0);
        assert_eq!(von_mises(&[7.0, 7.0, 7.0, 0.0, 0.0, 0.0]), 0.0);
        assert!((von_mises(&[0.0, 0.0, 0.0, 2.0, 0.0, 0.0]) - 2.0 * 3f64.sqrt()).abs() < 1e-14);
        for shear in 3..6 {
            let mut stress = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0];
            stress[shear] = 2.0;
            for (value, expected) in principal(&stress).iter().zip([3.0, 1.0, -1.0]) {
                assert!((value - expected).abs() < 1e-14);
            }
        }
    }
}
