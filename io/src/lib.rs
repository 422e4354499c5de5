//! Case files, mesh files and result files of fem-solve.

pub mod case;
pub mod atomic;
pub mod results;
pub mod summary;
pub mod check;
pub mod schema;
