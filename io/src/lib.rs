//! Case files, mesh files and result files of fem-solve.

pub mod case;
