//! Solids that a file gives inside out: their nodes are put in the order of their mirror image.
//!
//! Programs of other conventions write such elements: their volume comes out negative. One whose Jacobian changes sign as
//! well is broken in either order; the assembly names it.
//!
//! Invariant: changes the order of nodes within cells and the numbers of their faces in the sets, nothing else.

use crate::mesh_info::jacobian::Jacobians;
use fem_mesh::cell_type::Face;
use fem_mesh::{CellType, Mesh};

/// For each node of a cell that of its mirror image which takes its place: the image of the cell in a plane is the same
/// cell with its nodes in this order. It is its own inverse.
pub(super) fn mirrored_order(cell_type: CellType) -> Vec<u8> {
    let mut order: Vec<u8> = match cell_type.n_corners() {
        4 => vec![0, 2, 1, 3],
        5 => vec![0, 3, 2, 1, 4],
        6 => vec![0, 2, 1, 3, 5, 4],
        _ => vec![0, 3, 2, 1, 4, 7, 6, 5],
    };
    if cell_type.order() == 2 {
        let corners = order.clone();
        let edges = cell_type.edges();
        for edge in edges {
            let [a, b] = edge.map(|k| corners[usize::from(k)]);
            let image = edges.iter().position(|&e| e == [a, b] || e == [b, a]);
            order.push((corners.len() + image.unwrap_or_default()) as u8);
        }
    }
    if cell_type.n_nodes() == 27 {
        // Swapping corners 1 and 3 swaps x and y; faces come as -x +x -y +y -z +z, then the middle.
        order.extend([22, 23, 20, 21, 24, 25, 26]);
    }
    order
}

/// Number that each face has after [`mirrored_order`].
fn mirrored_faces(cell_type: CellType) -> Vec<u8> {
    let order = mirrored_order(cell_type);
    let corners = |face: &Face, order: &[u8]| {
        let n = face.cell_type.n_corners();
        let mut corners: Vec<u8> = (face.nodes[..n].iter())
            .map(|&k| order[usize::from(k)])
            .collect();
        corners.sort_unstable();
        corners
    };
    let in_place: Vec<u8> = (0..cell_type.n_nodes() as u8).collect();
    let faces = cell_type.faces();
    (faces.iter())
        .map(|face| {
            let wanted = corners(face, &order);
            let found = faces.iter().position(|f| corners(f, &in_place) == wanted);
            found.unwrap_or_default() as u8
        })
        .collect()
}

/// Turns the cells that are inside out; their indices, ascending.
pub(super) fn turn_mirrored(mesh: &mut Mesh) -> Vec<u32> {
    struct Tables {
        jacobians: Jacobians,
        order: Vec<u8>,
        faces: Vec<u8>,
    }
    // By the number of the type: looked up once a cell.
    let mut by_type: Vec<Option<Tables>> = Vec::new();
    for &cell_type in &mesh.cells.types {
        let number = cell_type as usize;
        if by_type.len() <= number {
            by_type.resize_with(number + 1, || None);
        }
        by_type[number].get_or_insert_with(|| Tables {
            jacobians: Jacobians::new(cell_type),
            order: mirrored_order(cell_type),
            faces: mirrored_faces(cell_type),
        });
    }
    let mut turned = Vec::new();
    let mut coords = Vec::with_capacity(27);
    let mut before = Vec::with_capacity(27);
    for cell in 0..mesh.n_cells() {
        let Some(tables) = &by_type[mesh.cells.types[cell] as usize] else {
            continue;
        };
        let nodes = mesh.cells.offsets[cell] as usize..mesh.cells.offsets[cell + 1] as usize;
        let nodes = &mut mesh.cells.nodes[nodes];
        coords.clear();
        coords.extend(nodes.iter().map(|&node| mesh.coords[node as usize]));
        if tables.jacobians.determinants(&coords).sum < 0.0 {
            before.clear();
            before.extend_from_slice(nodes);
            for (node, &k) in nodes.iter_mut().zip(&tables.order) {
                *node = before[usize::from(k)];
            }
            turned.push(cell as u32);
        }
    }
    if !turned.is_empty() {
        let types = &mesh.cells.types;
        for faces in mesh.sets.faces.values_mut() {
            for at in &mut *faces {
                let tables = by_type[types[at.cell as usize] as usize].as_ref();
                if let Some(tables) = tables.filter(|_| turned.binary_search(&at.cell).is_ok()) {
                    at.face = tables.faces[usize::from(at.face)];
                }
            }
            faces.sort_unstable();
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::curved;
    use super::{mirrored_faces, mirrored_order, turn_mirrored};
    use crate::mesh_info::jacobian::Jacobians;
    use fem_mesh::{CellFace, CellType, Mesh};

    #[test]
    fn the_order_is_its_own_inverse_and_turns_every_type() {
        for cell_type in CellType::SOLIDS {
            let order = mirrored_order(cell_type);
            let twice: Vec<u8> = order.iter().map(|&k| order[usize::from(k)]).collect();
            let in_place: Vec<u8> = (0..cell_type.n_nodes() as u8).collect();
            assert_eq!(twice, in_place, "{cell_type}");
            let mut faces = mirrored_faces(cell_type);
            faces.sort_unstable();
            let all: Vec<u8> = (0..cell_type.faces().len() as u8).collect();
            assert_eq!(faces, all, "{cell_type}");
        }
    }

    #[test]
    fn a_curved_mirror_image_becomes_sound_and_its_faces_keep_their_nodes() {
        for cell_type in CellType::SOLIDS {
            let tables = Jacobians::new(cell_type);
            let sound = tables.determinants(&curved(cell_type, false).coords);
            assert!(sound.lowest > 0.0, "{cell_type} {sound:?}");
            assert!(turn_mirrored(&mut curved(cell_type, false)).is_empty());

            let mut mesh = curved(cell_type, true);
            let n_faces = cell_type.faces().len() as u8;
            for face in 0..n_faces {
                let at = CellFace { cell: 0, face };
                mesh.sets.faces.insert(face.to_string(), vec![at]);
            }
            let before = mesh.clone();
            assert_eq!(turn_mirrored(&mut mesh), [0], "{cell_type}");
            let coords: Vec<[f64; 3]> = (mesh.cells.nodes_of(0).iter())
                .map(|&k| mesh.coords[k as usize])
                .collect();
            let turned = tables.determinants(&coords);
            assert!(turned.lowest > 0.0, "{cell_type}");
            assert!((turned.sum - sound.sum).abs() < 1e-12, "{cell_type}");
            for face in 0..n_faces {
                let nodes_of = |mesh: &Mesh| {
                    let at = mesh.sets.faces[&face.to_string()][0];
                    let mut nodes: Vec<u32> = mesh.cells.nodes_of_face(at).1.collect();
                    nodes.sort_unstable();
                    nodes
                };
                assert_eq!(nodes_of(&mesh), nodes_of(&before), "{cell_type} {face}");
            }
        }
    }
}
