//! `GaussSeidel`: symmetric block Gauss-Seidel in single precision, the smoother of every level.
//!
//! The sweeps are those of [`SymmetricSlabs`]: Gauss-Seidel within slabs of rows, Jacobi between slabs. Blocks in
//! columns of other ranks are one more such coupling. Half the absolute row sums of all couplings that the sweeps
//! ignore are added to the diagonal they divide by, so that sweeps converge for every positive definite matrix.
//!
//! Invariant: the order of the sweeps depends on the matrix only, never on the number of threads.

use crate::linalg::symmetric::Damping;
use crate::linalg::{BlockCsr, DistMatrix, LinearOperator, SymmetricSlabs};
use fem_mesh::{Comm, Halo};

/// The smoother of one level.
pub(super) struct GaussSeidel<const B: usize> {
    owned: SymmetricSlabs<f32, B>,
    /// Blocks in ghost columns, and the rows that have some.
    ghost: BlockCsr<f32, B>,
    boundary_rows: Vec<u32>,
    halo: Halo,
}

impl<const B: usize> GaussSeidel<B> {
    /// The smoother of `a`.
    pub(super) fn new(a: &DistMatrix<B>) -> Self {
        GaussSeidel {
            owned: SymmetricSlabs::with_outside(a.lower(), a.ghost(), Damping::L1),
            ghost: a.ghost().to_scalar(),
            boundary_rows: a.boundary_rows().to_vec(),
            halo: a.halo().clone(),
        }
    }

    /// Collective. One forward sweep for A x = b from x = 0, and what it leaves: r = b - A x.
    pub(super) fn pre(&self, comm: &Comm, b: &[[f32; B]], x: &mut [[f32; B]], r: &mut [[f32; B]]) {
        let flat = (b.as_flattened(), x.as_flattened_mut(), r.as_flattened_mut());
        self.owned.forward_from_zero(flat.0, flat.1, flat.2);
        self.add_ghosts(comm, x, r, -1.0);
    }

    /// Collective. One backward sweep for A e = r from e = v, then x += e. `r` is used up.
    pub(super) fn post(&self, comm: &Comm, v: &[[f32; B]], r: &mut [[f32; B]], x: &mut [[f32; B]]) {
        self.add_ghosts(comm, v, r, -1.0);
        let flat = (v.as_flattened(), x.as_flattened_mut(), r.as_flattened_mut());
        self.owned.backward(flat.0, flat.1, flat.2);
    }

    /// Collective. One more forward sweep on `x` with what the one before left, r = b - A x, and what this one leaves.
    pub(super) fn pre_again(&self, comm: &Comm, x: &mut [[f32; B]], r: &mut [[f32; B]]) {
        let b = r.to_vec();
        let mut more = vec![[0.0; B]; b.len()];
        self.pre(comm, &b, &mut more, r);
        for (x, more) in x.as_flattened_mut().iter_mut().zip(more.as_flattened()) {
            *x += more;
        }
    }

    /// Collective. One more backward sweep, before the last: for A e = r on `v`.
    pub(super) fn before_post(&self, comm: &Comm, v: &mut [[f32; B]], r: &[[f32; B]]) {
        let mut used_up = r.to_vec();
        let mut next = vec![[0.0; B]; v.len()];
        self.post(comm, v, &mut used_up, &mut next);
        v.copy_from_slice(&next);
    }

    /// Collective. y = A x.
    pub(super) fn multiply(&self, comm: &Comm, x: &[[f32; B]], y: &mut [[f32; B]]) {
        self.owned.apply(x.as_flattened(), y.as_flattened_mut());
        self.add_ghosts(comm, x, y, 1.0);
    }

    /// Collective. y += sign G x, where G are the blocks in ghost columns.
    fn add_ghosts(&self, comm: &Comm, x: &[[f32; B]], y: &mut [[f32; B]], sign: f32) {
        let mut ghosts = vec![[0.0; B]; self.ghost.n_cols];
        self.halo
            .forward(comm, x.as_flattened(), ghosts.as_flattened_mut(), B);
        for &row in &self.boundary_rows {
            let mut sum = [0.0; B];
            for k in self.ghost.row(row as usize) {
                let x = &ghosts[self.ghost.columns[k] as usize];
                for (sum, values) in sum.iter_mut().zip(self.ghost.block(k).chunks_exact(B)) {
                    *sum += values.iter().zip(x).map(|(a, x)| a * x).sum::<f32>();
                }
            }
            let y = &mut y[row as usize];
            (0..B).for_each(|c| y[c] += sign * sum[c]);
        }
    }

    /// Memory, bytes.
    pub(super) fn memory(&self) -> usize {
        self.owned.memory() + self.ghost.memory()
    }
}

/// The matrix of a smoother, for vectors in double precision.
impl<const B: usize> LinearOperator for GaussSeidel<B> {
    fn n_owned(&self) -> usize {
        self.owned.n_rows() * B
    }

    fn apply(&self, comm: &Comm, x: &[f64], y: &mut [f64]) {
        let x: Vec<[f32; B]> = (x.as_chunks::<B>().0.iter())
            .map(|x| x.map(|x| x as f32))
            .collect();
        let mut product = vec![[0.0; B]; x.len()];
        self.multiply(comm, &x, &mut product);
        for (y, value) in y.iter_mut().zip(product.as_flattened()) {
            *y = f64::from(*value);
        }
    }
}
