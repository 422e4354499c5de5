//! Preconditioners: operators that apply an approximate inverse of a matrix.
//!
//! Invariant: sees numbers only, never nodes or cells.

pub mod amg;
pub mod jacobi;
pub mod rigid_body_modes;

pub use amg::{Amg, AmgOptions};
pub use jacobi::{BlockJacobi, Jacobi};
pub use rigid_body_modes::rigid_body_modes;
