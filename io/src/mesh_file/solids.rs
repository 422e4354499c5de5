//! Solid types as files know them, and the ways from the node orders of the formats to ours.
//!
//! An order says which node of the file is our node 0, 1, ...
//!
//! Invariant: tables only; each is checked against the edges of our types.

use fem_mesh::CellType;

/// A solid type by our name for it, whether this program computes with it or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Solid {
    pub(super) name: &'static str,
    pub(super) n_nodes: usize,
}

impl Solid {
    /// Our type, if we have it.
    pub(super) fn cell_type(self) -> Option<CellType> {
        CellType::from_name(self.name)
    }
}

const fn solid(name: &'static str, n_nodes: usize) -> Solid {
    Solid { name, n_nodes }
}

pub(super) const TET4: Solid = solid("tet4", 4);
pub(super) const TET10: Solid = solid("tet10", 10);
pub(super) const PYRAMID5: Solid = solid("pyramid5", 5);
pub(super) const PYRAMID13: Solid = solid("pyramid13", 13);
pub(super) const WEDGE6: Solid = solid("wedge6", 6);
pub(super) const WEDGE15: Solid = solid("wedge15", 15);
pub(super) const HEX8: Solid = solid("hex8", 8);
pub(super) const HEX20: Solid = solid("hex20", 20);
pub(super) const HEX27: Solid = solid("hex27", 27);

/// Most nodes of a solid of any format.
pub(super) const MOST_NODES: usize = 27;

/// A node order: entry `k` is the node of the file that is our node `k`.
pub(super) type Order = &'static [u8];

/// The order of VTK, and ours.
pub(super) const IN_ORDER: [u8; MOST_NODES] = {
    let mut order = [0; MOST_NODES];
    let mut k = 0;
    while k < MOST_NODES {
        order[k] = k as u8;
        k += 1;
    }
    order
};

/// Nastran and Exodus: the middles of the upright edges come before those of the top.
pub(super) const UPRIGHT_FIRST_HEX20: [u8; 20] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 12, 13, 14, 15,
];
/// As for the hexahedron.
pub(super) const UPRIGHT_FIRST_WEDGE15: [u8; 15] =
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 9, 10, 11];
/// Exodus: the middle of the cell, then of the faces bottom top left right front back.
pub(super) const EXODUS_HEX27: [u8; 27] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 12, 13, 14, 15, 23, 24, 25, 26, 21, 22,
    20,
];
/// MED, but for its being mirrored: the middles of the faces bottom front right back left top, then of the cell.
pub(super) const MED_HEX27: [u8; 27] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 24, 22, 21, 23, 20, 25,
    26,
];
/// I-DEAS goes around: corners and middles of the bottom in turn, the upright middles, the top like the bottom.
pub(super) const AROUND_TET10: [u8; 10] = [0, 2, 4, 9, 1, 3, 5, 6, 7, 8];
/// As for the tetrahedron.
pub(super) const AROUND_WEDGE15: [u8; 15] = [0, 2, 4, 9, 11, 13, 1, 3, 5, 10, 12, 14, 6, 7, 8];
/// As for the tetrahedron.
pub(super) const AROUND_HEX20: [u8; 20] = [
    0, 2, 4, 6, 12, 14, 16, 18, 1, 3, 5, 7, 13, 15, 17, 19, 8, 9, 10, 11,
];

#[cfg(test)]
mod tests {
    use super::{
        AROUND_HEX20, AROUND_TET10, AROUND_WEDGE15, EXODUS_HEX27, UPRIGHT_FIRST_HEX20,
        UPRIGHT_FIRST_WEDGE15,
    };

    /// Edges of a hexahedron and a wedge in our order, by corner.
    const HEX: [[u8; 2]; 12] = [
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
    const WEDGE: [[u8; 2]; 9] = [
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
    const TET: [[u8; 2]; 6] = [[0, 1], [1, 2], [0, 2], [0, 3], [1, 3], [2, 3]];

    /// `file` names each node of the file as the manual of the format does: a corner, or two corners of an edge.
    fn check(order: &[u8], edges: &[[u8; 2]], file: &str) {
        let nodes: Vec<Vec<u8>> = (file.split(' '))
            .map(|n| n.bytes().map(|c| c - b'1').collect())
            .collect();
        let n_corners = nodes.iter().filter(|n| n.len() == 1).count();
        for (k, &from) in order.iter().enumerate().take(n_corners + edges.len()) {
            let mut named = nodes[usize::from(from)].clone();
            named.sort_unstable();
            let mut wanted = match k.checked_sub(n_corners) {
                None => vec![k as u8],
                Some(edge) => edges[edge].to_vec(),
            };
            wanted.sort_unstable();
            assert_eq!(named, wanted, "our node {k}");
        }
    }

    #[test]
    fn orders_follow_the_manuals() {
        check(
            &UPRIGHT_FIRST_HEX20,
            &HEX,
            "1 2 3 4 5 6 7 8 12 23 34 41 15 26 37 48 56 67 78 85",
        );
        check(
            &EXODUS_HEX27[..20],
            &HEX,
            "1 2 3 4 5 6 7 8 12 23 34 41 15 26 37 48 56 67 78 85",
        );
        check(
            &UPRIGHT_FIRST_WEDGE15,
            &WEDGE,
            "1 2 3 4 5 6 12 23 31 14 25 36 45 56 64",
        );
        check(&AROUND_TET10, &TET, "1 12 2 23 3 31 14 24 34 4");
        check(
            &AROUND_WEDGE15,
            &WEDGE,
            "1 12 2 23 3 31 14 25 36 4 45 5 56 6 64",
        );
        check(
            &AROUND_HEX20,
            &HEX,
            "1 12 2 23 3 34 4 41 15 26 37 48 5 56 6 67 7 78 8 85",
        );
        for mut all in [EXODUS_HEX27, super::MED_HEX27] {
            all.sort_unstable();
            assert_eq!(all, super::IN_ORDER);
        }
    }
}
