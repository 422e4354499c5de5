//! The steps of a run, in order: case, mesh, partition, model, solution, results. Start reading here.
//!
//! Invariant: straight-line code that calls the parts; no numerics of its own.

use crate::analysis::linear_static;
use crate::log::{Log, peak_memory_mib};
use crate::model::Model;
use crate::{input, output, parallel, resolve, restraint};
use fem_io::case::{self, AnalysisKind, Case};
use fem_io::summary::{Memory, MeshSummary, Status, Summary, Times};
use fem_io::{atomic, results};
use fem_mesh::{CellType, Comm, Error, Halo, LocalMesh, Result};
use std::path::{Path, PathBuf};

/// What the user asked for on the command line.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The case file.
    pub case: PathBuf,
    /// Directory of the results, if not the case's own.
    pub output: Option<PathBuf>,
    /// `KEY=VALUE` changes of the case.
    pub overrides: Vec<String>,
    /// Ceiling on the threads of a rank, if not the case's own.
    pub threads: Option<usize>,
}
