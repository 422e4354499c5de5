//! The arrays of one slab: filled from the rows of a matrix, and read back.
//!
//! Invariant: the only place that writes a [`Slab`]; see there for what the arrays hold.

use super::Scalar;
use super::build::{place_of, touched_rows};
use super::inverse::invert_symmetric;
use super::slab::{Arrangement, Counts, Places, Slab, symmetric_len};
use super::work::Columns;
use crate::linalg::BlockCsr;
use crate::linalg::lanes::PADDING;
use std::ops::Range;

/// The slab of the rows `rows`. `couplings` has the sums by which the diagonal is enlarged, or is empty.
pub(super) fn build_slab<S: Scalar, T: Scalar, const B: usize>(
    lower: &BlockCsr<S, B>,
    couplings: &[[f64; B]],
    rows: Range<usize>,
) -> Slab<T> {
    let counts = count(lower, &rows);
    let (memory, places) = Places::allocate::<T, B>(&counts);
    let mut slab = Slab {
        counts,
        memory,
        places,
        shifted_rows: Vec::new(),
        shifts: Vec::new(),
        border_rows: Vec::new(),
        border_start: vec![0],
        border_columns: Vec::with_capacity(counts.border),
        touched: touched_rows(lower, &rows),
        rows,
    };
    slab.fill(lower, couplings);
    slab.shifts.extend([T::ZERO; PADDING]);
    slab
}

fn count<S, const B: usize>(lower: &BlockCsr<S, B>, rows: &Range<usize>) -> Counts {
    let (mut interior, mut border, mut reach) = (0, 0, 0);
    for row in rows.clone() {
        let columns = &lower.columns[lower.row_start[row]..lower.row_start[row + 1] - 1];
        let before = columns.partition_point(|&column| (column as usize) < rows.start);
        border += before;
        interior += columns.len() - before;
        if let Some(&first) = columns.get(before) {
            reach = reach.max(row - first as usize);
        }
    }
    Counts {
        rows: rows.len(),
        interior,
        border,
        ring: reach + 1,
    }
}

/// The arrays in the memory of a slab, to be written from front to back.
struct Writer<'a, T> {
    values: &'a mut [T],
    columns: WriterColumns<'a>,
    row_start: &'a mut [u32],
    inverse: &'a mut [T],
    border: &'a mut [T],
    diagonal: &'a mut [T],
    n_blocks: usize,
    n_border: usize,
}

enum WriterColumns<'a> {
    Narrow(&'a mut [u16]),
    Wide(&'a mut [u32]),
}

impl<'a, T: Scalar> Writer<'a, T> {
    fn new(bytes: &'a mut [u8], places: &Places, counts: &Counts) -> Self {
        let places = [
            &places.values,
            &places.columns,
            &places.row_start,
            &places.inverse,
            &places.border,
            &places.diagonal,
        ];
        let arrays = bytes.get_disjoint_mut(places.map(Clone::clone));
        let [values, columns, row_start, inverse, border, diagonal] =
            arrays.expect("arrays lie apart");
        Writer {
            values: bytemuck::cast_slice_mut(values),
            columns: if counts.is_narrow() {
                WriterColumns::Narrow(bytemuck::cast_slice_mut(columns))
            } else {
                WriterColumns::Wide(bytemuck::cast_slice_mut(columns))
            },
            row_start: bytemuck::cast_slice_mut(row_start),
            inverse: bytemuck::cast_slice_mut(inverse),
            border: bytemuck::cast_slice_mut(border),
            diagonal: bytemuck::cast_slice_mut(diagonal),
            n_blocks: 0,
            n_border: 0,
        }
    }

    /// Writes the blocks `range` of `lower`, the interior of a row; columns less `first_row` modulo `ring` are stored.
    fn interior<S: Scalar, const B: usize>(
        &mut self,
        lower: &BlockCsr<S, B>,
        range: Range<usize>,
        first_row: usize,
        ring: usize,
    ) {
        write_row(
            &mut self.values[self.n_blocks * B * B..],
            lower,
            range.clone(),
        );
        for (column, at) in lower.columns[range].iter().zip(self.n_blocks..) {
            let place = (*column as usize - first_row) % ring;
            match &mut self.columns {
                WriterColumns::Narrow(columns) => columns[at] = place as u16,
                WriterColumns::Wide(columns) => columns[at] = place as u32,
            }
            self.n_blocks = at + 1;
        }
    }

    /// Writes the blocks `range` of `lower`, the border of a row.
    fn border<S: Scalar, const B: usize>(&mut self, lower: &BlockCsr<S, B>, range: Range<usize>) {
        write_row(
            &mut self.border[self.n_border * B * B..],
            lower,
            range.clone(),
        );
        self.n_border += range.len();
    }
}

/// Writes the blocks `range` of `lower`, which make a row.
fn write_row<S: Scalar, T: Scalar, const B: usize>(
    values: &mut [T],
    lower: &BlockCsr<S, B>,
    range: Range<usize>,
) {
    let arrangement = Arrangement::new::<T, B>(range.len());
    for (k, block) in range.enumerate() {
        for (i, row) in lower.block(block).chunks_exact(B).enumerate() {
            let at = arrangement.place(k, i);
            for (target, value) in values[at..at + B].iter_mut().zip(row) {
                *target = T::from_f64(value.to_f64());
            }
        }
    }
}

/// Writes a symmetric block.
fn write_symmetric<T: Scalar, const B: usize>(values: &mut [T], block: &[[f64; B]; B]) {
    let is_stored = |i: usize, j: usize| symmetric_len(B) == B * B || i <= j;
    let entries = (0..B * B).map(|at| (at / B, at % B));
    let stored = entries.filter(|&(i, j)| is_stored(i, j));
    for (value, (i, j)) in values.iter_mut().zip(stored) {
        *value = T::from_f64(block[i][j]);
    }
}

impl<T: Scalar> Slab<T> {
    /// Fills the arrays of a slab that is otherwise empty.
    ///
    /// # Panics
    /// If it has 2^32 blocks or more.
    fn fill<S: Scalar, const B: usize>(&mut self, lower: &BlockCsr<S, B>, couplings: &[[f64; B]]) {
        let (counts, first) = (self.counts, self.rows.start);
        let mut writer = Writer::<T>::new(self.memory.bytes_mut(), &self.places, &counts);
        for row in self.rows.clone() {
            let (local, blocks) = (row - first, lower.row(row));
            let columns = &lower.columns[blocks.start..blocks.end - 1];
            let before = columns.partition_point(|&column| (column as usize) < first);
            let border = blocks.start..blocks.start + before;
            if before > 0 {
                let places = lower.columns[border.clone()].iter();
                let places = places.map(|&column| place_of(&self.touched, column) as u32);
                self.border_columns.extend(places);
                writer.border(lower, border.clone());
                self.border_rows.push(local as u32);
                self.border_start.push(as_u32(writer.n_border));
            }
            writer.interior(lower, border.end..blocks.end - 1, first, counts.ring);
            writer.row_start[local + 1] = as_u32(writer.n_blocks);

            let diagonal: [[f64; B]; B] = symmetric_part(lower.block(blocks.end - 1));
            let mut damped = diagonal;
            if let Some(coupling) = couplings.get(row) {
                (0..B).for_each(|i| damped[i][i] += 0.5 * coupling[i]);
            }
            let (inverse, inverted) = invert_symmetric(&damped);
            let at = local * symmetric_len(B);
            write_symmetric(&mut writer.diagonal[at..at + symmetric_len(B)], &diagonal);
            write_symmetric(&mut writer.inverse[at..at + symmetric_len(B)], &inverse);
            if inverted != diagonal {
                let shift = |i: usize, j: usize| inverted[i][j] - diagonal[i][j];
                let shift: [[f64; B]; B] =
                    std::array::from_fn(|i| std::array::from_fn(|j| shift(i, j)));
                let at = self.shifts.len();
                self.shifts.resize(at + symmetric_len(B), T::ZERO);
                write_symmetric(&mut self.shifts[at..], &shift);
                self.shifted_rows.push(local as u32);
            }
        }
    }

    /// Columns and blocks of row `row` of the slab up to the diagonal, ascending.
    pub(super) fn lower_blocks<const B: usize>(&self, row: usize) -> Vec<(u32, [[T; B]; B])> {
        let mut found = Vec::new();
        if let Ok(place) = self.border_rows.binary_search(&(row as u32)) {
            let range = self.border_start[place] as usize..self.border_start[place + 1] as usize;
            let blocks = read_row(self.memory.array(&self.places.border), range.clone());
            let columns = self.border_columns[range].iter();
            found.extend(columns.map(|&k| self.touched[k as usize]).zip(blocks));
        }
        let matrix = self.matrix();
        let range = matrix.row_start[row] as usize..matrix.row_start[row + 1] as usize;
        for (k, block) in range.clone().zip(read_row(matrix.values, range)) {
            let place = match matrix.columns {
                Columns::Narrow(columns) => usize::from(columns[k]),
                Columns::Wide(columns) => columns[k] as usize,
            };
            let ring = self.counts.ring;
            let back = (row % ring + ring - place) % ring;
            found.push(((self.rows.start + row - back) as u32, block));
        }
        let stored = &matrix.diagonal[row * symmetric_len(B)..];
        let mut diagonal = [[T::ZERO; B]; B];
        let is_stored = |i: usize, j: usize| symmetric_len(B) == B * B || i <= j;
        let entries = (0..B * B).map(|at| (at / B, at % B));
        for ((i, j), value) in entries.filter(|&(i, j)| is_stored(i, j)).zip(stored) {
            (diagonal[i][j], diagonal[j][i]) = (*value, *value);
        }
        found.push(((self.rows.start + row) as u32, diagonal));
        found
    }
}

/// The blocks `range` of those with the scalars `values`, which make a row.
fn read_row<T: Scalar, const B: usize>(
    values: &[T],
    range: Range<usize>,
) -> impl Iterator<Item = [[T; B]; B]> {
    let arrangement = Arrangement::new::<T, B>(range.len());
    let values = &values[range.start * B * B..];
    (0..range.len()).map(move |k| {
        std::array::from_fn(|i| {
            let at = arrangement.place(k, i);
            std::array::from_fn(|j| values[at + j])
        })
    })
}

fn as_u32(n: usize) -> u32 {
    u32::try_from(n).expect("fewer than 2^32 blocks in a slab")
}

/// Half of a block and its transpose: assembly leaves diagonal blocks symmetric only up to rounding.
fn symmetric_part<S: Scalar, const B: usize>(block: &[S]) -> [[f64; B]; B] {
    let entry = |i: usize, j: usize| block[i * B + j].to_f64();
    std::array::from_fn(|i| std::array::from_fn(|j| 0.5 * (entry(i, j) + entry(j, i))))
}
