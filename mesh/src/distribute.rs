//! From a mesh and the part of each cell to a [`LocalMesh`] on every rank.
//!
//! In: slices of a mesh (the whole on rank 0 and nothing elsewhere, or a block of a box on each) and the destination of
//! each cell. The steps: cells travel with their nodes and their membership in sets; all ranks agree on the owner of
//! each node; one layer of ghost cells travels to the owners of the nodes it touches; nodes are numbered.
//!
//! Invariant: no rank ever holds more of the mesh than its slice, its part and its ghosts; nodes and cells are known
//! across ranks by their numbers in the input.

pub(crate) mod ids;
mod number;
mod ownership;
mod pieces;

use crate::adjacency::Graph;
use crate::mesh::Sets;
use crate::partition::{PartitionOptions, partition};
use crate::report::{PartitionReport, partition_report};
use crate::{CellFace, Comm, Error, LocalMesh, Mesh, Result};
use ids::{meeting_rank, smallest_duplicate};
use pieces::{Cutter, Merger, from_bytes, to_bytes};

/// Cells held by one rank: the owned ones first, then ghosts, with the owner of each node.
struct Held {
    mesh: Mesh,
    n_owned_cells: usize,
    node_owners: Vec<u32>,
}

/// Collective. Moves each cell `c` of this rank's slice `mesh` to rank `parts[c]` and completes every rank's part with
/// its ghosts. Nodes that no cell uses are dropped. Any rank may end up without cells or without nodes.
///
/// A node that several slices hold must have the same coordinates in each, bit for bit.
///
/// # Errors
/// On every rank: an element number that occurs twice in the whole mesh, a node number that occurs twice in one slice,
/// lists that do not fit the mesh or the ranks, coordinates so different that ranks disagree on a node's owner.
pub fn distribute(comm: &Comm, mut mesh: Mesh, parts: &[u32]) -> Result<LocalMesh> {
    comm.all_ok(check_slice(&mesh, parts, comm.n_ranks()))?;
    check_cell_ids(comm, &mesh.cell_ids)?;
    unite_set_names(comm, &mut mesh.sets);
    let own = migrate(comm, mesh, parts);
    let node_owners = ownership::node_owners(comm, &own);
    let held = add_ghost_cells(comm, own, node_owners);
    number::number_nodes(comm, held)
}

/// Collective. Divides a mesh that rank 0 holds whole (what the other ranks pass is ignored), and distributes it.
///
/// # Errors
/// As for [`partition`] and [`distribute`].
pub fn distribute_whole(
    comm: &Comm,
    mesh: Mesh,
    options: &PartitionOptions<'_>,
) -> Result<(LocalMesh, PartitionReport)> {
    let mesh = if comm.is_root() {
        mesh
    } else {
        Mesh::default()
    };
    let partition = if comm.is_root() {
        partition(&mesh, comm.n_ranks(), options).map(|p| (p.parts, p.method))
    } else {
        Ok((Vec::new(), ""))
    };
    let (parts, method) = comm.all_ok(partition)?;
    let method = comm.broadcast_text(method.to_owned());
    let local = distribute(comm, mesh, &parts)?;
    let report = partition_report(comm, &local, &method, options.part_weights);
    Ok((local, report))
}

/// Collective. Makes every rank's slice its part, as for boxes generated in blocks. `part_weights` are those that the
/// slices were made with.
///
/// # Errors
/// As for [`distribute`].
pub fn distribute_slices(
    comm: &Comm,
    mesh: Mesh,
    part_weights: Option<&[f64]>,
) -> Result<(LocalMesh, PartitionReport)> {
    let parts = vec![comm.rank() as u32; mesh.n_cells()];
    let local = distribute(comm, mesh, &parts)?;
    let report = partition_report(comm, &local, "blocks", part_weights);
    Ok((local, report))
}

fn check_slice(mesh: &Mesh, parts: &[u32], n_ranks: usize) -> Result<()> {
    let (n_nodes, n_cells) = (mesh.n_nodes(), mesh.n_cells());
    let is_node = |n: &u32| (*n as usize) < n_nodes;
    let is_cell = |c: &u32| (*c as usize) < n_cells;
    let is_face = |f: &CellFace| {
        let cell_type = mesh.cells.types.get(f.cell as usize);
        cell_type.is_some_and(|t| usize::from(f.face) < t.faces().len())
    };
    let sets = &mesh.sets;
    let fits = parts.len() == n_cells
        && mesh.cell_ids.len() == n_cells
        && mesh.node_ids.len() == n_nodes
        && parts.iter().all(|&p| (p as usize) < n_ranks)
        && mesh.cells.nodes.iter().all(is_node)
        && sets.nodes.values().flatten().all(is_node)
        && sets.cells.values().flatten().all(is_cell)
        && sets.faces.values().flatten().all(is_face);
    if !fits {
        return Err(Error::input(
            "the lists of a mesh and of its parts do not fit together",
        ));
    }
    match smallest_duplicate(mesh.node_ids.clone()) {
        None => Ok(()),
        Some(id) => Err(Error::input(format!("node {id} is defined twice"))
            .expected("a number of its own for each node")),
    }
}

/// Collective. Refuses element numbers that occur twice, be it on different ranks.
fn check_cell_ids(comm: &Comm, cell_ids: &[u64]) -> Result<()> {
    let mut lists = vec![Vec::new(); comm.n_ranks()];
    for &id in cell_ids {
        lists[meeting_rank(id, comm.n_ranks())].push(id);
    }
    let twice = smallest_duplicate(comm.all_to_all(lists).concat());
    let twice = comm.all_gather(twice.as_slice()).concat();
    match twice.iter().min() {
        None => Ok(()),
        Some(id) => Err(Error::input(format!("element {id} is defined twice"))
            .expected("a number of its own for each element")),
    }
}

/// Collective. Adds, without members, the sets that only other ranks have.
fn unite_set_names(comm: &Comm, sets: &mut Sets) {
    let kinds = [
        sets.nodes.keys().cloned().collect::<Vec<_>>(),
        sets.cells.keys().cloned().collect(),
        sets.faces.keys().cloned().collect(),
    ];
    // A name cannot hold a character that ends it, so each is preceded by its length.
    let mut bytes = Vec::new();
    for (kind, names) in kinds.iter().enumerate() {
        for name in names {
            bytes.push(kind as u8);
            bytes.extend((name.len() as u64).to_ne_bytes());
            bytes.extend(name.as_bytes());
        }
    }
    for list in comm.all_gather(&bytes) {
        let mut rest = &list[..];
        while let [kind, tail @ ..] = rest {
            let (length, tail) = tail.split_at(size_of::<u64>());
            let length = bytemuck::pod_read_unaligned::<u64>(length) as usize;
            let (name, tail) = tail.split_at(length);
            let name = String::from_utf8_lossy(name).into_owned();
            match kind {
                0 => drop(sets.nodes.entry(name).or_default()),
                1 => drop(sets.cells.entry(name).or_default()),
                _ => drop(sets.faces.entry(name).or_default()),
            }
            rest = tail;
        }
    }
}

/// Collective. The cells destined for this rank, with exactly their nodes.
fn migrate(comm: &Comm, mesh: Mesh, parts: &[u32]) -> Mesh {
    let mut is_used = vec![false; mesh.n_nodes()];
    for &node in &mesh.cells.nodes {
        is_used[node as usize] = true;
    }
    let is_moving = parts.iter().any(|&part| part as usize != comm.rank());
    if !comm.any(is_moving || is_used.contains(&false)) {
        return mesh;
    }
    let cells_of_part = Graph::from_pairs(comm.n_ranks(), || {
        parts.iter().zip(0..).map(|(&part, cell)| (part, cell))
    });
    let mut cutter = Cutter::new(&mesh);
    let mut cut = |rank: usize| match cells_of_part.row(rank) {
        [] => Vec::new(),
        cells => to_bytes(&cutter.cut(cells).0),
    };
    let sends = (0..comm.n_ranks()).map(&mut cut).collect();
    let names = pieces::empty_like(&mesh.sets);
    drop(mesh);
    let mut merger = Merger::new(Mesh {
        sets: pieces::empty_like(&names),
        ..Mesh::default()
    });
    for bytes in comm.all_to_all(sends) {
        merger.add(&from_bytes(&bytes, &names));
    }
    merger.finish()
}

/// Collective. Sends each cell to the owners of its nodes.
fn add_ghost_cells(comm: &Comm, own: Mesh, mut node_owners: Vec<u32>) -> Held {
    let n_owned_cells = own.n_cells();
    let (sends, owner_sends) = cut_ghost_cells(comm, &own, &node_owners);
    let pieces = comm.all_to_all(sends);
    let piece_owners = comm.all_to_all(owner_sends);
    if pieces.iter().all(Vec::is_empty) {
        return Held {
            mesh: own,
            n_owned_cells,
            node_owners,
        };
    }
    let names = pieces::empty_like(&own.sets);
    let mut merger = Merger::new(own);
    for (bytes, owners) in pieces.iter().zip(piece_owners) {
        let nodes = merger.add(&from_bytes(bytes, &names));
        for (node, owner) in nodes.into_iter().zip(owners) {
            match node_owners.get_mut(node as usize) {
                Some(known) => *known = owner,
                None => node_owners.push(owner),
            }
        }
    }
    Held {
        mesh: merger.finish(),
        n_owned_cells,
        node_owners,
    }
}

/// For each rank, the cells that touch its nodes, as bytes, and the owner of each of their nodes.
fn cut_ghost_cells(comm: &Comm, own: &Mesh, node_owners: &[u32]) -> (Vec<Vec<u8>>, Vec<Vec<u32>>) {
    let mut wanted: Vec<Vec<u32>> = vec![Vec::new(); comm.n_ranks()];
    for cell in 0..own.n_cells() {
        for &node in own.cells.nodes_of(cell) {
            let owner = node_owners[node as usize] as usize;
            let list = &mut wanted[owner];
            if owner != comm.rank() && list.last() != Some(&(cell as u32)) {
                list.push(cell as u32);
            }
        }
    }
    let mut sends = vec![Vec::new(); comm.n_ranks()];
    let mut owner_sends = vec![Vec::new(); comm.n_ranks()];
    if wanted.iter().any(|cells| !cells.is_empty()) {
        let mut cutter = Cutter::new(own);
        for (rank, cells) in wanted
            .iter()
            .enumerate()
            .filter(|(_, cells)| !cells.is_empty())
        {
            let (piece, nodes) = cutter.cut(cells);
            sends[rank] = to_bytes(&piece);
            owner_sends[rank] = nodes.iter().map(|&n| node_owners[n as usize]).collect();
        }
    }
    (sends, owner_sends)
}

#[cfg(test)]
mod tests;
