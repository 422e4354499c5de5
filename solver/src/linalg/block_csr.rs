//! `BlockCsr`: sparse rows of dense B x B blocks, the storage of every matrix of the solver.
//!
//! What goes in: a pattern (row starts, columns) and the values of its blocks. What comes out: rows to walk over. Of a
//! symmetric matrix it holds the *lower half*: the blocks on and below the diagonal, so that a row ends with its diagonal
//! block.
//!
//! Invariant: one rank's numbers only; knows no ranks, meshes or boundary conditions.

use super::Scalar;

/// Sparse matrix of `n_rows` x `n_cols` blocks of B x B scalars each, compressed by rows.
///
/// A block size of 1 is the usual CSR format. Columns ascend within a row and occur once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockCsr<T, const B: usize> {
    /// Number of block rows.
    pub n_rows: usize,
    /// Number of block columns.
    pub n_cols: usize,
    /// First block of each row, and the number of blocks at the end: `n_rows + 1` entries.
    pub row_start: Vec<usize>,
    /// Block column of each block, ascending within a row.
    pub columns: Vec<u32>,
    /// B * B scalars a block, row-major; block k at `values[k * B * B..]`.
    pub values: Vec<T>,
}

impl<T: Scalar, const B: usize> BlockCsr<T, B> {
    /// Scalars in one block.
    pub const BLOCK_LEN: usize = B * B;

    /// A matrix of zeros with the given pattern.
    ///
    /// # Panics
    /// In debug builds, if the pattern is not valid: row starts that descend, columns out of range or not ascending.
    pub fn zeros(n_cols: usize, row_start: Vec<usize>, columns: Vec<u32>) -> Self {
        let values = vec![T::ZERO; columns.len() * Self::BLOCK_LEN];
        let matrix = BlockCsr {
            n_rows: row_start.len() - 1,
            n_cols,
            row_start,
            columns,
            values,
        };
        debug_assert!(matrix.is_well_formed());
        matrix
    }

    /// A matrix from blocks in any order, (row, column, block); blocks at the same place are added up in the order
    /// given.
    ///
    /// # Panics
    /// If a row or a column is out of range.
    pub fn from_blocks(
        n_rows: usize,
        n_cols: usize,
        mut blocks: Vec<(u32, u32, [[T; B]; B])>,
    ) -> Self {
        blocks.sort_by_key(|&(row, column, _)| (row, column));
        let mut row_start = vec![0; n_rows + 1];
        let mut columns: Vec<u32> = Vec::with_capacity(blocks.len());
        let mut values: Vec<T> = Vec::with_capacity(blocks.len() * Self::BLOCK_LEN);
        let mut last = None;
        for (row, column, block) in blocks {
            assert!((column as usize) < n_cols, "column {column} of {n_cols}");
            if last != Some((row, column)) {
                last = Some((row, column));
                columns.push(column);
                values.resize(columns.len() * Self::BLOCK_LEN, T::ZERO);
                row_start[row as usize + 1] += 1;
            }
            let at = values.len() - Self::BLOCK_LEN;
            for (value, add) in values[at..].iter_mut().zip(block.iter().flatten()) {
                *value = *value + *add;
            }
        }
        for row in 0..n_rows {
            row_start[row + 1] += row_start[row];
        }
        BlockCsr {
            n_rows,
            n_cols,
            row_start,
            columns,
            values,
        }
    }

    /// Number of stored blocks.
    pub fn n_blocks(&self) -> usize {
        self.columns.len()
    }

    /// Places of the blocks of row `row`, indices into `columns`.
    pub fn row(&self, row: usize) -> std::ops::Range<usize> {
        self.row_start[row]..self.row_start[row + 1]
    }

    /// Scalars of block `k`, row-major.
    pub fn block(&self, k: usize) -> &[T] {
        &self.values[k * Self::BLOCK_LEN..(k + 1) * Self::BLOCK_LEN]
    }

    /// Scalars of block `k`, row-major, to be changed.
    pub fn block_mut(&mut self, k: usize) -> &mut [T] {
        &mut self.values[k * Self::BLOCK_LEN..(k + 1) * Self::BLOCK_LEN]
    }

    /// Place of the block at (`row`, `column`), if it is stored.
    pub fn find(&self, row: usize, column: u32) -> Option<usize> {
        let blocks = self.row(row);
        let found = self.columns[blocks.clone()].binary_search(&column);
        found.ok().map(|at| blocks.start + at)
    }

    /// The same matrix with its values rounded to another scalar type.
    pub fn to_scalar<U: Scalar>(&self) -> BlockCsr<U, B> {
        let mut values = vec![U::ZERO; self.values.len()];
        for (rounded, value) in values.iter_mut().zip(&self.values) {
            *rounded = U::from_f64(value.to_f64());
        }
        BlockCsr {
            n_rows: self.n_rows,
            n_cols: self.n_cols,
            row_start: self.row_start.clone(),
            columns: self.columns.clone(),
            values,
        }
    }

    /// Memory of the stored arrays, bytes.
    pub fn memory(&self) -> usize {
        size_of_val(self.row_start.as_slice())
            + size_of_val(self.columns.as_slice())
            + size_of_val(self.values.as_slice())
    }

    /// Whether the rows are those of the lower half of a square matrix: none has a column behind its diagonal block, which
    /// is always stored.
    pub fn is_lower_half(&self) -> bool {
        let ends_with_diagonal = |row: usize| {
            let columns = &self.columns[self.row(row)];
            columns.last().is_some_and(|&column| column as usize == row)
        };
        self.n_rows == self.n_cols && (0..self.n_rows).all(ends_with_diagonal)
    }

    /// Whether row starts, columns and values fit together as the type's documentation says.
    pub fn is_well_formed(&self) -> bool {
        let starts = &self.row_start;
        let fits = starts.len() == self.n_rows + 1
            && starts[0] == 0
            && starts.is_sorted()
            && starts[self.n_rows] == self.columns.len()
            && self.values.len() == self.columns.len() * Self::BLOCK_LEN;
        fits && (0..self.n_rows).all(|row| {
            let columns = &self.columns[self.row(row)];
            columns.windows(2).all(|w| w[0] < w[1])
                && columns.last().is_none_or(|&c| (c as usize) < self.n_cols)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::BlockCsr;

    #[test]
    fn blocks_are_sorted_and_added_up() {
        let block = |v: f64| [[v, 0.0], [0.0, -v]];
        let blocks = vec![
            (2, 1, block(1.0)),
            (0, 2, block(2.0)),
            (2, 1, block(4.0)),
            (0, 0, block(8.0)),
        ];
        let a = BlockCsr::from_blocks(3, 3, blocks);
        assert!(a.is_well_formed());
        assert_eq!(a.row_start, [0, 2, 2, 3]);
        assert_eq!(a.columns, [0, 2, 1]);
        assert_eq!(a.block(2), [5.0, 0.0, 0.0, -5.0]);
        assert_eq!((a.find(0, 2), a.find(1, 2)), (Some(1), None));
        assert_eq!(a.to_scalar::<f32>().block(1), [2.0, 0.0, 0.0, -2.0]);
    }

    #[test]
    fn a_broken_pattern_is_seen() {
        let good = BlockCsr::<f64, 1>::zeros(3, vec![0, 2, 3], vec![0, 2, 1]);
        for (columns, row_start) in [
            (vec![2, 0, 1], vec![0, 2, 3]),
            (vec![0, 3, 1], vec![0, 2, 3]),
            (vec![0, 2, 1], vec![0, 4, 3]),
        ] {
            let bad = BlockCsr {
                columns,
                row_start,
                ..good.clone()
            };
            assert!(!bad.is_well_formed());
        }
    }
}
