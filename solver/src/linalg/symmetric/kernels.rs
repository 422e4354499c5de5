//! Kernels of a slab: product, sweeps and border, written once over [`Lanes`], the registers of a block row.
//!
//! [`run`] chooses the lanes by the processor at hand, scalar type and block size; [`Portable`] works everywhere. A
//! row below the diagonal is read once for both of its roles: gathered against x it gives the row's own sum, and
//! scattered, times the row's own entry, what its transposes give to the columns.
//!
//! Invariant: pointers never leave the slices they were taken from: [`Matrix`] is well formed (see `slab.rs`), and
//! [`run`] checks the lengths of the vectors.
#![allow(unsafe_code)]

use super::Scalar;
use super::slab::PADDING;
#[cfg(target_arch = "x86_64")]
use super::x86;
use std::ops::Range;

/// Blocks of a slab and what belongs to them; `row_start` has an entry more than rows.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a, T> {
    pub(super) row_start: &'a [u32],
    pub(super) columns: &'a [u32],
    pub(super) values: &'a [T],
    pub(super) diagonal: &'a [T],
    pub(super) inverse: &'a [T],
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
    /// (D + L) x = b; r = b - A x within the slab.
    Forward {
        matrix: Matrix<'a, T>,
        b: &'a [T],
        x: &'a mut [T],
        r: &'a mut [T],
        is_damped: bool,
    },
    /// x += v + (D + U)^-1 (r - A v), A without the border; destroys r.
    Backward {
        matrix: Matrix<'a, T>,
        v: &'a [T],
        x: &'a mut [T],
        r: &'a mut [T],
    },
    /// For the blocks C of the rows `rows`, with columns in `far`: y += C far, sent += C^T x, both negative if asked
    /// for; returns the part of the whole vector's x.A x.
    Border {
        matrix: Matrix<'a, T>,
        rows: &'a [u32],
        far: &'a [T],
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
    if let Some(run) = x86::choose::<T, B>() {
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
        Work::Forward {
            matrix, b, x, r, ..
        } => (matrix, [b.len(), x.len(), r.len()]),
        Work::Backward { matrix, v, x, r } => (matrix, [v.len(), x.len(), r.len()]),
        Work::Border {
            matrix,
            rows,
            far,
            x,
            sent,
            y,
            ..
        } => {
            assert_eq!((sent.len(), x.len()), (far.len(), y.len()));
            assert!(
                rows.last()
                    .is_none_or(|&row| (row as usize + 1) * B <= y.len())
            );
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
    }
}

/// Registers that hold a row of a block, or the B scalars of a vector that go with it.
///
/// Safety of all: the processor has the instructions; `load` and `store` touch B scalars, `load_row` at most
/// [`PADDING`] from the pointer on.
pub(super) trait Lanes<T, const B: usize> {
    /// The register; lanes from B on hold anything, but never what `load` and `store` would see.
    type V: Copy;
    /// All zero.
    unsafe fn zero() -> Self::V;
    /// A row of a block; lanes from B on hold what follows.
    unsafe fn load_row(p: *const T) -> Self::V;
    /// B scalars; lanes from B on are zero.
    unsafe fn load(p: *const T) -> Self::V;
    /// B scalars.
    unsafe fn store(p: *mut T, v: Self::V);
    /// For each of the first B lanes, a register full of it.
    unsafe fn splats(v: Self::V) -> [Self::V; B];
    /// a + b.
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    /// a - b.
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    /// a b + c.
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// Lane i is the sum of the lanes of `rows[i]`, those from B on being zero.
    unsafe fn sum_rows(rows: [Self::V; B]) -> Self::V;
    /// Asks for the cache line at `p` to be fetched; `p` may point anywhere.
    unsafe fn prefetch(p: *const T);
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
            Work::Forward {
                matrix,
                b,
                x,
                r,
                is_damped: false,
            } => {
                forward::<T, B, L, false>(matrix, b, x, r);
                0.0
            }
            Work::Forward {
                matrix,
                b,
                x,
                r,
                is_damped: true,
            } => {
                forward::<T, B, L, true>(matrix, b, x, r);
                0.0
            }
            Work::Backward { matrix, v, x, r } => {
                backward::<T, B, L>(matrix, v, x, r);
                0.0
            }
            Work::Border {
                matrix,
                rows,
                far,
                x,
                sent,
                y,
                is_negative,
            } => {
                let sum = border::<T, B, L>(matrix, rows, (far, x), (sent, y), is_negative);
                2.0 * sum
            }
        }
    }
}

/// Bytes that the matrix is fetched ahead of its use: of 1 to 16 KiB, 2 to 4 KiB were best on Zen 4.
const AHEAD: usize = 2048;

/// sums += block `k` times its column's entry of x, lane by lane.
///
/// Safety: as [`run_with`]; there is such a block, and x and y have its column. So for the next two.
#[inline(always)]
unsafe fn gather<T: Scalar, const B: usize, L: Lanes<T, B>>(
    matrix: &Matrix<T>,
    k: usize,
    x: *const T,
    sums: &mut [L::V; B],
) {
    // SAFETY: as demanded of the caller; each block is followed by another or by padding.
    unsafe {
        let block = matrix.values.as_ptr().add(k * B * B);
        let x = L::load(x.add(*matrix.columns.get_unchecked(k) as usize * B));
        for i in 0..B {
            sums[i] = L::mul_add(L::load_row(block.add(i * B)), x, sums[i]);
        }
    }
}

/// y += transposed block `k` times its row's entry, given by its lanes, at its column.
#[inline(always)]
unsafe fn scatter<T: Scalar, const B: usize, L: Lanes<T, B>>(
    matrix: &Matrix<T>,
    k: usize,
    own: &[L::V; B],
    y: *mut T,
) {
    // SAFETY: as for `gather`.
    unsafe {
        let block = matrix.values.as_ptr().add(k * B * B);
        let y = y.add(*matrix.columns.get_unchecked(k) as usize * B);
        let mut sum = L::load(y);
        for i in 0..B {
            sum = L::mul_add(L::load_row(block.add(i * B)), own[i], sum);
        }
        L::store(y, sum);
    }
}

/// Gather and scatter of block `k` in one go; x is not written meanwhile.
#[inline(always)]
unsafe fn gather_and_scatter<T: Scalar, const B: usize, L: Lanes<T, B>>(
    matrix: &Matrix<T>,
    k: usize,
    (x, sums): (*const T, &mut [L::V; B]),
    (own, y): (&[L::V; B], *mut T),
) {
    // SAFETY: as for `gather`.
    unsafe {
        let block = matrix.values.as_ptr().add(k * B * B);
        prefetch_ahead::<T, B, L, false>(matrix, k);
        let at = *matrix.columns.get_unchecked(k) as usize * B;
        let x = L::load(x.add(at));
        let mut sum = L::load(y.add(at));
        for i in 0..B {
            let row = L::load_row(block.add(i * B));
            sums[i] = L::mul_add(row, x, sums[i]);
            sum = L::mul_add(row, own[i], sum);
        }
        L::store(y.add(at), sum);
    }
}

/// A row of blocks times x, in the order in which the whole sweep reads the matrix: ascending or, if `DOWN`,
/// descending.
#[inline(always)]
unsafe fn gather_row<T: Scalar, const B: usize, L: Lanes<T, B>, const DOWN: bool>(
    matrix: &Matrix<T>,
    range: &Range<usize>,
    x: *const T,
) -> L::V {
    // SAFETY: as for `gather`.
    unsafe {
        let mut sums = [L::zero(); B];
        for step in 0..range.len() {
            let k = if DOWN {
                range.end - 1 - step
            } else {
                range.start + step
            };
            prefetch_ahead::<T, B, L, DOWN>(matrix, k);
            gather::<T, B, L>(matrix, k, x, &mut sums);
        }
        L::sum_rows(sums)
    }
}

/// Safety: as [`run_with`].
#[inline(always)]
unsafe fn prefetch_ahead<T: Scalar, const B: usize, L: Lanes<T, B>, const DOWN: bool>(
    matrix: &Matrix<T>,
    k: usize,
) {
    let (block, ahead) = (
        matrix.values.as_ptr().wrapping_add(k * B * B),
        AHEAD / size_of::<T>(),
    );
    let next = if DOWN {
        block.wrapping_sub(ahead)
    } else {
        block.wrapping_add(ahead)
    };
    // SAFETY: as demanded of the caller.
    unsafe { L::prefetch(next) }
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

/// Blocks of row `row`.
///
/// Safety: there is such a row.
#[inline(always)]
unsafe fn row_range<T>(matrix: &Matrix<T>, row: usize) -> Range<usize> {
    // SAFETY: as demanded of the caller.
    unsafe {
        let start = *matrix.row_start.get_unchecked(row);
        start as usize..*matrix.row_start.get_unchecked(row + 1) as usize
    }
}

/// Scalar product of two blocks of lanes, in f64.
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

/// Safety of the following four: as [`run_with`].
#[inline(always)]
unsafe fn product<T: Scalar, const B: usize, L: Lanes<T, B>, const DOT: bool>(
    matrix: Matrix<T>,
    x: &[T],
    y: &mut [T],
) -> f64 {
    let (x, y) = (x.as_ptr(), y.as_mut_ptr());
    let mut total = 0.0;
    for row in 0..matrix.row_start.len() - 1 {
        // SAFETY: as demanded of the caller; columns of a row are smaller than the row.
        unsafe {
            let own = L::load(x.add(row * B));
            let splats = L::splats(own);
            let range = row_range(&matrix, row);
            let mut sums = [L::zero(); B];
            for k in range {
                gather_and_scatter::<T, B, L>(&matrix, k, (x, &mut sums), (&splats, y));
            }
            let below = L::sum_rows(sums);
            let sum = multiply_symmetric::<T, B, L>(matrix.diagonal, row, splats, below);
            L::store(y.add(row * B), sum);
            if DOT {
                total += dot::<T, B, L>(own, L::add(sum, below));
            }
        }
    }
    total
}

#[inline(always)]
unsafe fn forward<T: Scalar, const B: usize, L: Lanes<T, B>, const DAMPED: bool>(
    matrix: Matrix<T>,
    b: &[T],
    x: &mut [T],
    r: &mut [T],
) {
    let (b, x, r) = (b.as_ptr(), x.as_mut_ptr(), r.as_mut_ptr());
    for row in 0..matrix.row_start.len() - 1 {
        // SAFETY: as demanded of the caller; columns of a row are smaller than the row.
        unsafe {
            let range = row_range(&matrix, row);
            let below = gather_row::<T, B, L, false>(&matrix, &range, x);
            let rest = L::sub(L::load(b.add(row * B)), below);
            let zero = L::zero();
            let own = multiply_symmetric::<T, B, L>(matrix.inverse, row, L::splats(rest), zero);
            L::store(x.add(row * B), own);
            let negative = L::splats(L::sub(zero, own));
            let left = if DAMPED {
                multiply_symmetric::<T, B, L>(matrix.diagonal, row, negative, rest)
            } else {
                zero
            };
            L::store(r.add(row * B), left);
            for k in range {
                scatter::<T, B, L>(&matrix, k, &negative, r);
            }
        }
    }
}

#[inline(always)]
unsafe fn backward<T: Scalar, const B: usize, L: Lanes<T, B>>(
    matrix: Matrix<T>,
    v: &[T],
    x: &mut [T],
    r: &mut [T],
) {
    let (v, x, r) = (v.as_ptr(), x.as_mut_ptr(), r.as_mut_ptr());
    for row in (0..matrix.row_start.len() - 1).rev() {
        // SAFETY: as demanded of the caller; columns of a row are smaller than the row.
        unsafe {
            let range = row_range(&matrix, row);
            let guess = L::load(v.add(row * B));
            let below = gather_row::<T, B, L, true>(&matrix, &range, v);
            let splats = L::splats(guess);
            let product = multiply_symmetric::<T, B, L>(matrix.diagonal, row, splats, below);
            let rest = L::splats(L::sub(L::load(r.add(row * B)), product));
            let step = multiply_symmetric::<T, B, L>(matrix.inverse, row, rest, guess);
            L::store(x.add(row * B), L::add(L::load(x.add(row * B)), step));
            let negative = L::splats(L::sub(L::zero(), step));
            for k in range.rev() {
                scatter::<T, B, L>(&matrix, k, &negative, r);
            }
        }
    }
}

#[inline(always)]
unsafe fn border<T: Scalar, const B: usize, L: Lanes<T, B>>(
    matrix: Matrix<T>,
    rows: &[u32],
    (far, x): (&[T], &[T]),
    (sent, y): (&mut [T], &mut [T]),
    is_negative: bool,
) -> f64 {
    let mut total = 0.0;
    for (place, row) in rows.iter().enumerate() {
        let at = *row as usize * B;
        // SAFETY: as demanded of the caller; the border's columns are places in `far` and in `sent`.
        unsafe {
            let x = L::load(x.as_ptr().add(at));
            let signed = if is_negative { L::sub(L::zero(), x) } else { x };
            let range = row_range(&matrix, place);
            let (far, sent) = (far.as_ptr(), sent.as_mut_ptr());
            let splats = L::splats(signed);
            let mut sums = [L::zero(); B];
            for k in range {
                gather_and_scatter::<T, B, L>(&matrix, k, (far, &mut sums), (&splats, sent));
            }
            let sum = L::sum_rows(sums);
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
    }
    total
}

/// Lanes as the compiler makes them, for every block size and processor.
pub(super) struct Portable;

impl<T: Scalar, const B: usize> Lanes<T, B> for Portable {
    type V = [T; B];

    #[inline(always)]
    unsafe fn zero() -> [T; B] {
        [T::ZERO; B]
    }

    #[inline(always)]
    unsafe fn load_row(p: *const T) -> [T; B] {
        // SAFETY: B scalars can be read, as the trait demands of callers; so for the next two.
        unsafe { p.cast::<[T; B]>().read() }
    }

    #[inline(always)]
    unsafe fn load(p: *const T) -> [T; B] {
        // SAFETY: see above.
        unsafe { p.cast::<[T; B]>().read() }
    }

    #[inline(always)]
    unsafe fn store(p: *mut T, v: [T; B]) {
        // SAFETY: see above.
        unsafe { p.cast::<[T; B]>().write(v) }
    }

    #[inline(always)]
    unsafe fn splats(v: [T; B]) -> [[T; B]; B] {
        v.map(|lane| [lane; B])
    }

    #[inline(always)]
    unsafe fn add(a: [T; B], b: [T; B]) -> [T; B] {
        std::array::from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    unsafe fn sub(a: [T; B], b: [T; B]) -> [T; B] {
        std::array::from_fn(|i| a[i] - b[i])
    }

    #[inline(always)]
    unsafe fn mul_add(a: [T; B], b: [T; B], c: [T; B]) -> [T; B] {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }

    #[inline(always)]
    unsafe fn sum_rows(rows: [[T; B]; B]) -> [T; B] {
        rows.map(|row| row.into_iter().fold(T::ZERO, |sum, value| sum + value))
    }

    #[inline(always)]
    unsafe fn prefetch(_: *const T) {}
}
