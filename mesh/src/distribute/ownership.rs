//! Which rank owns each node.
//!
//! A node belongs to one of the ranks whose own cells touch it. Nodes that several ranks touch are grouped by the set
//! of these ranks; each group, usually the sheet of nodes between two parts, is cut across its longest extent into
//! equal runs, one for each rank. So every rank gets its half of each of its borders (owning all to the lowest rank
//! would load that rank), and as runs are contiguous both sides need few ghost cells (a random half would double them).
//!
//! Invariant: all ranks that touch a node name the same owner, with no word to each other after the meeting.

use super::ids::{meeting_rank, mix};
use crate::{Comm, Mesh};
use std::collections::BTreeMap;

/// Collective. Owner of each node of `own`, the cells this rank owns and their nodes.
pub(super) fn node_owners(comm: &Comm, own: &Mesh) -> Vec<u32> {
    let mut owners = vec![comm.rank() as u32; own.n_nodes()];
    for (ranks, mut nodes) in shared_nodes(comm, own) {
        deal_out(own, &ranks, &mut nodes, &mut owners);
    }
    owners
}

/// Collective. Nodes of this rank that other ranks touch, by the set of all ranks that do.
fn shared_nodes(comm: &Comm, own: &Mesh) -> BTreeMap<Vec<u32>, Vec<u32>> {
    let n_ranks = comm.n_ranks();
    if n_ranks == 1 {
        return BTreeMap::new();
    }
    let mut ids = vec![Vec::new(); n_ranks];
    let mut nodes = vec![Vec::new(); n_ranks];
    for (&id, node) in own.node_ids.iter().zip(0u32..) {
        let keeper = meeting_rank(id, n_ranks);
        ids[keeper].push(id);
        nodes[keeper].push(node);
    }
    let replies = comm.all_to_all(answer(comm.all_to_all(ids)));

    let mut groups: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
    for (reply, nodes) in replies.iter().zip(&nodes) {
        let mut rest = &reply[..];
        while let [place, n_sharers, tail @ ..] = rest {
            let (sharers, tail) = tail.split_at(*n_sharers as usize);
            let node = nodes[*place as usize];
            match groups.get_mut(sharers) {
                Some(group) => group.push(node),
                None => drop(groups.insert(sharers.to_vec(), vec![node])),
            }
            rest = tail;
        }
    }
    groups
}

/// For each rank, about those numbers in its list that other ranks have too: place in the list, number of ranks, ranks.
fn answer(lists: Vec<Vec<u64>>) -> Vec<Vec<u32>> {
    let mut holders: Vec<(u64, u32, u32)> = Vec::new();
    for (ids, rank) in lists.iter().zip(0..) {
        holders.extend(ids.iter().zip(0..).map(|(&id, place)| (id, rank, place)));
    }
    holders.sort_unstable();
    let mut replies = vec![Vec::new(); lists.len()];
    for group in holders
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|group| group.len() > 1)
    {
        for &(_, rank, place) in group {
            let reply = &mut replies[rank as usize];
            reply.extend([place, group.len() as u32]);
            reply.extend(group.iter().map(|&(_, sharer, _)| sharer));
        }
    }
    replies
}

/// Gives each of `ranks` an equal run of `nodes` along their longest extent.
fn deal_out(own: &Mesh, ranks: &[u32], nodes: &mut [u32], owners: &mut [u32]) {
    let at = |node: u32, axis: usize| own.coords[node as usize][axis];
    let extent = |axis: usize| {
        let lo = nodes
            .iter()
            .fold(f64::INFINITY, |lo, &n| lo.min(at(n, axis)));
        let hi = nodes
            .iter()
            .fold(f64::NEG_INFINITY, |hi, &n| hi.max(at(n, axis)));
        hi - lo
    };
    let longest = (1..3).fold(0, |best, axis| {
        if extent(axis) > extent(best) {
            axis
        } else {
            best
        }
    });
    nodes.sort_unstable_by(|&a, &b| {
        let ids = own.node_ids[a as usize].cmp(&own.node_ids[b as usize]);
        at(a, longest).total_cmp(&at(b, longest)).then(ids)
    });
    // Groups of few nodes would always favor the same end of the list of ranks.
    let first = ranks
        .iter()
        .fold(0, |hash, &rank| mix(hash ^ u64::from(rank))) as usize;
    for (place, &node) in nodes.iter().enumerate() {
        let run = place * ranks.len() / nodes.len();
        owners[node as usize] = ranks[(first % ranks.len() + run) % ranks.len()];
    }
}

#[cfg(test)]
mod tests {
    use super::node_owners;
    use crate::comm::run_threads;
    use crate::generate::generate_slice;
    use crate::test_meshes::unit_bricks;
    use crate::{CellType, Comm};
    use std::collections::BTreeMap;

    fn owners_everywhere(comm: &Comm) -> Vec<BTreeMap<u64, u32>> {
        let slice = generate_slice(&unit_bricks(CellType::Hex8, [8; 3]), comm, None).unwrap();
        let owners = node_owners(comm, &slice);
        let pairs: Vec<[u64; 2]> = slice
            .node_ids
            .iter()
            .zip(&owners)
            .map(|(&id, &o)| [id, u64::from(o)])
            .collect();
        let of_rank = |pairs: &Vec<[u64; 2]>| pairs.iter().map(|p| (p[0], p[1] as u32)).collect();
        comm.all_gather(&pairs).iter().map(of_rank).collect()
    }

    #[test]
    fn ranks_agree_and_an_owner_touches_its_nodes() {
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let ranks = owners_everywhere(comm);
                for view in &ranks {
                    for (id, &owner) in view {
                        assert_eq!(ranks[owner as usize].get(id), Some(&owner));
                    }
                }
            });
        }
    }

    #[test]
    fn borders_are_shared_evenly() {
        for n_ranks in [2, 4, 8] {
            run_threads(n_ranks, |comm| {
                let (rank, ranks) = (comm.rank(), owners_everywhere(comm));
                let n_owned = ranks[rank]
                    .values()
                    .filter(|&&o| o as usize == rank)
                    .count();
                let mean = 729.0 / n_ranks as f64;
                assert!(
                    (n_owned as f64 / mean - 1.0).abs() < 0.05,
                    "{n_owned} of {mean}"
                );
            });
        }
    }
}
