//! The last step of distribution: numbers for nodes and cells.
//!
//! Owned nodes are ordered for bandwidth, ghosts by global number, cells by their nodes.
//!
//! Invariant: renames and sorts what is held; adds and drops nothing.

use super::Held;
use super::ids::IdMap;
use super::pieces::renumbered;
use crate::mesh::Sets;
use crate::reorder::bandwidth_order;
use crate::{CellFace, Cells, Comm, Error, IndexMap, LocalMesh, Result};
use std::collections::BTreeMap;

/// Collective. The local mesh of what this rank holds.
pub(super) fn number_nodes(comm: &Comm, held: Held) -> Result<LocalMesh> {
    let me = comm.rank() as u32;
    let n_nodes = held.node_owners.len();
    let owned: Vec<u32> = nodes_where(&held, |owner| owner == me);
    let mut ghosts: Vec<u32> = nodes_where(&held, |owner| owner != me);
    let owned = best_order(&held.mesh.cells, owned, &ghosts);

    let mut new_of_old = vec![0; n_nodes];
    for (&node, new) in owned.iter().zip(0..) {
        new_of_old[node as usize] = new;
    }
    let globals = ghost_globals(comm, &held, &owned, &ghosts)?;
    ghosts.sort_unstable_by_key(|&node| globals[node as usize]);
    for (&node, new) in ghosts.iter().zip(owned.len() as u32..) {
        new_of_old[node as usize] = new;
    }
    let ghost_globals = ghosts.iter().map(|&node| globals[node as usize]).collect();
    let nodes = IndexMap::new(comm, owned.len(), ghost_globals);
    let order: Vec<u32> = owned.into_iter().chain(ghosts).collect();
    Ok(assemble(comm, &held, nodes, &order, &new_of_old))
}

fn nodes_where(held: &Held, is_wanted: impl Fn(u32) -> bool) -> Vec<u32> {
    let owners = held.node_owners.iter().zip(0..);
    owners
        .filter(|&(&owner, _)| is_wanted(owner))
        .map(|(_, node)| node)
        .collect()
}

/// The owned nodes in their final order.
fn best_order(cells: &Cells, owned: Vec<u32>, ghosts: &[u32]) -> Vec<u32> {
    let mut place = vec![0; owned.len() + ghosts.len()];
    for (&node, new) in owned.iter().chain(ghosts).zip(0..) {
        place[node as usize] = new;
    }
    let all: Vec<u32> = (0..cells.len() as u32).collect();
    let order = bandwidth_order(&renumbered(cells, &all, &place), owned.len());
    order.into_iter().map(|new| owned[new as usize]).collect()
}

/// Collective. Global number of each ghost node, by node; asked of the owners by the number of the input.
fn ghost_globals(comm: &Comm, held: &Held, owned: &[u32], ghosts: &[u32]) -> Result<Vec<u64>> {
    let ids = &held.mesh.node_ids;
    let mut asked: Vec<Vec<u32>> = vec![Vec::new(); comm.n_ranks()];
    for &node in ghosts {
        asked[held.node_owners[node as usize] as usize].push(node);
    }
    let questions: Vec<Vec<u64>> = asked
        .iter()
        .map(|nodes| nodes.iter().map(|&n| ids[n as usize]).collect())
        .collect();
    let questions = comm.all_to_all(questions);

    let offset = comm.sum_below(owned.len() as u64);
    let mut place = IdMap::default();
    if questions.iter().any(|ids| !ids.is_empty()) {
        place.extend(
            owned
                .iter()
                .zip(0..)
                .map(|(&node, new)| (ids[node as usize], new)),
        );
    }
    let answer = |id: &u64| match place.get(id) {
        Some(&new) => Ok(offset + u64::from(new)),
        None => Err(Error::input(format!(
            "node {id} has different coordinates on different ranks"
        ))
        .expected("one place for each node number")),
    };
    let answers: Result<Vec<Vec<u64>>> = questions
        .iter()
        .map(|ids| ids.iter().map(answer).collect())
        .collect();
    let answers = comm.all_to_all(comm.all_ok(answers)?);

    let mut globals = vec![u64::MAX; ids.len()];
    for (nodes, numbers) in asked.iter().zip(answers) {
        for (&node, number) in nodes.iter().zip(numbers) {
            globals[node as usize] = number;
        }
    }
    Ok(globals)
}

/// Collective. The local mesh in final order: new node i is old node `node_order[i]`.
fn assemble(
    comm: &Comm,
    held: &Held,
    nodes: IndexMap,
    node_order: &[u32],
    new_of_old: &[u32],
) -> LocalMesh {
    let mesh = &held.mesh;
    let first_node = |cell: u32| {
        let nodes = mesh.cells.nodes_of(cell as usize).iter();
        nodes.map(|&n| new_of_old[n as usize]).min()
    };
    let mut keys: Vec<(bool, Option<u32>, u64, u32)> = (0..mesh.n_cells() as u32)
        .map(|cell| {
            let is_ghost = cell as usize >= held.n_owned_cells;
            (
                is_ghost,
                first_node(cell),
                mesh.cell_ids[cell as usize],
                cell,
            )
        })
        .collect();
    keys.sort_unstable();
    let cell_order: Vec<u32> = keys.into_iter().map(|(.., cell)| cell).collect();
    let mut new_cell = vec![0; cell_order.len()];
    for (&cell, new) in cell_order.iter().zip(0..) {
        new_cell[cell as usize] = new;
    }
    LocalMesh {
        cells: renumbered(&mesh.cells, &cell_order, new_of_old),
        n_owned_cells: held.n_owned_cells,
        cell_ids: cell_order
            .iter()
            .map(|&c| mesh.cell_ids[c as usize])
            .collect(),
        coords: node_order
            .iter()
            .map(|&n| mesh.coords[n as usize])
            .collect(),
        node_ids: node_order
            .iter()
            .map(|&n| mesh.node_ids[n as usize])
            .collect(),
        nodes,
        sets: renamed_sets(&mesh.sets, new_of_old, &new_cell),
        n_global_cells: comm.sum_u64(held.n_owned_cells as u64),
    }
}

fn renamed_sets(sets: &Sets, new_node: &[u32], new_cell: &[u32]) -> Sets {
    let face = |f: &CellFace| CellFace {
        cell: new_cell[f.cell as usize],
        face: f.face,
    };
    Sets {
        nodes: renamed(&sets.nodes, |&node| new_node[node as usize]),
        cells: renamed(&sets.cells, |&cell| new_cell[cell as usize]),
        faces: renamed(&sets.faces, face),
    }
}

/// The sets with other names for their members, ascending and without repetition.
fn renamed<T: Ord>(
    sets: &BTreeMap<String, Vec<T>>,
    rename: impl Fn(&T) -> T,
) -> BTreeMap<String, Vec<T>> {
    let rename_set = |(name, members): (&String, &Vec<T>)| {
        let mut members: Vec<T> = members.iter().map(&rename).collect();
        members.sort_unstable();
        members.dedup();
        (name.clone(), members)
    };
    sets.iter().map(rename_set).collect()
}
