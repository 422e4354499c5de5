//! Distributed finite-element solver: assembly, linear algebra, analyses.

pub mod assembly;
pub mod element;
pub mod krylov;
pub mod linalg;
pub mod material;
pub mod model;
pub mod post;
pub mod precond;
