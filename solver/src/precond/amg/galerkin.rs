//! The Galerkin product Pᵀ A P, the matrix of the next coarser level.
//!
//! With L the blocks of A below the diagonal, D those on it and G those in ghost columns, which stand in the rows of two
//! ranks, the product is W + Wᵀ for W = Pᵀ (L + D/2 + G/2) P: every stored block is used once. Each rank forms W for its
//! own fine rows; rows of P that belong to ghost columns come once from their owners. `coarse_rows` adds the pieces up.
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

impl<'a, const B: usize, const C: usize> Kernel for Product<'a, B, C> {
    type Output = PartialRows<'a, C>;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> PartialRows<'a, C> {
        let (a, p, ghosts) = (self.a, self.p, self.ghost_rows);
        let mut sums = PartialRows::new(self.columns);
        let mut product = SparseRow::new(self.columns.len());
        let (lower, ghost) = (a.lower(), a.ghost());
        let lower_blocks = as_blocks::<f64, B>(&lower.values);
        let ghost_blocks = as_blocks::<f64, B>(&ghost.values);
        for row in self.rows {
            for k in lower.row(row) {
                let node = lower.columns[k] as usize;
                let range = p.row_start[node] as usize..p.row_start[node + 1] as usize;
                let row_of_p = (&p.columns[range.clone()], &p.blocks[range]);
                if node == row {
                    let half = halved(&lower_blocks[k]);
                    add_to_row::<FMA, B, C>(&mut product, &half, row_of_p);
                } else {
                    add_to_row::<FMA, B, C>(&mut product, &lower_blocks[k], row_of_p);
                }
            }
            for k in ghost.row(row) {
                let node = ghost.columns[k] as usize;
                let range = ghosts.row_start[node] as usize..ghosts.row_start[node + 1] as usize;
                let row_of_p = (&ghosts.columns[range.clone()], &ghosts.blocks[range]);
                let half = halved(&ghost_blocks[k]);
                add_to_row::<FMA, B, C>(&mut product, &half, row_of_p);
            }
            let range = p.row_start[row] as usize..p.row_start[row + 1] as usize;
            for (block, &coarse) in p.blocks[range.clone()].iter().zip(&p.columns[range]) {
                let block = widen(block);
                for (&column, value) in product.columns().iter().zip(product.blocks()) {
                    // The block (coarse, column) of W, or its transpose where that is below the diagonal.
                    let (sum, is_transposed) = sums.block(coarse, column);
                    if is_transposed {
                        add_transposed_product::<FMA, f64, C, B, C>(value, &block, sum);
                    } else {
                        add_transposed_product::<FMA, f64, C, B, C>(&block, value, sum);
                    }
                }
            }
            product.clear();
        }
        sums
    }
}

/// Half of a block.
#[inline(always)]
pub(super) fn halved<const B: usize>(block: &[[f64; B]; B]) -> [[f64; B]; B] {
    let mut half = *block;
    for i in 0..B {
        for j in 0..B {
            half[i][j] *= 0.5;
        }
    }
    half
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
    use crate::linalg::Upper;
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
                let upper = Upper::new(matrix.lower());
                let graph = StrongGraph::new(&matrix, &upper, 0.0);
                let aggregates = aggregate(&graph, &takes_part);
                let t = tentative(&aggregates, &near_nullspace);
                let inverse = BlockJacobi::new(comm, &matrix).expect("positive definite");
                let prolongator = |omega: f64| {
                    let rows = t.rows.clone();
                    let blocks = inverse.blocks();
                    smoothed_prolongator(comm, (&matrix, &upper), &aggregates, rows, blocks, omega)
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
