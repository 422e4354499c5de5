//! `Mesh`: nodes, cells and named sets, whole on one rank or one slice of them on each.
//!
//! Readers fill it on rank 0 (the other ranks hold an empty one), the box generator fills a slice on every rank.
//! Numbers of the input (`node_ids`, `cell_ids`) name nodes and cells across ranks and are kept to the results.
//!
//! Invariant: knows no partition; what one rank finally computes on is a [`crate::LocalMesh`].

use crate::{CellType, FreeNode};
use std::collections::BTreeMap;

/// One face of one cell: `cell` indexes the cells it belongs with, `face` the faces of its [`CellType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellFace {
    /// Index of the cell.
    pub cell: u32,
    /// Index of the face in `CellType::faces`.
    pub face: u8,
}

/// Cells of any mix of types: the nodes of cell `c` are `nodes[offsets[c]..offsets[c + 1]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    /// Type of each cell.
    pub types: Vec<CellType>,
    /// Start of each cell's nodes; one longer than `types`.
    pub offsets: Vec<u32>,
    /// Node indices of all cells, in our node order (see [`crate::cell_type`]).
    pub nodes: Vec<u32>,
}

impl Default for Cells {
    fn default() -> Self {
        Cells {
            types: Vec::new(),
            offsets: vec![0],
            nodes: Vec::new(),
        }
    }
}

impl Cells {
    /// Number of cells.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// Nodes of cell `cell`.
    #[inline]
    pub fn nodes_of(&self, cell: usize) -> &[u32] {
        &self.nodes[self.offsets[cell] as usize..self.offsets[cell + 1] as usize]
    }

    /// Appends a cell. `nodes` has `cell_type.n_nodes()` entries.
    pub fn push(&mut self, cell_type: CellType, nodes: &[u32]) {
        debug_assert_eq!(nodes.len(), cell_type.n_nodes());
        self.types.push(cell_type);
        self.nodes.extend_from_slice(nodes);
        self.offsets.push(self.nodes.len() as u32);
    }

    /// Nodes of one face of a cell, in the order of the face's own type.
    pub fn nodes_of_face(&self, at: CellFace) -> (CellType, impl Iterator<Item = u32> + '_) {
        let cell = at.cell as usize;
        let nodes = self.nodes_of(cell);
        let face = self.types[cell].faces()[usize::from(at.face)];
        (
            face.cell_type,
            face.nodes.iter().map(move |&i| nodes[usize::from(i)]),
        )
    }
}

/// Named sets; all ranks hold the same names, each with its own members (indices, ascending, without repetition).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sets {
    /// Sets of node indices.
    pub nodes: BTreeMap<String, Vec<u32>>,
    /// Sets of cell indices ("element sets" to the user).
    pub cells: BTreeMap<String, Vec<u32>>,
    /// Sets of faces of cells ("surfaces").
    pub faces: BTreeMap<String, Vec<CellFace>>,
}

/// A mesh or a slice of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mesh {
    /// Coordinates of each node, m.
    pub coords: Vec<[f64; 3]>,
    /// Number of each node in the input; unique in the whole mesh.
    pub node_ids: Vec<u64>,
    /// Solid cells (dimension 3), by node index into `coords`.
    pub cells: Cells,
    /// Number of each cell in the input; unique in the whole mesh.
    pub cell_ids: Vec<u64>,
    /// Named sets of nodes, cells and faces. A node, cell or face listed in a set appears in it in every slice that
    /// holds it.
    pub sets: Sets,
    /// Nodes of no cell, on rank 0 only. They take no part in the partition: see [`crate::free_nodes`].
    pub free: Vec<FreeNode>,
}

impl Mesh {
    /// Number of nodes held here.
    pub fn n_nodes(&self) -> usize {
        self.coords.len()
    }

    /// Number of cells held here.
    pub fn n_cells(&self) -> usize {
        self.cells.len()
    }
}
