//! Distributed finite-element solver: assembly, linear algebra, analyses.

pub mod element;
pub mod linalg;
pub mod model;
