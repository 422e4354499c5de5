//! Tables of a case for materials and their axes, from the model of a deck.
//!
//! Invariant: as `case_text.rs`, of which this is a part.

use super::model::{ElasticKind, Elements, Material, Row};
use super::reader::Reader;
use super::toml::{Toml, list, number, quoted, vector};
use crate::case::keys::is_key;
use crate::mesh_file::draft::Place;
use fem_mesh::Result;
use std::collections::BTreeSet;

impl Reader {
    pub(super) fn write_materials(&mut self, toml: &mut Toml) -> Result<()> {
        for section in &self.model.sections {
            let is_it = |m: &Material| m.name.eq_ignore_ascii_case(&section.material);
            if !self.model.materials.iter().any(is_it) {
                let what = format!("material `{}` does not exist", section.material);
                return Err(self
                    .source
                    .error(section.place, what)
                    .expected("a *MATERIAL of that name"));
            }
        }
        if self.model.sections.is_empty() {
            let error = self
                .source
                .error(Default::default(), "no element has a material");
            return Err(error.expected("*SOLID SECTION, ELSET=..., MATERIAL=..."));
        }
        for k in 0..self.model.materials.len() {
            let name = self.model.materials[k].name.clone();
            let sections = self.model.sections.iter();
            let sections: Vec<(String, Place)> = sections
                .filter(|s| s.material.eq_ignore_ascii_case(&name))
                .map(|s| (s.elements.clone(), s.place))
                .collect();
            let Some(&(_, place)) = sections.first() else {
                self.note(format!("material `{name}` is not used"));
                continue;
            };
            let mut sets: Vec<String> = Vec::new();
            for (elements, _) in sections {
                let elements = Elements::Set(elements);
                if self.source.element_ids(&elements).is_empty() {
                    self.note(format!(
                        "material `{name}` is given to a set without elements"
                    ));
                    continue;
                }
                let set = self.source.element_set(&elements);
                if !sets.contains(&set) {
                    sets.push(set);
                }
            }
            if !sets.is_empty() {
                self.write_material(toml, k, &sets, place)?;
            }
        }
        Ok(())
    }

    fn write_material(
        &self,
        toml: &mut Toml,
        k: usize,
        sets: &[String],
        section: Place,
    ) -> Result<()> {
        let material = &self.model.materials[k];
        toml.table("[[material]]", material.place);
        toml.key("name", quoted(&material.name));
        let Some((kind, rows)) = &material.elastic else {
            let what = format!("material `{}` has no elastic constants", material.name);
            return Err(self
                .source
                .error(material.place, what)
                .expected("*ELASTIC behind *MATERIAL"));
        };
        match &rows[..] {
            [row] => {
                for (key, value) in elastic(*kind, row) {
                    self.require(
                        "material",
                        key,
                        material.place,
                        "a material that is not isotropic",
                    )?;
                    toml.key(key, value);
                }
            }
            rows => {
                self.require(
                    "material",
                    "table",
                    material.place,
                    "elasticity that depends on temperature",
                )?;
                let rows = rows.iter().map(|row| {
                    let temperature = ("temperature", number(row.0.unwrap_or(0.0)));
                    let keys = std::iter::once(temperature).chain(elastic(*kind, row));
                    inline(keys)
                });
                toml.key("table", list(rows));
            }
        }
        if let Some(density) = material.density {
            toml.key("density", number(density));
        }
        self.write_expansion(toml, material)?;
        toml.at(section);
        toml.key("elements", list(sets.iter().map(|set| quoted(set))));
        toml.at(material.place);
        Ok(())
    }

    fn write_expansion(&self, toml: &mut Toml, material: &Material) -> Result<()> {
        let coefficients = |row: &Row| match row.1[..] {
            [all] => number(all),
            ref several => list(several.iter().map(|&v| number(v))),
        };
        match &material.expansion[..] {
            [] => return Ok(()),
            [row] => {
                if row.1.len() > 1 {
                    self.require(
                        "material",
                        "reference_temperature",
                        material.place,
                        "expansion that depends on direction",
                    )?;
                }
                toml.key("expansion", coefficients(row));
            }
            rows => {
                self.require(
                    "material",
                    "expansion_table",
                    material.place,
                    "expansion that depends on temperature",
                )?;
                let rows = rows.iter().map(|row| {
                    let temperature = ("temperature", number(row.0.unwrap_or(0.0)));
                    inline([temperature, ("expansion", coefficients(row))].into_iter())
                });
                toml.key("expansion_table", list(rows));
            }
        }
        if is_key("material", "reference_temperature") {
            toml.key("reference_temperature", number(material.expansion_zero));
        }
        Ok(())
    }

    pub(super) fn write_orientations(&mut self, toml: &mut Toml) -> Result<()> {
        for section in &self.model.sections {
            let Some(name) = &section.orientation else {
                continue;
            };
            if !self
                .model
                .orientations
                .iter()
                .any(|o| o.name.eq_ignore_ascii_case(name))
            {
                let what = format!("orientation `{name}` does not exist");
                return Err(self
                    .source
                    .error(section.place, what)
                    .expected("an *ORIENTATION of that name"));
            }
        }
        for k in 0..self.model.orientations.len() {
            let name = self.model.orientations[k].name.clone();
            let is_of =
                |of: &Option<String>| of.as_ref().is_some_and(|of| of.eq_ignore_ascii_case(&name));
            let sections = self.model.sections.iter().filter(|s| is_of(&s.orientation));
            let elements: Vec<Elements> = sections
                .map(|s| Elements::Set(s.elements.clone()))
                .collect();
            if elements.is_empty() {
                continue;
            }
            let orientation = &self.model.orientations[k];
            if !is_key("", "orientation") {
                if self.turns_nothing(&name) {
                    continue;
                }
                let what = "*ORIENTATION of a material that is not isotropic";
                return Err(self.not_yet(orientation.place, what));
            }
            for (part, (sets, points)) in self.oriented(k, &elements).into_iter().enumerate() {
                let orientation = &self.model.orientations[k];
                toml.table("[[orientation]]", orientation.place);
                let number_of_part = if part == 0 {
                    String::new()
                } else {
                    format!(" {}", part + 1)
                };
                toml.key("name", quoted(&format!("{name}{number_of_part}")));
                toml.key("elements", list(sets.iter().map(|set| quoted(set))));
                let system = if orientation.is_cylindrical {
                    "cylindrical"
                } else {
                    "rectangular"
                };
                toml.key("type", quoted(system));
                toml.key("a", vector(points[0]));
                toml.key("b", vector(points[1]));
                if let Some((axis, angle)) = orientation.rotation {
                    toml.key(
                        "rotate",
                        format!("{{ axis = {axis}, angle = {} }}", number(angle)),
                    );
                }
            }
        }
        Ok(())
    }

    /// Element sets with their points of an orientation: all of its sections, or, where a distribution gives some
    /// elements other points, the rest of them and those.
    fn oriented(&mut self, k: usize, elements: &[Elements]) -> Vec<(Vec<String>, [[f64; 3]; 2])> {
        let (points, others) = (
            self.model.orientations[k].points,
            self.model.orientations[k].others.clone(),
        );
        if others.is_empty() {
            return vec![(
                elements
                    .iter()
                    .map(|e| self.source.element_set(e))
                    .collect(),
                points,
            )];
        }
        let mut rest: BTreeSet<u64> = elements
            .iter()
            .flat_map(|e| self.source.element_ids(e))
            .collect();
        let mut parts = Vec::new();
        // Of several lines for one element the last counts.
        for (some, points) in others.iter().rev() {
            let ids: Vec<u64> = self
                .source
                .element_ids(some)
                .into_iter()
                .filter(|id| rest.remove(id))
                .collect();
            if !ids.is_empty() {
                let set = self.source.add_element_set("oriented", ids);
                parts.push((vec![set], *points));
            }
        }
        if !rest.is_empty() {
            let set = self
                .source
                .add_element_set("oriented", rest.into_iter().collect());
            parts.push((vec![set], points));
        }
        parts.reverse();
        parts
    }

    /// Whether all materials with these axes are isotropic.
    fn turns_nothing(&self, orientation: &str) -> bool {
        let of_it = self.model.sections.iter().filter(|s| {
            s.orientation
                .as_ref()
                .is_some_and(|name| name.eq_ignore_ascii_case(orientation))
        });
        let mut materials = of_it.filter_map(|s| {
            self.model
                .materials
                .iter()
                .find(|m| m.name.eq_ignore_ascii_case(&s.material))
        });
        materials.all(|m| matches!(m.elastic, Some((ElasticKind::Isotropic, _))))
    }
}

/// Keys of elastic constants.
fn elastic(kind: ElasticKind, row: &Row) -> impl Iterator<Item = (&'static str, String)> + use<> {
    let values = &row.1;
    let keys = match kind {
        ElasticKind::Isotropic => {
            vec![("young", number(values[0])), ("poisson", number(values[1]))]
        }
        ElasticKind::Engineering => {
            let three = |k: usize| list(values[k..k + 3].iter().map(|&v| number(v)));
            let keys = [
                ("young", three(0)),
                ("poisson", three(3)),
                ("shear", three(6)),
            ];
            vec![("orthotropic", inline(keys.into_iter()))]
        }
        ElasticKind::Stiffness => vec![("stiffness", list(values.iter().map(|&v| number(v))))],
    };
    keys.into_iter()
}

/// `{ key = value, ... }`.
fn inline(keys: impl Iterator<Item = (&'static str, String)>) -> String {
    let keys: Vec<String> = keys
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    format!("{{ {} }}", keys.join(", "))
}
