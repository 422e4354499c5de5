//! From a model to the linear system of this rank's rows: pattern, threaded element loop, loads, constraints.
//!
//! Every cell that touches an owned node is held locally, so that no value of the system is communicated. Threads own
//! slabs of rows; a row's contributions are added in ascending order of cells, whatever the number of threads.
//!
//! Invariant: makes the system, does not solve it.

pub mod constraints;
pub mod elimination;
pub mod loads;
mod merge;
pub mod pattern;
pub mod slabs;
pub mod stiffness;
#[cfg(test)]
pub(crate) mod test_models;

pub use constraints::constrain;
pub use elimination::{Elimination, fixed_as_owners_say};
pub use loads::{add_initial_force, external_force, face_area};
pub use pattern::{BlockRows, Pattern};
pub use slabs::Slabs;
pub use stiffness::assemble_stiffness;
