//! After the solution: strains, stresses, energy, reactions and values at points.
//!
//! Invariant: reads the model and a displacement field; changes neither.

pub mod invariants;
pub mod nodal;
pub mod probe;
pub mod reaction;
pub mod stress;

pub use nodal::{NodalField, Quantity, nodal_field};
pub use probe::{Located, locate};
pub use reaction::{internal_force, strain_energy};
pub use stress::Solution;
