//! Facets and the cell faces that carry them.
//!
//! In: solid cells, and facets (triangles, quadrilaterals) by node indices, as mesh files list them beside the
//! solids. Out: for each facet the [`CellFace`] it lies on. Facets match faces by their corner nodes, whatever the
//! rotation, the sense, and the order of interpolation.
//!
//! Invariant: looks at node indices only, never at coordinates.

use crate::{CellFace, Cells};
use std::collections::HashMap;

/// Corner nodes in ascending order; a triangle has `u32::MAX` in the last place. Equal for two faces exactly if they
/// have the same shape and the same corners.
pub type FaceKey = [u32; 4];

/// Where facets lie, from [`match_facets`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FacetMatches {
    /// The face that carries each facet, by facet. Between two cells it is the face of the cell of lower index.
    pub faces: Vec<Option<CellFace>>,
    /// Facets on no face of any cell, ascending.
    pub without_cell: Vec<u32>,
    /// Facets that lie between two (or, in a broken mesh, more) cells, ascending.
    pub between_cells: Vec<u32>,
}

/// Key of the corners of a facet or face, of which at most the first four nodes are corners.
fn key_of(corners: impl Iterator<Item = u32>) -> FaceKey {
    let mut key = [u32::MAX; 4];
    for (slot, node) in key.iter_mut().zip(corners) {
        *slot = node;
    }
    sort_four(key)
}

/// The four in ascending order, by a network of five comparisons.
fn sort_four(key: FaceKey) -> FaceKey {
    let order = |x: u32, y: u32| (x.min(y), x.max(y));
    let [a, b, c, d] = key;
    let ((a, b), (c, d)) = (order(a, b), order(c, d));
    let ((a, c), (b, d)) = (order(a, c), order(b, d));
    let (b, c) = order(b, c);
    [a, b, c, d]
}

/// Key of a face of a cell.
pub fn face_key(cells: &Cells, at: CellFace) -> FaceKey {
    let (face_type, nodes) = cells.nodes_of_face(at);
    key_of(nodes.take(face_type.n_corners()))
}

/// All faces of one cell.
pub(crate) fn faces_of(cells: &Cells, cell: usize) -> impl Iterator<Item = CellFace> {
    let n_faces = cells.types[cell].faces().len() as u8;
    (0..n_faces).map(move |face| CellFace {
        cell: cell as u32,
        face,
    })
}

/// The cell face under each of `facets` (cells of dimension 2 that index the same nodes as `cells`).
///
/// Facets may repeat. A linear facet matches the face of a second-order cell with the same corners and vice versa.
pub fn match_facets(cells: &Cells, facets: &Cells) -> FacetMatches {
    let keys: Vec<FaceKey> = (0..facets.len())
        .map(|f| {
            let corners = facets.nodes_of(f).iter().copied();
            key_of(corners.take(facets.types[f].n_corners()))
        })
        .collect();
    let carriers = find_carriers(cells, &keys);

    let mut matches = FacetMatches::default();
    for (facet, key) in keys.iter().enumerate() {
        let (face, n_cells) = carriers[key];
        match n_cells {
            0 => matches.without_cell.push(facet as u32),
            1 => {}
            _ => matches.between_cells.push(facet as u32),
        }
        matches.faces.push(face);
    }
    matches
}

/// For each key the first face with it, in cell order, and how many cells have one.
fn find_carriers(cells: &Cells, keys: &[FaceKey]) -> HashMap<FaceKey, (Option<CellFace>, u32)> {
    let mut carriers: HashMap<FaceKey, (Option<CellFace>, u32)> =
        keys.iter().map(|&key| (key, (None, 0))).collect();

    // Most faces lie inside the mesh: a look at one corner spares them the hash.
    let largest = keys.iter().map(|key| key[0]).max();
    let mut is_lowest_corner = vec![false; largest.map_or(0, |n| n as usize + 1)];
    for key in keys {
        is_lowest_corner[key[0] as usize] = true;
    }
    for at in (0..cells.len()).flat_map(|cell| faces_of(cells, cell)) {
        let key = face_key(cells, at);
        if is_lowest_corner.get(key[0] as usize) != Some(&true) {
            continue;
        }
        if let Some((first, n_cells)) = carriers.get_mut(&key) {
            first.get_or_insert(at);
            *n_cells += 1;
        }
    }
    carriers
}

#[cfg(test)]
mod tests {
    use super::match_facets;
    use crate::{CellFace, CellType, Cells};

    /// A hex8 and, on its face x = 1 (nodes 1 2 6 5), a wedge6 with corners 8 and 9 beyond.
    fn hex_and_wedge() -> Cells {
        let mut cells = Cells::default();
        cells.push(CellType::Hex8, &[0, 1, 2, 3, 4, 5, 6, 7]);
        cells.push(CellType::Wedge6, &[1, 8, 2, 5, 9, 6]);
        cells
    }

    #[test]
    fn facets_match_in_any_rotation_and_sense() {
        let cells = hex_and_wedge();
        let mut facets = Cells::default();
        facets.push(CellType::Quad4, &[7, 3, 0, 4]);
        facets.push(CellType::Quad4, &[0, 3, 7, 4]);
        facets.push(CellType::Tri3, &[9, 6, 5]);
        let matches = match_facets(&cells, &facets);
        let hex_face = Some(CellFace { cell: 0, face: 5 });
        let wedge_face = Some(CellFace { cell: 1, face: 1 });
        assert_eq!(matches.faces, [hex_face, hex_face, wedge_face]);
        assert!(matches.without_cell.is_empty() && matches.between_cells.is_empty());
    }

    #[test]
    fn facets_without_cell_and_between_cells_are_told() {
        let cells = hex_and_wedge();
        let mut facets = Cells::default();
        facets.push(CellType::Tri3, &[0, 1, 2]); // half a face of the hex
        facets.push(CellType::Quad4, &[5, 6, 2, 1]);
        facets.push(CellType::Quad4, &[20, 21, 22, 23]);
        let matches = match_facets(&cells, &facets);
        let between = Some(CellFace { cell: 0, face: 3 });
        assert_eq!(matches.faces, [None, between, None]);
        assert_eq!(matches.without_cell, [0, 2]);
        assert_eq!(matches.between_cells, [1]);
    }

    #[test]
    fn second_order_facets_match_by_their_corners() {
        let mut cells = Cells::default();
        cells.push(CellType::Tet10, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let mut facets = Cells::default();
        facets.push(CellType::Tri6, &[3, 2, 1, 9, 5, 8]);
        facets.push(CellType::Tri3, &[1, 2, 3]);
        let expected = Some(CellFace { cell: 0, face: 2 });
        assert_eq!(match_facets(&cells, &facets).faces, [expected, expected]);
    }

    #[test]
    fn no_facets_and_no_cells_are_fine() {
        assert!(
            match_facets(&hex_and_wedge(), &Cells::default())
                .faces
                .is_empty()
        );
        let mut facets = Cells::default();
        facets.push(CellType::Tri3, &[0, 1, 2]);
        assert_eq!(match_facets(&Cells::default(), &facets).without_cell, [0]);
    }
}
