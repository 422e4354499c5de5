//! `LinearOperator` and `Preconditioner`: what a Krylov method needs to know of a matrix and of its approximate inverse.
//!
//! Invariant: knows neither storage nor method.

use super::vector;
use fem_mesh::Comm;

/// A linear map of distributed vectors.
pub trait LinearOperator {
    /// Scalars of a vector that this rank owns.
    fn n_owned(&self) -> usize;

    /// Collective. y = A x, on the owned entries (`n_owned` scalars each). What `y` held before is lost.
    fn apply(&self, comm: &Comm, x: &[f64], y: &mut [f64]);

    /// Collective. y = A x; returns this rank's part of x.y, which a matrix may sum up on the way.
    fn apply_dot(&self, comm: &Comm, x: &[f64], y: &mut [f64]) -> f64 {
        self.apply(comm, x, y);
        vector::local_dot(x, y)
    }
}

/// An operator that applies an approximate inverse M⁻¹, symmetric positive definite up to the rounding of the precision
/// that it works in.
pub trait Preconditioner: LinearOperator {
    /// Collective. z = M⁻¹ r, where `norm` is about that of `r` over all ranks; returns this rank's parts of r.z and q.z.
    /// A caller without need of the second passes `r` for `q`.
    fn precondition(
        &self,
        comm: &Comm,
        r: &[f64],
        norm: f64,
        q: &[f64],
        z: &mut [f64],
    ) -> [f64; 2] {
        debug_assert!(norm >= 0.0, "norm of a vector");
        let rz = self.apply_dot(comm, r, z);
        let is_same = std::ptr::eq(r, q);
        [rz, if is_same { rz } else { vector::local_dot(q, z) }]
    }

    /// Becomes a better approximation at a higher price, and says how; `None` if this is the best it can do.
    fn strengthen(&mut self) -> Option<String> {
        None
    }
}
