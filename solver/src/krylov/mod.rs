//! Krylov methods: iterative solution of distributed linear systems.
//!
//! Invariant: knows matrices and preconditioners as [`crate::linalg::LinearOperator`] only.

pub mod cg;
pub mod report;

pub use cg::{CgOptions, System, conjugate_gradients};
pub use report::{MAX_RESIDUAL, ROUNDING_LEVEL, SolveReport};
