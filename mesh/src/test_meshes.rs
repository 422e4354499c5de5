//! Small meshes and measures that the tests of this crate share.
//!
//! Invariant: compiled for tests only.

use crate::generate::{BoxMesh, generate_slice};
use crate::{CellFace, CellType, Cells, Comm, Mesh};

/// A whole box of `cells` bricks of unit size.
pub(crate) fn unit_bricks(cell_type: CellType, cells: [usize; 3]) -> BoxMesh {
    let size = cells.map(|n| n as f64);
    BoxMesh {
        size,
        cells,
        cell_type,
        origin: [0.0; 3],
    }
}

/// The box of [`unit_bricks`] of hexahedra, with every second column along z cut into wedges.
pub(crate) fn mixed_box(cells: [usize; 3]) -> Mesh {
    let spec = unit_bricks(CellType::Hex8, cells);
    let mut mesh = generate_slice(&spec, &Comm::alone(), None).unwrap();
    let hexes = std::mem::take(&mut mesh.cells);
    let mut mixed = Cells::default();
    for hex in 0..hexes.len() {
        let n = hexes.nodes_of(hex);
        let column = hex % cells[0] + hex / cells[0] % cells[1];
        if column.is_multiple_of(2) {
            mixed.push(CellType::Hex8, n);
        } else {
            mixed.push(CellType::Wedge6, &[n[0], n[1], n[2], n[4], n[5], n[6]]);
            mixed.push(CellType::Wedge6, &[n[0], n[2], n[3], n[4], n[6], n[7]]);
        }
    }
    mesh.cells = mixed;
    // Numbers with gaps, as real files have them.
    mesh.cell_ids = (0..mesh.n_cells() as u64).map(|c| 7 * c + 3).collect();
    mesh.sets.faces.clear();
    mesh.sets
        .cells
        .insert("all".to_owned(), (0..mesh.n_cells() as u32).collect());
    mesh
}

/// Two boxes of tetrahedra far from each other.
pub(crate) fn two_bodies() -> Mesh {
    let spec = unit_bricks(CellType::Tet4, [2, 2, 1]);
    let mut mesh = generate_slice(&spec, &Comm::alone(), None).unwrap();
    let other = mesh.clone();
    let (n_nodes, n_cells) = (other.n_nodes() as u32, other.n_cells() as u32);
    mesh.coords
        .extend(other.coords.iter().map(|x| [x[0] + 100.0, x[1], x[2]]));
    mesh.node_ids
        .extend(other.node_ids.iter().map(|id| id + 1000));
    mesh.cell_ids
        .extend(other.cell_ids.iter().map(|id| id + 1000));
    for cell in 0..other.n_cells() {
        let nodes: Vec<u32> = other
            .cells
            .nodes_of(cell)
            .iter()
            .map(|n| n + n_nodes)
            .collect();
        mesh.cells.push(other.cells.types[cell], &nodes);
    }
    for (name, faces) in &other.sets.faces {
        let moved = faces.iter().map(|f| crate::CellFace {
            cell: f.cell + n_cells,
            ..*f
        });
        mesh.sets
            .faces
            .entry(name.clone())
            .or_default()
            .extend(moved);
    }
    mesh.sets
        .cells
        .insert("all".to_owned(), (0..2 * n_cells).collect());
    mesh
}

/// The mesh with a node set, a cell set and a face set more, each of every third member, and an empty one.
pub(crate) fn with_sets(mut mesh: Mesh) -> Mesh {
    let third = |n: usize| (0..n as u32).step_by(3).collect::<Vec<u32>>();
    let cells = third(mesh.n_cells());
    let faces = cells.iter().map(|&cell| CellFace {
        cell,
        face: (cell % 4) as u8,
    });
    mesh.sets.faces.insert("some".to_owned(), faces.collect());
    mesh.sets.cells.insert("some".to_owned(), cells);
    mesh.sets
        .nodes
        .insert("some".to_owned(), third(mesh.n_nodes()));
    mesh.sets.nodes.insert("none".to_owned(), Vec::new());
    mesh
}

/// Volume of a cell with straight edges and plane faces.
pub(crate) fn cell_volume(mesh: &Mesh, cell: usize) -> f64 {
    volume(&mesh.cells, cell, &mesh.coords)
}

/// Volume of a cell of `cells` by the divergence theorem over its plane faces.
pub(crate) fn volume(cells: &Cells, cell: usize, coords: &[[f64; 3]]) -> f64 {
    let mut volume = 0.0;
    for face in cells.types[cell].faces() {
        let nodes = cells.nodes_of(cell);
        let corners: Vec<[f64; 3]> = (face.nodes[..face.cell_type.n_corners()].iter())
            .map(|&i| coords[nodes[usize::from(i)] as usize])
            .collect();
        for pair in corners[1..].windows(2) {
            volume += determinant(corners[0], pair[0], pair[1]) / 6.0;
        }
    }
    volume
}

fn determinant(a: [f64; 3], b: [f64; 3], c: [f64; 3]) -> f64 {
    a[0] * (b[1] * c[2] - b[2] * c[1])
        + a[1] * (b[2] * c[0] - b[0] * c[2])
        + a[2] * (b[0] * c[1] - b[1] * c[0])
}
