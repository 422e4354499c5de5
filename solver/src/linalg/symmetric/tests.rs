//! Tests of the half storage against full matrices and against plain sweeps.
//!
//! Invariant: what is expected is computed from the full matrix, by loops that share no code with the kernels.

use super::build::{Damping, n_slabs, slab_rows};
use super::inverse::invert_symmetric;
use super::work::{Work, run_portable};
use super::{Scalar, SymmetricSlabs};
use crate::linalg::sample::{laplace_grid, lower_half, multiply, noise, spring_grid};
use crate::linalg::{BlockCsr, spmv};

/// A symmetric positive definite matrix of any block size: the Laplacian of a grid times a full block.
fn dense_blocks<const B: usize>(n: usize) -> BlockCsr<f64, B> {
    let scalar = laplace_grid(n);
    let mut blocks = Vec::new();
    for row in 0..scalar.n_rows {
        for k in scalar.row(row) {
            let column = scalar.columns[k] as usize;
            let twist = (row * 31 + column * 17) * usize::from(row < column)
                + (column * 31 + row * 17) * usize::from(row > column);
            let entry = |i: usize, j: usize| {
                let (i, j) = if row <= column { (i, j) } else { (j, i) };
                let one = if i == j { 1.0 } else { 0.3 / B as f64 };
                let skew = if row == column {
                    0.0
                } else {
                    ((i * 7 + j + twist) % 5) as f64
                };
                scalar.values[k] * (one + 0.05 / B as f64 * skew)
            };
            let block = std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)));
            blocks.push((row as u32, column as u32, block));
        }
    }
    BlockCsr::from_blocks(scalar.n_rows, scalar.n_cols, blocks)
}

fn in_slabs<T: Scalar, const B: usize>(
    full: &BlockCsr<f64, B>,
    n_slabs: usize,
    damping: Damping,
) -> SymmetricSlabs<T, B> {
    let lower = lower_half(full);
    let slabs = slab_rows(&lower.row_start, n_slabs);
    SymmetricSlabs::in_slabs(&lower, None, slabs, damping)
}

fn round<T: Scalar>(values: &[f64]) -> Vec<T> {
    values.iter().map(|&v| T::from_f64(v)).collect()
}

fn assert_close<T: Scalar>(found: &[T], expected: &[f64], tolerance: f64, what: &str) {
    let scale = expected.iter().fold(1e-300, |m: f64, v| m.max(v.abs()));
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (found.to_f64() - expected).abs();
        assert!(
            error <= tolerance * scale,
            "{what}, entry {i}: {found:?}, not {expected}"
        );
    }
}

/// M of the module's documentation as a function on vectors, without any of its tricks: forward or backward sweep.
fn plain_sweep<const B: usize>(
    full: &BlockCsr<f64, B>,
    n_slabs: usize,
    (damping, is_forward): (Damping, bool),
    b: &[f64],
) -> Vec<f64> {
    let mut x = vec![0.0; b.len()];
    for slab in slab_rows(&lower_half(full).row_start, n_slabs) {
        let rows: Vec<usize> = if is_forward {
            slab.clone().collect()
        } else {
            slab.clone().rev().collect()
        };
        for row in rows {
            let mut rest: [f64; B] = std::array::from_fn(|i| b[row * B + i]);
            let mut diagonal = [[0.0; B]; B];
            let mut outside = [0.0; B];
            for k in full.row(row) {
                let column = full.columns[k] as usize;
                for (at, value) in full.block(k).iter().enumerate() {
                    let (i, j) = (at / B, at % B);
                    if column == row {
                        diagonal[i][j] = *value;
                    } else if slab.contains(&column) {
                        rest[i] -= value * x[column * B + j];
                    } else {
                        outside[i] += value.abs();
                    }
                }
            }
            if damping == Damping::L1 {
                (0..B).for_each(|i| diagonal[i][i] += 0.5 * outside[i]);
            }
            let (inverse, _) = invert_symmetric(&diagonal);
            for i in 0..B {
                x[row * B + i] = (0..B).map(|j| inverse[i][j] * rest[j]).sum();
            }
        }
    }
    x
}

fn residual<const B: usize>(full: &BlockCsr<f64, B>, b: &[f64], x: &[f64]) -> Vec<f64> {
    let mut r = multiply(full, x);
    r.iter_mut().zip(b).for_each(|(r, b)| *r = b - *r);
    r
}

fn check_operations<T: Scalar, const B: usize>(full: &BlockCsr<f64, B>, tolerance: f64) {
    let n = full.n_rows * B;
    let (b, v) = (noise(n, 1), noise(n, 2));
    for (slabs, damping) in [
        (1, Damping::None),
        (2, Damping::None),
        (5, Damping::None),
        (3, Damping::L1),
    ] {
        let what = format!("{n} rows of {B}, {slabs} slabs, {damping:?}");
        let a = in_slabs::<T, B>(full, slabs, damping);
        let nan = vec![T::from_f64(f64::NAN); n];
        let (mut x, mut y, mut r) = (nan.clone(), nan.clone(), nan);

        let minus_product = residual(full, &vec![0.0; n], &v);
        let product: Vec<f64> = minus_product.iter().map(|p| -p).collect();
        a.apply(&round::<T>(&v), &mut y);
        assert_close(&y, &product, tolerance, &what);
        let dot = a.apply_dot(&round::<T>(&v), &mut y);
        let expected: f64 = v.iter().zip(&product).map(|(v, p)| v * p).sum();
        assert!(
            (dot - expected).abs() <= tolerance * expected.abs(),
            "{what}: {dot} {expected}"
        );

        a.forward_from_zero(&round::<T>(&b), &mut x, &mut r);
        let forward = plain_sweep(full, slabs, (damping, true), &b);
        assert_close(&x, &forward, tolerance, &what);
        assert_close(&r, &residual(full, &b, &forward), tolerance, &what);

        a.backward(&round::<T>(&v), &mut x, &mut r);
        let mut better: Vec<f64> = forward.iter().zip(&v).map(|(x, v)| x + v).collect();
        let left = residual(full, &b, &better);
        let step = plain_sweep(full, slabs, (damping, false), &left);
        better.iter_mut().zip(step).for_each(|(x, step)| *x += step);
        assert_close(&x, &better, tolerance, &what);
    }
}

#[test]
fn products_and_sweeps_are_those_of_plain_loops() {
    check_operations::<f64, 3>(&spring_grid(6, 3.0), 1e-13);
    check_operations::<f32, 3>(&spring_grid(6, 3.0), 2e-5);
    check_operations::<f64, 1>(&laplace_grid(6), 1e-13);
    check_operations::<f32, 1>(&laplace_grid(6), 2e-5);
    check_operations::<f64, 2>(&dense_blocks(5), 1e-13);
    check_operations::<f64, 3>(&dense_blocks(5), 1e-13);
    check_operations::<f64, 6>(&dense_blocks(5), 1e-13);
    check_operations::<f32, 3>(&dense_blocks(5), 2e-5);
    check_operations::<f32, 6>(&dense_blocks(5), 2e-5);
}

#[test]
fn products_are_as_exact_as_the_type_allows() {
    fn check<T: Scalar, const B: usize>(full: &BlockCsr<f64, B>, tolerance: f64) {
        let x = noise(full.n_rows * B, 5);
        let expected = multiply(full, &x);
        let mut y = vec![T::ZERO; x.len()];
        in_slabs::<T, B>(full, 4, Damping::None).apply(&round::<T>(&x), &mut y);
        assert_close(&y, &expected, tolerance, "product");
    }
    check::<f64, 3>(&spring_grid(8, 1.0), 1e-14);
    check::<f32, 3>(&spring_grid(8, 1.0), 1e-6);
    check::<f64, 6>(&dense_blocks(4), 1e-14);
    check::<f32, 6>(&dense_blocks(4), 1e-6);
    check::<f64, 1>(&laplace_grid(8), 1e-14);
}

#[test]
fn tiny_matrices_work() {
    let nothing = BlockCsr::<f64, 3>::from_blocks(0, 0, Vec::new());
    let empty = SymmetricSlabs::<f32, 3>::from_lower(&nothing, Damping::None);
    assert_eq!((empty.n_rows(), empty.n_blocks()), (0, 0));
    assert_eq!(empty.apply_dot(&[], &mut []), 0.0);
    empty.forward_from_zero(&[], &mut [], &mut []);
    empty.backward(&[], &mut [], &mut []);

    let diagonal = [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 8.0]];
    let one = BlockCsr::from_blocks(1, 1, vec![(0, 0, diagonal)]);
    for slabs in [1, 4] {
        let a = in_slabs::<f64, 3>(&one, slabs, Damping::None);
        let [mut x, mut r] = [[f64::NAN; 3]; 2];
        a.forward_from_zero(&[2.0, 4.0, 8.0], &mut x, &mut r);
        assert_eq!((x, r), ([1.0; 3], [0.0; 3]));
        assert_eq!((a.apply_dot(&[1.0; 3], &mut r), r), (14.0, [2.0, 4.0, 8.0]));
    }
    check_operations::<f64, 3>(&spring_grid(1, 1.0), 1e-13);
    check_operations::<f64, 3>(&spring_grid(2, 1.0), 1e-13);
}

#[test]
fn a_row_of_zeros_is_harmless() {
    let zeros = BlockCsr::<f64, 1>::zeros(3, vec![0, 1, 2, 3], vec![0, 1, 2]);
    let a = in_slabs::<f32, 1>(&zeros, 2, Damping::None);
    let [mut x, mut r] = [[f32::NAN; 3]; 2];
    a.forward_from_zero(&[1.0, 2.0, 3.0], &mut x, &mut r);
    assert_eq!((x, r), ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]));
    a.backward(&[9.0; 3], &mut x, &mut r);
    assert_eq!(x, [11.0, 13.0, 15.0]);
}

#[test]
fn kernels_agree_with_portable_ones() {
    fn check<T: Scalar, const B: usize>(tolerance: f64) {
        let a = in_slabs::<T, B>(&dense_blocks::<B>(5), 1, Damping::None);
        let x = round::<T>(&noise(a.n_rows * B, 3));
        let [mut y, mut expected] = [(); 2].map(|()| vec![T::ZERO; x.len()]);
        a.apply(&x, &mut y);
        let matrix = a.slabs[0].matrix();
        run_portable::<T, B>(Work::Product {
            matrix,
            x: &x,
            y: &mut expected,
            dot: false,
        });
        let expected: Vec<f64> = expected.iter().map(|v| v.to_f64()).collect();
        assert_close(&y, &expected, tolerance, "portable product");
    }
    check::<f64, 3>(1e-15);
    check::<f64, 6>(1e-15);
    check::<f32, 3>(1e-6);
    check::<f32, 6>(1e-6);
}

/// Two sweeps around a symmetric "coarse correction": x = c r, which is enough to need all parts of the sweeps.
fn two_sweeps<const B: usize>(a: &SymmetricSlabs<f64, B>, b: &[f64], c: f64) -> Vec<f64> {
    let (mut x, mut r) = (vec![0.0; b.len()], vec![0.0; b.len()]);
    a.forward_from_zero(b, &mut x, &mut r);
    let v: Vec<f64> = r.iter().map(|r| c * r).collect();
    a.backward(&v, &mut x, &mut r);
    x
}

#[test]
fn two_sweeps_are_a_symmetric_positive_definite_preconditioner() {
    let full = spring_grid(6, 100.0);
    for (slabs, damping) in [(1, Damping::None), (3, Damping::None), (6, Damping::L1)] {
        let a = in_slabs::<f64, 3>(&full, slabs, damping);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        for seed in 0..5 {
            let (b, c) = (noise(a.n_rows * 3, seed), noise(a.n_rows * 3, seed + 100));
            let (xb, xc) = (two_sweeps(&a, &b, 1e-3), two_sweeps(&a, &c, 1e-3));
            let (left, right) = (dot(&c, &xb), dot(&b, &xc));
            let scale = (dot(&b, &xb) * dot(&c, &xc)).sqrt();
            assert!(
                (left - right).abs() < 1e-12 * scale,
                "{slabs} slabs: {left} {right}"
            );
            assert!(dot(&b, &xb) > 0.0);
        }
    }
}

#[test]
fn sweeps_converge_even_with_a_row_a_slab_if_damped() {
    let full = spring_grid(4, 1.0);
    let a = in_slabs::<f64, 3>(&full, 64, Damping::L1);
    let exact = noise(a.n_rows * 3, 1);
    let mut r = vec![0.0; exact.len()];
    a.apply(&exact, &mut r);
    let energy = |e: &[f64]| a.apply_dot(e, &mut vec![0.0; e.len()]);
    let mut x = vec![0.0; exact.len()];
    let mut last = energy(&exact);
    for _ in 0..20 {
        let step = two_sweeps(&a, &r, 0.0);
        x.iter_mut().zip(step).for_each(|(x, step)| *x += step);
        let error: Vec<f64> = exact.iter().zip(&x).map(|(e, x)| e - x).collect();
        let now = energy(&error);
        assert!(now < last, "{now} after {last}");
        last = now;
        a.apply(&error, &mut r);
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let full = spring_grid(16, 10.0);
    let run = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(n_threads)
            .build();
        pool.expect("threads start").install(|| {
            let a = SymmetricSlabs::<f32, 3>::from_lower(&lower_half(&full), Damping::L1);
            assert_eq!(a.n_slabs(), 2);
            let a4 = in_slabs::<f32, 3>(&full, 4, Damping::None);
            let b = round::<f32>(&noise(a.n_rows * 3, 1));
            let [mut x, mut r] = [(); 2].map(|()| vec![0.0; b.len()]);
            let mut dots = Vec::new();
            for a in [a, a4] {
                dots.push(a.apply_dot(&b, &mut x).to_bits());
                a.forward_from_zero(&b, &mut x, &mut r);
                a.backward(&b, &mut x, &mut r);
            }
            (dots, x, r)
        })
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(3));
}

#[test]
fn a_matrix_consumed_is_the_same_as_one_read() {
    let lower = lower_half(&spring_grid(17, 10.0));
    let read = SymmetricSlabs::<f64, 3>::from_lower(&lower, Damping::None);
    assert_eq!((read.n_slabs(), read.n_blocks()), (2, lower.n_blocks()));
    assert_eq!(read.to_lower(), lower);
    let x = noise(lower.n_rows * 3, 1);
    let consumed = SymmetricSlabs::<f64, 3>::consume(lower);
    let [mut y, mut expected] = [(); 2].map(|()| vec![0.0; x.len()]);
    read.apply(&x, &mut expected);
    consumed.apply(&x, &mut y);
    assert_eq!(y, expected);
    let single = SymmetricSlabs::<f32, 3>::from_lower(&read.to_lower(), Damping::None);
    let mut rounded = vec![0.0; x.len()];
    single.apply(&round::<f32>(&x), &mut rounded);
    assert_close(&rounded, &expected, 1e-6, "rounded matrix");
    assert!(single.memory() < 6 * read.memory() / 10);
}

#[test]
fn rows_may_reach_further_back_than_two_bytes_tell() {
    for reach in [65_535, 65_536] {
        let n = reach + 3;
        let entry = |i: usize, j: usize| f64::from(u8::from(i == j)) - 0.1;
        let block: [[f64; 3]; 3] = std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)));
        let far = (reach..n).flat_map(|row| [(row, row - reach), (row, row - 1)]);
        let mut blocks: Vec<_> = far
            .map(|(row, column)| (row as u32, column as u32, block))
            .collect();
        blocks.extend((0..n as u32).map(|row| (row, row, block.map(|row| row.map(|v| 4.0 * v)))));
        let lower = BlockCsr::from_blocks(n, n, blocks);
        let a = SymmetricSlabs::<f32, 3>::in_slabs(
            &lower,
            None,
            slab_rows(&lower.row_start, 1),
            Damping::None,
        );
        assert_eq!(a.slabs[0].counts.is_narrow(), reach == 65_535);
        assert_eq!(a.to_lower().columns, lower.columns);
        let b = noise(n * 3, 4);
        let mut product = vec![0.0; n * 3];
        spmv::multiply_symmetric(&lower, &b, &mut product);
        let b = round::<f32>(&b);
        let [mut x, mut r, mut y] = [(); 3].map(|()| vec![0.0; n * 3]);
        a.apply(&b, &mut y);
        assert_close(&y, &product, 1e-6, "product");
        a.forward_from_zero(&b, &mut x, &mut r);
        for _ in 0..30 {
            a.backward(&vec![0.0; n * 3], &mut x, &mut r);
            a.apply(&x, &mut y);
            (0..n * 3).for_each(|i| r[i] = b[i] - y[i]);
        }
        assert!(r.iter().all(|r| r.abs() < 1e-5));
    }
}

#[test]
fn slabs_follow_from_the_size() {
    let counts = [
        0,
        1,
        4095,
        16 * 16 * 16,
        33 * 33 * 32,
        65 * 65 * 64,
        5_000_000,
        1 << 31,
    ];
    assert_eq!(counts.map(n_slabs), [1, 1, 2, 2, 4, 8, 16, 32]);
    assert_eq!(slab_rows(&[0, 1, 2, 10, 11, 12], 2), [0..3, 3..5]);
    assert_eq!(slab_rows(&[0], 4), [0..0, 0..0, 0..0, 0..0]);
}
