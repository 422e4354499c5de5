//! The probes of a case: values at points and over sets, held against its checks.
//!
//! Invariant: reads the solution, changes only the summary.

use crate::analysis::linear_static::Solution;
use crate::model::Model;
use crate::output::push_value;
use crate::post::{interpolate, locate};
use crate::resolve::Names;
use fem_io::case::{Case, Field, Probe, ProbeAt};
use fem_io::check::SetUse;
use fem_io::summary::{self, ProbeValue, Summary};
use fem_mesh::{Comm, Result};

/// Most components a field has.
const MAX_COMPONENTS: usize = 6;

/// Collective. Enters the value of every probe into the summary.
///
/// # Errors
/// A point outside the mesh.
pub fn evaluate(
    comm: &Comm,
    case: &Case,
    model: &Model,
    names: &Names,
    solution: &Solution,
    summary: &mut Summary,
) -> Result<()> {
    for probe in &case.probes {
        let values = match &probe.at {
            ProbeAt::Point(x) => at_point(comm, case, probe, *x, model, solution)?,
            ProbeAt::Set(set) => over_set(comm, probe.field, set, names, solution),
        };
        let value = match values[..] {
            [scalar] => ProbeValue::Scalar(scalar),
            _ => ProbeValue::Components(values),
        };
        summary.probes.push(summary::Probe {
            name: probe.name.clone(),
            value,
        });
    }
    Ok(())
}

/// Collective. A field at a point, interpolated inside its element. Invariants are taken of the interpolated stress.
fn at_point(
    comm: &Comm,
    case: &Case,
    probe: &Probe,
    x: [f64; 3],
    model: &Model,
    solution: &Solution,
) -> Result<Vec<f64>> {
    let location = locate(comm, &model.mesh, &[x]).map_err(|e| case.place_on(e, probe.place))?;
    let value = |node: usize, material: u16| {
        let mut values = Vec::with_capacity(MAX_COMPONENTS);
        push_value(solution, probe.field, node, material, &mut values);
        let mut padded = [0.0; MAX_COMPONENTS];
        padded[..values.len()].copy_from_slice(&values);
        padded
    };
    let values = interpolate(comm, model, &location[0], value);
    Ok(values[..probe.field.n_components()].to_vec())
}

/// Collective. The mean of a field over the nodes of a set (of its value for each material, where a node has several);
/// for reactions the sum.
fn over_set(comm: &Comm, field: Field, set: &str, names: &Names, solution: &Solution) -> Vec<f64> {
    let n_owned = names.mesh.nodes.n_owned();
    let typed = [set.to_owned()];
    let mut sums = vec![0.0; field.n_components()];
    let mut n_nodes = 0.0;
    for node in names
        .nodes(&typed, SetUse::Probe)
        .into_iter()
        .map(|n| n as usize)
        .filter(|&n| n < n_owned)
    {
        let materials = solution.tensors.materials_of(node);
        let mut values = Vec::with_capacity(MAX_COMPONENTS * materials.len());
        materials
            .iter()
            .for_each(|&m| push_value(solution, field, node, m, &mut values));
        for (i, value) in values.iter().enumerate() {
            sums[i % field.n_components()] += value / materials.len() as f64;
        }
        n_nodes += 1.0;
    }
    comm.sum_into(&mut sums);
    let n_nodes = comm.sum(n_nodes);
    if field != Field::Reaction && n_nodes > 0.0 {
        sums.iter_mut().for_each(|s| *s /= n_nodes);
    }
    sums
}

/// Holds the probes against the checks of the case. A check that fails makes the exit code 1 and is named as the error.
pub fn judge(case: &Case, summary: &mut Summary) {
    for check in &case.checks {
        let probe = summary.probes.iter().find(|p| p.name == check.probe);
        let value = match (probe.map(|p| &p.value), check.component) {
            (Some(ProbeValue::Scalar(value)), _) => *value,
            (Some(ProbeValue::Components(values)), component) => values
                .get(component.unwrap_or(0))
                .copied()
                .unwrap_or(f64::NAN),
            (None, _) => f64::NAN,
        };
        summary.checks.push(summary::Check {
            probe: check.probe.clone(),
            component: check.component,
            value,
            expected: check.expected,
            error: check.error(value),
            tolerance: check.tolerance,
            pass: check.passes(value),
        });
    }
    let failed: Vec<&summary::Check> = summary.checks.iter().filter(|c| !c.pass).collect();
    if let Some(first) = failed.first() {
        let component = first
            .component
            .map_or_else(String::new, |c| format!("[{c}]"));
        summary.error = Some(format!(
            "{} of {} checks failed; the first: {}{component} is {:.6e}, expected {:.6e} within {:.1e}",
            failed.len(),
            summary.checks.len(),
            first.probe,
            first.value,
            first.expected,
            first.tolerance
        ));
        summary.exit_code = 1;
    }
}
