//! Material laws: elastic constants and thermal expansion, by temperature and direction.
//!
//! In go the constants of the case; out come, at a temperature and in given axes, the numbers that elements multiply.
//! Stress and strain are xx yy zz xy yz zx with engineering shear strains.
//!
//! Invariant: one point at a time; knows no cell and no mesh.

mod curve;
mod elastic;
mod isotropic;
mod law;
mod orientation;

pub use elastic::{Elastic, rotate_strain};
pub use isotropic::Isotropic;
pub use law::Law;
pub use orientation::{Axes, Orientation};
