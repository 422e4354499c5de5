//! The mesh of a case, read or generated, on every rank.
//!
//! A file is read by rank 0, which divides it and deals it out; of a generated box each rank makes its own block.
//!
//! Invariant: knows the case's `[mesh]` and `[parallel]` tables only.

use fem_io::case::{BoxInput, Case, MeshSource, NodeRef, Partitioner};
use fem_io::mesh_file::{self, MeshFile};
use fem_mesh::partition::{PartitionMethod, PartitionOptions, cell_work};
use fem_mesh::report::PartitionReport;
use fem_mesh::{
    BoxMesh, Comm, FreeNode, LocalMesh, Mesh, Result, append_free_nodes, distribute, generate_slice,
};
use std::collections::BTreeSet;

/// A mesh on its way from its source to the ranks.
pub struct RawMesh {
    /// Rank 0's whole mesh (the others' is empty), or this rank's block of a box.
    mesh: Mesh,
    from_file: bool,
}

impl RawMesh {
    /// A mesh that rank 0 holds whole.
    #[cfg(test)]
    pub(crate) fn of(mesh: Mesh) -> Self {
        RawMesh {
            mesh,
            from_file: true,
        }
    }
}

/// Collective. Reads or generates the mesh; warnings of the reader come with it, on every rank. A deck has brought its
/// mesh along: rank 0 holds it in `deck`.
///
/// # Errors
/// Those of the mesh file's reader, on every rank.
pub fn read_mesh(
    comm: &Comm,
    case: &Case,
    deck: Option<MeshFile>,
) -> Result<(RawMesh, Vec<String>)> {
    let (mut mesh, warnings, from_file) = match &case.mesh.source {
        MeshSource::Box(input) => (
            generate_slice(&box_mesh(input), comm, None)?,
            Vec::new(),
            false,
        ),
        MeshSource::File(path) => {
            let read = match deck {
                Some(mesh) => Ok(Some(mesh)),
                None if comm.is_root() => mesh_file::read(path).map(Some),
                None => Ok(None),
            };
            let (mesh, warnings) = comm
                .all_ok(read)?
                .map(|f| (f.mesh, f.warnings))
                .unwrap_or_default();
            let text = comm.broadcast_text(warnings.join("\n"));
            (mesh, text.lines().map(str::to_owned).collect(), true)
        }
    };
    for x in &mut mesh.coords {
        *x = x.map(|v| v * case.mesh.scale);
    }
    for node in &mut mesh.free {
        node.x = node.x.map(|v| v * case.mesh.scale);
    }
    Ok((RawMesh { mesh, from_file }, warnings))
}

fn box_mesh(input: &BoxInput) -> BoxMesh {
    BoxMesh {
        size: input.size,
        cells: input.cells,
        cell_type: input.element,
        origin: input.origin,
    }
}

/// Collective. Divides the mesh over the ranks.
///
/// # Errors
/// A partitioner that fails, an element number that occurs twice.
pub fn distribute_mesh(
    comm: &Comm,
    case: &Case,
    mut raw: RawMesh,
) -> Result<(LocalMesh, PartitionReport)> {
    let free = free_nodes(comm, case, std::mem::take(&mut raw.mesh.free))?;
    let (mut mesh, report) = divide(comm, case, raw)?;
    append_free_nodes(comm, &mut mesh, &free)?;
    Ok((mesh, report))
}

/// Collective. The nodes in no element that the case refers to: those of the mesh file, `found` on rank 0, and those that
/// the case makes itself.
fn free_nodes(comm: &Comm, case: &Case, found: Vec<FreeNode>) -> Result<Vec<FreeNode>> {
    let links = &case.links;
    let mut ids: BTreeSet<u64> = links.mpcs.iter().flat_map(|m| &m.nodes).copied().collect();
    let mut sets: BTreeSet<String> = BTreeSet::new();
    for reference in links.references() {
        match reference {
            NodeRef::Number(id) => ids.insert(*id),
            NodeRef::Set(name) => sets.insert(name.to_lowercase()),
        };
    }
    ids.extend(
        links
            .nodes
            .iter()
            .filter(|node| node.at.is_none())
            .map(|node| node.number),
    );
    let is_named = |node: &FreeNode| {
        ids.contains(&node.id)
            || node
                .sets
                .iter()
                .any(|set| sets.contains(&set.to_lowercase()))
    };
    let found: Vec<FreeNode> = found.into_iter().filter(is_named).collect();
    let mut free = broadcast_free(comm, &found);
    for node in &links.nodes {
        let known = free.iter().position(|known| known.id == node.number);
        let place = match (known, node.at) {
            (Some(known), None) => known,
            (None, Some(x)) => {
                free.push(FreeNode {
                    id: node.number,
                    x,
                    sets: Vec::new(),
                });
                free.len() - 1
            }
            (None, None) => {
                let what = format!("the mesh has no node {} in no element", node.number);
                let error = case.error_at(node.place, what);
                return Err(error.expected("`at` with the coordinates of a new node"));
            }
            (Some(_), Some(_)) => {
                let what = format!("node {} is a node of the mesh file already", node.number);
                let error = case.error_at(node.place, what);
                return Err(error.expected("a new number, or no `at`"));
            }
        };
        if !node.name.is_empty() {
            free[place].sets.push(node.name.clone());
        }
    }
    Ok(free)
}

/// Collective. The nodes of rank 0.
fn broadcast_free(comm: &Comm, nodes: &[FreeNode]) -> Vec<FreeNode> {
    let numbers: Vec<[u64; 5]> = (nodes.iter())
        .map(|node| {
            let [x, y, z] = node.x.map(f64::to_bits);
            [node.id, x, y, z, node.sets.len() as u64]
        })
        .collect();
    let names: Vec<String> = nodes.iter().flat_map(|node| node.sets.clone()).collect();
    let numbers = comm.broadcast(0, numbers);
    // Names of sets have no control characters.
    let names = comm.broadcast_text(names.join("\n"));
    let mut names = names.lines().map(str::to_owned);
    (numbers.iter())
        .map(|&[id, x, y, z, n_sets]| FreeNode {
            id,
            x: [x, y, z].map(f64::from_bits),
            sets: names.by_ref().take(n_sets as usize).collect(),
        })
        .collect()
}

/// Collective. Divides the cells.
fn divide(comm: &Comm, case: &Case, raw: RawMesh) -> Result<(LocalMesh, PartitionReport)> {
    if !raw.from_file {
        return distribute::distribute_slices(comm, raw.mesh, None);
    }
    let method = match case.parallel.partitioner {
        Partitioner::Auto => PartitionMethod::Auto,
        Partitioner::Metis => PartitionMethod::Metis,
        Partitioner::Rcb => PartitionMethod::Rcb,
    };
    let work: Vec<u32> = raw.mesh.cells.types.iter().map(|&t| cell_work(t)).collect();
    let options = PartitionOptions {
        method,
        part_weights: None,
        cell_weights: Some(&work),
    };
    distribute::distribute_whole(comm, raw.mesh, &options)
}
