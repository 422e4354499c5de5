//! `Work`: a step on one slab, checked and given to the best kernels there are.
//!
//! Invariant: kernels get nothing whose lengths do not fit.
#![allow(unsafe_code)]

use super::Scalar;
#[cfg(target_arch = "x86_64")]
use super::choice;
use super::kernels::run_with;
use super::slab::symmetric_len;
use crate::linalg::lanes::{PADDING, Portable};

/// Columns of the blocks within a slab, as places in the ring.
#[derive(Clone, Copy)]
pub(super) enum Columns<'a> {
    Narrow(&'a [u16]),
    Wide(&'a [u32]),
}

/// Blocks of a slab and what belongs to them; `row_start` has an entry more than rows.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a, T> {
    pub(super) row_start: &'a [u32],
    pub(super) columns: Columns<'a>,
    pub(super) values: &'a [T],
    pub(super) diagonal: &'a [T],
    pub(super) inverse: &'a [T],
    pub(super) shifted_rows: &'a [u32],
    pub(super) shifts: &'a [T],
    pub(super) ring: usize,
}

/// Blocks that couple the rows `rows` to the rows `touched` of earlier slabs; their columns are places in `touched`.
#[derive(Clone, Copy)]
pub(super) struct Border<'a, T> {
    pub(super) rows: &'a [u32],
    pub(super) row_start: &'a [u32],
    pub(super) columns: &'a [u32],
    pub(super) values: &'a [T],
    pub(super) touched: &'a [u32],
}

/// A step on one slab; vectors are those of its rows unless said otherwise.
pub(super) enum Work<'a, T> {
    /// y = A x within the slab; returns x.y if `dot`.
    Product {
        matrix: Matrix<'a, T>,
        x: &'a [T],
        y: &'a mut [T],
        dot: bool,
    },
    /// (D + K + L) x = b; r = b - A x within the slab, K being the shifts.
    Forward {
        matrix: Matrix<'a, T>,
        b: &'a [T],
        x: &'a mut [T],
        r: &'a mut [T],
    },
    /// x += v + (D + K + U)^-1 (r - A v), A without the border; destroys r.
    Backward {
        matrix: Matrix<'a, T>,
        v: &'a [T],
        x: &'a mut [T],
        r: &'a mut [T],
    },
    /// y += C all, sent = C^T x, both negative if asked for, where C are the blocks of the border and `all` is a vector of
    /// the whole matrix; returns the part of that vector's x.A x if `dot`.
    Border {
        border: Border<'a, T>,
        all: &'a [T],
        x: &'a [T],
        sent: &'a mut [T],
        y: &'a mut [T],
        is_negative: bool,
        dot: bool,
    },
}

/// Does a step on one slab, with the best lanes there are.
pub(super) fn run<T: Scalar, const B: usize>(work: Work<T>) -> f64 {
    check::<T, B>(&work);
    #[cfg(target_arch = "x86_64")]
    if let Some(run) = choice::choose::<T, B>() {
        return run(work);
    }
    run_portable::<T, B>(work)
}

/// Does a step without special instructions.
pub(super) fn run_portable<T: Scalar, const B: usize>(work: Work<T>) -> f64 {
    check::<T, B>(&work);
    // SAFETY: lengths are checked; the lanes need no special instructions.
    unsafe { run_with::<T, B, Portable>(work) }
}

fn check<T, const B: usize>(work: &Work<T>) {
    let (matrix, lengths) = match work {
        Work::Product { matrix, x, y, .. } => (matrix, [x.len(), y.len(), y.len()]),
        Work::Forward { matrix, b, x, r } => (matrix, [b.len(), x.len(), r.len()]),
        Work::Backward { matrix, v, x, r } => (matrix, [v.len(), x.len(), r.len()]),
        Work::Border {
            border,
            all,
            x,
            sent,
            y,
            ..
        } => {
            assert_eq!((sent.len(), x.len()), (border.touched.len() * B, y.len()));
            assert!(is_within::<B>(border.rows, y.len()));
            assert!(is_within::<B>(border.touched, all.len()));
            assert_eq!(border.row_start.len(), border.rows.len() + 1);
            return check_blocks::<T, B>(border.row_start, border.columns.len(), border.values);
        }
    };
    let n_rows = matrix.row_start.len() - 1;
    assert_eq!(lengths, [n_rows * B; 3]);
    let n_columns = match matrix.columns {
        Columns::Narrow(columns) => columns.len(),
        Columns::Wide(columns) => columns.len(),
    };
    check_blocks::<T, B>(matrix.row_start, n_columns, matrix.values);
    let symmetric = |n: usize| n * symmetric_len(B) + PADDING;
    assert_eq!(
        [matrix.diagonal, matrix.inverse, matrix.shifts].map(<[T]>::len),
        [n_rows, n_rows, matrix.shifted_rows.len()].map(symmetric)
    );
    assert!(is_within::<B>(matrix.shifted_rows, n_rows * B) && matrix.ring > 0);
}

fn check_blocks<T, const B: usize>(row_start: &[u32], n_blocks: usize, values: &[T]) {
    assert_eq!(row_start.last().map(|&end| end as usize), Some(n_blocks));
    assert_eq!(values.len(), n_blocks * B * B + PADDING);
}

/// Whether ascending `rows` all belong to a vector of `n` scalars.
fn is_within<const B: usize>(rows: &[u32], n: usize) -> bool {
    rows.last().is_none_or(|&row| (row as usize + 1) * B <= n)
}
