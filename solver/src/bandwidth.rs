//! Memory bandwidth of the machine at hand, measured: the yardstick of sparse products and a line of `doctor`.
//!
//! Invariant: measures with the threads of the pool it is called from and knows nothing of the solver.

use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSlice, ParallelSliceMut};
use std::time::Instant;

/// Scalars of each of the three arrays by default: 128 MiB, well beyond the caches of a core's share.
pub const DEFAULT_LENGTH: usize = 1 << 24;

/// Bytes that the triad counts for each entry: two reads and one write. Caches that read a line before they write it
/// move a third more.
const BYTES_PER_ENTRY: usize = 24;

/// The triad a = b + s c of the STREAM benchmark (McCalpin 1995), to be run as often as wanted.
pub struct Triad {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
}

impl Triad {
    /// Three arrays of `length` scalars, their pages touched.
    pub fn new(length: usize) -> Self {
        let filled = |value: f64| vec![value; length];
        Triad {
            a: filled(1.0),
            b: filled(2.0),
            c: filled(0.5),
        }
    }

    /// Runs once on the threads of the current pool; bytes a second.
    pub fn run(&mut self) -> f64 {
        let per_thread = self.a.len().div_ceil(rayon::current_num_threads()).max(1);
        let start = Instant::now();
        let pieces = self
            .b
            .par_chunks(per_thread)
            .zip(self.c.par_chunks(per_thread));
        self.a
            .par_chunks_mut(per_thread)
            .zip(pieces)
            .for_each(|(a, (b, c))| {
                for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
                    *a = b + 3.0 * c;
                }
            });
        let seconds = start.elapsed().as_secs_f64();
        std::hint::black_box(&mut self.a);
        (BYTES_PER_ENTRY * self.a.len()) as f64 / seconds.max(1e-9)
    }
}

/// Median triad bandwidth of the threads of the current pool over `n_runs` runs, bytes a second.
pub fn triad_bandwidth(length: usize, n_runs: usize) -> f64 {
    let mut triad = Triad::new(length);
    median((0..n_runs).map(|_| triad.run()).collect())
}

/// Median of some measurements (of an even number, the upper of the two in the middle); 0 of none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::{Triad, median, triad_bandwidth};

    #[test]
    fn the_triad_computes_what_it_says() {
        let mut triad = Triad::new(1001);
        assert!(triad.run() > 0.0);
        assert!(triad.a.iter().all(|&a| a == 3.5));
    }

    #[test]
    fn bandwidth_is_that_of_a_computer() {
        let measured = triad_bandwidth(1 << 20, 3);
        assert!((1e7..1e14).contains(&measured), "{measured}");
    }

    #[test]
    fn median_of_few() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![]), 0.0);
    }
}
