//! Rows of 3 x 3 blocks of f32 with AVX2: two blocks at a time.
//!
//! Six lanes of a register hold a row of both blocks of a pair, so that a pair takes as many loads as a block. The last
//! block of a row is left over until its node is known: in a sweep that is often the node computed just before, and
//! nothing else should wait for it.
//!
//! Invariant: as in `rows.rs`.
#![allow(unsafe_code)]

use super::rows::{Index, Row, RowLanes, prefetch_ahead};
use crate::linalg::lanes::Lanes;
use crate::linalg::lanes::x86::Single3;
use std::arch::x86_64::{
    __m128, __m256, _mm_add_ps, _mm_alignr_epi8, _mm_blend_ps, _mm_castps_si128, _mm_castsi128_ps,
    _mm_fmadd_ps, _mm_fnmadd_ps, _mm_load_ps, _mm_loadu_ps, _mm_setzero_ps, _mm_shuffle_ps,
    _mm_store_ps, _mm_sub_ps, _mm_unpackhi_ps, _mm_unpacklo_ps, _mm256_castps128_ps256,
    _mm256_castps256_ps128, _mm256_extractf128_ps, _mm256_fmadd_ps, _mm256_hadd_ps,
    _mm256_insertf128_ps, _mm256_loadu_ps, _mm256_mul_ps, _mm256_permutevar8x32_ps,
    _mm256_setr_epi32, _mm256_setzero_ps, _mm256_shuffle_ps, _mm256_zextps128_ps256,
};

/// Scalars of a block.
const BLOCK: usize = 9;

/// A node of zeros.
#[repr(align(16))]
struct Zeros([f32; 4]);
static ZEROS: Zeros = Zeros([0.0; 4]);

/// A right-hand side less all blocks of a row but the last, whose columns and node are kept.
#[derive(Clone, Copy)]
pub(super) struct LateBlock {
    rest: __m128,
    columns: [__m128; 3],
    node: *const f32,
}

impl RowLanes<f32, 3> for Single3 {
    type Late = LateBlock;

    #[inline(always)]
    unsafe fn gather_early<I: Index>(row: Row<f32, I>, x: *const f32, rhs: __m128) -> LateBlock {
        // SAFETY: as demanded of the caller; so for all blocks here.
        unsafe {
            if row.n == 0 {
                return LateBlock {
                    rest: rhs,
                    columns: [_mm_setzero_ps(); 3],
                    node: ZEROS.0.as_ptr(),
                };
            }
            let last = row.n - 1;
            let zero = [_mm256_setzero_ps(); 3];
            LateBlock {
                rest: _mm_sub_ps(rhs, fold(gather_front::<I, false>(row, x, zero))),
                columns: columns(row.values.add(last * BLOCK)),
                node: node(row, last, x),
            }
        }
    }

    #[inline(always)]
    unsafe fn gather_late(early: LateBlock) -> __m128 {
        // SAFETY: see above.
        unsafe {
            let [x0, x1, x2] = Self::splats(_mm_load_ps(early.node));
            let [a, b, c] = early.columns;
            let rest = _mm_fnmadd_ps(a, x0, early.rest);
            _mm_fnmadd_ps(c, x2, _mm_fnmadd_ps(b, x1, rest))
        }
    }

    #[inline(always)]
    unsafe fn gather<I: Index, const DOWN: bool>(row: Row<f32, I>, x: *const f32) -> __m128 {
        // SAFETY: see above.
        unsafe {
            if row.n == 0 {
                return _mm_setzero_ps();
            }
            let last = row.n - 1;
            let block = row.values.add(last * BLOCK);
            let mut sums = [_mm256_setzero_ps(); 3];
            if DOWN {
                sums = gather_one(block, node(row, last, x), sums);
            }
            sums = gather_front::<I, DOWN>(row, x, sums);
            if !DOWN {
                sums = gather_one(block, node(row, last, x), sums);
            }
            fold(sums)
        }
    }

    #[inline(always)]
    unsafe fn scatter<I: Index, const DOWN: bool>(row: Row<f32, I>, own: __m128, y: *mut f32) {
        // SAFETY: see above.
        unsafe {
            if row.n == 0 {
                return;
            }
            let own = Self::splats(own);
            let wide = widen(own);
            let (last, first) = (row.n - 1, (row.n - 1) % 2);
            if DOWN {
                scatter_one(row.values.add(last * BLOCK), own, node_mut(row, last, y));
            } else if first == 1 {
                scatter_one(row.values, own, node_mut(row, 0, y));
            }
            for step in 0..last / 2 {
                let pair = if DOWN { last / 2 - 1 - step } else { step };
                let k = first + 2 * pair;
                let block = row.values.add(k * BLOCK);
                scatter_two(
                    load_pair(block),
                    wide,
                    node_mut(row, k, y),
                    node_mut(row, k + 1, y),
                );
            }
            if !DOWN {
                scatter_one(row.values.add(last * BLOCK), own, node_mut(row, last, y));
            } else if first == 1 {
                scatter_one(row.values, own, node_mut(row, 0, y));
            }
        }
    }

    #[inline(always)]
    unsafe fn gather_and_scatter<I: Index>(
        row: Row<f32, I>,
        x: *const f32,
        own: __m128,
        y: *mut f32,
    ) -> __m128 {
        // SAFETY: see above.
        unsafe {
            if row.n == 0 {
                return _mm_setzero_ps();
            }
            let own = Self::splats(own);
            let wide = widen(own);
            let mut sums = [_mm256_setzero_ps(); 3];
            let (last, first) = (row.n - 1, (row.n - 1) % 2);
            if first == 1 {
                sums = gather_one(row.values, node(row, 0, x), sums);
                scatter_one(row.values, own, node_mut(row, 0, y));
            }
            for pair in 0..last / 2 {
                let k = first + 2 * pair;
                let block = row.values.add(k * BLOCK);
                prefetch_pair::<false>(block);
                let (rows, x) = (
                    load_pair(block),
                    load_two(node(row, k, x), node(row, k + 1, x)),
                );
                for i in 0..3 {
                    sums[i] = _mm256_fmadd_ps(rows[i], x, sums[i]);
                }
                scatter_two(rows, wide, node_mut(row, k, y), node_mut(row, k + 1, y));
            }
            let block = row.values.add(last * BLOCK);
            sums = gather_one(block, node(row, last, x), sums);
            scatter_one(block, own, node_mut(row, last, y));
            fold(sums)
        }
    }
}

/// The node of block `k`.
///
/// Safety of this and of all that follows: as for [`RowLanes`]; there is such a block.
#[inline(always)]
unsafe fn node<I: Index>(row: Row<f32, I>, k: usize, nodes: *const f32) -> *const f32 {
    // SAFETY: as demanded of the caller; so for all blocks that follow.
    unsafe { nodes.add((*row.columns.add(k)).place() * 4) }
}

#[inline(always)]
unsafe fn node_mut<I: Index>(row: Row<f32, I>, k: usize, nodes: *mut f32) -> *mut f32 {
    // SAFETY: see above.
    unsafe { nodes.add((*row.columns.add(k)).place() * 4) }
}

/// Adds the product of all blocks of a row but the last, six lanes for each row of a block.
#[inline(always)]
unsafe fn gather_front<I: Index, const DOWN: bool>(
    row: Row<f32, I>,
    x: *const f32,
    mut sums: [__m256; 3],
) -> [__m256; 3] {
    // SAFETY: see above.
    unsafe {
        let (last, first) = (row.n - 1, (row.n - 1) % 2);
        if !DOWN && first == 1 {
            sums = gather_one(row.values, node(row, 0, x), sums);
        }
        for step in 0..last / 2 {
            let pair = if DOWN { last / 2 - 1 - step } else { step };
            let k = first + 2 * pair;
            let block = row.values.add(k * BLOCK);
            prefetch_pair::<DOWN>(block);
            let (rows, x) = (
                load_pair(block),
                load_two(node(row, k, x), node(row, k + 1, x)),
            );
            for i in 0..3 {
                sums[i] = _mm256_fmadd_ps(rows[i], x, sums[i]);
            }
        }
        if DOWN && first == 1 {
            sums = gather_one(row.values, node(row, 0, x), sums);
        }
        sums
    }
}

#[inline(always)]
unsafe fn prefetch_pair<const DOWN: bool>(block: *const f32) {
    // SAFETY: see above.
    unsafe {
        prefetch_ahead::<f32, 3, Single3, DOWN>(block);
        prefetch_ahead::<f32, 3, Single3, DOWN>(block.add(BLOCK));
    }
}

/// The rows of a pair of blocks; lanes 6 and 7 hold what follows.
#[inline(always)]
unsafe fn load_pair(block: *const f32) -> [__m256; 3] {
    // SAFETY: see above.
    unsafe {
        [
            _mm256_loadu_ps(block),
            _mm256_loadu_ps(block.add(6)),
            _mm256_loadu_ps(block.add(12)),
        ]
    }
}

/// Two nodes in lanes 0 to 5.
#[inline(always)]
unsafe fn load_two(first: *const f32, second: *const f32) -> __m256 {
    // SAFETY: see above.
    unsafe {
        let first = _mm256_castps128_ps256(_mm_load_ps(first));
        let both = _mm256_insertf128_ps::<1>(first, _mm_load_ps(second));
        _mm256_permutevar8x32_ps(both, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7))
    }
}

/// Adds the product of a block that stands alone.
#[inline(always)]
unsafe fn gather_one(block: *const f32, x: *const f32, sums: [__m256; 3]) -> [__m256; 3] {
    // SAFETY: see above. The node is followed by zeros, which rid the sums of what follows in the rows.
    unsafe {
        let x = _mm_blend_ps::<0b1000>(_mm_load_ps(x), _mm_setzero_ps());
        let x = _mm256_zextps128_ps256(x);
        [
            _mm256_fmadd_ps(_mm256_loadu_ps(block), x, sums[0]),
            _mm256_fmadd_ps(_mm256_loadu_ps(block.add(3)), x, sums[1]),
            _mm256_fmadd_ps(_mm256_loadu_ps(block.add(6)), x, sums[2]),
        ]
    }
}

/// Lane i is the sum of the first six lanes of `sums[i]`.
#[inline(always)]
unsafe fn fold([a, b, c]: [__m256; 3]) -> __m128 {
    // SAFETY: see above.
    unsafe {
        // Sums of two lanes: 01 23 of both rows, then 45 67, of which 67 is left out.
        let (ab, cc) = (_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, c));
        let front = _mm256_castps256_ps128(_mm256_hadd_ps(ab, cc));
        let back = _mm256_extractf128_ps::<1>(_mm256_shuffle_ps::<0b10_00_10_00>(ab, cc));
        _mm_add_ps(front, back)
    }
}

/// The columns of a block; lane 3 of each holds what does not matter.
#[inline(always)]
unsafe fn columns(block: *const f32) -> [__m128; 3] {
    // SAFETY: see above.
    unsafe {
        let (a, b, c) = (
            _mm_loadu_ps(block),
            _mm_loadu_ps(block.add(3)),
            _mm_loadu_ps(block.add(6)),
        );
        let (front, back) = (_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b));
        [
            _mm_shuffle_ps::<0b11_00_01_00>(front, c),
            _mm_shuffle_ps::<0b11_01_11_10>(front, c),
            _mm_blend_ps::<0b0011>(c, back),
        ]
    }
}

/// Both halves alike.
#[inline(always)]
unsafe fn widen([a, b, c]: [__m128; 3]) -> [__m256; 3] {
    // SAFETY: see above.
    unsafe {
        [
            _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(a), a),
            _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(b), b),
            _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(c), c),
        ]
    }
}

/// Adds the transpose of a block that stands alone times the row's own node, given by its lanes.
#[inline(always)]
unsafe fn scatter_one(block: *const f32, own: [__m128; 3], y: *mut f32) {
    // SAFETY: see above.
    unsafe {
        let sum = _mm_fmadd_ps(_mm_loadu_ps(block), own[0], _mm_load_ps(y));
        let sum = _mm_fmadd_ps(_mm_loadu_ps(block.add(3)), own[1], sum);
        _mm_store_ps(y, _mm_fmadd_ps(_mm_loadu_ps(block.add(6)), own[2], sum));
    }
}

/// Adds the transposes of a pair likewise.
#[inline(always)]
unsafe fn scatter_two(rows: [__m256; 3], own: [__m256; 3], first: *mut f32, second: *mut f32) {
    // SAFETY: see above.
    unsafe {
        let both = _mm256_mul_ps(rows[0], own[0]);
        let both = _mm256_fmadd_ps(rows[1], own[1], both);
        let both = _mm256_fmadd_ps(rows[2], own[2], both);
        let (low, high) = (
            _mm256_castps256_ps128(both),
            _mm256_extractf128_ps::<1>(both),
        );
        let back = _mm_alignr_epi8::<12>(_mm_castps_si128(high), _mm_castps_si128(low));
        _mm_store_ps(first, _mm_add_ps(_mm_load_ps(first), low));
        let back = _mm_castsi128_ps(back);
        _mm_store_ps(second, _mm_add_ps(_mm_load_ps(second), back));
    }
}
