//! `Grid`: points, cells and whole-number arrays of a VTK file, and the draft of a mesh made of them.
//!
//! Cells of dimension 3 are the solids; triangles and quadrilaterals may lie on their faces. Each value of a
//! whole-number array with few values becomes a set `NAME_VALUE`; an array `set:NAME` of zeros and ones, as this
//! program writes it, the set `NAME`. Numbers are those of the arrays `node_id` and `element_id`, else positions
//! counted from 0.
//!
//! Invariant: knows cell types and arrays, not how they are written.

use super::super::draft::{Draft, DraftFaces, Facet, Place};
use super::super::solids::{
    HEX8, HEX20, HEX27, IN_ORDER, Order, PYRAMID5, PYRAMID13, Solid, TET4, TET10, WEDGE6, WEDGE15,
};
use fem_mesh::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A whole-number array of one component.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Array {
    pub(super) name: String,
    pub(super) values: Vec<i64>,
}

/// An unstructured grid.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Grid {
    pub(super) points: Vec<[f64; 3]>,
    /// Type of each cell.
    pub(super) types: Vec<i64>,
    /// End of each cell's points in `connectivity`.
    pub(super) ends: Vec<i64>,
    /// Points of all cells, counted from 0.
    pub(super) connectivity: Vec<i64>,
    pub(super) point_arrays: Vec<Array>,
    pub(super) cell_arrays: Vec<Array>,
}

/// Prefix of the arrays that hold the members of one set.
pub(in super::super) const SET_PREFIX: &str = "set:";

/// An array of more values than this is no division into sets.
const MOST_VALUES: usize = 256;

/// Arrays that number nodes and elements, ours first.
const NODE_NUMBERS: [&str; 3] = ["node_id", "GlobalNodeIds", "GlobalNodeId"];
const ELEMENT_NUMBERS: [&str; 4] = [
    "element_id",
    "GlobalElementIds",
    "GlobalElementId",
    "GlobalCellIds",
];
/// Arrays that are no sets.
const NO_SETS: [&str; 4] = [
    "vtkGhostType",
    "vtkGhostLevels",
    "vtkOriginalPointIds",
    "vtkOriginalCellIds",
];

/// Points of a voxel in the order of a hexahedron.
const VOXEL: [u8; 8] = [0, 1, 3, 2, 4, 5, 7, 6];

/// What a cell is to us.
enum Kind {
    Solid(Solid, Order),
    /// A solid of a type we do not know, by its VTK name.
    Unsupported(&'static str),
    /// Its corners are these of its points.
    Surface(&'static [u8]),
    Other,
}

/// By VTK's type number and the number of points.
fn kind(vtk_type: i64, n_points: usize) -> Kind {
    const TRIANGLE: &[u8] = &[0, 1, 2];
    const QUADRILATERAL: &[u8] = &[0, 1, 2, 3];
    let (solid, order): (Solid, Order) = match (vtk_type, n_points) {
        (10 | 71, 4) => (TET4, &IN_ORDER),
        (11, 8) => (HEX8, &VOXEL),
        (12 | 72, 8) => (HEX8, &IN_ORDER),
        (13 | 73, 6) => (WEDGE6, &IN_ORDER),
        (14 | 74, 5) => (PYRAMID5, &IN_ORDER),
        (24 | 71, 10) => (TET10, &IN_ORDER),
        (25, 20) => (HEX20, &IN_ORDER),
        (26, 15) => (WEDGE15, &IN_ORDER),
        (27, 13) => (PYRAMID13, &IN_ORDER),
        (29, 27) => (HEX27, &IN_ORDER),
        (5 | 7 | 69, 3) | (22 | 69, 6) | (34, 7) => return Kind::Surface(TRIANGLE),
        (9 | 7 | 70, 4) | (23, 8) | (28 | 70, 9) | (30, 6) => return Kind::Surface(QUADRILATERAL),
        (8, 4) => return Kind::Surface(&[0, 1, 3, 2]),
        (10, _) => return Kind::Unsupported("tetrahedron"),
        (11, _) => return Kind::Unsupported("voxel"),
        (12, _) => return Kind::Unsupported("hexahedron"),
        (13, _) => return Kind::Unsupported("wedge"),
        (14, _) => return Kind::Unsupported("pyramid"),
        (15, _) => return Kind::Unsupported("pentagonal prism"),
        (16, _) => return Kind::Unsupported("hexagonal prism"),
        (24, _) => return Kind::Unsupported("quadratic tetrahedron"),
        (25, _) => return Kind::Unsupported("quadratic hexahedron"),
        (26, _) => return Kind::Unsupported("quadratic wedge"),
        (27, _) => return Kind::Unsupported("quadratic pyramid"),
        (29, _) => return Kind::Unsupported("triquadratic hexahedron"),
        (31, _) => return Kind::Unsupported("quadratic linear wedge"),
        (32, _) => return Kind::Unsupported("biquadratic wedge"),
        (33, _) => return Kind::Unsupported("biquadratic hexahedron"),
        (37, _) => return Kind::Unsupported("triquadratic pyramid"),
        (41 | 42, _) => return Kind::Unsupported("polyhedron"),
        (64..=67 | 71..=74 | 78..=81, _) => return Kind::Unsupported("solid of higher order"),
        _ => return Kind::Other,
    };
    Kind::Solid(solid, order)
}

/// What became of each cell of the grid.
#[derive(Clone, Copy)]
enum Taken {
    Solid(u64),
    Surface(Facet),
    No,
}

impl Grid {
    /// Makes the draft. Errors come without the file.
    pub(super) fn into_draft(self, path: &Path) -> Result<Draft> {
        self.check_lengths()?;
        let node_ids = numbers(&self.point_arrays, &NODE_NUMBERS, self.points.len());
        let element_ids = numbers(&self.cell_arrays, &ELEMENT_NUMBERS, self.types.len());
        let mut draft = Draft::new(path.to_path_buf());
        // The manual of VTK has the first triangle look outward; its shape functions, and half of the files, inward.
        draft.has_wedges_of_either_sense = true;
        draft.nodes.reserve(self.points.len());
        for (k, (&point, &id)) in self.points.iter().zip(&node_ids).enumerate() {
            if !point.iter().all(|x| x.is_finite()) {
                return Err(Error::input(format!(
                    "point {k} (from 0) has a coordinate that is not a finite number"
                )));
            }
            draft.nodes.push(id, point, Place::default());
        }
        let taken = self.take_cells(&mut draft, &node_ids, &element_ids)?;
        self.add_cell_sets(&mut draft, &taken);
        self.add_node_sets(&mut draft, &node_ids);
        Ok(draft)
    }

    fn check_lengths(&self) -> Result<()> {
        if self.types.len() != self.ends.len() {
            return Err(Error::input(format!(
                "{} cell types for {} cells",
                self.types.len(),
                self.ends.len()
            ))
            .expected("one type a cell"));
        }
        Ok(())
    }

    fn take_cells(
        &self,
        draft: &mut Draft,
        node_ids: &[u64],
        element_ids: &[u64],
    ) -> Result<Vec<Taken>> {
        let is_ghost = (self.cell_arrays.iter()).find(|a| a.name.starts_with("vtkGhost"));
        let is_ghost = is_ghost.filter(|a| a.values.len() == self.types.len());
        let mut taken = Vec::with_capacity(self.types.len());
        let mut nodes: Vec<u64> = Vec::new();
        let mut start = 0;
        for (cell, (&vtk_type, &end)) in self.types.iter().zip(&self.ends).enumerate() {
            let points = usize::try_from(end)
                .ok()
                .and_then(|end| self.connectivity.get(start..end));
            let Some(points) = points else {
                return Err(Error::input(format!(
                    "cell {cell} (from 0) ends at entry {end} of the connectivity"
                ))
                .expected(format!(
                    "an entry from {start} to {}",
                    self.connectivity.len()
                )));
            };
            start += points.len();
            if is_ghost.is_some_and(|a| a.values[cell] != 0) {
                taken.push(Taken::No); // another piece holds it
                continue;
            }
            nodes.clear();
            for &point in points {
                let id = usize::try_from(point)
                    .ok()
                    .and_then(|point| node_ids.get(point));
                let Some(&id) = id else {
                    return Err(
                        Error::input(format!("cell {cell} (from 0) names point {point}"))
                            .expected(format!("a point from 0, of {}", node_ids.len())),
                    );
                };
                nodes.push(id);
            }
            let id = element_ids[cell];
            taken.push(match kind(vtk_type, points.len()) {
                Kind::Solid(solid, order) => {
                    draft.push_solid(solid, order, id, &nodes, Place::default());
                    Taken::Solid(id)
                }
                Kind::Unsupported(name) => {
                    let name = format!("{name} of {} points (VTK type {vtk_type})", points.len());
                    draft.note_unsupported(&name, Place::default());
                    Taken::No
                }
                Kind::Surface(corners) => {
                    let mut of_corners = [0; 4];
                    for (slot, &k) in of_corners.iter_mut().zip(corners) {
                        *slot = nodes[usize::from(k)];
                    }
                    let of_corners = &of_corners[..corners.len()];
                    draft.push_other(id, of_corners);
                    Taken::Surface(Facet::new(of_corners))
                }
                Kind::Other => {
                    draft.push_other(id, &[]);
                    Taken::No
                }
            });
        }
        Ok(taken)
    }

    fn add_cell_sets(&self, draft: &mut Draft, taken: &[Taken]) {
        for array in self
            .cell_arrays
            .iter()
            .filter(|a| a.values.len() == taken.len())
        {
            let Some(names) = names_by_value(array, &ELEMENT_NUMBERS) else {
                continue;
            };
            for (taken, value) in taken.iter().zip(&array.values) {
                let Some(name) = names.get(value) else {
                    continue;
                };
                match taken {
                    Taken::Solid(id) => {
                        let set = draft.cell_sets.entry(name.clone()).or_default();
                        set.ids.push(*id);
                    }
                    Taken::Surface(facet) => {
                        let set: &mut DraftFaces = draft.face_sets.entry(name.clone()).or_default();
                        set.facets.push(*facet);
                    }
                    Taken::No => {}
                }
            }
        }
    }

    fn add_node_sets(&self, draft: &mut Draft, node_ids: &[u64]) {
        for array in self
            .point_arrays
            .iter()
            .filter(|a| a.values.len() == node_ids.len())
        {
            let Some(names) = names_by_value(array, &NODE_NUMBERS) else {
                continue;
            };
            for (&id, value) in node_ids.iter().zip(&array.values) {
                if let Some(name) = names.get(value) {
                    draft
                        .node_sets
                        .entry(name.clone())
                        .or_default()
                        .ids
                        .push(id);
                }
            }
        }
    }
}

/// The numbers that the first of the arrays `named` gives, if they are unlike one another; else positions.
fn numbers(arrays: &[Array], named: &[&str], n: usize) -> Vec<u64> {
    let found = named
        .iter()
        .find_map(|name| arrays.iter().find(|a| a.name == *name));
    let ids: Option<Vec<u64>> = found
        .filter(|array| array.values.len() == n)
        .and_then(|array| {
            array
                .values
                .iter()
                .map(|&v| u64::try_from(v).ok())
                .collect()
        });
    let are_unique = |ids: &Vec<u64>| {
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        sorted.windows(2).all(|pair| pair[0] != pair[1])
    };
    ids.filter(are_unique)
        .unwrap_or_else(|| (0..n as u64).collect())
}

/// Name of the set of each value; `None` for an array that divides nothing into sets.
fn names_by_value(array: &Array, numbers: &[&str]) -> Option<BTreeMap<i64, String>> {
    let name = array.name.as_str();
    if numbers.contains(&name) || NO_SETS.contains(&name) {
        return None;
    }
    let mut values = BTreeSet::new();
    for &value in &array.values {
        if values.insert(value) && values.len() > MOST_VALUES {
            return None;
        }
    }
    if let Some(set) = name.strip_prefix(SET_PREFIX)
        && values.iter().all(|v| matches!(v, 0 | 1))
    {
        return Some(BTreeMap::from([(1, set.to_owned())]));
    }
    let named = values.into_iter().map(|v| (v, format!("{name}_{v}")));
    Some(named.collect())
}
