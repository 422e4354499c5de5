//! `Report`: levels, memory and set-up times of a hierarchy, for the log and the summary.
//!
//! Invariant: measures, decides nothing.

use crate::linalg::DistMatrix;
use fem_mesh::Comm;
use std::time::Instant;

const MIB: f64 = 1024.0 * 1024.0;

/// Steps of the set-up, as they are told to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Coarsening to corners.
    Corners,
    /// Strength of connection and aggregation.
    Aggregate,
    /// Tentative prolongator.
    Tentative,
    /// Smoothers.
    Smoother,
    /// Largest eigenvalues.
    Spectrum,
    /// Smoothed prolongators.
    Prolongator,
    /// Galerkin products.
    Galerkin,
    /// Factorization of the coarsest matrix.
    Coarse,
}

impl Step {
    /// All steps in order.
    pub const ALL: [Step; 8] = [
        Step::Corners,
        Step::Aggregate,
        Step::Tentative,
        Step::Smoother,
        Step::Spectrum,
        Step::Prolongator,
        Step::Galerkin,
        Step::Coarse,
    ];

    /// Name for the log.
    pub fn name(self) -> &'static str {
        match self {
            Step::Corners => "corners",
            Step::Aggregate => "aggregates",
            Step::Tentative => "tentative",
            Step::Smoother => "smoothers",
            Step::Spectrum => "spectrum",
            Step::Prolongator => "prolongators",
            Step::Galerkin => "products",
            Step::Coarse => "coarsest",
        }
    }
}

/// Size of one level, over all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelSize {
    /// Scalar rows.
    pub rows: u64,
    /// Scalars in its blocks, those above the diagonal included.
    pub nonzeros: u64,
    /// Degrees of freedom of a node.
    pub block_size: usize,
    /// Memory of smoother, interpolation and vectors, or of the factor of the last level, bytes, summed over ranks.
    pub memory: u64,
}

/// What was built, and what it cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Levels, finest first.
    pub levels: Vec<LevelSize>,
    seconds: [f64; Step::ALL.len()],
}

impl Report {
    /// Collective. Enters a level.
    pub(super) fn add_level<const B: usize>(&mut self, comm: &Comm, a: &DistMatrix<B>) {
        let n_blocks = comm.sum_u64(a.n_blocks() as u64);
        self.levels.push(LevelSize {
            rows: a.map().n_global() * B as u64,
            nonzeros: n_blocks * (B * B) as u64,
            block_size: B,
            memory: 0,
        });
    }

    /// Collective. Enters the memory of this rank's part of each level, bytes, finest first.
    pub(super) fn enter_memory(&mut self, comm: &Comm, of_levels: &[usize]) {
        debug_assert_eq!(of_levels.len(), self.levels.len());
        for (level, &memory) in self.levels.iter_mut().zip(of_levels) {
            level.memory = comm.sum_u64(memory as u64);
        }
    }

    /// Memory of the hierarchy, bytes, summed over ranks.
    pub fn memory(&self) -> u64 {
        self.levels.iter().map(|level| level.memory).sum()
    }

    /// Does some work and adds its time to that of `step`.
    pub(super) fn time<T>(&mut self, step: Step, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = work();
        self.seconds[step as usize] += begin.elapsed().as_secs_f64();
        result
    }

    /// Seconds that this rank spent in a step.
    pub fn seconds(&self, step: Step) -> f64 {
        self.seconds[step as usize]
    }

    /// Scalars of all levels over those of the first.
    pub fn operator_complexity(&self) -> f64 {
        let first = self.levels.first().map_or(1, |level| level.nonzeros.max(1));
        self.levels.iter().map(|level| level.nonzeros).sum::<u64>() as f64 / first as f64
    }

    /// The levels and times as lines of text.
    pub fn lines(&self) -> Vec<String> {
        let mut lines =
            vec!["  level          dof      nonzeros  a row  block      MiB".to_owned()];
        for (number, level) in self.levels.iter().enumerate() {
            let per_row = level.nonzeros as f64 / level.rows.max(1) as f64;
            lines.push(format!(
                "  {number:5} {:12} {:13} {per_row:6.1} {:6} {:8.1}",
                level.rows,
                level.nonzeros,
                level.block_size,
                level.memory as f64 / MIB
            ));
        }
        lines.push(format!(
            "  operator complexity {:.3}, memory {:.1} MiB",
            self.operator_complexity(),
            self.memory() as f64 / MIB
        ));
        let times = Step::ALL.map(|step| format!("{} {:.3}", step.name(), self.seconds(step)));
        lines.push(format!("  set-up, s: {}", times.join(", ")));
        lines
    }
}
