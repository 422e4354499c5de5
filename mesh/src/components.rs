//! Connected bodies of a distributed mesh: which nodes hang together through cells.
//!
//! Each rank joins the nodes of its cells by union-find; labels then travel over the halo until none changes, which
//! takes as many rounds as a body crosses ranks in a row, each of the cost of one halo exchange.
//!
//! Invariant: topology only.

use crate::halo::Halo;
use crate::{Comm, LocalMesh};

/// Collective. Label of each local node (owned and ghost): the smallest global node index of its body.
pub fn label_bodies(comm: &Comm, mesh: &LocalMesh, halo: &Halo) -> Vec<u64> {
    let n_local = mesh.nodes.n_local();
    let n_owned = mesh.nodes.n_owned();
    let mut parent: Vec<u32> = (0..n_local as u32).collect();
    for cell in 0..mesh.n_cells() {
        let nodes = mesh.cells.nodes_of(cell);
        for pair in nodes.windows(2) {
            join(&mut parent, pair[0], pair[1]);
        }
    }
    let roots: Vec<u32> = (0..n_local as u32)
        .map(|node| find(&mut parent, node))
        .collect();
    let mut label_of_root: Vec<u64> = (0..n_local).map(|node| mesh.nodes.global(node)).collect();
    let mut labels: Vec<u64> = label_of_root.clone();
    loop {
        let mut changed = false;
        for (node, &root) in roots.iter().enumerate() {
            let label = &mut label_of_root[root as usize];
            if labels[node] < *label {
                *label = labels[node];
            }
        }
        for (node, &root) in roots.iter().enumerate() {
            changed |= labels[node] != label_of_root[root as usize];
            labels[node] = label_of_root[root as usize];
        }
        if !comm.any(changed) {
            return labels;
        }
        let (owned, ghosts) = labels.split_at_mut(n_owned);
        halo.forward(comm, owned, ghosts, 1);
    }
}

/// The leader of `node` in a union-find forest; shortens the paths on the way (path halving: Tarjan and van Leeuwen,
/// J. ACM 31 (1984) 245).
pub fn find(parent: &mut [u32], node: u32) -> u32 {
    let mut node = node;
    while parent[node as usize] != node {
        parent[node as usize] = parent[parent[node as usize] as usize];
        node = parent[node as usize];
    }
    node
}

/// Makes one set of those of `a` and `b` in a union-find forest, led by the lowest member.
pub fn join(parent: &mut [u32], a: u32, b: u32) {
    let (a, b) = (find(parent, a), find(parent, b));
    // The smaller index leads: paths stay short enough with the halving in `find`.
    let (low, high) = (a.min(b), a.max(b));
    parent[high as usize] = low;
}

#[cfg(test)]
mod tests {
    use super::label_bodies;
    use crate::Comm;
    use crate::comm::run_threads;
    use crate::test_meshes::{two_bodies, unit_bricks};
    use crate::{
        CellType, Halo, LocalMesh, Mesh, PartitionMethod, PartitionOptions, distribute_slices,
        distribute_whole, generate_slice,
    };
    use std::collections::BTreeMap;

    fn sizes(comm: &Comm, mesh: &LocalMesh) -> Vec<u64> {
        let halo = Halo::new(comm, &mesh.nodes);
        let labels = label_bodies(comm, mesh, &halo);
        let owned = comm.all_gather(&labels[..mesh.nodes.n_owned()]).concat();
        let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
        owned
            .iter()
            .for_each(|&label| *sizes.entry(label).or_default() += 1);
        let ghosts = &labels[mesh.nodes.n_owned()..];
        assert!(ghosts.iter().all(|label| sizes.contains_key(label)));
        sizes.into_values().collect()
    }

    #[test]
    fn a_box_is_one_body_and_two_boxes_are_two() {
        for n in 1..=4 {
            run_threads(n, |comm| {
                let slice =
                    generate_slice(&unit_bricks(CellType::Hex20, [7, 1, 1]), comm, None).unwrap();
                let (mesh, _) = distribute_slices(comm, slice, None).unwrap();
                assert_eq!(sizes(comm, &mesh), [mesh.nodes.n_global()]);
                let whole = if comm.is_root() {
                    two_bodies()
                } else {
                    Mesh::default()
                };
                let options = PartitionOptions {
                    method: PartitionMethod::Rcb,
                    ..PartitionOptions::default()
                };
                let (mesh, _) = distribute_whole(comm, whole, &options).unwrap();
                assert_eq!(sizes(comm, &mesh), [18, 18]);
            });
        }
    }
}
