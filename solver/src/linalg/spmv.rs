//! Products of block matrices with vectors, plainly: for ghost columns, and where a matrix is multiplied a few times only.
//!
//! Invariant: one rank's numbers only; terms are added in the order in which the blocks are stored.

use super::{BlockCsr, Scalar};

/// y = A x, where `lower` is the lower half of the symmetric A.
///
/// # Panics
/// If the lengths do not fit.
pub(super) fn multiply_symmetric<const B: usize>(
    lower: &BlockCsr<f64, B>,
    x: &[f64],
    y: &mut [f64],
) {
    assert_eq!((x.len(), y.len()), (lower.n_rows * B, lower.n_rows * B));
    y.fill(0.0);
    let (x, y) = (x.as_chunks::<B>().0, y.as_chunks_mut::<B>().0);
    for row in 0..lower.n_rows {
        let mut sum = [0.0; B];
        for k in lower.row(row) {
            let column = lower.columns[k] as usize;
            let block = lower.block(k);
            for i in 0..B {
                for j in 0..B {
                    sum[i] += block[i * B + j] * x[column][j];
                }
            }
            if column != row {
                for i in 0..B {
                    for j in 0..B {
                        y[column][j] += block[i * B + j] * x[row][i];
                    }
                }
            }
        }
        (0..B).for_each(|i| y[row][i] += sum[i]);
    }
}

/// y += A x on the block rows `rows` only.
pub fn multiply_add_rows<T: Scalar, const B: usize>(
    a: &BlockCsr<T, B>,
    rows: &[u32],
    x: &[f64],
    y: &mut [f64],
) {
    for &row in rows {
        let mut sum = [0.0; B];
        for k in a.row(row as usize) {
            let x = &x[a.columns[k] as usize * B..][..B];
            for (sum, values) in sum.iter_mut().zip(a.block(k).chunks_exact(B)) {
                for (value, x) in values.iter().zip(x) {
                    *sum += value.to_f64() * x;
                }
            }
        }
        for (y, sum) in y[row as usize * B..][..B].iter_mut().zip(sum) {
            *y += sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{multiply_add_rows, multiply_symmetric};
    use crate::linalg::BlockCsr;
    use crate::linalg::sample::{laplace_grid, lower_half, multiply, noise, spring_grid};

    fn check<const B: usize>(a: &BlockCsr<f64, B>) {
        let x = noise(a.n_cols * B, 1);
        let mut y = vec![f64::NAN; a.n_rows * B];
        multiply_symmetric(&lower_half(a), &x, &mut y);
        for (y, expected) in y.iter().zip(multiply(a, &x)) {
            assert!((y - expected).abs() < 1e-12, "{y} {expected}");
        }
    }

    #[test]
    fn half_a_matrix_is_enough() {
        check(&spring_grid(6, 7.0));
        check(&laplace_grid(6));
        check(&BlockCsr::<f64, 3>::from_blocks(0, 0, Vec::new()));
    }

    #[test]
    fn rows_are_added_where_they_belong() {
        let a = BlockCsr::from_blocks(3, 1, vec![(0, 0, [[1.0]]), (2, 0, [[3.0]])]);
        let mut y = [10.0, 20.0, 30.0];
        multiply_add_rows(&a, &[2], &[2.0], &mut y);
        assert_eq!(y, [10.0, 20.0, 36.0]);
    }
}
