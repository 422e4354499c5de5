//! Products of a [`BlockCsr`] with vectors, threaded over rows.
//!
//! The terms of a row are added in the order of its blocks whatever the threads do, so the result has the same bits
//! for any number of threads.
//!
//! Invariant: one rank's numbers only; chooses the kernel by block size, never by the values.

use super::{BlockCsr, Scalar};
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSliceMut};

/// Rows that a thread takes at a time: about 2 MB of a matrix with 27 blocks of 3 x 3 a row.
const ROWS_PER_TASK: usize = 1024;

/// Consecutive block rows of a matrix, as the kernels see them.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, T> {
    /// First block of each row and of the row behind the last.
    pub row_start: &'a [usize],
    /// Columns of all blocks of the matrix.
    pub columns: &'a [u32],
    /// Values of all blocks of the matrix.
    pub values: &'a [T],
}

/// y = A x; `x` has `n_cols * B` scalars, `y` `n_rows * B`.
///
/// # Panics
/// If the lengths do not fit.
pub fn multiply<T: Scalar, const B: usize>(a: &BlockCsr<T, B>, x: &[f64], y: &mut [f64]) {
    assert_eq!((x.len(), y.len()), (a.n_cols * B, a.n_rows * B));
    let task = |(task, y): (usize, &mut [f64])| multiply_rows(a, task * ROWS_PER_TASK, x, y);
    if a.n_rows <= ROWS_PER_TASK || rayon::current_num_threads() == 1 {
        y.chunks_mut(ROWS_PER_TASK * B).enumerate().for_each(task);
    } else {
        y.par_chunks_mut(ROWS_PER_TASK * B)
            .enumerate()
            .for_each(task);
    }
}

/// y = rows `first..` of A times x, as many as `y` holds.
fn multiply_rows<T: Scalar, const B: usize>(
    a: &BlockCsr<T, B>,
    first: usize,
    x: &[f64],
    y: &mut [f64],
) {
    let row_start = &a.row_start[first..=first + y.len() / B];
    let rows = Rows {
        row_start,
        columns: &a.columns,
        values: &a.values,
    };
    if B == 3 && T::multiply_rows_3(&rows, x, y) {
        return;
    }
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

#[cfg(test)]
mod tests {
    use super::{multiply, multiply_add_rows, row_product};
    use crate::linalg::sample::{laplace_grid, noise, spring_grid};
    use crate::linalg::{BlockCsr, Scalar};

    fn check<T: Scalar, const B: usize>(a: &BlockCsr<T, B>) {
        let x = noise(a.n_cols * B, 1);
        let mut y = vec![f64::NAN; a.n_rows * B];
        multiply(a, &x, &mut y);
        for (row, y) in y.chunks_exact(B).enumerate() {
            for (y, expected) in y.iter().zip(row_product(a, row, &x)) {
                assert!((y - expected).abs() < 1e-14 * 100.0, "{y} {expected}");
            }
        }
    }

    #[test]
    fn kernels_agree_with_the_plain_loop() {
        let a = spring_grid(6, 7.0);
        check(&a);
        check(&a.to_scalar::<f32>());
        check(&laplace_grid(6));
        check(&BlockCsr::<f64, 3>::from_blocks(
            4,
            4,
            vec![(3, 3, [[1.0, 2.0, 3.0]; 3])],
        ));
        check(&BlockCsr::<f64, 6>::from_blocks(
            2,
            3,
            vec![(1, 2, [[1.5; 6]; 6]), (1, 0, [[2.0; 6]; 6])],
        ));
        check(&BlockCsr::<f64, 3>::from_blocks(0, 0, Vec::new()));
    }

    #[test]
    fn an_infinite_entry_stays_in_its_row() {
        let mut a = spring_grid(2, 1.0);
        a.block_mut(0)[3] = f64::INFINITY;
        let mut y = vec![0.0; 24];
        multiply(&a, &[1.0; 24], &mut y);
        let wrong: Vec<usize> = (0..24).filter(|&i| !y[i].is_finite()).collect();
        assert_eq!(wrong, [1]);
    }

    #[test]
    fn rows_are_added_where_they_belong() {
        let a = BlockCsr::from_blocks(3, 1, vec![(0, 0, [[1.0]]), (2, 0, [[3.0]])]);
        let mut y = [10.0, 20.0, 30.0];
        multiply_add_rows(&a, &[2], &[2.0], &mut y);
        assert_eq!(y, [10.0, 20.0, 36.0]);
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn a_column_out_of_range_is_caught() {
        let mut a = spring_grid(2, 1.0);
        a.columns[5] = 8;
        multiply(&a, &[1.0; 24], &mut [0.0; 24]);
    }
}
