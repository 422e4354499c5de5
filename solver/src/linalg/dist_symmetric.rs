//! `DistSymmetric`: a symmetric distributed matrix, the part in owned columns in slabs, for many products.
//!
//! Invariant: only multiplies; made from a [`DistMatrix`] once nobody needs its rows any more.

use super::{BlockCsr, DistMatrix, LinearOperator, SymmetricSlabs, spmv};
use fem_mesh::halo::Halo;
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
    pub fn into_rows(self, comm: &Comm) -> DistMatrix<B> {
        DistMatrix::new(comm, self.map, self.owned.to_lower(), self.ghost)
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
        let mut ghosts = vec![0.0; self.map.n_ghosts() * B];
        self.halo.finish(comm, exchange, &mut ghosts);
        spmv::multiply_add_rows(&self.ghost, &self.boundary_rows, &ghosts, y);
    }
}

#[cfg(test)]
mod tests {
    use super::DistSymmetric;
    use crate::linalg::LinearOperator;
    use crate::linalg::sample::{distribute, noise, spring_grid};
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
                in_slabs.apply(comm, &x, &mut z);
                let rows = in_slabs.into_rows(comm);
                assert!(*rows.lower() == lower && *rows.ghost() == ghost);
                let scale = y.iter().fold(0.0, |m: f64, y| m.max(y.abs()));
                assert!(y.iter().zip(&z).all(|(y, z)| (y - z).abs() < 1e-13 * scale));
            });
        }
    }
}
