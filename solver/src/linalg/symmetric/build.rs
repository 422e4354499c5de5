//! From the lower half of a matrix to slabs of it, and back.
//!
//! Invariant: slabs follow from the pattern alone; each slab's arrays are first touched by the thread that fills them.

use super::fill::build_slab;
use super::{Scalar, SymmetricSlabs};
use crate::linalg::BlockCsr;
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
    /// From the lower half of a symmetric matrix, see [`BlockCsr`]. Threaded.
    ///
    /// # Panics
    /// If the matrix is not square, or a row does not end with its diagonal block.
    pub fn from_lower<S: Scalar>(lower: &BlockCsr<S, B>, damping: Damping) -> Self {
        let rows = slab_rows(&lower.row_start, n_slabs(lower.n_rows));
        Self::in_slabs(lower, None, rows, damping)
    }

    /// As [`SymmetricSlabs::from_lower`], where the rows also have blocks `outside`, in columns of other ranks. They are
    /// not part of the matrix, but [`Damping::L1`] heeds them.
    ///
    /// # Panics
    /// Likewise, and if the number of rows differs.
    pub fn with_outside<S: Scalar>(
        lower: &BlockCsr<S, B>,
        outside: &BlockCsr<S, B>,
        damping: Damping,
    ) -> Self {
        assert_eq!(lower.n_rows, outside.n_rows, "rows of the blocks outside");
        let rows = slab_rows(&lower.row_start, n_slabs(lower.n_rows));
        Self::in_slabs(lower, Some(outside), rows, damping)
    }

    /// In slabs that the caller chooses: consecutive, and all rows of the matrix.
    pub(super) fn in_slabs<S: Scalar>(
        lower: &BlockCsr<S, B>,
        outside: Option<&BlockCsr<S, B>>,
        rows: Vec<Range<usize>>,
        damping: Damping,
    ) -> Self {
        assert!(lower.is_lower_half(), "the diagonal ends each row");
        let couplings = match damping {
            Damping::None => Vec::new(),
            Damping::L1 => coupling_sums(lower, outside, &rows),
        };
        let slabs = rows
            .into_par_iter()
            .map(|rows| build_slab(lower, &couplings, rows))
            .collect();
        SymmetricSlabs {
            n_rows: lower.n_rows,
            slabs,
        }
    }

    /// As [`SymmetricSlabs::from_lower`], undamped; gives the memory of the lower half back piece by piece on the way, so
    /// that both are never held at once.
    pub fn consume<S: Scalar>(mut lower: BlockCsr<S, B>) -> Self {
        assert!(lower.is_lower_half(), "the diagonal ends each row");
        let rows = slab_rows(&lower.row_start, n_slabs(lower.n_rows));
        let mut slabs = Vec::with_capacity(rows.len());
        let at_a_time = rayon::current_num_threads();
        for group in rows.rchunks(at_a_time) {
            let built = group
                .par_iter()
                .rev()
                .map(|rows| build_slab(&lower, &[], rows.clone()));
            slabs.extend(built.collect::<Vec<_>>());
            let left = lower.row_start[group[0].start];
            lower.columns.truncate(left);
            lower.columns.shrink_to_fit();
            lower.values.truncate(left * B * B);
            lower.values.shrink_to_fit();
        }
        slabs.reverse();
        SymmetricSlabs {
            n_rows: lower.n_rows,
            slabs,
        }
    }

    /// The lower half, as [`SymmetricSlabs::from_lower`] takes it; diagonal blocks are exactly symmetric.
    pub fn to_lower(&self) -> BlockCsr<T, B> {
        let mut row_start = Vec::with_capacity(self.n_rows + 1);
        row_start.push(0);
        let mut columns = Vec::with_capacity(self.n_blocks());
        let mut values = Vec::with_capacity(self.n_blocks() * B * B);
        for slab in &self.slabs {
            for row in 0..slab.rows.len() {
                for (column, block) in slab.lower_blocks::<B>(row) {
                    columns.push(column);
                    values.extend_from_slice(block.as_flattened());
                }
                row_start.push(columns.len());
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

/// Sums of absolute values, by scalar rows, of the blocks that slabs ignore in their sweeps: those in columns of other
/// slabs and those `outside`. A block stored in one slab stands in rows of an earlier one too.
fn coupling_sums<S: Scalar, const B: usize>(
    lower: &BlockCsr<S, B>,
    outside: Option<&BlockCsr<S, B>>,
    slabs: &[Range<usize>],
) -> Vec<[f64; B]> {
    let parts: Vec<CouplingSums<B>> = (slabs.par_iter())
        .map(|rows| CouplingSums::new(lower, outside, rows.clone()))
        .collect();
    let mut sums = Vec::with_capacity(lower.n_rows);
    for part in &parts {
        sums.extend_from_slice(&part.own);
    }
    for part in &parts {
        for (row, across) in part.touched.iter().zip(&part.across) {
            (0..B).for_each(|i| sums[*row as usize][i] += across[i]);
        }
    }
    sums
}

/// What one slab knows of [`coupling_sums`].
struct CouplingSums<const B: usize> {
    /// Of the slab's rows.
    own: Vec<[f64; B]>,
    /// Rows of earlier slabs, ascending, and what their blocks stored in this slab add to their sums.
    touched: Vec<u32>,
    across: Vec<[f64; B]>,
}

impl<const B: usize> CouplingSums<B> {
    fn new<S: Scalar>(
        lower: &BlockCsr<S, B>,
        outside: Option<&BlockCsr<S, B>>,
        rows: Range<usize>,
    ) -> Self {
        let touched = touched_rows(lower, &rows);
        let mut sums = CouplingSums {
            own: vec![[0.0; B]; rows.len()],
            across: vec![[0.0; B]; touched.len()],
            touched,
        };
        for (row, own) in rows.clone().zip(&mut sums.own) {
            let blocks = lower.row(row);
            for k in blocks.take_while(|&k| (lower.columns[k] as usize) < rows.start) {
                let place = place_of(&sums.touched, lower.columns[k]);
                let across = &mut sums.across[place];
                for (at, value) in lower.block(k).iter().enumerate() {
                    let value = value.to_f64().abs();
                    own[at / B] += value;
                    across[at % B] += value;
                }
            }
            for (blocks, k) in outside.iter().flat_map(|o| o.row(row).map(move |k| (o, k))) {
                for (at, value) in blocks.block(k).iter().enumerate() {
                    own[at / B] += value.to_f64().abs();
                }
            }
        }
        sums
    }
}

/// Place of `row` among `touched` rows that hold it.
pub(super) fn place_of(touched: &[u32], row: u32) -> usize {
    touched.partition_point(|&touched| touched < row)
}

/// Rows of earlier slabs that `rows` couple to, ascending.
pub(super) fn touched_rows<S: Scalar, const B: usize>(
    lower: &BlockCsr<S, B>,
    rows: &Range<usize>,
) -> Vec<u32> {
    let is_before = |column: &&u32| (**column as usize) < rows.start;
    let before = |row: usize| {
        lower.columns[lower.row(row)]
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
