//! Holds a case against the mesh: do the sets it names exist, fit their use and have members; has every element one
//! material?
//!
//! In go the [`Case`] and a [`SetCatalog`] of the whole mesh, the same on every rank; out come warnings or the first
//! error, with the place in the case file. [`SetCatalog::find`] is the one rule by which a name stands for a set.
//!
//! Invariant: sees names, counts and numbers only, no coordinates and no connectivity.

mod catalog;
mod cover;

pub use catalog::{ALL, FoundSet, SetCatalog, SetKind, SetUse};
pub use cover::{Cover, assign_materials, check_cover};

use crate::case::{Case, MaterialInput, NodeRef, Place, PrintKind, ProbeAt};
use fem_mesh::Result;
use std::collections::{BTreeMap, BTreeSet};

/// Checks that no `[[set]]` has the name of a set of the mesh or of `all`. `sets` are those of the mesh alone.
///
/// # Errors
/// A name is taken by a set of any kind, whatever the case of its letters.
pub fn check_definitions(case: &Case, sets: &SetCatalog) -> Result<()> {
    for definition in &case.sets {
        let lower = definition.name.to_lowercase();
        if let Some(set) = sets.iter().find(|set| set.name.to_lowercase() == lower) {
            let what = format!(
                "[[set]] \"{}\" has the name of {} of the mesh",
                definition.name,
                set.kind.words()
            );
            return Err(case.error_at(definition.place, what).expected("a new name"));
        }
    }
    Ok(())
}

/// Checks every set that the case names and returns warnings. `sets` are those of the mesh and of the case.
///
/// # Errors
/// A set does not exist, does not fit its use, is empty or is named twice for the same purpose.
pub fn check_against_sets(case: &Case, sets: &SetCatalog) -> Result<Vec<String>> {
    let mut claimed = BTreeMap::new();
    for material in &case.materials {
        for set in find_all(
            case,
            sets,
            &material.elements,
            SetUse::Material,
            material.place,
        )? {
            if let Some(other) = claimed.insert(set, &material.name) {
                let what = format!(
                    "materials \"{other}\" and \"{}\" both claim elements \"{}\"",
                    material.name, set.name
                );
                return Err(case
                    .error_at(material.place, what)
                    .expected("one material for each element"));
            }
        }
    }
    for element in &case.elements {
        let (names, place) = (&element.elements, element.place);
        find_all(case, sets, names, SetUse::Material, place)?;
    }
    for orientation in &case.orientations {
        let (names, place) = (&orientation.elements, orientation.place);
        find_all(case, sets, names, SetUse::Orientation, place)?;
    }
    let of_steps = case.steps.iter().flat_map(|s| &s.temperatures);
    for temperature in case.temperatures.iter().chain(of_steps) {
        let (names, place) = (&temperature.on, temperature.place);
        find_all(case, sets, names, SetUse::Temperature, place)?;
    }
    let steps = &case.steps;
    for constraint in (case.constraints.iter()).chain(steps.iter().flat_map(|s| &s.constraints)) {
        find_all(
            case,
            sets,
            &constraint.on,
            SetUse::Constraint,
            constraint.place,
        )?;
    }
    for load in (case.loads.iter()).chain(steps.iter().flat_map(|s| &s.loads)) {
        find_all(
            case,
            sets,
            &load.on,
            SetUse::of_load(&load.kind),
            load.place,
        )?;
    }
    check_links(case, sets)?;
    for print in &case.prints {
        let purpose = match print.kind {
            PrintKind::Nodes => SetUse::Temperature,
            PrintKind::Elements => SetUse::BodyLoad,
            PrintKind::Section => SetUse::SurfaceLoad,
        };
        let names = std::slice::from_ref(&print.set);
        find_all(case, sets, names, purpose, print.place)?;
    }
    for probe in &case.probes {
        if let ProbeAt::Set(name) = &probe.at {
            find_all(
                case,
                sets,
                std::slice::from_ref(name),
                SetUse::Probe,
                probe.place,
            )?;
        }
    }
    Ok(warnings(case, sets))
}

/// Checks the sets of the tables that join degrees of freedom.
fn check_links(case: &Case, sets: &SetCatalog) -> Result<()> {
    let links = &case.links;
    let find = |names: &[String], purpose: SetUse, place: Place| {
        find_all(case, sets, names, purpose, place).map(|_| ())
    };
    let find_node = |node: &NodeRef, place: Place| match node {
        NodeRef::Number(_) => Ok(()),
        NodeRef::Set(name) => find(std::slice::from_ref(name), SetUse::Reference, place),
    };
    for transform in &links.transforms {
        find(&transform.on, SetUse::Constraint, transform.place)?;
    }
    for term in links.equations.iter().flat_map(|equation| &equation.terms) {
        find_node(&term.node, term.place)?;
    }
    for coupling in &links.couplings {
        find(&coupling.on, SetUse::Constraint, coupling.place)?;
        find_node(&coupling.reference, coupling.place)?;
    }
    for body in &links.rigid_bodies {
        find(&body.on, SetUse::Constraint, body.place)?;
        find_node(&body.reference, body.place)?;
        if let Some(node) = &body.rotation_node {
            find_node(node, body.place)?;
        }
    }
    for tie in &links.ties {
        find(&tie.slave, SetUse::Force, tie.place)?;
        find(&tie.master, SetUse::SurfaceLoad, tie.place)?;
    }
    for cyclic in &links.cyclic {
        find(&cyclic.slave, SetUse::Force, cyclic.place)?;
        find(&cyclic.master, SetUse::SurfaceLoad, cyclic.place)?;
    }
    Ok(())
}

fn warnings(case: &Case, sets: &SetCatalog) -> Vec<String> {
    let is_empty = |name: &str| {
        sets.iter()
            .any(|set| set.name == name && set.n_members == 0)
    };
    // One that is used is an error by now.
    let empty = case.sets.iter().filter(|set| is_empty(&set.name));
    let mut warnings: Vec<String> = empty
        .map(|set| {
            let what = format!("[[set]] \"{}\" has no members; nothing uses it", set.name);
            case.error_at(set.place, what).to_string()
        })
        .collect();
    let steps = &case.steps;
    let moves = (case.constraints.iter())
        .chain(steps.iter().flat_map(|step| &step.constraints))
        .flat_map(|c| c.displacement.into_iter().chain(c.rotation))
        .chain(case.links.equations.iter().map(|e| Some(e.constant)))
        .any(|value| value.is_some_and(|u| u != 0.0));
    let of_steps = steps.iter().flat_map(|step| &step.temperatures);
    let mut temperatures = case.temperatures.iter().chain(of_steps);
    if let Some(first) = temperatures.clone().next()
        && !case.materials.iter().any(MaterialInput::feels_temperature)
    {
        let what =
            "[[temperature]] has no effect: no material has `expansion` or depends on temperature";
        warnings.push(case.error_at(first.place, what).to_string());
    }
    let heats = temperatures.any(|t| !t.initial);
    let has_loads = !case.loads.is_empty() || steps.iter().any(|step| !step.loads.is_empty());
    if !has_loads && !moves && !heats {
        let path = case.path.display();
        warnings.push(format!(
            "{path}: there is no [[load]] and no prescribed displacement but 0: the solution is zero"
        ));
    }
    warnings
}

fn find_all<'s>(
    case: &Case,
    sets: &'s SetCatalog,
    names: &[String],
    purpose: SetUse,
    place: Place,
) -> Result<BTreeSet<FoundSet<'s>>> {
    let mut all = BTreeSet::new();
    for name in names {
        let set = sets
            .find(name, purpose)
            .map_err(|error| case.place_on(error, place))?;
        if !all.insert(set) {
            return Err(case
                .error_at(place, format!("\"{}\" is named twice", set.name))
                .expected("each set once"));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::catalog::tests::catalog;
    use super::{check_against_sets, check_definitions};
    use crate::case::{Case, parse};
    use std::path::Path;

    const MATERIAL: &str =
        "[mesh]\nfile = \"a.msh\"\n[[material]]\nname = \"m\"\nyoung = 1\npoisson = 0.3\n";

    fn case(text: &str) -> Case {
        parse(Path::new("case.toml"), &format!("{MATERIAL}{text}")).unwrap()
    }

    fn fault(text: &str) -> String {
        check_against_sets(&case(text), &catalog())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn messages_name_the_place_and_the_sets_there_are() {
        assert_eq!(
            fault("[[load]]\non = \"tpo\"\npressure = 1\n"),
            "case.toml:8:6: there is no set \"tpo\"; expected a face set: one of \"Top\", \"nothing\"; did you mean \"Top\"?"
        );
        assert_eq!(
            fault("[[load]]\non = \"corners\"\ntraction = [0, 0, 1]\n"),
            "case.toml:8:6: \"corners\" is a node set here; expected a face set: one of \"Top\", \"nothing\""
        );
        assert!(
            fault("[[load]]\non = \"Core\"\nforce = [0, 0, 1]\n")
                .contains("is an element set here")
        );
        assert!(
            fault("[[constraint]]\non = \"nothing\"\ndisplacement = [0, 0, 0]\n")
                .contains("has no members")
        );
        assert!(
            fault("[[constraint]]\non = [\"Top\", \"top\"]\ndisplacement = [0, 0, 0]\n")
                .contains("named twice")
        );
        assert!(
            fault("[[probe]]\nname = \"p\"\nset = \"bottom\"\nfield = \"stress\"\n")
                .contains("case.toml:9:1")
        );
        let second = "[[material]]\nname = \"n\"\nelements = \"ALL\"\nyoung = 1\npoisson = 0\n";
        assert!(fault(second).contains("materials \"m\" and \"n\" both claim elements \"all\""));
    }

    #[test]
    fn a_case_without_load_is_warned_of_unless_it_is_pulled() {
        let held = "[[constraint]]\non = \"Top\"\ndisplacement = [0, 0, 0]\n";
        assert_eq!(
            check_against_sets(&case(held), &catalog()).unwrap().len(),
            1
        );
        let pulled = held.replace("[0, 0, 0]", "[0, 0, 0.1]");
        assert!(
            check_against_sets(&case(&pulled), &catalog())
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn an_empty_set_that_nothing_uses_is_warned_of() {
        let text = "[[load]]\non = \"Top\"\npressure = 1\n[[set]]\nname = \"nothing\"\nfaces_in_box = {}\n";
        assert_eq!(
            check_against_sets(&case(text), &catalog()).unwrap(),
            ["case.toml:11:8: [[set]] \"nothing\" has no members; nothing uses it"]
        );
    }

    #[test]
    fn definitions_take_no_name_that_is_there() {
        let define = |name: &str| {
            case(&format!(
                "[[set]]\nname = \"{name}\"\nelements_in_box = {{}}\n"
            ))
        };
        assert!(check_definitions(&define("middle"), &catalog()).is_ok());
        let taken = check_definitions(&define("top"), &catalog()).unwrap_err();
        assert!(
            taken
                .to_string()
                .contains("[[set]] \"top\" has the name of a face set of the mesh")
        );
        assert!(check_definitions(&define("All"), &catalog()).is_err());
    }
}
