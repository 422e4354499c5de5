//! One brick of the lattice and the cells it is made of.
//!
//! Invariant: bricks that share a face cut it the same way, so cells conform across bricks.

use crate::{CellFace, CellType};
use CellType::{Hex8, Hex20, Hex27, Pyramid5, Pyramid13, Wedge6, Wedge15};

/// Corners of a cell, in units of which a brick spans one, or two where the cells meet in its middle.
type Corners = &'static [[u8; 3]];

const HEX: [Corners; 1] = [&[
    [0, 0, 0],
    [1, 0, 0],
    [1, 1, 0],
    [0, 1, 0],
    [0, 0, 1],
    [1, 0, 1],
    [1, 1, 1],
    [0, 1, 1],
]];

// Two wedges along z, divided by the plane through the diagonal from (0, 0) to (1, 1).
const WEDGES: [Corners; 2] = [
    &[
        [0, 0, 0],
        [1, 0, 0],
        [1, 1, 0],
        [0, 0, 1],
        [1, 0, 1],
        [1, 1, 1],
    ],
    &[
        [0, 0, 0],
        [1, 1, 0],
        [0, 1, 0],
        [0, 0, 1],
        [1, 1, 1],
        [0, 1, 1],
    ],
];

// Kuhn's division: a tetrahedron for each way to walk from (0, 0, 0) to (1, 1, 1) along the axes; for the odd
// permutations of the axes the two middle corners change places, so that all volumes are positive.
// H. W. Kuhn, Some combinatorial lemmas in topology, IBM J. Res. Dev. 4 (1960) 518-524.
const TETS: [Corners; 6] = [
    &[[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]], // x y z
    &[[0, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 1]], // y z x
    &[[0, 0, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1]], // z x y
    &[[0, 0, 0], [1, 0, 1], [1, 0, 0], [1, 1, 1]], // x z y
    &[[0, 0, 0], [1, 1, 0], [0, 1, 0], [1, 1, 1]], // y x z
    &[[0, 0, 0], [0, 1, 1], [0, 0, 1], [1, 1, 1]], // z y x
];

// A pyramid on each side, with the apex in the middle of the brick.
const PYRAMIDS: [Corners; 6] = [
    &[[0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 2, 0], [1, 1, 1]],
    &[[0, 0, 2], [0, 2, 2], [2, 2, 2], [2, 0, 2], [1, 1, 1]],
    &[[0, 0, 0], [0, 0, 2], [2, 0, 2], [2, 0, 0], [1, 1, 1]],
    &[[0, 2, 0], [2, 2, 0], [2, 2, 2], [0, 2, 2], [1, 1, 1]],
    &[[0, 0, 0], [0, 2, 0], [0, 2, 2], [0, 0, 2], [1, 1, 1]],
    &[[2, 0, 0], [2, 0, 2], [2, 2, 2], [2, 2, 0], [1, 1, 1]],
];

/// How a brick is made of cells of one type.
pub(super) struct Brick {
    cell_type: CellType,
    /// Corners of each cell.
    pub(super) cells: &'static [Corners],
    /// Units along an edge of the brick.
    units: u8,
}

impl Brick {
    /// The brick made of that type, which must be a solid.
    pub(super) fn of(cell_type: CellType) -> Self {
        let (cells, units): (&[Corners], u8) = match cell_type {
            Hex8 | Hex20 | Hex27 => (&HEX, 1),
            Wedge6 | Wedge15 => (&WEDGES, 1),
            Pyramid5 | Pyramid13 => (&PYRAMIDS, 2),
            _ => (&TETS, 1),
        };
        Brick {
            cell_type,
            cells,
            units,
        }
    }

    /// Lattice steps along an edge of the brick: second-order cells have nodes in the middle of their edges.
    pub(super) fn steps(&self) -> usize {
        usize::from(self.units) * self.cell_type.order()
    }

    /// Lattice points of the nodes of a cell, relative to the brick's lowest corner: each is the mean of some corners.
    pub(super) fn points_of(&self, corners: Corners) -> impl Iterator<Item = [usize; 3]> {
        let steps = self.cell_type.order();
        let mean = move |of: &[u8]| {
            let sum = |d: usize| -> usize {
                let places = of.iter().map(|&k| corners[usize::from(k)][d]);
                places.map(usize::from).sum()
            };
            [0, 1, 2].map(|d| steps * sum(d) / of.len())
        };
        let edges = if steps == 2 {
            self.cell_type.edges()
        } else {
            &[]
        };
        let inner = self.cell_type.inner_nodes();
        (corners.iter())
            .map(move |c| c.map(|x| steps * usize::from(x)))
            .chain(edges.iter().map(move |edge| mean(edge)))
            .chain(inner.iter().map(move |around| mean(around)))
    }

    /// Faces of the brick's cells that lie on its side `side` (0 low, 1 high) across `axis`.
    pub(super) fn faces_on(&self, axis: usize, side: u8) -> Vec<CellFace> {
        let mut faces = Vec::new();
        for (cell, corners) in self.cells.iter().enumerate() {
            for (index, face) in self.cell_type.faces().iter().enumerate() {
                let n_corners = face.cell_type.n_corners();
                if face.nodes[..n_corners]
                    .iter()
                    .all(|&i| corners[usize::from(i)][axis] == side * self.units)
                {
                    faces.push(CellFace {
                        cell: cell as u32,
                        face: index as u8,
                    });
                }
            }
        }
        faces
    }
}
