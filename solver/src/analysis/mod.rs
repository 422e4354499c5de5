//! Analyses: what is computed from a model. One file each, each a function of the ranks and the model.
//!
//! Invariant: an analysis orders the steps; the numerics are in the modules it calls.

pub mod corner_parents;
pub mod linear_solve;
pub mod linear_static;
