//! The case file: what the user asks for, as plain data.
//!
//! In goes the text of a `case.toml` (with the overrides of the command line), out comes a [`Case`] whose values are
//! complete and in range: defaults filled in, one kind of load per load, every number finite. What can only be judged
//! beside the mesh (do the sets exist?) is left to [`crate::check`].
//!
//! Invariant: knows no mesh, no rank and no solver; the defaults of the program live here and nowhere else.

mod build;
mod build_links;
mod build_material;
mod build_steps;
mod consistency;
mod items;
pub(crate) mod keys;
mod link_tables;
mod links;
mod material;
mod options;
mod origin;
mod overrides;
mod reader;
mod steps;
pub(crate) mod tables;
mod tree;
pub(crate) mod words;

pub use items::{
    Check, ConstraintInput, ElementInput, LoadInput, LoadKind, PrintKind, PrintQuantity,
    PrintRequest, PrintTotals, Probe, ProbeAt, Selection, SetDefinition,
};
pub use links::{
    CouplingInput, CouplingKind, CyclicInput, EquationInput, LinkInputs, MpcInput, MpcKind,
    NodeInput, NodeRef, RigidBodyInput, SystemInput, TermInput, TieInput, TransformInput,
};
pub use material::{
    AtTemperature, ElasticInput, LinearField, MaterialInput, OrientationInput, OrientationSystem,
    Stiffness, TemperatureInput, TemperatureValue,
};
pub use options::{
    Analysis, AnalysisKind, Balance, BoxInput, Field, Formulation, MeshInput, MeshSource, Method,
    OutputOptions, ParallelOptions, Partitioner, Preconditioner, Reductions, SolverOptions,
};

pub use steps::{AmplitudeInput, AmplitudeTime, Frame, StepInput, StepOp};

pub use origin::Origins;
pub(crate) use origin::{ORIGIN, plain_text};
pub use overrides::{load_text, with_overrides};

use fem_mesh::{Error, Result};
use std::path::{Path, PathBuf};

/// Where an item of the case was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// 0: the case file; `k` > 0: the `k`-th override of the command line.
    pub source: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// Everything a case file says, with its defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The case file.
    pub path: PathBuf,
    /// The `KEY=VALUE` overrides of the command line, in order.
    pub overrides: Vec<String>,
    /// Lines of the deck that the case was made of; empty if it was not.
    pub origins: Origins,
    /// Title, empty by default.
    pub title: String,
    /// Label of the unit set, echoed only; empty by default.
    pub units: String,
    /// Where the mesh comes from.
    pub mesh: MeshInput,
    /// What is computed.
    pub analysis: Analysis,
    /// At least one.
    pub materials: Vec<MaterialInput>,
    /// Formulations of elements; those named nowhere are integrated fully.
    pub elements: Vec<ElementInput>,
    /// Axes of material; elements without have the global ones.
    pub orientations: Vec<OrientationInput>,
    /// Prescribed values.
    pub constraints: Vec<ConstraintInput>,
    /// What joins degrees of freedom.
    pub links: LinkInputs,
    /// Loads; none is legal.
    pub loads: Vec<LoadInput>,
    /// Temperatures of nodes.
    pub temperatures: Vec<TemperatureInput>,
    /// Steps; a case without is one step.
    pub steps: Vec<StepInput>,
    /// Factors of loads and constraints by time.
    pub amplitudes: Vec<AmplitudeInput>,
    /// Tables of the `.dat` file.
    pub prints: Vec<PrintRequest>,
    /// Sets defined by geometry.
    pub sets: Vec<SetDefinition>,
    /// How the system is solved.
    pub solver: SolverOptions,
    /// How ranks and threads are used.
    pub parallel: ParallelOptions,
    /// What is written.
    pub output: OutputOptions,
    /// Values to report.
    pub probes: Vec<Probe>,
    /// Expected values of probes.
    pub checks: Vec<Check>,
}

impl Case {
    /// An input error at `place`: in the case file, or in the override that set the value.
    pub fn error_at(&self, place: Place, what: impl Into<String>) -> Error {
        self.place_on(Error::input(what), place)
    }

    /// The error with `place` put on it.
    pub fn place_on(&self, error: Error, place: Place) -> Error {
        let error = located(error, &self.path, &self.overrides, place);
        self.origins.relocated(&self.path, error)
    }
}

/// Makes the case out of `text`, as [`load_text`] returns it. `path` is where the text came from: messages name it, and
/// a relative mesh file is looked for beside it.
///
/// # Errors
/// TOML syntax, unknown key, wrong type, missing key, value out of range, or entries that contradict one another.
pub fn parse(path: &Path, text: &str) -> Result<Case> {
    let mut parts = text.split(overrides::SEPARATOR);
    let text = parts.next().unwrap_or_default();
    let given: Vec<String> = parts.map(str::to_owned).collect();
    let origins = Origins::of(text);
    let mut case = parse_text(path, text, given).map_err(|e| origins.relocated(path, e))?;
    case.origins = origins;
    Ok(case)
}

fn parse_text(path: &Path, text: &str, given: Vec<String>) -> Result<Case> {
    let source = tree::Source {
        path,
        overrides: &given,
    };
    let mut table = tree::parse(&source, text)?;
    for k in 1..=given.len() {
        overrides::apply(&source, k, &mut table)?;
    }
    build::case(source, &table)
}

/// Puts `place` on an error.
fn located(error: Error, path: &Path, overrides: &[String], place: Place) -> Error {
    match place.source.checked_sub(1).and_then(|k| overrides.get(k)) {
        Some(text) => error.in_file(format!("--set {text}")),
        None if place.line == 0 => error.in_file(path),
        None => error
            .in_file(path)
            .at_line(place.line)
            .at_column(place.column),
    }
}

#[cfg(test)]
mod tests;
