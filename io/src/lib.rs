//! Case files, mesh files and result files of fem-solve.

pub mod mesh_file;
pub mod mesh_info;
