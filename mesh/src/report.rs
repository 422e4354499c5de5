//! How well a distributed mesh is divided.
//!
//! Invariant: measured on the distributed mesh itself, so it holds for any way to divide; no rank sees the whole graph.

use crate::adjacency::boundary_faces;
use crate::distribute::ids::{meeting_rank, mix};
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

/// Collective. Faces on the rim of one rank's owned cells meet their like from other ranks at a rank chosen by their
/// corners.
fn edge_cut(comm: &Comm, mesh: &LocalMesh) -> u64 {
    let mut lists: Vec<Vec<[u64; 4]>> = vec![Vec::new(); comm.n_ranks()];
    for face in boundary_faces(&mesh.cells, mesh.n_owned_cells) {
        let global = |node: u32| match node {
            u32::MAX => u64::MAX, // the place a triangle leaves free
            _ => mesh.nodes.global(node as usize),
        };
        let mut key = face.map(global);
        key.sort_unstable();
        let hash = key.iter().fold(0, |hash, &node| mix(hash ^ node));
        lists[meeting_rank(hash, comm.n_ranks())].push(key);
    }
    let mut faces = comm.all_to_all(lists).concat();
    faces.sort_unstable();
    let pairs = |n: u64| n * (n - 1) / 2;
    let cut = faces
        .chunk_by(|a, b| a == b)
        .map(|run| pairs(run.len() as u64))
        .sum();
    comm.sum_u64(cut)
}
