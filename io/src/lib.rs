//! Case files, mesh files and result files of fem-solve.

pub mod mesh_file;
pub mod mesh_info;
pub mod case;
pub mod atomic;
pub mod case;
pub mod check;
pub mod results;
pub mod schema;
pub mod summary;
