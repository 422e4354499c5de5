//! Numbers of the input as keys: a hash that is the same on every rank, a map by it, and the rank that keeps the
//! books of a number.
//!
//! Invariant: nothing here depends on the process or the run.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A well-mixed function of `x`: the output function of SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, Fast
/// splittable pseudorandom number generators, OOPSLA 2014).
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The rank that keeps the books of `key`, whoever holds it: all who hold it can meet there.
pub(crate) fn meeting_rank(key: u64, n_ranks: usize) -> usize {
    (mix(key) % n_ranks as u64) as usize
}

/// Hasher for keys that are single numbers.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, x: u64) {
        self.0 = mix(self.0 ^ x);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Local index of each number.
pub(crate) type IdMap = HashMap<u64, u32, BuildHasherDefault<IdHasher>>;

/// The smallest number that occurs more than once.
pub(crate) fn smallest_duplicate(mut ids: Vec<u64>) -> Option<u64> {
    ids.sort_unstable();
    ids.windows(2).find(|w| w[0] == w[1]).map(|w| w[0])
}
