//! Case files, mesh files and result files of fem-solve.
//!
//! What goes in: files that users write. What comes out: plain data ([`case::Case`], [`fem_mesh::Mesh`]), and, the
//! other way, results and the record of a run. Every message names the file and the line or key.
//!
//! Invariant: knows no elements, no equations and no solver.

pub mod atomic;
pub mod case;
pub mod check;
pub mod deck;
pub mod mesh_file;
pub mod mesh_info;
pub mod printed;
pub mod results;
pub mod schema;
pub mod summary;
