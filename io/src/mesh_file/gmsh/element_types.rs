//! Element types of Gmsh: numbers, sizes and, for the solids we know, the way to our node order.
//!
//! Source: Gmsh reference manual, "MSH file format" (numbers) and "Node ordering".
//!
//! Invariant: tables only.

use fem_mesh::CellType;

/// One element type of Gmsh.
#[derive(Debug)]
pub(in super::super) struct ElementType {
    pub(in super::super) number: u16,
    pub(super) name: &'static str,
    pub(super) dimension: u8,
    pub(super) n_nodes: usize,
    /// Corner nodes come first.
    pub(super) n_corners: usize,
    /// Our type, and which of Gmsh's nodes is our node 0, 1, ...
    pub(in super::super) solid: Option<(CellType, &'static [u8])>,
}

/// The most nodes that a type of the table has.
pub(super) const MOST_NODES: usize = 125;

const IN_ORDER: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
/// Gmsh's edges: 01 03 04 12 14 23 24 34.
const PYRAMID13: [u8; 13] = [0, 1, 2, 3, 4, 5, 8, 10, 6, 7, 9, 11, 12];
/// Gmsh's edges: 01 02 03 12 14 25 34 35 45.
const WEDGE15: [u8; 15] = [0, 1, 2, 3, 4, 5, 6, 9, 7, 12, 14, 13, 8, 10, 11];
/// Gmsh has the edges 0-3, 2-3, 1-3 where we have 0-3, 1-3, 2-3.
const TET10: [u8; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 9, 8];
/// Gmsh's edges: 01 03 04 12 15 23 26 37 45 47 56 67.
const HEX20: [u8; 20] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 9, 16, 18, 19, 17, 10, 12, 14, 15,
];
/// Edges as in the hexahedron of 20; faces bottom front left right back top, the middle.
const HEX27: [u8; 27] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 9, 16, 18, 19, 17, 10, 12, 14, 15, 22, 23, 21, 24, 20, 25,
    26,
];

const fn other(
    number: u16,
    name: &'static str,
    dimension: u8,
    n_nodes: usize,
    n_corners: usize,
) -> ElementType {
    ElementType {
        number,
        name,
        dimension,
        n_nodes,
        n_corners,
        solid: None,
    }
}

const fn solid(number: u16, cell_type: CellType, order: &'static [u8]) -> ElementType {
    ElementType {
        number,
        name: cell_type.name(),
        dimension: 3,
        n_nodes: cell_type.n_nodes(),
        n_corners: cell_type.n_corners(),
        solid: Some((cell_type, order)),
    }
}

static TYPES: [ElementType; 37] = [
    other(1, "line2", 1, 2, 2),
    other(2, "tri3", 2, 3, 3),
    other(3, "quad4", 2, 4, 4),
    solid(4, CellType::Tet4, IN_ORDER.first_chunk::<4>().unwrap()),
    solid(5, CellType::Hex8, &IN_ORDER),
    solid(6, CellType::Wedge6, IN_ORDER.first_chunk::<6>().unwrap()),
    solid(7, CellType::Pyramid5, IN_ORDER.first_chunk::<5>().unwrap()),
    other(8, "line3", 1, 3, 2),
    other(9, "tri6", 2, 6, 3),
    other(10, "quad9", 2, 9, 4),
    solid(11, CellType::Tet10, &TET10),
    solid(12, CellType::Hex27, &HEX27),
    other(13, "wedge18", 3, 18, 6),
    other(14, "pyramid14", 3, 14, 5),
    other(15, "point", 0, 1, 1),
    other(16, "quad8", 2, 8, 4),
    solid(17, CellType::Hex20, &HEX20),
    solid(18, CellType::Wedge15, &WEDGE15),
    solid(19, CellType::Pyramid13, &PYRAMID13),
    other(20, "tri9", 2, 9, 3),
    other(21, "tri10", 2, 10, 3),
    other(22, "tri12", 2, 12, 3),
    other(23, "tri15", 2, 15, 3),
    other(24, "tri15", 2, 15, 3),
    other(25, "tri21", 2, 21, 3),
    other(26, "line4", 1, 4, 2),
    other(27, "line5", 1, 5, 2),
    other(28, "line6", 1, 6, 2),
    other(29, "tet20", 3, 20, 4),
    other(30, "tet35", 3, 35, 4),
    other(31, "tet56", 3, 56, 4),
    other(36, "quad16", 2, 16, 4),
    other(37, "quad25", 2, 25, 4),
    other(38, "quad36", 2, 36, 4),
    other(90, "wedge40", 3, 40, 6),
    other(92, "hex64", 3, 64, 8),
    other(93, "hex125", 3, 125, 8),
];

/// The type of that number, if we know it.
pub(super) fn element_type(number: i64) -> Option<&'static ElementType> {
    let at = TYPES.binary_search_by_key(&number, |t| i64::from(t.number));
    at.ok().map(|k| &TYPES[k])
}

/// The type of Gmsh that one of our types, solid or facet, is.
pub(in super::super) fn type_of(cell_type: CellType) -> Option<&'static ElementType> {
    TYPES.iter().find(|t| t.name == cell_type.name())
}

#[cfg(test)]
mod tests {
    use super::{HEX20, HEX27, MOST_NODES, PYRAMID13, TET10, TYPES, WEDGE15, element_type};
    use fem_mesh::CellType;

    #[test]
    fn the_table_is_sorted_and_complete() {
        assert!(TYPES.is_sorted_by_key(|t| t.number));
        for kind in &TYPES {
            assert!(kind.n_nodes <= MOST_NODES);
            if let Some((cell_type, order)) = kind.solid {
                assert_eq!(order.len(), cell_type.n_nodes());
            }
        }
        assert_eq!(element_type(17).unwrap().name, "hex20");
        assert!(element_type(0).is_none() && element_type(-3).is_none());
    }

    #[test]
    fn mid_nodes_land_on_our_edges() {
        let tet = [[0, 1], [1, 2], [2, 0], [3, 0], [3, 2], [3, 1]];
        let hex = [
            [0, 1],
            [0, 3],
            [0, 4],
            [1, 2],
            [1, 5],
            [2, 3],
            [2, 6],
            [3, 7],
            [4, 5],
            [4, 7],
            [5, 6],
            [6, 7],
        ];
        let check = |cell_type: CellType, order: &[u8], edges: &[[u8; 2]]| {
            let n_corners = cell_type.n_corners();
            for (k, &[a, b]) in cell_type.edges().iter().enumerate() {
                let [c, d] = edges[usize::from(order[n_corners + k]) - n_corners];
                assert!(
                    (a, b) == (c, d) || (a, b) == (d, c),
                    "{cell_type} edge {a}-{b}"
                );
            }
        };
        check(CellType::Tet10, &TET10, &tet);
        check(CellType::Hex20, &HEX20, &hex);
        check(CellType::Hex27, &HEX27, &hex);
        let pyramid = [
            [0, 1],
            [0, 3],
            [0, 4],
            [1, 2],
            [1, 4],
            [2, 3],
            [2, 4],
            [3, 4],
        ];
        check(CellType::Pyramid13, &PYRAMID13, &pyramid);
        let wedge = [
            [0, 1],
            [0, 2],
            [0, 3],
            [1, 2],
            [1, 4],
            [2, 5],
            [3, 4],
            [3, 5],
            [4, 5],
        ];
        check(CellType::Wedge15, &WEDGE15, &wedge);
    }

    #[test]
    fn middles_of_faces_of_the_hexahedron_land_on_our_faces() {
        let faces = [
            [0, 1, 2, 3],
            [0, 1, 4, 5],
            [0, 3, 4, 7],
            [1, 2, 5, 6],
            [2, 3, 6, 7],
            [4, 5, 6, 7],
        ];
        for (k, around) in CellType::Hex27.inner_nodes().iter().enumerate().take(6) {
            let mut around = around.to_vec();
            around.sort_unstable();
            assert_eq!(around, faces[usize::from(HEX27[20 + k]) - 20]);
        }
    }
}
