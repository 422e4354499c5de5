//! `LocalMesh`: what one rank computes on: its own cells, one layer of ghost cells, and the numbering of their nodes.
//!
//! Every cell that touches an owned node is held here, owned or ghost: a rank assembles its own rows of any nodal
//! system without communication.
//!
//! Invariant: knows no files and no physics.

use crate::mesh::Sets;
use crate::{Cells, IndexMap};

/// One rank's part of a distributed mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalMesh {
    /// Cells by local node index: owned cells first, then ghost cells (owned by other ranks, touching a node owned
    /// here). Within each group ascending by their smallest local node.
    pub cells: Cells,
    /// How many of `cells` are owned.
    pub n_owned_cells: usize,
    /// Number of each cell in the input.
    pub cell_ids: Vec<u64>,
    /// Coordinates of each local node, m: owned nodes first, then ghosts, as in `nodes`.
    pub coords: Vec<[f64; 3]>,
    /// Number of each local node in the input.
    pub node_ids: Vec<u64>,
    /// Distribution of the nodes.
    pub nodes: IndexMap,
    /// Named sets by local index, with owned and ghost members; every rank holds the same names.
    pub sets: Sets,
    /// Number of cells of the whole mesh.
    pub n_global_cells: u64,
}

impl LocalMesh {
    /// Coordinates of the nodes of a cell, written into `into` (at least as long as the cell has nodes).
    pub fn gather_coords(&self, cell: usize, into: &mut [[f64; 3]]) {
        for (slot, &node) in into.iter_mut().zip(self.cells.nodes_of(cell)) {
            *slot = self.coords[node as usize];
        }
    }

    /// Number of cells held here, ghost cells included.
    pub fn n_cells(&self) -> usize {
        self.cells.len()
    }
}
