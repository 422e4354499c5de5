//! Operations on distributed vectors: plain slices of owned entries.
//!
//! Vectors cost what the memory costs, so what an iteration does with them is merged into as few passes as possible:
//! each goes over its vectors once, in chunks of [`CHUNK`] scalars that stay in the nearest cache between the parts of
//! the work. Sums are taken over chunks and then over the chunks in order, so that the result has the same bits for any
//! number of threads. A sum returned here is that of this rank's entries, unless the function takes the group of ranks:
//! callers merge what they need into one reduction.
//!
//! Invariant: knows no matrix.

use fem_mesh::Comm;
use rayon::prelude::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use std::ops::Range;

/// Scalars that are worked on and summed as one piece; part of the definition of every sum. Four such pieces fit into
/// the first-level cache.
pub const CHUNK: usize = 1024;

/// Fewest chunks that a thread takes at a time.
const CHUNKS_PER_TASK: usize = 8;

/// Vectors shorter than this are worked on by one thread: waking others costs more than it gains.
const MIN_THREADED: usize = 32 * CHUNK;

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

fn add<const N: usize>(sum: [f64; N], part: [f64; N]) -> [f64; N] {
    std::array::from_fn(|i| sum[i] + part[i])
}

/// Places of chunk `c` of `n` scalars in chunks of `width`.
fn chunk(c: usize, width: usize, n: usize) -> Range<usize> {
    c * width..n.min((c + 1) * width)
}

/// Sums of N quantities over `n` scalars: `piece` gives those of one chunk.
fn sum_chunks<const N: usize>(
    n: usize,
    piece: impl Fn(Range<usize>) -> [f64; N] + Sync,
) -> [f64; N] {
    let n_chunks = n.div_ceil(CHUNK);
    let of_chunk = |c: usize| piece(chunk(c, CHUNK, n));
    if is_threaded(n) {
        let chunks = (0..n_chunks).into_par_iter();
        let parts: Vec<[f64; N]> = chunks.with_min_len(CHUNKS_PER_TASK).map(of_chunk).collect();
        parts.into_iter().fold([0.0; N], add)
    } else {
        (0..n_chunks).map(of_chunk).fold([0.0; N], add)
    }
}

/// One pass over M vectors of one length that are written, in chunks of `width` scalars: `piece` gets the places of a
/// chunk and the chunk of each vector, and returns N parts of sums.
fn pass<T: Send, const M: usize, const N: usize>(
    width: usize,
    vectors: [&mut [T]; M],
    piece: impl Fn(Range<usize>, [&mut [T]; M]) -> [f64; N] + Sync,
) -> [f64; N] {
    let n = vectors.first().map_or(0, |vector| vector.len());
    let mut rests = vectors.map(|vector| vector.chunks_mut(width));
    let chunks = (0..n.div_ceil(width)).map(|c| {
        let pieces = rests.each_mut().map(|rest| rest.next().unwrap_or_default());
        (chunk(c, width, n), pieces)
    });
    let of_chunk = |(range, pieces)| piece(range, pieces);
    if is_threaded(n) {
        let chunks: Vec<(Range<usize>, [&mut [T]; M])> = chunks.collect();
        let parts: Vec<[f64; N]> = chunks
            .into_par_iter()
            .with_min_len(CHUNKS_PER_TASK)
            .map(of_chunk)
            .collect();
        parts.into_iter().fold([0.0; N], add)
    } else {
        chunks.map(of_chunk).fold([0.0; N], add)
    }
}

/// This rank's parts of the scalar products of N pairs of vectors of one length.
pub fn local_dots<const N: usize>(pairs: [(&[f64], &[f64]); N]) -> [f64; N] {
    let n = pairs.first().map_or(0, |pair| pair.0.len());
    sum_chunks(n, |range| {
        pairs.map(|(a, b)| dot_piece(&a[range.clone()], &b[range.clone()]))
    })
}

/// This rank's part of a scalar product.
pub fn local_dot(a: &[f64], b: &[f64]) -> f64 {
    let [sum] = local_dots([(a, b)]);
    sum
}

/// Collective. Scalar products of N pairs of vectors (of one length), with one reduction over the ranks.
pub fn dots<const N: usize>(comm: &Comm, pairs: [(&[f64], &[f64]); N]) -> [f64; N] {
    let mut sums = local_dots(pairs);
    comm.sum_into(&mut sums);
    sums
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

/// y = a x + b y.
pub fn axpby(a: f64, x: &[f64], b: f64, y: &mut [f64]) {
    pass(CHUNK, [y], |range, [y]| {
        for (y, x) in y.iter_mut().zip(&x[range]) {
            *y = a * x + b * *y;
        }
        []
    });
}

/// z = x * y, entry by entry; returns y.z.
pub fn multiply_entries(x: &[f64], y: &[f64], z: &mut [f64]) -> f64 {
    let [yz] = pass(CHUNK, [z], |range, [z]| {
        let y = &y[range.clone()];
        for ((z, x), y) in z.iter_mut().zip(&x[range]).zip(y) {
            *z = x * y;
        }
        [dot_piece(y, z)]
    });
    yz
}

/// y = D x for a block diagonal D, given by its blocks; returns x.y.
pub fn multiply_blocks<const B: usize>(blocks: &[[[f64; B]; B]], x: &[f64], y: &mut [f64]) -> f64 {
    let width = CHUNK / B * B;
    let [xy] = pass(width, [y], |range, [y]| {
        let x = &x[range.clone()];
        let rows = blocks[range.start / B..].iter().zip(x.chunks_exact(B));
        for (y, (block, x)) in y.chunks_exact_mut(B).zip(rows) {
            for (y, row) in y.iter_mut().zip(block) {
                *y = row.iter().zip(x).map(|(a, x)| a * x).sum();
            }
        }
        [dot_piece(x, y)]
    });
    xy
}

/// r = b - r in one pass, where `r` comes in as A x; returns r.r.
pub fn residual_in_place(b: &[f64], r: &mut [f64]) -> f64 {
    let [rr] = pass(CHUNK, [r], |range, [r]| {
        for (r, b) in r.iter_mut().zip(&b[range]) {
            *r = b - *r;
        }
        [dot_piece(r, r)]
    });
    rr
}

/// r -= alpha q in one pass; returns the new r.r.
pub fn descend(alpha: f64, q: &[f64], r: &mut [f64]) -> f64 {
    let [rr] = pass(CHUNK, [r], |range, [r]| {
        for (r, q) in r.iter_mut().zip(&q[range]) {
            *r -= alpha * q;
        }
        [dot_piece(r, r)]
    });
    rr
}

/// x += alpha p, and then p = z + beta p, in one pass.
pub fn advance(alpha: f64, x: &mut [f64], beta: f64, z: &[f64], p: &mut [f64]) {
    pass(CHUNK, [x, p], |range, [x, p]| {
        for ((x, p), z) in x.iter_mut().zip(p).zip(&z[range]) {
            *x += alpha * *p;
            *p = z + beta * *p;
        }
        []
    });
}

/// The vectors of a step of conjugate gradients that are written.
pub struct StepVectors<'a> {
    /// Search direction.
    pub p: &'a mut [f64],
    /// Matrix times the search direction.
    pub q: &'a mut [f64],
    /// Solution.
    pub x: &'a mut [f64],
    /// Residual.
    pub r: &'a mut [f64],
}

/// p = z + beta p and q = w + beta q, then x += alpha p and r -= alpha q, in one pass; returns the new r.r.
pub fn merged_step(beta: f64, z: &[f64], w: &[f64], alpha: f64, step: StepVectors) -> f64 {
    let StepVectors { p, q, x, r } = step;
    let [rr] = pass(CHUNK, [p, q, x, r], |range, [p, q, x, r]| {
        for ((p, x), z) in p.iter_mut().zip(x).zip(&z[range.clone()]) {
            *p = z + beta * *p;
            *x += alpha * *p;
        }
        for ((q, r), w) in q.iter_mut().zip(&mut *r).zip(&w[range]) {
            *q = w + beta * *q;
            *r -= alpha * *q;
        }
        [dot_piece(r, r)]
    });
    rr
}

/// y = factor x in single precision.
pub fn narrow(factor: f64, x: &[f64], y: &mut [f32]) {
    pass(CHUNK, [y], |range, [y]| {
        for (y, x) in y.iter_mut().zip(&x[range]) {
            *y = (factor * x) as f32;
        }
        []
    });
}

/// y = factor x in double precision; returns y.a and y.b.
pub fn widen_dots(factor: f64, x: &[f32], y: &mut [f64], [a, b]: [&[f64]; 2]) -> [f64; 2] {
    pass(CHUNK, [y], |range, [y]| {
        for (y, x) in y.iter_mut().zip(&x[range.clone()]) {
            *y = factor * f64::from(*x);
        }
        let first = dot_piece(y, &a[range.clone()]);
        // A caller that needs one product passes its vector twice.
        let second = if std::ptr::eq(a, b) {
            first
        } else {
            dot_piece(y, &b[range])
        };
        [first, second]
    })
}

/// The largest power of two not above `value`, by which no digit of a number changes; 1 for 0.
pub fn power_of_two(value: f64) -> f64 {
    if value > 0.0 {
        value.log2().floor().exp2()
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::{
        CHUNK, StepVectors, advance, axpby, descend, dots, local_dot, merged_step, multiply_blocks,
        narrow, norm, residual_in_place, widen_dots,
    };
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
        let n = 80 * CHUNK + 77;
        let run = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(n_threads)
                .build()
                .expect("threads start");
            pool.install(|| {
                let [z, w, mut p, mut q, mut x, mut r] = [1, 2, 3, 4, 5, 6].map(|s| noise(n, s));
                let mut single = vec![0.0f32; n];
                let mut y = vec![0.0; n];
                let (step, rr) = {
                    let vectors = StepVectors {
                        p: &mut p,
                        q: &mut q,
                        x: &mut x,
                        r: &mut r,
                    };
                    (
                        merged_step(0.3, &z, &w, 0.7, vectors),
                        descend(0.2, &q, &mut r),
                    )
                };
                advance(0.4, &mut x, 0.1, &z, &mut p);
                axpby(0.7, &q, -0.2, &mut x);
                narrow(0.5, &x, &mut single);
                let [a, b] = widen_dots(3.0, &single, &mut y, [&z, &w]);
                let ss = residual_in_place(&p, &mut r);
                let [xp, xx] = dots(&Comm::alone(), [(&x, &p), (&x, &x)]);
                ([step, rr, a, b, ss, xp, xx].map(f64::to_bits), x, r, p, y)
            })
        };
        let one = run(1);
        assert_eq!(one, run(2));
        assert_eq!(one, run(3));
    }

    #[test]
    fn fused_updates_do_what_their_names_say() {
        let n = 2 * CHUNK + 5;
        let [z, w, p0, q0, x0, r0] = [1, 2, 3, 4, 5, 6].map(|s| noise(n, s));
        let square = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>();

        let (mut p, mut q, mut x, mut r) = (p0.clone(), q0.clone(), x0.clone(), r0.clone());
        let step = StepVectors {
            p: &mut p,
            q: &mut q,
            x: &mut x,
            r: &mut r,
        };
        let rr = merged_step(0.25, &z, &w, 0.5, step);
        for i in 0..n {
            assert_eq!((p[i], q[i]), (z[i] + 0.25 * p0[i], w[i] + 0.25 * q0[i]));
            assert_eq!((x[i], r[i]), (x0[i] + 0.5 * p[i], r0[i] - 0.5 * q[i]));
        }
        assert!((rr - square(&r)).abs() < 1e-12 * rr);

        // The same step in the two passes of the plain form.
        let (mut p2, mut x2, mut r2) = (p0.clone(), x0.clone(), r0.clone());
        advance(0.0, &mut x2, 0.25, &z, &mut p2);
        assert_eq!((&p2, &x2), (&p, &x0));
        advance(0.5, &mut x2, 0.0, &z, &mut p2);
        let rr2 = descend(0.5, &q, &mut r2);
        assert_eq!((&x2, &r2, rr2.to_bits()), (&x, &r, rr.to_bits()));
        assert_eq!(p2, z);
    }

    #[test]
    fn changes_of_precision_scale() {
        let n = CHUNK + 3;
        let [x, a, b] = [1, 2, 3].map(|s| noise(n, s));
        let mut single = vec![0.0f32; n];
        narrow(0.25, &x, &mut single);
        let mut y = vec![0.0; n];
        let [ya, yb] = widen_dots(4.0, &single, &mut y, [&a, &b]);
        for i in 0..n {
            assert!((y[i] - x[i]).abs() <= f64::from(f32::EPSILON) * x[i].abs());
        }
        assert_eq!([ya, yb], [local_dot(&y, &a), local_dot(&y, &b)]);
        assert_eq!(widen_dots(4.0, &single, &mut y, [&a, &a]), [ya, ya]);
    }

    #[test]
    fn block_diagonals_multiply_block_by_block() {
        let x = noise(3 * (CHUNK + 1), 1);
        let block = [[2.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 3.0]];
        let mut y = vec![0.0; x.len()];
        let xy = multiply_blocks(&vec![block; CHUNK + 1], &x, &mut y);
        assert!((xy - local_dot(&x, &y)).abs() < 1e-12 * xy);
        for (y, x) in y.chunks(3).zip(x.chunks(3)) {
            let expected = [2.0 * x[0] + x[2], x[1], x[0] + 3.0 * x[2]];
            assert_eq!(y, expected);
        }
    }
}
