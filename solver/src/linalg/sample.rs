//! Symmetric positive definite matrices for tests: small grids with the pattern and character of the real thing.
//!
//! Invariant: every rank makes the same matrix; only [`distribute`] communicates.

use super::{BlockCsr, DistMatrix, Scalar};
use fem_mesh::{Comm, IndexMap};

/// Numbers in [-1, 1) that look random.
pub(crate) fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// Stiffness of n x n x n nodes in three dimensions, each tied to its 26 neighbors by springs along the line between
/// them, and the nodes of the first plane to the ground. Its rows have the pattern of trilinear hexahedra.
/// Stiffnesses differ from spring to spring, by up to `contrast`.
pub(crate) fn spring_grid(n: usize, contrast: f64) -> BlockCsr<f64, 3> {
    let mut blocks = Vec::new();
    for_links(n, |from, to, direction| {
        let length2: f64 = direction.iter().map(|d| d * d).sum();
        let stiffness = if (from * 7 + to) % 5 == 0 {
            contrast
        } else {
            1.0
        };
        let entry = |i: usize, j: usize| stiffness * direction[i] * direction[j] / length2;
        let block = std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)));
        push_link(&mut blocks, from, to, block);
    });
    for node in 0..(n * n) as u32 {
        let ground = std::array::from_fn(|i| std::array::from_fn(|j| f64::from(u8::from(i == j))));
        blocks.push((node, node, ground));
    }
    BlockCsr::from_blocks(n * n * n, n * n * n, blocks)
}

/// Conductance of the same grid, one unknown a node.
pub(crate) fn laplace_grid(n: usize) -> BlockCsr<f64, 1> {
    let mut blocks = Vec::new();
    for_links(n, |from, to, _| push_link(&mut blocks, from, to, [[1.0]]));
    blocks.extend((0..(n * n) as u32).map(|node| (node, node, [[1.0]])));
    BlockCsr::from_blocks(n * n * n, n * n * n, blocks)
}

fn for_links(n: usize, mut link: impl FnMut(usize, usize, [f64; 3])) {
    let inside = |i: usize, d: isize| i.checked_add_signed(d).filter(|&i| i < n);
    for from in 0..n * n * n {
        let (i, j, k) = (from % n, from / n % n, from / (n * n));
        for (dk, dj, di) in (0..27).map(|d| (d / 9 - 1, d / 3 % 3 - 1, d % 3 - 1)) {
            let Some(((i, j), k)) = inside(i, di).zip(inside(j, dj)).zip(inside(k, dk)) else {
                continue;
            };
            let to = i + n * (j + n * k);
            if from < to {
                link(from, to, [di as f64, dj as f64, dk as f64]);
            }
        }
    }
}

fn push_link<const B: usize>(
    blocks: &mut Vec<(u32, u32, [[f64; B]; B])>,
    from: usize,
    to: usize,
    block: [[f64; B]; B],
) {
    let (from, to) = (from as u32, to as u32);
    let negative = block.map(|row| row.map(|v| -v));
    blocks.extend([(from, from, block), (to, to, block)]);
    blocks.extend([(from, to, negative), (to, from, negative)]);
}

/// The lower half of a symmetric matrix, zeros on the diagonal where it has no block.
pub(crate) fn lower_half<const B: usize>(a: &BlockCsr<f64, B>) -> BlockCsr<f64, B> {
    let mut blocks: Vec<_> = (0..a.n_rows as u32)
        .map(|row| (row, row, [[0.0; B]; B]))
        .collect();
    for row in 0..a.n_rows {
        for k in a.row(row).filter(|&k| a.columns[k] as usize <= row) {
            blocks.push((row as u32, a.columns[k], block(a, k)));
        }
    }
    BlockCsr::from_blocks(a.n_rows, a.n_cols, blocks)
}

/// A symmetric matrix from its lower half.
pub(crate) fn both_halves<const B: usize>(lower: &BlockCsr<f64, B>) -> BlockCsr<f64, B> {
    let mut blocks = Vec::new();
    for row in 0..lower.n_rows {
        for k in lower.row(row) {
            let (column, block) = (lower.columns[k], block(lower, k));
            blocks.push((row as u32, column, block));
            if column as usize != row {
                let transposed = std::array::from_fn(|i| std::array::from_fn(|j| block[j][i]));
                blocks.push((column, row as u32, transposed));
            }
        }
    }
    BlockCsr::from_blocks(lower.n_rows, lower.n_cols, blocks)
}

fn block<const B: usize>(a: &BlockCsr<f64, B>, k: usize) -> [[f64; B]; B] {
    std::array::from_fn(|i| std::array::from_fn(|j| a.block(k)[i * B + j]))
}

/// A x, where A has both halves.
pub(crate) fn multiply<const B: usize>(a: &BlockCsr<f64, B>, x: &[f64]) -> Vec<f64> {
    let mut y = vec![0.0; a.n_rows * B];
    for (row, y) in y.chunks_exact_mut(B).enumerate() {
        for k in a.row(row) {
            let x = &x[a.columns[k] as usize * B..][..B];
            for (y, values) in y.iter_mut().zip(a.block(k).chunks_exact(B)) {
                *y += values.iter().zip(x).map(|(a, x)| a * x).sum::<f64>();
            }
        }
    }
    y
}

/// Collective. Spreads a symmetric matrix that every rank holds whole over the ranks, in pieces of about the same number
/// of rows.
pub(crate) fn distribute<const B: usize>(comm: &Comm, a: &BlockCsr<f64, B>) -> DistMatrix<B> {
    let rows = owned_rows(comm, a.n_rows);
    let is_owned = |c: u32| rows.contains(&(c as usize));
    let all_columns = a.columns[a.row_start[rows.start]..a.row_start[rows.end]].iter();
    let mut ghosts: Vec<u32> = all_columns.copied().filter(|&c| !is_owned(c)).collect();
    ghosts.sort_unstable();
    ghosts.dedup();
    let (mut owned_blocks, mut ghost_blocks) = (Vec::new(), Vec::new());
    for row in rows.clone() {
        for k in a.row(row) {
            let (local, column) = ((row - rows.start) as u32, a.columns[k]);
            match ghosts.binary_search(&column) {
                Ok(ghost) => ghost_blocks.push((local, ghost as u32, block(a, k))),
                Err(_) => owned_blocks.push((local, column - rows.start as u32, block(a, k))),
            }
        }
    }
    let n = rows.len();
    let lower = lower_half(&BlockCsr::from_blocks(n, n, owned_blocks));
    let ghost = BlockCsr::from_blocks(n, ghosts.len(), ghost_blocks);
    let map = IndexMap::new(comm, n, ghosts.into_iter().map(u64::from).collect());
    DistMatrix::new(comm, map, lower, ghost)
}

/// Rows of [`distribute`] that this rank owns; the last rank but one gets none when there are four.
pub(crate) fn owned_rows(comm: &Comm, n_rows: usize) -> std::ops::Range<usize> {
    let start = |rank: usize| match (comm.n_ranks(), rank) {
        (4, 2) => start_of(n_rows, 3, 4),
        (n_ranks, rank) => start_of(n_rows, rank, n_ranks),
    };
    start(comm.rank())..start(comm.rank() + 1)
}

fn start_of(n_rows: usize, rank: usize, n_ranks: usize) -> usize {
    n_rows * rank / n_ranks
}

/// The same matrix as the `sprs` crate stores it, scalar by scalar.
pub(crate) fn to_sprs<T: Scalar, const B: usize>(a: &BlockCsr<T, B>) -> sprs::CsMat<f64> {
    let mut triplets = sprs::TriMat::new((a.n_rows * B, a.n_cols * B));
    for row in 0..a.n_rows {
        for k in a.row(row) {
            for (at, value) in a.block(k).iter().enumerate() {
                let (i, j) = (row * B + at / B, a.columns[k] as usize * B + at % B);
                triplets.add_triplet(i, j, value.to_f64());
            }
        }
    }
    triplets.to_csr()
}
