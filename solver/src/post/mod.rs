//! What is computed from a displacement: strain and stress at the nodes, internal forces, energy, values at points.
//!
//! What goes in: the model and its displacement at the local nodes, ghosts included. What comes out: nodal tensors by
//! material, nodal forces, scalars.
//!
//! Invariant: reads the model and the displacement, changes neither; writes no file.

pub mod error_estimate;
pub mod hourglass;
pub mod internal_force;
pub mod invariants;
pub mod nodal;
pub mod points;
pub mod probe;
pub mod section;
pub mod stress;
#[cfg(test)]
mod test_fields;

pub use error_estimate::{error_estimate, relative_error};
pub use hourglass::seen_strain;
pub use internal_force::{internal_force, strain_energy};
pub use invariants::{principal, von_mises};
pub use nodal::{NodalTensors, compute_nodal_tensors};
pub use probe::{Location, interpolate, locate};
