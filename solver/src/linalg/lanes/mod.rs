//! `Lanes`: the registers of a block row, those of x86-64 and [`Portable`] ones for every processor.
//!
//! Invariant: lanes touch no more memory than their documentation says.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
pub(super) mod x86;

use super::Scalar;

/// Scalars behind the last block of an array of blocks: lanes load whole registers.
pub(super) const PADDING: usize = 16;

/// Registers that hold a row of a block, or the B scalars of a vector that go with it: a node. Lanes from B on hold
/// anything.
///
/// Kernels copy nodes of vectors from the caller's packed arrays to scratch memory of their own, where a node fills
/// a register: what was just stored can be loaded again at once, in one piece that crosses no cache line.
///
/// Safety of all: the processor has the instructions, and pointers are valid for what is said to be touched.
pub(super) trait Lanes<T, const B: usize> {
    /// The register.
    type V: Copy;
    /// Scalars of a node in scratch memory, B or more.
    const STRIDE: usize;
    /// All zero.
    unsafe fn zero() -> Self::V;
    /// A row of a block. Reads [`PADDING`] scalars at most.
    unsafe fn load_row(p: *const T) -> Self::V;
    /// The rows of a symmetric block, stored by its upper triangle if B is 3, and as it is otherwise. Reads no more than
    /// the block and [`PADDING`] scalars.
    unsafe fn load_symmetric(p: *const T) -> [Self::V; B];
    /// A packed node; reads B scalars.
    unsafe fn load(p: *const T) -> Self::V;
    /// A packed node; reads `STRIDE` scalars.
    unsafe fn load_beyond(p: *const T) -> Self::V;
    /// A packed node; writes B scalars.
    unsafe fn store(p: *mut T, v: Self::V);
    /// A node in scratch memory, aligned to its size.
    unsafe fn load_node(p: *const T) -> Self::V;
    /// A node in scratch memory likewise.
    unsafe fn store_node(p: *mut T, v: Self::V);
    /// A register full of `value`.
    unsafe fn splat(value: T) -> Self::V;
    /// For each of the first B lanes, a register full of it.
    unsafe fn splats(v: Self::V) -> [Self::V; B];
    /// a + b.
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    /// a - b.
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    /// a b + c.
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// Lane i is the sum of the first B lanes of `rows[i]`.
    unsafe fn sum_rows(rows: [Self::V; B]) -> Self::V;
    /// Asks for the cache line at `p` to be fetched; `p` may point anywhere.
    unsafe fn prefetch_line(p: *const T);
}

/// Lanes as the compiler makes them, for every block size and processor.
pub(super) struct Portable;

impl<T: Scalar, const B: usize> Lanes<T, B> for Portable {
    type V = [T; B];
    const STRIDE: usize = B;

    #[inline(always)]
    unsafe fn zero() -> [T; B] {
        [T::ZERO; B]
    }

    #[inline(always)]
    unsafe fn load_row(p: *const T) -> [T; B] {
        // SAFETY: B scalars can be read, as the trait demands of callers; so for all loads and stores here.
        unsafe { p.cast::<[T; B]>().read() }
    }

    #[inline(always)]
    unsafe fn load_symmetric(p: *const T) -> [[T; B]; B] {
        let mut rows = [[T::ZERO; B]; B];
        for i in 0..B {
            for j in 0..B {
                let (low, high) = (i.min(j), i.max(j));
                // In the upper triangle of 3 x 3, row 1 starts at 3, row 2 at 5.
                let place = if B == 3 {
                    low * (5 - low) / 2 + high
                } else {
                    i * B + j
                };
                // SAFETY: see above.
                rows[i][j] = unsafe { *p.add(place) };
            }
        }
        rows
    }

    #[inline(always)]
    unsafe fn load(p: *const T) -> [T; B] {
        // SAFETY: see above.
        unsafe { p.cast::<[T; B]>().read() }
    }

    #[inline(always)]
    unsafe fn load_beyond(p: *const T) -> [T; B] {
        // SAFETY: see above.
        unsafe { p.cast::<[T; B]>().read() }
    }

    #[inline(always)]
    unsafe fn store(p: *mut T, v: [T; B]) {
        // SAFETY: see above.
        unsafe { p.cast::<[T; B]>().write(v) }
    }

    #[inline(always)]
    unsafe fn load_node(p: *const T) -> [T; B] {
        // SAFETY: see above.
        unsafe { p.cast::<[T; B]>().read() }
    }

    #[inline(always)]
    unsafe fn store_node(p: *mut T, v: [T; B]) {
        // SAFETY: see above.
        unsafe { p.cast::<[T; B]>().write(v) }
    }

    #[inline(always)]
    unsafe fn splat(value: T) -> [T; B] {
        [value; B]
    }

    #[inline(always)]
    unsafe fn splats(v: [T; B]) -> [[T; B]; B] {
        v.map(|lane| [lane; B])
    }

    #[inline(always)]
    unsafe fn add(a: [T; B], b: [T; B]) -> [T; B] {
        std::array::from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    unsafe fn sub(a: [T; B], b: [T; B]) -> [T; B] {
        std::array::from_fn(|i| a[i] - b[i])
    }

    #[inline(always)]
    unsafe fn mul_add(a: [T; B], b: [T; B], c: [T; B]) -> [T; B] {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }

    #[inline(always)]
    unsafe fn sum_rows(rows: [[T; B]; B]) -> [T; B] {
        rows.map(|row| row.into_iter().fold(T::ZERO, |sum, value| sum + value))
    }

    #[inline(always)]
    unsafe fn prefetch_line(_: *const T) {}
}
