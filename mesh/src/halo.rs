//! `Halo`: the plan by which values of an [`IndexMap`] travel between owners and ghosts.
//!
//! In: an index map. Forward, ghosts get their owners' values; in reverse, owners add up what their ghosts gathered.
//! Forward comes in two halves, so that work that needs no ghosts can run while messages are on their way. A value
//! may have any number of components (`width`), stored together: entry i is `values[i * width..(i + 1) * width]`.
//!
//! Invariant: knows only indices and ranks; keeps no values between calls.

use crate::comm::Exchange;
use crate::{Comm, IndexMap};
use bytemuck::Pod;
use std::ops::{AddAssign, Range};

/// Who sends which entries to whom, for one index map, as one rank sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halo {
    n_owned: usize,
    n_ghosts: usize,
    /// Owned local indices that other ranks hold as ghosts, by rank.
    send_indices: Vec<u32>,
    /// Part of `send_indices` for each rank that holds some of them, ascending by rank.
    sends: Vec<(usize, Range<usize>)>,
    /// Part of the ghosts that each owner holds, ascending by rank.
    receives: Vec<(usize, Range<usize>)>,
}

/// Forward messages on their way, between [`Halo::start`] and [`Halo::finish`].
pub struct HaloExchange<T> {
    exchange: Exchange<T>,
    width: usize,
}

impl Halo {
    /// Collective. The plan for `map`.
    pub fn new(comm: &Comm, map: &IndexMap) -> Self {
        let mut receives: Vec<(usize, Range<usize>)> = Vec::new();
        let mut wanted = vec![Vec::new(); comm.n_ranks()];
        for (ghost, &owner) in map.ghost_owners().iter().enumerate() {
            let owner = owner as usize;
            wanted[owner].push(map.ghosts()[ghost]);
            match receives.last_mut() {
                Some((rank, range)) if *rank == owner => range.end = ghost + 1,
                _ => receives.push((owner, ghost..ghost + 1)),
            }
        }

        let mut send_indices = Vec::new();
        let mut sends = Vec::new();
        for (rank, globals) in comm.all_to_all(wanted).into_iter().enumerate() {
            if !globals.is_empty() {
                let start = send_indices.len();
                let local = globals.iter().map(|global| (global - map.offset()) as u32);
                send_indices.extend(local);
                sends.push((rank, start..send_indices.len()));
            }
        }
        Halo {
            n_owned: map.n_owned(),
            n_ghosts: map.n_ghosts(),
            send_indices,
            sends,
            receives,
        }
    }

    /// Collective among neighbors. Sends off the values of owned entries that others hold as ghosts. `owned` has
    /// `width` values for each owned index and may change again as soon as this returns.
    pub fn start<T: Pod>(&self, comm: &Comm, owned: &[T], width: usize) -> HaloExchange<T> {
        assert_eq!(owned.len(), self.n_owned * width, "one entry per index");
        let mut packed = Vec::with_capacity(self.send_indices.len() * width);
        for &index in &self.send_indices {
            let first = index as usize * width;
            packed.extend_from_slice(&owned[first..first + width]);
        }
        let sends = slices_by_rank(&self.sends, &packed, width);
        let receives = lengths_by_rank(&self.receives, width);
        HaloExchange {
            exchange: comm.start_exchange(&sends, &receives),
            width,
        }
    }

    /// Collective among neighbors. Waits for the values and writes them to `ghosts`, `width` for each ghost index.
    pub fn finish<T: Pod>(&self, comm: &Comm, exchange: HaloExchange<T>, ghosts: &mut [T]) {
        let width = exchange.width;
        assert_eq!(ghosts.len(), self.n_ghosts * width, "one entry per index");
        let received = comm.finish_exchange(exchange.exchange);
        for ((_, range), values) in self.receives.iter().zip(received) {
            ghosts[range.start * width..range.end * width].copy_from_slice(&values);
        }
    }

    /// Collective among neighbors. Writes the owners' values to `ghosts`: [`Halo::start`] and [`Halo::finish`] in one.
    pub fn forward<T: Pod>(&self, comm: &Comm, owned: &[T], ghosts: &mut [T], width: usize) {
        let exchange = self.start(comm, owned, width);
        self.finish(comm, exchange, ghosts);
    }

    /// Collective among neighbors. Brings a list of any length for each ghost from its owner. The list of owned entry i
    /// is `values[start[i] * width..start[i + 1] * width]`; the result holds the lists of the ghosts in the same way.
    pub fn forward_lists<T: Pod>(
        &self,
        comm: &Comm,
        start: &[u32],
        values: &[T],
        width: usize,
    ) -> (Vec<u32>, Vec<T>) {
        assert_eq!(start.len(), self.n_owned + 1, "one list per index");
        let lengths: Vec<u32> = start.windows(2).map(|w| w[1] - w[0]).collect();
        let mut ghost_lengths = vec![0; self.n_ghosts];
        self.forward(comm, &lengths, &mut ghost_lengths, 1);
        let mut ghost_start = vec![0];
        for (ghost, length) in ghost_lengths.iter().enumerate() {
            ghost_start.push(ghost_start[ghost] + length);
        }
        let list = |index: u32| {
            let index = index as usize;
            &values[start[index] as usize * width..start[index + 1] as usize * width]
        };
        let packed: Vec<(usize, Vec<T>)> = (self.sends.iter())
            .map(|(rank, range)| {
                let indices = self.send_indices[range.clone()].iter();
                (*rank, indices.flat_map(|&i| list(i)).copied().collect())
            })
            .collect();
        let sends: Vec<(usize, &[T])> = packed.iter().map(|(r, v)| (*r, v.as_slice())).collect();
        let receives: Vec<(usize, usize)> = (self.receives.iter())
            .map(|(rank, range)| {
                let n = ghost_start[range.end] - ghost_start[range.start];
                (*rank, n as usize * width)
            })
            .collect();
        let exchange = comm.start_exchange(&sends, &receives);
        (ghost_start, comm.finish_exchange(exchange).concat())
    }

    /// Collective among neighbors. Adds each ghost's values to its owner's. Contributions are added in the order of
    /// ranks, so that the same input gives the same bits.
    pub fn reverse_add<T: Pod + AddAssign>(
        &self,
        comm: &Comm,
        ghosts: &[T],
        owned: &mut [T],
        width: usize,
    ) {
        assert_eq!(ghosts.len(), self.n_ghosts * width, "one entry per index");
        assert_eq!(owned.len(), self.n_owned * width, "one entry per index");
        let sends = slices_by_rank(&self.receives, ghosts, width);
        let receives = lengths_by_rank(&self.sends, width);
        let exchange = comm.start_exchange(&sends, &receives);
        for ((_, range), values) in self.sends.iter().zip(comm.finish_exchange::<T>(exchange)) {
            let indices = &self.send_indices[range.clone()];
            for (&index, entry) in indices.iter().zip(values.chunks_exact(width)) {
                let first = index as usize * width;
                for (sum, value) in owned[first..first + width].iter_mut().zip(entry) {
                    *sum += *value;
                }
            }
        }
    }

    /// Number of ranks that this one exchanges values with.
    pub fn n_neighbors(&self) -> usize {
        let mut ranks: Vec<usize> = (self.sends.iter().chain(&self.receives))
            .map(|(rank, _)| *rank)
            .collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks.len()
    }

    /// Bytes that this rank sends and receives in one forward exchange of `width` values of type `T` per index.
    pub fn bytes_per_exchange<T>(&self, width: usize) -> u64 {
        ((self.send_indices.len() + self.n_ghosts) * width * size_of::<T>()) as u64
    }

    /// Owned local indices that other ranks hold as ghosts; one that several ranks hold appears once for each.
    pub fn send_indices(&self) -> &[u32] {
        &self.send_indices
    }
}

/// The values of each range, with the rank they belong to.
fn slices_by_rank<'a, T>(
    ranges: &[(usize, Range<usize>)],
    values: &'a [T],
    width: usize,
) -> Vec<(usize, &'a [T])> {
    (ranges.iter())
        .map(|(rank, r)| (*rank, &values[r.start * width..r.end * width]))
        .collect()
}

/// The number of values of each range, with the rank they belong to.
fn lengths_by_rank(ranges: &[(usize, Range<usize>)], width: usize) -> Vec<(usize, usize)> {
    ranges
        .iter()
        .map(|(rank, r)| (*rank, r.len() * width))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::Halo;
    use crate::comm::run_threads;
    use crate::{Comm, IndexMap};

    /// Rank r owns r + 1 indices (the last rank none) and holds every third index of the others.
    fn map(comm: &Comm) -> IndexMap {
        let n = comm.n_ranks();
        let sizes: Vec<u64> = (0..n)
            .map(|r| if r + 1 == n && n > 1 { 0 } else { r as u64 + 1 })
            .collect();
        let start: u64 = sizes[..comm.rank()].iter().sum();
        let end = start + sizes[comm.rank()];
        let all = 0..sizes.iter().sum();
        let ghosts = all.filter(|g| g % 3 == 0 && !(start..end).contains(g));
        IndexMap::new(comm, sizes[comm.rank()] as usize, ghosts.collect())
    }

    fn on_1_to_4_ranks(body: impl Fn(&Comm) + Sync) {
        for n in 1..=4 {
            run_threads(n, &body);
        }
    }

    #[test]
    fn forward_brings_the_owners_values() {
        on_1_to_4_ranks(|comm| {
            let map = map(comm);
            let halo = Halo::new(comm, &map);
            let numbers: Vec<u64> = (0..map.n_owned()).map(|i| map.global(i)).collect();
            let mut ghosts = vec![u64::MAX; map.n_ghosts()];
            halo.forward(comm, &numbers, &mut ghosts, 1);
            assert_eq!(ghosts, map.ghosts());

            let pairs: Vec<f32> = numbers
                .iter()
                .flat_map(|&g| [g as f32, -(g as f32)])
                .collect();
            let mut ghosts = vec![0.0f32; 2 * map.n_ghosts()];
            let exchange = halo.start(comm, &pairs, 2);
            halo.finish(comm, exchange, &mut ghosts);
            let expected: Vec<f32> = map
                .ghosts()
                .iter()
                .flat_map(|&g| [g as f32, -(g as f32)])
                .collect();
            assert_eq!(ghosts, expected);
        });
    }

    #[test]
    fn lists_of_any_length_travel_whole() {
        on_1_to_4_ranks(|comm| {
            let map = map(comm);
            let halo = Halo::new(comm, &map);
            let list = |global: u64| (0..2 * (global % 4)).map(move |k| 100 * global + k);
            let mut start = vec![0];
            let mut values = Vec::new();
            for local in 0..map.n_owned() {
                values.extend(list(map.global(local)));
                start.push(values.len() as u32 / 2);
            }
            let (ghost_start, ghosts) = halo.forward_lists(comm, &start, &values, 2);
            for (ghost, &global) in map.ghosts().iter().enumerate() {
                let at = 2 * ghost_start[ghost] as usize..2 * ghost_start[ghost + 1] as usize;
                assert!(ghosts[at].iter().copied().eq(list(global)));
            }
        });
    }

    #[test]
    fn reverse_adds_once_per_holder() {
        on_1_to_4_ranks(|comm| {
            let map = map(comm);
            let halo = Halo::new(comm, &map);
            let mut owned = vec![0.5; 2 * map.n_owned()];
            let ghosts: Vec<f64> = (0..map.n_ghosts()).flat_map(|_| [1.0, 10.0]).collect();
            halo.reverse_add(comm, &ghosts, &mut owned, 2);
            for (local, entry) in owned.chunks_exact(2).enumerate() {
                let is_shared = map.global(local).is_multiple_of(3);
                let holders = if is_shared {
                    comm.n_ranks() as f64 - 1.0
                } else {
                    0.0
                };
                assert_eq!(entry, [0.5 + holders, 0.5 + 10.0 * holders]);
            }
        });
    }

    #[test]
    fn both_ends_count_the_same_bytes() {
        on_1_to_4_ranks(|comm| {
            let map = map(comm);
            let halo = Halo::new(comm, &map);
            let total = comm.sum_u64(halo.bytes_per_exchange::<f64>(3));
            assert_eq!(total, 2 * 24 * comm.sum_u64(map.n_ghosts() as u64));
            assert!(halo.n_neighbors() < comm.n_ranks());
        });
    }
}
