//! What conjugate gradients do with vectors, against the memory bandwidth of the machine, and what a sum over the ranks
//! takes: the two that decide between the forms of an iteration.
//!
//! Bytes are counted once for each vector that a pass reads or writes. Triad and passes take turns, so that a loaded
//! machine slows all alike; a share is the median over the rounds of pass over triad.
//!
//! Run: `cargo bench -p fem-solve --bench vectors [-- ROUNDS]`, or the program that this builds under `mpirun` for the
//! sum over ranks.

use fem_mesh::Comm;
use fem_solve::bandwidth::{DEFAULT_LENGTH, Triad, median};
use fem_solve::linalg::vector::{self, StepVectors};
use std::time::Instant;

/// Scalars of each vector: the unit cube of 64^3 hexahedra.
const LENGTH: usize = 3 * 65 * 65 * 65;

/// A pass: name, bytes a scalar, and what does it.
type Pass<'a> = (&'a str, usize, Box<dyn FnMut() + 'a>);

fn main() {
    let comm = Comm::start().unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(error.exit_code());
    });
    let rounds = std::env::args()
        .filter_map(|a| a.parse().ok())
        .next()
        .unwrap_or(15);
    sums_over_ranks(&comm, rounds);
    if comm.n_ranks() > 1 {
        return;
    }
    for n_threads in [1, 2] {
        match rayon::ThreadPoolBuilder::new()
            .num_threads(n_threads)
            .build()
        {
            Ok(pool) => pool.install(|| {
                println!("\n{n_threads} thread(s)    best ms  median ms   GB/s  of triad");
                passes(rounds);
            }),
            Err(error) => eprintln!("no pool of {n_threads} threads: {error}"),
        }
    }
}

/// Collective. The time of a sum of four numbers over the ranks.
fn sums_over_ranks(comm: &Comm, rounds: usize) {
    const SUMS: u32 = 100;
    let times = (0..rounds).map(|_| {
        let start = Instant::now();
        (0..SUMS).for_each(|_| comm.sum_into(&mut [0.0; 4]));
        comm.max(start.elapsed().as_secs_f64() / f64::from(SUMS))
    });
    let times: Vec<f64> = times.collect();
    let best = times.iter().copied().fold(f64::INFINITY, f64::min);
    if comm.is_root() {
        println!(
            "sum of 4 numbers over {} rank(s): best {:.2} us, median {:.2} us",
            comm.n_ranks(),
            1e6 * best,
            1e6 * median(times)
        );
    }
}

fn passes(rounds: usize) {
    let numbers = |seed: usize| -> Vec<f64> {
        (0..LENGTH)
            .map(|i| ((i * 31 + seed) % 17) as f64 * 0.1 - 0.8)
            .collect()
    };
    let [z, w, q] = [1, 2, 3].map(numbers);
    let [x, p, r, s] = [4, 5, 6, 7].map(|seed| std::cell::RefCell::new(numbers(seed)));
    let (single, mut wide) = (vec![0.5f32; LENGTH], vec![0.0; LENGTH]);
    let mut narrow = single.clone();
    let passes: Vec<Pass> = vec![
        (
            "advance",
            40,
            Box::new(|| {
                let (mut x, mut p) = (x.borrow_mut(), p.borrow_mut());
                vector::advance(1e-3, &mut x, 0.5, &z, &mut p);
            }),
        ),
        (
            "descend",
            24,
            Box::new(|| {
                let rr = vector::descend(1e-3, &q, &mut r.borrow_mut());
                std::hint::black_box(rr);
            }),
        ),
        (
            "merged step",
            80,
            Box::new(|| {
                let step = StepVectors {
                    p: &mut p.borrow_mut(),
                    q: &mut s.borrow_mut(),
                    x: &mut x.borrow_mut(),
                    r: &mut r.borrow_mut(),
                };
                std::hint::black_box(vector::merged_step(0.5, &z, &w, 1e-3, step));
            }),
        ),
        (
            "narrow",
            12,
            Box::new(|| vector::narrow(0.5, &z, &mut narrow)),
        ),
        (
            "widen, dots",
            28,
            Box::new(|| {
                let sums = vector::widen_dots(0.5, &single, &mut wide, [&z, &q]);
                std::hint::black_box(sums);
            }),
        ),
        (
            "two dots",
            24,
            Box::new(|| {
                std::hint::black_box(vector::local_dots([(&z, &w), (&z, &q)]));
            }),
        ),
    ];
    let mut triad = Triad::new(DEFAULT_LENGTH);
    for (name, bytes, mut pass) in passes {
        let (mut times, mut shares) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let bandwidth = triad.run();
            let start = Instant::now();
            pass();
            let seconds = start.elapsed().as_secs_f64();
            times.push(seconds);
            shares.push((bytes * LENGTH) as f64 / seconds / bandwidth);
        }
        let best = times.iter().copied().fold(f64::INFINITY, f64::min);
        println!(
            "{name:14} {:7.2} {:10.2} {:6.1} {:8.0} %",
            1e3 * best,
            1e3 * median(times),
            (bytes * LENGTH) as f64 / best / 1e9,
            100.0 * median(shares)
        );
    }
}
