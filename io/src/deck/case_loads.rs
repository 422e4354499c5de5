//! Tables of a case for what is prescribed and what acts in a step, from the model of a deck.
//!
//! Nodes named by number that have the same values share a set, so that a deck that lists nodes one by one makes few
//! tables.
//!
//! Invariant: as `case_text.rs`, of which this is a part.

use super::case_joins::Joined;
use super::model::{Elements, Faces, Fixed, Load, LoadOn, Nodes, Step};
use super::reader::Reader;
use super::toml::{Toml, list, number, quoted, vector};
use crate::case::keys::is_key;
use crate::mesh_file::draft::Place;
use fem_mesh::Result;
use std::collections::BTreeMap;

/// Six components of one place; `None` where there is none.
type Components = [Option<f64>; 6];

/// What is said about nodes, in the order in which the deck first names them.
#[derive(Default)]
struct ByNodes {
    order: Vec<Nodes>,
    values: BTreeMap<Nodes, (Components, Place)>,
}

impl ByNodes {
    fn entry(&mut self, nodes: &Nodes, place: Place) -> &mut Components {
        if !self.values.contains_key(nodes) {
            self.order.push(nodes.clone());
        }
        &mut self
            .values
            .entry(nodes.clone())
            .or_insert(([None; 6], place))
            .0
    }

    /// Sets as they are; single nodes of equal values together. Each with its values and place.
    fn grouped(self) -> Vec<(Target, Components, Place)> {
        let mut groups: Vec<(Target, Components, Place)> = Vec::new();
        let mut of_numbers: BTreeMap<[Option<u64>; 6], usize> = BTreeMap::new();
        for nodes in self.order {
            let (values, place) = self.values[&nodes];
            let id = match nodes {
                Nodes::Set(_) => {
                    groups.push((Target::Set(nodes), values, place));
                    continue;
                }
                Nodes::Number(id) => id,
            };
            let bits = values.map(|v| v.map(f64::to_bits));
            let at = *of_numbers.entry(bits).or_insert_with(|| {
                groups.push((Target::Numbers(Vec::new()), values, place));
                groups.len() - 1
            });
            if let Target::Numbers(ids) = &mut groups[at].0 {
                ids.push(id);
            }
        }
        groups
    }
}

enum Target {
    Set(Nodes),
    Numbers(Vec<u64>),
}

/// Number of an element, and of its face from 0.
type ElementFace = (u64, u8);

/// Pressures on faces of single elements: those of equal values together, in the order in which the deck names them.
#[derive(Default)]
struct OnFaces {
    groups: Vec<(f64, Vec<ElementFace>, Place)>,
    by_value: BTreeMap<(u64, usize), usize>,
    seen: BTreeMap<(u64, u8), usize>,
}

impl OnFaces {
    /// A face that is named again is in a group of its own: its pressures add up.
    fn add(&mut self, load: &Load, id: u64, face: u8) {
        let times = self.seen.entry((id, face)).or_insert(0);
        let key = (load.value.to_bits(), *times);
        *times += 1;
        let groups = &mut self.groups;
        let at = *self.by_value.entry(key).or_insert_with(|| {
            groups.push((load.value, Vec::new(), load.place));
            groups.len() - 1
        });
        groups[at].1.push((id, face));
    }
}

impl Reader {
    /// Writes what acts in a step; `prefix` stands before the names of the tables.
    pub(super) fn write_step(
        &mut self,
        toml: &mut Toml,
        step: &Step,
        joined: &Joined,
        prefix: &str,
    ) -> Result<()> {
        self.write_fixed(toml, step, joined, prefix)?;
        self.write_nodal_loads(toml, step, joined, prefix)?;
        let mut on_faces = OnFaces::default();
        for load in step.loads.iter().filter(|load| !load.on.is_nodal()) {
            match &load.on {
                LoadOn::Faces(Faces::Of(Elements::Number(id), face)) => {
                    if self.source.solid(*id).is_none() {
                        let what = format!("element {id} is no solid of this deck");
                        return Err(self.source.error(load.place, what));
                    }
                    on_faces.add(load, *id, *face);
                }
                _ => self.write_load(toml, load, prefix)?,
            }
        }
        for (value, faces, place) in on_faces.groups {
            let set = self.source.made_face_set(faces, place);
            toml.table(&format!("[[{prefix}load]]"), place);
            toml.key("on", quoted(&set));
            toml.key("pressure", number(value));
        }
        if let Some(first) = step.temperatures.first() {
            self.require("", "temperature", first.place, "*TEMPERATURE")?;
            let title = format!("[[{prefix}temperature]]");
            self.write_temperatures(toml, &step.temperatures, &title, false)?;
        }
        Ok(())
    }

    fn write_fixed(
        &mut self,
        toml: &mut Toml,
        step: &Step,
        joined: &Joined,
        prefix: &str,
    ) -> Result<()> {
        let mut all = ByNodes::default();
        for fixed in &step.fixed {
            if self.holds_something(fixed, step, joined)? {
                all.entry(&fixed.nodes, fixed.place)[fixed.dof as usize - 1] = Some(fixed.value);
            }
        }
        for (target, values, place) in all.grouped() {
            let set = self.name_of(&target, place)?;
            let [displacement, rotation] = [&values[..3], &values[3..]];
            let has = |part: &[Option<f64>]| part.iter().any(Option::is_some);
            toml.table(&format!("[[{prefix}constraint]]"), place);
            toml.key("on", quoted(&set));
            if has(displacement) {
                toml.key("displacement", components(displacement));
            }
            if has(rotation) {
                self.require("constraint", "rotation", place, "a prescribed rotation")?;
                toml.key("rotation", components(rotation));
            }
        }
        Ok(())
    }

    /// Whether the degree of freedom exists: nodes of solids do not turn, nodes of no element count only where a
    /// constraint names them.
    fn holds_something(&mut self, fixed: &Fixed, step: &Step, joined: &Joined) -> Result<bool> {
        if fixed.dof > 3 {
            let ids = self.source.node_ids(&fixed.nodes);
            return Ok(!ids.is_empty() && ids.iter().all(|id| joined.references.contains(id)));
        }
        let Nodes::Number(id) = fixed.nodes else {
            return Ok(true);
        };
        match self.source.node(id) {
            None => Err(self
                .source
                .error(fixed.place, format!("node {id} does not exist"))),
            Some((_, true)) => Ok(true),
            Some((_, false)) if joined.free.contains(&id) => Ok(true),
            Some((_, false)) => {
                if !step.loads.iter().any(|load| load.of_node == Some(id)) {
                    self.note(format!(
                        "what is prescribed at node {id} is passed over: it belongs to no element"
                    ));
                }
                Ok(false)
            }
        }
    }

    fn write_nodal_loads(
        &mut self,
        toml: &mut Toml,
        step: &Step,
        joined: &Joined,
        prefix: &str,
    ) -> Result<()> {
        let mut all = ByNodes::default();
        for load in &step.loads {
            let LoadOn::Node(nodes, dof) = &load.on else {
                continue;
            };
            self.require_loadable(nodes, *dof, load.place, joined)?;
            let slot = &mut all.entry(nodes, load.place)[*dof as usize - 1];
            *slot = Some(slot.unwrap_or(0.0) + load.value);
        }
        for (target, values, place) in all.grouped() {
            let set = self.name_of(&target, place)?;
            let n = match &target {
                Target::Set(nodes) => self.source.node_ids(nodes).len(),
                Target::Numbers(ids) => ids.len(),
            };
            let part = |from: usize| -> [f64; 3] {
                std::array::from_fn(|i| values[from + i].unwrap_or(0.0))
            };
            if values[..3].iter().any(Option::is_some) {
                toml.table(&format!("[[{prefix}load]]"), place);
                toml.key("on", quoted(&set));
                // The same force on each node; a total is spread over a node set evenly.
                match n {
                    2.. if is_key("load", "nodal_force") => {
                        toml.key("nodal_force", vector(part(0)))
                    }
                    _ => toml.key("force", vector(part(0).map(|v| v * n as f64))),
                }
            }
            if values[3..].iter().any(Option::is_some) {
                self.require("load", "moment", place, "a moment")?;
                toml.table(&format!("[[{prefix}load]]"), place);
                toml.key("on", quoted(&set));
                toml.key("moment", vector(part(3).map(|v| v * n as f64)));
            }
        }
        Ok(())
    }

    /// A force needs something that resists it.
    fn require_loadable(
        &self,
        nodes: &Nodes,
        dof: u64,
        place: Place,
        joined: &Joined,
    ) -> Result<()> {
        let ids = self.source.node_ids(nodes);
        if dof > 3 && !ids.iter().all(|id| joined.references.contains(id)) {
            let error = self
                .source
                .error(place, "a moment on nodes of solids, which do not turn");
            return Err(error.expected("the reference node of a *COUPLING or *RIGID BODY"));
        }
        let Nodes::Number(id) = nodes else {
            return Ok(());
        };
        match self.source.node(*id) {
            None => Err(self
                .source
                .error(place, format!("node {id} does not exist"))),
            Some((_, false)) if !joined.free.contains(id) => {
                let error = self.source.error(
                    place,
                    format!("a force on node {id}, which belongs to no element"),
                );
                Err(error
                    .expected("a node of an element, or one that a constraint joins to the model"))
            }
            _ => Ok(()),
        }
    }

    fn name_of(&mut self, target: &Target, place: Place) -> Result<String> {
        match target {
            Target::Set(nodes) => self.source.node_set(nodes, place),
            Target::Numbers(ids) if ids.len() == 1 => {
                self.source.node_set(&Nodes::Number(ids[0]), place)
            }
            Target::Numbers(ids) => Ok(self.source.made_node_set(ids.clone())),
        }
    }

    fn write_load(&mut self, toml: &mut Toml, load: &Load, prefix: &str) -> Result<()> {
        let (set, key, value) = match &load.on {
            LoadOn::Node(..) => return Ok(()),
            LoadOn::Faces(faces) => (
                self.source.face_set(faces, load.place),
                "pressure",
                number(load.value),
            ),
            LoadOn::Traction(faces, direction) => {
                let traction = direction.0.map(|v| v * load.value);
                (
                    self.source.face_set(faces, load.place),
                    "traction",
                    vector(traction),
                )
            }
            LoadOn::Body(elements, axis) => {
                let mut force = [0.0; 3];
                force[*axis] = load.value;
                (
                    self.source.element_set(elements),
                    "body_force",
                    vector(force),
                )
            }
            LoadOn::Gravity(elements, direction) => {
                let acceleration = direction.0.map(|v| v * load.value);
                (
                    self.source.element_set(elements),
                    "gravity",
                    vector(acceleration),
                )
            }
            LoadOn::Centrifugal(elements, origin, axis) => {
                let value = format!(
                    "{{ origin = {}, axis = {}, omega = {} }}",
                    vector(origin.0),
                    vector(axis.0),
                    number(load.value.abs().sqrt())
                );
                (self.source.element_set(elements), "centrifugal", value)
            }
        };
        toml.table(&format!("[[{prefix}load]]"), load.place);
        toml.key("on", quoted(&set));
        toml.key(key, value);
        Ok(())
    }
}

fn components(values: &[Option<f64>]) -> String {
    list(
        values
            .iter()
            .map(|v| v.map_or_else(|| quoted("free"), number)),
    )
}
