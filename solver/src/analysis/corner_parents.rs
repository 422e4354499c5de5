//! Between which corners each node of a second-order mesh lies: what multigrid needs to coarsen by order.
//!
//! Invariant: reads cells, knows no matrix.

use fem_mesh::{Comm, LocalMesh};

/// Collective. For each owned node the two corner nodes between which it lies, by local index; twice the node itself
/// for a corner of any of its cells. Nodes in the middle of faces and cells lie between the ends of a diagonal, of those
/// there are the one with the corner of the lowest global number. `None` if no rank has a cell of second order.
///
/// Every cell of an owned node is held here, so ranks agree on what is a corner.
pub fn corner_parents(comm: &Comm, mesh: &LocalMesh) -> Option<Vec<[u32; 2]>> {
    let is_quadratic = mesh.cells.types.iter().any(|t| t.order() == 2);
    if !comm.any(is_quadratic) {
        return None;
    }
    let mut parents: Vec<[u32; 2]> = (0..mesh.nodes.n_local() as u32).map(|n| [n, n]).collect();
    let mut is_corner = vec![false; parents.len()];
    let global = |node: u32| mesh.nodes.global(node as usize);
    for cell in 0..mesh.n_cells() {
        let (cell_type, nodes) = (mesh.cells.types[cell], mesh.cells.nodes_of(cell));
        let (corners, mid_sides) = nodes.split_at(cell_type.n_corners());
        corners
            .iter()
            .for_each(|&corner| is_corner[corner as usize] = true);
        for (&node, edge) in mid_sides.iter().zip(cell_type.edges()) {
            let ends = edge.map(|corner| nodes[usize::from(corner)]);
            parents[node as usize] = [ends[0].min(ends[1]), ends[0].max(ends[1])];
        }
        let inner = cell_type.inner_nodes();
        for (&node, around) in nodes[nodes.len() - inner.len()..].iter().zip(inner) {
            let key = |corner: u8| global(nodes[usize::from(corner)]);
            let ends = diagonal(around, key).map(|corner| nodes[usize::from(corner)]);
            parents[node as usize] = [ends[0].min(ends[1]), ends[0].max(ends[1])];
        }
    }
    parents.truncate(mesh.nodes.n_owned());
    for (node, pair) in parents
        .iter_mut()
        .enumerate()
        .filter(|(node, _)| is_corner[*node])
    {
        *pair = [node as u32; 2];
    }
    Some(parents)
}

/// The diagonal of a quadrilateral (four corners in turn) or of a hexahedron (eight) from the corner of lowest `key`.
fn diagonal(around: &[u8], key: impl Fn(u8) -> u64) -> [u8; 2] {
    let first = (0..around.len())
        .min_by_key(|&k| key(around[k]))
        .unwrap_or(0);
    let opposite = match around.len() {
        8 => [6, 7, 4, 5, 2, 3, 0, 1][first],
        n => (first + n / 2) % n,
    };
    [around[first], around[opposite]]
}

#[cfg(test)]
mod tests {
    use super::corner_parents;
    use crate::assembly::test_models::{mixed_mesh, split};
    use fem_mesh::comm::run_threads;
    use fem_mesh::generate::{BoxMesh, generate_slice};
    use fem_mesh::{CellType, Comm, Mesh};

    /// Parallelepipeds, in which diagonals meet in the middle.
    fn regular_box(cell_type: CellType) -> Mesh {
        let spec = BoxMesh {
            size: [1.5, 1.0, 2.0],
            cells: [2, 3, 2],
            cell_type,
            origin: [0.0; 3],
        };
        let mut mesh = generate_slice(&spec, &Comm::alone(), None).unwrap();
        (mesh.coords.iter_mut()).for_each(|x| x[0] += 0.3 * x[1] - 0.2 * x[2]);
        mesh
    }

    #[test]
    fn mid_side_nodes_lie_between_their_parents() {
        for cell_type in CellType::SOLIDS.into_iter().filter(|t| t.order() == 2) {
            let mesh = regular_box(cell_type);
            for n_ranks in 1..=4 {
                run_threads(n_ranks, |comm| {
                    let mesh = split(comm, &mesh);
                    let parents = corner_parents(comm, &mesh).expect("second order");
                    let mut n_corners = 0;
                    for (node, pair) in parents.iter().enumerate() {
                        let [p, q] = pair.map(|p| mesh.coords[p as usize]);
                        for i in 0..3 {
                            assert!((mesh.coords[node][i] - 0.5 * (p[i] + q[i])).abs() < 1e-12);
                        }
                        n_corners += u64::from(pair[0] == pair[1]);
                    }
                    // Pyramids meet in the middle of each brick.
                    let n_apexes = if cell_type.n_corners() == 5 { 12 } else { 0 };
                    assert_eq!(comm.sum_u64(n_corners), 3 * 4 * 3 + n_apexes);
                });
            }
        }
    }

    #[test]
    fn first_order_meshes_have_corners_only() {
        run_threads(2, |comm| {
            assert_eq!(corner_parents(comm, &split(comm, &mixed_mesh())), None)
        });
    }
}
