//! Preconditioners: operators that apply an approximate inverse of a matrix.
//!
//! Invariant: sees numbers only, never nodes or cells.

pub mod jacobi;

pub use jacobi::{BlockJacobi, Jacobi};
