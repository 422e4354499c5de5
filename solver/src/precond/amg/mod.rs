//! Smoothed-aggregation multigrid as a preconditioner.
//!
//! What goes in: a distributed symmetric positive definite matrix, the vectors that it almost maps to zero
//! (near-nullspace: rigid-body modes for elasticity, constants for heat), and for second-order elements the corners
//! between which each node lies. What comes out: an operator that applies an approximate inverse by one V-cycle.
//!
//! Set-up: strength -> aggregate -> tentative -> smooth (prolongator) -> galerkin (coarse matrix), level by level, until
//! the matrix is small enough for `coarse`; second-order models first go to their `corners`. A cycle: smoother,
//! transfer, coarser level, transfer, smoother, all in single precision.
//!
//! Vanek, Mandel and Brezina, Computing 56 (1996) 179; Stueben, J. Comput. Appl. Math. 128 (2001) 281.
//!
//! Invariant: sees numbers (matrix, near-nullspace, parents), never coordinates, elements or materials.

mod aggregate;
mod block_sums;
mod coarse;
mod coarse_rows;
mod corners;
mod galerkin;
mod level;
mod places;
mod replicate;
pub mod report;
mod setup;
mod smooth;
mod smoother;
mod spectrum;
mod strength;
mod tentative;
#[cfg(test)]
mod test_convergence;
#[cfg(test)]
mod tests;
mod transfer;

use crate::linalg::{DistMatrix, LinearOperator, Preconditioner, vector};
use corners::{CornerInterpolation, CornerLevel, coarsen_to_corners};
use fem_mesh::{Comm, Result};
use level::{Level, Tail};
use report::{Report, Step};
use setup::{Coarsened, Setup};
use smoother::GaussSeidel;
use std::cell::RefCell;
use transfer::Prolongator;

/// Most sweeps of the smoother on each side of a coarse correction.
const MAX_SWEEPS: usize = 2;

/// Choices of the method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AmgOptions {
    /// Least strength of connections within an aggregate of the first level, see `strength`; 0: every connection counts.
    /// It keeps aggregates from reaching across the border of a stiff and a soft material, which would cost many
    /// iterations.
    pub strength_threshold: f64,
}

impl Default for AmgOptions {
    fn default() -> Self {
        AmgOptions {
            strength_threshold: 0.02,
        }
    }
}

/// What the method needs to know besides the matrix, for the owned nodes of this rank.
#[derive(Clone, Debug)]
pub struct NodeData<'a, const B: usize, const C: usize> {
    /// C vectors that the matrix almost maps to zero, B values a node. A zero row says that the degree of freedom is
    /// prescribed: row and column of the matrix are zero but for the diagonal.
    pub near_nullspace: Vec<[[f64; C]; B]>,
    /// For models of second order: the two corner nodes between which each node lies, by local index; twice the node
    /// itself for a corner.
    pub parents: Option<&'a [[u32; 2]]>,
}

/// A multigrid hierarchy for a matrix of B x B blocks with a near-nullspace of C vectors.
pub struct Amg<const B: usize, const C: usize> {
    corners: Option<Level<B, B, CornerInterpolation<B>>>,
    first: Level<B, C, Prolongator<B, C>>,
    tail: Tail<C>,
    /// Sweeps of the smoother on each side of a coarse correction.
    sweeps: usize,
    /// Right-hand side and solution of a cycle.
    vectors: RefCell<[Vec<[f32; B]>; 2]>,
    report: Report,
}

impl<const B: usize, const C: usize> Amg<B, C> {
    /// Collective. Sets up the hierarchy of `matrix`.
    ///
    /// # Errors
    /// A matrix that is seen not to be positive definite or not finite, or too little memory.
    pub fn new(
        comm: &Comm,
        matrix: &DistMatrix<B>,
        nodes: NodeData<B, C>,
        options: &AmgOptions,
    ) -> Result<Self> {
        let mut setup = Setup {
            options,
            n_coarsenings: 0,
            report: Report::default(),
        };
        setup.report.add_level(comm, matrix);
        let (corners, coarsened) = match nodes.parents {
            None => (None, setup.coarsen(comm, matrix, &nodes.near_nullspace)?),
            Some(parents) => {
                let CornerLevel {
                    interpolation,
                    matrix: corner_matrix,
                    near_nullspace,
                } = setup.report.time(Step::Corners, || {
                    coarsen_to_corners(comm, matrix, parents, &nodes.near_nullspace)
                });
                let smoother = setup
                    .report
                    .time(Step::Smoother, || GaussSeidel::new(matrix));
                setup.report.add_level(comm, &corner_matrix);
                let level = Level::new(smoother, interpolation, matrix.map().n_owned());
                (
                    Some(level),
                    setup.coarsen(comm, &corner_matrix, &near_nullspace)?,
                )
            }
        };
        let Coarsened {
            level: first,
            matrix: coarse,
            near_nullspace,
        } = coarsened;
        let tail = setup.tail(comm, coarse, near_nullspace)?;
        let mut report = setup.report;
        let above_tail = corners.iter().map(Level::memory).chain([first.memory()]);
        let mut of_levels: Vec<usize> = above_tail.chain(tail.memory()).collect();
        let zeros = vec![[0.0; B]; matrix.map().n_owned()];
        of_levels[0] += 2 * size_of_val(zeros.as_slice());
        report.enter_memory(comm, &of_levels);
        let vectors = RefCell::new([zeros.clone(), zeros]);
        Ok(Amg {
            corners,
            first,
            tail,
            sweeps: 1,
            vectors,
            report,
        })
    }

    /// Levels, memory, set-up times.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Collective. x = M⁻¹ b by one V-cycle.
    fn cycle(&self, comm: &Comm, b: &[[f32; B]], x: &mut [[f32; B]]) {
        let n = self.sweeps;
        let aggregated = |b: &[[f32; B]], x: &mut [[f32; B]]| {
            self.first
                .cycle(comm, n, b, x, |b, x| self.tail.cycle(comm, n, 0, b, x));
        };
        match &self.corners {
            Some(corners) => corners.cycle(comm, n, b, x, aggregated),
            None => aggregated(b, x),
        }
    }
}

impl<const B: usize, const C: usize> LinearOperator for Amg<B, C> {
    fn n_owned(&self) -> usize {
        B * self.vectors.borrow()[0].len()
    }

    fn apply(&self, comm: &Comm, x: &[f64], y: &mut [f64]) {
        self.apply_dot(comm, x, y);
    }

    fn apply_dot(&self, comm: &Comm, x: &[f64], y: &mut [f64]) -> f64 {
        let norm = vector::norm(comm, x);
        let [xy, _] = self.precondition(comm, x, norm, x, y);
        xy
    }
}

impl<const B: usize, const C: usize> Preconditioner for Amg<B, C> {
    fn precondition(
        &self,
        comm: &Comm,
        r: &[f64],
        norm: f64,
        q: &[f64],
        z: &mut [f64],
    ) -> [f64; 2] {
        // A cycle is linear: the vector is brought to order 1, so that single precision can hold it.
        let size = vector::power_of_two(norm);
        let [b, solution] = &mut *self.vectors.borrow_mut();
        vector::narrow(1.0 / size, r, b.as_flattened_mut());
        self.cycle(comm, b, solution);
        vector::widen_dots(size, solution.as_flattened(), z, [r, q])
    }

    fn strengthen(&mut self) -> Option<String> {
        (self.sweeps < MAX_SWEEPS).then(|| {
            self.sweeps += 1;
            format!("{} smoothing sweeps a level", self.sweeps)
        })
    }
}
