//! `Border`: the blocks of a slab's rows in columns outside the slab.
//!
//! Invariant: most rows have none; only those that do are kept.

/// Rows with blocks in some of the columns outside a slab.
pub(super) struct Border<const B: usize> {
    /// Rows, counted from the first of the slab, ascending.
    rows: Vec<u32>,
    /// First block of each row, and the end.
    start: Vec<u32>,
    columns: Vec<u32>,
    blocks: Vec<[[f32; B]; B]>,
}

impl<const B: usize> Border<B> {
    pub(super) fn new() -> Self {
        Border {
            rows: Vec::new(),
            start: vec![0],
            columns: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// Adds a block; rows come in ascending order.
    pub(super) fn push(&mut self, row: u32, column: u32, block: [[f32; B]; B]) {
        if self.rows.last() != Some(&row) {
            self.rows.push(row);
            self.start.push(self.columns.len() as u32);
        }
        self.columns.push(column);
        self.blocks.push(block);
        let end = self.start.len() - 1;
        self.start[end] = self.columns.len() as u32;
    }

    /// r -= A x on the rows of the border; `r` begins with the first row of the slab.
    pub(super) fn subtract(&self, x: &[[f32; B]], r: &mut [[f32; B]]) {
        for (&row, range) in self.rows.iter().zip(self.start.windows(2)) {
            let range = range[0] as usize..range[1] as usize;
            let mut sum = [0.0; B];
            for (&column, block) in self.columns[range.clone()].iter().zip(&self.blocks[range]) {
                let x = &x[column as usize];
                for i in 0..B {
                    for j in 0..B {
                        sum[i] += block[i][j] * x[j];
                    }
                }
            }
            let r = &mut r[row as usize];
            (0..B).for_each(|i| r[i] -= sum[i]);
        }
    }

    pub(super) fn memory(&self) -> usize {
        size_of_val(self.rows.as_slice())
            + size_of_val(self.start.as_slice())
            + size_of_val(self.columns.as_slice())
            + size_of_val(self.blocks.as_slice())
    }
}
