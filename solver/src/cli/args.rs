//! The command line: what the user can type.
//!
//! Invariant: shapes and help texts only; no work is done here.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Distributed finite-element solver for large structural models.
///
/// `mpirun -n 4 fem-solve case.toml` is short for `mpirun -n 4 fem-solve run case.toml`. Started without mpirun it
/// uses all cores of this machine as threads.
///
/// Exit codes: 0 done; 1 not converged, or a check failed; 2 bad input; 3 the model cannot be solved; 4 the machine.
#[derive(Debug, Parser)]
#[command(
    name = "fem-solve",
    version,
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    /// What to do; `run` if left out.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Solve a case and write results.vtkhdf, results.hdf.series and summary.json.
    Run(RunArgs),
    /// Read and check everything, solve nothing: model summary and memory estimate.
    Check(CheckArgs),
    /// The prebuilt benchmark cases.
    Cases(CasesArgs),
    /// Run cases and hold each against its [[check]] entries.
    Verify(VerifyArgs),
    /// Look into mesh files.
    Mesh(MeshArgs),
    /// Print the JSON Schema of the case file, for editors, or its reference.
    Schema(SchemaArgs),
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The case file (case.toml), or a deck of CalculiX or Abaqus (model.inp).
    #[arg(required = true)]
    pub(crate) case: Option<PathBuf>,
    /// Directory for the results, instead of the one in the case file.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The case file (case.toml), or a deck (model.inp).
    pub(crate) case: PathBuf,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Arguments that every command about cases takes.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// Most threads each rank may use, instead of the case file's number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) threads: Option<u32>,
    /// Replace a value of the case file: `--set solver.tolerance=1e-6`. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// No progress on stderr; warnings and errors are shown all the same.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Case files, or directories that hold cases; the prebuilt cases if left out.
    pub(crate) targets: Vec<PathBuf>,
    /// Show every check, not only those that fail.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The reference of the case file in Markdown instead.
    #[arg(long)]
    pub(crate) markdown: bool,
}

/// Arguments of `cases`.
#[derive(Debug, Args)]
pub(crate) struct CasesArgs {
    #[command(subcommand)]
    pub(crate) action: Option<CasesAction>,
}

/// What to do with the prebuilt cases; `list` if left out.
#[derive(Debug, Subcommand)]
pub(crate) enum CasesAction {
    /// List them with their titles.
    List,
    /// Write a case and its mesh into a directory, to run or to change it.
    Copy {
        /// Name of the case.
        name: String,
        /// Directory to write; made if missing.
        directory: PathBuf,
    },
}

/// Arguments of `mesh`.
#[derive(Debug, Args)]
pub(crate) struct MeshArgs {
    #[command(subcommand)]
    pub(crate) action: MeshAction,
}

/// What to do with a mesh file.
#[derive(Debug, Subcommand)]
pub(crate) enum MeshAction {
    /// Counts, sets, bounding box and volume of a mesh file.
    Info {
        /// The mesh file (.msh, .inp, .vtu, .vtk, .bdf, .unv, .med, .exo).
        file: PathBuf,
    },
    /// Write a mesh with its sets in another format: .vtu, .inp or .msh; or a deck (.inp) as a case, into a directory.
    Convert {
        /// The mesh file to read.
        #[arg(value_name = "IN")]
        input: PathBuf,
        /// The mesh file to write; its extension is the format. For a deck also a directory: case.toml and mesh.inp.
        #[arg(value_name = "OUT")]
        output: PathBuf,
    },
}
