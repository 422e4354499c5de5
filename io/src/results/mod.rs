//! The result file `results.vtkhdf`, written by all ranks together, and `results.hdf.series`, by which older
//! ParaView opens it.
//!
//! One frame in VTKHDF 1.0 (the file format of VTK's `vtkHDFReader`): an unstructured grid of one partition a rank.
//! All integers of the mesh are i64, all quantities f64:
//!
//! ```text
//! /VTKHDF                    attributes Version = [1, 0], Type = "UnstructuredGrid"
//!   NumberOfPoints           [ranks], as NumberOfCells and NumberOfConnectivityIds
//!   Points                   [points, 3]
//!   Connectivity             points of each cell, counted from 0 in each partition
//!   Offsets                  [cells + ranks]: in each partition from 0 to its number of connectivity entries
//!   Types                    [cells], u8
//!   PointData/, CellData/    a dataset for each field: [points] or [points, components]
//! ```
//!
//! Invariant: knows no equations and computes nothing; what it is given is what the file holds.

mod hdf;
mod part;

pub use part::{ELEMENT_ID, Field, NODE_ID, PartData, Values};

use crate::atomic::{
    Unfinished, disk_error, prepare_directory, reserve_space, write_text_atomically,
};
use fem_mesh::{Comm, Result};
use hdf::DataFile;
use std::path::{Path, PathBuf};

/// Name of the result file in the output directory.
pub const RESULTS_FILE: &str = "results.vtkhdf";
/// Name of the file beside it that ParaView 5.10 and 5.11 open.
pub const SERIES_FILE: &str = "results.hdf.series";

/// Room for what the file holds beside the values, bytes; more than enough for a hundred fields.
const METADATA_BYTES: u64 = 1 << 17;

/// How the result file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Level of gzip compression, 1 to 9; 0, the default, writes plain arrays, several times faster.
    pub deflate: u8,
    /// Largest piece that a rank writes or sends at once, bytes; MPI counts to 2^31.
    pub max_piece_bytes: usize,
}

impl Default for WriteOptions {
    fn default() -> Self {
        WriteOptions {
            deflate: 0,
            max_piece_bytes: 1 << 30,
        }
    }
}

/// Collective. Writes `results.vtkhdf` and `results.hdf.series` into `directory`, made if it is missing; returns the
/// path of the first. Both appear complete or not at all, in place of earlier ones.
///
/// # Errors
/// Model: a quantity is not finite. Input: the directory is a file. Machine: it cannot be written, or the disk is full.
pub fn write_results(comm: &Comm, directory: &Path, part: &PartData) -> Result<PathBuf> {
    write_results_with(comm, directory, part, WriteOptions::default())
}

/// Collective. As [`write_results`], with options.
///
/// # Errors
/// As [`write_results`].
pub fn write_results_with(
    comm: &Comm,
    directory: &Path,
    part: &PartData,
    options: WriteOptions,
) -> Result<PathBuf> {
    part.check(comm)?;
    prepare_directory(comm, directory)?;
    let path = directory.join(RESULTS_FILE);
    let unfinished = comm.is_root().then(|| Unfinished::new(&path));
    let name = unfinished
        .as_ref()
        .map_or_else(String::new, Unfinished::temporary_name);
    let temporary = directory.join(comm.broadcast_text(name));
    write_frame(comm, &temporary, part, options).map_err(|e| e.in_file(&path))?;
    let published = match unfinished {
        Some(file) => file.publish().and_then(|()| {
            write_text_atomically(
                &directory.join(SERIES_FILE),
                &series(&[(RESULTS_FILE, 0.0)]),
            )
        }),
        None => Ok(()),
    };
    comm.all_ok(published)?;
    Ok(path)
}

/// Collective. Writes the whole file under its temporary name.
fn write_frame(comm: &Comm, path: &Path, part: &PartData, options: WriteOptions) -> Result<()> {
    let file = DataFile::create(comm, path, options)?;
    let n_bytes = METADATA_BYTES + comm.sum_u64(part.n_bytes());
    comm.all_ok(if comm.is_root() {
        reserve_space(path, n_bytes).map_err(|e| disk_error(path, &e))
    } else {
        Ok(())
    })?;
    file.describe(comm, hdf::mark_as_vtkhdf)?;
    file.put(
        comm,
        "VTKHDF/NumberOfPoints",
        1,
        &[part.points.len() as i64],
    )?;
    file.put(comm, "VTKHDF/NumberOfCells", 1, &[part.n_cells() as i64])?;
    file.put(
        comm,
        "VTKHDF/NumberOfConnectivityIds",
        1,
        &[part.connectivity.len() as i64],
    )?;
    file.put(
        comm,
        "VTKHDF/Points",
        3,
        bytemuck::cast_slice::<[f64; 3], f64>(&part.points),
    )?;
    file.put(comm, "VTKHDF/Connectivity", 1, &part.connectivity)?;
    file.put(comm, "VTKHDF/Offsets", 1, &part.offsets)?;
    file.put(comm, "VTKHDF/Types", 1, &part.types)?;
    for (group, fields) in [
        ("PointData", &part.point_fields),
        ("CellData", &part.cell_fields),
    ] {
        for field in fields {
            let name = format!("VTKHDF/{group}/{}", field.name);
            match &field.values {
                Values::F64(values) => file.put(comm, &name, field.components, values)?,
                Values::I64(values) => file.put(comm, &name, field.components, values)?,
                Values::I32(values) => file.put(comm, &name, field.components, values)?,
            }
        }
    }
    file.close(comm)
}

/// Text of a series file: names, relative to it, and times of the frames.
fn series(frames: &[(&str, f64)]) -> String {
    let files: Vec<_> = frames
        .iter()
        .map(|(name, time)| serde_json::json!({ "name": name, "time": time }))
        .collect();
    serde_json::json!({ "file-series-version": "1.0", "files": files }).to_string()
}

#[cfg(test)]
mod tests;
