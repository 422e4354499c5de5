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
//! Several frames: see [`ResultWriter`].
//!
//! Invariant: knows no equations and computes nothing; what it is given is what the file holds.

mod frames;
mod hdf;
mod part;
mod views;

pub use frames::ResultWriter;
pub use part::{ELEMENT_ID, Field, NODE_ID, PartData, Values};

use fem_mesh::{Comm, Result};
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
    frames::ResultWriter::create(comm, directory, part.clone(), 1, options)?.finish(comm)
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
