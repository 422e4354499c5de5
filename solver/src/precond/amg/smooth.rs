//! The smoothed prolongator P = (I - omega D⁻¹ A) T, with D the block diagonal of A.
//!
//! Vanek, Mandel and Brezina, Computing 56 (1996) 179, with omega = 4/3 over the largest eigenvalue of D⁻¹ A.
//!
//! Invariant: knows numbers and ranks only; rows are computed apart, so the bits do not depend on the threads.

use super::aggregate::{Aggregates, NONE};
use super::transfer::Prolongator;
use crate::linalg::panels::{PanelWork, Panels, Term, with_panels};
use crate::linalg::vectorize::{as_blocks, prefetch};
use crate::linalg::{DistMatrix, Upper};
use fem_mesh::{Comm, IndexMap};
use rayon::iter::{
    IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator,
};
use std::ops::Range;

/// Rows that a thread takes at a time.
const ROWS_PER_TASK: usize = 2048;
/// Rows that blocks above the diagonal are fetched ahead of their use: they lie all over the rows to come.
const AHEAD: usize = 2;

/// Mark of a ghost node in no aggregate.
const NONE_GLOBAL: u64 = u64::MAX;

/// Collective. Smooths the tentative prolongator `t` (rows of the owned nodes) for the matrix `a`, given with the blocks
/// above its diagonal. `inverse` holds the inverses of the diagonal blocks.
pub(super) fn smoothed_prolongator<const B: usize, const C: usize>(
    comm: &Comm,
    (a, upper): (&DistMatrix<B>, &Upper),
    aggregates: &Aggregates,
    mut t: Vec<[[f32; C]; B]>,
    inverse: &[[[f64; B]; B]],
    omega: f64,
) -> Prolongator<B, C> {
    let (n_owned, n_ghosts) = (a.map().n_owned(), a.map().n_ghosts());
    let (coarse, aggregate) = coarse_columns(comm, a, aggregates);
    t.resize(n_owned + n_ghosts, [[0.0; C]; B]);
    let (t_owned, t_ghosts) = t.split_at_mut(n_owned);
    let (t_owned, t_ghosts) = (t_owned.as_flattened(), t_ghosts.as_flattened_mut());
    a.halo().forward(
        comm,
        t_owned.as_flattened(),
        t_ghosts.as_flattened_mut(),
        B * C,
    );
    let smooth = Smooth {
        a,
        upper,
        aggregate: &aggregate,
        n_columns: coarse.n_local(),
        t: &t,
        inverse,
        omega,
    };
    let tasks: Vec<Range<usize>> = (0..n_owned)
        .step_by(ROWS_PER_TASK)
        .map(|first| first..n_owned.min(first + ROWS_PER_TASK))
        .collect();
    let patterns: Vec<(Vec<u32>, Vec<u32>)> = (tasks.par_iter().with_max_len(1))
        .map(|rows| smooth.pattern(rows.clone()))
        .collect();
    let mut row_start = Vec::with_capacity(n_owned + 1);
    let mut end = 0;
    row_start.push(end);
    for length in patterns.iter().flat_map(|(lengths, _)| lengths) {
        end += length;
        row_start.push(end);
    }
    let columns: Vec<u32> = patterns
        .into_iter()
        .flat_map(|(_, columns)| columns)
        .collect();
    let mut blocks = vec![[[0.0; C]; B]; columns.len()];
    let mut rest = &mut blocks[..];
    let mut pieces = Vec::with_capacity(tasks.len());
    for rows in tasks {
        let length = (row_start[rows.end] - row_start[rows.start]) as usize;
        let (blocks, behind) = rest.split_at_mut(length);
        pieces.push(SmoothRows {
            smooth: &smooth,
            row_start: &row_start[rows.start..=rows.end],
            columns: &columns[row_start[rows.start] as usize..][..length],
            rows,
            blocks,
        });
        rest = behind;
    }
    pieces.into_par_iter().with_max_len(1).for_each(with_panels);
    Prolongator::new(comm, row_start, columns, blocks, coarse)
}

/// Collective. The distribution of the coarse nodes, and the coarse column of each local node of `a`; the number of columns
/// for nodes in no aggregate.
fn coarse_columns<const B: usize>(
    comm: &Comm,
    a: &DistMatrix<B>,
    aggregates: &Aggregates,
) -> (IndexMap, Vec<u32>) {
    let offset = comm.sum_below(aggregates.n as u64);
    let global = |g: &u32| {
        if *g == NONE {
            NONE_GLOBAL
        } else {
            offset + u64::from(*g)
        }
    };
    let owned: Vec<u64> = aggregates.of_node.iter().map(global).collect();
    let mut ghosts = vec![NONE_GLOBAL; a.map().n_ghosts()];
    a.halo().forward(comm, &owned, &mut ghosts, 1);
    let mut foreign = ghosts.clone();
    foreign.retain(|&g| g != NONE_GLOBAL);
    foreign.sort_unstable();
    foreign.dedup();
    let coarse = IndexMap::new(comm, aggregates.n, foreign);
    let none = coarse.n_local() as u32;
    let mut columns: Vec<u32> = (aggregates.of_node.iter())
        .map(|&g| if g == NONE { none } else { g })
        .collect();
    columns.extend(
        ghosts
            .into_iter()
            .map(|g| coarse.local(g).map_or(none, |local| local as u32)),
    );
    (coarse, columns)
}

/// What the rows of P follow from.
struct Smooth<'a, const B: usize, const C: usize> {
    a: &'a DistMatrix<B>,
    upper: &'a Upper,
    /// Coarse column of each local node, `n_columns` for none.
    aggregate: &'a [u32],
    n_columns: usize,
    /// Row of T of each local node; zero in no aggregate.
    t: &'a [[[f32; C]; B]],
    inverse: &'a [[[f64; B]; B]],
    omega: f64,
}

impl<const B: usize, const C: usize> Smooth<'_, B, C> {
    /// Lengths of some rows of P, and their columns, ascending in each.
    fn pattern(&self, rows: Range<usize>) -> (Vec<u32>, Vec<u32>) {
        let (lower, ghost) = (self.a.lower(), self.a.ghost());
        let n_owned = lower.n_rows;
        let mut lengths = Vec::with_capacity(rows.len());
        let mut columns: Vec<u32> = Vec::with_capacity(5 * rows.len());
        // Row, counted from 1, that last had each column; a row has no column of nodes in no aggregate.
        let mut seen = vec![0u32; self.n_columns + 1];
        for row in rows {
            let first = columns.len();
            let stamp = row as u32 + 1;
            seen[self.n_columns] = stamp;
            let mut meet = |node: usize| {
                let column = self.aggregate[node];
                let seen = &mut seen[column as usize];
                if *seen != stamp {
                    *seen = stamp;
                    columns.push(column);
                }
            };
            if self.aggregate[row] as usize != self.n_columns {
                let below = lower.columns[lower.row(row)].iter();
                below.for_each(|&node| meet(node as usize));
                let above = self.upper.row(row).iter();
                above.for_each(|block| meet(block.column as usize));
                let across = ghost.columns[ghost.row(row)].iter();
                across.for_each(|&node| meet(n_owned + node as usize));
            }
            columns[first..].sort_unstable();
            lengths.push((columns.len() - first) as u32);
        }
        (lengths, columns)
    }
}

/// Some rows of P, their columns known.
struct SmoothRows<'a, const B: usize, const C: usize> {
    smooth: &'a Smooth<'a, B, C>,
    rows: Range<usize>,
    /// First block of each row and behind the last, among those of P.
    row_start: &'a [u32],
    /// Columns of these rows.
    columns: &'a [u32],
    blocks: &'a mut [[[f32; C]; B]],
}

impl<const B: usize, const C: usize> PanelWork<C> for SmoothRows<'_, B, C> {
    type Output = ();

    fn run<P: Panels<C>>(self, panels: P) {
        let Smooth { a, upper, t, .. } = *self.smooth;
        let lower_blocks = as_blocks::<f64, B>(&a.lower().values);
        let ghost_blocks = as_blocks::<f64, B>(&a.ghost().values);
        // Place of each column in the row at hand; rows of T of nodes in no aggregate are zero and may go anywhere.
        let mut place_of = vec![0u32; self.smooth.n_columns + 1];
        let mut sums: Vec<[P::Row; B]> = Vec::new();
        let mut lists = [Vec::new(), Vec::new(), Vec::new()];
        for (at, row) in self.rows.clone().enumerate() {
            let [first, end] =
                [at, at + 1].map(|r| (self.row_start[r] - self.row_start[0]) as usize);
            let columns = &self.columns[first..end];
            if columns.is_empty() {
                continue;
            }
            for block in upper.row((row + AHEAD).min(a.lower().n_rows - 1)) {
                prefetch(&lower_blocks[block.place as usize]);
            }
            for (place, &column) in (0..).zip(columns) {
                place_of[column as usize] = place;
            }
            self.smooth.list_products(row, &place_of, &mut lists);
            sums.clear();
            sums.resize(columns.len(), [P::ZERO; B]);
            panels.add_products(&lists[0], lower_blocks, t, &mut sums);
            panels.add_transposed_products(&lists[1], lower_blocks, t, &mut sums);
            panels.add_products(&lists[2], ghost_blocks, t, &mut sums);
            let own = place_of[self.smooth.aggregate[row] as usize] as usize;
            let blocks = &mut self.blocks[first..end];
            blocks[own] = t[row];
            let step = self.smooth.inverse[row].map(|r| r.map(|value| -self.smooth.omega * value));
            panels.add_scaled_sums(&step, &sums, blocks);
        }
    }
}

impl<const B: usize, const C: usize> Smooth<'_, B, C> {
    /// Lists the products of row `row` of A and T: of blocks on and below the diagonal, above it, and in ghost columns.
    fn list_products(&self, row: usize, place_of: &[u32], lists: &mut [Vec<Term>; 3]) {
        let (lower, ghost) = (self.a.lower(), self.a.ghost());
        let place = |node: u32| place_of[self.aggregate[node as usize] as usize];
        let [below, above, across] = lists;
        below.clear();
        below.extend(lower.row(row).map(|k| Term {
            left: k as u32,
            right: lower.columns[k],
            sum: place(lower.columns[k]),
        }));
        above.clear();
        above.extend(self.upper.row(row).iter().map(|block| Term {
            left: block.place,
            right: block.column,
            sum: place(block.column),
        }));
        across.clear();
        across.extend(ghost.row(row).map(|k| {
            let node = lower.n_rows as u32 + ghost.columns[k];
            Term {
                left: k as u32,
                right: node,
                sum: place(node),
            }
        }));
    }
}
