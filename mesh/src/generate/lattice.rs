//! The lattice points of a box that carry nodes, and their numbers.
//!
//! Where every point carries a node, nodes are numbered x fastest, then y, then z. Else the points fall into classes by
//! their place within the brick, of which some carry nodes (hex20: corners, midpoints of brick edges along x, along y,
//! along z); the nodes of one class come after those of the class before, each class x fastest.
//!
//! Invariant: a node's number and coordinates follow from its place alone, bit for bit the same on every rank.

use super::BoxMesh;
use super::blocks::Block;
use super::brick::Brick;
use crate::{CellType, Mesh};

/// Places within a brick, in lattice steps from its lowest corner, that carry nodes; less than a brick's edge each.
type Classes = &'static [[usize; 3]];

const HEX20: Classes = &[[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]];
/// The last is the middle of the diagonal that divides the brick.
const WEDGE15: Classes = &[[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]];
const PYRAMID5: Classes = &[[0, 0, 0], [1, 1, 1]];
/// Corners, the middle, midpoints of brick edges, midpoints of the ways from the middle to the corners.
const PYRAMID13: Classes = &[
    [0, 0, 0],
    [2, 2, 2],
    [2, 0, 0],
    [0, 2, 0],
    [0, 0, 2],
    [1, 1, 1],
    [3, 1, 1],
    [1, 3, 1],
    [3, 3, 1],
    [1, 1, 3],
    [3, 1, 3],
    [1, 3, 3],
    [3, 3, 3],
];

/// The points of the whole box that can carry nodes.
pub(super) struct NodeLattice {
    /// Lattice steps along the edge of a brick.
    pub(super) steps: usize,
    /// Points along each axis.
    points: [usize; 3],
    /// Number of bricks along each axis.
    bricks: [usize; 3],
    /// The classes that carry nodes; `None`: every point does.
    classes: Option<Classes>,
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
        let steps = Brick::of(spec.cell_type).steps();
        NodeLattice {
            steps,
            points: spec.cells.map(|n| steps * n + 1),
            bricks: spec.cells,
            classes: match spec.cell_type {
                CellType::Hex20 => Some(HEX20),
                CellType::Wedge15 => Some(WEDGE15),
                CellType::Pyramid5 => Some(PYRAMID5),
                CellType::Pyramid13 => Some(PYRAMID13),
                _ => None,
            },
        }
    }

    /// Number of lattice points of a block, with or without a node.
    pub(super) fn points_of(&self, block: &Block) -> usize {
        (0..3).map(|d| self.steps * block.len(d) + 1).product()
    }

    /// Number of nodes of a class along each axis.
    fn extent(&self, class: [usize; 3]) -> [usize; 3] {
        [0, 1, 2].map(|d| self.bricks[d] + usize::from(class[d] == 0))
    }

    fn n_in_class(&self, class: [usize; 3]) -> u64 {
        self.extent(class).iter().map(|&n| n as u64).product()
    }

    /// Number of nodes of the whole box.
    pub(super) fn n_nodes(&self) -> u64 {
        match self.classes {
            Some(classes) => classes.iter().map(|&class| self.n_in_class(class)).sum(),
            None => self.points.iter().map(|&n| n as u64).product(),
        }
    }

    /// Number of the node at a lattice point, from 1; `None` if none stands there.
    fn node_id(&self, point: [usize; 3]) -> Option<u64> {
        let place = |p: [usize; 3], n: [usize; 3]| (p[0] + n[0] * (p[1] + n[1] * p[2])) as u64 + 1;
        let Some(classes) = self.classes else {
            return Some(place(point, self.points));
        };
        let of_point = point.map(|p| p % self.steps);
        let at = classes.iter().position(|&class| class == of_point)?;
        let before: u64 = classes[..at].iter().map(|&c| self.n_in_class(c)).sum();
        let within = point.map(|p| p / self.steps);
        Some(before + place(within, self.extent(of_point)))
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
