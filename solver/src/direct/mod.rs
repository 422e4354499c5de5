//! Direct solution by sparse Cholesky factorization on rank 0: for small models and as the referee of the iterative
//! methods.
//!
//! What goes in: a distributed matrix. [`DirectAnalysis`] gathers it and tells what the factorization will cost, so
//! that a caller can still choose another method; [`DirectSolver`] holds the factor and solves.
//!
//! Invariant: only rank 0 does arithmetic on the whole matrix; knows no cell, element, material or case.

pub(crate) mod factor;
mod ordering;

use crate::krylov::report::{Norms, SolveReport, norm_of_rhs};
use crate::linalg::{BlockCsr, DistMatrix, LinearOperator, vector};
use factor::{Factor, FactorFailure, Symbolic};
use fem_mesh::{Comm, Error, Result};

/// What a factorization costs on rank 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirectCost {
    /// Scalars in the factor.
    pub factor_entries: f64,
    /// Multiplications and additions.
    pub flops: f64,
    /// Peak memory of rank 0 beyond the distributed matrix, bytes.
    pub memory: f64,
}

/// A matrix gathered and analyzed, not yet factorized.
pub struct DirectAnalysis<const B: usize> {
    /// On rank 0 only.
    symbolic: Option<Symbolic>,
    /// The lower half of the whole matrix, on rank 0 of several ranks; one rank alone has it already.
    whole: Option<BlockCsr<f64, B>>,
    cost: DirectCost,
}

impl<const B: usize> DirectAnalysis<B> {
    /// Collective. Orders the rows of the symmetric `matrix` and counts the entries of its factor.
    ///
    /// # Errors
    /// Too many rows for this method, or too little memory.
    pub fn new(comm: &Comm, matrix: &DistMatrix<B>) -> Result<Self> {
        let n_global = matrix.map().n_global();
        if n_global > u64::from(u32::MAX) {
            return Err(Error::model(format!(
                "{n_global} block rows are too many for the direct solver"
            ))
            .advice("use `method = \"cg\"`"));
        }
        let whole = (comm.n_ranks() > 1).then(|| gather(comm, matrix));
        let mut symbolic = None;
        let mut cost = [0.0; 3];
        let analyzed = if comm.is_root() {
            Symbolic::new(whole.as_ref().unwrap_or(matrix.lower())).map(|s| {
                let memory = s.memory() + whole.as_ref().map_or(0, BlockCsr::memory);
                cost = [s.n_entries() as f64, s.flops(), memory as f64];
                symbolic = Some(s);
            })
        } else {
            Ok(())
        };
        comm.all_ok(analyzed)?;
        comm.sum_into(&mut cost);
        let [factor_entries, flops, memory] = cost;
        Ok(DirectAnalysis {
            symbolic,
            whole,
            cost: DirectCost {
                factor_entries,
                flops,
                memory,
            },
        })
    }

    /// What the factorization will cost; the same on every rank.
    pub fn cost(&self) -> DirectCost {
        self.cost
    }

    /// Collective. Factorizes `matrix`, the one analyzed. `name_row` is collective as well: it names a global scalar
    /// row in the words of the caller, for the message.
    ///
    /// # Errors
    /// A matrix that is not positive definite, or too little memory.
    pub fn factorize(
        self,
        comm: &Comm,
        matrix: &DistMatrix<B>,
        name_row: &dyn Fn(&Comm, u64) -> String,
    ) -> Result<DirectSolver> {
        let whole = self.whole.as_ref().unwrap_or(matrix.lower());
        let mut bad_row = u64::MAX;
        let factor = match self.symbolic.map(|symbolic| Factor::new(symbolic, whole)) {
            None => Ok(None),
            Some(Ok(factor)) => Ok(Some(factor)),
            Some(Err(FactorFailure::Other(error))) => Err(error),
            Some(Err(FactorFailure::NoPositivePivot(row))) => {
                bad_row = row as u64;
                Ok(None)
            }
        };
        let factor = comm.all_ok(factor)?;
        let bad_row = comm.broadcast(0, vec![bad_row])[0];
        if bad_row != u64::MAX {
            let place = name_row(comm, bad_row);
            let what = format!("the matrix is not positive definite: no positive pivot at {place}");
            return Err(Error::model(what).advice(
                "look there for parts that hang together at an edge or a point only, missing supports, extreme ratios \
                 of stiffness, and very thin or flat elements",
            ));
        }
        let matrix_norm = matrix.norm_inf(comm);
        Ok(DirectSolver {
            factor,
            matrix_norm,
        })
    }
}

/// A factorized matrix.
pub struct DirectSolver {
    /// On rank 0 only.
    factor: Option<Factor>,
    matrix_norm: f64,
}

impl DirectSolver {
    /// Collective. Solves A x = b with one step of iterative refinement, where `matrix` is the one factorized. What
    /// `x` held before is lost. The report's history holds the residuals before and after the refinement.
    ///
    /// # Errors
    /// Too little memory, or a right-hand side that is not finite.
    pub fn solve(
        &self,
        comm: &Comm,
        matrix: &dyn LinearOperator,
        b: &[f64],
        x: &mut [f64],
        tolerance: f64,
    ) -> Result<SolveReport> {
        let norm_b = norm_of_rhs(comm, b)?;
        if norm_b == 0.0 {
            x.fill(0.0);
            return Ok(SolveReport::of_zero());
        }
        x.copy_from_slice(&self.apply_inverse(comm, b)?);
        let mut r = vec![0.0; b.len()];
        let first = true_residual(comm, matrix, b, x, &mut r);
        let correction = self.apply_inverse(comm, &r)?;
        vector::axpby(1.0, &correction, 1.0, x);
        let mut last = true_residual(comm, matrix, b, x, &mut r);
        let history = vec![first / norm_b, last / norm_b];
        if last > first || last.is_nan() {
            vector::axpby(-1.0, &correction, 1.0, x);
            last = first;
        }
        let norms = Norms {
            residual: last,
            rhs: norm_b,
            solution: vector::norm(comm, x),
            matrix: self.matrix_norm,
        };
        Ok(SolveReport::new(norms, tolerance, true, history))
    }

    /// Collective. The factor's solution for the distributed right-hand side `b`.
    fn apply_inverse(&self, comm: &Comm, b: &[f64]) -> Result<Vec<f64>> {
        let parts = comm.gather(b);
        let lengths: Vec<usize> = parts.iter().map(Vec::len).collect();
        let mut x = parts.concat();
        comm.all_ok(
            self.factor
                .as_ref()
                .map_or(Ok(()), |factor| factor.solve(&mut x)),
        )?;
        let mut sends = vec![Vec::new(); comm.n_ranks()];
        let mut rest = x.as_slice();
        for (send, length) in sends.iter_mut().zip(lengths) {
            let (part, behind) = rest.split_at(length);
            *send = part.to_vec();
            rest = behind;
        }
        Ok(comm.all_to_all(sends).swap_remove(0))
    }
}

/// Collective. Leaves b - A x in `r` and returns its norm.
fn true_residual(
    comm: &Comm,
    matrix: &dyn LinearOperator,
    b: &[f64],
    x: &[f64],
    r: &mut [f64],
) -> f64 {
    matrix.apply(comm, x, r);
    comm.sum(vector::residual_in_place(b, r)).sqrt()
}

/// Collective. The lower half of the whole matrix on rank 0; an empty one elsewhere.
fn gather<const B: usize>(comm: &Comm, matrix: &DistMatrix<B>) -> BlockCsr<f64, B> {
    let mine = matrix.with_global_columns();
    let lengths: Vec<u64> = mine
        .row_start
        .windows(2)
        .map(|w| (w[1] - w[0]) as u64)
        .collect();
    let lengths = comm.gather(&lengths).concat();
    let mut row_start = vec![0];
    for length in lengths {
        row_start.push(row_start[row_start.len() - 1] + length as usize);
    }
    let columns = comm.gather(&mine.columns).concat();
    let values = comm.gather(&mine.values).concat();
    BlockCsr {
        n_rows: row_start.len() - 1,
        n_cols: row_start.len() - 1,
        row_start,
        columns,
        values,
    }
}

#[cfg(test)]
mod tests {
    use super::DirectAnalysis;
    use crate::krylov::{CgOptions, System, conjugate_gradients};
    use crate::linalg::sample::{distribute, noise, owned_rows, spring_grid};
    use crate::linalg::{BlockCsr, LinearOperator};
    use crate::precond::BlockJacobi;
    use fem_mesh::comm::run_threads;
    use fem_mesh::{Comm, ErrorKind};

    fn row_number(_: &Comm, row: u64) -> String {
        format!("row {row}")
    }

    #[test]
    fn direct_and_iterative_solutions_agree() {
        let a = spring_grid(6, 10.0);
        let b = noise(a.n_rows * 3, 5);
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let rows = owned_rows(comm, a.n_rows);
                let b = &b[rows.start * 3..rows.end * 3];
                let matrix = distribute(comm, &a);
                let analysis = DirectAnalysis::new(comm, &matrix).expect("analysis");
                assert!(analysis.cost().memory > analysis.cost().factor_entries * 8.0);
                let solver = analysis
                    .factorize(comm, &matrix, &row_number)
                    .expect("it is positive definite");
                let mut x = vec![f64::NAN; b.len()];
                let report = solver
                    .solve(comm, &matrix, b, &mut x, 1e-12)
                    .expect("it is solved");
                assert!(
                    report.converged && report.true_residual < 1e-13 && report.iterations == 0,
                    "{report:?}"
                );

                let mut preconditioner =
                    BlockJacobi::new(comm, &matrix).expect("positive definite");
                let system = System {
                    matrix: &matrix,
                    preconditioner: &mut preconditioner,
                };
                let options = CgOptions {
                    tolerance: 1e-12,
                    matrix_norm: matrix.norm_inf(comm),
                    ..CgOptions::default()
                };
                let mut by_cg = vec![0.0; b.len()];
                conjugate_gradients(comm, system, b, &mut by_cg, &options, &mut |_| ())
                    .expect("it is solved");
                let scale = comm.max(x.iter().fold(0.0, |m: f64, x| m.max(x.abs())));
                assert!(
                    x.iter()
                        .zip(&by_cg)
                        .all(|(x, y)| (x - y).abs() < 1e-10 * scale)
                );
            });
        }
    }

    #[test]
    fn zero_is_solved_by_zero() {
        run_threads(2, |comm| {
            let matrix = distribute(comm, &spring_grid(3, 1.0));
            let solver = DirectAnalysis::new(comm, &matrix)
                .and_then(|analysis| analysis.factorize(comm, &matrix, &row_number))
                .expect("it is positive definite");
            let mut x = vec![1.0; matrix.n_owned()];
            let b = vec![0.0; x.len()];
            assert!(
                solver
                    .solve(comm, &matrix, &b, &mut x, 1e-8)
                    .expect("it is solved")
                    .converged
            );
            assert!(x.iter().all(|&x| x == 0.0));
        });
    }

    #[test]
    fn every_rank_learns_of_a_bad_pivot() {
        let blocks = (0..8).map(|row| (row, row, [[if row == 5 { -1.0 } else { 1.0 }]]));
        let a = BlockCsr::from_blocks(8, 8, blocks.collect());
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let matrix = distribute(comm, &a);
                let analysis = DirectAnalysis::new(comm, &matrix).expect("analysis");
                let Err(error) = analysis.factorize(comm, &matrix, &row_number) else {
                    panic!("row 5 is negative")
                };
                assert_eq!(error.kind(), ErrorKind::Model);
                assert!(
                    error.to_string().contains("no positive pivot at row 5;"),
                    "{error}"
                );
            });
        }
    }
}
