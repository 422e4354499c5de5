//! Distributed finite-element solver: assembly, linear algebra, analyses.

pub mod linalg;
pub mod model;
