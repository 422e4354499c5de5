//! `Draft`: a mesh as a file tells it, by the numbers of the file and in its order, before anything is checked.
//!
//! Every reader fills one; [`Draft::finish`] (in `finish.rs`) makes the mesh of it.
//!
//! Invariant: knows no file format.

use super::solids::{Order, Solid};
use fem_mesh::{CellType, Error, FreeNode};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where something stands: index into [`Draft::files`] and line from 1; line 0 in a binary file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: u16,
    pub(crate) line: u32,
}

/// Nodes in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct DraftNodes {
    pub(crate) ids: Vec<u64>,
    pub(crate) coords: Vec<[f64; 3]>,
    pub(crate) places: Vec<Place>,
}

impl DraftNodes {
    pub(crate) fn push(&mut self, id: u64, coords: [f64; 3], place: Place) {
        self.ids.push(id);
        self.coords.push(coords);
        self.places.push(place);
    }

    pub(crate) fn reserve(&mut self, n: usize) {
        self.ids.reserve(n);
        self.coords.reserve(n);
        self.places.reserve(n);
    }
}

/// Solid elements in the order of the file; `nodes` lists the node numbers of all of them, in our node order.
#[derive(Debug, Default)]
pub(crate) struct DraftSolids {
    pub(crate) types: Vec<CellType>,
    pub(crate) ids: Vec<u64>,
    pub(crate) nodes: Vec<u64>,
    pub(crate) places: Vec<Place>,
}

impl DraftSolids {
    pub(crate) fn push(
        &mut self,
        cell_type: CellType,
        id: u64,
        nodes: impl Iterator<Item = u64>,
        place: Place,
    ) {
        self.types.push(cell_type);
        self.ids.push(id);
        self.nodes.extend(nodes);
        self.places.push(place);
    }

    /// Each solid with its node numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (CellType, &[u64])> {
        let mut start = 0;
        self.types.iter().map(move |&cell_type| {
            let nodes = &self.nodes[start..start + cell_type.n_nodes()];
            start += nodes.len();
            (cell_type, nodes)
        })
    }
}

/// Members of a set by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdSet {
    /// Single numbers, each of which should exist.
    pub(crate) ids: Vec<u64>,
    /// Ranges (first, last, step): those of their numbers that exist.
    pub(crate) ranges: Vec<(u64, u64, u64)>,
}

impl IdSet {
    /// Adds the members of another set.
    pub(crate) fn extend(&mut self, other: &IdSet) {
        self.ids.extend_from_slice(&other.ids);
        self.ranges.extend_from_slice(&other.ranges);
        self.ids.sort_unstable();
        self.ids.dedup();
        self.ranges.sort_unstable();
        self.ranges.dedup();
    }
}

/// A surface element, by the numbers of its corner nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facet {
    corners: [u64; 4],
    n_corners: u8,
}

impl Facet {
    /// Takes 3 or 4 corners.
    pub(crate) fn new(corners: &[u64]) -> Self {
        let mut facet = Facet {
            corners: [0; 4],
            n_corners: corners.len() as u8,
        };
        facet.corners[..corners.len()].copy_from_slice(corners);
        facet
    }

    pub(crate) fn corners(&self) -> &[u64] {
        &self.corners[..usize::from(self.n_corners)]
    }
}

/// What belongs to one named surface.
#[derive(Debug, Default)]
pub(crate) struct DraftFaces {
    /// Surface elements, to be found among the faces of the solids.
    pub(crate) facets: Vec<Facet>,
    /// Elements with the number of one of their faces, counted from 0, and where that is said.
    pub(crate) of_elements: Vec<(IdSet, u8, Place)>,
}

/// A mesh by the numbers of its file.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// The files read; the first is the one the user named.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) nodes: DraftNodes,
    pub(crate) solids: DraftSolids,
    /// Numbers of elements that are no solids: a set may name them.
    pub(crate) other_elements: Vec<u64>,
    /// Those of them that may lie on faces of solids, by number.
    pub(crate) surface_elements: Vec<(u64, Facet)>,
    /// Solids of types this program does not know yet: name, first place, count.
    pub(crate) unsupported: BTreeMap<String, (Place, usize)>,
    pub(crate) node_sets: BTreeMap<String, IdSet>,
    pub(crate) cell_sets: BTreeMap<String, IdSet>,
    pub(crate) face_sets: BTreeMap<String, DraftFaces>,
    pub(crate) warnings: Vec<String>,
    /// The format knows wedges of either sense, so that turning them is no news.
    pub(crate) has_wedges_of_either_sense: bool,
    /// Nodes of no solid with their place in the file, found in the end.
    pub(crate) free: Vec<(u32, FreeNode)>,
}

impl Draft {
    pub(crate) fn new(file: PathBuf) -> Self {
        Draft {
            files: vec![file],
            ..Draft::default()
        }
    }

    /// An error with its file and, if known, its line.
    pub(crate) fn error_at(&self, place: Place, error: Error) -> Error {
        let error = match self.files.get(usize::from(place.file)) {
            Some(file) => error.in_file(file),
            None => error,
        };
        if place.line > 0 {
            error.at_line(place.line as usize)
        } else {
            error
        }
    }

    /// Takes a solid. `nodes` are those of the file, `order` leads from them to ours. One of a type that this program does
    /// not know is noted, to be refused by name in the end.
    pub(super) fn push_solid(
        &mut self,
        solid: Solid,
        order: Order,
        id: u64,
        nodes: &[u64],
        place: Place,
    ) {
        match solid.cell_type() {
            Some(cell_type) => {
                let order = &order[..solid.n_nodes];
                let ordered = order.iter().map(|&k| nodes[usize::from(k)]);
                self.solids.push(cell_type, id, ordered, place);
            }
            None => {
                self.note_unsupported(solid.name, place);
                self.other_elements.push(id);
            }
        }
    }

    /// Takes an element that is no solid; one with 3 or 4 `corners` may lie on a face of one.
    pub(crate) fn push_other(&mut self, id: u64, corners: &[u64]) {
        self.other_elements.push(id);
        if matches!(corners.len(), 3 | 4) {
            self.surface_elements.push((id, Facet::new(corners)));
        }
    }

    /// Notes a solid of a type this program does not know.
    pub(crate) fn note_unsupported(&mut self, name: &str, place: Place) {
        match self.unsupported.get_mut(name) {
            Some((_, count)) => *count += 1,
            None => {
                self.unsupported.insert(name.to_owned(), (place, 1));
            }
        }
    }
}
