//! From a [`Draft`] to a checked [`Mesh`]: numbers become indices, what cannot be right is refused by name, what no
//! solid uses is dropped with a warning.
//!
//! Invariant: knows no file format, and changes no coordinates.

use super::MeshFile;
use super::draft::{Draft, Place};
use super::id_lookup::IdLookup;
use super::joints;
use super::mirror::turn_mirrored;
use fem_mesh::{CellType, Cells, Error, FreeNode, Mesh, Result};
use std::collections::{BTreeMap, BTreeSet};

/// How many numbers a message lists.
const SHOWN: usize = 5;

/// Index of a node that no solid uses.
pub(super) const DROPPED: u32 = u32::MAX;

impl Draft {
    /// Checks everything and makes the mesh. Fails on what the documentation of [`super::read`] lists.
    pub(crate) fn finish(mut self) -> Result<MeshFile> {
        clean_names(&mut self.node_sets);
        clean_names(&mut self.cell_sets);
        clean_names(&mut self.face_sets);
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
        self.resolve_sets(&mut mesh, (&node_lookup, &new_index), &cell_lookup)?;
        mesh.node_ids = self.nodes.ids;
        mesh.coords = self.nodes.coords;
        mesh.cell_ids = self.solids.ids;
        mesh.free = self.free.into_iter().map(|(_, node)| node).collect();
        let mut turned = turn_mirrored(&mut mesh);
        if self.has_wedges_of_either_sense {
            turned.retain(|&cell| mesh.cells.types[cell as usize].n_corners() != 6);
        }
        self.warnings.extend(joints::warnings(&mesh, &turned));
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
            "the mesh has no solid element ({} node{}, {} other element{})",
            self.nodes.ids.len(),
            plural(self.nodes.ids.len()),
            self.other_elements.len(),
            plural(self.other_elements.len())
        );
        let error = Error::input(what)
            .expected("at least one tetrahedron, hexahedron, wedge or pyramid")
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
                let (id, later) = (self.nodes.ids[later], self.nodes.places[later]);
                let before = self.first_at(self.nodes.places[first], later);
                let error = Error::input(format!(
                    "node {id} is given twice, with different coordinates{before}"
                ))
                .advice("number every node once");
                return Err(self.error_at(later, error));
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

    /// Where the first of two things of one number stands, in brackets; nothing in a binary file.
    fn first_at(&self, first: Place, later: Place) -> String {
        match (first.line, first.file == later.file) {
            (0, _) => String::new(),
            (line, true) => format!(" (first on line {line})"),
            (line, false) => {
                let file = self.files[usize::from(first.file)].display();
                format!(" (first in {file}, line {line})")
            }
        }
    }

    fn look_up_cells(&self) -> Result<IdLookup> {
        let (lookup, repeated) = IdLookup::new(&self.solids.ids);
        if let Some(&(first, later)) = repeated.first() {
            let [first, later] = [first, later].map(|k| k as usize);
            let before = self.first_at(self.solids.places[first], self.solids.places[later]);
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
        let dropped: Vec<u32> = (0..new_index.len() as u32)
            .filter(|&old| new_index[old as usize] == DROPPED)
            .collect();
        let dropped: Vec<(u32, FreeNode)> = dropped
            .into_iter()
            .map(|old| {
                let node = FreeNode {
                    id: self.nodes.ids[old as usize],
                    x: self.nodes.coords[old as usize],
                    sets: Vec::new(),
                };
                (old, node)
            })
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
        self.keep_free_nodes(dropped);
        new_index
    }

    /// Keeps the nodes of no solid apart, with a warning: a constraint may name them.
    fn keep_free_nodes(&mut self, mut dropped: Vec<(u32, FreeNode)>) {
        if dropped.is_empty() {
            return;
        }
        // A node given twice is dropped at its second place although it is used at its first.
        let (kept, _) = IdLookup::new(&self.nodes.ids);
        let mut seen = BTreeSet::new();
        dropped.retain(|(_, node)| kept.get(node.id).is_none() && seen.insert(node.id));
        if !seen.is_empty() {
            let ids: Vec<u64> = seen.into_iter().collect();
            self.warnings.push(format!(
                "{} node{} in no solid element, ignored unless a constraint names {}: {}",
                ids.len(),
                plural(ids.len()),
                if ids.len() == 1 { "it" } else { "them" },
                listed(ids.iter().copied())
            ));
        }
        self.free = dropped;
    }
}

/// Gives sets without a name one, and takes out of names what would spoil a line of text.
fn clean_names<T>(sets: &mut BTreeMap<String, T>) {
    let is_bad = |name: &str| name.is_empty() || name.contains(char::is_control);
    let bad: Vec<String> = sets.keys().filter(|name| is_bad(name)).cloned().collect();
    for name in bad {
        let clean: String = (name.chars())
            .map(|c| if c.is_control() { '?' } else { c })
            .collect();
        let mut free = if clean.is_empty() { "unnamed" } else { &clean }.to_owned();
        while sets.contains_key(&free) {
            free.push('_');
        }
        if let Some(set) = sets.remove(&name) {
            sets.insert(free, set);
        }
    }
}

/// Nodes of the largest solid.
const MOST_NODES: usize = 27;

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

pub(super) fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// The first few numbers as text.
pub(super) fn listed(ids: impl ExactSizeIterator<Item = u64>) -> String {
    let more = if ids.len() > SHOWN { ", ..." } else { "" };
    let first: Vec<String> = ids.take(SHOWN).map(|id| id.to_string()).collect();
    first.join(", ") + more
}
