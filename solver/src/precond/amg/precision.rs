//! Vectors on their way from double to single precision and back.
//!
//! A cycle is linear, so vectors are divided by a power of two that brings them near 1 and multiplied by it again: single
//! precision has range enough for what lies between, but not for every unit system.
//!
//! Invariant: a power of two changes no digit of a number.

use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::{ParallelSlice, ParallelSliceMut};

/// Scalars that a thread takes at a time.
const CHUNK: usize = 1 << 14;

/// A vector may be larger or smaller than the power of two that it is divided by, by this factor.
const LEEWAY: f64 = (1 << 20) as f64;

/// narrow = wide / size; returns the largest absolute value of `wide`.
pub(super) fn narrow(wide: &[f64], size: f64, narrow: &mut [f32]) -> f64 {
    let piece = |(narrow, wide): (&mut [f32], &[f64])| {
        let mut largest = 0.0f64;
        for (narrow, wide) in narrow.iter_mut().zip(wide) {
            *narrow = (wide / size) as f32;
            largest = largest.max(wide.abs());
        }
        largest
    };
    if wide.len() <= CHUNK || rayon::current_num_threads() == 1 {
        return piece((narrow, wide));
    }
    let pieces = narrow.par_chunks_mut(CHUNK).zip(wide.par_chunks(CHUNK));
    pieces.map(piece).reduce(|| 0.0, f64::max)
}

/// wide = size narrow.
pub(super) fn widen(narrow: &[f32], size: f64, wide: &mut [f64]) {
    let piece = |(wide, narrow): (&mut [f64], &[f32])| {
        for (wide, narrow) in wide.iter_mut().zip(narrow) {
            *wide = size * f64::from(*narrow);
        }
    };
    if wide.len() <= CHUNK || rayon::current_num_threads() == 1 {
        return piece((wide, narrow));
    }
    let pieces = wide.par_chunks_mut(CHUNK).zip(narrow.par_chunks(CHUNK));
    pieces.for_each(piece);
}

/// The power of two for a vector with the largest absolute value `largest`: `size` if that will do.
pub(super) fn size_of(largest: f64, size: f64) -> f64 {
    if largest == 0.0 || (size / LEEWAY..=size * LEEWAY).contains(&largest) {
        size
    } else {
        largest.log2().floor().exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::{narrow, size_of, widen};

    #[test]
    fn there_and_back_leaves_24_digits() {
        for n in [5, 100_000] {
            let wide: Vec<f64> = (0..n).map(|i| 1e200 * f64::from(i + 1) / 3.0).collect();
            let (mut single, mut back) = (vec![0.0; wide.len()], vec![0.0; wide.len()]);
            let largest = narrow(&wide, 1.0, &mut single);
            assert_eq!(largest, wide[wide.len() - 1]);
            let size = size_of(largest, 1.0);
            assert!((0.5..=1.0).contains(&(size / largest)) && size.log2().fract() == 0.0);
            assert_eq!(narrow(&wide, size, &mut single), largest);
            widen(&single, size, &mut back);
            let pairs = wide.iter().zip(&back);
            pairs.for_each(|(w, b)| assert!((w - b).abs() < 1e-7 * w));
        }
    }

    #[test]
    fn a_size_that_will_do_is_kept() {
        assert_eq!([0.0, 1.0, 1e5, 1e-5].map(|v| size_of(v, 4.0)), [4.0; 4]);
        assert_eq!(
            [3e-9, 5e9].map(|v| size_of(v, 1.0)),
            [2f64.powi(-29), 2f64.powi(32)]
        );
    }
}
