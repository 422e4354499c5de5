//! Material laws.
//!
//! Invariant: one point at a time; knows no cell and no mesh.

mod isotropic;

pub use isotropic::Isotropic;
