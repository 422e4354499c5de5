//! Kernels of a slab: product, sweeps and border, written once over [`Lanes`], the registers of a block row.
//!
//! [`run`] chooses the lanes by the processor at hand, scalar type and block size; [`Portable`] works everywhere. A
//! row below the diagonal is read from memory once for both of its roles: gathered against x it gives the row's own
//! sum, and scattered, times the row's own entry, what its transposes give to the columns. The sweeps know that entry
//! only when the row is gathered; while it is being computed, they gather the row to come.
//!
//! Invariant: pointers never leave the slices they were taken from: [`Matrix`] is well formed (see `slab.rs`), and
//! [`run`] checks the lengths of the vectors.
#![allow(unsafe_code)]

use super::Scalar;
#[cfg(target_arch = "x86_64")]
use super::choice;
use crate::linalg::lanes::{Lanes, PADDING, Portable};
use crate::linalg::scratch::Scratch;
use std::ops::Range;

/// Blocks of a slab and what belongs to them; `row_start` has an entry more than rows.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a, T> {
    pub(super) row_start: &'a [u32],
    pub(super) columns: &'a [u32],
    pub(super) values: &'a [T],
    pub(super) diagonal: &'a [T],
    pub(super) inverse: &'a [T],
    pub(super) shifted_rows: &'a [u32],
    pub(super) shifts: &'a [T],
}

/// A step on one slab; vectors are those of its rows unless said otherwise.
pub(super) enum Work<'a, T> {
    /// y = A x within the slab; returns x.y if `dot`.
    Product {
        matrix: Matrix<'a, T>,
        x: &'a [T],
        y: &'a mut [T],
        dot: bool,
    },
    /// (D + K + L) x = b; r = b - A x within the slab, K being the shifts.
    Forward {
        matrix: Matrix<'a, T>,
        b: &'a [T],
        x: &'a mut [T],
        r: &'a mut [T],
    },
    /// x += v + (D + K + U)^-1 (r - A v), A without the border.
    Backward {
        matrix: Matrix<'a, T>,
        v: &'a [T],
        x: &'a mut [T],
        r: &'a [T],
    },
    /// For the blocks C of the rows `rows`, whose columns are places in `touched`, rows of the vector `all`:
    /// y += C all, sent = C^T x, both negative if asked for; returns the part of the whole vector's x.A x.
    Border {
        matrix: Matrix<'a, T>,
        rows: &'a [u32],
        touched: &'a [u32],
        all: &'a [T],
        x: &'a [T],
        sent: &'a mut [T],
        y: &'a mut [T],
        is_negative: bool,
    },
}

/// Does a step on one slab, with the best lanes there are.
pub(super) fn run<T: Scalar, const B: usize>(work: Work<T>) -> f64 {
    check::<T, B>(&work);
    #[cfg(target_arch = "x86_64")]
    if let Some(run) = choice::choose::<T, B>() {
        return run(work);
    }
    run_portable::<T, B>(work)
}

/// Does a step without special instructions.
pub(super) fn run_portable<T: Scalar, const B: usize>(work: Work<T>) -> f64 {
    check::<T, B>(&work);
    // SAFETY: lengths are checked; the lanes need no special instructions.
    unsafe { run_with::<T, B, Portable>(work) }
}

fn check<T, const B: usize>(work: &Work<T>) {
    let (matrix, lengths) = match work {
        Work::Product { matrix, x, y, .. } => (matrix, [x.len(), y.len(), y.len()]),
        Work::Forward { matrix, b, x, r } => (matrix, [b.len(), x.len(), r.len()]),
        Work::Backward { matrix, v, x, r } => (matrix, [v.len(), x.len(), r.len()]),
        Work::Border {
            matrix,
            rows,
            touched,
            all,
            x,
            sent,
            y,
            ..
        } => {
            assert_eq!((sent.len(), x.len()), (touched.len() * B, y.len()));
            assert!(is_within::<B>(rows, y.len()) && is_within::<B>(touched, all.len()));
            (matrix, [rows.len() * B; 3])
        }
    };
    let n_rows = matrix.row_start.len() - 1;
    assert_eq!(lengths, [n_rows * B; 3]);
    assert_eq!(matrix.values.len(), matrix.columns.len() * B * B + PADDING);
    if !matches!(work, Work::Border { .. }) {
        let padded = n_rows * B * B + PADDING;
        assert_eq!(
            (matrix.diagonal.len(), matrix.inverse.len()),
            (padded, padded)
        );
        assert_eq!(
            matrix.shifts.len(),
            matrix.shifted_rows.len() * B * B + PADDING
        );
        assert!(is_within::<B>(matrix.shifted_rows, n_rows * B));
    }
}

/// Whether ascending `rows` all belong to a vector of `n` scalars.
fn is_within<const B: usize>(rows: &[u32], n: usize) -> bool {
    rows.last().is_none_or(|&row| (row as usize + 1) * B <= n)
}

/// Does a step with the lanes `L`.
///
/// Safety: the processor has what the lanes need, and `work` has passed [`check`].
#[inline(always)]
pub(super) unsafe fn run_with<T: Scalar, const B: usize, L: Lanes<T, B>>(work: Work<T>) -> f64 {
    // SAFETY: as demanded of the caller.
    unsafe {
        match work {
            Work::Product {
                matrix,
                x,
                y,
                dot: false,
            } => product::<T, B, L, false>(matrix, x, y),
            Work::Product {
                matrix,
                x,
                y,
                dot: true,
            } => product::<T, B, L, true>(matrix, x, y),
            Work::Forward { matrix, b, x, r } => forward::<T, B, L>(matrix, b, x, r),
            Work::Backward { matrix, v, x, r } => backward::<T, B, L>(matrix, v, x, r),
            Work::Border {
                matrix,
                rows,
                touched,
                all,
                x,
                sent,
                y,
                is_negative,
            } => {
                let far = (touched, all);
                2.0 * border::<T, B, L>(matrix, (rows, is_negative), far, x, (sent, y))
            }
        }
    }
}

/// Bytes that the matrix is fetched ahead of its use: of 1 to 16 KiB, 2 to 4 KiB were best on Zen 4.
const AHEAD: usize = 2048;

/// Nodes that a row of blocks is gathered against.
#[derive(Clone, Copy)]
enum Nodes<T> {
    /// In scratch memory.
    Spread(*const T),
    /// In a packed vector that has a node more than the row has columns.
    Packed(*const T),
}

/// Node `column` of some.
///
/// Safety: as [`run_with`]; there is such a node.
#[inline(always)]
unsafe fn node<T: Scalar, const B: usize, L: Lanes<T, B>>(nodes: Nodes<T>, column: u32) -> L::V {
    // SAFETY: as demanded of the caller; a packed node is followed by another.
    unsafe {
        match nodes {
            Nodes::Spread(p) => L::load_node(p.add(column as usize * L::STRIDE)),
            Nodes::Packed(p) => L::load_beyond(p.add(column as usize * B)),
        }
    }
}

/// A row of blocks times the nodes, in the order in which the whole sweep reads the matrix: ascending or, if `DOWN`,
/// descending.
///
/// Safety: as [`run_with`]; there are such blocks, and nodes in their columns. So for the next two.
#[inline(always)]
unsafe fn gather_row<T: Scalar, const B: usize, L: Lanes<T, B>, const DOWN: bool>(
    matrix: &Matrix<T>,
    range: &Range<usize>,
    nodes: Nodes<T>,
) -> L::V {
    // SAFETY: as demanded of the caller; each block is followed by another or by padding.
    unsafe {
        let mut sums = [L::zero(); B];
        for step in 0..range.len() {
            let k = if DOWN {
                range.end - 1 - step
            } else {
                range.start + step
            };
            let block = matrix.values.as_ptr().add(k * B * B);
            prefetch_ahead::<T, B, L, DOWN>(block);
            let x = node::<T, B, L>(nodes, *matrix.columns.get_unchecked(k));
            for i in 0..B {
                sums[i] = L::mul_add(L::load_row(block.add(i * B)), x, sums[i]);
            }
        }
        L::sum_rows(sums)
    }
}

/// Adds transposed block `k` times its row's entry, given by its lanes, to the node of its column in scratch memory.
#[inline(always)]
unsafe fn scatter<T: Scalar, const B: usize, L: Lanes<T, B>>(
    matrix: &Matrix<T>,
    k: usize,
    own: &[L::V; B],
    nodes: *mut T,
) {
    // SAFETY: as for `gather_row`.
    unsafe {
        let block = matrix.values.as_ptr().add(k * B * B);
        let node = nodes.add(*matrix.columns.get_unchecked(k) as usize * L::STRIDE);
        let mut sum = L::load_node(node);
        for i in 0..B {
            sum = L::mul_add(L::load_row(block.add(i * B)), own[i], sum);
        }
        L::store_node(node, sum);
    }
}

/// Gathers and scatters a row in one go: returns its product with the nodes `from`, and adds its transposes times its
/// own entry to the nodes `to` in scratch memory.
#[inline(always)]
unsafe fn gather_and_scatter<T: Scalar, const B: usize, L: Lanes<T, B>>(
    matrix: &Matrix<T>,
    range: Range<usize>,
    from: Nodes<T>,
    own: &[L::V; B],
    to: *mut T,
) -> L::V {
    // SAFETY: as for `gather_row`.
    unsafe {
        let mut sums = [L::zero(); B];
        for k in range {
            let block = matrix.values.as_ptr().add(k * B * B);
            prefetch_ahead::<T, B, L, false>(block);
            let column = *matrix.columns.get_unchecked(k);
            let x = node::<T, B, L>(from, column);
            let node = to.add(column as usize * L::STRIDE);
            let mut sum = L::load_node(node);
            for i in 0..B {
                let row = L::load_row(block.add(i * B));
                sums[i] = L::mul_add(row, x, sums[i]);
                sum = L::mul_add(row, own[i], sum);
            }
            L::store_node(node, sum);
        }
        L::sum_rows(sums)
    }
}

/// Safety: as [`run_with`].
#[inline(always)]
unsafe fn prefetch_ahead<T: Scalar, const B: usize, L: Lanes<T, B>, const DOWN: bool>(
    block: *const T,
) {
    let (line, ahead) = (64 / size_of::<T>(), AHEAD / size_of::<T>());
    let next = if DOWN {
        block.wrapping_sub(ahead)
    } else {
        block.wrapping_add(ahead)
    };
    for k in 0..(B * B).div_ceil(line) {
        // SAFETY: as demanded of the caller.
        unsafe { L::prefetch_line(next.wrapping_add(k * line)) };
    }
}

/// start + block `row` of `blocks`, which are symmetric, times a vector given by its lanes.
///
/// Safety: as [`run_with`]; there is such a block, and padding behind the last.
#[inline(always)]
unsafe fn multiply_symmetric<T: Scalar, const B: usize, L: Lanes<T, B>>(
    blocks: &[T],
    row: usize,
    x: [L::V; B],
    start: L::V,
) -> L::V {
    // SAFETY: as demanded of the caller.
    unsafe {
        let block = blocks.as_ptr().add(row * B * B);
        let mut sum = start;
        for i in 0..B {
            sum = L::mul_add(L::load_row(block.add(i * B)), x[i], sum);
        }
        sum
    }
}

/// Blocks of row `row`; none if there is no such row.
#[inline(always)]
fn row_range<T>(matrix: &Matrix<T>, row: usize) -> Range<usize> {
    match matrix.row_start.get(row..).and_then(<[u32]>::first_chunk) {
        Some(&[start, end]) => start as usize..end as usize,
        None => 0..0,
    }
}

/// Scalar product of two nodes, in f64.
#[inline(always)]
unsafe fn dot<T: Scalar, const B: usize, L: Lanes<T, B>>(a: L::V, b: L::V) -> f64 {
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

/// Subtracts the shifts times nodes from the nodes `to` in scratch memory.
///
/// Safety of this and the following five: as [`run_with`]; columns of a row are smaller than the row.
#[inline(always)]
unsafe fn subtract_shifts<T: Scalar, const B: usize, L: Lanes<T, B>>(
    matrix: &Matrix<T>,
    x: &[T],
    to: *mut T,
) {
    for (place, row) in matrix.shifted_rows.iter().enumerate() {
        // SAFETY: as demanded of the caller.
        unsafe {
            let own = L::load(x.as_ptr().add(*row as usize * B));
            let node = to.add(*row as usize * L::STRIDE);
            let negative = L::splats(L::sub(L::zero(), own));
            let sum = L::load_node(node);
            let sum = multiply_symmetric::<T, B, L>(matrix.shifts, place, negative, sum);
            L::store_node(node, sum);
        }
    }
}

/// Packs nodes of scratch memory.
#[inline(always)]
unsafe fn pack<T: Scalar, const B: usize, L: Lanes<T, B>>(nodes: *const T, packed: &mut [T]) {
    let packed = packed.as_chunks_mut::<B>().0;
    for (row, packed) in packed.iter_mut().enumerate() {
        // SAFETY: as demanded of the caller.
        unsafe {
            L::store(
                packed.as_mut_ptr(),
                L::load_node(nodes.add(row * L::STRIDE)),
            )
        };
    }
}

#[inline(always)]
unsafe fn product<T: Scalar, const B: usize, L: Lanes<T, B>, const DOT: bool>(
    matrix: Matrix<T>,
    x: &[T],
    y: &mut [T],
) -> f64 {
    let n_rows = matrix.row_start.len() - 1;
    let mut scratch = Scratch::take::<T>(n_rows * L::STRIDE);
    let nodes = scratch.scalars::<T>().as_mut_ptr();
    let mut total = 0.0;
    for row in 0..n_rows {
        // SAFETY: as demanded of the caller.
        unsafe {
            let own = L::load(x.as_ptr().add(row * B));
            let splats = L::splats(own);
            let (range, from) = (row_range(&matrix, row), Nodes::Packed(x.as_ptr()));
            let below = gather_and_scatter::<T, B, L>(&matrix, range, from, &splats, nodes);
            let sum = multiply_symmetric::<T, B, L>(matrix.diagonal, row, splats, below);
            L::store_node(nodes.add(row * L::STRIDE), sum);
            if DOT {
                total += dot::<T, B, L>(own, L::add(sum, below));
            }
        }
    }
    // SAFETY: all nodes are there.
    unsafe { pack::<T, B, L>(nodes, y) };
    total
}

// In a sweep the diagonal blocks D cancel: with (D + K) x = rest, what is left of the rest is rest - D x = K x; and the
// backward sweep from a guess v solves (D + K + U) e = r - L v + K v. K is zero but where slabs or ranks are coupled.

#[inline(always)]
unsafe fn forward<T: Scalar, const B: usize, L: Lanes<T, B>>(
    matrix: Matrix<T>,
    b: &[T],
    x: &mut [T],
    r: &mut [T],
) -> f64 {
    let n_rows = matrix.row_start.len() - 1;
    let mut scratch = Scratch::take::<T>(2 * n_rows * L::STRIDE);
    let found = scratch.scalars::<T>().as_mut_ptr();
    // SAFETY: as demanded of the caller.
    unsafe {
        let above = found.add(n_rows * L::STRIDE);
        let zero = L::zero();
        let mut below = zero;
        for row in 0..n_rows {
            let rest = L::sub(L::load(b.as_ptr().add(row * B)), below);
            let own = multiply_symmetric::<T, B, L>(matrix.inverse, row, L::splats(rest), zero);
            L::store_node(found.add(row * L::STRIDE), own);
            L::store(x.as_mut_ptr().add(row * B), own);
            // The next row waits for this one's entry in its last block only.
            let next = row_range(&matrix, row + 1);
            below = gather_row::<T, B, L, false>(&matrix, &next, Nodes::Spread(found));
            L::store_node(above.add(row * L::STRIDE), zero);
            let own = L::splats(own);
            for k in row_range(&matrix, row) {
                scatter::<T, B, L>(&matrix, k, &own, above);
            }
        }
        subtract_shifts::<T, B, L>(&matrix, x, above);
        for (row, r) in r.as_chunks_mut::<B>().0.iter_mut().enumerate() {
            let above = L::load_node(above.add(row * L::STRIDE));
            L::store(r.as_mut_ptr(), L::sub(zero, above));
        }
    }
    0.0
}

#[inline(always)]
unsafe fn backward<T: Scalar, const B: usize, L: Lanes<T, B>>(
    matrix: Matrix<T>,
    v: &[T],
    x: &mut [T],
    r: &[T],
) -> f64 {
    let n_rows = matrix.row_start.len() - 1;
    let mut scratch = Scratch::take::<T>(n_rows * L::STRIDE);
    let nodes = &mut scratch.scalars::<T>()[..n_rows * L::STRIDE];
    nodes.fill(T::ZERO);
    let (above, guesses) = (nodes.as_mut_ptr(), Nodes::Packed(v.as_ptr()));
    // SAFETY: as demanded of the caller.
    unsafe {
        subtract_shifts::<T, B, L>(&matrix, v, above);
        let last = row_range(&matrix, n_rows.wrapping_sub(1));
        let mut below = gather_row::<T, B, L, true>(&matrix, &last, guesses);
        for row in (0..n_rows).rev() {
            let rest = L::sub(L::load(r.as_ptr().add(row * B)), below);
            let rest = L::sub(rest, L::load_node(above.add(row * L::STRIDE)));
            let own =
                multiply_symmetric::<T, B, L>(matrix.inverse, row, L::splats(rest), L::zero());
            let x = x.as_mut_ptr().add(row * B);
            L::store(x, L::add(L::load(x), own));
            let next = row_range(&matrix, row.wrapping_sub(1));
            below = gather_row::<T, B, L, true>(&matrix, &next, guesses);
            let own = L::splats(own);
            for k in row_range(&matrix, row).rev() {
                scatter::<T, B, L>(&matrix, k, &own, above);
            }
        }
    }
    0.0
}

#[inline(always)]
unsafe fn border<T: Scalar, const B: usize, L: Lanes<T, B>>(
    matrix: Matrix<T>,
    (rows, is_negative): (&[u32], bool),
    (touched, all): (&[u32], &[T]),
    x: &[T],
    (sent, y): (&mut [T], &mut [T]),
) -> f64 {
    let mut scratch = Scratch::take::<T>(2 * touched.len() * L::STRIDE);
    let far = scratch.scalars::<T>().as_mut_ptr();
    let mut total = 0.0;
    // SAFETY: as demanded of the caller; the border's columns are places in `touched`.
    unsafe {
        let to = far.add(touched.len() * L::STRIDE);
        for (place, row) in touched.iter().enumerate() {
            let node = L::load(all.as_ptr().add(*row as usize * B));
            L::store_node(far.add(place * L::STRIDE), node);
            L::store_node(to.add(place * L::STRIDE), L::zero());
        }
        for (place, row) in rows.iter().enumerate() {
            let at = *row as usize * B;
            let x = L::load(x.as_ptr().add(at));
            let splats = L::splats(if is_negative { L::sub(L::zero(), x) } else { x });
            let (range, from) = (row_range(&matrix, place), Nodes::Spread(far));
            let sum = gather_and_scatter::<T, B, L>(&matrix, range, from, &splats, to);
            total += dot::<T, B, L>(x, sum);
            let y = y.as_mut_ptr().add(at);
            let own = L::load(y);
            let signed = if is_negative {
                L::sub(own, sum)
            } else {
                L::add(own, sum)
            };
            L::store(y, signed);
        }
        pack::<T, B, L>(to, sent);
    }
    total
}
