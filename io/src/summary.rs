//! `Summary`: the machine-readable record of a run, `summary.json` in the output directory.
//!
//! All keys are there in every summary, also in that of a run that failed: what was not reached has its empty value.
//! Numbers that are not finite are written as `null`.
//!
//! Invariant: plain data with the names that scripts of users rely on; computes nothing.

use crate::atomic::write_text_atomically;
use fem_mesh::{Error, ErrorKind, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name of the summary in the output directory.
pub const SUMMARY_FILE: &str = "summary.json";

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Solved to the tolerance.
    Converged,
    /// Results written, but the tolerance was not reached.
    NotConverged,
    /// Ended by an error; see `error`.
    #[default]
    Failed,
    /// Read and checked only.
    Checked,
}

/// The record of a run. `Summary::default()` is that of a run that has got nowhere yet: failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Summary {
    /// Name and version of the program.
    pub program: String,
    pub title: String,
    /// The case's label of its unit set.
    pub units: String,
    pub status: Status,
    /// Exit code of the program.
    pub exit_code: i32,
    /// The message printed, if the run failed.
    pub error: Option<String>,
    /// What the user should know though the run went on.
    pub warnings: Vec<String>,
    /// Type of analysis: `static`, ...
    pub analysis: String,
    pub mesh: MeshSummary,
    /// Number of degrees of freedom, prescribed ones included.
    pub dofs: u64,
    pub parallel: ParallelSummary,
    pub partition: PartitionSummary,
    pub solver: SolverSummary,
    pub time_s: Times,
    pub memory_mib: Memory,
    pub results: ResultSummary,
    /// Modes found; empty unless the analysis looks for them.
    pub modes: Vec<Mode>,
    pub probes: Vec<Probe>,
    pub checks: Vec<Check>,
    /// The steps, of a case that has any; `results` and `solver` are those of the last.
    pub steps: Vec<StepSummary>,
}

/// A step at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct StepSummary {
    pub name: String,
    /// Time at its end.
    pub time: f64,
    /// Frames in the result file.
    pub frames: usize,
    /// Iterations of all its frames.
    pub iterations: u64,
    /// Matrices set up for it; 0 if that of the step before served.
    pub set_ups: usize,
    pub results: ResultSummary,
}

/// The mesh solved on, orphan nodes left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct MeshSummary {
    pub nodes: u64,
    pub elements: u64,
    /// Number of elements of each type, by the type's name.
    pub by_type: BTreeMap<String, u64>,
}

/// Ranks and threads used.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct ParallelSummary {
    pub ranks: usize,
    pub threads_per_rank: usize,
    pub hosts: usize,
    /// Why these numbers.
    pub decision: String,
}

/// How the mesh was divided.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct PartitionSummary {
    pub method: String,
    /// Largest load of a rank over the mean.
    pub imbalance: f64,
    /// Cell faces between different ranks.
    pub edge_cut: u64,
    /// Ghost nodes of the rank that has most.
    pub halo_nodes_max: u64,
}

/// How the system was solved.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct SolverSummary {
    pub method: String,
    pub preconditioner: String,
    /// Why this method.
    pub reason: String,
    /// What `true_residual` was to reach.
    pub tolerance: f64,
    pub iterations: u64,
    /// ‖b-Ax‖/‖b‖, recomputed from the matrix.
    pub true_residual: f64,
    /// ‖b-Ax‖/(‖A‖‖x‖+‖b‖).
    pub backward_error: f64,
    /// Relative residual after each iteration, the initial one first.
    pub history: Vec<f64>,
    /// Levels of a multigrid preconditioner, finest first.
    pub levels: Vec<Level>,
    /// Stored scalars of all levels over those of the matrix; 0 without multigrid.
    pub operator_complexity: f64,
    /// Memory of all levels, MiB.
    pub levels_mib: f64,
}

/// One level of a multigrid preconditioner.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Level {
    pub rows: u64,
    pub nonzeros: u64,
    /// Memory of smoother, interpolation and vectors, or of the factor of the last level, summed over ranks.
    pub memory_mib: f64,
}

/// Wall time of each step, seconds, of the slowest rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Times {
    pub read: f64,
    pub partition: f64,
    pub assemble: f64,
    pub setup: f64,
    pub solve: f64,
    pub recover: f64,
    pub write: f64,
    pub total: f64,
}

/// Memory used, MiB.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Memory {
    /// Largest resident memory of each rank's process.
    pub peak_per_rank: Vec<f64>,
    /// Their sum.
    pub peak_total: f64,
}

/// The results in a few numbers, in the units of the case.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct ResultSummary {
    /// Largest length of a nodal displacement.
    pub max_displacement: f64,
    /// Where that is.
    pub max_displacement_at: Option<NodePlace>,
    /// Largest nodal von Mises stress.
    pub max_von_mises: f64,
    /// Where that is.
    pub max_von_mises_at: Option<NodePlace>,
    pub strain_energy: f64,
    pub reaction_sum: [f64; 3],
    pub load_sum: [f64; 3],
    /// Sum of the forces by which constraints between nodes act on the model, if it has any: zero unless they hold against
    /// the ground, as equations with unbalanced coefficients and cyclic symmetry do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint_sum: Option<[f64; 3]>,
    /// Length of the sum of reactions, loads and forces of constraints, relative to the largest sum of magnitudes.
    pub balance_error: f64,
    /// Estimated error of the stresses in the energy norm, relative to that of the solution (Zienkiewicz and Zhu 1987); 0
    /// unless the field `error_estimate` is asked for.
    pub error_estimate: f64,
}

/// A node of the mesh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct NodePlace {
    /// Its number in the input.
    pub node: u64,
    /// Its coordinates before loading.
    pub at: [f64; 3],
}

/// A vibration mode.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Mode {
    pub frequency_hz: f64,
}

/// The value found at a probe.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Probe {
    pub name: String,
    /// Name of the field.
    pub field: String,
    #[serde(flatten)]
    pub place: ProbePlace,
    pub value: ProbeValue,
}

/// Where a probe looks: the key `at` with a point, or `set` with a name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbePlace {
    /// A point.
    At([f64; 3]),
    /// The nodes of a set.
    Set(String),
}

/// A number for a scalar field, a list for one with components.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ProbeValue {
    /// Of a scalar field.
    Scalar(f64),
    /// Of a field with components.
    Components(Vec<f64>),
}

/// A probe held against the value that its case expects.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Check {
    pub probe: String,
    /// Component of the probe's field, from 0; `None` for a scalar.
    pub component: Option<usize>,
    pub value: f64,
    pub expected: f64,
    /// Relative error; absolute where 0 is expected.
    pub error: f64,
    /// Largest error that passes.
    pub tolerance: f64,
    pub pass: bool,
    /// Where the expected value comes from.
    pub source: String,
}

impl Default for Summary {
    fn default() -> Self {
        Summary {
            program: concat!("fem-solve ", env!("CARGO_PKG_VERSION")).to_owned(),
            title: String::new(),
            units: String::new(),
            status: Status::Failed,
            exit_code: ErrorKind::Machine.exit_code(),
            error: None,
            warnings: Vec::new(),
            analysis: String::new(),
            mesh: MeshSummary::default(),
            dofs: 0,
            parallel: ParallelSummary::default(),
            partition: PartitionSummary::default(),
            solver: SolverSummary::default(),
            time_s: Times::default(),
            memory_mib: Memory::default(),
            results: ResultSummary::default(),
            modes: Vec::new(),
            probes: Vec::new(),
            checks: Vec::new(),
            steps: Vec::new(),
        }
    }
}

impl Summary {
    /// Records the error that ended the run, with its exit code.
    pub fn record_failure(&mut self, error: &Error) {
        self.status = match error.kind() {
            ErrorKind::NotConverged => Status::NotConverged,
            _ => Status::Failed,
        };
        self.exit_code = error.exit_code();
        self.error = Some(error.to_string());
    }

    /// The JSON text, with a line end.
    pub fn to_json(&self) -> String {
        // Maps with text keys and plain values: nothing that JSON could not hold.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Writes `summary.json` into an existing directory, complete or not at all; returns its path. Not collective:
    /// rank 0 calls it, so that it can also be called after an error.
    ///
    /// # Errors
    /// Of the machine: the directory is missing or cannot be written.
    pub fn write(&self, directory: &Path) -> Result<PathBuf> {
        let path = directory.join(SUMMARY_FILE);
        write_text_atomically(&path, &self.to_json())?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::{Check, Mode, Probe, ProbePlace, ProbeValue, Status, Summary};
    use fem_mesh::Error;
    use serde_json::Value;

    fn keys(value: &Value) -> Vec<&str> {
        value
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect()
    }

    #[test]
    fn the_empty_summary_has_every_key() {
        let json: Value = serde_json::from_str(&Summary::default().to_json()).unwrap();
        let expected = [
            ("mesh", "nodes elements by_type"),
            ("parallel", "ranks threads_per_rank hosts decision"),
            ("partition", "method imbalance edge_cut halo_nodes_max"),
            (
                "solver",
                "method preconditioner reason tolerance iterations true_residual backward_error history levels \
                 operator_complexity levels_mib",
            ),
            (
                "time_s",
                "read partition assemble setup solve recover write total",
            ),
            ("memory_mib", "peak_per_rank peak_total"),
            (
                "results",
                "max_displacement max_displacement_at max_von_mises max_von_mises_at strain_energy reaction_sum load_sum \
                 balance_error error_estimate",
            ),
        ];
        for (part, names) in expected {
            let mut names: Vec<&str> = names.split(' ').collect();
            let mut found = keys(&json[part]);
            names.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, names, "{part}");
        }
        for name in [
            "program",
            "title",
            "units",
            "status",
            "exit_code",
            "error",
            "warnings",
            "analysis",
            "dofs",
        ] {
            assert!(json.get(name).is_some(), "{name}");
        }
        for name in ["modes", "probes", "checks", "steps"] {
            assert_eq!(json[name], Value::Array(Vec::new()), "{name}");
        }
        assert_eq!(json["status"], "failed");
        assert_eq!(
            json["results"]["reaction_sum"],
            serde_json::json!([0.0, 0.0, 0.0])
        );
    }

    #[test]
    fn an_error_is_recorded_with_its_exit_code() {
        let mut summary = Summary::default();
        summary.record_failure(&Error::model("the model can move along x"));
        assert_eq!((summary.status, summary.exit_code), (Status::Failed, 3));
        summary.record_failure(&Error::not_converged("2000 iterations"));
        let json: Value = serde_json::from_str(&summary.to_json()).unwrap();
        assert_eq!(
            (&json["status"], &json["exit_code"]),
            (&"not_converged".into(), &1.into())
        );
        assert_eq!(json["error"], "2000 iterations");
    }

    #[test]
    fn numbers_that_are_not_finite_become_null() {
        let mut summary = Summary::default();
        summary.solver.true_residual = f64::NAN;
        summary.results.reaction_sum[1] = f64::INFINITY;
        summary.probes.push(Probe {
            name: "tip".to_owned(),
            field: "displacement".to_owned(),
            place: ProbePlace::Set("end".to_owned()),
            value: ProbeValue::Components(vec![1.0, f64::NAN]),
        });
        summary.probes.push(Probe {
            name: "top".to_owned(),
            field: "von_mises".to_owned(),
            place: ProbePlace::At([1.0, 2.0, 3.0]),
            value: ProbeValue::Scalar(2.5),
        });
        summary.checks.push(Check {
            error: f64::NEG_INFINITY,
            ..Check::default()
        });
        summary.modes.push(Mode {
            frequency_hz: f64::NAN,
        });
        let json: Value = serde_json::from_str(&summary.to_json()).unwrap();
        assert!(json["solver"]["true_residual"].is_null());
        assert!(json["results"]["reaction_sum"][1].is_null());
        assert!(json["checks"][0]["error"].is_null() && json["modes"][0]["frequency_hz"].is_null());
        assert_eq!(
            json["probes"][0],
            serde_json::json!({ "name": "tip", "field": "displacement", "set": "end", "value": [1.0, null] })
        );
        assert_eq!(json["probes"][1]["at"], serde_json::json!([1.0, 2.0, 3.0]));
        assert_eq!(json["probes"][1]["value"], 2.5);
    }

    #[test]
    fn a_summary_is_written_in_place_of_an_earlier_one() {
        let directory = tempfile::tempdir().unwrap();
        let mut summary = Summary::default();
        summary.write(directory.path()).unwrap();
        summary.status = Status::Checked;
        let path = summary.write(directory.path()).unwrap();
        let json: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(json["status"], "checked");
        assert!(
            Summary::default()
                .write(&directory.path().join("missing"))
                .is_err()
        );
    }
}
