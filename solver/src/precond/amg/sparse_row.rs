//! `SparseRow`: one block row that is summed up, its blocks found by column without a search.
//!
//! Invariant: keeps its memory from row to row.

/// A row of R x C blocks, in the order in which their columns first occurred.
pub(super) struct SparseRow<const R: usize, const C: usize> {
    /// Place of each column in the row plus one; 0 if it is not there.
    place: Vec<u32>,
    columns: Vec<u32>,
    blocks: Vec<[[f64; C]; R]>,
}

impl<const R: usize, const C: usize> SparseRow<R, C> {
    /// An empty row of a matrix with `n_columns` columns.
    pub(super) fn new(n_columns: usize) -> Self {
        SparseRow {
            place: vec![0; n_columns],
            columns: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// The block in `column`, zero at first.
    #[inline(always)]
    pub(super) fn block(&mut self, column: u32) -> &mut [[f64; C]; R] {
        let place = &mut self.place[column as usize];
        if *place == 0 {
            self.columns.push(column);
            self.blocks.push([[0.0; C]; R]);
            *place = self.columns.len() as u32;
        }
        &mut self.blocks[*place as usize - 1]
    }

    /// Columns of the blocks.
    pub(super) fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The blocks.
    pub(super) fn blocks(&self) -> &[[[f64; C]; R]] {
        &self.blocks
    }

    /// Empties the row.
    pub(super) fn clear(&mut self) {
        self.columns
            .iter()
            .for_each(|&column| self.place[column as usize] = 0);
        self.columns.clear();
        self.blocks.clear();
    }
}
