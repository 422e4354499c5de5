//! The Galerkin product Pᵀ A P, the matrix of the next coarser level.
//!
//! Rows of P that belong to ghost columns of A come once from their owners. Each rank forms the products of its own
//! fine rows, above the diagonal only; `coarse_rows` adds them up over ranks and mirrors them, so that the coarse
//! matrix is symmetric to the last bit.
//!
//! Invariant: work is divided into slabs of fine rows that do not depend on the number of threads.

use super::coarse_rows::{Columns, PartialRows, gather_rows};
use super::sparse_row::SparseRow;
use super::transfer::{Prolongator, slab_ranges};
use crate::linalg::DistMatrix;
use crate::linalg::vectorize::{
    Kernel, add_product, add_transposed_product, as_blocks, dispatch, widen,
};
use fem_mesh::Comm;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use std::ops::Range;

/// Fewest fine rows of a slab.
const MIN_SLAB_ROWS: usize = 1024;
/// Most slabs of a rank: each slab keeps its own sums for the coarse rows that it shares with its neighbors.
const MAX_SLABS: usize = 8;

/// Mark of a coarse row that a slab has not met yet.
const NO_PLACE: u32 = u32::MAX;

/// Collective. Pᵀ A P. Coarse degrees of freedom that `is_alive` denies (owned ones, by node and component) stand for
/// nothing: their diagonal entry becomes that of the largest in their block.
pub(super) fn galerkin_product<const B: usize, const C: usize>(
    comm: &Comm,
    a: &DistMatrix<B>,
    p: &Prolongator<B, C>,
    is_alive: impl Fn(usize, usize) -> bool,
) -> DistMatrix<C> {
    let mut columns = Columns::new(&p.coarse);
    let ghost_rows = GhostRows::fetch(comm, a, p, &mut columns);
    let ranges = slab_ranges(a.map().n_owned(), MIN_SLAB_ROWS, MAX_SLABS);
    let parts: Vec<PartialRows<C>> = ranges
        .into_par_iter()
        .with_max_len(1)
        .map(|rows| {
            dispatch(Product {
                a,
                p,
                ghost_rows: &ghost_rows,
                rows,
                columns: &columns,
            })
        })
        .collect();
    gather_rows(comm, &columns, parts, is_alive)
}

/// Rows of P of the ghost columns of A.
struct GhostRows<const B: usize, const C: usize> {
    row_start: Vec<u32>,
    /// Coarse columns as [`Columns`] numbers them.
    columns: Vec<u32>,
    blocks: Vec<[[f32; C]; B]>,
}

impl<const B: usize, const C: usize> GhostRows<B, C> {
    /// Collective. Fetches the rows and enters their columns into `columns`.
    fn fetch(comm: &Comm, a: &DistMatrix<B>, p: &Prolongator<B, C>, columns: &mut Columns) -> Self {
        let globals: Vec<u64> = p
            .columns
            .iter()
            .map(|&c| p.coarse.global(c as usize))
            .collect();
        let (row_start, globals) = a.halo().forward_lists(comm, &p.row_start, &globals, 1);
        let values = p.blocks.as_flattened().as_flattened();
        let (_, values) = a.halo().forward_lists(comm, &p.row_start, values, B * C);
        GhostRows {
            row_start,
            columns: globals.into_iter().map(|g| columns.enter(g)).collect(),
            blocks: values.as_chunks::<C>().0.as_chunks::<B>().0.to_vec(),
        }
    }
}

/// The products of a slab of fine rows.
struct Product<'a, const B: usize, const C: usize> {
    a: &'a DistMatrix<B>,
    p: &'a Prolongator<B, C>,
    ghost_rows: &'a GhostRows<B, C>,
    rows: Range<usize>,
    columns: &'a Columns,
}

impl<const B: usize, const C: usize> Kernel for Product<'_, B, C> {
    type Output = PartialRows<C>;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> PartialRows<C> {
        let (a, p, ghosts) = (self.a, self.p, self.ghost_rows);
        let mut sums = PartialRows::new();
        let mut place_of = vec![NO_PLACE; self.columns.len()];
        let mut product = SparseRow::new(self.columns.len());
        let owned_blocks = as_blocks::<f64, B>(&a.owned().values);
        let ghost_blocks = as_blocks::<f64, B>(&a.ghost().values);
        for row in self.rows {
            for k in a.owned().row(row) {
                let node = a.owned().columns[k] as usize;
                let range = p.row_start[node] as usize..p.row_start[node + 1] as usize;
                let row_of_p = (&p.columns[range.clone()], &p.blocks[range]);
                add_to_row::<FMA, B, C>(&mut product, &owned_blocks[k], row_of_p);
            }
            for k in a.ghost().row(row) {
                let node = a.ghost().columns[k] as usize;
                let range = ghosts.row_start[node] as usize..ghosts.row_start[node + 1] as usize;
                let row_of_p = (&ghosts.columns[range.clone()], &ghosts.blocks[range]);
                add_to_row::<FMA, B, C>(&mut product, &ghost_blocks[k], row_of_p);
            }
            let range = p.row_start[row] as usize..p.row_start[row + 1] as usize;
            for (block, &coarse) in p.blocks[range.clone()].iter().zip(&p.columns[range]) {
                let block = widen(block);
                let place = &mut place_of[coarse as usize];
                if *place == NO_PLACE {
                    *place = sums.start_row(coarse);
                }
                for (&column, value) in product.columns().iter().zip(product.blocks()) {
                    if self.columns.is_upper(coarse, column) {
                        let sum = sums.block(*place, column);
                        add_transposed_product::<FMA, f64, C, B, C>(&block, value, sum);
                    }
                }
            }
            product.clear();
        }
        sums
    }
}

/// row += block times a row of P.
#[inline(always)]
fn add_to_row<const FMA: bool, const B: usize, const C: usize>(
    row: &mut SparseRow<B, C>,
    block: &[[f64; B]; B],
    row_of_p: (&[u32], &[[[f32; C]; B]]),
) {
    for (&column, p) in row_of_p.0.iter().zip(row_of_p.1) {
        add_product::<FMA, f64, B, B, C>(block, &widen(p), row.block(column));
    }
}

#[cfg(test)]
mod tests {
    use super::galerkin_product;
    use crate::linalg::sample::{distribute, noise, spring_grid};
    use crate::precond::BlockJacobi;
    use crate::precond::amg::aggregate::aggregate;
    use crate::precond::amg::smooth::smoothed_prolongator;
    use crate::precond::amg::strength::StrongGraph;
    use crate::precond::amg::tentative::tentative;
    use crate::precond::amg::tests::{dense, dense_columns};
    use fem_mesh::comm::run_threads;
    use nalgebra::DMatrix;

    const OMEGA: f64 = 0.5;

    #[test]
    fn smoothing_and_product_are_those_of_dense_matrices() {
        let a = spring_grid(6, 10.0);
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let matrix = distribute(comm, &a);
                let n = matrix.map().n_owned();
                let values = noise(12 * n, 1 + comm.rank() as u64);
                let mut near_nullspace = values.as_chunks::<4>().0.as_chunks::<3>().0.to_vec();
                // A node that takes no part: its rows must stay empty.
                near_nullspace
                    .iter_mut()
                    .take(1)
                    .for_each(|rows| *rows = [[0.0; 4]; 3]);
                let takes_part: Vec<bool> = near_nullspace
                    .iter()
                    .map(|rows| *rows != [[0.0; 4]; 3])
                    .collect();
                let aggregates = aggregate(&StrongGraph::new(&matrix, 0.0), &takes_part);
                let t = tentative(&aggregates, &near_nullspace);
                let inverse = BlockJacobi::new(comm, &matrix).expect("positive definite");
                let prolongator = |omega: f64| {
                    let rows = t.rows.clone();
                    let blocks = inverse.blocks();
                    smoothed_prolongator(comm, &matrix, &aggregates, rows, blocks, omega)
                };
                let p = prolongator(OMEGA);
                let coarse = galerkin_product(comm, &matrix, &p, |_, _| true);

                let a = dense(comm, &matrix);
                let [p, t] =
                    [p, prolongator(0.0)].map(|p| dense_columns(comm, &p, coarse.map(), n));
                let mut smoothed = t.clone();
                let at = &a * &t;
                for node in 0..a.nrows() / 3 {
                    let block = a.view((3 * node, 3 * node), (3, 3)).into_owned();
                    let inverse = block.try_inverse().expect("regular");
                    let step: DMatrix<f64> = inverse * at.rows(3 * node, 3) * OMEGA;
                    let is_empty = t.rows(3 * node, 3).iter().all(|v| *v == 0.0);
                    if !is_empty {
                        smoothed
                            .rows_mut(3 * node, 3)
                            .zip_apply(&step, |v, s| *v -= s);
                    }
                }
                assert!((&p - smoothed).norm() < 1e-6 * p.norm());
                let expected = p.transpose() * &a * &p;
                let found = dense(comm, &coarse);
                assert!((&found - &expected).norm() < 1e-12 * expected.norm());
                assert_eq!(found, found.transpose());
            });
        }
    }
}
