//! The smoothed prolongator P = (I - omega D⁻¹ A) T, with D the block diagonal of A.
//!
//! Vanek, Mandel and Brezina, Computing 56 (1996) 179, with omega = 4/3 over the largest eigenvalue of D⁻¹ A.
//!
//! Invariant: knows numbers and ranks only; rows are computed apart, so the bits do not depend on the threads.

use super::aggregate::{Aggregates, NONE};
use super::transfer::Prolongator;
use crate::linalg::vectorize::{
    Kernel, add_product, add_transposed_product, as_blocks, dispatch, narrow,
};
use crate::linalg::{DistMatrix, Upper, pages};
use fem_mesh::{Comm, IndexMap};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use std::ops::Range;

/// Rows that a thread takes at a time.
const ROWS_PER_TASK: usize = 2048;

/// Mark of a ghost node in no aggregate.
const NONE_GLOBAL: u64 = u64::MAX;

/// Collective. Smooths the tentative prolongator `t` (rows of the owned nodes) for the matrix `a`, given with the blocks
/// above its diagonal. `inverse` holds the inverses of the diagonal blocks.
pub(super) fn smoothed_prolongator<const B: usize, const C: usize>(
    comm: &Comm,
    (a, upper): (&DistMatrix<B>, &Upper),
    aggregates: &Aggregates,
    mut t: Vec<[[f64; C]; B]>,
    inverse: &[[[f64; B]; B]],
    omega: f64,
) -> Prolongator<B, C> {
    let (n_owned, n_ghosts) = (a.map().n_owned(), a.map().n_ghosts());
    let offset = comm.sum_below(aggregates.n as u64);
    let global = |g: &u32| {
        if *g == NONE {
            NONE_GLOBAL
        } else {
            offset + u64::from(*g)
        }
    };
    let owned: Vec<u64> = aggregates.of_node.iter().map(global).collect();
    let mut ghosts = vec![NONE_GLOBAL; n_ghosts];
    a.halo().forward(comm, &owned, &mut ghosts, 1);
    let mut foreign: Vec<u64> = ghosts
        .iter()
        .copied()
        .filter(|&g| g != NONE_GLOBAL)
        .collect();
    foreign.sort_unstable();
    foreign.dedup();
    let coarse = IndexMap::new(comm, aggregates.n, foreign);

    let mut aggregate = aggregates.of_node.clone();
    let local = |g: u64| coarse.local(g).map_or(NONE, |local| local as u32);
    aggregate.extend(ghosts.into_iter().map(local));
    t.resize(n_owned + n_ghosts, [[0.0; C]; B]);
    let (t_owned, t_ghosts) = t.split_at_mut(n_owned);
    let (t_owned, t_ghosts) = (t_owned.as_flattened(), t_ghosts.as_flattened_mut());
    a.halo().forward(
        comm,
        t_owned.as_flattened(),
        t_ghosts.as_flattened_mut(),
        B * C,
    );

    let n_tasks = n_owned.div_ceil(ROWS_PER_TASK);
    let tasks: Vec<Rows<B, C>> = (0..n_tasks)
        .into_par_iter()
        .with_max_len(1)
        .map(|task| {
            let rows = task * ROWS_PER_TASK..n_owned.min((task + 1) * ROWS_PER_TASK);
            dispatch(Smooth {
                a,
                upper,
                rows,
                aggregate: &aggregate,
                t: &t,
                inverse,
                omega,
            })
        })
        .collect();
    drop(t);
    let (row_start, columns, blocks) = join(tasks, n_owned);
    Prolongator::new(comm, row_start, columns, blocks, coarse)
}

/// Some rows of P.
struct Rows<const B: usize, const C: usize> {
    lengths: Vec<u32>,
    columns: Vec<u32>,
    blocks: Vec<[[f32; C]; B]>,
}

type Arrays<const B: usize, const C: usize> = (Vec<u32>, Vec<u32>, Vec<[[f32; C]; B]>);

fn join<const B: usize, const C: usize>(tasks: Vec<Rows<B, C>>, n_rows: usize) -> Arrays<B, C> {
    let n_blocks = tasks.iter().map(|task| task.columns.len()).sum();
    let mut row_start = Vec::with_capacity(n_rows + 1);
    let mut columns = pages::with_capacity(n_blocks);
    let mut blocks = pages::with_capacity(n_blocks);
    row_start.push(0);
    let mut end = 0;
    for task in tasks {
        for length in task.lengths {
            end += length;
            row_start.push(end);
        }
        columns.extend_from_slice(&task.columns);
        blocks.extend_from_slice(&task.blocks);
    }
    (row_start, columns, blocks)
}

struct Smooth<'a, const B: usize, const C: usize> {
    a: &'a DistMatrix<B>,
    upper: &'a Upper,
    rows: Range<usize>,
    /// Coarse column of each local node.
    aggregate: &'a [u32],
    /// Row of T of each local node.
    t: &'a [[[f64; C]; B]],
    inverse: &'a [[[f64; B]; B]],
    omega: f64,
}

impl<const B: usize, const C: usize> Kernel for Smooth<'_, B, C> {
    type Output = Rows<B, C>;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> Rows<B, C> {
        let n = self.rows.len();
        let mut found = Rows {
            lengths: Vec::with_capacity(n),
            columns: Vec::with_capacity(4 * n),
            blocks: Vec::with_capacity(4 * n),
        };
        let n_owned = self.a.map().n_owned();
        let (lower, ghost) = (self.a.lower(), self.a.ghost());
        let lower_blocks = as_blocks::<f64, B>(&lower.values);
        let ghost_blocks = as_blocks::<f64, B>(&ghost.values);
        let mut row_sums: Vec<(u32, [[f64; C]; B])> = Vec::new();
        for row in self.rows.clone() {
            row_sums.clear();
            if self.aggregate[row] == NONE {
                found.lengths.push(0);
                continue;
            }
            for k in lower.row(row) {
                let node = lower.columns[k] as usize;
                if let Some(sum) = sum_in(&mut row_sums, self.aggregate[node]) {
                    add_product::<FMA, f64, B, B, C>(&lower_blocks[k], &self.t[node], sum);
                }
            }
            for block in self.upper.row(row) {
                let node = block.column as usize;
                if let Some(sum) = sum_in(&mut row_sums, self.aggregate[node]) {
                    let block = &lower_blocks[block.place as usize];
                    add_transposed_product::<FMA, f64, B, B, C>(block, &self.t[node], sum);
                }
            }
            for k in ghost.row(row) {
                let node = n_owned + ghost.columns[k] as usize;
                if let Some(sum) = sum_in(&mut row_sums, self.aggregate[node]) {
                    add_product::<FMA, f64, B, B, C>(&ghost_blocks[k], &self.t[node], sum);
                }
            }
            row_sums.sort_unstable_by_key(|(column, _)| *column);
            found.lengths.push(row_sums.len() as u32);
            let mut step = self.inverse[row];
            for value in step.as_flattened_mut() {
                *value *= -self.omega;
            }
            for (column, sum) in &row_sums {
                let own = self.aggregate[row] == *column;
                let mut block = if own { self.t[row] } else { [[0.0; C]; B] };
                add_product::<FMA, f64, B, B, C>(&step, sum, &mut block);
                found.columns.push(*column);
                found.blocks.push(narrow(&block));
            }
        }
        found
    }
}

/// The sum in `column`, zero at first; `None` in no column.
#[inline(always)]
fn sum_in<const B: usize, const C: usize>(
    sums: &mut Vec<(u32, [[f64; C]; B])>,
    column: u32,
) -> Option<&mut [[f64; C]; B]> {
    if column == NONE {
        return None;
    }
    let mut at = 0;
    while at < sums.len() && sums[at].0 != column {
        at += 1;
    }
    if at == sums.len() {
        sums.push((column, [[0.0; C]; B]));
    }
    Some(&mut sums[at].1)
}
