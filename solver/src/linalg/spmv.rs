//! Products of a [`BlockCsr`] with vectors, threaded over rows.
//!
//! The terms of a row are added in the order of its blocks whatever the threads do, so the result has the same bits
//! for any number of threads.
//!
//! Invariant: one rank's numbers only; every loop over blocks of a product stands here.

use super::{BlockCsr, Scalar};
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSliceMut};

/// Rows that a thread takes at a time.
const ROWS_PER_TASK: usize = 1024;

/// y = A x; `x` has `n_cols * B` scalars, `y` `n_rows * B`.
///
/// # Panics
/// If the lengths do not fit.
pub fn multiply<T: Scalar, const B: usize>(a: &BlockCsr<T, B>, x: &[f64], y: &mut [f64]) {
    assert_eq!((x.len(), y.len()), (a.n_cols * B, a.n_rows * B));
    let rows = |task: usize, y: &mut [f64]| multiply_rows(a, task * ROWS_PER_TASK, x, y);
    if a.n_rows <= ROWS_PER_TASK || rayon::current_num_threads() == 1 {
        multiply_rows(a, 0, x, y);
    } else {
        y.par_chunks_mut(ROWS_PER_TASK * B)
            .enumerate()
            .for_each(|(task, y)| rows(task, y));
    }
}

/// y = rows `first..` of A times x, as many as `y` holds.
fn multiply_rows<T: Scalar, const B: usize>(
    a: &BlockCsr<T, B>,
    first: usize,
    x: &[f64],
    y: &mut [f64],
) {
    for (row, y) in (first..).zip(y.chunks_exact_mut(B)) {
        y.copy_from_slice(&row_product(a, row, x));
    }
}

/// Row `row` of A times x.
#[inline]
fn row_product<T: Scalar, const B: usize>(a: &BlockCsr<T, B>, row: usize, x: &[f64]) -> [f64; B] {
    let mut sum = [0.0; B];
    let blocks = a.row(row);
    let values = &a.values[blocks.start * B * B..blocks.end * B * B];
    for (column, block) in a.columns[blocks].iter().zip(values.chunks_exact(B * B)) {
        let x = &x[*column as usize * B..][..B];
        for i in 0..B {
            for j in 0..B {
                sum[i] += block[i * B + j].to_f64() * x[j];
            }
        }
    }
    sum
}

/// y += A x on the block rows `rows` only.
pub fn multiply_add_rows<T: Scalar, const B: usize>(
    a: &BlockCsr<T, B>,
    rows: &[u32],
    x: &[f64],
    y: &mut [f64],
) {
    for &row in rows {
        let sum = row_product(a, row as usize, x);
        for (y, sum) in y[row as usize * B..][..B].iter_mut().zip(sum) {
            *y += sum;
        }
    }
}
