//! `CoarseSolver`: the coarsest level, solved directly on every rank.
//!
//! The matrix is so small that every rank holds and factorizes the whole of it: one gathering of the right-hand side,
//! and no answer to be sent back.
//!
//! Invariant: all ranks compute the same bits.

use super::replicate::{replicate, replicate_vector};
use crate::direct::factor::{Factor, FactorFailure, Symbolic};
use crate::linalg::{BlockCsr, DistMatrix};
use fem_mesh::{Comm, Error, Result};
use std::ops::Range;

/// What is added to the diagonal, relative to it, where a pivot vanishes by rounding: one try after the other.
const SHIFTS: [f64; 4] = [0.0, 1e-13, 1e-11, 1e-9];

/// A factorized matrix.
pub(super) struct CoarseSolver<const C: usize> {
    /// `None` for a matrix without rows.
    factor: Option<Factor>,
    /// This rank's rows.
    rows: Range<usize>,
}

impl<const C: usize> CoarseSolver<C> {
    /// Collective. Factorizes `a`.
    ///
    /// # Errors
    /// A matrix that is not positive definite, or too little memory.
    pub(super) fn new(comm: &Comm, a: &DistMatrix<C>) -> Result<Self> {
        let whole = replicate(comm, a);
        let first = a.map().offset() as usize;
        let factor = if whole.n_rows == 0 {
            None
        } else {
            Some(factorize(whole)?)
        };
        Ok(CoarseSolver {
            factor,
            rows: first..first + a.map().n_owned(),
        })
    }

    /// Memory, bytes.
    pub(super) fn memory(&self) -> usize {
        self.factor.as_ref().map_or(0, Factor::memory)
    }

    /// Collective. Solves A x = b.
    pub(super) fn solve(&self, comm: &Comm, b: &[[f32; C]], x: &mut [[f32; C]]) {
        let whole = replicate_vector(comm, b);
        let Some(factor) = &self.factor else { return };
        let mut solution: Vec<f64> = whole.as_flattened().iter().map(|b| f64::from(*b)).collect();
        if factor.solve(&mut solution).is_err() {
            // Out of memory; the method that uses this preconditioner stops at numbers that are not finite.
            solution.fill(f64::NAN);
        }
        let mine = &solution[self.rows.start * C..self.rows.end * C];
        for (x, value) in x.as_flattened_mut().iter_mut().zip(mine) {
            *x = *value as f32;
        }
    }
}

fn factorize<const C: usize>(mut a: BlockCsr<f64, C>) -> Result<Factor> {
    let mut result = Factor::new(Symbolic::new(&a)?, &a);
    for shift in SHIFTS.windows(2).map(|w| w[1] - w[0]) {
        if result.is_ok() {
            break;
        }
        for row in 0..a.n_rows {
            if let Some(k) = a.find(row, row as u32) {
                (0..C).for_each(|c| a.block_mut(k)[c * C + c] *= 1.0 + shift);
            }
        }
        result = Factor::new(Symbolic::new(&a)?, &a);
    }
    result.map_err(|failure| match failure {
        FactorFailure::Other(error) => error,
        FactorFailure::NoPositivePivot(_) => {
            Error::model("the matrix is not positive definite: no multigrid for it")
                .advice("is the model restrained, and are all material data positive?")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::CoarseSolver;
    use crate::linalg::sample::{distribute, spring_grid};
    use crate::linalg::{BlockCsr, LinearOperator};
    use fem_mesh::comm::run_threads;

    #[test]
    fn it_solves_on_every_rank() {
        let a = spring_grid(4, 10.0);
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let matrix = distribute(comm, &a);
                let solver = CoarseSolver::new(comm, &matrix).expect("positive definite");
                let b: Vec<[f32; 3]> = (0..matrix.map().n_owned())
                    .map(|i| [1.0, matrix.map().global(i) as f32, -2.0])
                    .collect();
                let mut x = vec![[f32::NAN; 3]; b.len()];
                solver.solve(comm, &b, &mut x);
                let x: Vec<f64> = x.iter().flatten().map(|&x| f64::from(x)).collect();
                let mut ax = vec![0.0; x.len()];
                matrix.apply(comm, &x, &mut ax);
                for (ax, b) in ax.iter().zip(b.iter().flatten()) {
                    assert!((ax - f64::from(*b)).abs() < 1e-3, "{ax} {b}");
                }
            });
        }
    }

    #[test]
    fn no_rows_and_vanishing_pivots_are_borne() {
        run_threads(2, |comm| {
            let nothing = distribute(comm, &BlockCsr::<f64, 3>::from_blocks(0, 0, Vec::new()));
            CoarseSolver::new(comm, &nothing)
                .expect("empty")
                .solve(comm, &[], &mut []);

            // Singular, as rounding may leave a matrix that is not.
            let pair = [(0, 0, 1.0), (0, 1, -1.0), (1, 0, -1.0), (1, 1, 1.0)];
            let blocks = pair.map(|(i, j, v)| (i, j, [[v]])).to_vec();
            let singular = distribute(comm, &BlockCsr::from_blocks(2, 2, blocks));
            CoarseSolver::new(comm, &singular).expect("made regular");
            let negative = BlockCsr::from_blocks(2, 2, vec![(0, 0, [[1.0]]), (1, 1, [[-1.0]])]);
            assert!(CoarseSolver::new(comm, &distribute(comm, &negative)).is_err());
        });
    }
}
