//! `Slabs`: contiguous runs of owned rows, one a thread, so that no two threads write one row.
//!
//! A thread goes over all cells that touch its rows, in ascending order, and writes only to those rows. A cell on the
//! border of two slabs is computed by both. Each row so receives the same additions in the same order for any number
//! of slabs: results are equal to the last bit.
//!
//! Invariant: divides index ranges; knows nothing of what is computed.

use fem_mesh::Cells;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::ops::Range;

/// Division of rows `0..n_rows` into contiguous slabs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slabs {
    starts: Vec<usize>,
}

impl Slabs {
    /// `n_slabs` slabs of about equal work; row r costs `work[r + 1] - work[r]` (`work` has one entry more than there
    /// are rows and does not descend). Slabs may be empty.
    pub fn balanced(work: &[u32], n_slabs: usize) -> Self {
        let n_rows = work.len() - 1;
        let (first, total) = (u64::from(work[0]), u64::from(work[n_rows]));
        let start = |slab: usize| {
            let target = first + (total - first) * slab as u64 / n_slabs as u64;
            work.partition_point(|&w| u64::from(w) < target).min(n_rows)
        };
        let mut starts: Vec<usize> = (0..n_slabs).map(start).collect();
        starts[0] = 0;
        starts.push(n_rows);
        Slabs { starts }
    }

    /// `n_slabs` slabs of about equally many of `n_rows` rows.
    pub fn even(n_rows: usize, n_slabs: usize) -> Self {
        Slabs {
            starts: (0..=n_slabs).map(|slab| n_rows * slab / n_slabs).collect(),
        }
    }

    /// Number of slabs.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is no slab.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows of each slab, ascending.
    pub fn rows(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.starts.windows(2).map(|w| w[0]..w[1])
    }

    /// The part of `values` of each slab, when row r begins at `row_start(r)`.
    pub fn split<'a, T>(
        &self,
        mut values: &'a mut [T],
        row_start: impl Fn(usize) -> usize,
    ) -> Vec<&'a mut [T]> {
        let mut parts = Vec::with_capacity(self.len());
        for rows in self.rows() {
            let (part, rest) = values.split_at_mut(row_start(rows.end) - row_start(rows.start));
            parts.push(part);
            values = rest;
        }
        parts
    }

    /// Runs `job(rows, part)` for each slab in parallel, with the slab's part of `values`, one entry a row; the
    /// results in order of slabs.
    pub fn for_each<T: Send, R: Send>(
        &self,
        values: &mut [T],
        job: impl Fn(Range<usize>, &mut [T]) -> R + Sync,
    ) -> Vec<R> {
        let parts = self.split(values, |row| row);
        let jobs: Vec<_> = self.rows().zip(parts).collect();
        jobs.into_par_iter()
            .map(|(rows, part)| job(rows, part))
            .collect()
    }
}

/// The cells with a node in `rows`, ascending.
pub fn cells_touching(cells: &Cells, rows: Range<usize>) -> impl Iterator<Item = usize> + '_ {
    (0..cells.len()).filter(move |&cell| {
        cells
            .nodes_of(cell)
            .iter()
            .any(|&node| rows.contains(&(node as usize)))
    })
}

#[cfg(test)]
mod tests {
    use super::Slabs;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn slabs_cover_the_rows_and_balance_the_work(
            costs in prop::collection::vec(0u32..9, 0..60), n_slabs in 1usize..7,
        ) {
            let mut work = vec![5];
            for (row, cost) in costs.iter().enumerate() {
                work.push(work[row] + cost);
            }
            let slabs = Slabs::balanced(&work, n_slabs);
            prop_assert_eq!(slabs.len(), n_slabs);
            let covered: Vec<usize> = slabs.rows().flatten().collect();
            prop_assert_eq!(covered, (0..costs.len()).collect::<Vec<_>>());
            let mean = f64::from(work[costs.len()] - 5) / n_slabs as f64;
            for rows in slabs.rows() {
                let cost: u32 = costs[rows].iter().sum();
                prop_assert!(f64::from(cost) <= mean + 9.0, "{cost} of {mean}");
            }
        }

        #[test]
        fn every_row_is_written_by_its_slab(n_rows in 0usize..50, n_slabs in 1usize..7) {
            let work: Vec<u32> = (0..=n_rows as u32).collect();
            let mut owner = vec![usize::MAX; n_rows];
            let slabs = Slabs::balanced(&work, n_slabs);
            slabs.for_each(&mut owner, |rows, part| {
                assert_eq!(rows.len(), part.len());
                part.fill(rows.start);
            });
            for rows in slabs.rows() {
                prop_assert!(owner[rows.clone()].iter().all(|&o| o == rows.start));
            }
        }
    }
}
