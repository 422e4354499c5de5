//! `Form`: in how many reductions over the ranks the scalar products of an iteration are summed.
//!
//! The plain form waits twice an iteration for a sum over all ranks. The merged one waits once, and moves two vectors
//! more. Which is faster depends on the network and on how much each rank holds, so it is measured.
//!
//! Invariant: every rank chooses the same, since the choice rests on reduced numbers.

use crate::linalg::vector;
use fem_mesh::Comm;
use std::time::Instant;

/// Vectors that the merged form moves more than the plain one, and those that [`vector::advance`] moves.
const MORE_VECTORS: f64 = 2.0;
const VECTORS_OF_A_PASS: f64 = 5.0;
/// Reductions timed together, and how often: the best counts.
const REDUCTIONS: u32 = 10;
const ROUNDS: usize = 3;

/// Form of an iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Two reductions (Hestenes and Stiefel).
    #[default]
    Plain,
    /// One reduction (Chronopoulos and Gear).
    Merged,
}

/// What the choice rests on, seconds, of the slowest rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// One reduction of a few numbers.
    pub reduction: f64,
    /// What the merged form takes more for its vectors, in one iteration.
    pub vectors: f64,
}

impl Timing {
    /// Collective. Measures on the vectors of this rank. `z` and `p` must be zero; they and `x` stay as they are.
    pub(super) fn measure(comm: &Comm, x: &mut [f64], z: &[f64], p: &mut [f64]) -> Timing {
        let best = |work: &mut dyn FnMut()| {
            let seconds = (0..ROUNDS).map(|_| {
                let begin = Instant::now();
                work();
                begin.elapsed().as_secs_f64()
            });
            seconds.fold(f64::INFINITY, f64::min)
        };
        let pass = best(&mut || vector::advance(0.0, x, 0.0, z, p));
        let reductions = best(&mut || {
            (0..REDUCTIONS).for_each(|_| comm.sum_into(&mut [0.0; 4]));
        });
        Timing {
            reduction: comm.max(reductions) / f64::from(REDUCTIONS),
            vectors: comm.max(pass) * MORE_VECTORS / VECTORS_OF_A_PASS,
        }
    }

    /// The faster form.
    pub fn choose(&self) -> Form {
        if self.reduction > self.vectors {
            Form::Merged
        } else {
            Form::Plain
        }
    }

    /// The choice and its reason.
    pub fn describe(&self) -> String {
        let (form, relation) = match self.choose() {
            Form::Plain => ("two reductions an iteration", "no more"),
            Form::Merged => ("one reduction an iteration", "more"),
        };
        format!(
            "{form}: a sum over the ranks takes {:.1} us, {relation} than the vectors of the form with one reduction \
             ({:.1} us)",
            1e6 * self.reduction,
            1e6 * self.vectors
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, Timing};
    use fem_mesh::comm::run_threads;
    use std::sync::Mutex;

    #[test]
    fn the_slower_of_the_two_is_avoided() {
        let timing = |reduction, vectors| Timing { reduction, vectors };
        let network = timing(30e-6, 4e-6);
        assert_eq!(network.choose(), Form::Merged);
        assert!(
            network.describe().starts_with("one reduction")
                && network.describe().contains("30.0 us"),
            "{}",
            network.describe()
        );
        let memory = timing(2e-6, 40e-6);
        assert_eq!(memory.choose(), Form::Plain);
        assert!(memory.describe().starts_with("two reductions"));
        assert_eq!(timing(0.0, 0.0).choose(), Form::Plain);
    }

    #[test]
    fn all_ranks_measure_the_same_and_vectors_are_left_alone() {
        let found = Mutex::new(Vec::new());
        run_threads(3, |comm| {
            // The rank in the middle has nothing.
            let n = 1000 * (comm.rank() % 2);
            let (mut x, z, mut p) = (vec![1.5; n], vec![0.0; n], vec![0.0; n]);
            let timing = Timing::measure(comm, &mut x, &z, &mut p);
            assert!(timing.reduction > 0.0 && timing.vectors > 0.0);
            assert!(x.iter().all(|&x| x == 1.5) && p.iter().all(|&p| p == 0.0));
            found.lock().expect("no rank panicked").push(timing);
        });
        let found = found.into_inner().expect("no rank panicked");
        assert!(found.iter().all(|t| *t == found[0]), "{found:?}");
    }
}
