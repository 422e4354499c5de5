//! One brick of the lattice and the cells it is made of.
//!
//! Invariant: bricks that share a face cut it the same way, so cells conform across bricks.

use crate::{CellFace, CellType};
use CellType::{Hex8, Hex20, Wedge6};

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

/// How a brick is made of cells of one type.
pub(super) struct Brick {
    cell_type: CellType,
    /// Corners of each cell, as corners of the unit brick.
    pub(super) cells: &'static [Corners],
}

impl Brick {
    /// The brick made of that type, which must be a solid.
    pub(super) fn of(cell_type: CellType) -> Self {
        let cells: &[Corners] = match cell_type {
            Hex8 | Hex20 => &HEX,
            Wedge6 => &WEDGES,
            _ => &TETS,
        };
        Brick { cell_type, cells }
    }

    /// Lattice points of the nodes of a cell, relative to the brick's lowest corner. In second-order types a brick
    /// spans two steps, and a mid node is the sum of the unit corners at the ends of its edge.
    pub(super) fn points_of(&self, corners: Corners) -> impl Iterator<Item = [usize; 3]> {
        let steps = self.cell_type.order();
        let edges = if steps == 2 {
            self.cell_type.edges()
        } else {
            &[]
        };
        let mids = edges.iter().map(move |&[a, b]| {
            let (a, b) = (corners[usize::from(a)], corners[usize::from(b)]);
            [0, 1, 2].map(|d| usize::from(a[d] + b[d]))
        });
        corners
            .iter()
            .map(move |c| c.map(|x| steps * usize::from(x)))
            .chain(mids)
    }

    /// Faces of the brick's cells that lie on its side `side` (0 low, 1 high) across `axis`.
    pub(super) fn faces_on(&self, axis: usize, side: u8) -> Vec<CellFace> {
        let mut faces = Vec::new();
        for (cell, corners) in self.cells.iter().enumerate() {
            for (index, face) in self.cell_type.faces().iter().enumerate() {
                let n_corners = face.cell_type.n_corners();
                if face.nodes[..n_corners]
                    .iter()
                    .all(|&i| corners[usize::from(i)][axis] == side)
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
