//! Products with one row of blocks, in registers: gathered against nodes, and scattered to nodes by its transposes.
//!
//! [`RowLanes`] does that block by block for any [`Lanes`]; `paired.rs` two blocks at a time.
//!
//! Invariant: touches the blocks of the row, what follows them within the padding, and nodes in their columns.
#![allow(unsafe_code)]

use super::Scalar;
use super::slab::Arrangement;
#[cfg(target_arch = "x86_64")]
use crate::linalg::lanes::x86;
use crate::linalg::lanes::{Lanes, Portable};

/// Bytes that the matrix is fetched ahead of its use: of 1 to 16 KiB, 2 to 4 KiB were best on Zen 3 and Zen 4.
const AHEAD: usize = 3072;

/// A stored column: the place of its node.
pub(super) trait Index: Copy {
    fn place(self) -> usize;
}

impl Index for u16 {
    #[inline(always)]
    fn place(self) -> usize {
        usize::from(self)
    }
}

impl Index for u32 {
    #[inline(always)]
    fn place(self) -> usize {
        self as usize
    }
}

/// A row of `n` blocks, in the order that [`Arrangement`] says, with their columns.
#[derive(Clone, Copy)]
pub(super) struct Row<T, I> {
    pub(super) values: *const T,
    pub(super) columns: *const I,
    pub(super) n: usize,
}

/// Products of rows of blocks with nodes in scratch memory.
///
/// Safety of all: as for [`Lanes`]; blocks and columns of the row can be read, its values are followed by padding or by
/// those of another row, and there are nodes in its columns.
pub(super) trait RowLanes<T: Scalar, const B: usize>: Lanes<T, B> {
    /// A right-hand side less a row of blocks times nodes, the last block perhaps still missing.
    type Late: Copy;

    /// rhs - row x, but for the last block: its node may still be changed.
    unsafe fn gather_early<I: Index>(row: Row<T, I>, x: *const T, rhs: Self::V) -> Self::Late;

    /// The same with the last block, once its node has its value.
    unsafe fn gather_late(early: Self::Late) -> Self::V;

    /// row x, where the matrix is read upwards or, if `DOWN`, downwards.
    #[inline(always)]
    unsafe fn gather<I: Index, const DOWN: bool>(row: Row<T, I>, x: *const T) -> Self::V {
        // SAFETY: as demanded of the caller.
        unsafe {
            let mut sums = [Self::zero(); B];
            for step in 0..row.n {
                let k = if DOWN { row.n - 1 - step } else { step };
                prefetch_ahead::<T, B, Self, DOWN>(row.values.add(k * B * B));
                let x = Self::load_node(x.add((*row.columns.add(k)).place() * Self::STRIDE));
                for i in 0..B {
                    sums[i] = Self::mul_add(Self::block_row(row.values, (row.n, k), i), x, sums[i]);
                }
            }
            Self::sum_rows(sums)
        }
    }

    /// y += the transposes of the row times its own node.
    #[inline(always)]
    unsafe fn scatter<I: Index, const DOWN: bool>(row: Row<T, I>, own: Self::V, y: *mut T) {
        // SAFETY: as demanded of the caller.
        unsafe {
            let own = Self::splats(own);
            for step in 0..row.n {
                let k = if DOWN { row.n - 1 - step } else { step };
                let y = y.add((*row.columns.add(k)).place() * Self::STRIDE);
                let mut sum = Self::load_node(y);
                for i in 0..B {
                    sum = Self::mul_add(Self::block_row(row.values, (row.n, k), i), own[i], sum);
                }
                Self::store_node(y, sum);
            }
        }
    }

    /// Both in one go: row x, and y += its transposes times its own node.
    #[inline(always)]
    unsafe fn gather_and_scatter<I: Index>(
        row: Row<T, I>,
        x: *const T,
        own: Self::V,
        y: *mut T,
    ) -> Self::V {
        // SAFETY: as demanded of the caller.
        unsafe {
            let own = Self::splats(own);
            let mut sums = [Self::zero(); B];
            for k in 0..row.n {
                prefetch_ahead::<T, B, Self, false>(row.values.add(k * B * B));
                let place = (*row.columns.add(k)).place() * Self::STRIDE;
                let (x, y) = (Self::load_node(x.add(place)), y.add(place));
                let mut sum = Self::load_node(y);
                for i in 0..B {
                    let block = Self::block_row(row.values, (row.n, k), i);
                    sums[i] = Self::mul_add(block, x, sums[i]);
                    sum = Self::mul_add(block, own[i], sum);
                }
                Self::store_node(y, sum);
            }
            Self::sum_rows(sums)
        }
    }

    /// Row i of block k of a row of n blocks.
    #[inline(always)]
    unsafe fn block_row(values: *const T, (n, k): (usize, usize), i: usize) -> Self::V {
        // SAFETY: as demanded of the caller.
        unsafe { Self::load_row(values.add(Arrangement::new::<T, B>(n).place(k, i))) }
    }
}

impl<T: Scalar, const B: usize> RowLanes<T, B> for Portable {
    type Late = <Portable as Lanes<T, B>>::V;

    #[inline(always)]
    unsafe fn gather_early<I: Index>(row: Row<T, I>, x: *const T, rhs: Self::Late) -> Self::Late {
        // SAFETY: as demanded of the caller.
        unsafe { <Self as Lanes<T, B>>::sub(rhs, Self::gather::<I, false>(row, x)) }
    }

    #[inline(always)]
    unsafe fn gather_late(early: Self::Late) -> Self::Late {
        early
    }
}

#[cfg(target_arch = "x86_64")]
impl RowLanes<f32, 6> for x86::Single6 {
    type Late = <x86::Single6 as Lanes<f32, 6>>::V;

    #[inline(always)]
    unsafe fn gather_early<I: Index>(
        row: Row<f32, I>,
        x: *const f32,
        rhs: Self::Late,
    ) -> Self::Late {
        // SAFETY: as demanded of the caller.
        unsafe { <Self as Lanes<f32, 6>>::sub(rhs, Self::gather::<I, false>(row, x)) }
    }

    #[inline(always)]
    unsafe fn gather_late(early: Self::Late) -> Self::Late {
        early
    }
}

#[cfg(target_arch = "x86_64")]
impl RowLanes<f64, 3> for x86::Double3 {
    type Late = <x86::Double3 as Lanes<f64, 3>>::V;

    #[inline(always)]
    unsafe fn gather_early<I: Index>(
        row: Row<f64, I>,
        x: *const f64,
        rhs: Self::Late,
    ) -> Self::Late {
        // SAFETY: as demanded of the caller.
        unsafe { <Self as Lanes<f64, 3>>::sub(rhs, Self::gather::<I, false>(row, x)) }
    }

    #[inline(always)]
    unsafe fn gather_late(early: Self::Late) -> Self::Late {
        early
    }
}

/// Asks for what lies ahead of `block` by some lines.
///
/// Safety: as for [`Lanes`].
#[inline(always)]
pub(super) unsafe fn prefetch_ahead<
    T,
    const B: usize,
    L: Lanes<T, B> + ?Sized,
    const DOWN: bool,
>(
    block: *const T,
) {
    let (line, ahead) = (64 / size_of::<T>(), AHEAD / size_of::<T>());
    let next = if DOWN {
        block.wrapping_sub(ahead)
    } else {
        block.wrapping_add(ahead)
    };
    for k in 0..(B * B).div_ceil(line) {
        // SAFETY: as demanded of the caller.
        unsafe { L::prefetch_line(next.wrapping_add(k * line)) };
    }
}
