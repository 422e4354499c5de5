//! Pieces of a distributed mesh: cells that hang together through faces. Two pieces that share nodes are joined at an
//! edge or a point only, as by a hinge, or by faces that do not match.
//!
//! Each rank joins its cells by union-find over their faces. If all cells around each owned node then belong together,
//! on every rank, each body is one piece and nothing is exchanged. Otherwise the ranks tell each other the pieces of
//! the cells along their borders.
//!
//! Invariant: topology only.

use crate::components::{find, join};
use crate::facets::{face_key, faces_of};
use crate::{Comm, LocalMesh};
use std::collections::BTreeMap;

/// Pieces of a mesh in which some body consists of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// Number of pieces of the whole mesh.
    pub n: usize,
    /// Piece of each local cell (owned and ghost), from 0; the same numbers on every rank.
    pub of_cell: Vec<u32>,
}

/// Collective. The pieces of a mesh; `None` if each of its bodies is one piece.
pub fn label_pieces(comm: &Comm, mesh: &LocalMesh) -> Option<Pieces> {
    let mut parent = join_through_faces(mesh);
    let roots: Vec<u32> = (0..mesh.n_cells() as u32)
        .map(|cell| find(&mut parent, cell))
        .collect();
    if !comm.any(has_node_between(mesh, &roots)) {
        return None;
    }
    let pieces = merge_over_ranks(comm, mesh, &roots);
    // Cells that looked apart on one rank may hang together through those of another.
    comm.any(has_node_between(mesh, &pieces.of_cell))
        .then_some(pieces)
}

/// Union-find over the local cells that share a face.
fn join_through_faces(mesh: &LocalMesh) -> Vec<u32> {
    /// No further face in a list.
    const END: u32 = u32::MAX;
    let cells = &mesh.cells;
    let mut parent: Vec<u32> = (0..mesh.n_cells() as u32).collect();
    // Faces seen once, in lists by their lowest corner.
    let mut heads = vec![END; mesh.nodes.n_local()];
    let mut faces: Vec<([u32; 3], u32, u32)> = Vec::with_capacity(3 * cells.len());
    for cell in 0..mesh.n_cells() {
        for at in faces_of(cells, cell) {
            let [lowest, a, b, c] = face_key(cells, at);
            let mut place = heads[lowest as usize];
            while place != END && faces[place as usize].0 != [a, b, c] {
                place = faces[place as usize].2;
            }
            if place == END {
                faces.push(([a, b, c], at.cell, heads[lowest as usize]));
                heads[lowest as usize] = faces.len() as u32 - 1;
            } else {
                join(&mut parent, faces[place as usize].1, at.cell);
            }
        }
    }
    parent
}

/// Whether cells of different labels meet at an owned node. All cells at such a node are on this rank.
fn has_node_between(mesh: &LocalMesh, labels: &[u32]) -> bool {
    let n_owned = mesh.nodes.n_owned();
    let mut label_of_node = vec![u32::MAX; n_owned];
    (0..mesh.n_cells()).any(|cell| {
        let mut owned = (mesh.cells.nodes_of(cell).iter()).filter(|&&n| (n as usize) < n_owned);
        owned.any(|&node| {
            let before = std::mem::replace(&mut label_of_node[node as usize], labels[cell]);
            before != u32::MAX && before != labels[cell]
        })
    })
}

/// Collective. Joins what ranks found apart by the cells that several of them hold.
fn merge_over_ranks(comm: &Comm, mesh: &LocalMesh, roots: &[u32]) -> Pieces {
    let mut number_of_root: BTreeMap<u32, u32> = BTreeMap::new();
    for &root in roots {
        let next = number_of_root.len() as u32;
        number_of_root.entry(root).or_insert(next);
    }
    let n_mine = number_of_root.len() as u64;
    let first = comm.sum_below(n_mine);
    let number = |cell: usize| first + u64::from(number_of_root[&roots[cell]]);
    let n_owned_nodes = mesh.nodes.n_owned() as u32;
    let is_shared = |cell: &usize| {
        let mut nodes = mesh.cells.nodes_of(*cell).iter();
        *cell >= mesh.n_owned_cells || nodes.any(|&node| node >= n_owned_nodes)
    };
    let shared: Vec<u64> = (0..mesh.n_cells())
        .filter(is_shared)
        .flat_map(|cell| [mesh.cell_ids[cell], number(cell)])
        .collect();
    let n_all = comm.sum_u64(n_mine) as u32;
    let mut parent: Vec<u32> = (0..n_all).collect();
    let mut piece_of_id: BTreeMap<u64, u32> = BTreeMap::new();
    for list in comm.all_gather(&shared) {
        for pair in list.chunks_exact(2) {
            let piece = *piece_of_id.entry(pair[0]).or_insert(pair[1] as u32);
            join(&mut parent, piece, pair[1] as u32);
        }
    }
    let leaders: Vec<u32> = (0..n_all).map(|piece| find(&mut parent, piece)).collect();
    let mut sorted = leaders.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let of_cell = (0..mesh.n_cells()).map(|cell| {
        let leader = leaders[number(cell) as usize];
        sorted.partition_point(|&l| l < leader) as u32
    });
    Pieces {
        n: sorted.len(),
        of_cell: of_cell.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::label_pieces;
    use crate::comm::run_threads;
    use crate::test_meshes::{mixed_box, two_bodies};
    use crate::{CellType, Cells, Comm, Mesh, PartitionMethod, PartitionOptions, distribute_whole};

    /// Unit cubes with their lowest corners at `places`; nodes at one place are one.
    fn cubes(places: &[[usize; 3]]) -> Mesh {
        let mut mesh = Mesh::default();
        let mut cells = Cells::default();
        for place in places {
            let corner = |i: usize, j: usize, k: usize| {
                [i + place[0], j + place[1], k + place[2]].map(|x| x as f64)
            };
            let corners = [
                corner(0, 0, 0),
                corner(1, 0, 0),
                corner(1, 1, 0),
                corner(0, 1, 0),
                corner(0, 0, 1),
                corner(1, 0, 1),
                corner(1, 1, 1),
                corner(0, 1, 1),
            ];
            let nodes = corners.map(|x| {
                let known = mesh.coords.iter().position(|y| *y == x);
                known.unwrap_or_else(|| {
                    mesh.coords.push(x);
                    mesh.coords.len() - 1
                }) as u32
            });
            cells.push(CellType::Hex8, &nodes);
        }
        mesh.cells = cells;
        mesh.node_ids = (1..=mesh.n_nodes() as u64).collect();
        mesh.cell_ids = (1..=places.len() as u64).collect();
        mesh
    }

    /// Number of pieces on 1 to 4 ranks, which must agree; 0 for one piece a body.
    fn n_pieces(mesh: &Mesh) -> usize {
        let found = std::sync::Mutex::new(Vec::new());
        for n in 1..=4 {
            run_threads(n, |comm: &Comm| {
                let whole = if comm.is_root() {
                    mesh.clone()
                } else {
                    Mesh::default()
                };
                let options = PartitionOptions {
                    method: PartitionMethod::Rcb,
                    ..PartitionOptions::default()
                };
                let (mesh, _) = distribute_whole(comm, whole, &options).unwrap();
                let n = label_pieces(comm, &mesh).map_or(0, |pieces| {
                    assert!(pieces.of_cell.iter().all(|&p| (p as usize) < pieces.n));
                    pieces.n
                });
                found.lock().unwrap().push(n);
            });
        }
        let found = found.into_inner().unwrap();
        assert!(found.iter().all(|&n| n == found[0]), "{found:?}");
        found[0]
    }

    #[test]
    fn bodies_joined_through_faces_are_one_piece() {
        assert_eq!(n_pieces(&mixed_box([3, 4, 2])), 0);
        assert_eq!(n_pieces(&two_bodies()), 0);
        // A ring whose ends meet at an edge only; then a cube that hangs at an edge of it.
        let ring = [
            [1, 0],
            [2, 0],
            [3, 0],
            [3, 1],
            [3, 2],
            [2, 2],
            [1, 2],
            [0, 2],
            [0, 1],
            [4, 3],
        ];
        let cells: Vec<_> = ring.iter().map(|p| [p[0], p[1], 0]).collect();
        assert_eq!(n_pieces(&cubes(&cells[..9])), 0);
        assert_eq!(n_pieces(&cubes(&cells)), 2);
    }

    #[test]
    fn edges_and_points_part_pieces() {
        let row = |first: [usize; 3]| (0..4).map(move |i| [first[0] + i, first[1], first[2]]);
        let hinge: Vec<_> = row([0, 0, 0]).chain(row([0, 1, 1])).collect();
        assert_eq!(n_pieces(&cubes(&hinge)), 2);
        let point: Vec<_> = row([0, 0, 0]).chain(row([4, 1, 1])).collect();
        assert_eq!(n_pieces(&cubes(&point)), 2);
        // A third piece, and a body of its own.
        let more = point
            .iter()
            .copied()
            .chain(row([8, 2, 2]))
            .chain(row([0, 8, 8]));
        assert_eq!(n_pieces(&cubes(&more.collect::<Vec<_>>())), 4);
    }
}
