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

    /// y = A x with one accumulator for each scalar row; its lane 3 holds what is not summed in the end.
    #[target_feature(enable = "avx2,fma")]
    fn multiply<T: Load>(rows: &Rows<T>, x: &[f64], y: &mut [f64]) {
        let (x, y) = (x.as_chunks::<3>().0, y.as_chunks_mut::<3>().0);
        for (range, y) in rows.row_start.windows(2).zip(y) {
            let columns = &rows.columns[range[0]..range[1]];
            let blocks = rows.values[range[0] * 9..range[1] * 9].as_chunks::<9>().0;
            let mut sums = [_mm256_setzero_pd(); 3];
            for (column, block) in columns.iter().zip(blocks) {
                let (x, block) = (x[*column as usize].as_ptr(), block.as_ptr());
                // SAFETY: the processor has AVX2 (see `multiply_if_possible`). `x` points to three values, `block` to
                // nine, of which each load takes four from 0, four from 3 and three from 6.
                let (x, a) = unsafe {
                    (
                        f64::three(x),
                        [
                            T::four(block),
                            T::four(block.add(3)),
                            T::three(block.add(6)),
                        ],
                    )
                };
                for i in 0..3 {
                    sums[i] = _mm256_fmadd_pd(a[i], x, sums[i]);
                }
            }
            *y = sums.map(|lanes| sum_of_three(lanes));
        }
    }

    #[target_feature(enable = "avx2")]
    fn sum_of_three(lanes: __m256d) -> f64 {
        let mut values = [0.0; 4];
        // SAFETY: writes four values to an array of four.
        unsafe { _mm256_storeu_pd(values.as_mut_ptr(), lanes) };
        values[0] + values[1] + values[2]
    }
}
