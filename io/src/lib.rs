//! Case files, mesh files and result files of fem-solve.

pub mod atomic;
pub mod results;
pub mod summary;
