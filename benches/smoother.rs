//! How near products, sweeps and the V-cycle come to the memory bandwidth of the machine.
//!
//! The matrix has the 27-point pattern of 64 x 65 x 65 nodes with 3 x 3 blocks, as the unit cube of 64^3 trilinear
//! hexahedra held on one side. Bytes are counted once: what a step reads of the matrix, and each vector that it reads
//! or writes. Triad and steps take turns, so that a loaded machine slows all alike; a share is the median over the
//! rounds of step over triad.
//!
//! Run: `cargo bench -p fem-solve --bench smoother [-- ROUNDS]`

use fem_mesh::{Comm, IndexMap};
use fem_solve::bandwidth::{DEFAULT_LENGTH, Triad, median};
use fem_solve::linalg::symmetric::Damping;
use fem_solve::linalg::{BlockCsr, DistMatrix, LinearOperator, Scalar, SymmetricSlabs};
use fem_solve::precond::amg::NodeData;
use fem_solve::precond::{Amg, AmgOptions, rigid_body_modes};
use std::hint::black_box;
use std::time::Instant;

const GRID: [usize; 3] = [65, 65, 64];

/// A step: name, bytes, and what does it.
type Step<'a> = (&'a str, usize, Box<dyn FnMut() + 'a>);

fn main() {
    let rounds = std::env::args()
        .filter_map(|a| a.parse().ok())
        .next()
        .unwrap_or(15);
    let lower = grid_matrix();
    let double = SymmetricSlabs::<f64, 3>::from_lower(&lower, Damping::None);
    let single = SymmetricSlabs::<f32, 3>::from_lower(&lower, Damping::L1);
    println!(
        "{} block rows, {} blocks of 3 x 3 stored in {} slabs, {:.1} % between slabs; {rounds} rounds",
        single.n_rows(),
        single.n_blocks(),
        single.n_slabs(),
        100.0 * single.n_border_blocks() as f64 / single.n_blocks() as f64,
    );
    for n_threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(n_threads)
            .build();
        let measured = pool.map(|pool| {
            pool.install(|| {
                println!("\n{n_threads} thread(s)    best ms  median ms   GB/s  of triad");
                measure(products(&double), "f64", rounds);
                measure(products(&single), "f32", rounds);
                measure(sweeps(&single), "f32", rounds);
                let comm = Comm::alone();
                let amg = multigrid(&comm, &lower);
                measure(vec![cycle(&comm, &amg)], "f32", rounds);
            });
        });
        if let Err(error) = measured {
            eprintln!("no pool of {n_threads} threads: {error}");
        }
    }
}

fn numbers<T: Scalar>(n: usize, seed: usize) -> Vec<T> {
    let number = |i: usize| ((i * 31 + seed) % 17) as f64 * 0.1 - 0.8;
    (0..n).map(|i| T::from_f64(number(i))).collect()
}

/// Bytes of the symmetric blocks of the diagonal, or of their inverses.
fn diagonal_bytes<T: Scalar>(half: &SymmetricSlabs<T, 3>) -> usize {
    half.n_rows() * 6 * size_of::<T>()
}

fn products<T: Scalar>(half: &SymmetricSlabs<T, 3>) -> Vec<Step<'_>> {
    let n = half.n_rows() * 3;
    let x: Vec<T> = numbers(n, 1);
    let (also_x, mut y, mut z) = (x.clone(), x.clone(), x.clone());
    let bytes = half.memory() - diagonal_bytes(half) + 2 * n * size_of::<T>();
    let product = move || half.apply(&x, &mut y);
    let with_dot = move || {
        black_box(half.apply_dot(&also_x, &mut z));
    };
    vec![
        ("product", bytes, Box::new(product)),
        ("product, dot", bytes, Box::new(with_dot)),
    ]
}

fn sweeps<T: Scalar>(half: &SymmetricSlabs<T, 3>) -> Vec<Step<'_>> {
    let n = half.n_rows() * 3;
    let (b, v): (Vec<T>, Vec<T>) = (numbers(n, 2), numbers(n, 3));
    let [mut x, mut r, mut y, mut s] = [(); 4].map(|()| b.clone());
    let (matrix, vector) = (half.memory() - diagonal_bytes(half), n * size_of::<T>());
    let forward = move || half.forward_from_zero(&b, &mut x, &mut r);
    let backward = move || half.backward(&v, &mut y, &mut s);
    vec![
        ("forward", matrix + 3 * vector, Box::new(forward)),
        ("backward", matrix + 4 * vector, Box::new(backward)),
    ]
}

/// Multigrid for the matrix as if it were one of elasticity.
fn multigrid(comm: &Comm, lower: &BlockCsr<f64, 3>) -> Amg<3, 6> {
    let [nx, ny, _] = GRID;
    let n = lower.n_rows;
    let coord = |row: usize| [row % nx, row / nx % ny, row / (nx * ny)].map(|i| i as f64);
    let coords: Vec<[f64; 3]> = (0..n).map(coord).collect();
    let nodes = NodeData {
        near_nullspace: rigid_body_modes(comm, &coords, std::iter::empty(), &[]),
        parents: None,
    };
    let ghost = BlockCsr::zeros(0, vec![0; n + 1], Vec::new());
    let matrix = DistMatrix::new(
        comm,
        IndexMap::new(comm, n, Vec::new()),
        lower.clone(),
        ghost,
    );
    Amg::new(comm, &matrix, nodes, &AmgOptions::default()).expect("a positive definite matrix")
}

/// A cycle reads almost all that multigrid holds twice.
fn cycle<'a>(comm: &'a Comm, amg: &'a Amg<3, 6>) -> Step<'a> {
    let x: Vec<f64> = numbers(amg.n_owned(), 4);
    let mut y = x.clone();
    let bytes = 2 * amg.report().memory() as usize;
    (
        "V-cycle",
        bytes,
        Box::new(move || amg.apply(comm, &x, &mut y)),
    )
}

fn measure(mut steps: Vec<Step>, scalar: &str, rounds: usize) {
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
