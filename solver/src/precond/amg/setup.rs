//! How the hierarchy is made: coarser and coarser levels until one is small enough to be solved.
//!
//! Invariant: orders the steps and keeps the times; the numerics are in the modules it calls.

use super::AmgOptions;
use super::aggregate::{Aggregates, aggregate};
use super::coarse::CoarseSolver;
use super::galerkin::galerkin_product;
use super::level::{End, Level, Tail};
use super::replicate::replicate;
use super::report::{Report, Step};
use super::smooth::smoothed_prolongator;
use super::smoother::GaussSeidel;
use super::spectrum::largest_eigenvalue;
use super::strength::StrongGraph;
use super::tentative::{Tentative, tentative};
use super::transfer::Prolongator;
use crate::linalg::{BlockCsr, DistMatrix, Upper};
use crate::precond::BlockJacobi;
use fem_mesh::{Comm, IndexMap, Result};

/// A matrix is solved directly when it has no more than this part of the rows of the finest one,
const SOLVED_PART: u64 = 40;
/// but from the first of these numbers of scalar rows in any case, and never above the second.
const MAX_SOLVED: (u64, u64) = (600, 2500);
/// Fewest rows a rank for which distributed work pays.
const MIN_ROWS_PER_RANK: u64 = 256;
/// A level that keeps more than this part of the rows is the last.
const STALLED: f64 = 0.75;

/// Factor of the threshold on coarser levels. Measured on cubes of 48 to 80 hex8: with 1/4 iterations grow (20 at 80), with
/// 3/2 they do not (16), from 2 on aggregates fall apart and coarse rows fill up.
const COARSER_THRESHOLD: f64 = 1.5;

/// A level with the matrix and the near-nullspace of the next.
pub(super) struct Coarsened<const B: usize, const C: usize> {
    pub(super) level: Level<B, C, Prolongator<B, C>>,
    pub(super) matrix: DistMatrix<C>,
    pub(super) near_nullspace: Vec<[[f64; C]; C]>,
}

/// What all levels are made with.
pub(super) struct Setup<'a> {
    pub(super) options: &'a AmgOptions,
    /// Aggregations so far.
    pub(super) n_coarsenings: u32,
    pub(super) report: Report,
}

impl Setup<'_> {
    /// Collective. One step of smoothed aggregation.
    ///
    /// # Errors
    /// A matrix that is not positive definite.
    pub(super) fn coarsen<const B: usize, const C: usize>(
        &mut self,
        comm: &Comm,
        a: &DistMatrix<B>,
        near_nullspace: &[[[f64; C]; B]],
    ) -> Result<Coarsened<B, C>> {
        let upper = self.report.time(Step::Aggregate, || Upper::new(a.lower()));
        let aggregates = self.aggregates(comm, a, &upper, near_nullspace);
        let Tentative {
            rows,
            coarse_nullspace,
        } = self
            .report
            .time(Step::Tentative, || tentative(&aggregates, near_nullspace));
        let smoother = self.report.time(Step::Smoother, || GaussSeidel::new(a));
        let inverse = self
            .report
            .time(Step::Spectrum, || BlockJacobi::new(comm, a))?;
        let largest = self.report.time(Step::Spectrum, || {
            largest_eigenvalue(comm, a.map(), &smoother, &inverse)
        })?;
        let omega = 4.0 / 3.0 / largest;
        let p = self.report.time(Step::Prolongator, || {
            let rows_of_a = (a, &upper);
            smoothed_prolongator(comm, rows_of_a, &aggregates, rows, inverse.blocks(), omega)
        });
        drop((inverse, upper));
        let is_alive = |row: usize, c: usize| coarse_nullspace[row][c][c] > 0.0;
        let matrix = self
            .report
            .time(Step::Galerkin, || galerkin_product(comm, a, &p, is_alive));
        let level = Level::new(smoother, p, a.map().n_owned());
        Ok(Coarsened {
            level,
            matrix,
            near_nullspace: coarse_nullspace,
        })
    }

    /// Collective. Aggregates of the nodes with a near-nullspace.
    fn aggregates<const B: usize, const C: usize>(
        &mut self,
        comm: &Comm,
        a: &DistMatrix<B>,
        upper: &Upper,
        near_nullspace: &[[[f64; C]; B]],
    ) -> Aggregates {
        let factor = if self.n_coarsenings == 0 {
            1.0
        } else {
            COARSER_THRESHOLD
        };
        let threshold = factor * self.options.strength_threshold;
        self.n_coarsenings += 1;
        self.report.time(Step::Aggregate, || {
            let takes_part: Vec<bool> = (near_nullspace.iter())
                .map(|rows| *rows != [[0.0; C]; B])
                .collect();
            let strong = aggregate(&StrongGraph::new(a, upper, threshold), &takes_part);
            let n_nodes = takes_part.iter().filter(|&&part| part).count();
            let [n_nodes, n_coarse] = [n_nodes, strong.n].map(|n| comm.sum_u64(n as u64));
            if threshold > 0.0 && n_coarse as f64 > STALLED * n_nodes as f64 {
                // Next to no connection is strong: better weak ones than no coarsening.
                return aggregate(&StrongGraph::new(a, upper, 0.0), &takes_part);
            }
            strong
        })
    }

    /// Most scalar rows of a matrix that is solved directly: its solution must not cost more than the cycle above it.
    fn max_solved(&self) -> u64 {
        let n_fine = self.report.levels.first().map_or(0, |level| level.rows);
        (n_fine / SOLVED_PART).clamp(MAX_SOLVED.0, MAX_SOLVED.1)
    }

    /// Collective. The levels from `matrix` on.
    ///
    /// # Errors
    /// A matrix that is not positive definite, or too little memory.
    pub(super) fn tail<const C: usize>(
        &mut self,
        comm: &Comm,
        mut matrix: DistMatrix<C>,
        mut near_nullspace: Vec<[[f64; C]; C]>,
    ) -> Result<Tail<C>> {
        let mut levels = Vec::new();
        loop {
            let n_rows = matrix.map().n_global();
            if n_rows * C as u64 <= self.max_solved() {
                break;
            }
            if comm.n_ranks() > 1 && n_rows < MIN_ROWS_PER_RANK * comm.n_ranks() as u64 {
                let end = self.replicated(comm, &matrix, &near_nullspace)?;
                return Ok(Tail { levels, end });
            }
            let coarser = self.coarsen(comm, &matrix, &near_nullspace)?;
            let n_coarse = coarser.matrix.map().n_global();
            if n_coarse as f64 > STALLED * n_rows as f64 {
                break;
            }
            self.report.add_level(comm, &matrix);
            levels.push(coarser.level);
            matrix = coarser.matrix;
            near_nullspace = coarser.near_nullspace;
        }
        self.report.add_level(comm, &matrix);
        let solver = self
            .report
            .time(Step::Coarse, || CoarseSolver::new(comm, &matrix))?;
        Ok(Tail {
            levels,
            end: End::Solved(Box::new(solver)),
        })
    }

    /// Collective. The levels from `matrix` on, all on every rank.
    fn replicated<const C: usize>(
        &mut self,
        comm: &Comm,
        matrix: &DistMatrix<C>,
        near_nullspace: &[[[f64; C]; C]],
    ) -> Result<End<C>> {
        let whole = replicate(comm, matrix);
        let parts = comm.all_gather(near_nullspace.as_flattened().as_flattened());
        let blocks = parts
            .iter()
            .flat_map(|part| part.as_chunks::<C>().0.as_chunks::<C>().0);
        let near_nullspace = blocks.copied().collect();
        let alone = Comm::alone();
        let n = whole.n_rows;
        let nothing = BlockCsr::zeros(0, vec![0; n + 1], Vec::new());
        let map = IndexMap::new(&alone, n, Vec::new());
        let whole = DistMatrix::new(&alone, map, whole, nothing);
        let tail = Box::new(self.tail(&alone, whole, near_nullspace)?);
        let first = matrix.map().offset() as usize;
        Ok(End::Replicated {
            rows: first..first + matrix.map().n_owned(),
            tail,
        })
    }
}
