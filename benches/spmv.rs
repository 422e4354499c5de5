//! How near the block sparse product comes to the memory bandwidth of the machine.
//!
//! The matrix has the 27-point pattern of a grid of GRID^3 nodes (64^3 by default) with 3 x 3 blocks. Bytes are counted once: each block
//! with its column, the row starts, x and y. Triad and products take turns, so that a loaded machine slows both; a
//! share is the median over the rounds of product over triad.
//!
//! Run: `cargo bench -p fem-solve --bench spmv [-- ROUNDS [GRID]]`; on a loaded machine a smaller grid (36) and many
//! rounds (300) still give a clear median, since a product then takes less than a time slice.

use fem_solve::bandwidth::{Triad, median};
use fem_solve::linalg::{BlockCsr, Scalar, spmv};
use std::time::Instant;

fn main() {
    let mut numbers = std::env::args().filter_map(|a| a.parse().ok());
    let (rounds, grid) = (numbers.next().unwrap_or(15), numbers.next().unwrap_or(64));
    let single: BlockCsr<f32, 3> = grid_matrix(grid);
    let double = single.to_scalar::<f64>();
    println!(
        "{} block rows, {} blocks of 3 x 3, {rounds} rounds",
        double.n_rows,
        double.n_blocks()
    );
    println!(
        "threads  triad GB/s | f64 GB/s  share  ms | f32 GB/s  share  ms | medians; best triad and f64"
    );
    for n_threads in [1, 2] {
        match rayon::ThreadPoolBuilder::new()
            .num_threads(n_threads)
            .build()
        {
            Ok(pool) => pool.install(|| measure(&double, &single, rounds)),
            Err(error) => eprintln!("no pool of {n_threads} threads: {error}"),
        }
    }
}

fn measure(double: &BlockCsr<f64, 3>, single: &BlockCsr<f32, 3>, rounds: usize) {
    let mut triad = Triad::new(bytes(double) / 24);
    let x: Vec<f64> = (0..double.n_cols * 3)
        .map(|i| (i % 17) as f64 - 8.0)
        .collect();
    let mut y = vec![0.0; double.n_rows * 3];
    let [mut triads, mut doubles, mut singles] = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        triads.push(triad.run());
        doubles.push(bytes_per_second(double, &x, &mut y));
        singles.push(bytes_per_second(single, &x, &mut y));
    }
    let share = |rates: &[f64]| {
        median(
            rates
                .iter()
                .zip(&triads)
                .map(|(rate, triad)| rate / triad)
                .collect(),
        )
    };
    let column = |rates: &[f64], bytes: usize| {
        let rate = median(rates.to_vec());
        format!(
            "{:8.1}  {:4.0} %  {:4.1}",
            rate * 1e-9,
            100.0 * share(rates),
            1e3 * bytes as f64 / rate
        )
    };
    let best = |rates: &[f64]| rates.iter().fold(0.0, |m: f64, &r| m.max(r)) * 1e-9;
    println!(
        "{:7}  {:10.1} | {} | {} | {:.1} {:.1}",
        rayon::current_num_threads(),
        median(triads.clone()) * 1e-9,
        column(&doubles, bytes(double)),
        column(&singles, bytes(single)),
        best(&triads),
        best(&doubles),
    );
}

fn bytes_per_second<T: Scalar>(a: &BlockCsr<T, 3>, x: &[f64], y: &mut [f64]) -> f64 {
    let start = Instant::now();
    spmv::multiply(a, x, y);
    let seconds = start.elapsed().as_secs_f64();
    std::hint::black_box(y);
    bytes(a) as f64 / seconds
}

/// Bytes that a product must move: the matrix, x and y once.
fn bytes<T: Scalar>(a: &BlockCsr<T, 3>) -> usize {
    a.memory() + (a.n_rows + a.n_cols) * 3 * size_of::<f64>()
}

/// A matrix whose rows couple each node of a grid of n^3 with its 26 neighbors and itself.
fn grid_matrix<T: Scalar>(n: usize) -> BlockCsr<T, 3> {
    let mut row_start = vec![0];
    let mut columns = Vec::new();
    let near = |i: usize| i.saturating_sub(1)..n.min(i + 2);
    for row in 0..n * n * n {
        for k in near(row / (n * n)) {
            for j in near(row / n % n) {
                columns.extend(near(row % n).map(|i| (i + n * (j + n * k)) as u32));
            }
        }
        row_start.push(columns.len());
    }
    let mut a = BlockCsr::zeros(n * n * n, row_start, columns);
    for (i, value) in a.values.iter_mut().enumerate() {
        *value = T::from_f64((i * 7919 % 1000) as f64 * 1e-3 - 0.5);
    }
    a
}
