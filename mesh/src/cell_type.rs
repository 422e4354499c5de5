//! The shapes a piece of the mesh can have: counts, faces, edges, and the node orders of the formats we read and write.
//!
//! Our node order is VTK's, which for these types is also that of Abaqus, CalculiX and (corner nodes) Gmsh.
//!
//! ```text
//! Tet4 / Tet10             Hex8 / Hex20                  Wedge6              facets
//!        3                    7---14---6                 5                 3---6---2   2
//!       /|\                  15|      13|               /|\                |       |   |\
//!      7 | 9                /  19    /  18             / | \               7       5   5 4
//!     /  8  \              4---12---5   |             3-----4              |       |   |  \
//!    0---|6--2             |   3--10|---2             |  2  |              0---4---1   0-3-1
//!     \  |  /             16  11   17   9             | / \ |              Quad8       Tri6
//!      4 | 5               | /      | /               0-----1
//!       \|/                0----8---1
//!        1
//! ```
//!
//! ```text
//! Pyramid5 / Pyramid13, the     Wedge15: Wedge6 with 6..8 in the middle of the edges 01 12 20,
//! base from above, 4 the apex            9..11 of 34 45 53, 12..14 of 03 14 25
//!   3-----7-----2               Hex27:   Hex20 with 20..25 in the middle of the faces 0473 1265 0154 2376 0321 4567,
//!   |  12   11  |                        26 in the middle of the cell
//!   8     4     6               Quad9:   Quad8 with 8 in the middle
//!   |  9     10 |
//!   0-----5-----1
//! ```
//!
//! Invariant: geometry-free tables only; shape functions live with the elements.

/// Shape and interpolation order of a cell or of a facet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum CellType {
    Tri3,
    Tri6,
    Quad4,
    Quad8,
    Quad9,
    Tet4,
    Tet10,
    Pyramid5,
    Pyramid13,
    Wedge6,
    Wedge15,
    Hex8,
    Hex20,
    Hex27,
}

/// One face of a cell: its own shape, and its nodes as local numbers of the cell, seen from outside counterclockwise
/// (so that the normal by the right-hand rule points out of the cell).
#[derive(Clone, Copy, Debug)]
pub struct Face {
    /// Shape of the face.
    pub cell_type: CellType,
    /// Local node numbers in the node order of `cell_type`.
    pub nodes: &'static [u8],
}

const fn face(cell_type: CellType, nodes: &'static [u8]) -> Face {
    Face { cell_type, nodes }
}

use CellType::{
    Hex8, Hex20, Hex27, Pyramid5, Pyramid13, Quad4, Quad8, Quad9, Tet4, Tet10, Tri3, Tri6, Wedge6,
    Wedge15,
};

/// Every type, by its discriminant.
static ALL: [CellType; 14] = [
    Tri3, Tri6, Quad4, Quad8, Quad9, Tet4, Tet10, Pyramid5, Pyramid13, Wedge6, Wedge15, Hex8,
    Hex20, Hex27,
];

// Face numbers follow Abaqus and CalculiX (S1, S2, ... minus one); those of pyramids, which they lack, follow VTK.
static TET4_FACES: [Face; 4] = [
    face(Tri3, &[0, 2, 1]),
    face(Tri3, &[0, 1, 3]),
    face(Tri3, &[1, 2, 3]),
    face(Tri3, &[0, 3, 2]),
];
static TET10_FACES: [Face; 4] = [
    face(Tri6, &[0, 2, 1, 6, 5, 4]),
    face(Tri6, &[0, 1, 3, 4, 8, 7]),
    face(Tri6, &[1, 2, 3, 5, 9, 8]),
    face(Tri6, &[0, 3, 2, 7, 9, 6]),
];
static PYRAMID5_FACES: [Face; 5] = [
    face(Quad4, &[0, 3, 2, 1]),
    face(Tri3, &[0, 1, 4]),
    face(Tri3, &[1, 2, 4]),
    face(Tri3, &[2, 3, 4]),
    face(Tri3, &[3, 0, 4]),
];
static PYRAMID13_FACES: [Face; 5] = [
    face(Quad8, &[0, 3, 2, 1, 8, 7, 6, 5]),
    face(Tri6, &[0, 1, 4, 5, 10, 9]),
    face(Tri6, &[1, 2, 4, 6, 11, 10]),
    face(Tri6, &[2, 3, 4, 7, 12, 11]),
    face(Tri6, &[3, 0, 4, 8, 9, 12]),
];
static WEDGE6_FACES: [Face; 5] = [
    face(Tri3, &[0, 2, 1]),
    face(Tri3, &[3, 4, 5]),
    face(Quad4, &[0, 1, 4, 3]),
    face(Quad4, &[1, 2, 5, 4]),
    face(Quad4, &[0, 3, 5, 2]),
];
static WEDGE15_FACES: [Face; 5] = [
    face(Tri6, &[0, 2, 1, 8, 7, 6]),
    face(Tri6, &[3, 4, 5, 9, 10, 11]),
    face(Quad8, &[0, 1, 4, 3, 6, 13, 9, 12]),
    face(Quad8, &[1, 2, 5, 4, 7, 14, 10, 13]),
    face(Quad8, &[0, 3, 5, 2, 12, 11, 14, 8]),
];
static HEX8_FACES: [Face; 6] = [
    face(Quad4, &[0, 3, 2, 1]),
    face(Quad4, &[4, 5, 6, 7]),
    face(Quad4, &[0, 1, 5, 4]),
    face(Quad4, &[1, 2, 6, 5]),
    face(Quad4, &[2, 3, 7, 6]),
    face(Quad4, &[0, 4, 7, 3]),
];
static HEX20_FACES: [Face; 6] = [
    face(Quad8, &[0, 3, 2, 1, 11, 10, 9, 8]),
    face(Quad8, &[4, 5, 6, 7, 12, 13, 14, 15]),
    face(Quad8, &[0, 1, 5, 4, 8, 17, 12, 16]),
    face(Quad8, &[1, 2, 6, 5, 9, 18, 13, 17]),
    face(Quad8, &[2, 3, 7, 6, 10, 19, 14, 18]),
    face(Quad8, &[0, 4, 7, 3, 16, 15, 19, 11]),
];
static HEX27_FACES: [Face; 6] = [
    face(Quad9, &[0, 3, 2, 1, 11, 10, 9, 8, 24]),
    face(Quad9, &[4, 5, 6, 7, 12, 13, 14, 15, 25]),
    face(Quad9, &[0, 1, 5, 4, 8, 17, 12, 16, 22]),
    face(Quad9, &[1, 2, 6, 5, 9, 18, 13, 17, 21]),
    face(Quad9, &[2, 3, 7, 6, 10, 19, 14, 18, 23]),
    face(Quad9, &[0, 4, 7, 3, 16, 15, 19, 11, 20]),
];

static TRI_EDGES: [[u8; 2]; 3] = [[0, 1], [1, 2], [2, 0]];
static QUAD_EDGES: [[u8; 2]; 4] = [[0, 1], [1, 2], [2, 3], [3, 0]];
static TET_EDGES: [[u8; 2]; 6] = [[0, 1], [1, 2], [0, 2], [0, 3], [1, 3], [2, 3]];
static PYRAMID_EDGES: [[u8; 2]; 8] = [
    [0, 1],
    [1, 2],
    [2, 3],
    [3, 0],
    [0, 4],
    [1, 4],
    [2, 4],
    [3, 4],
];
static WEDGE_EDGES: [[u8; 2]; 9] = [
    [0, 1],
    [1, 2],
    [2, 0],
    [3, 4],
    [4, 5],
    [5, 3],
    [0, 3],
    [1, 4],
    [2, 5],
];
static HEX_EDGES: [[u8; 2]; 12] = [
    [0, 1],
    [1, 2],
    [2, 3],
    [3, 0],
    [4, 5],
    [5, 6],
    [6, 7],
    [7, 4],
    [0, 4],
    [1, 5],
    [2, 6],
    [3, 7],
];

impl CellType {
    /// Every cell type that fills a volume.
    pub const SOLIDS: [CellType; 9] = [
        Tet4, Tet10, Pyramid5, Pyramid13, Wedge6, Wedge15, Hex8, Hex20, Hex27,
    ];

    /// Number of nodes.
    pub const fn n_nodes(self) -> usize {
        match self {
            Tri3 => 3,
            Tri6 => 6,
            Quad4 => 4,
            Quad8 => 8,
            Quad9 => 9,
            Tet4 => 4,
            Tet10 => 10,
            Pyramid5 => 5,
            Pyramid13 => 13,
            Wedge6 => 6,
            Wedge15 => 15,
            Hex8 => 8,
            Hex20 => 20,
            Hex27 => 27,
        }
    }

    /// Number of corner nodes; they come first in the node order.
    pub const fn n_corners(self) -> usize {
        match self {
            Tri3 | Tri6 => 3,
            Quad4 | Quad8 | Quad9 | Tet4 | Tet10 => 4,
            Pyramid5 | Pyramid13 => 5,
            Wedge6 | Wedge15 => 6,
            Hex8 | Hex20 | Hex27 => 8,
        }
    }

    /// Dimension of the shape: 2 or 3.
    pub const fn dimension(self) -> usize {
        match self {
            Tri3 | Tri6 | Quad4 | Quad8 | Quad9 => 2,
            _ => 3,
        }
    }

    /// Polynomial order of the interpolation: 1 or 2.
    pub const fn order(self) -> usize {
        match self {
            Tri3 | Quad4 | Tet4 | Pyramid5 | Wedge6 | Hex8 => 1,
            _ => 2,
        }
    }

    /// Faces of a solid, numbered as in Abaqus (S1 is face 0), of pyramids as in VTK (the base first); empty for a
    /// facet.
    pub fn faces(self) -> &'static [Face] {
        match self {
            Tet4 => &TET4_FACES,
            Tet10 => &TET10_FACES,
            Pyramid5 => &PYRAMID5_FACES,
            Pyramid13 => &PYRAMID13_FACES,
            Wedge6 => &WEDGE6_FACES,
            Wedge15 => &WEDGE15_FACES,
            Hex8 => &HEX8_FACES,
            Hex20 => &HEX20_FACES,
            Hex27 => &HEX27_FACES,
            Tri3 | Tri6 | Quad4 | Quad8 | Quad9 => &[],
        }
    }

    /// Edges as pairs of corner nodes; in a second-order type edge `k` carries node `n_corners() + k`.
    pub fn edges(self) -> &'static [[u8; 2]] {
        match self {
            Tri3 | Tri6 => &TRI_EDGES,
            Quad4 | Quad8 | Quad9 => &QUAD_EDGES,
            Tet4 | Tet10 => &TET_EDGES,
            Pyramid5 | Pyramid13 => &PYRAMID_EDGES,
            Wedge6 | Wedge15 => &WEDGE_EDGES,
            Hex8 | Hex20 | Hex27 => &HEX_EDGES,
        }
    }

    /// The nodes that lie neither at a corner nor on an edge, by number from `n_corners() + edges().len()` on: the
    /// corners whose mean is their place in the cell with straight edges.
    pub fn inner_nodes(self) -> &'static [&'static [u8]] {
        match self {
            Quad9 => &[&[0, 1, 2, 3]],
            Hex27 => &[
                &[0, 4, 7, 3],
                &[1, 2, 6, 5],
                &[0, 1, 5, 4],
                &[2, 3, 7, 6],
                &[0, 3, 2, 1],
                &[4, 5, 6, 7],
                &[0, 1, 2, 3, 4, 5, 6, 7],
            ],
            _ => &[],
        }
    }

    /// VTK's cell type number.
    pub const fn vtk_id(self) -> u8 {
        match self {
            Tri3 => 5,
            Quad4 => 9,
            Tet4 => 10,
            Hex8 => 12,
            Wedge6 => 13,
            Pyramid5 => 14,
            Tri6 => 22,
            Quad8 => 23,
            Tet10 => 24,
            Hex20 => 25,
            Wedge15 => 26,
            Pyramid13 => 27,
            Quad9 => 28,
            Hex27 => 29,
        }
    }

    /// The name used in case files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Tri3 => "tri3",
            Tri6 => "tri6",
            Quad4 => "quad4",
            Quad8 => "quad8",
            Quad9 => "quad9",
            Tet4 => "tet4",
            Tet10 => "tet10",
            Pyramid5 => "pyramid5",
            Pyramid13 => "pyramid13",
            Wedge6 => "wedge6",
            Wedge15 => "wedge15",
            Hex8 => "hex8",
            Hex20 => "hex20",
            Hex27 => "hex27",
        }
    }

    /// The type of that name, if there is one.
    pub fn from_name(name: &str) -> Option<CellType> {
        ALL.into_iter().find(|t| t.name() == name)
    }

    /// The type with that discriminant (`cell_type as u8`), if there is one.
    pub fn from_index(index: u8) -> Option<CellType> {
        ALL.get(usize::from(index)).copied()
    }
}

impl std::fmt::Display for CellType {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::CellType;

    #[test]
    fn mid_nodes_of_faces_stand_on_the_edges_of_the_cell() {
        for cell_type in CellType::SOLIDS {
            for face in cell_type.faces() {
                assert_eq!(face.nodes.len(), face.cell_type.n_nodes());
                for (k, edge) in face.cell_type.edges().iter().enumerate() {
                    let [a, b] = edge.map(|i| face.nodes[usize::from(i)]);
                    let edge_of_cell = cell_type
                        .edges()
                        .iter()
                        .position(|&[c, d]| (c, d) == (a, b) || (d, c) == (a, b));
                    let edge_of_cell =
                        edge_of_cell.expect("an edge of a face is an edge of its cell");
                    if cell_type.order() == 2 {
                        let mid = face.nodes[face.cell_type.n_corners() + k];
                        assert_eq!(usize::from(mid), cell_type.n_corners() + edge_of_cell);
                    }
                }
            }
        }
    }

    #[test]
    fn every_edge_is_shared_by_two_faces_with_opposite_sense() {
        for cell_type in CellType::SOLIDS {
            for &[a, b] in cell_type.edges() {
                let mut directions = Vec::new();
                for face in cell_type.faces() {
                    for edge in face.cell_type.edges() {
                        let [c, d] = edge.map(|i| face.nodes[usize::from(i)]);
                        if (c, d) == (a, b) {
                            directions.push(1);
                        } else if (d, c) == (a, b) {
                            directions.push(-1);
                        }
                    }
                }
                directions.sort_unstable();
                assert_eq!(directions, [-1, 1], "{cell_type} edge {a}-{b}");
            }
        }
    }

    #[test]
    fn names_and_indices_lead_back() {
        for index in 0..14 {
            let cell_type = CellType::from_index(index).unwrap();
            assert_eq!(cell_type as u8, index);
            assert_eq!(CellType::from_name(cell_type.name()), Some(cell_type));
        }
        assert_eq!(CellType::from_index(14), None);
    }

    #[test]
    fn every_node_is_a_corner_on_an_edge_or_inside_and_faces_share_their_middle() {
        for cell_type in (0..14).filter_map(CellType::from_index) {
            let on_edges = if cell_type.order() == 2 {
                cell_type.edges().len()
            } else {
                0
            };
            let inner = cell_type.inner_nodes();
            let first_inner = cell_type.n_corners() + on_edges;
            assert_eq!(
                first_inner + inner.len(),
                cell_type.n_nodes(),
                "{cell_type}"
            );
            for face in cell_type.faces().iter().filter(|f| f.nodes.len() == 9) {
                let around = inner[usize::from(face.nodes[8]) - first_inner];
                let sorted = |nodes: &[u8]| {
                    let mut nodes = nodes.to_vec();
                    nodes.sort_unstable();
                    nodes
                };
                assert_eq!(sorted(around), sorted(&face.nodes[..4]));
            }
        }
    }
}
