//! The named sets of a [`Draft`]: members by number become indices into the mesh, surface elements become faces of
//! the solids below them.
//!
//! Invariant: knows no file format; runs once the cells are known to be sound.

use super::draft::{Draft, DraftFaces, Facet, IdSet};
use super::finish::{DROPPED, listed, plural};
use super::id_lookup::IdLookup;
use fem_mesh::facets::match_facets;
use fem_mesh::{CellFace, CellType, Cells, Error, Mesh, Result};
use std::collections::BTreeMap;

/// Name of the element set that holds every element.
const ALL: &str = "all";

impl Draft {
    /// Fills `mesh.sets`. `nodes` leads from a number to the index in the file and on to the one in the mesh.
    pub(super) fn resolve_sets(
        &mut self,
        mesh: &mut Mesh,
        nodes: (&IdLookup, &[u32]),
        cells: &IdLookup,
    ) -> Result<()> {
        self.resolve_node_sets(mesh, nodes.0, nodes.1);
        self.resolve_cell_sets(mesh, cells);
        self.resolve_face_sets(mesh, nodes, cells)
    }

    fn resolve_node_sets(&mut self, mesh: &mut Mesh, lookup: &IdLookup, new_index: &[u32]) {
        for (name, set) in std::mem::take(&mut self.node_sets) {
            let (old, unknown) = members(&set, lookup);
            self.warn_of_unknown(&format!("node set `{name}`"), "node", &unknown);
            let mut nodes: Vec<u32> = old.iter().map(|&k| new_index[k as usize]).collect();
            nodes.retain(|&k| k != DROPPED);
            if nodes.len() < old.len() {
                for (k, node) in &mut self.free {
                    if old.binary_search(k).is_ok() {
                        node.sets.push(name.clone());
                    }
                }
            }
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

    /// A set of surface elements only becomes a set of the faces they lie on; one of rods or points only is left out.
    fn resolve_cell_sets(&mut self, mesh: &mut Mesh, lookup: &IdLookup) {
        let others = IdLookup::new(&self.other_elements).0;
        let surface_ids: Vec<u64> = self.surface_elements.iter().map(|&(id, _)| id).collect();
        let surface_lookup = IdLookup::new(&surface_ids).0;
        let mut empty = Vec::new();
        for (name, set) in std::mem::take(&mut self.cell_sets) {
            let (cells, mut unknown) = members(&set, lookup);
            unknown.retain(|&id| others.get(id).is_none());
            self.warn_of_unknown(&format!("element set `{name}`"), "element", &unknown);
            let facets: Vec<Facet> = members(&set, &surface_lookup)
                .0
                .iter()
                .map(|&k| self.surface_elements[k as usize].1)
                .collect();
            if cells.is_empty() && !facets.is_empty() {
                let faces = self.face_sets.entry(name).or_default();
                faces.facets.extend(facets);
                continue;
            }
            let (of_others, _) = members(&set, &others);
            if cells.is_empty() && !of_others.is_empty() {
                // Of rods or points, such as programs that mesh write for every curve; the reader counts those.
                continue;
            }
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
