//! `BlockSums`: sums of blocks of one half of a symmetric coarse matrix, in which a slab of fine rows adds up its products.
//!
//! What is summed up is W, of which the matrix is W + Wᵀ: a block on or below the diagonal (by global number) as it is, one
//! above it transposed, in the row of its column. Each row has its own small hash table of columns: fine rows near each
//! other meet the same coarse rows, whose tables then are in cache.
//!
//! Invariant: sums stand in the order in which their pairs first occurred, whatever the tables do.

use super::coarse_rows::Columns;

/// Entries of the tables of rows at first: twice as many as most rows have columns.
const ENTRIES: usize = 64;

/// Sums of blocks by pairs of coarse nodes.
pub(super) struct BlockSums<'a, const C: usize> {
    numbering: &'a Columns,
    /// A table of `n_entries`, a power of two, for each row in [`Columns`]. Memory of rows that are not met stays untouched.
    tables: Vec<Entry>,
    n_entries: usize,
    /// Columns of each row.
    n_used: Vec<u32>,
    /// Row and column of each sum, as [`Columns`] numbers them.
    keys: Vec<[u32; 2]>,
    blocks: Vec<[[f64; C]; C]>,
}

/// Column plus one, 0 for none, and the place of its sum.
type Entry = [u32; 2];

impl<'a, const C: usize> BlockSums<'a, C> {
    /// No sums.
    pub(super) fn new(numbering: &'a Columns) -> Self {
        BlockSums {
            numbering,
            tables: vec![[0; 2]; numbering.len() * ENTRIES],
            n_entries: ENTRIES,
            n_used: vec![0; numbering.len()],
            keys: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// Where the block (`row`, `column`) of W is summed up: its place in [`BlockSums::blocks`], and whether its transpose is
    /// meant. A new sum is zero.
    #[inline(always)]
    pub(super) fn find(&mut self, row: u32, column: u32) -> (u32, bool) {
        let is_lower = self.numbering.is_lower(row, column);
        let (row, column) = if is_lower {
            (row, column)
        } else {
            (column, row)
        };
        let [found, place] = self.tables[self.entry(row, column)];
        if found == 0 {
            return (self.insert(row, column), !is_lower);
        }
        (place, !is_lower)
    }

    /// Entry of a pair, or the empty one where it belongs.
    #[inline(always)]
    fn entry(&self, row: u32, column: u32) -> usize {
        let (first, last) = (row as usize * self.n_entries, self.n_entries - 1);
        let mut at = column as usize & last;
        while self.tables[first + at][0] != column + 1 && self.tables[first + at][0] != 0 {
            at = (at + 1) & last;
        }
        first + at
    }

    /// Place of a new sum.
    #[cold]
    #[inline(never)]
    fn insert(&mut self, row: u32, column: u32) -> u32 {
        self.n_used[row as usize] += 1;
        if 4 * self.n_used[row as usize] as usize > 3 * self.n_entries {
            self.enlarge_tables();
        }
        let place = self.keys.len() as u32;
        self.keys.push([row, column]);
        self.blocks.push([[0.0; C]; C]);
        let entry = self.entry(row, column);
        self.tables[entry] = [column + 1, place];
        place
    }

    fn enlarge_tables(&mut self) {
        self.n_entries *= 2;
        self.tables = vec![[0; 2]; self.n_used.len() * self.n_entries];
        for place in 0..self.keys.len() {
            let [row, column] = self.keys[place];
            let entry = self.entry(row, column);
            self.tables[entry] = [column + 1, place as u32];
        }
    }

    /// The sums.
    pub(super) fn blocks(&mut self) -> &mut [[[f64; C]; C]] {
        &mut self.blocks
    }

    /// All sums, with row and column.
    pub(super) fn for_each(&mut self, mut f: impl FnMut(u32, u32, &mut [[f64; C]; C])) {
        for (&[row, column], block) in self.keys.iter().zip(&mut self.blocks) {
            f(row, column, block);
        }
    }

    /// Row and column of each sum, as [`Columns`] numbers them, and the sums.
    pub(super) fn into_parts(self) -> (Vec<[u32; 2]>, Vec<[[f64; C]; C]>) {
        (self.keys, self.blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::BlockSums;
    use crate::precond::amg::coarse_rows::Columns;
    use fem_mesh::{Comm, IndexMap};
    use std::collections::BTreeMap;

    #[test]
    fn every_pair_has_its_own_sum() {
        let numbering = Columns::new(&IndexMap::new(&Comm::alone(), 300, Vec::new()));
        let mut sums = BlockSums::<1>::new(&numbering);
        let mut expected = BTreeMap::new();
        let mut order = Vec::new();
        for step in 0..100_000u32 {
            let row = step % 300;
            let column = (row + (step.wrapping_mul(2_654_435_761) >> 7) % 140) % 300;
            let (place, is_transposed) = sums.find(row, column);
            assert_eq!(is_transposed, row < column);
            sums.blocks()[place as usize][0][0] += f64::from(step);
            let pair = [row.max(column), row.min(column)];
            *expected.entry(pair).or_insert_with(|| {
                order.push(pair);
                0.0
            }) += f64::from(step);
        }
        let (keys, blocks) = sums.into_parts();
        assert_eq!(keys, order);
        for (key, block) in keys.iter().zip(blocks) {
            assert_eq!(block[0][0], expected[key]);
        }
    }
}
