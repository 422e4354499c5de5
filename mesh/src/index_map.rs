//! `IndexMap`: which global indices a rank owns, which it holds as ghosts, and who owns those.
//!
//! The one distribution type of the program: nodes, block rows and coarse unknowns alike. Global indices are
//! contiguous by rank: rank r owns `offset .. offset + n_owned`. Local indices count owned entries first (in global
//! order), then ghosts in the order of [`IndexMap::ghosts`], which is sorted by global index and so by owner.
//!
//! Invariant: plain data; knows neither meshes nor how values travel (that is [`crate::Halo`]).

use crate::Comm;

/// Distribution of an index set over ranks, as one rank sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexMap {
    n_owned: usize,
    offset: u64,
    n_global: u64,
    ghosts: Vec<u64>,
    ghost_owners: Vec<u32>,
}

impl IndexMap {
    /// Collective. Owns `n_owned` indices here, contiguous after those of lower ranks, and holds `ghosts` (global
    /// indices owned elsewhere, strictly ascending).
    pub fn new(comm: &Comm, n_owned: usize, ghosts: Vec<u64>) -> Self {
        debug_assert!(ghosts.windows(2).all(|w| w[0] < w[1]));
        let counts = comm.all_gather(&[n_owned as u64]);
        let mut starts = vec![0u64];
        for count in &counts {
            starts.push(starts[starts.len() - 1] + count[0]);
        }
        // With empty ranks several starts coincide: partition_point finds the last of them, the true owner.
        let owner = |g: &u64| (starts.partition_point(|s| s <= g) - 1) as u32;
        let ghost_owners = ghosts.iter().map(owner).collect();
        IndexMap {
            n_owned,
            offset: starts[comm.rank()],
            n_global: starts[comm.n_ranks()],
            ghosts,
            ghost_owners,
        }
    }

    /// Number of indices owned here.
    pub fn n_owned(&self) -> usize {
        self.n_owned
    }

    /// Number of ghost indices held here.
    pub fn n_ghosts(&self) -> usize {
        self.ghosts.len()
    }

    /// Owned and ghost indices together.
    pub fn n_local(&self) -> usize {
        self.n_owned + self.ghosts.len()
    }

    /// Size of the whole index set.
    pub fn n_global(&self) -> u64 {
        self.n_global
    }

    /// Global index of the first owned entry.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Global indices of the ghosts, ascending.
    pub fn ghosts(&self) -> &[u64] {
        &self.ghosts
    }

    /// Owner of each ghost, ascending.
    pub fn ghost_owners(&self) -> &[u32] {
        &self.ghost_owners
    }

    /// Global index of local index `local`.
    pub fn global(&self, local: usize) -> u64 {
        if local < self.n_owned {
            self.offset + local as u64
        } else {
            self.ghosts[local - self.n_owned]
        }
    }

    /// Local index of global index `global`, if it is held here.
    pub fn local(&self, global: u64) -> Option<usize> {
        if (self.offset..self.offset + self.n_owned as u64).contains(&global) {
            Some((global - self.offset) as usize)
        } else {
            self.ghosts
                .binary_search(&global)
                .ok()
                .map(|g| self.n_owned + g)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::IndexMap;
    use crate::comm::run_threads;

    #[test]
    fn owners_are_found_past_empty_ranks() {
        run_threads(4, |comm| {
            let n_owned = [3, 0, 2, 1][comm.rank()];
            let mine = [0..3u64, 3..3, 3..5, 5..6][comm.rank()].clone();
            let ghosts: Vec<u64> = (0..6).filter(|g| !mine.contains(g)).collect();
            let map = IndexMap::new(comm, n_owned, ghosts);
            assert_eq!(map.n_global(), 6);
            for local in 0..map.n_local() {
                assert_eq!(map.local(map.global(local)), Some(local));
            }
            for (ghost, owner) in map.ghosts().iter().zip(map.ghost_owners()) {
                assert_eq!(*owner, [0, 0, 0, 2, 2, 3][*ghost as usize]);
            }
            assert_eq!(map.local(6), None);
        });
    }
}
