//! `DistMatrix`: a symmetric block matrix whose rows are spread over the ranks.
//!
//! What goes in: the blocks of the owned rows, those in owned columns on and below the diagonal, and apart from them
//! those in ghost columns. A block above the diagonal is the transpose of one below it and is not stored: [`super::Upper`]
//! finds it there. What comes out: rows to walk over, the diagonal, the norm, and a plain product.
//!
//! Invariant: knows numbers and ranks, not what they stand for; all of a row's blocks live on the row's owner, or are
//! transposes of blocks in a later row of the same rank.

use super::{BlockCsr, LinearOperator, spmv};
use fem_mesh::halo::Halo;
use fem_mesh::{Comm, IndexMap};
use rayon::prelude::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use std::ops::Range;

/// Rows whose sums of absolute values a thread forms at a time.
const ROWS_PER_TASK: usize = 16_384;

/// Symmetric matrix of B x B blocks over the ranks; rows and columns are distributed by the same [`IndexMap`].
pub struct DistMatrix<const B: usize> {
    map: IndexMap,
    halo: Halo,
    lower: BlockCsr<f64, B>,
    ghost: BlockCsr<f64, B>,
    boundary_rows: Vec<u32>,
}

/// What a [`DistMatrix`] is made of.
pub(super) struct Parts<const B: usize> {
    pub(super) map: IndexMap,
    pub(super) halo: Halo,
    pub(super) lower: BlockCsr<f64, B>,
    pub(super) ghost: BlockCsr<f64, B>,
    pub(super) boundary_rows: Vec<u32>,
}

impl<const B: usize> DistMatrix<B> {
    /// Collective. From the blocks of this rank's rows: `lower` in owned columns (n_owned x n_owned blocks), where a row
    /// ends with its diagonal block, `ghost` in ghost columns (n_owned x n_ghosts, column g is the g-th ghost of `map`).
    ///
    /// # Panics
    /// If the sizes do not fit `map`, or a row of `lower` does not end with its diagonal block.
    pub fn new(
        comm: &Comm,
        map: IndexMap,
        lower: BlockCsr<f64, B>,
        ghost: BlockCsr<f64, B>,
    ) -> Self {
        let (n_owned, n_ghosts) = (map.n_owned(), map.n_ghosts());
        assert_eq!(
            (lower.n_rows, lower.n_cols),
            (n_owned, n_owned),
            "block sizes of `lower`"
        );
        assert_eq!(
            (ghost.n_rows, ghost.n_cols),
            (n_owned, n_ghosts),
            "block sizes of `ghost`"
        );
        assert!(
            lower.is_lower_half(),
            "the diagonal ends each row of `lower`"
        );
        let boundary_rows = (0..n_owned as u32)
            .filter(|&row| !ghost.row(row as usize).is_empty())
            .collect();
        let halo = Halo::new(comm, &map);
        DistMatrix {
            map,
            halo,
            lower,
            ghost,
            boundary_rows,
        }
    }

    /// Distribution of the block rows and columns.
    pub fn map(&self) -> &IndexMap {
        &self.map
    }

    /// Exchange plan of the block columns.
    pub fn halo(&self) -> &Halo {
        &self.halo
    }

    /// Blocks in owned columns on and below the diagonal; the diagonal block is the last of its row.
    pub fn lower(&self) -> &BlockCsr<f64, B> {
        &self.lower
    }

    /// Blocks in ghost columns.
    pub fn ghost(&self) -> &BlockCsr<f64, B> {
        &self.ghost
    }

    /// Owned block rows with blocks in ghost columns, ascending.
    pub fn boundary_rows(&self) -> &[u32] {
        &self.boundary_rows
    }

    /// Diagonal block of owned block row `row`.
    pub fn diagonal_block(&self, row: usize) -> [[f64; B]; B] {
        let block = self.lower.block(self.lower.row_start[row + 1] - 1);
        std::array::from_fn(|i| std::array::from_fn(|j| block[i * B + j]))
    }

    /// Number of blocks of this rank's rows, those above the diagonal included.
    pub fn n_blocks(&self) -> usize {
        2 * self.lower.n_blocks() - self.lower.n_rows + self.ghost.n_blocks()
    }

    /// Multiplies every entry by `factor`.
    pub fn scale(&mut self, factor: f64) {
        for values in [&mut self.lower.values, &mut self.ghost.values] {
            values.iter_mut().for_each(|value| *value *= factor);
        }
    }

    /// Collective. Largest sum of absolute values of a scalar row, infinite if an entry is not finite. It is an upper bound
    /// of the spectral norm.
    pub fn norm_inf(&self, comm: &Comm) -> f64 {
        let n = self.map.n_owned();
        let tasks = (0..n.div_ceil(ROWS_PER_TASK))
            .into_par_iter()
            .with_max_len(1);
        let parts: Vec<(usize, Vec<[f64; B]>)> = tasks
            .map(|task| self.absolute_sums(task * ROWS_PER_TASK..n.min((task + 1) * ROWS_PER_TASK)))
            .collect();
        let mut sums = vec![[0.0; B]; n];
        for (first, part) in &parts {
            for (sum, part) in sums[*first..].iter_mut().zip(part) {
                (0..B).for_each(|i| sum[i] += part[i]);
            }
        }
        // `max` passes over what is not a number.
        let is_finite = sums.as_flattened().iter().all(|sum| sum.is_finite());
        let bound = if is_finite { 0.0 } else { f64::INFINITY };
        comm.max(sums.as_flattened().iter().copied().fold(bound, f64::max))
    }

    /// What the blocks stored in `rows` give to sums of absolute values by scalar rows, from the returned row on.
    fn absolute_sums(&self, rows: Range<usize>) -> (usize, Vec<[f64; B]>) {
        let (lower, ghost) = (&self.lower, &self.ghost);
        let first_columns = rows
            .clone()
            .map(|row| lower.columns[lower.row_start[row]] as usize);
        let first = first_columns.min().unwrap_or(rows.start);
        let mut sums = vec![[0.0; B]; rows.end - first];
        for row in rows {
            let mut own = [0.0; B];
            for k in lower.row(row) {
                let column = lower.columns[k] as usize;
                let mut across = [0.0; B];
                for (at, value) in lower.block(k).iter().enumerate() {
                    own[at / B] += value.abs();
                    across[at % B] += value.abs();
                }
                if column != row {
                    (0..B).for_each(|j| sums[column - first][j] += across[j]);
                }
            }
            for k in ghost.row(row) {
                for (at, value) in ghost.block(k).iter().enumerate() {
                    own[at / B] += value.abs();
                }
            }
            (0..B).for_each(|i| sums[row - first][i] += own[i]);
        }
        (first, sums)
    }

    /// This rank's rows of the lower half of the whole matrix, columns by global number. The whole must have fewer than
    /// 2^32 block rows.
    pub(crate) fn with_global_columns(&self) -> BlockCsr<f64, B> {
        let (lower, ghost, offset) = (&self.lower, &self.ghost, self.map.offset());
        let ghosts = self.map.ghosts();
        let n_before = ghosts.partition_point(|&global| global < offset);
        let mut row_start = vec![0];
        let mut columns = Vec::with_capacity(lower.n_blocks());
        let mut values = Vec::with_capacity(lower.n_blocks() * B * B);
        for row in 0..lower.n_rows {
            // Ghosts ascend by global number: those of lower ranks come first, those of higher ranks are above.
            for k in ghost
                .row(row)
                .take_while(|&k| (ghost.columns[k] as usize) < n_before)
            {
                columns.push(ghosts[ghost.columns[k] as usize] as u32);
                values.extend_from_slice(ghost.block(k));
            }
            for k in lower.row(row) {
                columns.push((offset + u64::from(lower.columns[k])) as u32);
                values.extend_from_slice(lower.block(k));
            }
            row_start.push(columns.len());
        }
        BlockCsr {
            n_rows: lower.n_rows,
            n_cols: self.map.n_global() as usize,
            row_start,
            columns,
            values,
        }
    }

    /// The arrays it is made of.
    pub(super) fn into_parts(self) -> Parts<B> {
        Parts {
            map: self.map,
            halo: self.halo,
            lower: self.lower,
            ghost: self.ghost,
            boundary_rows: self.boundary_rows,
        }
    }

    /// Memory of this rank's part, bytes.
    pub fn memory(&self) -> usize {
        self.lower.memory() + self.ghost.memory()
    }
}

impl<const B: usize> LinearOperator for DistMatrix<B> {
    fn n_owned(&self) -> usize {
        self.map.n_owned() * B
    }

    fn apply(&self, comm: &Comm, x: &[f64], y: &mut [f64]) {
        let exchange = self.halo.start(comm, x, B);
        spmv::multiply_symmetric(&self.lower, x, y);
        let mut ghosts = vec![0.0; self.map.n_ghosts() * B];
        self.halo.finish(comm, exchange, &mut ghosts);
        spmv::multiply_add_rows(&self.ghost, &self.boundary_rows, &ghosts, y);
    }
}

#[cfg(test)]
mod tests {
    use super::DistMatrix;
    use crate::linalg::sample::{
        distribute, laplace_grid, noise, owned_rows, spring_grid, to_sprs,
    };
    use crate::linalg::{BlockCsr, LinearOperator};
    use fem_mesh::comm::run_threads;

    fn check_product<const B: usize>(a: &BlockCsr<f64, B>) {
        let x = noise(a.n_cols * B, 1);
        let expected = &to_sprs(a) * &sprs::CsVec::new(x.len(), (0..x.len()).collect(), x.clone());
        let expected = expected.to_dense();
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let rows = owned_rows(comm, a.n_rows);
                let mine = rows.start * B..rows.end * B;
                let matrix = distribute(comm, a);
                let mut y = vec![f64::NAN; matrix.n_owned()];
                matrix.apply(comm, &x[mine.clone()], &mut y);
                for (y, expected) in y.iter().zip(expected.iter().skip(mine.start)) {
                    assert!((y - expected).abs() < 1e-13 * 26.0, "{y} {expected}");
                }
            });
        }
    }

    #[test]
    fn products_on_ranks_are_those_of_the_whole_matrix() {
        check_product(&spring_grid(7, 1.0));
        check_product(&laplace_grid(7));
    }

    #[test]
    fn boundary_rows_are_those_with_ghosts() {
        let a = laplace_grid(4);
        run_threads(2, |comm| {
            let matrix = distribute(comm, &a);
            let expected: Vec<u32> = if comm.rank() == 0 {
                (16..32).collect()
            } else {
                (0..16).collect()
            };
            assert_eq!(matrix.boundary_rows(), expected);
            assert_eq!(matrix.map().n_ghosts(), 16);
        });
    }

    #[test]
    fn norm_and_diagonal_see_all_parts() {
        // The second row has no diagonal block: `distribute` stores zeros for it.
        let skew = [[0.0, -5.0], [4.0, 0.0]];
        let a = BlockCsr::from_blocks(
            2,
            2,
            vec![
                (0, 0, [[2.0, 1.0], [1.0, 3.0]]),
                (0, 1, skew),
                (1, 0, [[0.0, 4.0], [-5.0, 0.0]]),
            ],
        );
        for n_ranks in 1..=2 {
            run_threads(n_ranks, |comm| {
                let matrix: DistMatrix<2> = distribute(comm, &a);
                assert_eq!(matrix.norm_inf(comm), 8.0);
                assert_eq!(comm.sum_u64(matrix.n_blocks() as u64), 4);
                let last = matrix.map().n_owned() - 1;
                let expected = if matrix.map().global(last) == 0 {
                    [[2.0, 1.0], [1.0, 3.0]]
                } else {
                    [[0.0; 2]; 2]
                };
                assert_eq!(matrix.diagonal_block(last), expected);
            });
        }
        let large = spring_grid(27, 3.0);
        let rows = to_sprs(&large);
        let sums = rows
            .outer_iterator()
            .map(|row| row.iter().map(|(_, v)| v.abs()).sum());
        let expected = sums.fold(0.0, f64::max);
        run_threads(2, |comm| {
            let norm = distribute(comm, &large).norm_inf(comm);
            assert!(
                (norm - expected).abs() < 1e-13 * expected,
                "{norm} {expected}"
            );
        });
    }
}
