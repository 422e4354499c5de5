//! Products of rows of 3 x 3 blocks by the vector instructions of the processor at hand.
//!
//! AVX2 with FMA, found at run time. The product is limited by memory: AVX-512 was measured to gain nothing over it.
//! Elsewhere the caller's portable loop does the work.
//!
//! Invariant: pointers never leave the slices they were taken from, whatever the numbers in a matrix are.
#![allow(unsafe_code)]

use super::spmv::Rows;

/// A matrix value that the kernels can load.
pub trait Lanes: Copy {
    /// Whether y = A x was computed, where `rows` are rows of 3 x 3 blocks; if not, this processor lacks the
    /// instructions and nothing was done.
    fn multiply_rows_3(rows: &Rows<Self>, x: &[f64], y: &mut [f64]) -> bool
    where
        Self: Sized;
}

impl Lanes for f64 {
    fn multiply_rows_3(rows: &Rows<f64>, x: &[f64], y: &mut [f64]) -> bool {
        kernel::multiply_if_possible(rows, x, y)
    }
}

impl Lanes for f32 {
    fn multiply_rows_3(rows: &Rows<f32>, x: &[f64], y: &mut [f64]) -> bool {
        kernel::multiply_if_possible(rows, x, y)
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod kernel {
    use super::Rows;

    pub(super) fn multiply_if_possible<T>(_: &Rows<T>, _: &[f64], _: &mut [f64]) -> bool {
        false
    }
}

#[cfg(target_arch = "x86_64")]
mod kernel {
    use super::Rows;
    use std::arch::x86_64::{
        __m256d, _mm_loadu_ps, _mm_maskload_ps, _mm_set_epi32, _mm256_cvtps_pd, _mm256_fmadd_pd,
        _mm256_loadu_pd, _mm256_maskload_pd, _mm256_set_epi64x, _mm256_setzero_pd,
        _mm256_storeu_pd,
    };

    pub(super) fn multiply_if_possible<T: Load>(rows: &Rows<T>, x: &[f64], y: &mut [f64]) -> bool {
        let possible = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        if possible {
            // SAFETY: the processor has what the function needs.
            unsafe { multiply(rows, x, y) };
        }
        possible
    }

    /// Loads of matrix values into lanes of f64.
    ///
    /// Safety of both: the processor has AVX2, and as many values as the name says can be read.
    pub(super) trait Load: Copy {
        /// Four values.
        unsafe fn four(values: *const Self) -> __m256d;
        /// Three values, and zero in the last lane.
        unsafe fn three(values: *const Self) -> __m256d;
    }

    impl Load for f64 {
        #[inline(always)]
        unsafe fn four(values: *const f64) -> __m256d {
            // SAFETY: as the trait demands of callers.
            unsafe { _mm256_loadu_pd(values) }
        }

        #[inline(always)]
        unsafe fn three(values: *const f64) -> __m256d {
            // SAFETY: as the trait demands of callers; the mask selects three lanes.
            unsafe { _mm256_maskload_pd(values, _mm256_set_epi64x(0, -1, -1, -1)) }
        }
    }

    impl Load for f32 {
        #[inline(always)]
        unsafe fn four(values: *const f32) -> __m256d {
            // SAFETY: as the trait demands of callers.
            unsafe { _mm256_cvtps_pd(_mm_loadu_ps(values)) }
        }

        #[inline(always)]
        unsafe fn three(values: *const f32) -> __m256d {
            // SAFETY: as the trait demands of callers; the mask selects three lanes.
            unsafe { _mm256_cvtps_pd(_mm_maskload_ps(values, _mm_set_epi32(0, -1, -1, -1))) }
        }
    }

    /// y = A x, two rows far apart in memory at a time: one stream of reads alone does not use the bandwidth that a core
    /// can get. (Three were measured to be slower.)
    #[target_feature(enable = "avx2,fma")]
    fn multiply<T: Load>(rows: &Rows<T>, x: &[f64], y: &mut [f64]) {
        let (x, y) = (x.as_chunks::<3>().0, y.as_chunks_mut::<3>().0);
        let half = y.len() / 2;
        let (lower, rest) = y.split_at_mut(half);
        let (upper, last) = rest.split_at_mut(half);
        for i in 0..half {
            [lower[i], upper[i]] = multiply_together(rows, [i, half + i], x);
        }
        for y in last {
            [*y] = multiply_together(rows, [2 * half], x);
        }
    }

    /// N rows of A times x, block by block in turn; the sum of each row is independent of the others.
    // Few instructions a block let the processor look further ahead in memory: hence the pointers. Plain loops instead
    // of `map`, because functions without the target features are not inlined around code with them.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn multiply_together<T: Load, const N: usize>(
        rows: &Rows<T>,
        together: [usize; N],
        x: &[[f64; 3]],
    ) -> [[f64; 3]; N] {
        let mut parts: [(&[u32], &[[T; 9]]); N] = [(&[], &[]); N];
        let mut shortest = usize::MAX;
        for i in 0..N {
            parts[i] = row(rows, together[i]);
            shortest = shortest.min(parts[i].0.len());
        }
        let mut sums = [[_mm256_setzero_pd(); 3]; N];
        for k in 0..shortest {
            for i in 0..N {
                // SAFETY: k is below the length of both slices, which `row` makes equally long.
                let (column, block) =
                    unsafe { (*parts[i].0.as_ptr().add(k), &*parts[i].1.as_ptr().add(k)) };
                add_block(&mut sums[i], block, &x[column as usize]);
            }
        }
        let mut result = [[0.0; 3]; N];
        for i in 0..N {
            for (column, block) in parts[i].0[shortest..].iter().zip(&parts[i].1[shortest..]) {
                add_block(&mut sums[i], block, &x[*column as usize]);
            }
            for j in 0..3 {
                result[i][j] = sum_of_three(sums[i][j]);
            }
        }
        result
    }

    /// Columns and blocks of a row, equally many.
    #[inline]
    fn row<'a, T>(rows: &Rows<'a, T>, row: usize) -> (&'a [u32], &'a [[T; 9]]) {
        let range = rows.row_start[row]..rows.row_start[row + 1];
        let blocks = &rows.values[range.start * 9..range.end * 9];
        (&rows.columns[range], blocks.as_chunks::<9>().0)
    }

    /// Adds a block times x to the sums, one for each scalar row of the block; lane 3 of each holds what does not
    /// matter.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn add_block<T: Load>(sums: &mut [__m256d; 3], block: &[T; 9], x: &[f64; 3]) {
        let block = block.as_ptr();
        // SAFETY: the processor has AVX2 (see `multiply_if_possible`). `x` points to three values, `block` to nine, of
        // which the loads take four from 0, four from 3 and three from 6.
        let (x, a) = unsafe {
            let a = [
                T::four(block),
                T::four(block.add(3)),
                T::three(block.add(6)),
            ];
            (f64::three(x.as_ptr()), a)
        };
        for i in 0..3 {
            sums[i] = _mm256_fmadd_pd(a[i], x, sums[i]);
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn sum_of_three(lanes: __m256d) -> f64 {
        let mut values = [0.0; 4];
        // SAFETY: writes four values to an array of four.
        unsafe { _mm256_storeu_pd(values.as_mut_ptr(), lanes) };
        values[0] + values[1] + values[2]
    }
}
