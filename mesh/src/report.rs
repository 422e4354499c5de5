//! How well a distributed mesh is divided.
//!
//! Invariant: measured on the distributed mesh itself, so it holds for any way to divide; no rank sees the whole graph.

use crate::distribute::ids::{meeting_rank, mix};
use crate::facets::faces_of;
use crate::partition::{cell_work, relative_imbalance};
use crate::{Comm, LocalMesh};

/// Quality of a partition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionReport {
    /// What divided the mesh: "one part", "metis", "rcb" or "blocks".
    pub method: String,
    /// Largest work of a rank (see [`cell_work`]) relative to its share; 1 is perfect.
    pub imbalance: f64,
    /// Pairs of cells that share a face but not the rank.
    pub edge_cut: u64,
    /// Most ghost nodes of a rank.
    pub halo_nodes_max: u64,
}

/// Collective. Measures the division of `mesh`. `part_weights` are the shares it was made with, one per rank; equal if
/// `None`.
pub fn partition_report(
    comm: &Comm,
    mesh: &LocalMesh,
    method: &str,
    part_weights: Option<&[f64]>,
) -> PartitionReport {
    let owned_types = &mesh.cells.types[..mesh.n_owned_cells];
    let work: f64 = owned_types.iter().map(|&t| f64::from(cell_work(t))).sum();
    let loads = comm.all_gather(&[work]).concat();
    let equal = vec![1.0; comm.n_ranks()];
    PartitionReport {
        method: method.to_owned(),
        imbalance: relative_imbalance(&loads, part_weights.unwrap_or(&equal)),
        edge_cut: edge_cut(comm, mesh),
        halo_nodes_max: comm.max(mesh.nodes.n_ghosts() as f64) as u64,
    }
}

/// Collective. Faces that can be cut meet their like from other ranks at a rank chosen by their corners.
fn edge_cut(comm: &Comm, mesh: &LocalMesh) -> u64 {
    let mut lists: Vec<Vec<[u64; 4]>> = vec![Vec::new(); comm.n_ranks()];
    for key in rim_faces(mesh) {
        let hash = key.iter().fold(0, |hash, &node| mix(hash ^ node));
        lists[meeting_rank(hash, comm.n_ranks())].push(key);
    }
    let mut faces: Vec<([u64; 4], usize)> = Vec::new();
    for (rank, list) in comm.all_to_all(lists).into_iter().enumerate() {
        faces.extend(list.into_iter().map(|key| (key, rank)));
    }
    faces.sort_unstable();
    let pairs = |n: usize| (n * (n - 1) / 2) as u64;
    let cut_in = |run: &[([u64; 4], usize)]| {
        let within: u64 = run
            .chunk_by(|a, b| a.1 == b.1)
            .map(|same| pairs(same.len()))
            .sum();
        pairs(run.len()) - within
    };
    let cut = faces.chunk_by(|a, b| a.0 == b.0).map(cut_in).sum();
    comm.sum_u64(cut)
}

/// Faces of owned cells that may have a cell of another rank behind them, by the global numbers of their corners.
///
/// A corner of a cut face touches a cell of another rank. So it is a ghost here, or it is owned and, as every cell
/// that touches an owned node is held, it is a corner of a ghost cell.
fn rim_faces(mesh: &LocalMesh) -> Vec<[u64; 4]> {
    let mut is_rim = vec![false; mesh.nodes.n_local()];
    is_rim[mesh.nodes.n_owned()..].fill(true);
    for cell in mesh.n_owned_cells..mesh.n_cells() {
        for &node in mesh.cells.nodes_of(cell) {
            is_rim[node as usize] = true;
        }
    }
    let mut faces = Vec::new();
    for cell in 0..mesh.n_owned_cells {
        let on_rim = mesh
            .cells
            .nodes_of(cell)
            .iter()
            .filter(|&&node| is_rim[node as usize]);
        if on_rim.count() < 3 {
            continue;
        }
        for at in faces_of(&mesh.cells, cell) {
            let (face_type, nodes) = mesh.cells.nodes_of_face(at);
            let mut key = [u64::MAX; 4]; // a triangle leaves the last free
            let mut can_be_cut = true;
            for (slot, node) in key.iter_mut().zip(nodes.take(face_type.n_corners())) {
                *slot = mesh.nodes.global(node as usize);
                can_be_cut &= is_rim[node as usize];
            }
            if can_be_cut {
                key.sort_unstable();
                faces.push(key);
            }
        }
    }
    faces
}
