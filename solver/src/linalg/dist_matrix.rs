//! `DistMatrix`: a square block matrix whose rows are spread over the ranks.
//!
//! What goes in: the blocks of the owned rows, those in owned columns apart from those in ghost columns. What comes
//! out: the product with a distributed vector, where the exchange of ghost values overlaps the owned part.
//!
//! Invariant: knows numbers and ranks, not what they stand for; all of a row's blocks live on the row's owner.

use super::{BlockCsr, LinearOperator, spmv};
use fem_mesh::halo::Halo;
use fem_mesh::{Comm, IndexMap};
use rayon::prelude::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

/// Square matrix of B x B blocks over the ranks; rows and columns are distributed by the same [`IndexMap`].
pub struct DistMatrix<const B: usize> {
    map: IndexMap,
    halo: Halo,
    owned: BlockCsr<f64, B>,
    ghost: BlockCsr<f64, B>,
    boundary_rows: Vec<u32>,
}

/// What a [`DistMatrix`] is made of.
pub(super) struct Parts<const B: usize> {
    pub(super) map: IndexMap,
    pub(super) halo: Halo,
    pub(super) owned: BlockCsr<f64, B>,
    pub(super) ghost: BlockCsr<f64, B>,
    pub(super) boundary_rows: Vec<u32>,
}

impl<const B: usize> DistMatrix<B> {
    /// Collective. From the blocks of this rank's rows: `owned` in owned columns (n_owned x n_owned blocks), `ghost`
    /// in ghost columns (n_owned x n_ghosts, column g is the g-th ghost of `map`).
    ///
    /// # Panics
    /// If the sizes do not fit `map`.
    pub fn new(
        comm: &Comm,
        map: IndexMap,
        owned: BlockCsr<f64, B>,
        ghost: BlockCsr<f64, B>,
    ) -> Self {
        let (n_owned, n_ghosts) = (map.n_owned(), map.n_ghosts());
        assert_eq!(
            (owned.n_rows, owned.n_cols),
            (n_owned, n_owned),
            "block sizes of `owned`"
        );
        assert_eq!(
            (ghost.n_rows, ghost.n_cols),
            (n_owned, n_ghosts),
            "block sizes of `ghost`"
        );
        let boundary_rows = (0..n_owned as u32)
            .filter(|&row| !ghost.row(row as usize).is_empty())
            .collect();
        let halo = Halo::new(comm, &map);
        DistMatrix {
            map,
            halo,
            owned,
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

    /// Blocks in owned columns.
    pub fn owned(&self) -> &BlockCsr<f64, B> {
        &self.owned
    }

    /// Blocks in ghost columns.
    pub fn ghost(&self) -> &BlockCsr<f64, B> {
        &self.ghost
    }

    /// Owned block rows with blocks in ghost columns, ascending.
    pub fn boundary_rows(&self) -> &[u32] {
        &self.boundary_rows
    }

    /// Diagonal block of owned block row `row`; zero if it is not stored.
    pub fn diagonal_block(&self, row: usize) -> [[f64; B]; B] {
        let Some(k) = self.owned.find(row, row as u32) else {
            return [[0.0; B]; B];
        };
        let block = self.owned.block(k);
        std::array::from_fn(|i| std::array::from_fn(|j| block[i * B + j]))
    }

    /// Collective. Largest sum of absolute values of a scalar row. For a symmetric matrix it is an upper bound of the
    /// spectral norm.
    pub fn norm_inf(&self, comm: &Comm) -> f64 {
        let largest_sum = |row: usize| {
            let mut sums = [0.0; B];
            for part in [&self.owned, &self.ghost] {
                for k in part.row(row) {
                    for (i, values) in part.block(k).chunks_exact(B).enumerate() {
                        sums[i] += values.iter().map(|v| v.abs()).sum::<f64>();
                    }
                }
            }
            sums.into_iter().fold(0.0, f64::max)
        };
        let rows = (0..self.map.n_owned()).into_par_iter().with_min_len(1024);
        let largest = rows.map(largest_sum).reduce(|| 0.0, f64::max);
        comm.max(largest)
    }

    /// The arrays it is made of.
    pub(super) fn into_parts(self) -> Parts<B> {
        Parts {
            map: self.map,
            halo: self.halo,
            owned: self.owned,
            ghost: self.ghost,
            boundary_rows: self.boundary_rows,
        }
    }

    /// Memory of this rank's part, bytes.
    pub fn memory(&self) -> usize {
        self.owned.memory() + self.ghost.memory()
    }
}

impl<const B: usize> LinearOperator for DistMatrix<B> {
    fn n_owned(&self) -> usize {
        self.map.n_owned() * B
    }

    fn apply(&self, comm: &Comm, x: &[f64], y: &mut [f64]) {
        let exchange = self.halo.start(comm, x, B);
        spmv::multiply(&self.owned, x, y);
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
        let a = BlockCsr::from_blocks(
            2,
            2,
            vec![
                (0, 0, [[2.0, 1.0], [1.0, 3.0]]),
                (0, 1, [[0.0, -5.0], [0.0, 0.0]]),
                (1, 0, [[0.0; 2]; 2]),
            ],
        );
        for n_ranks in 1..=2 {
            run_threads(n_ranks, |comm| {
                let matrix: DistMatrix<2> = distribute(comm, &a);
                assert_eq!(matrix.norm_inf(comm), 8.0);
                let last = matrix.map().n_owned() - 1;
                let expected = if matrix.map().global(last) == 0 {
                    [[2.0, 1.0], [1.0, 3.0]]
                } else {
                    [[0.0; 2]; 2]
                };
                assert_eq!(matrix.diagonal_block(last), expected);
            });
        }
    }

    #[test]
    fn the_number_of_threads_does_not_change_a_bit() {
        let a = spring_grid(14, 1e3);
        let x = noise(a.n_cols * 3, 1);
        let run = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(n_threads)
                .build()
                .expect("threads start");
            pool.install(|| {
                let comm = fem_mesh::Comm::alone();
                let matrix = distribute(&comm, &a);
                let mut y = vec![0.0; x.len()];
                matrix.apply(&comm, &x, &mut y);
                y
            })
        };
        let one = run(1);
        assert_eq!(one, run(2));
        assert_eq!(one, run(3));
    }
}
