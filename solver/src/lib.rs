//! Distributed finite-element solver: assembly, linear algebra, analyses.
//!
//! [`run::run`] is the way through it: from a case file to results. The parts can be used on their own: a
//! [`model::Model`] on every rank is all that [`analysis::linear_static::solve`] needs.
//!
//! Invariant: the program's command line is not here but in `main.rs`; nothing in the library prints but [`log`].

pub mod analysis;
pub mod assembly;
pub mod bandwidth;
pub mod conditions;
pub mod direct;
pub mod element;
pub mod formulations;
pub mod input;
pub mod inspect;
pub mod joints;
pub mod krylov;
pub mod linalg;
pub mod links;
pub mod log;
pub mod material;
pub mod model;
pub mod output;
pub mod parallel;
pub mod post;
pub mod precond;
pub mod print;
pub mod probes;
pub mod resolve;
pub mod restraint;
pub mod run;
