//! Conjugate gradients: solutions, bits, drift and rounding, bad matrices, in both forms; what they do when the
//! preconditioner fails is in `test_changes`.

use super::cg::{CgOptions, News, System, conjugate_gradients};
use super::{Form, ROUNDING_LEVEL, SolveReport};
use crate::linalg::sample::{distribute, laplace_grid, noise, owned_rows, spring_grid};
use crate::linalg::{BlockCsr, DistMatrix, LinearOperator, Preconditioner};
use crate::precond::{BlockJacobi, Jacobi};
use fem_mesh::comm::run_threads;
use fem_mesh::{Comm, ErrorKind, Result};
use std::sync::Mutex;

/// The identity and the like.
impl<const B: usize> Preconditioner for DistMatrix<B> {}

/// Solves with block-Jacobi from zero.
fn solve<const B: usize>(
    comm: &Comm,
    a: &DistMatrix<B>,
    b: &[f64],
    options: CgOptions,
) -> Result<(Vec<f64>, SolveReport)> {
    let mut preconditioner = BlockJacobi::new(comm, a)?;
    let system = System {
        matrix: a,
        preconditioner: &mut preconditioner,
    };
    let options = CgOptions {
        matrix_norm: a.norm_inf(comm),
        ..options
    };
    let mut x = vec![0.0; b.len()];
    let report = conjugate_gradients(comm, system, b, &mut x, &options, &mut |_| ())?;
    Ok((x, report))
}

fn to(tolerance: f64) -> CgOptions {
    CgOptions {
        tolerance,
        ..CgOptions::default()
    }
}

/// The fixed and the flexible method, and the merged form.
fn variants(tolerance: f64) -> [CgOptions; 3] {
    let flexible = CgOptions {
        flexible: true,
        ..to(tolerance)
    };
    let merged = CgOptions {
        form: Some(Form::Merged),
        ..flexible
    };
    [to(tolerance), flexible, merged]
}

fn check_on_ranks<const B: usize>(a: &BlockCsr<f64, B>) {
    let b = noise(a.n_rows * B, 5);
    let comm = Comm::alone();
    let (expected, alone) =
        solve(&comm, &distribute(&comm, a), &b, to(1e-12)).expect("it is positive definite");
    assert!(alone.converged && !alone.at_rounding_level, "{alone:?}");
    let scale = expected.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    for n_ranks in 1..=4 {
        run_threads(n_ranks, |comm| {
            let rows = owned_rows(comm, a.n_rows);
            let mine = rows.start * B..rows.end * B;
            let matrix = distribute(comm, a);
            for options in variants(1e-12) {
                let (x, report) = solve(comm, &matrix, &b[mine.clone()], options)
                    .expect("it is positive definite");
                assert!(report.true_residual <= 1e-12);
                assert!(report.iterations.abs_diff(alone.iterations) <= 2);
                assert_eq!(report.history.len(), report.iterations + 1);
                assert!(report.changes.is_empty(), "{:?}", report.changes);
                assert_eq!(Some(report.form), options.form);
                for (x, expected) in x.iter().zip(&expected[mine.clone()]) {
                    assert!((x - expected).abs() < 1e-10 * scale, "{x} {expected}");
                }
            }
        });
    }
}

#[test]
fn one_to_four_ranks_find_the_same_solution_in_every_variant() {
    check_on_ranks(&spring_grid(6, 10.0));
    check_on_ranks(&laplace_grid(8));
}

#[test]
fn a_measured_form_solves_as_well_and_says_why() {
    let a = laplace_grid(8);
    let forms = Mutex::new(Vec::new());
    run_threads(3, |comm| {
        let options = CgOptions {
            form: None,
            ..to(1e-10)
        };
        let matrix = distribute(comm, &a);
        let b = vec![1.0; matrix.n_owned()];
        let (_, report) = solve(comm, &matrix, &b, options).expect("it is positive definite");
        assert!(report.converged);
        let n_sums = match report.form {
            Form::Plain => "two reductions",
            Form::Merged => "one reduction ",
        };
        assert!(
            report.form_reason.starts_with(n_sums),
            "{}",
            report.form_reason
        );
        forms.lock().expect("no rank panicked").push(report.form);
    });
    let forms = forms.into_inner().expect("no rank panicked");
    assert!(forms.iter().all(|&form| form == forms[0]));
}

#[test]
fn point_jacobi_needs_more_iterations_than_block_jacobi() {
    let a = spring_grid(8, 100.0);
    run_threads(2, |comm| {
        let matrix = distribute(comm, &a);
        let b = vec![1.0; matrix.n_owned()];
        let (by_blocks, report) =
            solve(comm, &matrix, &b, to(1e-10)).expect("it is positive definite");
        let mut preconditioner = Jacobi::new(comm, &matrix).expect("its diagonal is positive");
        let system = System {
            matrix: &matrix,
            preconditioner: &mut preconditioner,
        };
        let mut x = vec![0.0; b.len()];
        let mut seen = Vec::new();
        let mut progress = |news: News| {
            if let News::Residual(iteration, residual) = news {
                seen.push((iteration, residual));
            }
        };
        let point = conjugate_gradients(comm, system, &b, &mut x, &to(1e-10), &mut progress)
            .expect("it is positive definite");
        assert!(
            point.converged && point.iterations > report.iterations,
            "{} {}",
            point.iterations,
            report.iterations
        );
        let numbered: Vec<_> = point.history.iter().copied().enumerate().collect();
        assert_eq!(seen, numbered);
        let scale = x.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        assert!(
            x.iter()
                .zip(&by_blocks)
                .all(|(x, y)| (x - y).abs() < 1e-6 * scale)
        );
    });
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let a = spring_grid(23, 10.0);
    let b = noise(a.n_rows * 3, 5);
    for variant in variants(1e-10) {
        let run = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(n_threads)
                .build()
                .expect("threads start");
            let options = CgOptions {
                max_iterations: 12,
                ..variant
            };
            pool.install(|| {
                let comm = Comm::alone();
                let (x, report) = solve(&comm, &distribute(&comm, &a), &b, options)
                    .expect("it is positive definite");
                assert!(!report.converged && report.iterations == 12);
                assert_eq!(report.history.len(), 13);
                (x, report.history)
            })
        };
        let one = run(1);
        assert_eq!(one, run(2));
        assert_eq!(one, run(3));
    }
}

#[test]
fn a_zero_right_hand_side_needs_no_iteration() {
    run_threads(2, |comm| {
        let matrix = distribute(comm, &laplace_grid(3));
        let b = vec![0.0; matrix.n_owned()];
        let mut x = vec![1.0; b.len()];
        let system = System {
            matrix: &matrix,
            preconditioner: &mut distribute(comm, &laplace_grid(3)),
        };
        let report = conjugate_gradients(comm, system, &b, &mut x, &to(1e-8), &mut |_| ())
            .expect("it is solved");
        assert!(report.converged && report.iterations == 0);
        assert!(x.iter().all(|&x| x == 0.0));
    });
}

#[test]
fn a_start_at_the_solution_needs_no_iteration_either() {
    let a = laplace_grid(5);
    run_threads(2, |comm| {
        let matrix = distribute(comm, &a);
        let mut x = vec![1.0; matrix.n_owned()];
        let mut b = vec![0.0; x.len()];
        matrix.apply(comm, &x, &mut b);
        let system = System {
            matrix: &matrix,
            preconditioner: &mut distribute(comm, &a),
        };
        let report = conjugate_gradients(comm, system, &b, &mut x, &to(1e-8), &mut |_| ())
            .expect("it is solved");
        assert!(report.converged && report.iterations == 0 && report.true_residual == 0.0);
        assert!(x.iter().all(|&x| x == 1.0));
    });
}

#[test]
fn drift_of_the_residual_is_made_good_by_a_restart() {
    // Stiffnesses so unlike that the recursive residual meets the tolerance before the true one does.
    let a = spring_grid(4, 1e5);
    let comm = Comm::alone();
    let b = vec![1.0; a.n_rows * 3];
    let (_, report) =
        solve(&comm, &distribute(&comm, &a), &b, to(1e-9)).expect("it is positive definite");
    let first = report.history.iter().position(|&r| r <= 1e-9);
    assert!(
        first.is_some_and(|first| first < report.iterations),
        "no restart was needed"
    );
    assert!(
        report.true_residual <= 1e-9 && !report.at_rounding_level,
        "{}",
        report.true_residual
    );
}

#[test]
fn a_tolerance_out_of_reach_ends_at_rounding_level() {
    let a = spring_grid(3, 1e7);
    run_threads(2, |comm| {
        let matrix = distribute(comm, &a);
        let b = vec![1.0; matrix.n_owned()];
        for options in variants(1e-12) {
            let (_, report) = solve(comm, &matrix, &b, options).expect("it is positive definite");
            assert!(report.true_residual > 1e-9, "{}", report.true_residual);
            assert!(
                report.at_rounding_level && report.converged,
                "{options:?}: {} {:?}",
                report.backward_error,
                report.changes
            );
        }
    });
}

#[test]
fn a_small_backward_error_before_the_end_is_no_solution() {
    let a = spring_grid(4, 1e9);
    run_threads(2, |comm| {
        let matrix = distribute(comm, &a);
        let b = vec![1.0; matrix.n_owned()];
        let options = CgOptions {
            max_iterations: 1000,
            ..to(1e-9)
        };
        let (_, report) = solve(comm, &matrix, &b, options).expect("it is positive definite");
        assert!(
            report.iterations == 1000 && !report.converged && !report.at_rounding_level,
            "{report:?}"
        );
        assert!(
            report.backward_error < ROUNDING_LEVEL,
            "{}",
            report.backward_error
        );
    });
}

/// The error of eight equations with a diagonal of ones but for `entry`, and of the right-hand side `b`.
fn message(entry: f64, b: f64, options: CgOptions) -> String {
    let diagonal = |entry: f64| {
        let blocks = (0..8).map(|row| (row, row, [[if row == 6 { entry } else { 1.0 }]]));
        BlockCsr::from_blocks(8, 8, blocks.collect())
    };
    let text = Mutex::new(String::new());
    run_threads(2, |comm| {
        let matrix = distribute(comm, &diagonal(entry));
        let system = System {
            matrix: &matrix,
            preconditioner: &mut distribute(comm, &diagonal(1.0)),
        };
        let options = CgOptions {
            matrix_norm: 10.0,
            ..options
        };
        let b = vec![b; matrix.n_owned()];
        let mut x = vec![0.0; b.len()];
        let error = conjugate_gradients(comm, system, &b, &mut x, &options, &mut |_| ())
            .expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Model);
        *text.lock().expect("no rank panicked") = error.to_string();
    });
    text.into_inner().expect("no rank panicked")
}

#[test]
fn indefinite_matrices_and_nan_are_refused_on_every_rank() {
    for options in variants(1e-8) {
        let indefinite = message(-9.0, 1.0, options);
        assert!(
            indefinite.starts_with("the matrix is not positive definite"),
            "{indefinite}"
        );
        assert!(message(f64::NAN, 1.0, options).contains("not finite"));
        assert!(
            message(1.0, f64::INFINITY, options).starts_with("the right-hand side holds numbers")
        );
        assert!(message(1.0, 1e-160, options).contains("too small"));
    }
}
