//! Sets by geometry: the nodes, cells and boundary faces of a distributed mesh that lie in a box.
//!
//! Members are found among owned and ghost items alike, so a set made here fulfills what [`crate::LocalMesh`]
//! promises of its sets.
//!
//! Invariant: knows coordinates and topology only.

use crate::{CellFace, Comm, LocalMesh};
use std::collections::HashMap;

/// A closed box, already widened by its tolerance; bounds may be infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Smallest coordinates, m.
    pub min: [f64; 3],
    /// Largest coordinates, m.
    pub max: [f64; 3],
}

impl Region {
    /// Whether the point lies in the box.
    pub fn contains(&self, x: &[f64; 3]) -> bool {
        (0..3).all(|i| self.min[i] <= x[i] && x[i] <= self.max[i])
    }

    /// The box grown by `margin` on every side.
    #[must_use]
    pub fn widened(&self, margin: f64) -> Region {
        Region {
            min: self.min.map(|v| v - margin),
            max: self.max.map(|v| v + margin),
        }
    }
}

/// Collective. Smallest box around all nodes; from plus to minus infinity for a mesh without nodes.
pub fn bounds(comm: &Comm, mesh: &LocalMesh) -> Region {
    let mut region = Region {
        min: [f64::INFINITY; 3],
        max: [f64::NEG_INFINITY; 3],
    };
    for x in &mesh.coords[..mesh.nodes.n_owned()] {
        for i in 0..3 {
            region.min[i] = region.min[i].min(x[i]);
            region.max[i] = region.max[i].max(x[i]);
        }
    }
    Region {
        min: region.min.map(|v| comm.min(v)),
        max: region.max.map(|v| comm.max(v)),
    }
}

/// Local nodes in the box.
pub fn nodes_in(mesh: &LocalMesh, region: &Region) -> Vec<u32> {
    (0..mesh.coords.len() as u32)
        .filter(|&n| region.contains(&mesh.coords[n as usize]))
        .collect()
}

/// Local cells with all their nodes in the box.
pub fn cells_in(mesh: &LocalMesh, region: &Region) -> Vec<u32> {
    let inside = |cell: &u32| {
        let nodes = mesh.cells.nodes_of(*cell as usize);
        nodes
            .iter()
            .all(|&n| region.contains(&mesh.coords[n as usize]))
    };
    (0..mesh.n_cells() as u32).filter(inside).collect()
}

/// Corner nodes of a face by global index, ascending; the last repeats the third for a triangle.
type FaceKey = [u64; 4];

/// Collective. Faces of local cells that have all their nodes in the box and belong to one cell only of the whole
/// mesh.
///
/// Whether a face has a second cell is asked of a directory spread over the ranks: the other cell need not be held
/// here.
pub fn boundary_faces_in(comm: &Comm, mesh: &LocalMesh, region: &Region) -> Vec<CellFace> {
    let candidates = faces_in(mesh, region);
    let n_ranks = comm.n_ranks();
    let mut owned_keys: Vec<Vec<FaceKey>> = vec![Vec::new(); n_ranks];
    let mut asked: Vec<Vec<(FaceKey, CellFace)>> = vec![Vec::new(); n_ranks];
    for &face in &candidates {
        let key = face_key(mesh, face);
        let directory = (key[0] % n_ranks as u64) as usize;
        if (face.cell as usize) < mesh.n_owned_cells {
            owned_keys[directory].push(key);
        }
        asked[directory].push((key, face));
    }
    let mut n_cells: HashMap<FaceKey, u8> = HashMap::new();
    for key in comm.all_to_all(owned_keys).into_iter().flatten() {
        *n_cells.entry(key).or_insert(0) += 1;
    }
    let questions = asked
        .iter()
        .map(|list| list.iter().map(|(key, _)| *key).collect())
        .collect();
    let questions: Vec<Vec<FaceKey>> = comm.all_to_all(questions);
    let answer = |list: &Vec<FaceKey>| {
        list.iter()
            .map(|k| n_cells.get(k).copied().unwrap_or(0))
            .collect()
    };
    let answers: Vec<Vec<u8>> = comm.all_to_all(questions.iter().map(answer).collect());
    let mut faces: Vec<CellFace> = Vec::new();
    for (asked, answers) in asked.iter().zip(&answers) {
        faces.extend(
            asked
                .iter()
                .zip(answers)
                .filter(|(_, n)| **n == 1)
                .map(|((_, face), _)| *face),
        );
    }
    faces.sort_unstable();
    faces
}

fn faces_in(mesh: &LocalMesh, region: &Region) -> Vec<CellFace> {
    let inside: Vec<bool> = mesh.coords.iter().map(|x| region.contains(x)).collect();
    let mut faces = Vec::new();
    for cell in 0..mesh.n_cells() as u32 {
        for face in 0..mesh.cells.types[cell as usize].faces().len() as u8 {
            let at = CellFace { cell, face };
            if mesh.cells.nodes_of_face(at).1.all(|n| inside[n as usize]) {
                faces.push(at);
            }
        }
    }
    faces
}

fn face_key(mesh: &LocalMesh, at: CellFace) -> FaceKey {
    let (face_type, nodes) = mesh.cells.nodes_of_face(at);
    let mut key = [u64::MAX; 4];
    for (slot, node) in key.iter_mut().zip(nodes.take(face_type.n_corners())) {
        *slot = mesh.nodes.global(node as usize);
    }
    key.sort_unstable();
    if key[3] == u64::MAX {
        key[3] = key[2];
    }
    key
}

#[cfg(test)]
mod tests {
    use super::{Region, boundary_faces_in, bounds, cells_in, nodes_in};
    use crate::comm::run_threads;
    use crate::test_meshes::unit_bricks;
    use crate::{CellType, Comm, LocalMesh, distribute_slices, generate_slice};

    fn mesh(comm: &Comm, cell_type: CellType) -> LocalMesh {
        let slice = generate_slice(&unit_bricks(cell_type, [4, 3, 2]), comm, None).unwrap();
        distribute_slices(comm, slice, None).unwrap().0
    }

    fn region(min: [f64; 3], max: [f64; 3]) -> Region {
        Region { min, max }
    }

    #[test]
    fn boxes_select_what_lies_in_them_on_any_number_of_ranks() {
        for n in 1..=4 {
            run_threads(n, |comm| {
                let mesh = mesh(comm, CellType::Hex8);
                let whole = bounds(comm, &mesh);
                assert_eq!((whole.min, whole.max), ([0.0; 3], [4.0, 3.0, 2.0]));
                let edge = region([0.0, 0.0, -1.0], [0.0, 0.0, 9.0]);
                let owned = |n: &&u32| (**n as usize) < mesh.nodes.n_owned();
                let n_nodes = nodes_in(&mesh, &edge).iter().filter(owned).count();
                assert_eq!(comm.sum_u64(n_nodes as u64), 3);
                let half = region([0.0; 3], [2.0, 3.0, 2.0]);
                let owned = |c: &&u32| (**c as usize) < mesh.n_owned_cells;
                let n_cells = cells_in(&mesh, &half).iter().filter(owned).count();
                assert_eq!(comm.sum_u64(n_cells as u64), 12);
            });
        }
    }

    #[test]
    fn only_faces_of_the_boundary_are_selected_and_they_are_those_of_the_generated_sets() {
        for n in 1..=4 {
            run_threads(n, |comm| {
                for cell_type in CellType::SOLIDS {
                    let mesh = mesh(comm, cell_type);
                    let top = region([-1.0, -1.0, 2.0], [9.0, 9.0, 2.0]).widened(1e-9);
                    assert_eq!(
                        boundary_faces_in(comm, &mesh, &top),
                        mesh.sets.faces["zmax"]
                    );
                    let middle = region([-1.0, -1.0, 1.0], [9.0, 9.0, 1.0]).widened(1e-9);
                    assert_eq!(boundary_faces_in(comm, &mesh, &middle), []);
                }
            });
        }
    }
}
