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

/// The B x B blocks of a flat array of values.
#[inline(always)]
pub(crate) fn as_blocks<T, const B: usize>(values: &[T]) -> &[[[T; B]; B]] {
    values.as_chunks().0.as_chunks().0
}

/// A block in double precision. (Plain loops: the closures of `map` may be compiled apart, for the baseline.)
#[inline(always)]
pub(crate) fn widen<const M: usize, const N: usize>(block: &[[f32; N]; M]) -> [[f64; N]; M] {
    let mut wide = [[0.0; N]; M];
    for i in 0..M {
        for j in 0..N {
            wide[i][j] = f64::from(block[i][j]);
        }
    }
    wide
}

/// A block in single precision.
#[inline(always)]
pub(crate) fn narrow<const M: usize, const N: usize>(block: &[[f64; N]; M]) -> [[f32; N]; M] {
    let mut narrow = [[0.0; N]; M];
    for i in 0..M {
        for j in 0..N {
            narrow[i][j] = block[i][j] as f32;
        }
    }
    narrow
}

/// c += a b for small dense blocks.
#[inline(always)]
pub(crate) fn add_product<
    const FMA: bool,
    T: Float,
    const M: usize,
    const K: usize,
    const N: usize,
>(
    a: &[[T; K]; M],
    b: &[[T; N]; K],
    c: &mut [[T; N]; M],
) {
    for i in 0..M {
        for k in 0..K {
            for j in 0..N {
                c[i][j] = madd::<FMA, T>(a[i][k], b[k][j], c[i][j]);
            }
        }
    }
}

/// c += aᵀ b for small dense blocks.
#[inline(always)]
pub(crate) fn add_transposed_product<
    const FMA: bool,
    T: Float,
    const M: usize,
    const K: usize,
    const N: usize,
>(
    a: &[[T; M]; K],
    b: &[[T; N]; K],
    c: &mut [[T; N]; M],
) {
    for i in 0..M {
        for k in 0..K {
            for j in 0..N {
                c[i][j] = madd::<FMA, T>(a[k][i], b[k][j], c[i][j]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kernel, add_product, add_transposed_product, dispatch};

    struct Products;

    impl Kernel for Products {
        type Output = ([[f64; 2]; 3], [[f64; 2]; 3]);

        #[inline(always)]
        fn run<const FMA: bool>(self) -> Self::Output {
            let a = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
            let transposed = [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]];
            let b = [[1.0, -1.0], [0.5, 2.0]];
            let mut c = ([[1.0; 2]; 3], [[1.0; 2]; 3]);
            add_product::<FMA, f64, 3, 2, 2>(&a, &b, &mut c.0);
            add_transposed_product::<FMA, f64, 3, 2, 2>(&transposed, &b, &mut c.1);
            c
        }
    }

    #[test]
    fn both_compilations_agree_with_the_definition() {
        let expected = [[3.0, 4.0], [6.0, 6.0], [9.0, 8.0]];
        assert_eq!(dispatch(Products), (expected, expected));
        assert_eq!(Products.run::<false>(), (expected, expected));
    }
}
