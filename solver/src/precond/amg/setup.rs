//! How the hierarchy is made: coarser and coarser levels until one is small enough to be solved.
//!
//! Invariant: orders the steps and keeps the times; the numerics are in the modules it calls.

use super::AmgOptions;
use super::aggregate::aggregate;
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
use crate::linalg::{BlockCsr, DistMatrix};
use crate::precond::BlockJacobi;
use fem_mesh::{Comm, IndexMap, Result};

/// Most scalar rows of a matrix that is solved directly.
const MAX_SOLVED: u64 = 1200;
/// Fewest rows a rank for which distributed work pays.
const MIN_ROWS_PER_RANK: u64 = 256;
/// A level that keeps more than this part of the rows is the last.
const STALLED: f64 = 0.75;

/// From level to level, smoothed basis functions overlap more and connections are of more even strength: the threshold
/// is lowered by this factor.
const COARSER_THRESHOLD: f64 = 0.25;

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
    pub(super) n_coarsenings: i32,
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
        let first_threshold = std::env::var("THETA")
            .ok()
            .and_then(|v| v.parse().ok())
            .unwrap_or(self.options.strength_threshold);
        let threshold = first_threshold * COARSER_THRESHOLD.powi(self.n_coarsenings);
        self.n_coarsenings += 1;
        let aggregates = self.report.time(Step::Aggregate, || {
            let takes_part: Vec<bool> = near_nullspace
                .iter()
                .map(|rows| *rows != [[0.0; C]; B])
                .collect();
            aggregate(&StrongGraph::new(a, threshold), &takes_part)
        });
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
            smoothed_prolongator(comm, a, &aggregates, rows, inverse.blocks(), omega)
        });
        drop(inverse);
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
            if n_rows * C as u64 <= MAX_SOLVED {
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
            end: End::Solved(solver),
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
