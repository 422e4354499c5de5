//! Finite elements: shape functions, quadrature, geometry of a cell and the stiffness of solid elements: of isotropic
//! displacement elements in batches ([`solid`]), of all formulations and laws one by one ([`general`]).
//!
//! Invariant: works on the numbers of single cells; knows neither meshes nor ranks.

mod affine;
pub mod formulation;
pub mod general;
pub mod geometry;
pub mod hourglass;
mod lanes;
pub mod quadrature;
pub mod shape;
pub mod solid;
#[cfg(test)]
pub(crate) mod test_cells;

pub use fem_io::case::Formulation;
pub use general::GeneralElement;
pub use hourglass::Hourglass;
pub use quadrature::{Purpose, Tabulation};
pub use shape::MAX_NODES;
pub use solid::StiffnessKernel;
