//! `Slab`: some consecutive rows of a symmetric matrix, stored by halves, in the order in which kernels read it.
//!
//! What the sweeps read lies in one piece of memory. A column of the interior is stored as the place of its node in a
//! ring: kernels hold the nodes of as many consecutive rows as any row reaches back, row i at place i modulo the length
//! of the ring. That takes two bytes and keeps the nodes in the cache.
//!
//! Blocks of 3 x 3 f32 are stored in pairs (see [`Arrangement`]), symmetric blocks of 3 x 3 by their upper triangle.
//!
//! Invariant: columns are valid and strictly below the diagonal; [`Slab`]s are made in `build.rs` only and never
//! changed. The kernels rely on that.

use super::Scalar;
use super::work::{self, Border, Columns, Matrix, Work};
use crate::linalg::lanes::PADDING;
use crate::linalg::pages::{Place, Region};
use std::ops::Range;

/// Stored scalars of a symmetric block of B x B: its upper triangle, row by row, for 3 x 3; the whole block otherwise.
pub(super) const fn symmetric_len(b: usize) -> usize {
    if b == 3 { 6 } else { b * b }
}

/// Order of the scalars of a row of blocks.
///
/// Blocks follow each other, each row-major; or, for blocks of 3 x 3 f32, blocks two by two are interleaved by rows, so
/// that six lanes of a register belong to a row of both. The last block of a row stands alone, and if the number of those
/// before it is odd, the first.
#[derive(Clone, Copy)]
pub(super) struct Arrangement {
    n: usize,
    block: usize,
    is_paired: bool,
}

impl Arrangement {
    /// Of a row of `n` blocks.
    #[inline(always)]
    pub(super) const fn new<T, const B: usize>(n: usize) -> Self {
        Arrangement {
            n,
            block: B,
            is_paired: Self::is_paired::<T, B>(),
        }
    }

    /// Whether blocks are stored in pairs.
    #[inline(always)]
    pub(super) const fn is_paired<T, const B: usize>() -> bool {
        B == 3 && size_of::<T>() == 4
    }

    /// Place of row `i` of block `k`, in scalars from the first of the row of blocks.
    #[inline(always)]
    pub(super) const fn place(self, k: usize, i: usize) -> usize {
        let Arrangement { n, block: b, .. } = self;
        let first = (n - 1) % 2;
        if !self.is_paired || k == n - 1 || k < first {
            return k * b * b + i * b;
        }
        let (pair, second) = ((k - first) / 2, (k - first) % 2);
        (first + 2 * pair) * b * b + 2 * b * i + b * second
    }
}

/// Numbers of rows and blocks of a slab.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub(super) rows: usize,
    pub(super) interior: usize,
    pub(super) border: usize,
    /// Nodes in the ring.
    pub(super) ring: usize,
}

impl Counts {
    /// Whether places in the ring fit in two bytes.
    pub(super) fn is_narrow(&self) -> bool {
        self.ring <= 1 << u16::BITS
    }
}

/// Some consecutive rows of a symmetric matrix.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    /// Rows of the matrix.
    pub(super) rows: Range<usize>,
    pub(super) counts: Counts,
    pub(super) memory: Region,
    pub(super) places: Places,
    /// Rows, counted from the slab's first, where the sweeps use another diagonal block than that of the matrix.
    pub(super) shifted_rows: Vec<u32>,
    /// What such a block has more, and padding.
    pub(super) shifts: Vec<T>,
    /// Rows with blocks in columns of earlier slabs, counted from the slab's first row.
    pub(super) border_rows: Vec<u32>,
    /// First block of each of these rows and of the row behind the last.
    pub(super) border_start: Vec<u32>,
    /// Columns of these blocks, as places in `touched`.
    pub(super) border_columns: Vec<u32>,
    /// Rows of earlier slabs that the border couples to, ascending.
    pub(super) touched: Vec<u32>,
}

/// Arrays in the memory of a slab; those of scalars are followed by padding.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// Blocks below the diagonal in columns of the slab, by rows.
    pub(super) values: Place,
    /// Their columns, as places in the ring: u16 or u32.
    pub(super) columns: Place,
    /// First of these blocks of each row and of the row behind the last, u32.
    pub(super) row_start: Place,
    /// Inverses of the diagonal blocks as the sweeps use them.
    pub(super) inverse: Place,
    /// Blocks in columns of earlier slabs, by rows.
    pub(super) border: Place,
    /// Diagonal blocks.
    pub(super) diagonal: Place,
}

impl Places {
    /// Memory for a slab, zeroed.
    pub(super) fn allocate<T, const B: usize>(counts: &Counts) -> (Region, Self) {
        let column = if counts.is_narrow() { 2 } else { 4 };
        let scalars = |n: usize| (n + PADDING) * size_of::<T>();
        let (memory, [values, columns, row_start, inverse, border, diagonal]) = Region::new([
            scalars(counts.interior * B * B),
            counts.interior * column,
            (counts.rows + 1) * size_of::<u32>(),
            scalars(counts.rows * symmetric_len(B)),
            scalars(counts.border * B * B),
            scalars(counts.rows * symmetric_len(B)),
        ]);
        let places = Places {
            values,
            columns,
            row_start,
            inverse,
            border,
            diagonal,
        };
        (memory, places)
    }
}

impl<T: Scalar> Slab<T> {
    /// Place of the slab's scalars in a vector.
    pub(super) fn scalars<const B: usize>(&self) -> Range<usize> {
        self.rows.start * B..self.rows.end * B
    }

    /// The blocks within the slab, as the kernels see them.
    pub(super) fn matrix(&self) -> Matrix<'_, T> {
        let (memory, places) = (&self.memory, &self.places);
        Matrix {
            row_start: memory.array(&places.row_start),
            columns: if self.counts.is_narrow() {
                Columns::Narrow(memory.array(&places.columns))
            } else {
                Columns::Wide(memory.array(&places.columns))
            },
            values: memory.array(&places.values),
            diagonal: memory.array(&places.diagonal),
            inverse: memory.array(&places.inverse),
            shifted_rows: &self.shifted_rows,
            shifts: &self.shifts,
            ring: self.counts.ring,
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.memory.size()
            + size_of_val(self.shifted_rows.as_slice())
            + size_of_val(self.shifts.as_slice())
            + size_of_val(self.border_rows.as_slice())
            + size_of_val(self.border_start.as_slice())
            + size_of_val(self.border_columns.as_slice())
            + size_of_val(self.touched.as_slice())
    }

    /// Product of the border with `x`, a vector of the whole matrix, negative if asked for: added to the slab's own
    /// entries `y`; returned are its part of x.y if asked for, and the entries of the touched rows.
    pub(super) fn border_product<const B: usize>(
        &self,
        x: &[T],
        y: &mut [T],
        (is_negative, dot): (bool, bool),
    ) -> (f64, Vec<T>) {
        let mut sent = vec![T::ZERO; self.touched.len() * B];
        let part = work::run::<T, B>(Work::Border {
            border: Border {
                rows: &self.border_rows,
                row_start: &self.border_start,
                columns: &self.border_columns,
                values: self.memory.array(&self.places.border),
                touched: &self.touched,
            },
            all: x,
            x: &x[self.scalars::<B>()],
            sent: &mut sent,
            y,
            is_negative,
            dot,
        });
        (part, sent)
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

#[cfg(test)]
mod tests {
    use super::Arrangement;

    #[test]
    fn pairs_share_rows_and_the_last_block_stands_alone() {
        let starts = |n: usize| -> Vec<[usize; 3]> {
            let arrangement = Arrangement::new::<f32, 3>(n);
            (0..n)
                .map(|k| [0, 1, 2].map(|i| arrangement.place(k, i)))
                .collect()
        };
        let alone = |k: usize| [0, 3, 6].map(|i| 9 * k + i);
        assert_eq!(starts(1), [alone(0)]);
        assert_eq!(starts(2), [alone(0), alone(1)]);
        assert_eq!(starts(3), [[0, 6, 12], [3, 9, 15], alone(2)]);
        assert_eq!(starts(4), [alone(0), [9, 15, 21], [12, 18, 24], alone(3)]);
        let plain = Arrangement::new::<f64, 3>(4);
        assert_eq!((plain.place(2, 1), plain.place(3, 2)), (21, 33));
    }
}
