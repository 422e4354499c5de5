//! From the model of a deck to the text of a case file, and the sets that its tables name.
//!
//! The text is what a user could have written: nothing is reachable by a deck only. Each table says in a comment which
//! line of the deck it stands for, so that messages about it name that line (see [`crate::case`]).
//!
//! Invariant: the only file that knows both decks and the keys of case files.

use super::case_joins::Joined;
use super::model::{Elements, Nodes, PrintKind, Step};
use super::reader::Reader;
use super::toml::{Toml, list, number, quoted};
use crate::case::keys::is_key;
use crate::mesh_file::abaqus::element_types::{Kind, element_kind};
use crate::mesh_file::draft::Place;
use fem_mesh::{CellType, Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// What is written for whom.
pub(super) struct Purpose<'a> {
    /// The mesh file that `[mesh]` names.
    pub(super) mesh: &'a str,
    /// Name of the deck without its extension.
    pub(super) name: &'a str,
    /// Whether nodes of no element must be written out, because the mesh file does not hold them.
    pub(super) writes_nodes: bool,
}

/// Whether it is a strain, and the bits of its components.
type TensorKey = (bool, [u64; 6]);

/// Writes the case; makes the sets it needs in the mesh of `reader`.
///
/// # Errors
/// What a case cannot express, with the line of the deck.
pub(super) fn write(reader: &mut Reader, purpose: &Purpose<'_>) -> Result<String> {
    let mut toml = Toml::new(&reader.source.draft.files);
    toml.line(&format!("title = {}", quoted(&reader.model.title)));
    toml.table("[mesh]", Place::default());
    toml.key("file", quoted(purpose.mesh));
    toml.table("[analysis]", Place::default());
    toml.key("type", quoted("static"));
    reader.write_formulations(&mut toml)?;
    reader.write_materials(&mut toml)?;
    reader.write_orientations(&mut toml)?;
    let joined = reader.write_joins(&mut toml, purpose.writes_nodes)?;
    reader.write_initial_state(&mut toml)?;
    reader.write_steps(&mut toml, &joined)?;
    reader.write_output(&mut toml, purpose.name)?;
    Ok(toml.finish())
}

/// The formulation of an element type, by its name in decks and in cases, if it is not full integration.
fn formulation(name: &str) -> Option<&'static str> {
    let letters = name
        .trim_start_matches("C3D")
        .trim_start_matches(|c: char| c.is_ascii_digit());
    let nodes = &name["C3D".len().min(name.len())..name.len() - letters.len()];
    match (nodes, letters) {
        // The wedge has two points in CalculiX as in Abaqus.
        ("6", _) => Some("reduced"),
        ("8" | "20", letters) if letters.starts_with('R') => Some("reduced"),
        ("8", letters) if letters.starts_with('I') => Some("incompatible_modes"),
        _ => None,
    }
}

/// Number of integration points of an element in decks.
fn n_points(cell_type: CellType, formulation: Option<&str>) -> u64 {
    match (cell_type, formulation) {
        (CellType::Hex8, Some("reduced")) | (CellType::Tet4, _) => 1,
        (CellType::Hex20, None) => 27,
        (CellType::Tet10, _) => 4,
        (CellType::Wedge6, _) => 2,
        (CellType::Hex8 | CellType::Hex20, _) => 8,
        _ => 9,
    }
}

impl Reader {
    pub(super) fn not_yet(&self, place: Place, what: &str) -> Error {
        let error = self
            .source
            .error(place, format!("{what} is not supported in this version"));
        error.advice("take it out if the question allows, or wait for a later version")
    }

    /// `Ok` if a case can have the key.
    pub(super) fn require(&self, path: &str, key: &str, place: Place, what: &str) -> Result<()> {
        if is_key(path, key) {
            Ok(())
        } else {
            Err(self.not_yet(place, what))
        }
    }

    /// Formulation, in cases, of each solid of the deck by its index; `None` is full integration.
    fn formulations(&self) -> Vec<Option<&'static str>> {
        let n = self.source.draft.solids.types.len();
        let mut of_solids = vec![None; n];
        for (k, card) in self.elements.iter().enumerate() {
            let end = self.elements.get(k + 1).map_or(n, |next| next.first.0);
            of_solids[card.first.0..end].fill(formulation(&card.name));
        }
        of_solids
    }

    fn write_formulations(&mut self, toml: &mut Toml) -> Result<()> {
        let of_solids = self.formulations();
        let mut groups: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for (&formulation, &id) in of_solids.iter().zip(self.source.solid_ids()) {
            if let Some(formulation) = formulation {
                groups.entry(formulation).or_default().push(id);
            }
        }
        self.warn_of_special_elements();
        for (name, ids) in groups {
            let of_it = |card: &&super::super::mesh_file::abaqus::ElementCard| {
                formulation(&card.name) == Some(name)
            };
            let (place, title) = self
                .elements
                .iter()
                .find(of_it)
                .map_or_else(Default::default, |card| (card.place, card.name.clone()));
            self.require(
                "element",
                "formulation",
                place,
                &format!("element type {title}, of formulation \"{name}\","),
            )?;
            let set = if ids.len() == of_solids.len() {
                "all".to_owned()
            } else {
                self.source
                    .add_element_set(&format!("elements {name}"), ids)
            };
            toml.table("[[element]]", place);
            toml.key("elements", quoted(&set));
            toml.key("formulation", quoted(name));
        }
        Ok(())
    }

    /// Letters of element types that ask for more than is kept.
    fn warn_of_special_elements(&mut self) {
        let names: BTreeSet<String> = self.elements.iter().map(|card| card.name.clone()).collect();
        for name in names {
            let Kind::Solid { cell_type, special } = element_kind(&name) else {
                continue;
            };
            let is_modified = name.ends_with('M') || name.ends_with('S');
            if special || is_modified {
                self.note(format!("element type {name} is computed as {cell_type}: its special formulation is not kept"));
            }
        }
    }

    fn write_initial_state(&mut self, toml: &mut Toml) -> Result<()> {
        let is_heated = self
            .model
            .steps
            .iter()
            .any(|step| !step.temperatures.is_empty());
        let given = std::mem::take(&mut self.model.initial_temperatures);
        if let Some(first) = given.first() {
            self.require(
                "",
                "temperature",
                first.place,
                "*INITIAL CONDITIONS, TYPE=TEMPERATURE",
            )?;
        } else if is_heated && is_key("", "temperature") {
            toml.table("[[temperature]]", Place::default());
            toml.key("on", quoted("all"));
            toml.key("value", number(0.0));
            toml.key("initial", "true".to_owned());
        }
        self.write_temperatures(toml, &given, "[[temperature]]", true)?;
        self.write_initial_tensors(toml)
    }

    /// Temperatures in their order; consecutive ones of single nodes in one table.
    pub(super) fn write_temperatures(
        &mut self,
        toml: &mut Toml,
        given: &[super::model::Temperature],
        title: &str,
        initial: bool,
    ) -> Result<()> {
        let is_single = |t: &super::model::Temperature| matches!(t.nodes, Nodes::Number(_));
        for group in given.chunk_by(|a, b| is_single(a) && is_single(b)) {
            let first = &group[0];
            toml.table(title, first.place);
            match &first.nodes {
                Nodes::Set(_) => {
                    let set = self.source.node_set(&first.nodes, first.place)?;
                    toml.key("on", quoted(&set));
                    toml.key("value", number(first.value));
                }
                Nodes::Number(_) => {
                    let pairs = group.iter().filter_map(|t| match t.nodes {
                        Nodes::Number(id) => Some(format!("[{id}, {}]", number(t.value))),
                        Nodes::Set(_) => None,
                    });
                    toml.key("by_node", list(pairs));
                }
            }
            if initial {
                toml.key("initial", "true".to_owned());
            }
        }
        Ok(())
    }

    /// Initial stresses and strains that are the same at all points of an element, one table for elements that are alike.
    fn write_initial_tensors(&mut self, toml: &mut Toml) -> Result<()> {
        let formulations = self.formulations();
        let mut groups: Vec<(TensorKey, Vec<u64>, Place)> = Vec::new();
        let mut by_element: BTreeMap<(bool, u64), Vec<usize>> = BTreeMap::new();
        for (k, tensor) in self.model.initial_tensors.iter().enumerate() {
            by_element
                .entry((tensor.is_strain, tensor.element))
                .or_default()
                .push(k);
        }
        for ((is_strain, element), rows) in by_element {
            let first = &self.model.initial_tensors[rows[0]];
            let what = if is_strain {
                "PLASTIC STRAIN"
            } else {
                "STRESS"
            };
            let key = if is_strain {
                "initial_strain"
            } else {
                "initial_stress"
            };
            self.require(
                "load",
                key,
                first.place,
                &format!("*INITIAL CONDITIONS, TYPE={what}"),
            )?;
            let Some(k) = self.source.solid(element) else {
                return Err(self.source.error(
                    first.place,
                    format!("element {element} is no solid of this deck"),
                ));
            };
            let n = n_points(self.source.draft.solids.types[k], formulations[k]);
            let points: BTreeSet<u64> = rows
                .iter()
                .map(|&row| self.model.initial_tensors[row].point)
                .collect();
            let is_whole = points.len() as u64 == n && points.iter().all(|p| (1..=n).contains(p));
            let is_same = rows
                .iter()
                .all(|&row| self.model.initial_tensors[row].value == first.value);
            if !is_whole || !is_same {
                let what = format!(
                    "initial values of element {element} that differ from one integration point to another are not supported"
                );
                return Err(self
                    .source
                    .error(first.place, what)
                    .expected(format!("the same values at all its {n} points")));
            }
            let id = (is_strain, first.value.map(f64::to_bits));
            match groups.iter_mut().find(|group| group.0 == id) {
                Some(group) => group.1.push(element),
                None => groups.push((id, vec![element], first.place)),
            }
        }
        for (k, ((is_strain, bits), elements, place)) in groups.into_iter().enumerate() {
            let [xx, yy, zz, xy, xz, yz] = bits.map(f64::from_bits);
            // Strains of decks are those of the tensor.
            let shear = if is_strain { 2.0 } else { 1.0 };
            let value = [xx, yy, zz, shear * xy, shear * yz, shear * xz];
            let set = self
                .source
                .add_element_set(&format!("initial state {}", k + 1), elements);
            toml.table("[[load]]", place);
            toml.key("on", quoted(&set));
            let key = if is_strain {
                "initial_strain"
            } else {
                "initial_stress"
            };
            toml.key(key, list(value.iter().map(|&v| number(v))));
        }
        Ok(())
    }

    /// Fields of the result file, and what is printed.
    fn write_output(&mut self, toml: &mut Toml, name: &str) -> Result<()> {
        let wanted: BTreeSet<String> = self
            .model
            .steps
            .iter()
            .flat_map(|step| step.fields.clone())
            .collect();
        let mut fields = vec!["displacement", "stress", "von_mises", "reaction"];
        for field in wanted {
            match field.as_str() {
                "U" | "S" | "RF" | "NOE" | "PEEQ" => {}
                "E" | "ME" | "LE" if !fields.contains(&"strain") => fields.push("strain"),
                "E" | "ME" | "LE" => {}
                "PHS" | "SPRIN" => fields.push("principal_stress"),
                other => self.note(format!("field {other} is not written into the result file")),
            }
        }
        toml.table("[output]", Place::default());
        toml.key("fields", list(fields.iter().map(|field| quoted(field))));
        let prints: Vec<_> = self
            .model
            .steps
            .last()
            .map(|step| step.prints.clone())
            .unwrap_or_default();
        if prints.is_empty() {
            return Ok(());
        }
        if !is_key("", "print") {
            self.note(format!("printed output ({name}.dat) is not written in this version; the results are in results.vtkhdf"));
            return Ok(());
        }
        for print in prints {
            toml.table("[[print]]", print.place);
            toml.key("kind", quoted(print.kind.name()));
            // The kind says which set is meant.
            let set = match print.kind {
                PrintKind::Elements => self.source.element_set(&Elements::Set(print.set)),
                PrintKind::Nodes | PrintKind::Section => print.set,
            };
            toml.key("set", quoted(&set));
            toml.key(
                "quantities",
                list(print.quantities.iter().map(|q| quoted(q))),
            );
            toml.key("global", print.global.to_string());
            toml.key("totals", quoted(print.totals));
            if !print.name.is_empty() {
                toml.key("name", quoted(&print.name));
            }
        }
        Ok(())
    }

    /// All steps; a single one without a table of its own.
    fn write_steps(&mut self, toml: &mut Toml, joined: &Joined) -> Result<()> {
        let steps: Vec<Step> = self.model.steps.clone();
        let is_plain = |step: &Step| step.period == 1.0 || !is_key("", "step");
        if let [step] = &steps[..]
            && is_plain(step)
        {
            return self.write_step(toml, step, joined, "");
        }
        let second = steps.get(1).map_or(steps[0].place, |step| step.place);
        self.require("", "step", second, "a deck of several steps")?;
        for (k, step) in steps.iter().enumerate() {
            toml.table("[[step]]", step.place);
            let name = if step.name.is_empty() {
                format!("step {}", k + 1)
            } else {
                step.name.clone()
            };
            let is_taken = steps[..k].iter().any(|other| other.name == name);
            if !is_taken {
                toml.key("name", quoted(&name));
            }
            toml.key("time_period", number(step.period));
            toml.key("op", quoted("new"));
            self.write_step(toml, step, joined, "step.")?;
        }
        Ok(())
    }
}
