//! How near the products and sweeps on symmetric half storage come to the memory bandwidth of the machine.
//!
//! The matrix has the 27-point pattern of 64 x 65 x 65 nodes with 3 x 3 blocks, as the unit cube of 64^3 trilinear
//! hexahedra held on one side. Bytes are counted once: what a step reads of the matrix, and each vector that it reads
//! or writes. Triad and steps take turns, so that a loaded machine slows all alike; a share is the median over the
//! rounds of step over triad.
//!
//! Run: `cargo bench -p fem-solve --bench smoother [-- ROUNDS]`

use fem_solve::bandwidth::{DEFAULT_LENGTH, Triad, median};
use fem_solve::linalg::symmetric::Damping;
use fem_solve::linalg::{BlockCsr, Scalar, SymmetricSlabs};
use std::time::Instant;

const GRID: [usize; 3] = [65, 65, 64];

/// A step: name, bytes, and what does it.
type Step<'a> = (&'a str, usize, Box<dyn FnMut() + 'a>);

fn main() {
    let rounds = std::env::args()
        .filter_map(|a| a.parse().ok())
        .next()
        .unwrap_or(15);
    let matrix = SymmetricSlabs::<f64, 3>::from_lower(&grid_matrix(), Damping::None);
    println!(
        "{} block rows, {} blocks of 3 x 3 stored in {} slabs, {:.1} % between slabs; {rounds} rounds",
        matrix.n_rows(),
        matrix.n_blocks(),
        matrix.n_slabs(),
        100.0 * matrix.n_border_blocks() as f64 / matrix.n_blocks() as f64,
    );
    for n_threads in [1, 2] {
        match rayon::ThreadPoolBuilder::new()
            .num_threads(n_threads)
            .build()
        {
            Ok(pool) => pool.install(|| {
                println!("\n{n_threads} thread(s)    best ms  median ms   GB/s  of triad");
                measure(&matrix, "f64", rounds);
                measure(&matrix.to_scalar::<f32>(), "f32", rounds);
            }),
            Err(error) => eprintln!("no pool of {n_threads} threads: {error}"),
        }
    }
}

fn measure<T: Scalar>(half: &SymmetricSlabs<T, 3>, scalar: &str, rounds: usize) {
    let n = half.n_rows() * 3;
    let numbers = |seed: usize| -> Vec<f64> {
        (0..n)
            .map(|i| ((i * 31 + seed) % 17) as f64 * 0.1 - 0.8)
            .collect()
    };
    let single = |v: Vec<f64>| -> Vec<T> { v.into_iter().map(T::from_f64).collect() };
    let (b, v) = (single(numbers(2)), single(numbers(3)));
    let [mut x, mut y, mut p, mut q, mut s, mut t] = [(); 6].map(|()| vec![T::ZERO; n]);
    let vector = n * size_of::<T>();
    let blocks = half.n_rows() * 9 * size_of::<T>();
    let matrix = half.memory() - 2 * blocks;
    let mut steps: Vec<Step> = vec![
        (
            "product",
            matrix + blocks + 2 * vector,
            Box::new(|| half.apply(&b, &mut y)),
        ),
        (
            "product, dot",
            matrix + blocks + 2 * vector,
            Box::new(|| {
                std::hint::black_box(half.apply_dot(&b, &mut x));
            }),
        ),
        (
            "forward",
            matrix + blocks + 3 * vector,
            Box::new(|| half.forward_from_zero(&b, &mut p, &mut q)),
        ),
        (
            "backward",
            matrix + 2 * blocks + 3 * vector,
            Box::new(|| half.backward(&v, &mut s, &mut t)),
        ),
    ];
    let mut triad = Triad::new(DEFAULT_LENGTH);
    let mut seconds = vec![Vec::new(); steps.len()];
    let mut shares = vec![Vec::new(); steps.len()];
    for _ in 0..rounds {
        for (s, (_, bytes, step)) in steps.iter_mut().enumerate() {
            let rate = triad.run();
            let start = Instant::now();
            step();
            let time = start.elapsed().as_secs_f64();
            shares[s].push(*bytes as f64 / time / rate);
            seconds[s].push(time);
        }
    }
    for (s, (name, bytes, _)) in steps.iter().enumerate() {
        let time = median(seconds[s].clone());
        let best = seconds[s].iter().copied().fold(f64::INFINITY, f64::min);
        println!(
            "{scalar} {name:12} {:8.2} {:9.2} {:8.1} {:7.0} %",
            1e3 * best,
            1e3 * time,
            1e-9 * *bytes as f64 / time,
            100.0 * median(shares[s].clone())
        );
    }
}

/// The lower half of a symmetric matrix whose rows couple each node of a grid with its 26 neighbors and itself.
fn grid_matrix() -> BlockCsr<f64, 3> {
    let [nx, ny, nz] = GRID;
    let mut row_start = vec![0];
    let mut columns = Vec::new();
    let near = |i: usize, n: usize| i.saturating_sub(1)..n.min(i + 2);
    for row in 0..nx * ny * nz {
        for k in near(row / (nx * ny), nz) {
            for j in near(row / nx % ny, ny) {
                let neighbors = near(row % nx, nx).map(|i| i + nx * (j + ny * k));
                columns.extend(neighbors.filter(|&c| c <= row).map(|c| c as u32));
            }
        }
        row_start.push(columns.len());
    }
    let n_rows = nx * ny * nz;
    let mut a = BlockCsr::<f64, 3>::zeros(n_rows, row_start, columns);
    for row in 0..n_rows {
        for k in a.row(row) {
            let is_diagonal = a.columns[k] as usize == row;
            for (i, value) in a.block_mut(k).iter_mut().enumerate() {
                let on = f64::from(u8::from(i % 4 == 0));
                *value = if is_diagonal { 30.0 * on } else { 0.1 - on };
            }
        }
    }
    a
}
