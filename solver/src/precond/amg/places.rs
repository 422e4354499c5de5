//! `Places`: places for the columns of a few rows of a sparse product at a time, found without a search.
//!
//! Rows that follow each other have most of their columns in common: a column keeps its place, until too many places are
//! in use.
//!
//! Invariant: keeps its memory from row to row; knows no numbers.

/// Places after which all are given up, so that what stands in the places of a row lies close together.
const MAX_PLACES: usize = 64;
/// Mark of a column without a place.
const NONE: u32 = u32::MAX;

/// Places of columns.
pub(super) struct Places {
    place_of: Vec<u32>,
    /// Column of each place.
    columns: Vec<u32>,
    /// Bit p of word w: whether the rows at hand have place 64 w + p.
    present: Vec<u64>,
}

impl Places {
    /// No places for `n_columns` columns.
    pub(super) fn new(n_columns: usize) -> Self {
        Places {
            place_of: vec![NONE; n_columns],
            columns: Vec::new(),
            present: Vec::new(),
        }
    }

    /// Number of places in use.
    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    /// The place of `column`, which the rows at hand now have.
    #[inline(always)]
    pub(super) fn take(&mut self, column: u32) -> u32 {
        let mut place = self.place_of[column as usize];
        if place == NONE {
            place = self.add(column);
        }
        self.present[place as usize / 64] |= 1 << (place % 64);
        place
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, column: u32) -> u32 {
        let place = self.columns.len();
        self.place_of[column as usize] = place as u32;
        self.columns.push(column);
        self.present.resize(place / 64 + 1, 0);
        place as u32
    }

    /// Lists place and column of what the rows at hand have, in an order that depends on those before, and begins with new
    /// rows.
    pub(super) fn finish_rows(&mut self, list: &mut Vec<[u32; 2]>) {
        list.clear();
        for (word, present) in self.present.iter_mut().enumerate() {
            let mut left = std::mem::take(present);
            while left != 0 {
                let place = 64 * word + left.trailing_zeros() as usize;
                left &= left - 1;
                list.push([place as u32, self.columns[place]]);
            }
        }
        if self.columns.len() >= MAX_PLACES {
            for &column in &self.columns {
                self.place_of[column as usize] = NONE;
            }
            self.columns.clear();
            self.present.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Places;
    use std::collections::BTreeMap;

    #[test]
    fn every_column_of_a_row_has_its_own_place() {
        let mut places = Places::new(1000);
        let mut list = Vec::new();
        for first in [0, 3, 5, 40, 500, 501] {
            let mut expected = BTreeMap::new();
            for step in 0..170 {
                let column = first + step * 7 % 90;
                let place = places.take(column);
                assert!((place as usize) < places.len());
                assert_eq!(*expected.entry(place).or_insert(column), column);
            }
            assert_eq!(expected.len(), 90);
            places.finish_rows(&mut list);
            let found: BTreeMap<u32, u32> = list.iter().map(|&[p, c]| (p, c)).collect();
            assert_eq!((found, list.len()), (expected, 90));
            places.finish_rows(&mut list);
            assert!(list.is_empty());
        }
    }
}
