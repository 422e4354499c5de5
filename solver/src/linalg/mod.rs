//! Sparse matrices and vectors of the solver, on one rank and over ranks.
//!
//! A distributed vector is a plain slice of this rank's owned entries; ghosts live in the halo buffer of whoever
//! needs them.
//!
//! Invariant: numbers only; knows no cell, element, material or case.

pub mod block_csr;
pub mod dist_matrix;
pub mod dist_symmetric;
pub(crate) mod interpolation;
mod lanes;
pub mod operator;
pub mod pages;
pub mod scalar;
mod scratch;
pub mod spmv;
pub mod symmetric;
pub mod upper;
pub mod vector;
pub(crate) mod vectorize;

#[cfg(test)]
pub(crate) mod sample;

pub use block_csr::BlockCsr;
pub use dist_matrix::DistMatrix;
pub use dist_symmetric::DistSymmetric;
pub use operator::{LinearOperator, Preconditioner};
pub use scalar::Scalar;
pub use symmetric::SymmetricSlabs;
pub use upper::{Upper, UpperBlock};
