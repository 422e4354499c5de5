//! `Upper`: where the blocks above the diagonal of a symmetric matrix are, of which only the lower half is stored.
//!
//! What goes in: the lower half. What comes out: for each row the places of the blocks that later rows store in its
//! column; their transposes are the row's blocks above the diagonal. It costs 8 bytes a block and is for those steps of
//! a set-up that need whole rows.
//!
//! Invariant: structure only; says nothing once the lower half has changed its pattern.

use super::{BlockCsr, Scalar};

/// Blocks above the diagonal, row by row.
#[derive(Clone, Debug)]
pub struct Upper {
    row_start: Vec<u32>,
    blocks: Vec<UpperBlock>,
}

/// A block above the diagonal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpperBlock {
    /// Its column: the row that stores it.
    pub column: u32,
    /// Place of its transpose in the lower half.
    pub place: u32,
}

impl Upper {
    /// The blocks above the diagonal of the matrix with the lower half `lower`.
    ///
    /// # Panics
    /// If `lower` has 2^32 blocks or more.
    pub fn new<T: Scalar, const B: usize>(lower: &BlockCsr<T, B>) -> Self {
        assert!(
            u32::try_from(lower.n_blocks()).is_ok(),
            "fewer than 2^32 blocks on a rank"
        );
        let mut row_start = vec![0u32; lower.n_rows + 2];
        let below = |row: usize| lower.row_start[row]..lower.row_start[row + 1] - 1;
        for row in 0..lower.n_rows {
            for column in &lower.columns[below(row)] {
                row_start[*column as usize + 2] += 1;
            }
        }
        for row in 0..lower.n_rows {
            row_start[row + 2] += row_start[row + 1];
        }
        // Entry r + 1 is where row r goes on; in the end it is where row r + 1 begins.
        let mut blocks = vec![UpperBlock::default(); row_start[lower.n_rows + 1] as usize];
        for row in 0..lower.n_rows {
            for place in below(row) {
                let next = &mut row_start[lower.columns[place] as usize + 1];
                blocks[*next as usize] = UpperBlock {
                    column: row as u32,
                    place: place as u32,
                };
                *next += 1;
            }
        }
        Upper { row_start, blocks }
    }

    /// Blocks above the diagonal of row `row`, columns ascending.
    pub fn row(&self, row: usize) -> &[UpperBlock] {
        &self.blocks[self.row_start[row] as usize..self.row_start[row + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Upper;
    use crate::linalg::BlockCsr;
    use crate::linalg::sample::{lower_half, spring_grid};

    #[test]
    fn every_block_above_the_diagonal_is_found() {
        let full = spring_grid(5, 3.0);
        let lower = lower_half(&full);
        let upper = Upper::new(&lower);
        for row in 0..full.n_rows {
            let above = full.row(row).filter(|&k| full.columns[k] as usize > row);
            assert_eq!(upper.row(row).len(), above.clone().count());
            for (k, found) in above.zip(upper.row(row)) {
                assert_eq!(found.column, full.columns[k]);
                let transposed = lower.block(found.place as usize);
                let expected: Vec<f64> = (0..9)
                    .map(|at| full.block(k)[at % 3 * 3 + at / 3])
                    .collect();
                assert_eq!(transposed, expected);
            }
        }
        let nothing = lower_half(&BlockCsr::<f64, 3>::from_blocks(0, 0, Vec::new()));
        Upper::new(&nothing);
    }
}
