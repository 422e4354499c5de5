//! How a smoother is made from a matrix: slabs, colors, single precision.
//!
//! Invariant: the division depends on the matrix only.

use super::border::Border;
use super::{GaussSeidel, Slab};
use crate::linalg::DistMatrix;
use crate::linalg::vectorize::as_blocks;
use crate::precond::amg::transfer::slab_ranges;
use crate::precond::jacobi::invert_spd;
use fem_mesh::{Comm, Error, Result};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use std::ops::Range;

/// Fewest rows of a slab: smaller ones would not pay for waking a thread.
const MIN_SLAB_ROWS: usize = 2048;
/// Most slabs of a rank.
const MAX_SLABS: usize = 16;
/// Most colors: with more there would be little to do in parallel.
const MAX_COLORS: usize = 3;

impl<const B: usize> GaussSeidel<B> {
    /// Collective. The smoother of `a` divided by `scale`.
    ///
    /// # Errors
    /// A diagonal block that is not positive definite.
    pub(in crate::precond::amg) fn new(comm: &Comm, a: &DistMatrix<B>, scale: f64) -> Result<Self> {
        let ranges = slab_ranges(a.map().n_owned(), MIN_SLAB_ROWS, MAX_SLABS);
        let colors = colors(a, &ranges);
        let builder = Builder {
            a,
            scale,
            ranges: &ranges,
            colors: &colors,
        };
        let slabs: Result<Vec<Slab<B>>> = (ranges.par_iter().with_max_len(1).enumerate())
            .map(|(slab, _)| builder.slab(slab))
            .collect();
        Ok(GaussSeidel {
            slabs: comm.all_ok(slabs)?,
            n_colors: colors.iter().max().map_or(0, |c| c + 1),
            halo: a.halo().clone(),
            n_ghosts: a.map().n_ghosts(),
        })
    }
}

/// Colors slabs in order, each by the first color that none of its neighbors has, or, if there is none, by the one
/// with the fewest connections.
fn colors<const B: usize>(a: &DistMatrix<B>, ranges: &[Range<usize>]) -> Vec<usize> {
    let n = ranges.len();
    let connections: Vec<Vec<usize>> = (ranges.par_iter())
        .map(|rows| {
            let mut counts = vec![0; n];
            for row in rows.clone() {
                for k in a.owned().row(row) {
                    let column = a.owned().columns[k] as usize;
                    if !rows.contains(&column) {
                        counts[slab_of(ranges, column)] += 1;
                    }
                }
            }
            counts
        })
        .collect();
    let mut colors: Vec<usize> = Vec::with_capacity(n);
    for slab in 0..n {
        let mut weights = [0; MAX_COLORS];
        for (other, &color) in colors.iter().enumerate() {
            weights[color] += connections[slab][other];
        }
        colors.push((0..MAX_COLORS).min_by_key(|&c| weights[c]).unwrap_or(0));
    }
    colors
}

fn slab_of(ranges: &[Range<usize>], row: usize) -> usize {
    ranges.partition_point(|rows| rows.end <= row)
}

struct Builder<'a, const B: usize> {
    a: &'a DistMatrix<B>,
    scale: f64,
    ranges: &'a [Range<usize>],
    colors: &'a [usize],
}

impl<const B: usize> Builder<'_, B> {
    fn slab(&self, number: usize) -> Result<Slab<B>> {
        let rows = self.ranges[number].clone();
        let owned = self.a.owned();
        let n_inside = owned.row_start[rows.end] - owned.row_start[rows.start];
        let mut slab = Slab {
            color: self.colors[number],
            row_start: Vec::with_capacity(rows.len() + 1),
            columns: Vec::with_capacity(n_inside / 2),
            blocks: Vec::with_capacity(n_inside / 2),
            inverse: Vec::with_capacity(rows.len()),
            added: Vec::new(),
            earlier: Border::new(),
            later: Border::new(),
            same: Border::new(),
            ghosts: Border::new(),
            rows: rows.clone(),
        };
        slab.row_start.push(0);
        for row in rows {
            self.push_row(&mut slab, row)?;
        }
        if slab.added.iter().flatten().all(|v| *v == 0.0) {
            slab.added = Vec::new();
        }
        Ok(slab)
    }

    fn push_row(&self, slab: &mut Slab<B>, row: usize) -> Result<()> {
        let (owned, ghost) = (self.a.owned(), self.a.ghost());
        let local = (row - slab.rows.start) as u32;
        let mut added = [0.0; B];
        let mut diagonal = [[0.0; B]; B];
        let blocks = as_blocks::<f64, B>(&owned.values);
        for k in owned.row(row) {
            let column = owned.columns[k] as usize;
            if column == row {
                diagonal = blocks[k];
            } else if column < row && column >= slab.rows.start {
                slab.columns.push((column - slab.rows.start) as u32);
                slab.blocks.push(self.single(&blocks[k]));
            } else if !slab.rows.contains(&column) {
                let color = self.colors[slab_of(self.ranges, column)];
                let border = match color.cmp(&slab.color) {
                    std::cmp::Ordering::Less => &mut slab.earlier,
                    std::cmp::Ordering::Greater => &mut slab.later,
                    std::cmp::Ordering::Equal => {
                        add_half_sums(&mut added, &blocks[k]);
                        &mut slab.same
                    }
                };
                border.push(local, column as u32, self.single(&blocks[k]));
            }
        }
        let blocks = as_blocks::<f64, B>(&ghost.values);
        for k in ghost.row(row) {
            add_half_sums(&mut added, &blocks[k]);
            slab.ghosts
                .push(local, ghost.columns[k], self.single(&blocks[k]));
        }
        (0..B).for_each(|c| diagonal[c][c] += added[c]);
        let inverse = invert_spd(diagonal).ok_or_else(|| {
            let global = self.a.map().global(row);
            Error::model(format!(
                "the diagonal block of matrix row {global} is not positive definite"
            ))
            .advice("is the model restrained, and are all material data positive?")
        })?;
        slab.row_start.push(slab.columns.len() as u32);
        slab.inverse
            .push(inverse.map(|row| row.map(|v| (v * self.scale) as f32)));
        slab.added.push(added.map(|v| (v / self.scale) as f32));
        Ok(())
    }

    fn single(&self, block: &[[f64; B]; B]) -> [[f32; B]; B] {
        block.map(|row| row.map(|v| (v / self.scale) as f32))
    }
}

/// Adds half the absolute row sums of a block.
fn add_half_sums<const B: usize>(added: &mut [f64; B], block: &[[f64; B]; B]) {
    for (added, row) in added.iter_mut().zip(block) {
        *added += 0.5 * row.iter().map(|v| v.abs()).sum::<f64>();
    }
}
