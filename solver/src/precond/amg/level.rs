//! `Level` and `Tail`: the parts of the hierarchy, and the V-cycle through them.
//!
//! It is a V-cycle on purpose. A second round on a level would act on a residual in single precision, whose rounding
//! error the coarsest solution multiplies by the condition number: seen to spoil beams with a jump of stiffness of 1e6.
//!
//! Invariant: a cycle is a symmetric operator: what a level does before the coarser one, it does in reverse behind it.

use super::coarse::CoarseSolver;
use super::replicate::replicate_vector;
use super::smoother::GaussSeidel;
use super::transfer::{Prolongator, Transfer};
use fem_mesh::Comm;
use std::cell::RefCell;
use std::ops::Range;

/// One level with B values a node and the way to the next, with C values a node.
pub(super) struct Level<const B: usize, const C: usize, T> {
    pub(super) smoother: GaussSeidel<B>,
    pub(super) transfer: T,
    scratch: RefCell<Scratch<B, C>>,
}

/// Vectors that a level needs during a cycle.
struct Scratch<const B: usize, const C: usize> {
    residual: Vec<[f32; B]>,
    correction: Vec<[f32; B]>,
    coarse_residual: Vec<[f32; C]>,
    coarse_correction: Vec<[f32; C]>,
}

impl<const B: usize, const C: usize, T: Transfer<B, C>> Level<B, C, T> {
    /// A level of `n_rows` owned nodes.
    pub(super) fn new(smoother: GaussSeidel<B>, transfer: T, n_rows: usize) -> Self {
        let n_coarse = transfer.n_coarse();
        let scratch = RefCell::new(Scratch {
            residual: vec![[0.0; B]; n_rows],
            correction: vec![[0.0; B]; n_rows],
            coarse_residual: vec![[0.0; C]; n_coarse],
            coarse_correction: vec![[0.0; C]; n_coarse],
        });
        Level {
            smoother,
            transfer,
            scratch,
        }
    }

    /// Collective. x = M⁻¹ b by one cycle with some sweeps before and after the coarse correction, for which `coarser`
    /// solves.
    pub(super) fn cycle(
        &self,
        comm: &Comm,
        n_sweeps: usize,
        b: &[[f32; B]],
        x: &mut [[f32; B]],
        coarser: impl FnOnce(&[[f32; C]], &mut [[f32; C]]),
    ) {
        let scratch = &mut *self.scratch.borrow_mut();
        self.smoother.pre(comm, b, x, &mut scratch.residual);
        for _ in 1..n_sweeps {
            self.smoother.pre_again(comm, x, &mut scratch.residual);
        }
        self.transfer
            .restrict(comm, &scratch.residual, &mut scratch.coarse_residual);
        coarser(&scratch.coarse_residual, &mut scratch.coarse_correction);
        self.transfer
            .prolong(comm, &scratch.coarse_correction, &mut scratch.correction);
        for _ in 1..n_sweeps {
            self.smoother
                .before_post(comm, &mut scratch.correction, &scratch.residual);
        }
        self.smoother
            .post(comm, &scratch.correction, &mut scratch.residual, x);
    }

    /// Memory, bytes.
    pub(super) fn memory(&self) -> usize {
        let scratch = self.scratch.borrow();
        self.smoother.memory()
            + self.transfer.memory()
            + 2 * size_of_val(scratch.residual.as_slice())
            + 2 * size_of_val(scratch.coarse_residual.as_slice())
    }
}

/// The levels below the first aggregated one.
pub(super) struct Tail<const C: usize> {
    pub(super) levels: Vec<Level<C, C, Prolongator<C, C>>>,
    pub(super) end: End<C>,
}

/// What follows the last distributed level.
pub(super) enum End<const C: usize> {
    /// The coarsest level.
    Solved(Box<CoarseSolver<C>>),
    /// Too few rows a rank: every rank goes on with all of them, alone. `rows` are its own.
    Replicated {
        rows: Range<usize>,
        tail: Box<Tail<C>>,
    },
}

impl<const C: usize> Tail<C> {
    /// Collective. x = M⁻¹ b by a cycle from level `level` on.
    pub(super) fn cycle(
        &self,
        comm: &Comm,
        n_sweeps: usize,
        level: usize,
        b: &[[f32; C]],
        x: &mut [[f32; C]],
    ) {
        if let Some(this) = self.levels.get(level) {
            let coarser =
                |b: &[[f32; C]], x: &mut [[f32; C]]| self.cycle(comm, n_sweeps, level + 1, b, x);
            this.cycle(comm, n_sweeps, b, x, coarser);
            return;
        }
        match &self.end {
            End::Solved(solver) => solver.solve(comm, b, x),
            End::Replicated { rows, tail } => {
                let whole = replicate_vector(comm, b);
                let mut solution = vec![[0.0; C]; whole.len()];
                tail.cycle(&Comm::alone(), n_sweeps, 0, &whole, &mut solution);
                x.copy_from_slice(&solution[rows.clone()]);
            }
        }
    }

    /// Memory of each level, bytes.
    pub(super) fn memory(&self) -> Vec<usize> {
        let end = match &self.end {
            End::Solved(solver) => vec![solver.memory()],
            End::Replicated { tail, .. } => tail.memory(),
        };
        let levels = self.levels.iter().map(Level::memory);
        levels.chain(end).collect()
    }
}
