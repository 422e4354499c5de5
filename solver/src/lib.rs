//! Distributed finite-element solver: assembly, linear algebra, analyses.

pub mod bandwidth;
pub mod direct;
pub mod krylov;
pub mod linalg;
pub mod model;
pub mod precond;
