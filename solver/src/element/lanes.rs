//! A few numbers side by side, one of each element of a batch: a plain array or an AVX2 register.
//!
//! Every operation acts on each lane by itself. The two differ by the rounding of the fused multiply-add.
//!
//! Invariant: the vector type is used only inside functions compiled for AVX2 and FMA, which run only where the
//! machine has them (see [`super::solid`]).

/// `N` numbers of type f64.
pub(super) trait Lanes: Copy {
    /// Number of lanes.
    const N: usize;

    /// The same number in all lanes.
    fn splat(value: f64) -> Self;

    /// The first `N` numbers of `from`.
    fn load(from: &[f64]) -> Self;

    /// Writes the first `N` numbers of `into`.
    fn store(self, into: &mut [f64]);

    /// Product.
    fn mul(self, other: Self) -> Self;

    /// Quotient.
    fn div(self, other: Self) -> Self;

    /// Square root.
    fn sqrt(self) -> Self;

    /// `self * b + c`.
    fn mul_add(self, b: Self, c: Self) -> Self;

    /// `self * b - c`.
    fn mul_sub(self, b: Self, c: Self) -> Self;
}

impl Lanes for [f64; 4] {
    const N: usize = 4;

    #[inline(always)]
    fn splat(value: f64) -> Self {
        [value; 4]
    }

    #[inline(always)]
    fn load(from: &[f64]) -> Self {
        [from[0], from[1], from[2], from[3]]
    }

    #[inline(always)]
    fn store(self, into: &mut [f64]) {
        into[..4].copy_from_slice(&self);
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        [
            self[0] * other[0],
            self[1] * other[1],
            self[2] * other[2],
            self[3] * other[3],
        ]
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        [
            self[0] / other[0],
            self[1] / other[1],
            self[2] / other[2],
            self[3] / other[3],
        ]
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        [
            self[0].sqrt(),
            self[1].sqrt(),
            self[2].sqrt(),
            self[3].sqrt(),
        ]
    }

    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        [
            self[0] * b[0] + c[0],
            self[1] * b[1] + c[1],
            self[2] * b[2] + c[2],
            self[3] * b[3] + c[3],
        ]
    }

    #[inline(always)]
    fn mul_sub(self, b: Self, c: Self) -> Self {
        [
            self[0] * b[0] - c[0],
            self[1] * b[1] - c[1],
            self[2] * b[2] - c[2],
            self[3] * b[3] - c[3],
        ]
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use super::Lanes;
    use std::arch::x86_64::{
        __m256d, _mm256_div_pd, _mm256_fmadd_pd, _mm256_fmsub_pd, _mm256_loadu_pd, _mm256_mul_pd,
        _mm256_set1_pd, _mm256_sqrt_pd, _mm256_storeu_pd,
    };

    impl Lanes for __m256d {
        const N: usize = 4;

        #[inline(always)]
        fn splat(value: f64) -> Self {
            // SAFETY: the machine has the instruction set (invariant of the module).
            unsafe { _mm256_set1_pd(value) }
        }

        #[inline(always)]
        fn load(from: &[f64]) -> Self {
            let from = &from[..4];
            // SAFETY: as in `splat`; the slice holds all the numbers read.
            unsafe { _mm256_loadu_pd(from.as_ptr()) }
        }

        #[inline(always)]
        fn store(self, into: &mut [f64]) {
            let into = &mut into[..4];
            // SAFETY: as in `splat`; the slice holds all the numbers written.
            unsafe { _mm256_storeu_pd(into.as_mut_ptr(), self) }
        }

        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            // SAFETY: as in `splat`.
            unsafe { _mm256_mul_pd(self, other) }
        }

        #[inline(always)]
        fn div(self, other: Self) -> Self {
            // SAFETY: as in `splat`.
            unsafe { _mm256_div_pd(self, other) }
        }

        #[inline(always)]
        fn sqrt(self) -> Self {
            // SAFETY: as in `splat`.
            unsafe { _mm256_sqrt_pd(self) }
        }

        #[inline(always)]
        fn mul_add(self, b: Self, c: Self) -> Self {
            // SAFETY: as in `splat`.
            unsafe { _mm256_fmadd_pd(self, b, c) }
        }

        #[inline(always)]
        fn mul_sub(self, b: Self, c: Self) -> Self {
            // SAFETY: as in `splat`.
            unsafe { _mm256_fmsub_pd(self, b, c) }
        }
    }
}
