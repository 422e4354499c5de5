//! The mesh of a deck by its numbers and names, and the fields of its data lines: what every card is read with.
//!
//! Sets that a card needs and the deck has no name for (a node by its number, one face of the elements of a set) are
//! made here, once each, and go into the mesh.
//!
//! Invariant: knows numbers, names and places; no material, load or step.

use super::model::{Elements, Faces, Nodes};
use crate::case::words::suggest_name;
use crate::mesh_file::abaqus::card::{DataLine, unquoted};
use crate::mesh_file::abaqus::sets::{SetKind, SetNames};
use crate::mesh_file::draft::{Draft, DraftFaces, IdSet, Place};
use crate::mesh_file::id_lookup::IdLookup;
use crate::mesh_file::scan::{parse_float, parse_unsigned};
use fem_mesh::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// The element set that the case file keeps for all elements.
const ALL: &str = "all";

/// The mesh of the deck.
pub(super) struct Source {
    pub(super) draft: Draft,
    pub(super) names: SetNames,
    /// Name of the one instance of the one part, if the deck has parts.
    instance: Option<String>,
    /// Sets made here, by what they stand for.
    made: BTreeMap<Made, String>,
    node_lookup: IdLookup,
    solid_lookup: IdLookup,
    /// Whether a solid has the node, by its index.
    is_used: Vec<bool>,
}

/// What a set made here stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Made {
    Nodes(Vec<u64>),
    NodesOf(String),
    Element(u64),
    ElementsOf(String),
    Face(Elements, u8),
    Faces(Vec<(u64, u8)>),
}

/// One data line.
pub(super) struct Line<'a> {
    fields: Vec<&'a str>,
    pub(super) place: Place,
}

impl Source {
    pub(super) fn new(draft: Draft, names: SetNames, instance: Option<String>) -> Self {
        let node_lookup = IdLookup::new(&draft.nodes.ids).0;
        let solid_lookup = IdLookup::new(&draft.solids.ids).0;
        let mut is_used = vec![false; draft.nodes.ids.len()];
        for node in draft
            .solids
            .nodes
            .iter()
            .filter_map(|&id| node_lookup.get(id))
        {
            is_used[node as usize] = true;
        }
        Source {
            draft,
            names,
            instance,
            made: BTreeMap::new(),
            node_lookup,
            solid_lookup,
            is_used,
        }
    }

    /// Coordinates of a node, and whether it belongs to a solid; `None` if there is no such node.
    pub(super) fn node(&self, id: u64) -> Option<([f64; 3], bool)> {
        let k = self.node_lookup.get(id)? as usize;
        Some((self.draft.nodes.coords[k], self.is_used[k]))
    }

    /// Index of a solid.
    pub(super) fn solid(&self, id: u64) -> Option<usize> {
        self.solid_lookup.get(id).map(|k| k as usize)
    }

    /// Numbers of the solids.
    pub(super) fn solid_ids(&self) -> &[u64] {
        &self.draft.solids.ids
    }

    /// An input error at a place of the deck.
    pub(super) fn error(&self, place: Place, what: impl Into<String>) -> Error {
        self.draft.error_at(place, Error::input(what))
    }

    /// Puts a place on an error that has none.
    pub(super) fn located(&self, place: Place, error: Error) -> Error {
        self.draft.error_at(place, error)
    }

    /// The field without the name of the instance before it, and without quotes.
    fn within<'a>(&self, field: &'a str) -> &'a str {
        let field = unquoted(field);
        let of_instance = self.instance.as_deref().and_then(|instance| {
            let (prefix, rest) = field.split_at_checked(instance.len())?;
            prefix
                .eq_ignore_ascii_case(instance)
                .then(|| rest.strip_prefix('.'))?
        });
        of_instance.unwrap_or(field)
    }

    /// The name, as first written, of a set or surface that the deck defines.
    pub(super) fn set(&self, kind: SetKind, name: &str, place: Place) -> Result<String> {
        let name = self.within(name);
        if let Some(written) = self.names.find(kind, name) {
            return Ok(written.to_owned());
        }
        let error = self.error(place, format!("{} `{name}` does not exist", kind.title()));
        let known: Vec<&String> = match kind {
            SetKind::Node => self.draft.node_sets.keys().collect(),
            SetKind::Element => self.draft.cell_sets.keys().collect(),
            SetKind::Surface => self.draft.face_sets.keys().collect(),
        };
        Err(suggest_name(error, name, &known))
    }

    pub(super) fn nodes(&self, field: &str, place: Place) -> Result<Nodes> {
        match parse_unsigned(self.within(field).as_bytes()) {
            Some(id) => Ok(Nodes::Number(id)),
            None => self.set(SetKind::Node, field, place).map(Nodes::Set),
        }
    }

    pub(super) fn elements(&self, field: &str, place: Place) -> Result<Elements> {
        match parse_unsigned(self.within(field).as_bytes()) {
            Some(id) => Ok(Elements::Number(id)),
            None => self.set(SetKind::Element, field, place).map(Elements::Set),
        }
    }

    /// Numbers of the nodes, ranges cut to those that exist.
    pub(super) fn node_ids(&self, nodes: &Nodes) -> Vec<u64> {
        match nodes {
            Nodes::Number(id) => vec![*id],
            Nodes::Set(name) => members(
                self.draft.node_sets.get(name),
                &self.node_lookup,
                &self.draft.nodes.ids,
            ),
        }
    }

    /// Numbers of the elements, ranges cut to the solids that exist.
    pub(super) fn element_ids(&self, elements: &Elements) -> Vec<u64> {
        match elements {
            Elements::Number(id) => vec![*id],
            Elements::Set(name) => {
                let set = self.draft.cell_sets.get(name);
                members(set, &self.solid_lookup, &self.draft.solids.ids)
            }
        }
    }

    /// The name of a node set of the mesh with these members: that of the deck, unless a case would take it for a set of
    /// faces.
    pub(super) fn node_set(&mut self, nodes: &Nodes, place: Place) -> Result<String> {
        match nodes {
            Nodes::Number(id) => {
                if self.node(*id).is_none() {
                    return Err(self.error(place, format!("node {id} does not exist")));
                }
                Ok(self.made_node_set(vec![*id]))
            }
            Nodes::Set(name) => {
                let is_face_set =
                    self.draft.face_sets.contains_key(name) || self.is_set_of_facets(name);
                if !is_face_set {
                    return Ok(name.clone());
                }
                let members = self.draft.node_sets.get(name).cloned().unwrap_or_default();
                let made = Made::NodesOf(name.clone());
                Ok(self.make(made, |draft, name| {
                    drop(draft.node_sets.insert(name, members))
                }))
            }
        }
    }

    /// A node set of these numbers.
    pub(super) fn made_node_set(&mut self, ids: Vec<u64>) -> String {
        let set = IdSet {
            ids: ids.clone(),
            ranges: Vec::new(),
        };
        self.make(Made::Nodes(ids), |draft, name| {
            drop(draft.node_sets.insert(name, set))
        })
    }

    /// The name of a set of a node of no element: that of the deck, if there is one, or a new one. From now on the node is
    /// named so, and the mesh has no such set.
    pub(super) fn name_free_node(&mut self, id: u64) -> String {
        let sets = self.draft.node_sets.iter();
        let of_it = sets.filter(|(_, set)| set.ranges.is_empty() && set.ids == [id]);
        let name = of_it.map(|(name, _)| name.clone()).next();
        let name = name.unwrap_or_else(|| self.free_name(&format!("node {id}")));
        self.draft.node_sets.remove(&name);
        self.made.insert(Made::Nodes(vec![id]), name.clone());
        name
    }

    /// The name of an element set of the mesh with these members.
    pub(super) fn element_set(&mut self, elements: &Elements) -> String {
        match elements {
            Elements::Number(id) => {
                let set = IdSet {
                    ids: vec![*id],
                    ranges: Vec::new(),
                };
                self.make(Made::Element(*id), |draft, name| {
                    drop(draft.cell_sets.insert(name, set))
                })
            }
            Elements::Set(name) if name == ALL => {
                let members = self.draft.cell_sets.get(name).cloned().unwrap_or_default();
                let made = Made::ElementsOf(name.clone());
                self.make(made, |draft, name| {
                    drop(draft.cell_sets.insert(name, members))
                })
            }
            Elements::Set(name) => name.clone(),
        }
    }

    /// Faces of a surface: index of the solid, and of its face.
    pub(super) fn faces_of(&self, surface: &str) -> Vec<(usize, u8)> {
        let mut faces = Vec::new();
        if let Some(surface) = self.draft.face_sets.get(surface) {
            for (set, face, _) in &surface.of_elements {
                let ids = members(Some(set), &self.solid_lookup, &self.draft.solids.ids);
                faces.extend(ids.iter().filter_map(|&id| Some((self.solid(id)?, *face))));
            }
        }
        faces
    }

    /// Gives solids new nodes, which are made at the places of the old ones.
    pub(super) fn renumber(&mut self, solids: &BTreeSet<usize>, new: &BTreeMap<u64, u64>) {
        let mut start = 0;
        for (k, cell_type) in self.draft.solids.types.iter().enumerate() {
            let end = start + cell_type.n_nodes();
            if solids.contains(&k) {
                for node in &mut self.draft.solids.nodes[start..end] {
                    *node = new.get(node).copied().unwrap_or(*node);
                }
            }
            start = end;
        }
        for (old, &new) in new {
            if let Some(k) = self.node_lookup.get(*old) {
                let nodes = &mut self.draft.nodes;
                let (coords, place) = (nodes.coords[k as usize], nodes.places[k as usize]);
                nodes.push(new, coords, place);
                self.is_used.push(true);
            }
        }
        self.node_lookup = IdLookup::new(&self.draft.nodes.ids).0;
    }

    /// An element set of these numbers.
    pub(super) fn add_element_set(&mut self, name: &str, ids: Vec<u64>) -> String {
        let name = self.free_name(name);
        let ranges = Vec::new();
        self.draft
            .cell_sets
            .insert(name.clone(), IdSet { ids, ranges });
        name
    }

    /// The name of a face set of the mesh with these members.
    pub(super) fn face_set(&mut self, faces: &Faces, place: Place) -> String {
        match faces {
            Faces::Surface(name) => name.clone(),
            Faces::Of(elements, face) => {
                let members = match elements {
                    Elements::Number(id) => IdSet {
                        ids: vec![*id],
                        ranges: Vec::new(),
                    },
                    Elements::Set(name) => {
                        self.draft.cell_sets.get(name).cloned().unwrap_or_default()
                    }
                };
                let made = Made::Face(elements.clone(), *face);
                let face = *face;
                self.make(made, |draft, name| {
                    let faces = DraftFaces {
                        of_elements: vec![(members, face, place)],
                        ..DraftFaces::default()
                    };
                    draft.face_sets.insert(name, faces);
                })
            }
        }
    }

    /// A face set of these faces of elements.
    pub(super) fn made_face_set(&mut self, faces: Vec<(u64, u8)>, place: Place) -> String {
        if let [(id, face)] = faces[..] {
            return self.face_set(&Faces::Of(Elements::Number(id), face), place);
        }
        let made = Made::Faces(faces.clone());
        self.make(made, |draft, name| {
            let one = |(id, face)| {
                let set = IdSet {
                    ids: vec![id],
                    ranges: Vec::new(),
                };
                (set, face, place)
            };
            let faces = DraftFaces {
                of_elements: faces.into_iter().map(one).collect(),
                ..DraftFaces::default()
            };
            draft.face_sets.insert(name, faces);
        })
    }

    /// Whether an element set holds no solids, so that the mesh takes it for a set of faces.
    fn is_set_of_facets(&self, name: &str) -> bool {
        let Some(set) = self.draft.cell_sets.get(name) else {
            return false;
        };
        !self.draft.surface_elements.is_empty()
            && members(Some(set), &self.solid_lookup, &self.draft.solids.ids)
                .iter()
                .all(|&id| self.solid(id).is_none())
    }

    fn make(&mut self, made: Made, insert: impl FnOnce(&mut Draft, String)) -> String {
        if let Some(name) = self.made.get(&made) {
            return name.clone();
        }
        let name = match &made {
            Made::Nodes(ids) => match ids[..] {
                [id] => format!("node {id}"),
                _ => format!("nodes {}", self.made.len() + 1),
            },
            Made::Faces(_) => format!("faces {}", self.made.len() + 1),
            Made::NodesOf(name) => format!("nodes of {name}"),
            Made::Element(id) => format!("element {id}"),
            Made::ElementsOf(name) => format!("elements of {name}"),
            Made::Face(Elements::Number(id), face) => format!("element {id} S{}", face + 1),
            Made::Face(Elements::Set(name), face) => format!("{name} S{}", face + 1),
        };
        let name = self.free_name(&name);
        insert(&mut self.draft, name.clone());
        self.made.insert(made, name.clone());
        name
    }

    /// A name that no set has yet.
    fn free_name(&self, wanted: &str) -> String {
        let is_taken = |name: &str| {
            [SetKind::Node, SetKind::Element, SetKind::Surface]
                .into_iter()
                .any(|kind| self.names.find(kind, name).is_some())
                || self.draft.node_sets.contains_key(name)
                || self.draft.cell_sets.contains_key(name)
                || self.draft.face_sets.contains_key(name)
        };
        let mut name = wanted.to_owned();
        while is_taken(&name) {
            name.push('\'');
        }
        name
    }

    // Fields of data lines.

    /// The fields of a data line.
    pub(super) fn line<'a>(&self, line: &'a DataLine) -> Line<'a> {
        let mut quoted = false;
        let text = line.text.strip_suffix(',').unwrap_or(&line.text);
        let split = text.split(|c| {
            quoted ^= c == '"';
            c == ',' && !quoted
        });
        Line {
            fields: split.map(str::trim).collect(),
            place: line.place,
        }
    }

    /// A field that must be a number.
    pub(super) fn number(&self, line: &Line<'_>, k: usize, what: &str) -> Result<f64> {
        match self.optional_number(line, k, what)? {
            Some(number) => Ok(number),
            None => Err(self.error(line.place, "a value is missing").expected(what)),
        }
    }

    /// A field that may be left out.
    pub(super) fn optional_number(
        &self,
        line: &Line<'_>,
        k: usize,
        what: &str,
    ) -> Result<Option<f64>> {
        match line.get(k) {
            None => Ok(None),
            Some(field) => self.parse_number(field, line.place, what).map(Some),
        }
    }

    /// A number.
    pub(super) fn parse_number(&self, field: &str, place: Place, what: &str) -> Result<f64> {
        parse_float(field.as_bytes()).ok_or_else(|| {
            self.error(place, format!("not a number: `{field}`"))
                .expected(what)
        })
    }

    /// A field that must be a whole number.
    pub(super) fn whole(&self, line: &Line<'_>, k: usize, what: &str) -> Result<u64> {
        let field = line.get(k).unwrap_or_default();
        parse_unsigned(field.as_bytes()).ok_or_else(|| {
            self.error(line.place, format!("not a whole number: `{field}`"))
                .expected(what)
        })
    }

    /// Three numbers, from field `k` on.
    pub(super) fn vector(&self, line: &Line<'_>, k: usize, what: &str) -> Result<[f64; 3]> {
        let mut vector = [0.0; 3];
        for (i, component) in vector.iter_mut().enumerate() {
            *component = self.number(line, k + i, what)?;
        }
        Ok(vector)
    }

    /// The vector at length 1.
    pub(super) fn unit(&self, vector: [f64; 3], place: Place) -> Result<[f64; 3]> {
        let length = vector.iter().map(|v| v * v).sum::<f64>().sqrt();
        if length > 0.0 {
            return Ok(vector.map(|v| v / length));
        }
        Err(self
            .error(place, "the direction has length 0")
            .expected("a vector"))
    }
}

impl Line<'_> {
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// A field that is there and not empty.
    pub(super) fn get(&self, k: usize) -> Option<&str> {
        self.fields
            .get(k)
            .copied()
            .filter(|field| !field.is_empty())
    }
}

/// Numbers of a set, ascending, once each; of ranges those that exist.
fn members(set: Option<&IdSet>, lookup: &IdLookup, existing: &[u64]) -> Vec<u64> {
    let Some(set) = set else { return Vec::new() };
    let mut ids = set.ids.clone();
    for &range in &set.ranges {
        lookup.for_range(range, |k| ids.push(existing[k as usize]));
    }
    ids.sort_unstable();
    ids.dedup();
    ids
}
