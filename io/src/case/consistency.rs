//! Checks what spans several tables of a case: names, claims of materials, properties that loads need, probes.
//!
//! Invariant: judges a complete [`Case`] and changes nothing.

use super::words::{quoted, suggest_name};
use super::{AmplitudeInput, Case, Check, LoadInput, LoadKind, MaterialInput, Place, Probe};
use fem_mesh::Result;
use std::collections::BTreeSet;

/// Checks the case.
///
/// # Errors
/// A name stands for two things, two materials claim one element set, a material lacks what a load needs, or a check
/// does not fit its probe.
pub(super) fn check(case: &Case) -> Result<()> {
    unique(
        case,
        "[[material]]",
        case.materials.iter().map(|m| (m.name.as_str(), m.place)),
    )?;
    unique(
        case,
        "[[set]]",
        case.sets.iter().map(|s| (s.name.as_str(), s.place)),
    )?;
    unique(
        case,
        "[[probe]]",
        case.probes.iter().map(|p| (p.name.as_str(), p.place)),
    )?;
    let orientations = case.orientations.iter();
    unique(
        case,
        "[[orientation]]",
        orientations.map(|o| (o.name.as_str(), o.place)),
    )?;
    unique(
        case,
        "[[step]]",
        case.steps.iter().map(|s| (s.name.as_str(), s.place)),
    )?;
    unique(
        case,
        "[[amplitude]]",
        case.amplitudes.iter().map(|a| (a.name.as_str(), a.place)),
    )?;
    claims(case)?;
    let of_steps = case.steps.iter().flat_map(|step| &step.loads);
    case.loads.iter().chain(of_steps).try_for_each(|load| {
        properties(case, load)?;
        amplitude_of_load(case, load)
    })?;
    let of_steps = case.steps.iter().flat_map(|step| &step.constraints);
    let constraints = case.constraints.iter().chain(of_steps);
    for constraint in constraints {
        amplitude_of(case, &constraint.amplitude, constraint.place)?;
    }
    temperatures_of_increments(case)?;
    case.probes
        .iter()
        .try_for_each(|probe| step_of(case, probe))?;
    case.checks
        .iter()
        .try_for_each(|check| probe_of(case, check))
}

fn unique<'a>(
    case: &Case,
    title: &str,
    names: impl Iterator<Item = (&'a str, Place)>,
) -> Result<()> {
    let mut seen = BTreeSet::new();
    for (name, place) in names {
        if !seen.insert(name) {
            let what = format!("two {title} tables have the name \"{name}\"");
            return Err(case
                .error_at(place, what)
                .expected("a different name for each"));
        }
    }
    Ok(())
}

/// No element set belongs to two materials.
fn claims(case: &Case) -> Result<()> {
    for (k, material) in case.materials.iter().enumerate() {
        for other in &case.materials[..k] {
            let shared = material
                .elements
                .iter()
                .find(|set| other.elements.contains(set));
            if let Some(set) = shared {
                let (a, b) = (&other.name, &material.name);
                let what = format!("materials \"{a}\" and \"{b}\" both claim elements \"{set}\"");
                let error = case.error_at(material.place, what);
                return Err(error.expected("one material for each element"));
            }
        }
    }
    Ok(())
}

/// Materials have what the load multiplies. Without the mesh that can be said of a load on `all`, or if no material
/// has it.
fn properties(case: &Case, load: &LoadInput) -> Result<()> {
    let (property, has): (_, fn(&MaterialInput) -> bool) = match load.kind {
        LoadKind::Gravity(_) | LoadKind::Centrifugal { .. } => ("density", |m| m.density.is_some()),
        LoadKind::TemperatureChange(_) => ("expansion", |m| !m.expansion.is_empty()),
        _ => return Ok(()),
    };
    let on_all = load.on.iter().any(|set| set == "all");
    let without: Vec<_> = case.materials.iter().filter(|m| !has(m)).collect();
    match without.first() {
        Some(material) if on_all || without.len() == case.materials.len() => {
            let (name, kind) = (&material.name, load.kind.name());
            let what = format!("material \"{name}\" has no `{property}`, which `{kind}` needs");
            let error = case.error_at(load.place, what);
            let article = if property == "expansion" { "an" } else { "a" };
            Err(error.advice(format!("give the [[material]] {article} `{property}`")))
        }
        _ => Ok(()),
    }
}

/// The amplitude exists, and there are steps in which it can run.
fn amplitude_of<'a>(
    case: &'a Case,
    name: &Option<String>,
    place: Place,
) -> Result<Option<&'a AmplitudeInput>> {
    let Some(name) = name else { return Ok(None) };
    let Some(found) = case.amplitudes.iter().find(|a| a.name == *name) else {
        let names: Vec<_> = case.amplitudes.iter().map(|a| a.name.as_str()).collect();
        let what = format!("there is no [[amplitude]] \"{name}\"");
        return Err(suggest_name(case.error_at(place, what), name, &names)
            .expected("the name of an [[amplitude]]"));
    };
    if case.steps.is_empty() {
        let what = "`amplitude` is a factor by time, but the case has no [[step]]";
        return Err(case
            .error_at(place, what)
            .advice("add a [[step]], or leave the amplitude out"));
    }
    Ok(Some(found))
}

/// As [`amplitude_of`]; the square of a speed is not negative.
fn amplitude_of_load(case: &Case, load: &LoadInput) -> Result<()> {
    let amplitude = amplitude_of(case, &load.amplitude, load.place)?;
    let is_square = matches!(load.kind, LoadKind::Centrifugal { .. });
    match amplitude.filter(|a| is_square && a.table.iter().any(|point| point[1] < 0.0)) {
        None => Ok(()),
        Some(a) => {
            let what = format!(
                "`centrifugal` goes with the square of the speed, but amplitude \"{}\" is negative somewhere",
                a.name
            );
            let error = case.error_at(load.place, what);
            Err(error.expected("factors of 0 or more"))
        }
    }
}

/// Between temperatures only those can be found that are known at both ends.
fn temperatures_of_increments(case: &Case) -> Result<()> {
    let divided = case.steps.iter().any(|step| step.increments > 1);
    let of_steps = case.steps.iter().flat_map(|step| &step.temperatures);
    let mut all = case.temperatures.iter().chain(of_steps);
    let has_initial = case.temperatures.iter().any(|t| t.initial);
    match all.find(|t| !t.initial).filter(|_| divided && !has_initial) {
        None => Ok(()),
        Some(first) => {
            let what = "temperatures within a step of several increments need those before it";
            let error = case.error_at(first.place, what);
            Err(error.expected("a [[temperature]] with `initial = true` for the same nodes"))
        }
    }
}

/// The step of a probe exists; only fields of nodes are probed.
fn step_of(case: &Case, probe: &Probe) -> Result<()> {
    if probe.field.is_of_elements() {
        let what = format!(
            "{} is a field of whole elements, which has no value at a point or a node",
            probe.field.name()
        );
        let error = case.error_at(probe.place, what);
        return Err(error.expected("a field of nodes"));
    }
    let Some(name) = &probe.step else {
        return Ok(());
    };
    if case.steps.iter().any(|step| step.name == *name) {
        return Ok(());
    }
    let names: Vec<_> = case.steps.iter().map(|step| step.name.as_str()).collect();
    let what = format!("there is no [[step]] \"{name}\"");
    Err(suggest_name(case.error_at(probe.place, what), name, &names)
        .expected("the name of a [[step]]"))
}

/// The probe of a check exists and has the component.
fn probe_of(case: &Case, check: &Check) -> Result<()> {
    let Some(probe) = case.probes.iter().find(|probe| probe.name == check.probe) else {
        let names: Vec<_> = case
            .probes
            .iter()
            .map(|probe| probe.name.as_str())
            .collect();
        let what = format!("[[check]] names the unknown probe \"{}\"", check.probe);
        let known = match names.len() {
            0 => "a [[probe]] of that name".to_owned(),
            _ => format!("one of {}", quoted(&names)),
        };
        let error = case.error_at(check.place, what).expected(known);
        return Err(suggest_name(error, &check.probe, &names));
    };
    let (field, n) = (probe.field.name(), probe.field.n_components());
    match check.component {
        Some(component) if component > 0 && n == 1 => {
            let what = format!("`component` is {component}, but {field} is a scalar");
            Err(case.error_at(check.place, what).expected("no `component`"))
        }
        Some(component) if component >= n => {
            let what = format!("`component` is {component}, but {field} has {n} components");
            let expected = format!("`component` from 0 to {}", n - 1);
            Err(case.error_at(check.place, what).expected(expected))
        }
        None if n > 1 => {
            let what = format!("[[check]] has no `component`, but {field} has {n} components");
            let expected = format!("`component` from 0 to {}", n - 1);
            Err(case.error_at(check.place, what).expected(expected))
        }
        _ => Ok(()),
    }
}
