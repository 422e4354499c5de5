//! The reference of the case file in Markdown: a table of keys for every table of the file, then what keys alone do
//! not say. `docs/case-file.md` is this text.
//!
//! Invariant: keys, ranges and defaults come from the list that the parser obeys; prose stands in `notes.md`.

use crate::case::keys::{Key, Kind, Need, TableSpec, is_available, visit_tables};
use crate::case::tables::ROOT;
use std::fmt::Write;

/// What comes before and after the tables of keys, parted by a line of [`MARK`].
const NOTES: &str = include_str!("notes.md");
const MARK: &str = "<!-- keys -->\n";

/// Unit of each key that is a quantity, in SI, by its path.
const UNITS: &[(&str, &str)] = &[
    ("mesh.scale", "1"),
    ("mesh.box.size", "m"),
    ("mesh.box.origin", "m"),
    ("material.young", "Pa"),
    ("material.poisson", "1"),
    ("material.density", "kg/m3"),
    ("material.stiffness", "Pa"),
    ("material.expansion", "1/K"),
    ("material.reference_temperature", "K"),
    ("material.orthotropic.young", "Pa"),
    ("material.orthotropic.poisson", "1"),
    ("material.orthotropic.shear", "Pa"),
    ("material.table.temperature", "K"),
    ("material.table.young", "Pa"),
    ("material.table.poisson", "1"),
    ("material.table.stiffness", "Pa"),
    ("material.table.expansion", "1/K"),
    ("material.expansion_table.temperature", "K"),
    ("material.expansion_table.expansion", "1/K"),
    ("material.conductivity", "W/(m K)"),
    ("material.specific_heat", "J/(kg K)"),
    ("constraint.displacement", "m"),
    ("constraint.rotation", "rad"),
    ("load.traction", "N/m2"),
    ("load.pressure", "Pa"),
    ("load.force", "N"),
    ("load.moment", "N m"),
    ("load.body_force", "N/m3"),
    ("load.gravity", "m/s2"),
    ("load.temperature_change", "K"),
    ("load.nodal_force", "N"),
    ("load.initial_stress", "Pa"),
    ("load.initial_strain", "1"),
    ("field.value", "of the key"),
    ("field.gradient", "of the key, per m"),
    ("field.at", "m"),
    ("temperature.value", "K"),
    ("temperature.by_node", "K"),
    ("orientation.a", "m"),
    ("orientation.b", "m"),
    ("orientation.rotate.angle", "degrees"),
    ("load.centrifugal.origin", "m"),
    ("load.centrifugal.axis", "1"),
    ("load.centrifugal.omega", "rad/s"),
    ("node.at", "m"),
    ("transform.a", "m"),
    ("transform.b", "m"),
    ("coupling.system.a", "m"),
    ("coupling.system.b", "m"),
    ("equation.constant", "m"),
    ("equation.terms.coefficient", "1"),
    ("tie.position_tolerance", "m"),
    ("cyclic_symmetry.origin", "m"),
    ("cyclic_symmetry.axis", "1"),
    ("cyclic_symmetry.position_tolerance", "m"),
    ("set.box.min", "m"),
    ("set.box.max", "m"),
    ("solver.tolerance", "1"),
    ("amplitude.table", "time of the case, 1"),
    ("step.time_period", "time of the case"),
    ("probe.at", "m"),
    ("check.expected", "of the field"),
    ("check.tolerance", "1"),
];

/// The reference of the case file, in Markdown.
pub fn case_reference() -> String {
    let (before, after) = NOTES.split_once(MARK).unwrap_or((NOTES, ""));
    let mut text = before.to_owned();
    let mut seen = Vec::new();
    visit_tables(&ROOT, &mut |spec| {
        if !seen.contains(&spec.path) {
            seen.push(spec.path);
            text += &table(spec);
        }
    });
    text + after
}

/// Heading, meaning and keys of one table of the file.
fn table(spec: &TableSpec) -> String {
    let title = match spec.path {
        "" => "Top of the file".to_owned(),
        _ => format!("`{}`", spec.title),
    };
    let mut text = format!("### {title}\n\n{}", spec.about);
    if !spec.one_of.is_empty() {
        let _ = write!(text, " Exactly one of {} is given.", code_list(spec.one_of));
    }
    text += "\n\n| key | value | default | unit | meaning |\n|---|---|---|---|---|\n";
    for key in spec.keys {
        let default = match key.need {
            Need::Required => "required".to_owned(),
            Need::Optional => String::new(),
            Need::With(other) => format!("required with `{other}`"),
            Need::Default(value) => format!("`{value}`"),
        };
        let cells = [
            format!("`{}`", key.name),
            value(spec.path, key),
            default,
            unit(spec.path, key.name).unwrap_or_default().to_owned(),
            key.about.to_owned(),
        ];
        // Writing to a text cannot fail.
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text + "\n"
}

fn unit(path: &str, key: &str) -> Option<&'static str> {
    UNITS
        .iter()
        .find(|(name, _)| name.rsplit_once('.') == Some((path, key)))
        .map(|(_, unit)| *unit)
}

/// Type and range of a key, without the words that this version refuses.
fn value(path: &str, key: &Key) -> String {
    let available = |names: &[&'static str]| -> Vec<&'static str> {
        let names = names.iter().copied();
        names
            .filter(|name| is_available(path, key.name, name))
            .collect()
    };
    match key.kind {
        Kind::Choice(names) => match available(names)[..] {
            [one] => format!("`\"{one}\"`"),
            ref several => format!("one of {}", quoted_code(several)),
        },
        Kind::Choices(names) => format!("list of {}", quoted_code(&available(names))),
        Kind::Flag if !is_available(path, key.name, "true") => "`false`".to_owned(),
        Kind::Table(spec) => format!("table, see `{}`", spec.title),
        Kind::Tables(spec) => format!("tables, see `{}`", spec.title),
        other => other.expected(),
    }
}

fn code_list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

fn quoted_code(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`\"{name}\"`")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{MARK, NOTES, UNITS, case_reference, unit};
    use crate::case::keys::{Kind, visit_tables};
    use crate::case::tables::ROOT;
    use std::collections::BTreeSet;

    #[test]
    fn the_reference_in_docs_is_this_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/case-file.md");
        let written = std::fs::read_to_string(path).unwrap();
        assert!(
            written == case_reference(),
            "write it again: fem-solve schema --markdown > docs/case-file.md"
        );
    }

    #[test]
    fn every_quantity_has_a_unit_and_every_unit_a_key() {
        let mut quantities = BTreeSet::new();
        visit_tables(&ROOT, &mut |spec| {
            for key in spec.keys {
                if matches!(
                    key.kind,
                    Kind::Number(_)
                        | Kind::NumberOr(_)
                        | Kind::Numbers(_)
                        | Kind::Field(_)
                        | Kind::Pairs
                        | Kind::Points
                        | Kind::Vector(_)
                        | Kind::Displacement
                        | Kind::Bound
                ) {
                    quantities.insert(format!("{}.{}", spec.path, key.name));
                    assert!(unit(spec.path, key.name).is_some(), "{}", key.name);
                }
            }
        });
        let named: BTreeSet<String> = UNITS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(named, quantities);
    }

    #[test]
    fn the_notes_stand_around_the_keys() {
        assert_eq!(NOTES.matches(MARK).count(), 1);
        let text = case_reference();
        assert!(!text.contains(MARK) && text.contains("| `young` |"));
    }
}
