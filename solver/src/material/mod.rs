//! Material laws.
//!
//! Invariant: one point at a time; knows no cell and no mesh.

mod elastic;
mod isotropic;

pub use elastic::Elastic;
pub use isotropic::Isotropic;
