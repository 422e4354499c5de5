//! Kernels of a slab: product, sweeps and border, written once over [`RowLanes`].
//!
//! A row below the diagonal is read from memory once for both of its roles: gathered against x it gives the row's own
//! sum, and scattered, times the row's own entry, what its transposes give to the columns. The sweeps know that entry
//! only when the row is gathered; while it is being computed, they gather the row to come.
//!
//! Nodes that rows gather from and scatter to are held in rings (see `slab.rs`); a node that no further row reaches is
//! written to the vector that it belongs to.
//!
//! Invariant: pointers never leave the slices they were taken from: [`Matrix`] is well formed (see `slab.rs`), and
//! `work.rs` checks the lengths of the vectors.
#![allow(unsafe_code)]

use super::Scalar;
use super::rows::{Index, Row, RowLanes};
use super::slab::symmetric_len;
use super::work::{Border, Columns, Matrix, Work};
use crate::linalg::scratch::Scratch;

/// Does a step with the lanes `L`.
///
/// Safety: the processor has what the lanes need, and `work` has been checked.
#[inline(always)]
pub(super) unsafe fn run_with<T: Scalar, const B: usize, L: RowLanes<T, B>>(work: Work<T>) -> f64 {
    // SAFETY: as demanded of the caller.
    unsafe {
        match work {
            Work::Product { matrix, x, y, dot } => match (matrix.columns, dot) {
                (Columns::Narrow(c), false) => product::<T, B, L, u16, false>(&matrix, c, x, y),
                (Columns::Narrow(c), true) => product::<T, B, L, u16, true>(&matrix, c, x, y),
                (Columns::Wide(c), false) => product::<T, B, L, u32, false>(&matrix, c, x, y),
                (Columns::Wide(c), true) => product::<T, B, L, u32, true>(&matrix, c, x, y),
            },
            Work::Forward { matrix, b, x, r } => match matrix.columns {
                Columns::Narrow(c) => forward::<T, B, L, u16>(&matrix, c, b, x, r),
                Columns::Wide(c) => forward::<T, B, L, u32>(&matrix, c, b, x, r),
            },
            Work::Backward { matrix, v, x, r } => match matrix.columns {
                Columns::Narrow(c) => backward::<T, B, L, u16>(&matrix, c, v, x, r),
                Columns::Wide(c) => backward::<T, B, L, u32>(&matrix, c, v, x, r),
            },
            Work::Border {
                border: part,
                all,
                x,
                sent,
                y,
                is_negative,
                dot,
            } => 2.0 * border::<T, B, L>(&part, (is_negative, dot), all, x, (sent, y)),
        }
    }
}

/// Row `row` of some that are stored one behind the other.
///
/// Safety: there is such a row, and values and columns go with `row_start`.
#[inline(always)]
unsafe fn row_of<T, I, const B: usize>(
    row_start: &[u32],
    values: &[T],
    columns: &[I],
    row: usize,
) -> Row<T, I> {
    // SAFETY: as demanded of the caller.
    unsafe {
        let start = *row_start.get_unchecked(row) as usize;
        let end = *row_start.get_unchecked(row + 1) as usize;
        Row {
            values: values.as_ptr().add(start * B * B),
            columns: columns.as_ptr().add(start),
            n: end - start,
        }
    }
}

/// start + block `row` of `blocks`, which are symmetric, times a node.
///
/// Safety: as [`run_with`]; there is such a block, and padding behind the last.
#[inline(always)]
unsafe fn multiply_symmetric<T: Scalar, const B: usize, L: RowLanes<T, B>>(
    blocks: &[T],
    row: usize,
    x: L::V,
    start: L::V,
) -> L::V {
    // SAFETY: as demanded of the caller.
    unsafe {
        let rows = L::load_symmetric(blocks.as_ptr().add(row * symmetric_len(B)));
        let x = L::splats(x);
        let mut sum = start;
        for i in 0..B {
            sum = L::mul_add(rows[i], x[i], sum);
        }
        sum
    }
}

/// Scalar product of two nodes, in f64.
///
/// Safety: as [`run_with`].
#[inline(always)]
unsafe fn dot<T: Scalar, const B: usize, L: RowLanes<T, B>>(a: L::V, b: L::V) -> f64 {
    let [mut a_values, mut b_values] = [[T::ZERO; B]; 2];
    // SAFETY: both arrays hold B scalars.
    unsafe {
        L::store(a_values.as_mut_ptr(), a);
        L::store(b_values.as_mut_ptr(), b);
    }
    (0..B)
        .map(|i| a_values[i].to_f64() * b_values[i].to_f64())
        .sum()
}

/// y += K x, where K are the shifts.
///
/// Safety of this and the following four: as [`run_with`].
#[inline(always)]
unsafe fn add_shifts<T: Scalar, const B: usize, L: RowLanes<T, B>>(
    matrix: &Matrix<T>,
    x: &[T],
    y: &mut [T],
) {
    for (place, row) in matrix.shifted_rows.iter().enumerate() {
        // SAFETY: as demanded of the caller.
        unsafe {
            let x = L::load(x.as_ptr().add(*row as usize * B));
            let y = y.as_mut_ptr().add(*row as usize * B);
            let sum = multiply_symmetric::<T, B, L>(matrix.shifts, place, x, L::load(y));
            L::store(y, sum);
        }
    }
}

#[inline(always)]
unsafe fn product<T: Scalar, const B: usize, L: RowLanes<T, B>, I: Index, const DOT: bool>(
    matrix: &Matrix<T>,
    columns: &[I],
    x: &[T],
    y: &mut [T],
) -> f64 {
    let (n_rows, ring) = (matrix.row_start.len() - 1, matrix.ring);
    let mut scratch = Scratch::take::<T>(2 * ring * L::STRIDE);
    let xs = scratch.scalars::<T>().as_mut_ptr();
    let (x, y) = (x.as_ptr(), y.as_mut_ptr());
    let (mut total, mut place) = (0.0, 0);
    // SAFETY: as demanded of the caller.
    unsafe {
        let ys = xs.add(ring * L::STRIDE);
        for row in 0..n_rows {
            let own = L::load(x.add(row * B));
            let node = ys.add(place * L::STRIDE);
            L::store_node(xs.add(place * L::STRIDE), own);
            if row >= ring {
                L::store(y.add((row - ring) * B), L::load_node(node));
            }
            let blocks = row_of::<T, I, B>(matrix.row_start, matrix.values, columns, row);
            let below = L::gather_and_scatter(blocks, xs, own, ys);
            let sum = multiply_symmetric::<T, B, L>(matrix.diagonal, row, own, below);
            L::store_node(node, sum);
            if DOT {
                total += dot::<T, B, L>(own, L::add(sum, below));
            }
            place = if place + 1 == ring { 0 } else { place + 1 };
        }
        for row in n_rows.saturating_sub(ring)..n_rows {
            let node = ys.add(row % ring * L::STRIDE);
            L::store(y.add(row * B), L::load_node(node));
        }
    }
    total
}

// In a sweep the diagonal blocks D cancel: with (D + K) x = rest, what is left of the rest is rest - D x = K x; and the
// backward sweep from a guess v solves (D + K + U) e = r - L v + K v. K is zero but where slabs or ranks are coupled.

#[inline(always)]
unsafe fn forward<T: Scalar, const B: usize, L: RowLanes<T, B>, I: Index>(
    matrix: &Matrix<T>,
    columns: &[I],
    b: &[T],
    x: &mut [T],
    r: &mut [T],
) -> f64 {
    let (n_rows, ring) = (matrix.row_start.len() - 1, matrix.ring);
    if n_rows == 0 {
        return 0.0;
    }
    let mut scratch = Scratch::take::<T>(2 * ring * L::STRIDE);
    let found = scratch.scalars::<T>().as_mut_ptr();
    // SAFETY: as demanded of the caller.
    unsafe {
        let above = found.add(ring * L::STRIDE);
        let zero = L::zero();
        let mut blocks = row_of::<T, I, B>(matrix.row_start, matrix.values, columns, 0);
        let mut early = L::gather_early(blocks, found, L::load(b.as_ptr()));
        let mut place = 0;
        for row in 0..n_rows {
            let rest = L::gather_late(early);
            let own = multiply_symmetric::<T, B, L>(matrix.inverse, row, rest, zero);
            L::store_node(found.add(place * L::STRIDE), own);
            L::store(x.as_mut_ptr().add(row * B), own);
            let done = blocks;
            if row + 1 < n_rows {
                blocks = row_of::<T, I, B>(matrix.row_start, matrix.values, columns, row + 1);
                early = L::gather_early(blocks, found, L::load(b.as_ptr().add((row + 1) * B)));
            }
            let node = above.add(place * L::STRIDE);
            if row >= ring {
                let left = L::sub(zero, L::load_node(node));
                L::store(r.as_mut_ptr().add((row - ring) * B), left);
            }
            L::store_node(node, zero);
            L::scatter::<I, false>(done, own, above);
            place = if place + 1 == ring { 0 } else { place + 1 };
        }
        for row in n_rows.saturating_sub(ring)..n_rows {
            let left = L::sub(zero, L::load_node(above.add(row % ring * L::STRIDE)));
            L::store(r.as_mut_ptr().add(row * B), left);
        }
        add_shifts::<T, B, L>(matrix, x, r);
    }
    0.0
}

#[inline(always)]
unsafe fn backward<T: Scalar, const B: usize, L: RowLanes<T, B>, I: Index>(
    matrix: &Matrix<T>,
    columns: &[I],
    v: &[T],
    x: &mut [T],
    r: &mut [T],
) -> f64 {
    let (n_rows, ring) = (matrix.row_start.len() - 1, matrix.ring);
    if n_rows == 0 {
        return 0.0;
    }
    let mut scratch = Scratch::take::<T>(2 * ring * L::STRIDE);
    let (guesses, above) = scratch.scalars::<T>().split_at_mut(ring * L::STRIDE);
    above[..ring * L::STRIDE].fill(T::ZERO);
    let (guesses, above) = (guesses.as_mut_ptr(), above.as_mut_ptr());
    // SAFETY: as demanded of the caller.
    unsafe {
        add_shifts::<T, B, L>(matrix, v, r);
        for row in n_rows.saturating_sub(ring)..n_rows {
            let node = guesses.add(row % ring * L::STRIDE);
            L::store_node(node, L::load(v.as_ptr().add(row * B)));
        }
        let mut place = (n_rows - 1) % ring;
        let mut blocks = row_of::<T, I, B>(matrix.row_start, matrix.values, columns, n_rows - 1);
        let mut below = L::gather::<I, true>(blocks, guesses);
        for row in (0..n_rows).rev() {
            let node = above.add(place * L::STRIDE);
            let rest = L::sub(L::load(r.as_ptr().add(row * B)), below);
            let rest = L::sub(rest, L::load_node(node));
            L::store_node(node, L::zero());
            let own = multiply_symmetric::<T, B, L>(matrix.inverse, row, rest, L::zero());
            let x = x.as_mut_ptr().add(row * B);
            L::store(x, L::add(L::load(x), own));
            if row >= ring {
                let guess = L::load(v.as_ptr().add((row - ring) * B));
                L::store_node(guesses.add(place * L::STRIDE), guess);
            }
            let done = blocks;
            if row > 0 {
                blocks = row_of::<T, I, B>(matrix.row_start, matrix.values, columns, row - 1);
                below = L::gather::<I, true>(blocks, guesses);
            }
            L::scatter::<I, true>(done, own, above);
            place = if place == 0 { ring - 1 } else { place - 1 };
        }
    }
    0.0
}

#[inline(always)]
unsafe fn border<T: Scalar, const B: usize, L: RowLanes<T, B>>(
    part: &Border<T>,
    (is_negative, with_dot): (bool, bool),
    all: &[T],
    x: &[T],
    (sent, y): (&mut [T], &mut [T]),
) -> f64 {
    let n_touched = part.touched.len();
    let mut scratch = Scratch::take::<T>(2 * n_touched * L::STRIDE);
    let far = scratch.scalars::<T>().as_mut_ptr();
    let mut total = 0.0;
    // SAFETY: as demanded of the caller; the border's columns are places in `touched`.
    unsafe {
        let to = far.add(n_touched * L::STRIDE);
        for (place, row) in part.touched.iter().enumerate() {
            let node = L::load(all.as_ptr().add(*row as usize * B));
            L::store_node(far.add(place * L::STRIDE), node);
            L::store_node(to.add(place * L::STRIDE), L::zero());
        }
        for (place, row) in part.rows.iter().enumerate() {
            let at = *row as usize * B;
            let x = L::load(x.as_ptr().add(at));
            let signed = if is_negative { L::sub(L::zero(), x) } else { x };
            let blocks = row_of::<T, u32, B>(part.row_start, part.values, part.columns, place);
            let sum = L::gather_and_scatter(blocks, far, signed, to);
            if with_dot {
                total += dot::<T, B, L>(x, sum);
            }
            let y = y.as_mut_ptr().add(at);
            let own = L::load(y);
            let changed = if is_negative {
                L::sub(own, sum)
            } else {
                L::add(own, sum)
            };
            L::store(y, changed);
        }
        for (place, sent) in sent.as_chunks_mut::<B>().0.iter_mut().enumerate() {
            L::store(sent.as_mut_ptr(), L::load_node(to.add(place * L::STRIDE)));
        }
    }
    total
}
