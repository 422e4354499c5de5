//! The probes of a case: values at points and over sets, held against its checks; and where the largest values are.
//!
//! Invariant: reads the solution, changes only the summary.

use crate::analysis::linear_static::Solution;
use crate::model::Model;
use crate::output::push_value;
use crate::post::{Location, interpolate, locate, von_mises};
use crate::resolve::Names;
use bytemuck::{Pod, Zeroable};
use fem_io::case::{Case, Field, Probe, ProbeAt};
use fem_io::check::SetUse;
use fem_io::summary::{self, NodePlace, ProbePlace, ProbeValue, Summary};
use fem_mesh::{Comm, LocalMesh, Result};

/// Most components a field has.
const MAX_COMPONENTS: usize = 6;

/// Collective. Where the point of each probe is, in the order of the probes; `None` for a probe over a set.
///
/// # Errors
/// A point outside the mesh, with the place of its probe in the case file.
pub fn locate_points(comm: &Comm, case: &Case, mesh: &LocalMesh) -> Result<Vec<Option<Location>>> {
    let point = |probe: &Probe| match probe.at {
        ProbeAt::Point(x) => Some(x),
        ProbeAt::Set(_) => None,
    };
    let points: Vec<[f64; 3]> = case.probes.iter().filter_map(point).collect();
    let found = locate(comm, mesh, &points).or_else(|error| {
        // Which of them it is: one by one.
        for probe in &case.probes {
            if let Some(x) = point(probe) {
                locate(comm, mesh, &[x]).map_err(|e| case.place_on(e, probe.place))?;
            }
        }
        Err(error)
    })?;
    let mut found = found.into_iter();
    let locations = case.probes.iter();
    Ok(locations
        .map(|probe| point(probe).and_then(|_| found.next()))
        .collect())
}

/// Collective. Enters the value of every probe into the summary. `locations` are those of [`locate_points`].
pub fn evaluate(
    comm: &Comm,
    case: &Case,
    names: &Names,
    model: &Model,
    locations: &[Option<Location>],
    solution: &Solution,
) -> Vec<summary::Probe> {
    let mut probes = Vec::with_capacity(case.probes.len());
    for (probe, location) in case.probes.iter().zip(locations) {
        let (values, place) = match (&probe.at, location) {
            (ProbeAt::Point(x), Some(location)) => (
                at_point(comm, probe.field, location, model, solution),
                ProbePlace::At(*x),
            ),
            (ProbeAt::Point(x), None) => (
                vec![f64::NAN; probe.field.n_components()],
                ProbePlace::At(*x),
            ),
            (ProbeAt::Set(set), _) => (
                over_set(comm, probe.field, set, names, solution),
                ProbePlace::Set(set.clone()),
            ),
        };
        let value = match values[..] {
            [scalar] => ProbeValue::Scalar(scalar),
            _ => ProbeValue::Components(values),
        };
        probes.push(summary::Probe {
            name: probe.name.clone(),
            field: probe.field.name().to_owned(),
            place,
            value,
        });
    }
    probes
}

/// Collective. Enters the nodes of the largest displacement and of the largest von Mises stress into the summary; of
/// equally large ones the one with the lowest number.
pub fn find_peaks(comm: &Comm, model: &Model, solution: &Solution, summary: &mut Summary) {
    let length = |node: usize| {
        if model.links.is_rotation(model.mesh.nodes.global(node)) {
            return 0.0;
        }
        let u = &solution.displacement[3 * node..3 * node + 3];
        u.iter().map(|c| c * c).sum::<f64>().sqrt()
    };
    let stress = |node: usize| {
        let materials = solution.tensors.materials_of(node).iter();
        materials
            .map(|&m| von_mises(&solution.tensors.stress_at(node, m)))
            .fold(0.0, f64::max)
    };
    summary.results.max_displacement_at = peak(comm, &model.mesh, length);
    summary.results.max_von_mises_at = peak(comm, &model.mesh, stress);
}

/// A node and the value there, as ranks send it.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Peak {
    value: f64,
    node: u64,
    at: [f64; 3],
}

impl Peak {
    const NONE: Peak = Peak {
        value: f64::NEG_INFINITY,
        node: u64::MAX,
        at: [0.0; 3],
    };

    fn larger(self, other: Peak) -> Peak {
        let wins =
            other.value > self.value || (other.value == self.value && other.node < self.node);
        if wins { other } else { self }
    }
}

/// Collective. The node where `value`, a function of the owned local nodes, is largest; `None` if it is 0 everywhere.
fn peak(comm: &Comm, mesh: &LocalMesh, value: impl Fn(usize) -> f64) -> Option<NodePlace> {
    let of_node = |node: usize| Peak {
        value: value(node),
        node: mesh.node_ids[node],
        at: mesh.coords[node],
    };
    let here = (0..mesh.nodes.n_owned())
        .map(of_node)
        .fold(Peak::NONE, Peak::larger);
    let all = comm.all_gather(&[here]).concat();
    let best = all.into_iter().fold(Peak::NONE, Peak::larger);
    (best.value > 0.0).then_some(NodePlace {
        node: best.node,
        at: best.at,
    })
}

/// Collective. A field at a point, interpolated inside its element. Invariants are taken of the interpolated stress.
fn at_point(
    comm: &Comm,
    field: Field,
    location: &Location,
    model: &Model,
    solution: &Solution,
) -> Vec<f64> {
    let value = |node: usize, material: u16| {
        let mut values = Vec::with_capacity(MAX_COMPONENTS);
        push_value(solution, field, node, material, &mut values);
        let mut padded = [0.0; MAX_COMPONENTS];
        padded[..values.len()].copy_from_slice(&values);
        padded
    };
    interpolate(comm, model, location, value)[..field.n_components()].to_vec()
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
        // A node of no element has a displacement and a reaction, but no stress.
        let materials = match (materials, field) {
            ([], Field::Displacement | Field::Reaction) => &[0],
            ([], _) => continue,
            _ => materials,
        };
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
            source: check.source.clone(),
        });
    }
    let failed: Vec<&summary::Check> = summary.checks.iter().filter(|c| !c.pass).collect();
    if let Some(first) = failed.first() {
        let probe = case.probes.iter().find(|p| p.name == first.probe);
        let names = probe.map_or(&[][..], |p| p.field.component_names());
        let component = names.get(first.component.unwrap_or(0)).unwrap_or(&"");
        summary.error = Some(format!(
            "{} of {} checks failed; the first: {} {component} is {:.6e}, expected {:.6e} within {:.1e}",
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
