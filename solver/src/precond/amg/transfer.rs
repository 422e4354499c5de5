//! `Prolongator`: interpolation between a level and the next coarser one, in single precision.
//!
//! Restriction is its transpose. Both work on slabs of fine rows that depend on the number of rows only; what slabs add
//! to one coarse row is summed in order of slabs, so the bits do not depend on the threads.
//!
//! Invariant: knows numbers and ranks only.

use crate::linalg::interpolation::{self, Rows};
use fem_mesh::{Comm, Halo, IndexMap};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;
use std::ops::Range;

/// Fewest fine rows of a slab.
const MIN_SLAB_ROWS: usize = 2048;
/// Most slabs of a rank.
const MAX_SLABS: usize = 12;

/// Moves vectors between a level (B values a node) and the coarser one (C values a node).
pub(super) trait Transfer<const B: usize, const C: usize> {
    /// Number of coarse nodes that this rank owns.
    fn n_coarse(&self) -> usize;
    /// Collective. coarse = Pᵀ fine.
    fn restrict(&self, comm: &Comm, fine: &[[f32; B]], coarse: &mut [[f32; C]]);
    /// Collective. fine = P coarse.
    fn prolong(&self, comm: &Comm, coarse: &[[f32; C]], fine: &mut [[f32; B]]);
    /// Memory, bytes.
    fn memory(&self) -> usize;
}

/// P by its owned rows: row i has the blocks `row_start[i]..row_start[i + 1]`.
pub(super) struct Prolongator<const B: usize, const C: usize> {
    /// First block of each row, one entry more than rows.
    pub(super) row_start: Vec<u32>,
    /// Local coarse column of each block, ascending within a row.
    pub(super) columns: Vec<u32>,
    /// Blocks.
    pub(super) blocks: Vec<[[f32; C]; B]>,
    /// Distribution of the coarse nodes; its ghosts are the columns owned elsewhere.
    pub(super) coarse: IndexMap,
    halo: Halo,
    slabs: Vec<Slab>,
}

struct Slab {
    rows: Range<usize>,
    /// Smallest range that holds the columns of the slab.
    columns: Range<usize>,
}

/// Division of `n_rows` rows into slabs of about equal size, which does not depend on the number of threads.
pub(super) fn slab_ranges(n_rows: usize, min_rows: usize, max_slabs: usize) -> Vec<Range<usize>> {
    let n_slabs = (n_rows / min_rows).clamp(1, max_slabs);
    (0..n_slabs)
        .map(|s| n_rows * s / n_slabs..n_rows * (s + 1) / n_slabs)
        .collect()
}

impl<const B: usize, const C: usize> Prolongator<B, C> {
    /// Collective. From rows with local columns of `coarse`.
    pub(super) fn new(
        comm: &Comm,
        row_start: Vec<u32>,
        columns: Vec<u32>,
        blocks: Vec<[[f32; C]; B]>,
        coarse: IndexMap,
    ) -> Self {
        let ranges = slab_ranges(row_start.len() - 1, MIN_SLAB_ROWS, MAX_SLABS);
        let slabs = ranges.into_iter().map(|rows| {
            let used = &columns[row_start[rows.start] as usize..row_start[rows.end] as usize];
            let low = used.iter().min().map_or(0, |&c| c as usize);
            let high = used.iter().max().map_or(0, |&c| c as usize + 1);
            Slab {
                rows,
                columns: low..high,
            }
        });
        let slabs = slabs.collect();
        let halo = Halo::new(comm, &coarse);
        Prolongator {
            row_start,
            columns,
            blocks,
            coarse,
            halo,
            slabs,
        }
    }

    /// Some rows, as the kernels see them.
    fn rows(&self, rows: Range<usize>) -> Rows<'_> {
        Rows {
            rows,
            row_start: &self.row_start,
            columns: &self.columns,
            blocks: self.blocks.as_flattened().as_flattened(),
        }
    }
}

impl<const B: usize, const C: usize> Transfer<B, C> for Prolongator<B, C> {
    fn n_coarse(&self) -> usize {
        self.coarse.n_owned()
    }

    fn restrict(&self, comm: &Comm, fine: &[[f32; B]], coarse: &mut [[f32; C]]) {
        let sums: Vec<Vec<[f32; C]>> = (self.slabs.par_iter().with_max_len(1))
            .map(|slab| {
                let (rows, columns) = (self.rows(slab.rows.clone()), slab.columns.clone());
                interpolation::multiply_transposed(rows, columns, &fine[slab.rows.clone()])
            })
            .collect();
        let n_owned = self.coarse.n_owned();
        let mut ghosts = vec![[0.0; C]; self.coarse.n_ghosts()];
        coarse.fill([0.0; C]);
        for (slab, sums) in self.slabs.iter().zip(&sums) {
            for (column, sum) in slab.columns.clone().zip(sums) {
                let target = match column.checked_sub(n_owned) {
                    None => &mut coarse[column],
                    Some(ghost) => &mut ghosts[ghost],
                };
                (0..C).for_each(|c| target[c] += sum[c]);
            }
        }
        self.halo
            .reverse_add(comm, ghosts.as_flattened(), coarse.as_flattened_mut(), C);
    }

    fn prolong(&self, comm: &Comm, coarse: &[[f32; C]], fine: &mut [[f32; B]]) {
        let mut values = coarse.to_vec();
        values.resize(self.coarse.n_local(), [0.0; C]);
        let (owned, ghosts) = values.split_at_mut(coarse.len());
        self.halo
            .forward(comm, owned.as_flattened(), ghosts.as_flattened_mut(), C);
        let values = &values;
        let rows = fine.par_chunks_mut(MIN_SLAB_ROWS).enumerate();
        rows.for_each(|(chunk, fine)| {
            let first = chunk * MIN_SLAB_ROWS;
            interpolation::multiply(self.rows(first..first + fine.len()), values, fine);
        });
    }

    fn memory(&self) -> usize {
        size_of_val(self.row_start.as_slice())
            + size_of_val(self.columns.as_slice())
            + size_of_val(self.blocks.as_slice())
    }
}
