//! Analyses: what is computed from a model. One file each, each a function of the ranks and the model.
//!
//! Invariant: an analysis orders the steps; the numerics are in the modules it calls.

pub mod linear_static;
pub mod linear_solve;
