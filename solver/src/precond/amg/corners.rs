//! Coarsening of second-order elements to their corners: linear interpolation on every edge.
//!
//! The first coarse space of a second-order model is that of its corner nodes. A corner has its own value, a mid-side
//! node the mean of those of the two corners beside it; prescribed degrees of freedom take no part on either level.
//! Multigrid of second-order elements by order first is older than algebraic multigrid; for elasticity see Kocvara and
//! Mohammed, Comput. Methods Appl. Mech. Engrg. 231 (2012) 1, who coarsen by degree in the same way.
//!
//! Invariant: sees numbers of nodes and their parents; knows no element.

use super::block_sums::BlockSums;
use super::coarse_rows::{Columns, gather_rows};
use super::places::Places;
use super::transfer::{Transfer, slab_ranges};
use crate::linalg::DistMatrix;
use crate::linalg::vectorize::as_blocks;
use fem_mesh::{Comm, Halo, IndexMap};
use rayon::prelude::{
    IndexedParallelIterator, IntoParallelIterator, ParallelIterator, ParallelSliceMut,
};
use std::ops::Range;

/// Fewest fine rows of a slab of the product,
const MIN_SLAB_ROWS: usize = 1024;
/// and most slabs.
const MAX_SLABS: usize = 8;
/// Fine rows that a thread takes at a time.
const FINE_ROWS_PER_TASK: usize = 4096;

/// Mark of a node that is no corner.
const NO_CORNER: u64 = u64::MAX;

/// Linear interpolation from corners.
pub(super) struct CornerInterpolation<const B: usize> {
    coarse: IndexMap,
    halo: Halo,
    /// Coarse local indices of the two parents of each owned fine node; twice the same for a corner.
    parents: Vec<[u32; 2]>,
    /// Weight of each parent in each component of a fine node: 1/2, or 0 where the displacement is prescribed.
    weights: Vec<[f32; B]>,
    /// Fine nodes with each (local) coarse node as a parent: `children[start[c]..start[c + 1]]`, ascending, a corner
    /// itself twice.
    start: Vec<u32>,
    children: Vec<u32>,
    /// Whether each component of an owned coarse node takes part.
    is_free: Vec<[bool; B]>,
}

/// The corner level.
pub(super) struct CornerLevel<const B: usize, const C: usize> {
    pub(super) interpolation: CornerInterpolation<B>,
    pub(super) matrix: DistMatrix<B>,
    pub(super) near_nullspace: Vec<[[f64; C]; B]>,
}

/// Collective. Coarsens `a` to its corners. `parents` names for each owned node the two corner nodes between which it
/// lies, by local index, or twice itself for a corner. A zero row of `near_nullspace` says that the degree of freedom
/// is prescribed: its row and column of `a` are zero but for the diagonal.
pub(super) fn coarsen_to_corners<const B: usize, const C: usize>(
    comm: &Comm,
    a: &DistMatrix<B>,
    parents: &[[u32; 2]],
    near_nullspace: &[[[f64; C]; B]],
) -> CornerLevel<B, C> {
    let is_free: Vec<[bool; B]> = near_nullspace
        .iter()
        .map(|rows| rows.map(|row| row != [0.0; C]))
        .collect();
    let corners: Vec<u32> = (0..parents.len() as u32)
        .filter(|&node| parents[node as usize] == [node, node])
        .collect();
    let (globals, coarse) = number_corners(comm, a, &corners, parents);
    let family = Family::new(comm, a, parents, &globals, &coarse, &is_free);
    let own_free = corners.iter().map(|&c| is_free[c as usize]).collect();
    let interpolation =
        CornerInterpolation::new(comm, coarse, &family.of_owned, &is_free, own_free);
    let product = CornerProduct {
        p: &interpolation,
        a,
        fine_is_free: &is_free,
        family: &family,
    };
    let matrix = product.compute(comm);
    let near_nullspace = corners
        .iter()
        .map(|&c| near_nullspace[c as usize])
        .collect();
    CornerLevel {
        interpolation,
        matrix,
        near_nullspace,
    }
}

/// Collective. Global coarse number of each local fine node that is a corner, and the distribution of the corners:
/// its ghosts are the foreign parents of owned fine nodes.
fn number_corners<const B: usize>(
    comm: &Comm,
    a: &DistMatrix<B>,
    corners: &[u32],
    parents: &[[u32; 2]],
) -> (Vec<u64>, IndexMap) {
    let n_owned = a.map().n_owned();
    let offset = comm.sum_below(corners.len() as u64);
    let mut globals = vec![NO_CORNER; a.map().n_local()];
    for (number, &corner) in (offset..).zip(corners) {
        globals[corner as usize] = number;
    }
    let (owned, ghosts) = globals.split_at_mut(n_owned);
    a.halo().forward(comm, owned, ghosts, 1);
    let foreign = parents.iter().flatten().filter(|&&p| p as usize >= n_owned);
    let mut foreign: Vec<u64> = foreign.map(|&p| globals[p as usize]).collect();
    foreign.sort_unstable();
    foreign.dedup();
    let coarse = IndexMap::new(comm, corners.len(), foreign);
    (globals, coarse)
}

/// Parents of all local fine nodes.
struct Family<const B: usize> {
    /// Coarse columns of the parents of each owned fine node.
    of_owned: Vec<[u32; 2]>,
    /// The same of each ghost; some are columns that only the Galerkin product meets.
    of_ghosts: Vec<[u32; 2]>,
    columns: Columns,
    /// Whether each component of a column takes part.
    is_free: Vec<[bool; B]>,
}

impl<const B: usize> Family<B> {
    /// Collective. `globals` and `is_free` tell of the local and of the owned fine nodes.
    fn new(
        comm: &Comm,
        a: &DistMatrix<B>,
        parents: &[[u32; 2]],
        globals: &[u64],
        coarse: &IndexMap,
        is_free: &[[bool; B]],
    ) -> Self {
        let n_owned = a.map().n_owned();
        let mut bits = vec![0u64; a.map().n_local()];
        for (bits, free) in bits.iter_mut().zip(is_free) {
            *bits = (0..B).map(|b| u64::from(free[b]) << b).sum();
        }
        let (owned, ghosts) = bits.split_at_mut(n_owned);
        a.halo().forward(comm, owned, ghosts, 1);

        // Number and bits of both parents travel together.
        let of_node = |&p: &u32| [globals[p as usize], bits[p as usize]];
        let owned: Vec<u64> = parents.iter().flatten().flat_map(of_node).collect();
        let mut ghosts = vec![0; 4 * a.map().n_ghosts()];
        a.halo().forward(comm, &owned, &mut ghosts, 4);
        let mut columns = Columns::new(coarse);
        let mut column_bits = vec![0; coarse.n_local()];
        let mut enter = |parents: &[u64; 4]| {
            [[parents[0], parents[1]], [parents[2], parents[3]]].map(|[global, bits]| {
                let column = columns.enter(global);
                column_bits.resize(columns.len(), 0);
                column_bits[column as usize] = bits;
                column
            })
        };
        let of_owned = owned.as_chunks().0.iter().map(&mut enter).collect();
        let of_ghosts = ghosts.as_chunks().0.iter().map(&mut enter).collect();
        let free = |bits: &u64| std::array::from_fn(|b| bits >> b & 1 == 1);
        let is_free = column_bits.iter().map(free).collect();
        Family {
            of_owned,
            of_ghosts,
            columns,
            is_free,
        }
    }
}

impl<const B: usize> CornerInterpolation<B> {
    fn new(
        comm: &Comm,
        coarse: IndexMap,
        parents: &[[u32; 2]],
        fine_is_free: &[[bool; B]],
        is_free: Vec<[bool; B]>,
    ) -> Self {
        let mut start = vec![0u32; coarse.n_local() + 1];
        parents
            .iter()
            .flatten()
            .for_each(|&p| start[p as usize + 1] += 1);
        for c in 0..coarse.n_local() {
            start[c + 1] += start[c];
        }
        let mut next = start.clone();
        let mut children = vec![0; 2 * parents.len()];
        for (node, pair) in parents.iter().enumerate() {
            for &parent in pair {
                children[next[parent as usize] as usize] = node as u32;
                next[parent as usize] += 1;
            }
        }
        let weight = |free: bool| if free { 0.5 } else { 0.0 };
        let weights = fine_is_free.iter().map(|free| free.map(weight)).collect();
        let halo = Halo::new(comm, &coarse);
        CornerInterpolation {
            coarse,
            halo,
            parents: parents.to_vec(),
            weights,
            start,
            children,
            is_free,
        }
    }
}

/// What the Galerkin product is made of.
struct CornerProduct<'a, const B: usize> {
    p: &'a CornerInterpolation<B>,
    a: &'a DistMatrix<B>,
    fine_is_free: &'a [[bool; B]],
    family: &'a Family<B>,
}

impl<const B: usize> CornerProduct<'_, B> {
    /// Collective. Pᵀ A P, as W + Wᵀ like other Galerkin products.
    fn compute(&self, comm: &Comm) -> DistMatrix<B> {
        let ranges = slab_ranges(self.a.map().n_owned(), MIN_SLAB_ROWS, MAX_SLABS);
        let parts: Vec<BlockSums<B>> = ranges
            .into_par_iter()
            .with_max_len(1)
            .map(|rows| self.slab(rows))
            .collect();
        let is_free = |row: usize, c: usize| self.p.is_free[row][c];
        gather_rows(comm, &self.family.columns, parts, is_free)
    }

    /// What a slab of fine rows gives to W.
    fn slab(&self, fine_rows: Range<usize>) -> BlockSums<'_, B> {
        let mut sums = BlockSums::new(&self.family.columns);
        let mut places = Places::new(self.family.columns.len());
        let mut product: Vec<[[f64; B]; B]> = Vec::new();
        let mut columns = Vec::new();
        for fine in fine_rows {
            self.multiply_row(fine, &mut places, &mut product);
            places.finish_rows(&mut columns);
            let (parents, weight) = distinct(&self.p.parents[fine]);
            for &[place, column] in &columns {
                let value = std::mem::replace(&mut product[place as usize], [[0.0; B]; B]);
                for &parent in parents {
                    let (sum, is_transposed) = sums.find(parent, column);
                    let sum = &mut sums.blocks()[sum as usize];
                    for (i, j) in (0..B * B).map(|k| (k / B, k % B)) {
                        sum[i][j] += weight
                            * if is_transposed {
                                value[j][i]
                            } else {
                                value[i][j]
                            };
                    }
                }
            }
        }
        sums.for_each(|row, column, block| self.clear_prescribed(row, column, block));
        sums
    }

    /// Fine row `fine` of (L + D/2 + G/2) P, added to `product` in its places.
    fn multiply_row(&self, fine: usize, places: &mut Places, product: &mut Vec<[[f64; B]; B]>) {
        let mut add = |parents: &[u32; 2], block: &[[f64; B]; B], factor: f64| {
            let (parents, weight) = distinct(parents);
            for &column in parents {
                let place = places.take(column) as usize;
                if place >= product.len() {
                    product.resize(place + 1, [[0.0; B]; B]);
                }
                let sum = product[place].as_flattened_mut().iter_mut();
                sum.zip(block.as_flattened())
                    .for_each(|(sum, v)| *sum += factor * weight * v);
            }
        };
        let (lower, ghost) = (self.a.lower(), self.a.ghost());
        let blocks = as_blocks::<f64, B>(&lower.values);
        for k in lower.row(fine) {
            let node = lower.columns[k] as usize;
            if node == fine {
                let block = self.without_prescribed(fine, &blocks[k]);
                add(&self.p.parents[node], &block, 0.5);
            } else {
                add(&self.p.parents[node], &blocks[k], 1.0);
            }
        }
        let blocks = as_blocks::<f64, B>(&ghost.values);
        for k in ghost.row(fine) {
            let parents = &self.family.of_ghosts[ghost.columns[k] as usize];
            add(parents, &blocks[k], 0.5);
        }
    }

    /// Zeros in the rows and columns of coarse degrees of freedom that take no part.
    fn clear_prescribed(&self, row: u32, column: u32, block: &mut [[f64; B]; B]) {
        let rows = self.family.is_free[row as usize];
        let columns = self.family.is_free[column as usize];
        for (i, j) in (0..B * B).map(|k| (k / B, k % B)) {
            if !(rows[i] && columns[j]) {
                block[i][j] = 0.0;
            }
        }
    }

    fn without_prescribed(&self, fine: usize, block: &[[f64; B]; B]) -> [[f64; B]; B] {
        let mut block = *block;
        for c in (0..B).filter(|&c| !self.fine_is_free[fine][c]) {
            block[c][c] = 0.0;
        }
        block
    }
}

/// The different parents of a fine node, and the weight of each.
fn distinct(parents: &[u32; 2]) -> (&[u32], f64) {
    if parents[0] == parents[1] {
        (&parents[..1], 1.0)
    } else {
        (parents, 0.5)
    }
}

impl<const B: usize> Transfer<B, B> for CornerInterpolation<B> {
    fn n_coarse(&self) -> usize {
        self.coarse.n_owned()
    }

    fn restrict(&self, comm: &Comm, fine: &[[f32; B]], coarse: &mut [[f32; B]]) {
        let gather = |c: usize| {
            let mut sum = [0.0; B];
            for &node in &self.children[self.start[c] as usize..self.start[c + 1] as usize] {
                let (value, weight) = (&fine[node as usize], &self.weights[node as usize]);
                (0..B).for_each(|b| sum[b] += weight[b] * value[b]);
            }
            sum
        };
        coarse
            .par_chunks_mut(FINE_ROWS_PER_TASK)
            .enumerate()
            .for_each(|(task, coarse)| {
                for (c, value) in (task * FINE_ROWS_PER_TASK..).zip(coarse) {
                    *value = gather(c);
                }
            });
        let ghosts: Vec<[f32; B]> = (self.coarse.n_owned()..self.coarse.n_local())
            .map(gather)
            .collect();
        self.halo
            .reverse_add(comm, ghosts.as_flattened(), coarse.as_flattened_mut(), B);
        for (value, free) in coarse.iter_mut().zip(&self.is_free) {
            (0..B).filter(|&b| !free[b]).for_each(|b| value[b] = 0.0);
        }
    }

    fn prolong(&self, comm: &Comm, coarse: &[[f32; B]], fine: &mut [[f32; B]]) {
        let mut values = coarse.to_vec();
        for (value, free) in values.iter_mut().zip(&self.is_free) {
            (0..B).filter(|&b| !free[b]).for_each(|b| value[b] = 0.0);
        }
        values.resize(self.coarse.n_local(), [0.0; B]);
        let (owned, ghosts) = values.split_at_mut(coarse.len());
        self.halo
            .forward(comm, owned.as_flattened(), ghosts.as_flattened_mut(), B);
        fine.par_chunks_mut(FINE_ROWS_PER_TASK)
            .enumerate()
            .for_each(|(task, fine)| {
                let first = task * FINE_ROWS_PER_TASK;
                for (node, fine) in (first..).zip(fine) {
                    let [p, q] = self.parents[node].map(|p| &values[p as usize]);
                    let weight = &self.weights[node];
                    *fine = std::array::from_fn(|b| weight[b] * (p[b] + q[b]));
                }
            });
    }

    fn memory(&self) -> usize {
        size_of_val(self.parents.as_slice())
            + size_of_val(self.weights.as_slice())
            + size_of_val(self.start.as_slice())
            + size_of_val(self.children.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::coarsen_to_corners;
    use crate::analysis::corner_parents::corner_parents;
    use crate::assembly::test_models::{distorted_box, model, split};
    use crate::assembly::{Pattern, assemble_stiffness, constrain};
    use crate::linalg::DistMatrix;
    use crate::precond::amg::tests::{dense, dense_columns};
    use crate::precond::rigid_body_modes;
    use fem_mesh::CellType;
    use fem_mesh::comm::run_threads;

    #[test]
    fn the_product_is_that_of_dense_matrices_but_for_prescribed_rows() {
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let mut model = model(split(
                    comm,
                    &distorted_box(CellType::Tet10, [2, 1, 2], false),
                ));
                let (pattern, mut rows) = Pattern::new(&model.mesh).expect("few neighbors");
                assemble_stiffness(comm, &model, &pattern, &mut rows).expect("valid elements");
                let nodes = model.mesh.nodes.clone();
                let n = nodes.n_owned();
                // Corners and mid-side nodes alike, whole nodes and single components.
                let is_fixed = |dof: &u64| dof / 3 % 5 == 2 || dof % 11 == 3;
                model.fixed = (0..nodes.n_local())
                    .flat_map(|node| (0..3).map(move |c| (node, c)))
                    .filter(|&(node, c)| is_fixed(&(3 * nodes.global(node) + c)))
                    .map(|(node, c)| (3 * node as u32 + c as u32, 0.0))
                    .collect();
                constrain(
                    pattern.slabs(),
                    &model.fixed,
                    &mut rows,
                    &mut vec![0.0; 3 * n],
                );
                let a = DistMatrix::new(comm, nodes, rows.lower, rows.ghost);
                let fixed = model.fixed.iter().map(|(dof, _)| *dof);
                let modes = rigid_body_modes(comm, &model.mesh.coords[..n], fixed, &[]);
                let parents = corner_parents(comm, &model.mesh).expect("second order");
                let level = coarsen_to_corners(comm, &a, &parents, &modes);

                let map = level.matrix.map();
                let p = dense_columns(comm, &level.interpolation, map, n);
                let found = dense(comm, &level.matrix);
                let expected = p.transpose() * dense(comm, &a) * &p;
                let is_free: Vec<u8> = (level.near_nullspace.iter().flatten())
                    .map(|row| u8::from(*row != [0.0; 6]))
                    .collect();
                let is_free = comm.all_gather(&is_free).concat();
                assert!(is_free.contains(&0) && is_free.contains(&1));
                let scale = expected.abs().max();
                for (i, j) in
                    (0..found.nrows()).flat_map(|i| (0..found.nrows()).map(move |j| (i, j)))
                {
                    let value = found[(i, j)];
                    if is_free[i] == 1 && is_free[j] == 1 {
                        assert!((value - expected[(i, j)]).abs() < 1e-12 * scale, "{i} {j}");
                    } else {
                        assert!(if i == j { value > 0.0 } else { value == 0.0 }, "{i} {j}");
                    }
                }
            });
        }
    }
}
