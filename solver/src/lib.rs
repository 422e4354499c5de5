//! Distributed finite-element solver: assembly, linear algebra, analyses.

pub mod krylov;
pub mod element;
pub mod linalg;
pub mod model;
pub mod precond;
