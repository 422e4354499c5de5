//! Krylov methods: iterative solution of distributed linear systems.
//!
//! Invariant: knows matrices as [`crate::linalg::LinearOperator`] and their approximate inverses as
//! [`crate::linalg::Preconditioner`] only.

pub mod cg;
pub mod form;
mod iterate;
pub mod report;
#[cfg(test)]
mod test_changes;
#[cfg(test)]
mod tests;

pub use cg::{CgOptions, News, System, conjugate_gradients};
pub use form::Form;
pub use report::{MAX_RESIDUAL, ROUNDING_LEVEL, SolveReport};
