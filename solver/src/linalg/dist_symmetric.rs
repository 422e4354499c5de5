//! `DistSymmetric`: a symmetric distributed matrix, the part in owned columns in slabs, for many products.
//!
//! Invariant: only multiplies; made from a [`DistMatrix`] once nobody needs its rows any more.

use super::{BlockCsr, DistMatrix, LinearOperator, SymmetricSlabs, spmv};
use fem_mesh::halo::{Halo, HaloExchange};
use fem_mesh::{Comm, IndexMap};

/// Symmetric matrix of B x B blocks over the ranks.
pub struct DistSymmetric<const B: usize> {
    map: IndexMap,
    halo: Halo,
    owned: SymmetricSlabs<f64, B>,
    ghost: BlockCsr<f64, B>,
    boundary_rows: Vec<u32>,
}

impl<const B: usize> DistSymmetric<B> {
    /// Takes the blocks of a matrix; its memory is given back on the way.
    pub fn new(matrix: DistMatrix<B>) -> Self {
        let parts = matrix.into_parts();
        DistSymmetric {
            map: parts.map,
            halo: parts.halo,
            owned: SymmetricSlabs::consume(parts.lower),
            ghost: parts.ghost,
            boundary_rows: parts.boundary_rows,
        }
    }

    /// Collective. The matrix by rows again.
    pub fn to_rows(&self, comm: &Comm) -> DistMatrix<B> {
        let (map, ghost) = (self.map.clone(), self.ghost.clone());
        DistMatrix::new(comm, map, self.owned.to_lower(), ghost)
    }

    /// Distribution of the block rows and columns.
    pub fn map(&self) -> &IndexMap {
        &self.map
    }

    /// Memory of this rank's part, bytes.
    pub fn memory(&self) -> usize {
        self.owned.memory() + self.ghost.memory()
    }
}

impl<const B: usize> LinearOperator for DistSymmetric<B> {
    fn n_owned(&self) -> usize {
        self.map.n_owned() * B
    }

    fn apply(&self, comm: &Comm, x: &[f64], y: &mut [f64]) {
        let exchange = self.halo.start(comm, x, B);
        self.owned.apply(x, y);
        self.add_ghosts(comm, exchange, y);
    }

    fn apply_dot(&self, comm: &Comm, x: &[f64], y: &mut [f64]) -> f64 {
        let exchange = self.halo.start(comm, x, B);
        let owned = self.owned.apply_dot(x, y);
        // What the ghost columns add to x.y is seen on the rows that have some.
        let before = self.dot_at_boundary(x, y);
        self.add_ghosts(comm, exchange, y);
        owned + (self.dot_at_boundary(x, y) - before)
    }
}

impl<const B: usize> DistSymmetric<B> {
    /// Collective. y += G x, where G are the blocks in ghost columns, once the values have arrived.
    fn add_ghosts(&self, comm: &Comm, exchange: HaloExchange<f64>, y: &mut [f64]) {
        let mut ghosts = vec![0.0; self.map.n_ghosts() * B];
        self.halo.finish(comm, exchange, &mut ghosts);
        spmv::multiply_add_rows(&self.ghost, &self.boundary_rows, &ghosts, y);
    }

    /// x.y over the rows with blocks in ghost columns.
    fn dot_at_boundary(&self, x: &[f64], y: &[f64]) -> f64 {
        let rows = self.boundary_rows.iter().map(|&row| row as usize * B);
        rows.flat_map(|first| first..first + B)
            .map(|i| x[i] * y[i])
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::DistSymmetric;
    use crate::linalg::sample::{distribute, noise, spring_grid};
    use crate::linalg::{LinearOperator, vector};
    use fem_mesh::comm::run_threads;

    #[test]
    fn products_are_those_of_the_rows() {
        let a = spring_grid(9, 10.0);
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let matrix = distribute(comm, &a);
                let x = noise(matrix.n_owned(), 7 + comm.rank() as u64);
                let (mut y, mut z) = (vec![0.0; x.len()], vec![0.0; x.len()]);
                matrix.apply(comm, &x, &mut y);
                let (lower, ghost) = (matrix.lower().clone(), matrix.ghost().clone());
                let in_slabs = DistSymmetric::new(matrix);
                let xz = in_slabs.apply_dot(comm, &x, &mut z);
                assert!((xz - vector::local_dot(&x, &z)).abs() < 1e-12 * xz.abs().max(1.0));
                let with_dot = z.clone();
                in_slabs.apply(comm, &x, &mut z);
                assert_eq!(z, with_dot);
                let rows = in_slabs.to_rows(comm);
                assert!(*rows.lower() == lower && *rows.ghost() == ghost);
                let scale = y.iter().fold(0.0, |m: f64, y| m.max(y.abs()));
                assert!(y.iter().zip(&z).all(|(y, z)| (y - z).abs() < 1e-13 * scale));
            });
        }
    }
}
