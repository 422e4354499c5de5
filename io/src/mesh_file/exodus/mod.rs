//! Exodus II: finite-element models in netCDF, classic (read in `netcdf3.rs`) or netCDF-4, which is HDF5.
//!
//! Element blocks become element sets under their names (`block_N` without), node, side and element sets likewise
//! (`nodeset_N`, `sideset_N`, `elset_N`); N is the number that the file gives.
//! Source: "EXODUS II: A Finite Element Data Model", SAND92-2137, and the current Exodus API manual for netCDF-4.
//!
//! Invariant: reads the first state of the mesh only: no results, no time.

mod netcdf3;

use super::draft::{Draft, DraftFaces, Facet, IdSet, Place};
use super::hdf::{HdfFile, text_of};
use super::solids::{
    EXODUS_HEX27, HEX8, HEX20, HEX27, IN_ORDER, Order, PYRAMID5, PYRAMID13, Solid, TET4, TET10,
    UPRIGHT_FIRST_HEX20, UPRIGHT_FIRST_WEDGE15, WEDGE6, WEDGE15,
};
use fem_mesh::{Error, Result};
use netcdf3::Classic;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Reads the bytes of the classic netCDF file at `path`.
pub(super) fn read_classic(path: &Path, bytes: &[u8]) -> Result<Draft> {
    let store = Classic::new(bytes).map(Store::Classic);
    store
        .and_then(|store| Reader::read(path, store))
        .map_err(|error| error.in_file(path))
}

/// Reads the netCDF-4 file at `path`.
pub(super) fn read_hdf(path: &Path, file: HdfFile) -> Result<Draft> {
    Reader::read(path, Store::Hdf(file)).map_err(|error| error.in_file(path))
}

/// The variables of either kind of file.
enum Store<'a> {
    Classic(Classic<'a>),
    Hdf(HdfFile),
}

impl Store<'_> {
    fn shape(&self, name: &str) -> Option<Vec<u64>> {
        match self {
            Store::Classic(file) => file.shape(name),
            Store::Hdf(file) => file.shape(name),
        }
    }

    fn ints(&self, name: &str) -> Result<Vec<i64>> {
        match self {
            Store::Classic(file) => file.ints(name),
            Store::Hdf(file) => file.ints(name),
        }
    }

    fn floats(&self, name: &str) -> Result<Vec<f64>> {
        match self {
            Store::Classic(file) => file.floats(name),
            Store::Hdf(file) => file.floats(name),
        }
    }

    /// The rows of a table of characters, as texts; none if there is no such table.
    fn texts(&self, name: &str) -> Vec<String> {
        let chars = match self {
            Store::Classic(file) => file.chars(name),
            Store::Hdf(file) => file.chars(name),
        };
        match (chars, self.shape(name).as_deref()) {
            (Ok(chars), Some(&[_, width])) if width > 0 => {
                let rows = chars.chunks(usize::try_from(width).unwrap_or(usize::MAX));
                rows.map(text_of).collect()
            }
            _ => Vec::new(),
        }
    }

    fn text_attribute(&self, variable: &str, name: &str) -> Option<String> {
        let text = match self {
            Store::Classic(file) => file.text_attribute(variable, name),
            Store::Hdf(file) => file.text_attribute(variable, name),
        };
        text.map(|text| text_of(text.as_bytes()))
    }
}

/// What an element is to us.
#[derive(Clone, Copy)]
enum Kind {
    Solid(Solid, Order),
    /// A solid of a type we do not know.
    Unsupported,
    /// Its first nodes are its corners.
    Surface(usize),
    Other,
}

/// By the type of the block and the number of nodes.
fn kind(name: &str, n_nodes: usize) -> Kind {
    let name = name.to_ascii_uppercase();
    let is = |prefix: &str| name.starts_with(prefix);
    let (solid, order): (Solid, Order) = match n_nodes {
        4 if is("TET") => (TET4, &IN_ORDER),
        10 if is("TET") => (TET10, &IN_ORDER),
        8 if is("HEX") => (HEX8, &IN_ORDER),
        20 if is("HEX") => (HEX20, &UPRIGHT_FIRST_HEX20),
        27 if is("HEX") => (HEX27, &EXODUS_HEX27),
        6 if is("WEDGE") || is("PRISM") => (WEDGE6, &IN_ORDER),
        15 if is("WEDGE") || is("PRISM") => (WEDGE15, &UPRIGHT_FIRST_WEDGE15),
        5 if is("PYR") => (PYRAMID5, &IN_ORDER),
        13 if is("PYR") => (PYRAMID13, &IN_ORDER),
        _ if ["TET", "HEX", "WEDGE", "PRISM", "PYR", "NFACED"]
            .iter()
            .any(|p| is(p)) =>
        {
            return Kind::Unsupported;
        }
        3 | 6 | 7 if is("TRI") || is("SHELL") => return Kind::Surface(3),
        4 | 8 | 9 if is("QUAD") || is("SHELL") => return Kind::Surface(4),
        _ => return Kind::Other,
    };
    Kind::Solid(solid, order)
}

/// Our face for each side of Exodus, from side 1 on.
fn faces_of_sides(solid: Solid) -> &'static [u8] {
    match solid.n_nodes {
        4 | 10 => &[1, 2, 3, 0],
        5 | 13 => &[1, 2, 3, 4, 0],
        6 | 15 => &[2, 3, 4, 0, 1],
        _ => &[2, 3, 4, 5, 0, 1],
    }
}

struct Reader<'a> {
    store: Store<'a>,
    draft: Draft,
    node_ids: Vec<u64>,
    element_ids: Vec<u64>,
    /// Of each element of the file.
    kinds: Vec<Kind>,
    /// Corners of the surface elements, by index.
    facets: BTreeMap<usize, Facet>,
    skipped: BTreeMap<String, usize>,
}

impl<'a> Reader<'a> {
    fn read(path: &Path, store: Store<'a>) -> Result<Draft> {
        let mut reader = Reader {
            store,
            draft: Draft::new(path.to_path_buf()),
            node_ids: Vec::new(),
            element_ids: Vec::new(),
            kinds: Vec::new(),
            facets: BTreeMap::new(),
            skipped: BTreeMap::new(),
        };
        reader.read_nodes()?;
        reader.read_blocks()?;
        reader.read_node_sets()?;
        reader.read_side_sets()?;
        reader.read_element_sets()?;
        reader.warn_of_skipped();
        Ok(reader.draft)
    }

    fn read_nodes(&mut self) -> Result<()> {
        let store = &self.store;
        let axes: Vec<Vec<f64>> = if store.shape("coord").is_some() {
            let shape = store.shape("coord").unwrap_or_default();
            let n = shape.last().copied().unwrap_or(0).max(1);
            let all = store.floats("coord")?;
            all.chunks(usize::try_from(n).unwrap_or(usize::MAX))
                .map(<[f64]>::to_vec)
                .collect()
        } else {
            let names = ["coordx", "coordy", "coordz"];
            let there = names.iter().filter(|name| store.shape(name).is_some());
            there
                .map(|name| store.floats(name))
                .collect::<Result<_>>()?
        };
        let [x, y, z] = axes.as_slice() else {
            return Err(
                Error::input(format!("the nodes have {} coordinates", axes.len()))
                    .expected("variables coordx, coordy and coordz, or coord of three rows"),
            );
        };
        if x.len() != y.len() || x.len() != z.len() {
            return Err(Error::input(
                "variables coordx, coordy and coordz differ in length",
            ));
        }
        self.node_ids = self.numbers("node_num_map", x.len());
        for (k, &id) in self.node_ids.iter().enumerate() {
            let point = [x[k], y[k], z[k]];
            if !point.iter().all(|x| x.is_finite()) {
                return Err(Error::input(format!(
                    "node {id} has a coordinate that is not a finite number"
                )));
            }
            self.draft.nodes.push(id, point, Place::default());
        }
        Ok(())
    }

    /// The numbers in a map, if it has one for each and all differ; else positions from 1.
    fn numbers(&self, map: &str, n: usize) -> Vec<u64> {
        let found = self
            .store
            .shape(map)
            .and_then(|_| self.store.ints(map).ok());
        let ids: Option<Vec<u64>> = found
            .filter(|ids| ids.len() == n)
            .and_then(|ids| ids.into_iter().map(|id| u64::try_from(id).ok()).collect());
        let are_unique = |ids: &Vec<u64>| ids.iter().collect::<BTreeSet<_>>().len() == n;
        ids.filter(are_unique)
            .unwrap_or_else(|| (1..=n as u64).collect())
    }

    /// Numbers and names of the blocks or sets of one kind: as many as the file has.
    fn groups(
        &self,
        numbers: &str,
        names: &str,
        status: &str,
        variable: &str,
        title: &str,
    ) -> Vec<String> {
        let ids = self
            .store
            .shape(numbers)
            .and_then(|_| self.store.ints(numbers).ok());
        let mut n = ids.as_ref().map_or(0, Vec::len);
        n = n.max(
            self.store
                .shape(status)
                .and_then(|_| self.store.ints(status).ok())
                .map_or(0, |s| s.len()),
        );
        while self.store.shape(&format!("{variable}{}", n + 1)).is_some() {
            n += 1;
        }
        let names = self.store.texts(names);
        let mut used = BTreeSet::new();
        let mut groups = Vec::with_capacity(n);
        for k in 0..n {
            let id = ids
                .as_ref()
                .and_then(|ids| ids.get(k))
                .copied()
                .unwrap_or(k as i64 + 1);
            let name = names.get(k).filter(|name| !name.is_empty());
            // Names cut to one length may have become equal.
            let mut name = name.cloned().unwrap_or_else(|| format!("{title}_{id}"));
            if used.contains(&name) {
                name = format!("{name}_{id}");
            }
            used.insert(name.clone());
            groups.push(name);
        }
        groups
    }

    fn read_blocks(&mut self) -> Result<()> {
        let names = self.groups("eb_prop1", "eb_names", "eb_status", "connect", "block");
        let mut blocks = Vec::new();
        let mut n_elements = 0_usize;
        for (k, name) in names.into_iter().enumerate() {
            let variable = format!("connect{}", k + 1);
            let Some(shape) = self.store.shape(&variable) else {
                continue; // a block of no elements
            };
            let nodes = self.store.ints(&variable)?;
            let type_name = self
                .store
                .text_attribute(&variable, "elem_type")
                .unwrap_or_default();
            let n_nodes = match shape.as_slice() {
                [_, n] => usize::try_from(*n).unwrap_or(0),
                _ => 0, // polygons and polyhedra list their nodes in one row
            };
            n_elements += nodes.len().checked_div(n_nodes).unwrap_or(0);
            blocks.push((name, type_name, n_nodes, nodes));
        }
        self.element_ids = self.numbers("elem_num_map", n_elements);
        for (name, type_name, n_nodes, nodes) in blocks {
            if n_nodes == 0 {
                if matches!(kind(&type_name, 0), Kind::Unsupported) {
                    self.draft.note_unsupported(&type_name, Place::default());
                }
                continue;
            }
            self.read_block(&name, &type_name, n_nodes, &nodes)?;
        }
        Ok(())
    }

    fn read_block(
        &mut self,
        name: &str,
        type_name: &str,
        n_nodes: usize,
        nodes: &[i64],
    ) -> Result<()> {
        let kind = kind(type_name, n_nodes);
        self.draft.cell_sets.entry(name.to_owned()).or_default();
        let mut ids = Vec::with_capacity(nodes.len() / n_nodes);
        let mut of_element = Vec::with_capacity(n_nodes);
        for element in nodes.chunks_exact(n_nodes) {
            let index = self.kinds.len();
            let id = self.element_ids[index];
            of_element.clear();
            for &node in element {
                let k = usize::try_from(node).ok().and_then(|k| k.checked_sub(1));
                let Some(&node_id) = k.and_then(|k| self.node_ids.get(k)) else {
                    return Err(Error::input(format!(
                        "element {id} of block `{name}` names node {node} (from 1)"
                    ))
                    .expected(format!("a node from 1 to {}", self.node_ids.len())));
                };
                of_element.push(node_id);
            }
            match kind {
                Kind::Solid(solid, order) => {
                    self.draft
                        .push_solid(solid, order, id, &of_element, Place::default());
                }
                Kind::Unsupported => {
                    let unknown = format!("{type_name} of {n_nodes} nodes");
                    self.draft.note_unsupported(&unknown, Place::default());
                }
                Kind::Surface(n) => {
                    self.draft.push_other(id, &of_element[..n]);
                    self.facets.insert(index, Facet::new(&of_element[..n]));
                }
                Kind::Other => {
                    self.draft.push_other(id, &[]);
                    *self.skipped.entry(type_name.to_owned()).or_default() += 1;
                }
            }
            self.kinds.push(kind);
            ids.push(id);
        }
        let set = self.draft.cell_sets.entry(name.to_owned()).or_default();
        set.ids.extend(ids);
        Ok(())
    }

    /// Position from 1 in a list of the file.
    fn index(&self, set: &str, number: i64, n: usize) -> Result<usize> {
        let k = usize::try_from(number).ok().and_then(|k| k.checked_sub(1));
        k.filter(|&k| k < n).ok_or_else(|| {
            Error::input(format!("set `{set}` has member {number} (from 1)"))
                .expected(format!("a member from 1 to {n}"))
        })
    }

    fn read_node_sets(&mut self) -> Result<()> {
        let names = self.groups("ns_prop1", "ns_names", "ns_status", "node_ns", "nodeset");
        for (k, name) in names.into_iter().enumerate() {
            let variable = format!("node_ns{}", k + 1);
            let mut ids = Vec::new();
            if self.store.shape(&variable).is_some() {
                for number in self.store.ints(&variable)? {
                    ids.push(self.node_ids[self.index(&name, number, self.node_ids.len())?]);
                }
            }
            self.draft
                .node_sets
                .entry(name)
                .or_default()
                .ids
                .extend(ids);
        }
        Ok(())
    }

    fn read_element_sets(&mut self) -> Result<()> {
        let names = self.groups("els_prop1", "els_names", "els_status", "elem_els", "elset");
        for (k, name) in names.into_iter().enumerate() {
            let variable = format!("elem_els{}", k + 1);
            let mut ids = Vec::new();
            if self.store.shape(&variable).is_some() {
                for number in self.store.ints(&variable)? {
                    ids.push(self.element_ids[self.index(&name, number, self.kinds.len())?]);
                }
            }
            self.draft
                .cell_sets
                .entry(name)
                .or_default()
                .ids
                .extend(ids);
        }
        Ok(())
    }

    fn read_side_sets(&mut self) -> Result<()> {
        let names = self.groups("ss_prop1", "ss_names", "ss_status", "elem_ss", "sideset");
        for (k, name) in names.into_iter().enumerate() {
            let mut faces = DraftFaces::default();
            let (elements, sides) = (format!("elem_ss{}", k + 1), format!("side_ss{}", k + 1));
            if self.store.shape(&elements).is_some() {
                let (elements, sides) = (self.store.ints(&elements)?, self.store.ints(&sides)?);
                if elements.len() != sides.len() {
                    return Err(Error::input(format!(
                        "set `{name}` has {} elements and {} sides",
                        elements.len(),
                        sides.len()
                    )));
                }
                self.take_sides(&name, &elements, &sides, &mut faces)?;
            }
            let set = self.draft.face_sets.entry(name).or_default();
            set.facets.append(&mut faces.facets);
            set.of_elements.append(&mut faces.of_elements);
        }
        Ok(())
    }

    fn take_sides(
        &mut self,
        name: &str,
        elements: &[i64],
        sides: &[i64],
        faces: &mut DraftFaces,
    ) -> Result<()> {
        let mut by_face: BTreeMap<u8, Vec<u64>> = BTreeMap::new();
        let mut n_edges = 0;
        for (&element, &side) in elements.iter().zip(sides) {
            let element = self.index(name, element, self.kinds.len())?;
            match self.kinds[element] {
                Kind::Solid(solid, _) => {
                    let table = faces_of_sides(solid);
                    let face = usize::try_from(side)
                        .ok()
                        .and_then(|s| table.get(s.wrapping_sub(1)));
                    let Some(&face) = face else {
                        return Err(Error::input(format!(
                            "set `{name}` has side {side} of element {}, a {}",
                            self.element_ids[element], solid.name
                        ))
                        .expected(format!("a side from 1 to {}", table.len())));
                    };
                    by_face
                        .entry(face)
                        .or_default()
                        .push(self.element_ids[element]);
                }
                // Sides 1 and 2 of a shell are its faces, the others its edges.
                Kind::Surface(_) if side <= 2 => faces.facets.extend(self.facets.get(&element)),
                _ => n_edges += 1,
            }
        }
        for (face, ids) in by_face {
            let ids = IdSet {
                ids,
                ranges: Vec::new(),
            };
            faces.of_elements.push((ids, face, Place::default()));
        }
        if n_edges > 0 {
            self.draft.warnings.push(format!(
                "{n_edges} sides of `{name}` are no faces of solids, ignored"
            ));
        }
        Ok(())
    }

    fn warn_of_skipped(&mut self) {
        if !self.skipped.is_empty() {
            let counts: Vec<String> = (self.skipped.iter())
                .map(|(name, n)| format!("{n} {name}"))
                .collect();
            self.draft.warnings.push(format!(
                "elements that are no solids add no stiffness: {}",
                counts.join(", ")
            ));
        }
    }
}

#[cfg(test)]
mod tests;
