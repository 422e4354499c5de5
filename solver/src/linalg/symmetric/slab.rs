//! `Slab`: some consecutive rows of a symmetric matrix, stored by halves.
//!
//! Invariant: columns are valid and strictly below the diagonal; [`Slab`]s are made in `build.rs` only and never
//! changed. The kernels rely on that.

use super::Scalar;
use super::kernels::{self, Matrix, Work};
use std::ops::Range;

/// Rows of blocks, compressed.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks<T> {
    /// First block of each row and of the row behind the last.
    pub(super) row_start: Vec<u32>,
    /// Column of each block.
    pub(super) columns: Vec<u32>,
    /// Blocks, row-major, and padding.
    pub(super) values: Vec<T>,
}

/// Some consecutive rows of a symmetric matrix.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    /// Rows of the matrix.
    pub(super) rows: Range<usize>,
    /// Blocks below the diagonal in columns of the slab; rows and columns are counted from the slab's first row.
    pub(super) interior: Blocks<T>,
    /// Diagonal blocks, exactly symmetric, and padding.
    pub(super) diagonal: Vec<T>,
    /// Inverses of the diagonal blocks as the sweeps use them, exactly symmetric, and padding.
    pub(super) inverse: Vec<T>,
    /// Rows, counted from the slab's first, where the sweeps use another diagonal block than that of the matrix.
    pub(super) shifted_rows: Vec<u32>,
    /// What such a block has more, and padding.
    pub(super) shifts: Vec<T>,
    /// Rows with blocks in columns of earlier slabs, counted from the slab's first row.
    pub(super) border_rows: Vec<u32>,
    /// These blocks; a column is a place in `touched`.
    pub(super) border: Blocks<T>,
    /// Rows of earlier slabs that the border couples to, ascending.
    pub(super) touched: Vec<u32>,
}

impl<T: Scalar> Slab<T> {
    /// Place of the slab's scalars in a vector.
    pub(super) fn scalars<const B: usize>(&self) -> Range<usize> {
        self.rows.start * B..self.rows.end * B
    }

    /// The blocks within the slab, as the kernels see them.
    pub(super) fn matrix(&self) -> Matrix<'_, T> {
        Matrix {
            row_start: &self.interior.row_start,
            columns: &self.interior.columns,
            values: &self.interior.values,
            diagonal: &self.diagonal,
            inverse: &self.inverse,
            shifted_rows: &self.shifted_rows,
            shifts: &self.shifts,
        }
    }

    pub(super) fn memory(&self) -> usize {
        let blocks = |b: &Blocks<T>| {
            size_of_val(b.row_start.as_slice())
                + size_of_val(b.columns.as_slice())
                + size_of_val(b.values.as_slice())
        };
        blocks(&self.interior)
            + blocks(&self.border)
            + size_of_val(self.diagonal.as_slice())
            + size_of_val(self.inverse.as_slice())
            + size_of_val(self.shifted_rows.as_slice())
            + size_of_val(self.shifts.as_slice())
            + size_of_val(self.border_rows.as_slice())
            + size_of_val(self.touched.as_slice())
    }

    /// Product of the border with `x`, a vector of the whole matrix, negative if asked for: added to the slab's own
    /// entries `y`; returned are its part of x.y, and the entries of the touched rows.
    pub(super) fn border_product<const B: usize>(
        &self,
        x: &[T],
        y: &mut [T],
        is_negative: bool,
    ) -> (f64, Vec<T>) {
        let mut sent = vec![T::ZERO; self.touched.len() * B];
        let dot = kernels::run::<T, B>(Work::Border {
            matrix: Matrix {
                row_start: &self.border.row_start,
                columns: &self.border.columns,
                values: &self.border.values,
                diagonal: &[],
                inverse: &[],
                shifted_rows: &[],
                shifts: &[],
            },
            rows: &self.border_rows,
            touched: &self.touched,
            all: x,
            x: &x[self.scalars::<B>()],
            sent: &mut sent,
            y,
            is_negative,
        });
        (dot, sent)
    }

    /// Adds `values`, a block of scalars for each touched row, to the entries `y` of the rows `rows`.
    pub(super) fn deliver<const B: usize>(&self, values: &[T], rows: Range<usize>, y: &mut [T]) {
        let start = self
            .touched
            .partition_point(|&row| (row as usize) < rows.start);
        let end = self
            .touched
            .partition_point(|&row| (row as usize) < rows.end);
        let values = values[start * B..end * B].chunks_exact(B);
        for (row, values) in self.touched[start..end].iter().zip(values) {
            let at = (*row as usize - rows.start) * B;
            for (y, value) in y[at..at + B].iter_mut().zip(values) {
                *y = *y + *value;
            }
        }
    }
}
