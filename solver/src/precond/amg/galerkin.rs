//! The Galerkin product Pᵀ A P, the matrix of the next coarser level.
//!
//! With L the blocks of A below the diagonal, D those on it and G those in ghost columns, which stand in the rows of two
//! ranks, the product is W + Wᵀ for W = Pᵀ (L + D/2 + G/2) P: every stored block is used once. Each rank forms W for its
//! own fine rows; rows of P that belong to ghost columns come once from their owners. `coarse_rows` adds the pieces up.
//!
//! Invariant: work is divided into slabs of fine rows that do not depend on the number of threads.

use super::block_sums::BlockSums;
use super::coarse_rows::{Columns, gather_rows};
use super::places::Places;
use super::transfer::{Prolongator, slab_ranges};
use crate::linalg::DistMatrix;
use crate::linalg::panels::{PanelWork, Panels, Term, with_panels};
use crate::linalg::vectorize::as_blocks;
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
    is_alive: impl Fn(usize, usize) -> bool + Sync,
) -> DistMatrix<C> {
    let mut columns = Columns::new(&p.coarse);
    let ghost_rows = GhostRows::fetch(comm, a, p, &mut columns);
    let lengths = |starts: &[u32]| starts.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
    let longest_row = lengths(&p.row_start).max(lengths(&ghost_rows.row_start)) as usize;
    let ranges = slab_ranges(a.map().n_owned(), MIN_SLAB_ROWS, MAX_SLABS);
    let parts: Vec<BlockSums<C>> = ranges
        .into_par_iter()
        .with_max_len(1)
        .map(|rows| {
            with_panels(Product {
                a,
                p,
                ghost_rows: &ghost_rows,
                rows,
                columns: &columns,
                longest_row,
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
    /// Places of the blocks of a row.
    #[inline(always)]
    fn row(&self, row: u32) -> Range<usize> {
        self.row_start[row as usize] as usize..self.row_start[row as usize + 1] as usize
    }

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
    /// Most blocks in a row of P, ghost rows included.
    longest_row: usize,
}

impl<'a, const B: usize, const C: usize> PanelWork<C> for Product<'a, B, C> {
    type Output = BlockSums<'a, C>;

    fn run<P: Panels<C>>(self, panels: P) -> BlockSums<'a, C> {
        let (a, p) = (self.a, self.p);
        let lower = as_blocks::<f64, B>(&a.lower().values);
        let mut sums = BlockSums::new(self.columns);
        let mut places = Places::new(self.columns.len());
        let mut lists = Lists::default();
        let (mut of_p, mut of_product) = (Vec::new(), Vec::new());
        for group in groups(p, self.rows.clone()) {
            let rows = group.rows();
            of_p.clear();
            for at in 0..p.row(group.rows[0]).len() {
                let blocks = rows.iter().map(|&row| &p.blocks[p.row(row).start + at]);
                of_p.extend(blocks.map(|block| panels.widen(block)));
            }
            for (at, &row) in (0..).zip(rows) {
                let target = (at, rows.len() as u32);
                self.list_products(row as usize, target, &mut places, &mut lists);
                of_product.resize(
                    (places.len() * rows.len()).max(of_product.len()),
                    [P::ZERO; B],
                );
                let Lists {
                    halves,
                    below,
                    diagonal,
                    ghost,
                    ..
                } = &lists;
                panels.add_products(below.terms(), lower, &p.blocks, &mut of_product);
                panels.add_products(diagonal.terms(), halves, &p.blocks, &mut of_product);
                let ghost_rows = &self.ghost_rows.blocks;
                panels.add_products(ghost.terms(), halves, ghost_rows, &mut of_product);
            }
            places.finish_rows(&mut lists.columns);
            list_squares(&p.columns[p.row(group.rows[0])], &mut lists, &mut sums);
            let (squares, transposed) = (lists.squares.terms(), lists.transposed.terms());
            panels.add_squares(squares, rows.len(), &of_p, &of_product, sums.blocks());
            panels.add_squares(transposed, rows.len(), &of_product, &of_p, sums.blocks());
            for &[place, _] in &lists.columns {
                of_product[place as usize * rows.len()..][..rows.len()].fill([P::ZERO; B]);
            }
        }
        sums
    }
}

/// Most rows of a group.
const MAX_GROUP: usize = 8;

/// Fine rows whose rows of P have the same columns, such as those between the same aggregates: the sum of their products
/// for a pair of coarse nodes is added up in one go.
struct Group {
    rows: [u32; MAX_GROUP],
    n: usize,
}

impl Group {
    fn rows(&self) -> &[u32] {
        &self.rows[..self.n]
    }
}

/// Groups of the rows `rows` of P that are not empty, ordered by their first rows.
fn groups<const B: usize, const C: usize>(p: &Prolongator<B, C>, rows: Range<usize>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::with_capacity(rows.len() / 2);
    // The last group of each set of columns, by their hash.
    let mut table = vec![u32::MAX; (2 * rows.len()).next_power_of_two()];
    for row in rows.start as u32..rows.end as u32 {
        let columns = &p.columns[p.row(row)];
        if columns.is_empty() {
            continue;
        }
        let mix = |hash: u64, &c: &u32| (hash ^ u64::from(c)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = columns.iter().fold(0, mix);
        let mut at = (hash >> 32) as usize % table.len();
        let same = |group: &Group| p.columns[p.row(group.rows[0])] == *columns;
        while groups
            .get(table[at] as usize)
            .is_some_and(|group| !same(group))
        {
            at = (at + 1) % table.len();
        }
        match groups.get_mut(table[at] as usize) {
            Some(group) if group.n < MAX_GROUP => {
                group.rows[group.n] = row;
                group.n += 1;
            }
            _ => {
                table[at] = groups.len() as u32;
                groups.push(Group {
                    rows: [row; MAX_GROUP],
                    n: 1,
                });
            }
        }
    }
    groups
}

/// What is to be done for the fine rows at hand.
#[derive(Default)]
struct Lists<const B: usize> {
    /// Half of the diagonal block of a row, and of those in ghost columns.
    halves: Vec<[[f64; B]; B]>,
    /// Products of blocks of L, of D/2 and of G/2 with blocks of P.
    below: List,
    diagonal: List,
    ghost: List,
    /// Places and columns of the sums of these.
    columns: Vec<[u32; 2]>,
    /// Products of rows of P, transposed, with these sums, and of the sums, transposed, with rows of P: a block of W above
    /// the diagonal is summed up transposed.
    squares: List,
    transposed: List,
}

/// Terms, in memory that is kept.
#[derive(Default)]
struct List {
    memory: Vec<Term>,
    n: usize,
}

impl List {
    /// Empties the list, and makes room.
    fn clear(&mut self, n_at_most: usize) {
        self.n = 0;
        if self.memory.len() < n_at_most {
            self.memory.resize(n_at_most, Term::default());
        }
    }

    #[inline(always)]
    fn push(&mut self, term: Term) {
        self.memory[self.n] = term;
        self.n += 1;
    }

    fn terms(&self) -> &[Term] {
        &self.memory[..self.n]
    }
}

impl<const B: usize, const C: usize> Product<'_, B, C> {
    /// Lists the products of row `row` of L + D/2 + G/2 with P; the sum at a place is at `n` times the place and `at`.
    fn list_products(
        &self,
        row: usize,
        (at, n): (u32, u32),
        places: &mut Places,
        lists: &mut Lists<B>,
    ) {
        let (p, ghosts) = (self.p, self.ghost_rows);
        let (lower, ghost) = (self.a.lower(), self.a.ghost());
        let blocks = lower.row(row);
        let (below, diagonal) = (blocks.start..blocks.end - 1, blocks.end - 1);
        lists.below.clear(below.len() * self.longest_row);
        for left in below {
            for right in p.row(lower.columns[left]) {
                lists.below.push(Term {
                    left: left as u32,
                    right: right as u32,
                    sum: places.take(p.columns[right]) * n + at,
                });
            }
        }
        lists.halves.clear();
        lists.halves.push(half(&as_blocks(&lower.values)[diagonal]));
        lists.diagonal.clear(self.longest_row);
        for right in p.row(row as u32) {
            lists.diagonal.push(Term {
                left: 0,
                right: right as u32,
                sum: places.take(p.columns[right]) * n + at,
            });
        }
        lists.ghost.clear(ghost.row(row).len() * self.longest_row);
        for k in ghost.row(row) {
            let left = lists.halves.len() as u32;
            lists.halves.push(half(&as_blocks(&ghost.values)[k]));
            for right in ghosts.row(ghost.columns[k]) {
                lists.ghost.push(Term {
                    left,
                    right: right as u32,
                    sum: places.take(ghosts.columns[right]) * n + at,
                });
            }
        }
    }
}

/// Lists the products of the rows of P with the columns `of_p`, transposed, and these rows' products with P.
fn list_squares<const B: usize, const C: usize>(
    of_p: &[u32],
    lists: &mut Lists<B>,
    sums: &mut BlockSums<C>,
) {
    let n_at_most = of_p.len() * lists.columns.len();
    lists.squares.clear(n_at_most);
    lists.transposed.clear(n_at_most);
    for (at, &coarse) in (0..).zip(of_p) {
        for &[place, column] in &lists.columns {
            let (sum, is_transposed) = sums.find(coarse, column);
            if is_transposed {
                lists.transposed.push(Term {
                    left: place,
                    right: at,
                    sum,
                });
            } else {
                lists.squares.push(Term {
                    left: at,
                    right: place,
                    sum,
                });
            }
        }
    }
}

/// Half of a block.
fn half<const B: usize>(block: &[[f64; B]; B]) -> [[f64; B]; B] {
    block.map(|row| row.map(|value| 0.5 * value))
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
