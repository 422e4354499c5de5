//! Invariants of a symmetric tensor given in Voigt order xx yy zz xy yz zx.
//!
//! Invariant: one tensor at a time; for strains the caller halves the engineering shears first.

use nalgebra::Matrix3;

/// Von Mises stress, in the unit of `stress`.
pub fn von_mises(stress: &[f64; 6]) -> f64 {
    let [xx, yy, zz, xy, yz, zx] = *stress;
    let normal = (xx - yy).powi(2) + (yy - zz).powi(2) + (zz - xx).powi(2);
    (0.5 * normal + 3.0 * (xy * xy + yz * yz + zx * zx)).sqrt()
}

/// Principal stresses, largest first, in the unit of `stress`; not numbers if one of `stress` is not finite. The error
/// is of rounding level relative to the largest, also where two or three are equal (QR iteration; the closed form by
/// the arc cosine loses half the digits there).
pub fn principal(stress: &[f64; 6]) -> [f64; 3] {
    if stress.iter().any(|s| !s.is_finite()) {
        return [f64::NAN; 3];
    }
    let [xx, yy, zz, xy, yz, zx] = *stress;
    let tensor = Matrix3::new(xx, xy, zx, xy, yy, yz, zx, yz, zz);
    let mut values = <[f64; 3]>::from(tensor.symmetric_eigenvalues());
    values.sort_unstable_by(|a, b| b.total_cmp(a));
    values
}

#[cfg(test)]
mod tests {
    use super::{principal, von_mises};
    use nalgebra::{Matrix3, Rotation3};
    use proptest::prelude::{prop, prop_assert, proptest};

    /// The tensor with these principal values, turned.
    fn turned(values: [f64; 3], angles: [f64; 3]) -> [f64; 6] {
        let r = *Rotation3::from_euler_angles(angles[0], angles[1], angles[2]).matrix();
        let s = r * Matrix3::from_diagonal(&values.into()) * r.transpose();
        [
            s[(0, 0)],
            s[(1, 1)],
            s[(2, 2)],
            s[(0, 1)],
            s[(1, 2)],
            s[(2, 0)],
        ]
    }

    fn assert_close(found: [f64; 3], expected: [f64; 3]) {
        let scale = expected.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        for i in 0..3 {
            assert!(
                (found[i] - expected[i]).abs() <= 1e-14 * scale,
                "{found:?} is not {expected:?}"
            );
        }
    }

    #[test]
    fn known_states() {
        assert_eq!(von_mises(&[5.0, 0.0, 0.0, 0.0, 0.0, 0.0]), 5.0);
        assert_eq!(von_mises(&[3.0, 3.0, 3.0, 0.0, 0.0, 0.0]), 0.0);
        for shear in 3..6 {
            let mut stress = [0.0; 6];
            stress[shear] = -2.0;
            assert!((von_mises(&stress) - 2.0 * 3f64.sqrt()).abs() < 1e-15);
            assert_close(principal(&stress), [2.0, 0.0, -2.0]);
        }
        assert_eq!(
            principal(&[-1.0, 7.0, 2.0, 0.0, 0.0, 0.0]),
            [7.0, 2.0, -1.0]
        );
        assert_eq!(principal(&[0.0; 6]), [0.0; 3]);
        assert!(principal(&[f64::NAN; 6])[0].is_nan());
    }

    #[test]
    fn equal_and_nearly_equal_values_keep_their_digits() {
        for values in [
            [2e8, 2e8, 2e8],
            [3.0, 1.0, 1.0],
            [1.0, 1.0, -4.0],
            [1.0 + 1e-12, 1.0, 1.0 - 1e-12],
        ] {
            assert_close(principal(&turned(values, [0.3, -1.1, 2.0])), values);
        }
    }

    proptest! {
        #[test]
        fn rotation_changes_no_invariant(
            values in prop::array::uniform3(-10.0..10.0f64), angles in prop::array::uniform3(-3.0..3.0f64),
        ) {
            let [a, b, c] = values;
            let stress = turned(values, angles);
            let mises = (0.5 * ((a - b).powi(2) + (b - c).powi(2) + (c - a).powi(2))).sqrt();
            prop_assert!((von_mises(&stress) - mises).abs() < 1e-13 * 20.0);
            let mut sorted = values;
            sorted.sort_unstable_by(|a, b| b.total_cmp(a));
            for (found, expected) in principal(&stress).iter().zip(sorted) {
                prop_assert!((found - expected).abs() < 1e-13);
            }
        }
    }
}
