//! Products with interpolation matrices, in single precision: rows of B x C blocks, few in a row.
//!
//! Invariant: pointers never leave the slices they were taken from, whatever the numbers in a matrix are.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use super::lanes::x86;
use super::lanes::{Lanes, PADDING, Portable};
use super::scratch::Scratch;
use std::ops::Range;

/// Bytes that blocks are fetched ahead of their use.
const AHEAD: usize = 2048;

/// Some rows of an interpolation matrix of B x C blocks.
#[derive(Clone, Debug)]
pub(crate) struct Rows<'a> {
    /// Which of the matrix.
    pub(crate) rows: Range<usize>,
    /// First block of each row of the matrix and of the row behind the last.
    pub(crate) row_start: &'a [u32],
    /// Columns of all blocks of the matrix.
    pub(crate) columns: &'a [u32],
    /// All blocks, row-major.
    pub(crate) blocks: &'a [f32],
}

impl<'a> Rows<'a> {
    /// Columns and blocks of a row.
    #[inline(always)]
    fn row<const B: usize, const C: usize>(&self, row: usize) -> (&'a [u32], &'a [f32]) {
        let range = self.row_start[row] as usize..self.row_start[row + 1] as usize;
        let blocks = &self.blocks[range.start * B * C..range.end * B * C];
        (&self.columns[range], blocks)
    }

    /// The rows whose blocks are followed by [`PADDING`] scalars of others, and the rest.
    fn split<const B: usize, const C: usize>(self) -> [Self; 2] {
        let last = (self.blocks.len().saturating_sub(PADDING) / (B * C)) as u32;
        let ends = &self.row_start[self.rows.start + 1..=self.rows.end];
        let border = self.rows.start + ends.partition_point(|&end| end <= last);
        let (front, back) = (self.rows.start..border, border..self.rows.end);
        [front, back].map(|rows| Rows {
            rows,
            ..self.clone()
        })
    }
}

/// fine = P coarse for the rows: C values for each column, B for each row.
///
/// # Panics
/// If a column lies beyond `coarse`, or the number of rows differs.
pub(crate) fn multiply<const B: usize, const C: usize>(
    rows: Rows,
    coarse: &[[f32; C]],
    fine: &mut [[f32; B]],
) {
    assert_eq!(rows.rows.len(), fine.len(), "rows");
    let [front, back] = rows.split::<B, C>();
    let (fine, last) = fine.split_at_mut(front.rows.len());
    let coarse = coarse.as_flattened();
    // SAFETY: the processor has the instructions of the lanes, and blocks of `front` are followed by padding.
    unsafe {
        match C {
            #[cfg(target_arch = "x86_64")]
            3 if x86::is_there() => multiply_avx2::<B, 3, x86::Single3>(front, coarse, fine),
            #[cfg(target_arch = "x86_64")]
            6 if x86::is_there() => multiply_avx2::<B, 6, x86::Single6>(front, coarse, fine),
            _ => multiply_with::<B, C, Portable>(front, coarse, fine),
        }
        multiply_with::<B, C, Portable>(back, coarse, last);
    }
}

/// The entries of Pᵀ fine in the columns `columns`, where P is zero outside of the rows: B values for each row, C for
/// each column.
///
/// # Panics
/// If a row has a column that is not among them, or the number of rows differs.
pub(crate) fn multiply_transposed<const B: usize, const C: usize>(
    rows: Rows,
    columns: Range<usize>,
    fine: &[[f32; B]],
) -> Vec<[f32; C]> {
    assert_eq!(rows.rows.len(), fine.len(), "rows");
    let mut coarse = vec![[0.0; C]; columns.len()];
    let [front, back] = rows.split::<B, C>();
    let (fine, last) = fine.split_at(front.rows.len());
    let first = columns.start;
    let sums = coarse.as_flattened_mut();
    // SAFETY: see `multiply`.
    unsafe {
        match C {
            #[cfg(target_arch = "x86_64")]
            3 if x86::is_there() => transposed_avx2::<B, 3, x86::Single3>(front, first, fine, sums),
            #[cfg(target_arch = "x86_64")]
            6 if x86::is_there() => transposed_avx2::<B, 6, x86::Single6>(front, first, fine, sums),
            _ => transposed_with::<B, C, Portable>(front, first, fine, sums),
        }
        transposed_with::<B, C, Portable>(back, first, last, sums);
    }
    coarse
}

/// Safety: as [`multiply_with`]; the processor has AVX2 with FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn multiply_avx2<const B: usize, const C: usize, L: Lanes<f32, C>>(
    rows: Rows,
    coarse: &[f32],
    fine: &mut [[f32; B]],
) {
    // SAFETY: as demanded of the caller.
    unsafe { multiply_with::<B, C, L>(rows, coarse, fine) }
}

/// Safety: the processor has what the lanes need; [`PADDING`] scalars or, for [`Portable`] lanes, none follow the blocks
/// of the rows. So for [`transposed_with`].
#[inline(always)]
unsafe fn multiply_with<const B: usize, const C: usize, L: Lanes<f32, C>>(
    rows: Rows,
    coarse: &[f32],
    fine: &mut [[f32; B]],
) {
    for (row, fine) in rows.rows.clone().zip(fine) {
        let (columns, blocks) = rows.row::<B, C>(row);
        // SAFETY: as demanded of the caller; there are B x C scalars for each column, and a node is read within
        // `coarse` only.
        unsafe {
            let mut sums = [L::zero(); B];
            let mut block = blocks.as_ptr();
            for &column in columns {
                prefetch::<B, C, L>(block);
                let at = column as usize * C;
                let node = if at + L::STRIDE <= coarse.len() {
                    L::load_beyond(coarse.as_ptr().add(at))
                } else {
                    L::load(coarse[at..at + C].as_ptr())
                };
                for b in 0..B {
                    sums[b] = L::mul_add(L::load_row(block.add(b * C)), node, sums[b]);
                }
                block = block.add(B * C);
            }
            for (fine, sums) in fine.chunks_mut(C).zip(sums.chunks(C)) {
                let mut rows = [L::zero(); C];
                rows[..sums.len()].copy_from_slice(sums);
                let mut totals = [0.0; C];
                L::store(totals.as_mut_ptr(), L::sum_rows(rows));
                fine.copy_from_slice(&totals[..fine.len()]);
            }
        }
    }
}

/// Safety: as [`transposed_with`]; the processor has AVX2 with FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn transposed_avx2<const B: usize, const C: usize, L: Lanes<f32, C>>(
    rows: Rows,
    first: usize,
    fine: &[[f32; B]],
    coarse: &mut [f32],
) {
    // SAFETY: as demanded of the caller.
    unsafe { transposed_with::<B, C, L>(rows, first, fine, coarse) }
}

/// Adds Pᵀ fine to `coarse`, the entries in the columns from `first` on.
#[inline(always)]
unsafe fn transposed_with<const B: usize, const C: usize, L: Lanes<f32, C>>(
    rows: Rows,
    first: usize,
    fine: &[[f32; B]],
    coarse: &mut [f32],
) {
    let mut scratch = Scratch::take::<f32>(coarse.len() / C * L::STRIDE);
    let nodes = &mut scratch.scalars::<f32>()[..coarse.len() / C * L::STRIDE];
    nodes.fill(0.0);
    for (row, fine) in rows.rows.clone().zip(fine) {
        let (columns, blocks) = rows.row::<B, C>(row);
        // SAFETY: as demanded of the caller; there are B x C scalars for each column, and nodes are touched within
        // `nodes` only.
        unsafe {
            let mut splats = [L::zero(); B];
            for b in 0..B {
                splats[b] = L::splat(fine[b]);
            }
            let mut block = blocks.as_ptr();
            for &column in columns {
                prefetch::<B, C, L>(block);
                let at = (column as usize - first) * L::STRIDE;
                let node = nodes[at..at + L::STRIDE].as_mut_ptr();
                let mut sum = L::zero();
                for b in 0..B {
                    sum = L::mul_add(L::load_row(block.add(b * C)), splats[b], sum);
                }
                L::store_node(node, L::add(L::load_node(node), sum));
                block = block.add(B * C);
            }
        }
    }
    for (coarse, node) in coarse
        .chunks_exact_mut(C)
        .zip(nodes.chunks_exact(L::STRIDE))
    {
        for (coarse, node) in coarse.iter_mut().zip(node) {
            *coarse += node;
        }
    }
}

/// Safety: as [`multiply_with`].
#[inline(always)]
unsafe fn prefetch<const B: usize, const C: usize, L: Lanes<f32, C>>(block: *const f32) {
    const LINE: usize = 64 / size_of::<f32>();
    let ahead = block.wrapping_add(AHEAD / size_of::<f32>());
    for line in 0..(B * C).div_ceil(LINE) {
        // SAFETY: as demanded of the caller.
        unsafe { L::prefetch_line(ahead.wrapping_add(line * LINE)) };
    }
}

#[cfg(test)]
mod tests {
    use super::{Rows, multiply, multiply_transposed};
    use crate::linalg::sample::noise;

    /// Rows with 0 to 3 blocks in some of `n_columns` columns.
    fn sample(n_rows: usize, n_columns: usize, block: usize) -> (Vec<u32>, Vec<u32>, Vec<f32>) {
        let mut row_start = vec![0];
        let mut columns = Vec::new();
        for row in 0..n_rows {
            columns.extend((0..row % 4).map(|k| ((row * 5 + k * 7) % n_columns) as u32));
            row_start.push(columns.len() as u32);
        }
        let values = noise(columns.len() * block, 3);
        (
            row_start,
            columns,
            values.iter().map(|&v| v as f32).collect(),
        )
    }

    fn nodes<const N: usize>(n: usize, seed: u64) -> Vec<[f32; N]> {
        let values = noise(n * N, seed);
        values
            .as_chunks::<N>()
            .0
            .iter()
            .map(|v| v.map(|v| v as f32))
            .collect()
    }

    fn check<const B: usize, const C: usize>() {
        let (n_rows, n_columns) = (41, 9);
        let (row_start, columns, blocks) = sample(n_rows, n_columns, B * C);
        let rows = |rows| Rows {
            rows,
            row_start: &row_start,
            columns: &columns,
            blocks: &blocks,
        };
        let (coarse, fine) = (nodes::<C>(n_columns, 1), nodes::<B>(n_rows, 2));
        let mut expected = (vec![[0.0f64; B]; n_rows], vec![[0.0f64; C]; n_columns]);
        for row in 0..n_rows {
            for k in row_start[row] as usize..row_start[row + 1] as usize {
                let column = columns[k] as usize;
                for (at, value) in blocks[k * B * C..(k + 1) * B * C].iter().enumerate() {
                    let (b, c, value) = (at / C, at % C, f64::from(*value));
                    expected.0[row][b] += value * f64::from(coarse[column][c]);
                    expected.1[column][c] += value * f64::from(fine[row][b]);
                }
            }
        }
        let close = |found: &[f32], expected: &[f64]| {
            let pairs = found.iter().zip(expected);
            pairs.for_each(|(f, e)| assert!((f64::from(*f) - e).abs() < 1e-5, "{f} {e}"));
        };
        let mut product = vec![[f32::NAN; B]; n_rows];
        let (front, back) = product.split_at_mut(17);
        multiply(rows(0..17), &coarse, front);
        multiply(rows(17..n_rows), &coarse, back);
        close(product.as_flattened(), expected.0.as_flattened());
        let mut sums = multiply_transposed::<B, C>(rows(0..17), 0..n_columns, &fine[..17]);
        let rest = multiply_transposed::<B, C>(rows(17..n_rows), 0..n_columns, &fine[17..]);
        for (sum, rest) in sums.as_flattened_mut().iter_mut().zip(rest.as_flattened()) {
            *sum += rest;
        }
        close(sums.as_flattened(), expected.1.as_flattened());
    }

    #[test]
    fn products_are_those_of_plain_loops() {
        check::<3, 6>();
        check::<6, 6>();
        check::<3, 3>();
        check::<1, 1>();
        check::<2, 3>();
        check::<6, 3>();
    }

    #[test]
    fn no_rows_and_no_blocks_are_borne() {
        let rows = |n: usize| Rows {
            rows: 0..n,
            row_start: &[0, 0, 0],
            columns: &[],
            blocks: &[],
        };
        let mut fine = [[f32::NAN; 3]; 2];
        multiply::<3, 6>(rows(2), &[], &mut fine);
        assert_eq!(fine, [[0.0; 3]; 2]);
        assert_eq!(
            multiply_transposed::<3, 6>(rows(2), 0..1, &fine),
            [[0.0; 6]]
        );
        multiply::<3, 6>(rows(0), &[], &mut []);
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn a_column_out_of_range_is_caught() {
        let rows = Rows {
            rows: 0..1,
            row_start: &[0, 1],
            columns: &[3],
            blocks: &[1.0; 100],
        };
        multiply::<3, 6>(rows, &[[1.0; 6]; 3], &mut [[0.0; 3]]);
    }
}
