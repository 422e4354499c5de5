//! From a full matrix to slabs of half of it.
//!
//! Invariant: slabs follow from the pattern alone; each slab's arrays are first touched by the thread that fills them.

use super::inverse::invert_symmetric;
use super::slab::{Blocks, PADDING, Slab};
use super::{Scalar, SymmetricSlabs};
use crate::linalg::{BlockCsr, pages};
use rayon::prelude::{
    IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator,
};
use std::ops::Range;

/// Most slabs of a matrix.
const MAX_SLABS: usize = 32;

/// Layers of nodes that a slab of a cube has at least.
const LAYERS: usize = 8;

/// The diagonal D that the sweeps use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damping {
    /// That of the matrix: right where few blocks couple the slabs.
    #[default]
    None,
    /// Enlarged by half the absolute row sums of the blocks C that couple slabs, so that sweeps converge whatever the
    /// slabs: M + M^T - A = D + (row sums of |C|) - C is then positive definite (after the l1 smoothers of Baker,
    /// Falgout, Kolev and Yang, SIAM J. Sci. Comput. 33, 2011).
    L1,
}

impl<T: Scalar, const B: usize> SymmetricSlabs<T, B> {
    /// From a full symmetric matrix, of which the lower triangle is read. Threaded.
    ///
    /// # Panics
    /// If the matrix is not square.
    pub fn from_full<S: Scalar>(full: &BlockCsr<S, B>, damping: Damping) -> Self {
        let rows = slab_rows(&full.row_start, n_slabs(full.n_rows));
        Self::from_full_in(full, rows, damping)
    }

    /// As [`SymmetricSlabs::from_full`], where the rows also have blocks `outside`, in columns of other ranks. They are
    /// not part of the matrix, but [`Damping::L1`] heeds them.
    ///
    /// # Panics
    /// If the matrix is not square, or the number of rows differs.
    pub fn with_outside<S: Scalar>(
        full: &BlockCsr<S, B>,
        outside: &BlockCsr<S, B>,
        damping: Damping,
    ) -> Self {
        assert_eq!(full.n_rows, full.n_cols, "a symmetric matrix is square");
        assert_eq!(full.n_rows, outside.n_rows, "rows of the blocks outside");
        let source = Source {
            full,
            outside: Some(outside),
            damping,
        };
        let slabs = slab_rows(&full.row_start, n_slabs(full.n_rows))
            .into_par_iter()
            .map(|rows| build_slab(&source, rows))
            .collect();
        SymmetricSlabs {
            n_rows: full.n_rows,
            slabs,
        }
    }

    /// As [`SymmetricSlabs::from_full`], in slabs that the caller chooses: consecutive, and all rows of the matrix.
    pub(super) fn from_full_in<S: Scalar>(
        full: &BlockCsr<S, B>,
        rows: Vec<Range<usize>>,
        damping: Damping,
    ) -> Self {
        assert_eq!(full.n_rows, full.n_cols, "a symmetric matrix is square");
        let slabs = rows
            .into_par_iter()
            .map(|rows| build_slab(&Source::of(full, damping), rows))
            .collect();
        SymmetricSlabs {
            n_rows: full.n_rows,
            slabs,
        }
    }

    /// As [`SymmetricSlabs::from_full`]; gives the memory of the full matrix back piece by piece on the way, so that
    /// both are never held at once.
    pub fn consume<S: Scalar>(mut full: BlockCsr<S, B>, damping: Damping) -> Self {
        assert_eq!(full.n_rows, full.n_cols, "a symmetric matrix is square");
        let rows = slab_rows(&full.row_start, n_slabs(full.n_rows));
        let mut slabs = Vec::with_capacity(rows.len());
        let at_a_time = rayon::current_num_threads();
        for group in rows.rchunks(at_a_time) {
            let built = group
                .par_iter()
                .rev()
                .map(|rows| build_slab(&Source::of(&full, damping), rows.clone()));
            slabs.extend(built.collect::<Vec<_>>());
            let left = full.row_start[group[0].start];
            full.columns.truncate(left);
            full.columns.shrink_to_fit();
            full.values.truncate(left * B * B);
            full.values.shrink_to_fit();
        }
        slabs.reverse();
        SymmetricSlabs {
            n_rows: full.n_rows,
            slabs,
        }
    }

    /// The matrix with both halves.
    pub fn to_full(&self) -> BlockCsr<T, B> {
        let mut lower: Vec<Vec<(u32, &[T])>> = Vec::with_capacity(self.n_rows);
        let mut row_start = vec![0; self.n_rows + 1];
        for slab in &self.slabs {
            for row in 0..slab.rows.len() {
                let blocks = slab.lower_blocks::<B>(row);
                let global = slab.rows.start + row;
                row_start[global + 1] += blocks.len() + 1;
                for (column, _) in &blocks {
                    row_start[*column as usize + 1] += 1;
                }
                lower.push(blocks);
            }
        }
        for row in 0..self.n_rows {
            row_start[row + 1] += row_start[row];
        }
        let mut next = row_start.clone();
        let n_blocks = row_start[self.n_rows];
        let mut columns = vec![0; n_blocks];
        let mut values = vec![T::ZERO; n_blocks * B * B];
        let mut put = |row: usize, column: usize, value: &dyn Fn(usize, usize) -> T| {
            let k = next[row];
            next[row] += 1;
            columns[k] = column as u32;
            for (at, target) in values[k * B * B..(k + 1) * B * B].iter_mut().enumerate() {
                *target = value(at / B, at % B);
            }
        };
        for slab in &self.slabs {
            for row in slab.rows.clone() {
                // Blocks above the diagonal come from later rows: they find those below it and the diagonal in place.
                for &(column, block) in &lower[row] {
                    put(row, column as usize, &|i, j| block[i * B + j]);
                }
                let at = (row - slab.rows.start) * B * B;
                put(row, row, &|i, j| slab.diagonal[at + i * B + j]);
            }
        }
        for (row, blocks) in lower.iter().enumerate() {
            for &(column, block) in blocks {
                put(column as usize, row, &|i, j| block[j * B + i]);
            }
        }
        BlockCsr {
            n_rows: self.n_rows,
            n_cols: self.n_rows,
            row_start,
            columns,
            values,
        }
    }

    /// The same matrix with its values, and the inverses of its diagonal blocks, rounded to another type.
    pub fn to_scalar<U: Scalar>(&self) -> SymmetricSlabs<U, B> {
        let slabs = self.slabs.par_iter().map(Slab::to_scalar).collect();
        SymmetricSlabs {
            n_rows: self.n_rows,
            slabs,
        }
    }
}

impl<T: Scalar> Slab<T> {
    /// Columns and blocks below the diagonal of row `row` of the slab, ascending.
    fn lower_blocks<const B: usize>(&self, row: usize) -> Vec<(u32, &[T])> {
        let mut found = Vec::new();
        let take = |blocks: &Blocks<T>, row: usize| {
            blocks.row_start[row] as usize..blocks.row_start[row + 1] as usize
        };
        if let Ok(place) = self.border_rows.binary_search(&(row as u32)) {
            for k in take(&self.border, place) {
                let column = self.touched[self.border.columns[k] as usize];
                found.push((column, &self.border.values[k * B * B..(k + 1) * B * B]));
            }
        }
        for k in take(&self.interior, row) {
            let column = self.rows.start as u32 + self.interior.columns[k];
            found.push((column, &self.interior.values[k * B * B..(k + 1) * B * B]));
        }
        found
    }

    fn to_scalar<U: Scalar>(&self) -> Slab<U> {
        let round = |values: &[T]| {
            let mut rounded = pages::with_capacity(values.len());
            rounded.extend(values.iter().map(|v| U::from_f64(v.to_f64())));
            rounded
        };
        let blocks = |from: &Blocks<T>| Blocks {
            row_start: from.row_start.clone(),
            columns: from.columns.clone(),
            values: round(&from.values),
        };
        Slab {
            rows: self.rows.clone(),
            interior: blocks(&self.interior),
            diagonal: round(&self.diagonal),
            inverse: round(&self.inverse),
            is_damped: self.is_damped,
            border_rows: self.border_rows.clone(),
            border: blocks(&self.border),
            touched: self.touched.clone(),
        }
    }
}

/// Number of slabs of a matrix: a power of two such that the slabs of a cube of nodes, numbered layer by layer, have
/// [`LAYERS`] layers or more.
///
/// For 64^3 nodes of trilinear hexahedra that is 8 slabs, and 7 % of the stored blocks couple two of them.
pub(super) fn n_slabs(n_rows: usize) -> usize {
    let layers = (n_rows as f64).cbrt().round() as usize;
    let most = (layers / LAYERS).clamp(1, MAX_SLABS);
    1 << most.ilog2()
}

/// Cuts the rows in `n_slabs` pieces with about the same number of blocks.
pub(super) fn slab_rows(row_start: &[usize], n_slabs: usize) -> Vec<Range<usize>> {
    let n_rows = row_start.len() - 1;
    let n_blocks = row_start[n_rows];
    let cut = |s: usize| match s {
        s if s == n_slabs => n_rows,
        s => row_start[..n_rows].partition_point(|&start| start < n_blocks * s / n_slabs),
    };
    (0..n_slabs).map(|s| cut(s)..cut(s + 1)).collect()
}

/// What slabs are built from.
struct Source<'a, S, const B: usize> {
    full: &'a BlockCsr<S, B>,
    outside: Option<&'a BlockCsr<S, B>>,
    damping: Damping,
}

impl<'a, S, const B: usize> Source<'a, S, B> {
    fn of(full: &'a BlockCsr<S, B>, damping: Damping) -> Self {
        Source {
            full,
            outside: None,
            damping,
        }
    }
}

fn build_slab<S: Scalar, T: Scalar, const B: usize>(
    source: &Source<S, B>,
    rows: Range<usize>,
) -> Slab<T> {
    let (full, damping) = (source.full, source.damping);
    let touched = touched_rows(full, &rows);
    let (n_interior, n_border) = count_blocks(full, &rows);
    let n_rows = rows.len();
    let mut slab = Slab {
        interior: Blocks::with_capacity::<B>(n_rows, n_interior),
        diagonal: pages::with_capacity(n_rows * B * B + PADDING),
        inverse: pages::with_capacity(n_rows * B * B + PADDING),
        is_damped: damping != Damping::None,
        border_rows: Vec::new(),
        border: Blocks::with_capacity::<B>(0, n_border),
        touched,
        rows,
    };
    for row in slab.rows.clone() {
        slab.push_row(source, row);
    }
    let zeros = [T::ZERO; PADDING];
    for values in [&mut slab.interior.values, &mut slab.border.values] {
        values.extend(zeros);
    }
    slab.diagonal.extend(zeros);
    slab.inverse.extend(zeros);
    slab
}

impl<T: Scalar> Slab<T> {
    /// Takes over the next row.
    fn push_row<S: Scalar, const B: usize>(&mut self, source: &Source<S, B>, row: usize) {
        let (full, damping) = (source.full, source.damping);
        let mut diagonal = [[0.0; B]; B];
        let mut outside = [0.0; B];
        let border_before = self.border.columns.len();
        for k in full.row(row) {
            let (column, block) = (full.columns[k], full.block(k));
            let at = column as usize;
            if at == row {
                diagonal = symmetric_part(block);
            } else if at < row && at >= self.rows.start {
                self.interior.push(column - self.rows.start as u32, block);
            } else if at < row {
                let place = self.touched.partition_point(|&touched| touched < column);
                self.border.push(place as u32, block);
            }
            if !self.rows.contains(&at) && damping == Damping::L1 {
                add_row_sums(block, &mut outside);
            }
        }
        if let (Some(blocks), Damping::L1) = (source.outside, damping) {
            for k in blocks.row(row) {
                add_row_sums(blocks.block(k), &mut outside);
            }
        }
        self.interior.end_row();
        if self.border.columns.len() > border_before {
            self.border_rows.push((row - self.rows.start) as u32);
            self.border.end_row();
        }
        extend(&mut self.diagonal, &diagonal);
        for i in 0..B {
            diagonal[i][i] += 0.5 * outside[i];
        }
        extend(&mut self.inverse, &invert_symmetric(&diagonal));
    }
}

impl<T: Scalar> Blocks<T> {
    fn with_capacity<const B: usize>(n_rows: usize, n_blocks: usize) -> Self {
        let mut row_start = Vec::with_capacity(n_rows + 1);
        row_start.push(0);
        Blocks {
            row_start,
            columns: pages::with_capacity(n_blocks),
            values: pages::with_capacity(n_blocks * B * B + PADDING),
        }
    }

    fn push<S: Scalar>(&mut self, column: u32, block: &[S]) {
        self.columns.push(column);
        self.values
            .extend(block.iter().map(|v| T::from_f64(v.to_f64())));
    }

    /// # Panics
    /// If a slab has 2^32 blocks or more.
    fn end_row(&mut self) {
        let end = u32::try_from(self.columns.len()).expect("fewer than 2^32 blocks in a slab");
        self.row_start.push(end);
    }
}

/// Rows of earlier slabs that `rows` couple to, ascending.
fn touched_rows<S: Scalar, const B: usize>(full: &BlockCsr<S, B>, rows: &Range<usize>) -> Vec<u32> {
    let is_before = |column: &&u32| (**column as usize) < rows.start;
    let before = |row: usize| {
        full.columns[full.row(row)]
            .iter()
            .take_while(is_before)
            .copied()
    };
    let mut touched: Vec<u32> = rows.clone().flat_map(before).collect();
    touched.sort_unstable();
    touched.dedup();
    touched.shrink_to_fit();
    touched
}

/// Blocks below the diagonal in columns of the slab, and in columns of earlier slabs.
fn count_blocks<S: Scalar, const B: usize>(
    full: &BlockCsr<S, B>,
    rows: &Range<usize>,
) -> (usize, usize) {
    let (mut n_interior, mut n_border) = (0, 0);
    for row in rows.clone() {
        let columns = &full.columns[full.row(row)];
        let below = columns.partition_point(|&column| (column as usize) < row);
        let before = columns.partition_point(|&column| (column as usize) < rows.start);
        n_border += before;
        n_interior += below - before;
    }
    (n_interior, n_border)
}

/// Half of a block and its transpose: assembly leaves diagonal blocks symmetric only up to rounding.
fn symmetric_part<S: Scalar, const B: usize>(block: &[S]) -> [[f64; B]; B] {
    let entry = |i: usize, j: usize| block[i * B + j].to_f64();
    std::array::from_fn(|i| std::array::from_fn(|j| 0.5 * (entry(i, j) + entry(j, i))))
}

fn add_row_sums<S: Scalar, const B: usize>(block: &[S], sums: &mut [f64; B]) {
    for (sum, row) in sums.iter_mut().zip(block.chunks_exact(B)) {
        *sum += row.iter().map(|v| v.to_f64().abs()).sum::<f64>();
    }
}

fn extend<T: Scalar, const B: usize>(values: &mut Vec<T>, block: &[[f64; B]; B]) {
    values.extend(block.iter().flatten().map(|&v| T::from_f64(v)));
}
