//! Case files, mesh files and result files of fem-solve.

pub mod case;
pub mod check;
pub mod schema;
