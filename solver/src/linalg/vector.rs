//! Operations on distributed vectors: plain slices of owned entries.
//!
//! Sums are taken over chunks of [`CHUNK`] scalars and then over the chunks in order, so that the result has the
//! same bits for any number of threads; sums over ranks are merged into one reduction for several values.
//!
//! Invariant: knows no matrix.

use fem_mesh::Comm;
use rayon::prelude::{
    IndexedParallelIterator, IntoParallelIterator, ParallelIterator, ParallelSliceMut,
};
use std::ops::Range;

/// Scalars that are summed as one piece; part of the definition of every sum.
pub const CHUNK: usize = 4096;

/// Vectors shorter than this are worked on by one thread: waking others costs more than it gains.
const MIN_THREADED: usize = 8 * CHUNK;

/// Whether work on `n` scalars of a vector is shared among the threads.
fn is_threaded(n: usize) -> bool {
    n >= MIN_THREADED && rayon::current_num_threads() > 1
}

/// Scalar product of two equally long pieces, in a fixed order that the compiler can vectorize.
fn dot_piece(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 8;
    let mut lanes = [0.0; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let tail: f64 = (a_chunks.remainder().iter().zip(b_chunks.remainder()))
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    lanes.iter().sum::<f64>() + tail
}

/// Sums of N quantities over `n` scalars: `piece` gives those of one chunk.
fn sum_chunks<const N: usize>(
    n: usize,
    piece: impl Fn(Range<usize>) -> [f64; N] + Sync,
) -> [f64; N] {
    let chunk = |c: usize| piece(c * CHUNK..n.min((c + 1) * CHUNK));
    let n_chunks = n.div_ceil(CHUNK);
    if is_threaded(n) {
        let parts: Vec<[f64; N]> = (0..n_chunks).into_par_iter().map(chunk).collect();
        parts.into_iter().fold([0.0; N], add)
    } else {
        (0..n_chunks).map(chunk).fold([0.0; N], add)
    }
}

fn add<const N: usize>(sum: [f64; N], part: [f64; N]) -> [f64; N] {
    std::array::from_fn(|i| sum[i] + part[i])
}

/// Collective. Scalar products of N pairs of vectors (of one length), with one reduction over the ranks.
pub fn dots<const N: usize>(comm: &Comm, pairs: [(&[f64], &[f64]); N]) -> [f64; N] {
    let n = pairs.first().map_or(0, |pair| pair.0.len());
    let mut sums = sum_chunks(n, |range| {
        pairs.map(|(a, b)| dot_piece(&a[range.clone()], &b[range.clone()]))
    });
    comm.sum_into(&mut sums);
    sums
}

/// This rank's part of a scalar product, for callers that merge it into a reduction of their own.
pub fn local_dot(a: &[f64], b: &[f64]) -> f64 {
    let [sum] = sum_chunks(a.len(), |range| [dot_piece(&a[range.clone()], &b[range])]);
    sum
}

/// Collective. Scalar product.
pub fn dot(comm: &Comm, a: &[f64], b: &[f64]) -> f64 {
    let [sum] = dots(comm, [(a, b)]);
    sum
}

/// Collective. Euclidean norm.
pub fn norm(comm: &Comm, a: &[f64]) -> f64 {
    dot(comm, a, a).sqrt()
}

/// Runs `piece` on every chunk of `y`, with the place of its first scalar.
fn for_chunks(y: &mut [f64], piece: impl Fn(usize, &mut [f64]) + Sync) {
    if is_threaded(y.len()) {
        y.par_chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(c, y)| piece(c * CHUNK, y));
    } else {
        y.chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(c, y)| piece(c * CHUNK, y));
    }
}

/// y = a x + b y.
pub fn axpby(a: f64, x: &[f64], b: f64, y: &mut [f64]) {
    for_chunks(y, |start, y| {
        for (y, x) in y.iter_mut().zip(&x[start..]) {
            *y = a * x + b * *y;
        }
    });
}

/// z = x * y, entry by entry.
pub fn multiply_entries(x: &[f64], y: &[f64], z: &mut [f64]) {
    for_chunks(z, |start, z| {
        for ((z, x), y) in z.iter_mut().zip(&x[start..]).zip(&y[start..]) {
            *z = x * y;
        }
    });
}

/// y = D x for a block diagonal D, given by its blocks.
pub fn multiply_blocks<const B: usize>(blocks: &[[[f64; B]; B]], x: &[f64], y: &mut [f64]) {
    let piece = |first: usize, y: &mut [f64]| {
        let rows = blocks[first..].iter().zip(x[first * B..].chunks_exact(B));
        for (y, (block, x)) in y.chunks_exact_mut(B).zip(rows) {
            for (y, row) in y.iter_mut().zip(block) {
                *y = row.iter().zip(x).map(|(a, x)| a * x).sum();
            }
        }
    };
    if is_threaded(y.len()) {
        y.par_chunks_mut(CHUNK * B)
            .enumerate()
            .for_each(|(c, y)| piece(c * CHUNK, y));
    } else {
        piece(0, y);
    }
}

/// r = b - r in one pass, where `r` comes in as A x; returns this rank's part of r.r.
pub fn residual_in_place(b: &[f64], r: &mut [f64]) -> f64 {
    let piece = |start: usize, r: &mut [f64]| {
        for (r, b) in r.iter_mut().zip(&b[start..]) {
            *r = b - *r;
        }
        dot_piece(r, r)
    };
    if is_threaded(r.len()) {
        let parts: Vec<f64> = r
            .par_chunks_mut(CHUNK)
            .enumerate()
            .map(|(c, r)| piece(c * CHUNK, r))
            .collect();
        parts.into_iter().sum()
    } else {
        r.chunks_mut(CHUNK)
            .enumerate()
            .map(|(c, r)| piece(c * CHUNK, r))
            .sum()
    }
}

/// x += alpha p and r -= alpha q in one pass; returns this rank's part of the new r.r.
pub fn step_and_norm(alpha: f64, p: &[f64], q: &[f64], x: &mut [f64], r: &mut [f64]) -> f64 {
    let piece = |start: usize, x: &mut [f64], r: &mut [f64]| {
        let range = start..start + r.len();
        let updates = x
            .iter_mut()
            .zip(&mut *r)
            .zip(p[range.clone()].iter().zip(&q[range]));
        for ((x, r), (p, q)) in updates {
            *x += alpha * p;
            *r -= alpha * q;
        }
        dot_piece(r, r)
    };
    if is_threaded(r.len()) {
        let chunks = x
            .par_chunks_mut(CHUNK)
            .zip(r.par_chunks_mut(CHUNK))
            .enumerate();
        let parts: Vec<f64> = chunks.map(|(c, (x, r))| piece(c * CHUNK, x, r)).collect();
        parts.into_iter().sum()
    } else {
        let chunks = x.chunks_mut(CHUNK).zip(r.chunks_mut(CHUNK)).enumerate();
        chunks.map(|(c, (x, r))| piece(c * CHUNK, x, r)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, axpby, dots, norm, residual_in_place, step_and_norm};
    use crate::linalg::sample::noise;
    use fem_mesh::Comm;
    use fem_mesh::comm::run_threads;

    #[test]
    fn sums_over_ranks_are_those_of_the_whole_vector() {
        let (a, b) = (noise(12_000, 1), noise(12_000, 2));
        let expected: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let n = a.len() / n_ranks;
                let mine = comm.rank() * n..(comm.rank() + 1) * n;
                let (a, b) = (&a[mine.clone()], &b[mine]);
                let [ab, aa] = dots(comm, [(a, b), (a, a)]);
                assert!((ab - expected).abs() < 1e-10, "{ab} {expected}");
                assert!((aa.sqrt() - norm(comm, a)).abs() < 1e-12);
            });
        }
    }

    #[test]
    fn the_number_of_threads_does_not_change_a_bit() {
        let n = 20 * CHUNK + 77;
        let run = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(n_threads)
                .build()
                .expect("threads start");
            pool.install(|| {
                let (p, q, mut x, mut r) = (noise(n, 1), noise(n, 2), noise(n, 3), noise(n, 4));
                let rr = step_and_norm(0.3, &p, &q, &mut x, &mut r);
                axpby(0.7, &q, -0.2, &mut x);
                let ss = residual_in_place(&p, &mut r);
                let [xp, xx] = dots(&Comm::alone(), [(&x, &p), (&x, &x)]);
                ([rr, ss, xp, xx].map(f64::to_bits), x, r)
            })
        };
        let one = run(1);
        assert_eq!(one, run(2));
        assert_eq!(one, run(3));
    }

    #[test]
    fn fused_updates_do_what_their_names_say() {
        let n = 2 * CHUNK + 5;
        let (p, q, x0, r0) = (noise(n, 1), noise(n, 2), noise(n, 3), noise(n, 4));
        let (mut x, mut r) = (x0.clone(), r0.clone());
        let rr = step_and_norm(0.5, &p, &q, &mut x, &mut r);
        let mut expected = 0.0;
        for i in 0..n {
            assert_eq!((x[i], r[i]), (x0[i] + 0.5 * p[i], r0[i] - 0.5 * q[i]));
            expected += r[i] * r[i];
        }
        assert!((rr - expected).abs() < 1e-12 * expected);
    }
}
