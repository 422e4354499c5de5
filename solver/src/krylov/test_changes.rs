//! Conjugate gradients with preconditioners that fail on purpose: what the method changes, in which order, and that the
//! residual never gets worse by it.

use super::cg::{CgOptions, News, System, conjugate_gradients};
use super::{Form, SolveReport};
use crate::linalg::sample::{distribute, laplace_grid, noise};
use crate::linalg::{DistMatrix, LinearOperator, Preconditioner};
use crate::precond::Jacobi;
use fem_mesh::comm::run_threads;
use fem_mesh::{Comm, ErrorKind, Result};
use std::cell::Cell;

/// How a preconditioner fails.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// The sign of its result is wrong in these applications, counted from 0.
    Sign(usize, usize),
    /// Its result is orthogonal to what it should be but for a small part, from this application on.
    Useless(usize),
    /// Its result is not a number, from this application on.
    NotANumber(usize),
}

/// Jacobi with a fault, which goes away when it is strengthened, if it can be.
struct Faulty {
    inner: Jacobi,
    fault: Option<Fault>,
    can_be_strengthened: bool,
    n_applied: Cell<usize>,
}

impl LinearOperator for Faulty {
    fn n_owned(&self) -> usize {
        self.inner.n_owned()
    }

    fn apply(&self, comm: &Comm, x: &[f64], y: &mut [f64]) {
        self.inner.apply(comm, x, y);
        let n = self.n_applied.replace(self.n_applied.get() + 1);
        match self.fault {
            Some(Fault::Sign(first, last)) if (first..last).contains(&n) => {
                y.iter_mut().for_each(|y| *y = -*y);
            }
            Some(Fault::Useless(first)) if n >= first => {
                // Jumps about from one application to the next, so that nothing is conjugate to anything.
                let jumps = noise(y.len(), n as u64);
                let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum();
                let (xx, xj): (f64, f64) = (comm.sum(sum(x, x)), comm.sum(sum(x, &jumps)));
                for (i, y) in y.iter_mut().enumerate() {
                    *y = jumps[i] - (xj / xx) * x[i] + 1e-9 * x[i];
                }
            }
            Some(Fault::NotANumber(first)) if n >= first => y.fill(f64::NAN),
            _ => {}
        }
    }
}

impl Preconditioner for Faulty {
    fn strengthen(&mut self) -> Option<String> {
        let is_new = self.can_be_strengthened && self.fault.take().is_some();
        is_new.then(|| "a sound preconditioner".to_owned())
    }
}

const OPTIONS: CgOptions = CgOptions {
    tolerance: 1e-10,
    max_iterations: 2000,
    matrix_norm: 52.0,
    flexible: true,
    window: 12,
    form: Some(Form::Plain),
};

/// Solves a grid with a faulty preconditioner; the changes that were told of while it ran are those of the report.
fn solve(
    comm: &Comm,
    matrix: &DistMatrix<1>,
    fault: Fault,
    can_be_strengthened: bool,
    options: CgOptions,
) -> Result<SolveReport> {
    let mut preconditioner = Faulty {
        inner: Jacobi::new(comm, matrix).expect("its diagonal is positive"),
        fault: Some(fault),
        can_be_strengthened,
        n_applied: Cell::new(0),
    };
    let system = System {
        matrix,
        preconditioner: &mut preconditioner,
    };
    let b = vec![1.0; matrix.n_owned()];
    let mut x = vec![0.0; b.len()];
    let mut told = Vec::new();
    let report = conjugate_gradients(comm, system, &b, &mut x, &options, &mut |news| {
        if let News::Change(text) = news {
            told.push(text.to_owned());
        }
    })?;
    assert_eq!(told, report.changes);
    // The solution is that of the residual reported.
    let mut r = vec![0.0; b.len()];
    matrix.apply(comm, &x, &mut r);
    let norm = |v: &[f64]| comm.sum(v.iter().map(|v| v * v).sum::<f64>()).sqrt();
    r.iter_mut().zip(&b).for_each(|(r, b)| *r = b - *r);
    let residual = norm(&r) / norm(&b);
    assert!((residual - report.true_residual).abs() <= 1e-6 * residual);
    Ok(report)
}

/// Checks on 1 to 4 ranks.
fn check(body: impl Fn(&Comm, &DistMatrix<1>) + Sync) {
    let a = laplace_grid(8);
    for n_ranks in 1..=4 {
        run_threads(n_ranks, |comm| body(comm, &distribute(comm, &a)));
    }
}

#[test]
fn a_preconditioner_that_fails_once_costs_a_restart() {
    check(|comm, matrix| {
        let report = solve(comm, matrix, Fault::Sign(7, 8), true, OPTIONS).expect("it is solved");
        assert!(report.converged && report.true_residual <= 1e-10);
        assert_eq!(report.changes.len(), 1, "{:?}", report.changes);
        let change = &report.changes[0];
        assert!(
            change.starts_with("restarted after 7 iterations")
                && change.ends_with("the preconditioner was not positive definite"),
            "{change}"
        );
    });
}

#[test]
fn one_that_fails_again_is_strengthened() {
    check(|comm, matrix| {
        for fault in [Fault::Sign(7, 99), Fault::NotANumber(7)] {
            let report = solve(comm, matrix, fault, true, OPTIONS).expect("it is solved");
            assert!(report.converged && report.true_residual <= 1e-10);
            let [restart, strengthened] = &report.changes[..] else {
                panic!("{:?}", report.changes)
            };
            assert!(restart.starts_with("restarted"), "{restart}");
            assert!(
                strengthened.starts_with("went on with a sound preconditioner after 7 iterations"),
                "{strengthened}"
            );
        }
    });
}

#[test]
fn one_that_cannot_be_strengthened_ends_the_method() {
    check(|comm, matrix| {
        let error = solve(comm, matrix, Fault::Sign(7, 99), false, OPTIONS).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Model);
        assert!(
            error
                .to_string()
                .starts_with("the preconditioner is not positive definite: found in iteration 7"),
            "{error}"
        );
    });
}

#[test]
fn stagnation_is_seen_and_made_good() {
    check(|comm, matrix| {
        let report = solve(comm, matrix, Fault::Useless(9), true, OPTIONS).expect("it is solved");
        assert!(report.converged && report.true_residual <= 1e-10);
        let [restart, strengthened] = &report.changes[..] else {
            panic!("{:?}", report.changes)
        };
        assert!(
            restart.starts_with("restarted after")
                && restart.ends_with("the residual had not fallen for 12 iterations"),
            "{restart}"
        );
        assert!(
            strengthened.starts_with("went on with a sound preconditioner"),
            "{strengthened}"
        );
        // Nine sound iterations, two windows, and what a sound preconditioner takes.
        assert!(report.iterations < 9 + 2 * 12 + 60, "{}", report.iterations);
    });
}

#[test]
fn stagnation_without_help_ends_with_the_best_residual_of_all_starts() {
    check(|comm, matrix| {
        let report =
            solve(comm, matrix, Fault::Useless(9), false, OPTIONS).expect("no error of numbers");
        assert!(!report.converged && !report.at_rounding_level);
        assert_eq!(report.changes.len(), 1, "{:?}", report.changes);
        let at = report.changes[0].split("a true residual of ").nth(1);
        let at_restart = at.and_then(|text| text.split(':').next());
        let at_restart: f64 = at_restart.expect("told").parse().expect("a number");
        assert!(
            report.true_residual <= 1.05 * at_restart,
            "{} {at_restart}",
            report.true_residual
        );
        assert!(report.iterations < 9 + 3 * 12, "{}", report.iterations);
    });
}

#[test]
fn the_merged_form_falls_back_to_the_plain_one() {
    check(|comm, matrix| {
        let merged = CgOptions {
            form: Some(Form::Merged),
            ..OPTIONS
        };
        let report = solve(comm, matrix, Fault::Sign(7, 9), true, merged).expect("it is solved");
        assert!(report.converged && report.form == Form::Plain);
        let [restart, plain] = &report.changes[..] else {
            panic!("{:?}", report.changes)
        };
        assert!(restart.starts_with("restarted"), "{restart}");
        assert!(
            plain.starts_with("went on with two reductions an iteration"),
            "{plain}"
        );
    });
}
