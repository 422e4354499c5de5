//! Between which corners each node of a second-order mesh lies: what multigrid needs to coarsen by order.
//!
//! Invariant: reads cells, knows no matrix.

use fem_mesh::{Comm, LocalMesh};

/// Collective. For each owned node the two corner nodes between which it lies, by local index; twice the node itself
/// for a corner of any of its cells. `None` if no rank has a cell of second order.
///
/// Every cell of an owned node is held here, so ranks agree on what is a corner.
pub fn corner_parents(comm: &Comm, mesh: &LocalMesh) -> Option<Vec<[u32; 2]>> {
    let is_quadratic = mesh.cells.types.iter().any(|t| t.order() == 2);
    if !comm.any(is_quadratic) {
        return None;
    }
    let mut parents: Vec<[u32; 2]> = (0..mesh.nodes.n_local() as u32).map(|n| [n, n]).collect();
    let mut is_corner = vec![false; parents.len()];
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

#[cfg(test)]
mod tests {
    use super::corner_parents;
    use crate::assembly::test_models::{distorted_box, mixed_mesh, split};
    use fem_mesh::CellType;
    use fem_mesh::comm::run_threads;

    #[test]
    fn mid_side_nodes_lie_between_their_parents() {
        for cell_type in [CellType::Tet10, CellType::Hex20] {
            let mesh = distorted_box(cell_type, [2, 3, 2], false);
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
                    assert_eq!(comm.sum_u64(n_corners), 3 * 4 * 3);
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
