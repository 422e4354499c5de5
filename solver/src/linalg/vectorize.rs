//! `dispatch`: runs a kernel compiled for the vector instructions of the processor at hand.
//!
//! A kernel is plain code over arrays of fixed size, compiled twice: for the baseline of the target, and for AVX2 with
//! FMA. Which one runs is decided once per call, so a call should be worth some microseconds.
//!
//! Invariant: no kernel lives here; both compilations run the same source.
#![allow(unsafe_code)]

/// A piece of numeric work. `run` and what it calls in its inner loops must be `#[inline(always)]`, or they are
/// compiled for the baseline.
pub(crate) trait Kernel {
    /// Result of the work.
    type Output;
    /// Does the work; `FMA` says whether [`madd`] is one instruction.
    fn run<const FMA: bool>(self) -> Self::Output;
}

/// A float with a fused multiply-add.
pub(crate) trait Float:
    Copy + std::ops::Add<Output = Self> + std::ops::Mul<Output = Self>
{
    /// a b + c, rounded once.
    fn fused(a: Self, b: Self, c: Self) -> Self;
}

impl Float for f32 {
    #[inline(always)]
    fn fused(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

impl Float for f64 {
    #[inline(always)]
    fn fused(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
}

/// a b + c, fused where that is one instruction and not a call of the mathematical library.
#[inline(always)]
pub(crate) fn madd<const FMA: bool, T: Float>(a: T, b: T, c: T) -> T {
    if FMA { T::fused(a, b, c) } else { a * b + c }
}

/// Runs `kernel` with the widest instructions that this processor has.
pub(crate) fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has what the function needs.
        return unsafe { with_avx2(kernel) };
    }
    kernel.run::<false>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<true>()
}

/// Asks for `value` to be fetched into the cache; does nothing where that is not possible.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start: *const i8 = std::ptr::from_ref(value).cast();
        let last = start.wrapping_add(size_of::<T>().saturating_sub(1));
        // SAFETY: part of every x86-64 processor; it reads nothing into the program.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(start);
            _mm_prefetch::<_MM_HINT_T0>(last);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// The B x B blocks of a flat array of values.
#[inline(always)]
pub(crate) fn as_blocks<T, const B: usize>(values: &[T]) -> &[[[T; B]; B]] {
    values.as_chunks().0.as_chunks().0
}

#[cfg(test)]
mod tests {
    use super::{Kernel, dispatch, madd};

    struct Sum;

    impl Kernel for Sum {
        type Output = f64;

        #[inline(always)]
        fn run<const FMA: bool>(self) -> f64 {
            madd::<FMA, f64>(3.0, 4.0, 5.0)
        }
    }

    #[test]
    fn both_compilations_agree_with_the_definition() {
        assert_eq!((dispatch(Sum), Sum.run::<false>()), (17.0, 17.0));
    }
}
