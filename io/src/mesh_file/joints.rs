//! What a reader says of a mesh beyond its sets: elements turned, nodes at one place, parts that are not joined.
//!
//! Invariant: words only; what is found is found elsewhere.

use super::finish::{listed, plural};
use crate::mesh_info::parts::{COINCIDENT, coincident_pairs, find_parts};
use fem_mesh::Mesh;

/// How many pairs or parts a warning lists.
const SHOWN: usize = 5;

/// One sentence each. `turned` are the cells that were inside out.
pub(super) fn warnings(mesh: &Mesh, turned: &[u32]) -> Vec<String> {
    let found = [
        turned_elements(mesh, turned),
        coincident_nodes(mesh),
        loose_parts(mesh),
    ];
    found.into_iter().flatten().collect()
}

fn turned_elements(mesh: &Mesh, turned: &[u32]) -> Option<String> {
    let n = turned.len();
    let ids = turned.iter().map(|&cell| mesh.cell_ids[cell as usize]);
    let (verb, list) = (if n == 1 { "is" } else { "are" }, listed(ids));
    (n > 0).then(|| {
        format!(
            "{n} of {} elements {verb} given inside out (mirrored) and turned: {list}",
            mesh.n_cells()
        )
    })
}

fn coincident_nodes(mesh: &Mesh) -> Option<String> {
    let extent = |axis: usize| {
        let along = mesh.coords.iter().map(|p| p[axis]);
        along.clone().fold(f64::NEG_INFINITY, f64::max) - along.fold(f64::INFINITY, f64::min)
    };
    let size = (0..3).map(extent).fold(0.0, f64::max);
    let tolerance = COINCIDENT * size;
    let pairs = coincident_pairs(&mesh.coords, tolerance);
    let n = pairs.len();
    (n > 0).then(|| {
        let id = |node: u32| mesh.node_ids[node as usize];
        let shown: Vec<String> = (pairs.iter().take(SHOWN))
            .map(|&(first, later)| format!("{} and {}", id(first), id(later)))
            .collect();
        let more = if n > SHOWN { ", ..." } else { "" };
        format!(
            "{n} node{} at the place of another (to {tolerance:.1e}), not joined to it: {}{more}",
            plural(n),
            shown.join(", ")
        )
    })
}

fn loose_parts(mesh: &Mesh) -> Option<String> {
    let parts = find_parts(mesh);
    let n = parts.len();
    (n > 1).then(|| {
        let shown: Vec<String> = (parts.iter().take(SHOWN))
            .map(|part| {
                let size = format!("{} element{}", part.n_elements, plural(part.n_elements));
                match &part.name {
                    Some(name) => format!("{size} (`{name}`)"),
                    None => format!(
                        "{size} (with element {})",
                        mesh.cell_ids[part.first as usize]
                    ),
                }
            })
            .collect();
        let more = if n > SHOWN { ", ..." } else { "" };
        format!(
            "the mesh is {n} parts that share no node, so nothing joins them: {}{more}",
            shown.join(", ")
        )
    })
}
