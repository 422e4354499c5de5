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
    let roots: Vec<u32> = (0..n_local as u32).map(|node| find(&mut parent, node)).collect();
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

fn find(parent: &mut [u32], node: u32) -> u32 {
    let mut node = node;
    while parent[node as usize] != node {
        parent[node as usize] = parent[parent[node as usize] as usize];
        node = parent[node as usize];
    }
    node
}

fn join(parent: &mut [u32], a: u32, b: u32) {
    let (a, b) = (find(parent, a), find(parent, b));
    // The smaller index leads: paths stay short enough with the halving in `find`.
    let (low, high) = (a.min(b), a.max(b));
    parent[high as usize] = low;
}
