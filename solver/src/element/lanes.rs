//! A few numbers side by side, one of each element of a batch: a plain array or an AVX2 register.
//!
//! Every operation acts on each lane by itself. The two differ by the rounding of the fused multiply-add.
//!
//! Invariant: the vector type is used only inside functions compiled for AVX2 and FMA, which run only where the
//! machine has them (see [`super::solid`]).

/// Number of lanes.
pub(super) const LANES: usize = 4;

/// [`LANES`] numbers of type f64.
pub(super) trait Lanes: Copy {
    /// The same number in all lanes.
    fn splat(value: f64) -> Self;

    /// The first [`LANES`] numbers of `from`.
    fn load(from: &[f64]) -> Self;

    /// Writes the first [`LANES`] numbers of `into`.
    fn store(self, into: &mut [f64]);

    /// Sum.
    fn add(self, other: Self) -> Self;

    /// Difference.
    fn sub(self, other: Self) -> Self;

    /// Absolute value.
    fn abs(self) -> Self;

    /// The larger number of each lane.
    fn max(self, other: Self) -> Self;

    /// Rows to columns: lane j of number i becomes lane i of number j.
    fn transpose(numbers: [Self; LANES]) -> [Self; LANES];

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

/// The result of `f` in each lane.
#[inline(always)]
fn each(f: impl Fn(usize) -> f64) -> [f64; LANES] {
    [f(0), f(1), f(2), f(3)]
}

impl Lanes for [f64; LANES] {
    #[inline(always)]
    fn splat(value: f64) -> Self {
        [value; LANES]
    }

    #[inline(always)]
    fn load(from: &[f64]) -> Self {
        each(|l| from[l])
    }

    #[inline(always)]
    fn store(self, into: &mut [f64]) {
        into[..LANES].copy_from_slice(&self);
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        each(|l| self[l] + other[l])
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        each(|l| self[l] - other[l])
    }

    #[inline(always)]
    fn abs(self) -> Self {
        self.map(f64::abs)
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        each(|l| {
            if self[l] > other[l] {
                self[l]
            } else {
                other[l]
            }
        })
    }

    #[inline(always)]
    fn transpose(numbers: [Self; LANES]) -> [Self; LANES] {
        [0, 1, 2, 3].map(|j| each(|i| numbers[i][j]))
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        each(|l| self[l] * other[l])
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        each(|l| self[l] / other[l])
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        self.map(f64::sqrt)
    }

    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        each(|l| self[l] * b[l] + c[l])
    }

    #[inline(always)]
    fn mul_sub(self, b: Self, c: Self) -> Self {
        each(|l| self[l] * b[l] - c[l])
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use super::{LANES, Lanes};
    use std::arch::x86_64::{
        __m256d, _mm256_add_pd, _mm256_andnot_pd, _mm256_div_pd, _mm256_fmadd_pd, _mm256_fmsub_pd,
        _mm256_loadu_pd, _mm256_max_pd, _mm256_mul_pd, _mm256_permute2f128_pd, _mm256_set1_pd,
        _mm256_sqrt_pd, _mm256_storeu_pd, _mm256_sub_pd, _mm256_unpackhi_pd, _mm256_unpacklo_pd,
    };

    impl Lanes for __m256d {
        #[inline(always)]
        fn splat(value: f64) -> Self {
            // SAFETY: the machine has the instruction set (invariant of the module).
            unsafe { _mm256_set1_pd(value) }
        }

        #[inline(always)]
        fn load(from: &[f64]) -> Self {
            let from = &from[..LANES];
            // SAFETY: as in `splat`; the slice holds all the numbers read.
            unsafe { _mm256_loadu_pd(from.as_ptr()) }
        }

        #[inline(always)]
        fn store(self, into: &mut [f64]) {
            let into = &mut into[..LANES];
            // SAFETY: as in `splat`; the slice holds all the numbers written.
            unsafe { _mm256_storeu_pd(into.as_mut_ptr(), self) }
        }

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            // SAFETY: as in `splat`.
            unsafe { _mm256_add_pd(self, other) }
        }

        #[inline(always)]
        fn sub(self, other: Self) -> Self {
            // SAFETY: as in `splat`.
            unsafe { _mm256_sub_pd(self, other) }
        }

        #[inline(always)]
        fn abs(self) -> Self {
            // SAFETY: as in `splat`.
            unsafe { _mm256_andnot_pd(_mm256_set1_pd(-0.0), self) }
        }

        #[inline(always)]
        fn max(self, other: Self) -> Self {
            // SAFETY: as in `splat`.
            unsafe { _mm256_max_pd(self, other) }
        }

        #[inline(always)]
        fn transpose([a, b, c, d]: [Self; LANES]) -> [Self; LANES] {
            // SAFETY: as in `splat`.
            unsafe {
                let (ab_02, ab_13) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
                let (cd_02, cd_13) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
                [
                    _mm256_permute2f128_pd::<0x20>(ab_02, cd_02),
                    _mm256_permute2f128_pd::<0x20>(ab_13, cd_13),
                    _mm256_permute2f128_pd::<0x31>(ab_02, cd_02),
                    _mm256_permute2f128_pd::<0x31>(ab_13, cd_13),
                ]
            }
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
