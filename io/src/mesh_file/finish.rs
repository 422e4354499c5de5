//! From a [`Draft`] to a checked [`Mesh`]: numbers become indices, what cannot be right is refused by name, what no
//! solid uses is dropped with a warning.
//!
//! Invariant: knows no file format, and changes neither coordinates nor the node order of an element.

use super::MeshFile;
use super::draft::{Draft, DraftFaces, IdSet};
use super::id_lookup::IdLookup;
use fem_mesh::facets::match_facets;
use fem_mesh::{CellFace, CellType, Cells, Error, Mesh, Result};
use std::collections::BTreeMap;

/// Name of the element set that holds every element.
const ALL: &str = "all";

/// How many numbers a message lists.
const SHOWN: usize = 5;

/// Index of a node that no solid uses.
const DROPPED: u32 = u32::MAX;

impl Draft {
    /// Checks everything and makes the mesh. Fails on what the documentation of [`super::read`] lists.
    pub(super) fn finish(mut self) -> Result<MeshFile> {
        self.refuse_unsupported()?;
        self.refuse_emptiness()?;
        let node_lookup = self.look_up_nodes()?;
        let mut cells = self.resolve_cells(&node_lookup)?;
        let cell_lookup = self.look_up_cells()?;
        self.refuse_same_nodes(&cells)?;

        let new_index = self.drop_unused_nodes(&mut cells);
        let mut mesh = Mesh {
            cells,
            ..Mesh::default()
        };
        self.resolve_node_sets(&mut mesh, &node_lookup, &new_index);
        self.resolve_cell_sets(&mut mesh, &cell_lookup);
        self.resolve_face_sets(&mut mesh, (&node_lookup, &new_index), &cell_lookup)?;
        mesh.node_ids = self.nodes.ids;
        mesh.coords = self.nodes.coords;
        mesh.cell_ids = self.solids.ids;
        Ok(MeshFile {
            mesh,
            warnings: self.warnings,
        })
    }

    fn refuse_unsupported(&self) -> Result<()> {
        let Some((name, &(place, count))) = self.unsupported.first_key_value() else {
            return Ok(());
        };
        let others: Vec<&str> = self
            .unsupported
            .keys()
            .skip(1)
            .map(String::as_str)
            .collect();
        let others = if others.is_empty() {
            String::new()
        } else {
            format!("; nor {}", others.join(", "))
        };
        let what = format!(
            "element type {name} is not supported yet ({count} element{} of it){others}",
            plural(count)
        );
        let known: Vec<&str> = CellType::SOLIDS.iter().map(|t| t.name()).collect();
        let error = Error::input(what)
            .expected(format!("solids of type {}", known.join(", ")))
            .advice("mesh the part with one of these");
        Err(self.error_at(place, error))
    }

    fn refuse_emptiness(&self) -> Result<()> {
        if !self.solids.types.is_empty() {
            return Ok(());
        }
        let what = format!(
            "the mesh has no solid element ({} nodes, {} other elements)",
            self.nodes.ids.len(),
            self.other_elements.len()
        );
        let error = Error::input(what)
            .expected("at least one tetrahedron, hexahedron or wedge")
            .advice("mesh the volume too; in Gmsh: `Physical Volume`, then `Mesh 3`");
        Err(self.error_at(Default::default(), error))
    }

    /// Indexes the node numbers. A node given twice with the same coordinates counts once.
    fn look_up_nodes(&mut self) -> Result<IdLookup> {
        if self.nodes.ids.len() >= DROPPED as usize || self.solids.nodes.len() >= DROPPED as usize {
            return Err(self.error_at(
                Default::default(),
                Error::input("the mesh has too many nodes for one file"),
            ));
        }
        let (lookup, repeated) = IdLookup::new(&self.nodes.ids);
        for &(first, later) in &repeated {
            let (first, later) = (first as usize, later as usize);
            if self.nodes.coords[first] != self.nodes.coords[later] {
                let [id, line] = [
                    self.nodes.ids[later],
                    u64::from(self.nodes.places[first].line),
                ];
                let before = if line > 0 {
                    format!(" (first on line {line})")
                } else {
                    String::new()
                };
                let error = Error::input(format!(
                    "node {id} is given twice, with different coordinates{before}"
                ))
                .advice("number every node once");
                return Err(self.error_at(self.nodes.places[later], error));
            }
        }
        if !repeated.is_empty() {
            let ids = repeated
                .iter()
                .map(|&(_, later)| self.nodes.ids[later as usize]);
            let listed = listed(ids);
            self.warnings.push(format!(
                "{} node{} given more than once with the same coordinates, taken once: {listed}",
                repeated.len(),
                plural(repeated.len())
            ));
        }
        Ok(lookup)
    }

    /// The cells by index into `self.nodes`.
    fn resolve_cells(&self, lookup: &IdLookup) -> Result<Cells> {
        let mut cells = Cells::default();
        cells.types.reserve_exact(self.solids.types.len());
        cells.offsets.reserve_exact(self.solids.types.len());
        cells.nodes.reserve_exact(self.solids.nodes.len());
        let mut nodes = [0; MOST_NODES];
        for (k, (cell_type, ids)) in self.solids.iter().enumerate() {
            for (slot, &id) in nodes.iter_mut().zip(ids) {
                *slot = lookup.get(id).ok_or_else(|| {
                    let number = self.solids.ids[k];
                    let error = Error::input(format!(
                        "element {number} names node {id}, which does not exist"
                    ));
                    self.error_at(self.solids.places[k], error)
                })?;
            }
            let nodes = &nodes[..ids.len()];
            if let Some(twice) = repeated_entry(nodes) {
                let [number, id] = [self.solids.ids[k], self.nodes.ids[twice as usize]];
                let error = Error::input(format!("element {number} names node {id} twice"))
                    .expected(format!("{} different nodes for a {cell_type}", ids.len()))
                    .advice("replace collapsed elements by wedges or tetrahedra");
                return Err(self.error_at(self.solids.places[k], error));
            }
            cells.push(cell_type, nodes);
        }
        Ok(cells)
    }

    fn look_up_cells(&self) -> Result<IdLookup> {
        let (lookup, repeated) = IdLookup::new(&self.solids.ids);
        if let Some(&(first, later)) = repeated.first() {
            let [first, later] = [first, later].map(|k| k as usize);
            let line = self.solids.places[first].line;
            let before = if line > 0 {
                format!(" (first on line {line})")
            } else {
                String::new()
            };
            let error = Error::input(format!(
                "element number {} is given twice{before}",
                self.solids.ids[later]
            ))
            .advice("number every element once");
            return Err(self.error_at(self.solids.places[later], error));
        }
        if let Some((id, k)) = self
            .other_elements
            .iter()
            .find_map(|&id| Some((id, lookup.get(id)?)))
        {
            let error = Error::input(format!(
                "element number {id} is given twice, to a solid and to another element"
            ))
            .advice("number every element once");
            return Err(self.error_at(self.solids.places[k as usize], error));
        }
        Ok(lookup)
    }

    /// Two solids on the same corners would count their stiffness twice.
    fn refuse_same_nodes(&self, cells: &Cells) -> Result<()> {
        let mut keys: Vec<(u64, u32)> = (0..cells.len())
            .map(|k| (mixed(corners_of(cells, k)), k as u32))
            .collect();
        keys.sort_unstable();
        for run in keys.chunk_by(|a, b| a.0 == b.0).filter(|run| run.len() > 1) {
            let mut sorted: Vec<(Vec<u32>, u32)> = run
                .iter()
                .map(|&(_, k)| {
                    let mut corners = corners_of(cells, k as usize).to_vec();
                    corners.sort_unstable();
                    (corners, k)
                })
                .collect();
            sorted.sort_unstable();
            if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                let [first, later] = [pair[0].1, pair[1].1].map(|k| k as usize);
                let [a, b] = [first, later].map(|k| self.solids.ids[k]);
                let error = Error::input(format!("elements {a} and {b} have the same nodes")).advice(
                    "remove one of them; a volume in several physical groups needs Gmsh format 4.1 to be written once",
                );
                return Err(self.error_at(self.solids.places[later], error));
            }
        }
        Ok(())
    }

    /// Removes the nodes of no solid and renumbers `cells`. Returns the new index of each old one, or `DROPPED`.
    fn drop_unused_nodes(&mut self, cells: &mut Cells) -> Vec<u32> {
        let mut new_index = vec![DROPPED; self.nodes.ids.len()];
        for &node in &cells.nodes {
            new_index[node as usize] = 0;
        }
        let dropped: Vec<u64> = (self.nodes.ids.iter().zip(&new_index))
            .filter(|&(_, &index)| index == DROPPED)
            .map(|(&id, _)| id)
            .collect();
        let mut n_kept = 0;
        for (old, index) in new_index.iter_mut().enumerate() {
            if *index != DROPPED {
                *index = n_kept as u32;
                self.nodes.ids[n_kept] = self.nodes.ids[old];
                self.nodes.coords[n_kept] = self.nodes.coords[old];
                n_kept += 1;
            }
        }
        for node in &mut cells.nodes {
            *node = new_index[*node as usize];
        }
        self.nodes.ids.truncate(n_kept);
        self.nodes.coords.truncate(n_kept);
        self.warn_of_dropped(dropped);
        new_index
    }

    fn warn_of_dropped(&mut self, dropped: Vec<u64>) {
        // A node given twice is dropped at its second place although it is used at its first.
        let truly: Vec<u64> = if dropped.is_empty() {
            dropped
        } else {
            let (kept, _) = IdLookup::new(&self.nodes.ids);
            let mut ids: Vec<u64> = dropped
                .into_iter()
                .filter(|&id| kept.get(id).is_none())
                .collect();
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        if !truly.is_empty() {
            self.warnings.push(format!(
                "{} node{} in no solid element, ignored: {}",
                truly.len(),
                plural(truly.len()),
                listed(truly.iter().copied())
            ));
        }
    }

    fn resolve_node_sets(&mut self, mesh: &mut Mesh, lookup: &IdLookup, new_index: &[u32]) {
        for (name, set) in std::mem::take(&mut self.node_sets) {
            let (old, unknown) = members(&set, lookup);
            self.warn_of_unknown(&format!("node set `{name}`"), "node", &unknown);
            let mut nodes: Vec<u32> = old.iter().map(|&k| new_index[k as usize]).collect();
            nodes.retain(|&k| k != DROPPED);
            nodes.sort_unstable();
            if nodes.is_empty() {
                let why = if old.is_empty() {
                    "has no nodes"
                } else {
                    "has only nodes in no solid element"
                };
                self.warnings.push(format!("node set `{name}` {why}"));
            }
            mesh.sets.nodes.insert(name, nodes);
        }
    }

    fn resolve_cell_sets(&mut self, mesh: &mut Mesh, lookup: &IdLookup) {
        let others = IdLookup::new(&self.other_elements).0;
        let mut empty = Vec::new();
        for (name, set) in std::mem::take(&mut self.cell_sets) {
            let (cells, mut unknown) = members(&set, lookup);
            unknown.retain(|&id| others.get(id).is_none());
            self.warn_of_unknown(&format!("element set `{name}`"), "element", &unknown);
            if cells.is_empty() {
                empty.push(format!("`{name}`"));
            }
            mesh.sets.cells.insert(name, cells);
        }
        if !empty.is_empty() {
            self.warnings.push(format!(
                "element set{} without solid elements: {}",
                plural(empty.len()),
                empty.join(", ")
            ));
        }
        if !mesh
            .sets
            .cells
            .keys()
            .any(|name| name.eq_ignore_ascii_case(ALL))
        {
            let every = (0..mesh.n_cells() as u32).collect();
            mesh.sets.cells.insert(ALL.to_owned(), every);
        }
    }

    fn resolve_face_sets(
        &mut self,
        mesh: &mut Mesh,
        nodes: (&IdLookup, &[u32]),
        cell_lookup: &IdLookup,
    ) -> Result<()> {
        let drafts = std::mem::take(&mut self.face_sets);
        let mut found = self.match_facets(&drafts, &mesh.cells, nodes)?;
        for (name, draft) in drafts {
            let mut faces = found.remove(&name).unwrap_or_default();
            let mut unknown = Vec::new();
            for (set, face, place) in &draft.of_elements {
                let (cells, missing) = members(set, cell_lookup);
                unknown.extend(missing);
                for cell in cells {
                    let n_faces = mesh.cells.types[cell as usize].faces().len();
                    if usize::from(*face) >= n_faces {
                        let error = self.no_such_face(&name, cell as usize, *face);
                        return Err(
                            self.error_at(*place, error.expected(format!("S1 to S{n_faces}")))
                        );
                    }
                    faces.push(CellFace { cell, face: *face });
                }
            }
            self.warn_of_unknown(&format!("surface `{name}`"), "solid element", &unknown);
            faces.sort_unstable();
            faces.dedup();
            if faces.is_empty() {
                self.warnings
                    .push(format!("surface `{name}` has no faces of solid elements"));
            }
            mesh.sets.faces.insert(name, faces);
        }
        Ok(())
    }

    fn no_such_face(&self, surface: &str, cell: usize, face: u8) -> Error {
        let [cell_type, id] = [
            self.solids.types[cell].to_string(),
            self.solids.ids[cell].to_string(),
        ];
        Error::input(format!(
            "surface `{surface}` names face S{} of element {id}, a {cell_type}",
            face + 1
        ))
    }

    /// Finds the solid faces under all surface elements at once.
    fn match_facets(
        &mut self,
        drafts: &BTreeMap<String, DraftFaces>,
        cells: &Cells,
        (lookup, new_index): (&IdLookup, &[u32]),
    ) -> Result<BTreeMap<String, Vec<CellFace>>> {
        let mut facets = Cells::default();
        let mut ends = Vec::new();
        let mut alone = vec![0_usize; drafts.len()];
        for ((name, draft), alone) in drafts.iter().zip(&mut alone) {
            for facet in &draft.facets {
                let mut corners = [0; 4];
                for (slot, &id) in corners.iter_mut().zip(facet.corners()) {
                    let old = lookup.get(id).ok_or_else(|| {
                        let what = format!(
                            "a surface element of `{name}` names node {id}, which does not exist"
                        );
                        self.error_at(Default::default(), Error::input(what))
                    })?;
                    *slot = new_index[old as usize];
                }
                let corners = &corners[..facet.corners().len()];
                let facet_type = if corners.len() == 3 {
                    CellType::Tri3
                } else {
                    CellType::Quad4
                };
                if corners.contains(&DROPPED) {
                    *alone += 1;
                } else {
                    facets.push(facet_type, corners);
                }
            }
            ends.push(facets.len());
        }

        let matches = match_facets(cells, &facets);
        let mut found = BTreeMap::new();
        let mut start = 0;
        for (((name, _), end), alone) in drafts.iter().zip(ends).zip(alone) {
            let faces: Vec<CellFace> = matches.faces[start..end]
                .iter()
                .flatten()
                .copied()
                .collect();
            let within = |list: &[u32]| {
                list.iter()
                    .filter(|&&f| (start..end).contains(&(f as usize)))
                    .count()
            };
            self.warn_of_facets(
                name,
                alone + within(&matches.without_cell),
                within(&matches.between_cells),
            );
            found.insert(name.clone(), faces);
            start = end;
        }
        Ok(found)
    }

    fn warn_of_facets(&mut self, name: &str, without_cell: usize, between_cells: usize) {
        if without_cell > 0 {
            self.warnings.push(format!(
                "{without_cell} surface element{} of `{name}` lie{} on no face of a solid element, ignored",
                plural(without_cell),
                if without_cell == 1 { "s" } else { "" }
            ));
        }
        if between_cells > 0 {
            self.warnings.push(format!(
                "{between_cells} surface element{} of `{name}` between two solid elements: the face of the one that \
                 comes first in the file is taken",
                plural(between_cells)
            ));
        }
    }

    fn warn_of_unknown(&mut self, set: &str, kind: &str, unknown: &[u64]) {
        if !unknown.is_empty() {
            let (n, ids) = (unknown.len(), listed(unknown.iter().copied()));
            let verb = if n == 1 { "does" } else { "do" };
            self.warnings.push(format!(
                "{set} names {n} {kind}{} that {verb} not exist: {ids}",
                plural(n)
            ));
        }
    }
}

/// Nodes of the largest solid.
const MOST_NODES: usize = 20;

/// Indices of the members of a set, ascending, once each; and the numbers that do not exist.
fn members(set: &IdSet, lookup: &IdLookup) -> (Vec<u32>, Vec<u64>) {
    let mut indices = Vec::with_capacity(set.ids.len());
    let mut unknown = Vec::new();
    for &id in &set.ids {
        match lookup.get(id) {
            Some(index) => indices.push(index),
            None => unknown.push(id),
        }
    }
    for &range in &set.ranges {
        lookup.for_range(range, |index| indices.push(index));
    }
    indices.sort_unstable();
    indices.dedup();
    (indices, unknown)
}

fn corners_of(cells: &Cells, cell: usize) -> &[u32] {
    &cells.nodes_of(cell)[..cells.types[cell].n_corners()]
}

/// A number that is equal for equal sets of nodes and hardly ever for different ones.
fn mixed(nodes: &[u32]) -> u64 {
    nodes.iter().fold(nodes.len() as u64, |sum, &node| {
        let mut bits = (u64::from(node) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        sum.wrapping_add(bits ^ (bits >> 32))
    })
}

fn repeated_entry(nodes: &[u32]) -> Option<u32> {
    (1..nodes.len())
        .find(|&k| nodes[..k].contains(&nodes[k]))
        .map(|k| nodes[k])
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// The first few numbers as text.
fn listed(ids: impl ExactSizeIterator<Item = u64>) -> String {
    let more = if ids.len() > SHOWN { ", ..." } else { "" };
    let first: Vec<String> = ids.take(SHOWN).map(|id| id.to_string()).collect();
    first.join(", ") + more
}
