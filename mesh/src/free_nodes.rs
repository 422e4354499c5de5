//! Nodes that belong to no cell: reference points that constraints and loads name.
//!
//! Distribution goes by cells and leaves them out; [`append_free_nodes`] gives them to the last rank afterwards, behind its
//! other nodes, so that no other node changes its number. There are few of them.
//!
//! Invariant: knows numbers, places and names of sets; not what the nodes are for.

use crate::{Comm, Error, IndexMap, LocalMesh, Result};

/// A node of no cell.
#[derive(Clone, Debug, PartialEq)]
pub struct FreeNode {
    /// Number in the input.
    pub id: u64,
    /// Coordinates, m.
    pub x: [f64; 3],
    /// Names of the node sets that it is in.
    pub sets: Vec<String>,
}

/// Collective. Adds `free` (the same on every rank) to `mesh` as nodes of the last rank and to the node sets they name,
/// which come into being on every rank where they are new.
///
/// # Errors
/// A number that occurs twice among them, or that another node has.
pub fn append_free_nodes(comm: &Comm, mesh: &mut LocalMesh, free: &[FreeNode]) -> Result<()> {
    if free.is_empty() {
        return Ok(());
    }
    comm.all_ok(check_ids(mesh, free))?;
    let (n_owned, n_free) = (mesh.nodes.n_owned(), free.len());
    let is_last = comm.rank() + 1 == comm.n_ranks();
    if is_last {
        let shifted = |node: &mut u32| {
            if *node as usize >= n_owned {
                *node += n_free as u32;
            }
        };
        mesh.cells.nodes.iter_mut().for_each(shifted);
        mesh.sets.nodes.values_mut().flatten().for_each(shifted);
        mesh.coords
            .splice(n_owned..n_owned, free.iter().map(|node| node.x));
        mesh.node_ids
            .splice(n_owned..n_owned, free.iter().map(|node| node.id));
    }
    for (node, place) in free.iter().zip(n_owned as u32..) {
        for name in &node.sets {
            let members = mesh.sets.nodes.entry(name.clone()).or_default();
            if is_last {
                members.push(place);
                members.sort_unstable();
                members.dedup();
            }
        }
    }
    let n_owned = n_owned + if is_last { n_free } else { 0 };
    mesh.nodes = IndexMap::new(comm, n_owned, mesh.nodes.ghosts().to_vec());
    Ok(())
}

fn check_ids(mesh: &LocalMesh, free: &[FreeNode]) -> Result<()> {
    let mut ids: Vec<u64> = free.iter().map(|node| node.id).collect();
    ids.sort_unstable();
    let twice = ids
        .windows(2)
        .find(|pair| pair[0] == pair[1])
        .map(|pair| pair[0]);
    let known = mesh
        .node_ids
        .iter()
        .find(|id| ids.binary_search(id).is_ok());
    match twice.or(known.copied()) {
        None => Ok(()),
        Some(id) => Err(Error::input(format!("node {id} is defined twice"))
            .expected("a number of its own for each node")),
    }
}

#[cfg(test)]
mod tests {
    use super::{FreeNode, append_free_nodes};
    use crate::comm::run_threads;
    use crate::test_meshes::unit_bricks;
    use crate::{CellType, Halo, distribute_slices, generate_slice};

    #[test]
    fn the_last_rank_has_them_and_nothing_else_changes() {
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let spec = unit_bricks(CellType::Hex8, [4, 3, 2]);
                let slice = generate_slice(&spec, comm, None).unwrap();
                let before = distribute_slices(comm, slice, None).unwrap().0;
                let free = [9000, 9001].map(|id| FreeNode {
                    id,
                    x: [id as f64, 0.0, 1.0],
                    sets: vec!["tip".to_owned()],
                });
                let mut mesh = before.clone();
                append_free_nodes(comm, &mut mesh, &free).unwrap();
                assert_eq!(mesh.nodes.n_global(), before.nodes.n_global() + 2);
                let globals = |mesh: &crate::LocalMesh| -> Vec<(u64, u64, [f64; 3])> {
                    let nodes = mesh.cells.nodes.iter().map(|&node| node as usize);
                    nodes
                        .map(|n| (mesh.nodes.global(n), mesh.node_ids[n], mesh.coords[n]))
                        .collect()
                };
                assert_eq!(globals(&mesh), globals(&before));
                let is_last = comm.rank() + 1 == n_ranks;
                let n = before.nodes.n_owned() as u32;
                let expected = if is_last { vec![n, n + 1] } else { vec![] };
                assert_eq!(mesh.sets.nodes["tip"], expected);
                assert!(!is_last || mesh.node_ids[n as usize] == 9000);
                // Ghosts still are what their owners have.
                let (owned, ghosts) = mesh.node_ids.split_at(mesh.nodes.n_owned());
                let mut told = vec![0; ghosts.len()];
                Halo::new(comm, &mesh.nodes).forward(comm, owned, &mut told, 1);
                assert_eq!(told, ghosts);
                let again = append_free_nodes(comm, &mut mesh, &free).unwrap_err();
                assert!(
                    again.to_string().contains("node 9000 is defined twice"),
                    "{again}"
                );
            });
        }
    }
}
