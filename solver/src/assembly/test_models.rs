//! Small distributed models for tests, split without a partitioner.

use super::pattern::BlockRows;
use crate::element::Formulation;
use crate::element::test_cells::noise;
use crate::model::{Material, Model};
use fem_mesh::generate::{BoxMesh, generate_slice};
use fem_mesh::{CellFace, CellType, Cells, Comm, IndexMap, LocalMesh, Mesh};
use nalgebra::DMatrix;
use std::collections::BTreeMap;

/// Young's modulus of [`model`], Pa.
pub(crate) const YOUNG: f64 = 200.0;
/// Its Poisson's ratio.
pub(crate) const POISSON: f64 = 0.3;
/// Its coefficient of thermal expansion, 1/K.
pub(crate) const EXPANSION: f64 = 1e-3;

/// A box of 1.5 x 1 x 2 with inner nodes moved; mid-side nodes stay halfway between their corners unless `curved`.
pub(crate) fn distorted_box(cell_type: CellType, cells: [usize; 3], curved: bool) -> Mesh {
    let size = [1.5, 1.0, 2.0];
    let spec = BoxMesh {
        size,
        cells,
        cell_type,
        origin: [0.0; 3],
    };
    let mut mesh = generate_slice(&spec, &Comm::alone(), None).unwrap();
    for (node, x) in mesh.coords.iter_mut().enumerate() {
        for i in 0..3 {
            let spacing = size[i] / cells[i] as f64;
            let inside = x[i] > 1e-9 && x[i] < size[i] - 1e-9;
            if inside {
                x[i] += if curved { 0.03 } else { 0.12 } * spacing * noise((3 * node + i) as u64);
            }
        }
    }
    if !curved {
        straighten(&mut mesh);
    }
    mesh
}

/// Puts mid-side nodes halfway between their corners.
fn straighten(mesh: &mut Mesh) {
    for cell in 0..mesh.n_cells() {
        let cell_type = mesh.cells.types[cell];
        let nodes = mesh.cells.nodes_of(cell);
        for (k, edge) in cell_type
            .edges()
            .iter()
            .enumerate()
            .filter(|_| cell_type.order() == 2)
        {
            let [a, b] = edge.map(|i| mesh.coords[nodes[usize::from(i)] as usize]);
            mesh.coords[nodes[cell_type.n_corners() + k] as usize] =
                [0, 1, 2].map(|i| 0.5 * (a[i] + b[i]));
        }
        let first_inner = cell_type.n_nodes() - cell_type.inner_nodes().len();
        for (&node, around) in nodes[first_inner..].iter().zip(cell_type.inner_nodes()) {
            let mean = |i: usize| {
                let places = around
                    .iter()
                    .map(|&k| mesh.coords[nodes[usize::from(k)] as usize][i]);
                places.sum::<f64>() / around.len() as f64
            };
            mesh.coords[node as usize] = [0, 1, 2].map(mean);
        }
    }
}

/// Hexahedra, wedges and tetrahedra side by side; element numbers with gaps.
pub(crate) fn mixed_mesh() -> Mesh {
    let mut mesh = distorted_box(CellType::Hex8, [4, 3, 3], false);
    let hexes = std::mem::take(&mut mesh.cells);
    let mut mixed = Cells::default();
    for hex in 0..hexes.len() {
        let n = hexes.nodes_of(hex);
        match hex % 3 {
            0 => {
                mixed.push(CellType::Wedge6, &[n[0], n[1], n[2], n[4], n[5], n[6]]);
                mixed.push(CellType::Wedge6, &[n[0], n[2], n[3], n[4], n[6], n[7]]);
            }
            1 => {
                for t in [
                    [0, 1, 2, 6],
                    [0, 2, 3, 6],
                    [0, 3, 7, 6],
                    [0, 7, 4, 6],
                    [0, 4, 5, 6],
                    [0, 5, 1, 6],
                ] {
                    mixed.push(CellType::Tet4, &t.map(|i: usize| n[i]));
                }
            }
            _ => mixed.push(CellType::Hex8, n),
        }
    }
    mesh.cells = mixed;
    mesh.cell_ids = (0..mesh.n_cells() as u64).map(|c| 7 * c + 3).collect();
    mesh.sets = Default::default();
    mesh
}

/// Collective. This rank's part when the ranks own equal runs of nodes, and a cell belongs to the owner of its lowest
/// node; node numbers are those of `mesh` on any number of ranks.
pub(crate) fn split(comm: &Comm, mesh: &Mesh) -> LocalMesh {
    let (n, n_ranks) = (mesh.n_nodes(), comm.n_ranks());
    let first = |rank: usize| (n * rank / n_ranks) as u32;
    let mine = first(comm.rank())..first(comm.rank() + 1);
    let lowest = |cell: usize| mesh.cells.nodes_of(cell).iter().copied().min().unwrap();
    let touches = |cell: usize| {
        mesh.cells
            .nodes_of(cell)
            .iter()
            .any(|node| mine.contains(node))
    };
    let (owned, ghost): (Vec<usize>, Vec<usize>) = (0..mesh.n_cells())
        .filter(|&c| touches(c))
        .partition(|&c| mine.contains(&lowest(c)));
    let held = [owned.clone(), ghost].concat();
    let mut ghosts: Vec<u32> = held
        .iter()
        .flat_map(|&c| mesh.cells.nodes_of(c))
        .copied()
        .collect();
    ghosts.retain(|node| !mine.contains(node));
    ghosts.sort_unstable();
    ghosts.dedup();
    let local = |node: u32| match ghosts.binary_search(&node) {
        Ok(ghost) => mine.len() as u32 + ghost as u32,
        Err(_) => node - mine.start,
    };
    let mut cells = Cells::default();
    for &cell in &held {
        let nodes: Vec<u32> = mesh
            .cells
            .nodes_of(cell)
            .iter()
            .map(|&node| local(node))
            .collect();
        cells.push(mesh.cells.types[cell], &nodes);
    }
    let nodes: Vec<u32> = mine.clone().chain(ghosts.iter().copied()).collect();
    LocalMesh {
        cells,
        n_owned_cells: owned.len(),
        cell_ids: held.iter().map(|&c| mesh.cell_ids[c]).collect(),
        coords: nodes
            .iter()
            .map(|&node| mesh.coords[node as usize])
            .collect(),
        node_ids: nodes
            .iter()
            .map(|&node| mesh.node_ids[node as usize])
            .collect(),
        nodes: IndexMap::new(
            comm,
            mine.len(),
            ghosts.iter().map(|&g| u64::from(g)).collect(),
        ),
        sets: Default::default(),
        n_global_cells: mesh.n_cells() as u64,
    }
}

/// The mesh of one material, without loads.
pub(crate) fn model(mesh: LocalMesh) -> Model {
    let material = Material {
        density: 7.5,
        ..Material::isotropic("steel", YOUNG, POISSON, EXPANSION)
    };
    Model {
        cell_material: vec![0; mesh.n_cells()],
        cell_formulation: vec![Formulation::Full; mesh.n_cells()],
        mesh,
        materials: vec![material],
        orientations: vec![],
        cell_orientation: vec![],
        temperatures: None,
        fixed: vec![],
        loads: vec![],
        links: Default::default(),
    }
}

/// The matrix by global numbers, both halves, with zeros in the rows of other ranks.
pub(crate) fn dense(mesh: &LocalMesh, rows: &BlockRows) -> DMatrix<f64> {
    let n = 3 * mesh.nodes.n_global() as usize;
    let mut k = DMatrix::zeros(n, n);
    let n_owned = mesh.nodes.n_owned();
    for row in 0..n_owned {
        for (part, first) in [(&rows.lower, 0), (&rows.ghost, n_owned)] {
            for place in part.row(row) {
                let local = part.columns[place] as usize + first;
                let (i, j) = (mesh.nodes.global(row), mesh.nodes.global(local));
                for (at, &value) in part.block(place).iter().enumerate() {
                    let (i, j) = (3 * i as usize + at / 3, 3 * j as usize + at % 3);
                    k[(i, j)] = value;
                    if local < row {
                        k[(j, i)] = value;
                    }
                }
            }
        }
    }
    k
}

/// Collective. Faces of local cells that belong to one cell of the whole mesh only.
pub(crate) fn boundary_faces(comm: &Comm, mesh: &LocalMesh) -> Vec<CellFace> {
    let mut faces: Vec<(Vec<u64>, CellFace)> = Vec::new();
    for cell in 0..mesh.n_cells() {
        for face in 0..mesh.cells.types[cell].faces().len() {
            let at = CellFace {
                cell: cell as u32,
                face: face as u8,
            };
            let mut key: Vec<u64> = mesh
                .cells
                .nodes_of_face(at)
                .1
                .map(|n| mesh.nodes.global(n as usize))
                .collect();
            key.sort_unstable();
            faces.push((key, at));
        }
    }
    // Each face of the whole mesh once for each of its cells: those of owned cells.
    let mut all: Vec<u64> = Vec::new();
    for (key, _) in faces
        .iter()
        .filter(|(_, at)| (at.cell as usize) < mesh.n_owned_cells)
    {
        all.extend([key.len() as u64].iter().chain(key));
    }
    let mut count: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
    for list in comm.all_gather(&all) {
        let mut rest = &list[..];
        while let Some((&len, tail)) = rest.split_first() {
            let (key, tail) = tail.split_at(len as usize);
            *count.entry(key.to_vec()).or_default() += 1;
            rest = tail;
        }
    }
    faces
        .into_iter()
        .filter(|(key, _)| count[key] == 1)
        .map(|(_, at)| at)
        .collect()
}
