//! Steps, amplitudes and printed tables of a [`super::Case`] from the tables of the case file.
//!
//! Invariant: pure, as [`super::build`].

use super::build::{constraint, each, load, name};
use super::build_material::temperature;
use super::reader::Section;
use super::{
    AmplitudeInput, AmplitudeTime, PrintKind, PrintQuantity, PrintRequest, PrintTotals, StepInput,
    StepOp,
};
use fem_mesh::Result;

/// All steps, with their names.
pub(super) fn steps(root: &Section<'_>) -> Result<Vec<StepInput>> {
    let mut steps = each(root, "step", step)?;
    for (k, step) in steps.iter_mut().enumerate() {
        if step.name.is_empty() {
            step.name = format!("step {}", k + 1);
        }
    }
    Ok(steps)
}

fn step(section: &Section<'_>) -> Result<StepInput> {
    let temperatures = each(section, "temperature", temperature)?;
    if let Some(initial) = temperatures.iter().find(|t| t.initial) {
        let what = "an initial temperature stands in a step";
        return Err(section
            .error(initial.place, what)
            .expected("it in a [[temperature]] at the top of the file"));
    }
    Ok(StepInput {
        name: if section.has("name") {
            name(section)?
        } else {
            String::new()
        },
        time_period: section.number("time_period")?.unwrap_or(1.0),
        increments: section.count("increments")?.unwrap_or(1),
        op: section.choice("op", &StepOp::NAMES)?.unwrap_or_default(),
        constraints: each(section, "constraint", constraint)?,
        loads: each(section, "load", load)?,
        temperatures,
        place: section.place_of("name"),
    })
}

pub(super) fn amplitude(section: &Section<'_>) -> Result<AmplitudeInput> {
    let table = section.required("table", section.points("table")?)?;
    if table.windows(2).any(|pair| pair[0][0] >= pair[1][0]) {
        let what = "the times of `table` do not ascend";
        return Err(section
            .error(section.place_of("table"), what)
            .expected("pairs of time and factor, each time greater than the one before"));
    }
    Ok(AmplitudeInput {
        name: name(section)?,
        table,
        time: section
            .choice("time", &AmplitudeTime::NAMES)?
            .unwrap_or_default(),
        place: section.place_of("name"),
    })
}

pub(super) fn print(section: &Section<'_>) -> Result<PrintRequest> {
    let kind = section.required("kind", section.choice("kind", &PrintKind::NAMES)?)?;
    let all = PrintQuantity::ALL.map(|(name, quantity, _)| (name, quantity));
    let quantities = section.required("quantities", section.choices("quantities", &all)?)?;
    if let Some(other) = quantities.iter().find(|q| q.kind() != kind) {
        let of_kind = PrintQuantity::ALL.iter().filter(|q| q.2 == kind);
        let names: Vec<String> = of_kind.map(|q| format!("\"{}\"", q.0)).collect();
        let what = format!(
            "\"{}\" is no quantity of the kind \"{}\"",
            other.name(),
            kind.name()
        );
        let place = section.place_of("quantities");
        return Err(section
            .error(place, what)
            .expected(format!("some of {}", names.join(", "))));
    }
    Ok(PrintRequest {
        kind,
        set: section.required("set", section.text("set")?)?,
        quantities,
        global: section.flag("global")?.unwrap_or_default(),
        totals: section
            .choice("totals", &PrintTotals::NAMES)?
            .unwrap_or_default(),
        name: section.text("name")?.unwrap_or_default(),
        place: section.place_of("set"),
    })
}
