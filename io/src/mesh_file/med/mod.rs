//! MED files of Salome and Code_Aster: one mesh with its groups, in HDF5.
//!
//! A node or a cell belongs to a family, and a family to any number of groups; the groups become sets under their names.
//! The solids of MED are the mirror images of ours: its nodes are taken in our mirrored order. Of several meshes in a
//! file the largest is read.
//! Source: "Modèle de données MED", the documentation of MED 3 and 4 (`ENS_MAA`, `FAS`; connectivity by columns).
//!
//! Invariant: reads the first step of the mesh only: no fields, no profiles.

use super::draft::{Draft, DraftFaces, Facet, Place};
use super::hdf::HdfFile;
use super::mirror::mirrored_order;
use super::solids::{
    HEX8, HEX20, HEX27, IN_ORDER, MED_HEX27, PYRAMID5, PYRAMID13, Solid, TET4, TET10, WEDGE6,
    WEDGE15,
};
use fem_mesh::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Reads the MED file at `path`.
pub(super) fn read(path: &Path, file: HdfFile) -> Result<Draft> {
    let mut reader = Reader {
        draft: Draft::new(path.to_path_buf()),
        file,
        mesh: String::new(),
        step: String::new(),
        node_ids: Vec::new(),
        n_skipped: 0,
    };
    reader.read().map_err(|error| error.in_file(path))?;
    Ok(reader.draft)
}

/// What cells of one type are to us.
enum Kind {
    Solid(Solid),
    Unsupported,
    /// With this number of corners, which come first.
    Surface(usize),
    Other,
}

/// By MED's name of the type, with its number of nodes (0: unknown).
fn kind(name: &str) -> (Kind, usize) {
    let solid = |solid: Solid| (Kind::Solid(solid), solid.n_nodes);
    match name {
        "TE4" => solid(TET4),
        "T10" => solid(TET10),
        "HE8" => solid(HEX8),
        "H20" => solid(HEX20),
        "H27" => solid(HEX27),
        "PE6" => solid(WEDGE6),
        "P15" => solid(WEDGE15),
        "PY5" => solid(PYRAMID5),
        "P13" => solid(PYRAMID13),
        "P18" => (Kind::Unsupported, 18),
        "O12" => (Kind::Unsupported, 12),
        "POE" => (Kind::Unsupported, 0),
        "TR3" => (Kind::Surface(3), 3),
        "TR6" => (Kind::Surface(3), 6),
        "TR7" => (Kind::Surface(3), 7),
        "QU4" => (Kind::Surface(4), 4),
        "QU8" => (Kind::Surface(4), 8),
        "QU9" => (Kind::Surface(4), 9),
        "PO1" => (Kind::Other, 1),
        "SE2" => (Kind::Other, 2),
        "SE3" => (Kind::Other, 3),
        "SE4" => (Kind::Other, 4),
        _ => (Kind::Other, 0),
    }
}

/// The cells of one type, node after node.
struct Block {
    type_name: String,
    n_cells: usize,
    /// First nodes of all cells, then second ones, and so on.
    columns: Vec<i64>,
    families: Vec<i64>,
    numbers: Vec<i64>,
}

/// Where sets of a group go.
#[derive(Clone, Copy)]
enum Member {
    Solid(u64),
    Surface(Facet),
    Nodes,
}

struct Reader {
    draft: Draft,
    file: HdfFile,
    mesh: String,
    /// Path of the step of the mesh that is read.
    step: String,
    node_ids: Vec<u64>,
    n_skipped: usize,
}

impl Reader {
    fn read(&mut self) -> Result<()> {
        self.choose_mesh()?;
        self.read_nodes()?;
        let blocks = self.read_blocks()?;
        let ids = element_numbers(&blocks);
        let of_cells = self.groups("ELEME")?;
        for (block, ids) in blocks.iter().zip(&ids) {
            self.take_block(block, ids, &of_cells)?;
        }
        if self.n_skipped > 0 {
            let n = self.n_skipped;
            let what =
                format!("{n} elements of points and lines, whose groups stand for their nodes");
            self.draft.warnings.push(what);
        }
        Ok(())
    }

    /// Takes the mesh of the most nodes among those with solids, in its first step.
    fn choose_mesh(&mut self) -> Result<()> {
        let mut found: Vec<((bool, u64), String, String)> = Vec::new();
        for mesh in self.file.members("ENS_MAA") {
            let of_mesh = format!("ENS_MAA/{mesh}");
            // Up to MED 2.3 the mesh stood in the group itself.
            let steps = self.file.members(&of_mesh);
            let step = match steps
                .into_iter()
                .find(|s| s.starts_with('-') || s.starts_with('0'))
            {
                Some(step) => format!("{of_mesh}/{step}"),
                None => of_mesh,
            };
            let types = self.file.members(&format!("{step}/MAI"));
            let is_solid =
                |name: &String| matches!(kind(name).0, Kind::Solid(_) | Kind::Unsupported);
            let shape = self.file.shape(&format!("{step}/NOE/COO"));
            let n_nodes = shape.and_then(|s| s.first().copied()).unwrap_or(0);
            found.push(((types.iter().any(is_solid), n_nodes), mesh, step));
        }
        let best = (0..found.len()).rev().max_by_key(|&k| found[k].0);
        let Some(best) = best else {
            return Err(Error::input("the MED file holds no mesh"));
        };
        let (_, mesh, step) = found.swap_remove(best);
        if !found.is_empty() {
            let others: Vec<String> = found
                .iter()
                .take(10)
                .map(|f| format!("`{}`", f.1))
                .collect();
            self.draft.warnings.push(format!(
                "the file holds {} meshes: `{mesh}`, the largest, is read, not {}",
                found.len() + 1,
                others.join(", ")
            ));
        }
        (self.mesh, self.step) = (mesh, step);
        Ok(())
    }

    fn read_nodes(&mut self) -> Result<()> {
        let of_nodes = format!("{}/NOE", self.step);
        let coords = self.file.floats(&format!("{of_nodes}/COO"))?;
        let dimension = self
            .file
            .int_attribute(&format!("ENS_MAA/{}", self.mesh), "ESP");
        let dimension = dimension.unwrap_or(3);
        if dimension != 3 || !coords.len().is_multiple_of(3) {
            return Err(Error::input(format!(
                "mesh `{}` has {dimension} coordinates a node",
                self.mesh
            ))
            .expected("three"));
        }
        let n = coords.len() / 3;
        let numbers = self.optional_ints(&format!("{of_nodes}/NUM"), n)?;
        self.node_ids = unique_or_positions(&[numbers], &[n]).remove(0);
        for (k, &id) in self.node_ids.iter().enumerate() {
            let point = [coords[k], coords[n + k], coords[2 * n + k]];
            if !point.iter().all(|x| x.is_finite()) {
                return Err(Error::input(format!(
                    "node {id} has a coordinate that is not a finite number"
                )));
            }
            self.draft.nodes.push(id, point, Place::default());
        }
        let families = self.optional_ints(&format!("{of_nodes}/FAM"), n)?;
        let groups = self.groups("NOEUD")?;
        for (&family, &id) in families.iter().zip(&self.node_ids) {
            for group in groups.get(&family).into_iter().flatten() {
                let set = self.draft.node_sets.entry(group.clone()).or_default();
                set.ids.push(id);
            }
        }
        Ok(())
    }

    /// Whole numbers, `n` of them, or none if there is no such dataset.
    fn optional_ints(&self, path: &str, n: usize) -> Result<Vec<i64>> {
        if !self.file.exists(path) {
            return Ok(Vec::new());
        }
        let ints = self.file.ints(path)?;
        if ints.len() == n {
            Ok(ints)
        } else {
            Err(
                Error::input(format!("dataset {path} has {} entries", ints.len()))
                    .expected(format!("{n} entries")),
            )
        }
    }

    fn read_blocks(&self) -> Result<Vec<Block>> {
        let of_cells = format!("{}/MAI", self.step);
        let mut blocks = Vec::new();
        for type_name in self.file.members(&of_cells) {
            let group = format!("{of_cells}/{type_name}");
            let (kind, n_nodes) = kind(&type_name);
            if n_nodes == 0 {
                if matches!(kind, Kind::Unsupported) {
                    return Err(Error::input(format!(
                        "cells of type {type_name} (polyhedra) are not supported"
                    )));
                }
                continue; // polygons
            }
            let columns = self.file.ints(&format!("{group}/NOD"))?;
            if !columns.len().is_multiple_of(n_nodes) {
                return Err(Error::input(format!(
                    "dataset {group}/NOD has {} entries",
                    columns.len()
                ))
                .expected(format!("a multiple of {n_nodes}")));
            }
            let n_cells = columns.len() / n_nodes;
            blocks.push(Block {
                n_cells,
                columns,
                families: self.optional_ints(&format!("{group}/FAM"), n_cells)?,
                numbers: self.optional_ints(&format!("{group}/NUM"), n_cells)?,
                type_name,
            });
        }
        Ok(blocks)
    }

    /// Groups of each family of nodes (`NOEUD`) or of cells (`ELEME`).
    fn groups(&self, of: &str) -> Result<BTreeMap<i64, Vec<String>>> {
        let all = format!("FAS/{}/{of}", self.mesh);
        let mut groups = BTreeMap::new();
        for family in self.file.members(&all) {
            let path = format!("{all}/{family}");
            let names = format!("{path}/GRO/NOM");
            if let Some(number) = self.file.int_attribute(&path, "NUM")
                && self.file.exists(&format!("{path}/GRO"))
            {
                let names = self.file.texts_of_80(&names)?;
                let names = names.into_iter().filter(|name| !name.is_empty());
                groups.insert(number, names.collect());
            }
        }
        Ok(groups)
    }

    fn take_block(
        &mut self,
        block: &Block,
        ids: &[u64],
        groups: &BTreeMap<i64, Vec<String>>,
    ) -> Result<()> {
        let (kind, n_nodes) = kind(&block.type_name);
        // MED's node that is our node 0, 1, ...; empty for what is no solid of ours.
        let cell_type = match kind {
            Kind::Solid(solid) => solid.cell_type(),
            _ => None,
        };
        let mut order = cell_type.map(mirrored_order).unwrap_or_default();
        if n_nodes == MED_HEX27.len() {
            order
                .iter_mut()
                .for_each(|k| *k = MED_HEX27[usize::from(*k)]);
        }
        let mut nodes = vec![0; n_nodes];
        let mut in_our_order = vec![0; n_nodes];
        for cell in 0..block.n_cells {
            let id = ids[cell];
            for (k, node) in nodes.iter_mut().enumerate() {
                let number = block.columns[k * block.n_cells + cell];
                let index = usize::try_from(number).ok().and_then(|k| k.checked_sub(1));
                *node = *index.and_then(|k| self.node_ids.get(k)).ok_or_else(|| {
                    Error::input(format!(
                        "element {id} of type {} names node {number} (from 1)",
                        block.type_name
                    ))
                    .expected(format!("a node from 1 to {}", self.node_ids.len()))
                })?;
            }
            let member = match kind {
                Kind::Solid(solid) => {
                    for (slot, &k) in in_our_order.iter_mut().zip(&order) {
                        *slot = nodes[usize::from(k)];
                    }
                    let place = Place::default();
                    self.draft
                        .push_solid(solid, &IN_ORDER, id, &in_our_order, place);
                    Member::Solid(id)
                }
                Kind::Unsupported => {
                    let name = format!("MED type {}", block.type_name);
                    self.draft.note_unsupported(&name, Place::default());
                    continue;
                }
                Kind::Surface(n) => {
                    self.draft.push_other(id, &nodes[..n]);
                    Member::Surface(Facet::new(&nodes[..n]))
                }
                Kind::Other => {
                    self.draft.push_other(id, &[]);
                    self.n_skipped += 1;
                    Member::Nodes
                }
            };
            let family = block.families.get(cell).copied().unwrap_or(0);
            for group in groups.get(&family).into_iter().flatten() {
                self.add_to_group(group, member, &nodes);
            }
        }
        Ok(())
    }

    fn add_to_group(&mut self, group: &str, member: Member, nodes: &[u64]) {
        let draft = &mut self.draft;
        match member {
            Member::Solid(id) => draft
                .cell_sets
                .entry(group.to_owned())
                .or_default()
                .ids
                .push(id),
            Member::Surface(facet) => {
                let set: &mut DraftFaces = draft.face_sets.entry(group.to_owned()).or_default();
                set.facets.push(facet);
            }
            Member::Nodes => {
                let set = draft.node_sets.entry(group.to_owned()).or_default();
                set.ids.extend_from_slice(nodes);
            }
        }
    }
}

/// Numbers of the cells of each block: those of the file if all differ, else positions over all blocks.
fn element_numbers(blocks: &[Block]) -> Vec<Vec<u64>> {
    let numbers: Vec<Vec<i64>> = blocks.iter().map(|b| b.numbers.clone()).collect();
    let counts: Vec<usize> = blocks.iter().map(|b| b.n_cells).collect();
    unique_or_positions(&numbers, &counts)
}

fn unique_or_positions(numbers: &[Vec<i64>], counts: &[usize]) -> Vec<Vec<u64>> {
    let mut seen = BTreeSet::new();
    let mut are_good = true;
    for (list, &n) in numbers.iter().zip(counts) {
        are_good &= list.len() == n && list.iter().all(|&k| k > 0 && seen.insert(k));
    }
    let mut next = 1;
    (numbers.iter().zip(counts))
        .map(|(list, &n)| {
            if are_good {
                return list.iter().map(|&k| k.unsigned_abs()).collect();
            }
            let first = next;
            next += n as u64;
            (first..next).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests;
