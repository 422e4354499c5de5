//! `Jacobi` and `BlockJacobi`: the inverse of the diagonal, scalar by scalar or block by block.
//!
//! Invariant: applying them never communicates, though every operator's `apply` takes the group of ranks.

use crate::linalg::{DistMatrix, LinearOperator, Preconditioner, vector};
use fem_mesh::{Comm, Error, Result};

/// A pivot smaller than this part of its diagonal entry means a singular block.
const SINGULAR: f64 = 1e-14;

/// The inverse of the scalar diagonal.
pub struct Jacobi {
    inverse: Vec<f64>,
}

impl Jacobi {
    /// Collective. Inverts the scalar diagonal of `matrix`.
    ///
    /// # Errors
    /// A diagonal entry that is not a positive number; the message names its global scalar row.
    pub fn new<const B: usize>(comm: &Comm, matrix: &DistMatrix<B>) -> Result<Self> {
        let mut inverse = Vec::with_capacity(matrix.n_owned());
        let mut first_bad = None;
        for row in 0..matrix.map().n_owned() {
            let block = matrix.diagonal_block(row);
            for i in 0..B {
                if !is_positive(block[i][i]) && first_bad.is_none() {
                    first_bad = Some((row, i, block[i][i]));
                }
                inverse.push(1.0 / block[i][i]);
            }
        }
        let result = first_bad.map_or(Ok(()), |(row, i, value)| {
            let global = matrix.map().global(row) * B as u64 + i as u64;
            Err(Error::model(format!(
                "the diagonal entry of matrix row {global} is {value:e}"
            ))
            .expected("a positive number"))
        });
        comm.all_ok(result)?;
        Ok(Jacobi { inverse })
    }
}

impl LinearOperator for Jacobi {
    fn n_owned(&self) -> usize {
        self.inverse.len()
    }

    fn apply(&self, comm: &Comm, x: &[f64], y: &mut [f64]) {
        self.apply_dot(comm, x, y);
    }

    fn apply_dot(&self, _: &Comm, x: &[f64], y: &mut [f64]) -> f64 {
        vector::multiply_entries(&self.inverse, x, y)
    }
}

impl Preconditioner for Jacobi {}

/// The inverses of the diagonal blocks.
pub struct BlockJacobi<const B: usize> {
    inverse: Vec<[[f64; B]; B]>,
}

impl<const B: usize> BlockJacobi<B> {
    /// Collective. Inverts the diagonal blocks of `matrix`.
    ///
    /// # Errors
    /// A diagonal block that is not symmetric positive definite; the message names its global block row.
    pub fn new(comm: &Comm, matrix: &DistMatrix<B>) -> Result<Self> {
        let rows = 0..matrix.map().n_owned();
        let inverse: Result<Vec<_>> = rows
            .map(|row| {
                invert_spd(matrix.diagonal_block(row)).ok_or_else(|| {
                    let global = matrix.map().global(row);
                    Error::model(format!(
                        "the diagonal block of matrix row {global} is not positive definite"
                    ))
                })
            })
            .collect();
        Ok(BlockJacobi {
            inverse: comm.all_ok(inverse)?,
        })
    }

    /// The inverse of each owned diagonal block.
    pub fn blocks(&self) -> &[[[f64; B]; B]] {
        &self.inverse
    }
}

impl<const B: usize> LinearOperator for BlockJacobi<B> {
    fn n_owned(&self) -> usize {
        self.inverse.len() * B
    }

    fn apply(&self, comm: &Comm, x: &[f64], y: &mut [f64]) {
        self.apply_dot(comm, x, y);
    }

    fn apply_dot(&self, _: &Comm, x: &[f64], y: &mut [f64]) -> f64 {
        vector::multiply_blocks(&self.inverse, x, y)
    }
}

impl<const B: usize> Preconditioner for BlockJacobi<B> {}

fn is_positive(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

/// Inverse of a symmetric positive definite block by Gauss-Jordan elimination without pivoting, which is stable for
/// such blocks; `None` if a pivot shows that it is not one.
pub(crate) fn invert_spd<const B: usize>(block: [[f64; B]; B]) -> Option<[[f64; B]; B]> {
    let mut a = block;
    for k in 0..B {
        let pivot = a[k][k];
        if !is_positive(pivot) || pivot <= SINGULAR * block[k][k] {
            return None;
        }
        a[k][k] = 1.0;
        for j in 0..B {
            a[k][j] /= pivot;
        }
        for i in (0..B).filter(|&i| i != k) {
            let factor = std::mem::take(&mut a[i][k]);
            for j in 0..B {
                a[i][j] -= factor * a[k][j];
            }
        }
    }
    a.iter().flatten().all(|v| v.is_finite()).then_some(a)
}

#[cfg(test)]
mod tests {
    use super::{BlockJacobi, Jacobi, invert_spd};
    use crate::linalg::sample::{distribute, noise, spring_grid};
    use crate::linalg::{BlockCsr, LinearOperator};
    use fem_mesh::ErrorKind;
    use fem_mesh::comm::run_threads;
    use nalgebra::Matrix3;

    #[test]
    fn blocks_are_inverted() {
        let block = [[4.0, 1.0, -0.5], [1.0, 3.0, 0.25], [-0.5, 0.25, 2.0]];
        let inverse = invert_spd(block).expect("the block is positive definite");
        let dense = Matrix3::from_fn(|i, j| block[i][j])
            .try_inverse()
            .expect("it has an inverse");
        for i in 0..3 {
            for j in 0..3 {
                assert!((inverse[i][j] - dense[(i, j)]).abs() < 1e-15);
            }
        }
        assert_eq!(invert_spd([[1.0, 2.0], [2.0, 1.0]]), None);
        assert_eq!(invert_spd([[1.0, 1.0], [1.0, 1.0]]), None);
        assert_eq!(invert_spd([[f64::NAN]]), None);
    }

    #[test]
    fn both_undo_the_part_of_the_matrix_that_they_know() {
        let mut a = spring_grid(3, 10.0);
        for row in 0..a.n_rows {
            for k in a.row(row) {
                if a.columns[k] as usize != row {
                    a.block_mut(k).fill(0.0);
                }
            }
        }
        run_threads(3, |comm| {
            let matrix = distribute(comm, &a);
            let x = noise(matrix.n_owned(), 1);
            let (mut ax, mut y) = (vec![0.0; x.len()], vec![0.0; x.len()]);
            matrix.apply(comm, &x, &mut ax);
            BlockJacobi::new(comm, &matrix)
                .expect("positive definite")
                .apply(comm, &ax, &mut y);
            assert!(y.iter().zip(&x).all(|(y, x)| (y - x).abs() < 1e-14));

            Jacobi::new(comm, &matrix)
                .expect("positive diagonal")
                .apply(comm, &x, &mut y);
            for (i, (y, x)) in y.iter().zip(&x).enumerate() {
                assert_eq!(*y, x * (1.0 / matrix.diagonal_block(i / 3)[i % 3][i % 3]));
            }
        });
    }

    #[test]
    fn a_bad_diagonal_is_named_on_every_rank() {
        let good = [[2.0, 0.0], [0.0, 1.0]];
        let blocks = (0..8).map(|row| {
            (
                row,
                row,
                if row == 5 {
                    [[2.0, 0.0], [0.0, -1.0]]
                } else {
                    good
                },
            )
        });
        let a = BlockCsr::from_blocks(8, 8, blocks.collect());
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let matrix = distribute(comm, &a);
                let Err(point) = Jacobi::new(comm, &matrix) else {
                    panic!("row 11 is negative")
                };
                assert_eq!(point.kind(), ErrorKind::Model);
                assert!(
                    point
                        .to_string()
                        .starts_with("the diagonal entry of matrix row 11 is -1e0"),
                    "{point}"
                );
                let Err(block) = BlockJacobi::new(comm, &matrix) else {
                    panic!("block 5 is indefinite")
                };
                assert!(block.to_string().contains("matrix row 5 "), "{block}");
            });
        }
    }
}
