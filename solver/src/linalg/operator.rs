//! `LinearOperator`: what a Krylov method needs to know of a matrix or of a preconditioner.
//!
//! Invariant: knows neither storage nor method.

use fem_mesh::Comm;

/// A linear map of distributed vectors: a matrix, or a preconditioner that applies its approximate inverse.
pub trait LinearOperator {
    /// Scalars of a vector that this rank owns.
    fn n_owned(&self) -> usize;

    /// Collective. y = A x, on the owned entries (`n_owned` scalars each). What `y` held before is lost.
    fn apply(&self, comm: &Comm, x: &[f64], y: &mut [f64]);
}
