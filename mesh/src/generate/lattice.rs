//! The lattice points of a box that carry nodes, and their numbers.
//!
//! Where every point carries a node, nodes are numbered x fastest, then y, then z. For hex20 the corners come first,
//! then the midpoints of brick edges along x, along y and along z, each of the four kinds x fastest.
//!
//! Invariant: a node's number and coordinates follow from its place alone, bit for bit the same on every rank.

use super::BoxMesh;
use super::blocks::Block;
use crate::{CellType, Mesh};

/// The points of the whole box that can carry nodes: corners of bricks and, for second-order cells, the points
/// halfway between them.
pub(super) struct NodeLattice {
    /// Lattice steps along the edge of a brick: the order of the cells.
    pub(super) steps: usize,
    /// Points along each axis.
    points: [usize; 3],
    /// Number of bricks along each axis.
    bricks: [usize; 3],
    /// Whether only corners and midpoints of brick edges carry nodes (hex20), and not midpoints of faces and bricks.
    serendipity: bool,
}

/// Node indices of the lattice points of a block.
pub(super) struct LocalNodes {
    lo: [usize; 3],
    points: [usize; 3],
    /// `u32::MAX` where no node stands.
    nodes: Vec<u32>,
}

impl LocalNodes {
    /// The node at a lattice point of the block.
    pub(super) fn at(&self, point: [usize; 3]) -> u32 {
        self.nodes[self.index(point)]
    }

    fn index(&self, point: [usize; 3]) -> usize {
        let [i, j, k] = [0, 1, 2].map(|d| point[d] - self.lo[d]);
        i + self.points[0] * (j + self.points[1] * k)
    }
}

impl NodeLattice {
    /// The lattice of a box.
    pub(super) fn of(spec: &BoxMesh) -> Self {
        let steps = spec.cell_type.order();
        NodeLattice {
            steps,
            points: spec.cells.map(|n| steps * n + 1),
            bricks: spec.cells,
            serendipity: spec.cell_type == CellType::Hex20,
        }
    }

    /// Number of lattice points of a block, with or without a node.
    pub(super) fn points_of(&self, block: &Block) -> usize {
        (0..3).map(|d| self.steps * block.len(d) + 1).product()
    }

    /// Number of nodes that are corners (class 0) or midpoints of edges along axis `class - 1`.
    fn n_in_class(&self, class: usize) -> u64 {
        (0..3)
            .map(|d| self.bricks[d] as u64 + u64::from(d + 1 != class))
            .product()
    }

    /// Number of nodes of the whole box.
    pub(super) fn n_nodes(&self) -> u64 {
        if self.serendipity {
            (0..4).map(|class| self.n_in_class(class)).sum()
        } else {
            self.points.iter().map(|&n| n as u64).product()
        }
    }

    /// Number of the node at a lattice point, from 1; `None` if none stands there.
    fn node_id(&self, point: [usize; 3]) -> Option<u64> {
        let place = |p: [usize; 3], n: [usize; 3]| (p[0] + n[0] * (p[1] + n[1] * p[2])) as u64 + 1;
        if !self.serendipity {
            return Some(place(point, self.points));
        }
        let mut odd = (0..3).filter(|&d| point[d] % 2 == 1);
        let class = odd.next().map_or(0, |d| d + 1);
        if odd.next().is_some() {
            return None;
        }
        let before: u64 = (0..class).map(|c| self.n_in_class(c)).sum();
        let extent = [0, 1, 2].map(|d| self.bricks[d] + usize::from(d + 1 != class));
        Some(before + place(point.map(|p| p / 2), extent))
    }

    /// Appends the nodes of a block to `mesh`, x fastest.
    pub(super) fn fill_nodes(&self, spec: &BoxMesh, block: &Block, mesh: &mut Mesh) -> LocalNodes {
        let lo = block.lo.map(|n| self.steps * n);
        let points = [0, 1, 2].map(|d| self.steps * block.len(d) + 1);
        let mut nodes = vec![u32::MAX; points.iter().product()];
        let slots = nodes.iter_mut();
        let places = (0..points[2])
            .flat_map(|k| (0..points[1]).flat_map(move |j| (0..points[0]).map(move |i| [i, j, k])));
        for (slot, place) in slots.zip(places) {
            let point = [0, 1, 2].map(|d| lo[d] + place[d]);
            if let Some(id) = self.node_id(point) {
                *slot = mesh.n_nodes() as u32;
                mesh.node_ids.push(id);
                mesh.coords.push([0, 1, 2].map(|d| {
                    let fraction = point[d] as f64 / (self.points[d] - 1) as f64;
                    spec.origin[d] + spec.size[d] * fraction
                }));
            }
        }
        LocalNodes { lo, points, nodes }
    }
}
