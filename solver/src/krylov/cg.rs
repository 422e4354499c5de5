//! Conjugate gradients with preconditioning, checked against the true residual.
//!
//! The recursive residual of the method drifts away from b - A x in ill-conditioned systems. So the true one is
//! computed whenever the recursive one meets the tolerance, and if it does not, the method starts again from there,
//! until the tolerance is met or a restart brings no progress: then the backward error decides.
//!
//! Invariant: knows the matrix and the preconditioner as operators only; every rank takes the same decisions, since
//! all of them rest on reduced numbers.

use super::report::{Norms, SolveReport, norm_of_rhs};
use crate::linalg::{LinearOperator, vector};
use fem_mesh::{Comm, Error, Result};

/// A restart that does not lower the true residual below this part of the one before ends the method.
const PROGRESS: f64 = 0.5;

/// The recursive residual is not followed further down than by this factor: the true one stays behind long before.
const LEAP: f64 = 1e-14;

/// A restart aims below the tolerance by this factor, so that a little drift does not ask for yet another.
const RESTART_AIM: f64 = 0.1;

/// A restart lowers the residual by this factor at most: the limit of rounding is near, and iterations beyond it are
/// lost.
const RESTART_STEP: f64 = 0.01;

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CgOptions {
    /// Wanted ‖b - A x‖ / ‖b‖, greater than 0.
    pub tolerance: f64,
    /// Most iterations, restarts included.
    pub max_iterations: usize,
    /// ‖A‖ for the backward error: the largest absolute row sum.
    pub matrix_norm: f64,
    /// Whether the preconditioner may deviate from a fixed symmetric operator, as one in single precision does: each
    /// search direction is then made conjugate to the one before by its own scalar product.
    pub flexible: bool,
}

/// Called with the number of the iteration and the relative residual there.
pub type Progress<'a> = dyn FnMut(usize, f64) + 'a;

/// A symmetric positive definite system: the matrix and an approximation of its inverse.
#[derive(Clone, Copy)]
pub struct System<'a> {
    /// The matrix A.
    pub matrix: &'a dyn LinearOperator,
    /// The preconditioner, symmetric positive definite as well.
    pub preconditioner: &'a dyn LinearOperator,
}

/// Collective. Solves A x = b from the start vector in `x`; a zero `b` gives zero without an iteration.
///
/// Hestenes and Stiefel, J. Res. Nat. Bur. Stand. 49 (1952) 409, as in Saad, Iterative Methods for Sparse Linear
/// Systems, 2nd ed., algorithm 9.1. Two reductions over the ranks an iteration. The flexible variant (Notay, SIAM J.
/// Sci. Comput. 22 (2000) 1444, with truncation to one direction) takes three, and one vector more.
///
/// An iteration that runs out of `max_iterations` is no error: see [`SolveReport::converged`].
///
/// # Errors
/// A matrix or preconditioner that is not positive definite, and numbers that are not finite.
pub fn conjugate_gradients(
    comm: &Comm,
    system: System,
    b: &[f64],
    x: &mut [f64],
    options: &CgOptions,
    progress: &mut Progress,
) -> Result<SolveReport> {
    let norm_b = norm_of_rhs(comm, b)?;
    if norm_b == 0.0 {
        x.fill(0.0);
        return Ok(SolveReport::of_zero());
    }
    let mut cg = Cg::new(system, options, norm_b);
    let mut residual = cg.true_residual(comm, b, x)?;
    cg.record(residual, progress);
    let mut aim = options.tolerance.max(LEAP * residual);
    let mut stalled = false;
    while residual > options.tolerance && cg.iterations < options.max_iterations {
        if options.flexible {
            cg.run_flexible(comm, x, aim, progress)?;
        } else {
            cg.run(comm, x, aim, progress)?;
        }
        let before = residual;
        residual = cg.true_residual(comm, b, x)?;
        if residual > PROGRESS * before {
            stalled = cg.iterations < options.max_iterations;
            break;
        }
        aim = (RESTART_AIM * options.tolerance).max(RESTART_STEP * residual);
    }
    let norm_x = vector::norm(comm, x);
    Ok(cg.report(residual, norm_x, stalled))
}

/// The vectors and counters of one solution.
struct Cg<'a> {
    system: System<'a>,
    options: &'a CgOptions,
    norm_b: f64,
    /// Residual: true at a start, then recursive.
    r: Vec<f64>,
    /// Preconditioned residual, and A p while that is needed.
    z: Vec<f64>,
    /// Search direction.
    p: Vec<f64>,
    /// A p in the flexible variant; empty otherwise.
    q: Vec<f64>,
    iterations: usize,
    history: Vec<f64>,
}

impl<'a> Cg<'a> {
    fn new(system: System<'a>, options: &'a CgOptions, norm_b: f64) -> Self {
        let zeros = vec![0.0; system.matrix.n_owned()];
        let q = if options.flexible {
            zeros.clone()
        } else {
            Vec::new()
        };
        let (r, z, p) = (zeros.clone(), zeros.clone(), zeros);
        Cg {
            system,
            options,
            norm_b,
            r,
            z,
            p,
            q,
            iterations: 0,
            history: Vec::new(),
        }
    }

    /// Collective. Leaves b - A x in `r`; returns its norm relative to that of b.
    fn true_residual(&mut self, comm: &Comm, b: &[f64], x: &[f64]) -> Result<f64> {
        self.system.matrix.apply(comm, x, &mut self.r);
        let rr = comm.sum(vector::residual_in_place(b, &mut self.r));
        self.finite(rr.sqrt() / self.norm_b, "residual")
    }

    /// Collective. Iterates from the residual in `r` until the recursive one is down to `aim` or iterations run out.
    fn run(&mut self, comm: &Comm, x: &mut [f64], aim: f64, progress: &mut Progress) -> Result<()> {
        let System {
            matrix,
            preconditioner,
        } = self.system;
        preconditioner.apply(comm, &self.r, &mut self.z);
        let rz = vector::dot(comm, &self.r, &self.z);
        let mut rz = self.positive(rz, "preconditioner")?;
        self.p.copy_from_slice(&self.z);
        while self.iterations < self.options.max_iterations {
            matrix.apply(comm, &self.p, &mut self.z);
            let pq = vector::dot(comm, &self.p, &self.z);
            let alpha = rz / self.positive(pq, "matrix")?;
            let rr = vector::step_and_norm(alpha, &self.p, &self.z, x, &mut self.r);
            self.iterations += 1;
            preconditioner.apply(comm, &self.r, &mut self.z);
            let mut sums = [rr, vector::local_dot(&self.r, &self.z)];
            comm.sum_into(&mut sums);
            let residual = self.finite(sums[0].sqrt() / self.norm_b, "residual")?;
            self.record(residual, progress);
            if residual <= aim {
                break;
            }
            let rz_new = self.positive(sums[1], "preconditioner")?;
            vector::axpby(1.0, &self.z, rz_new / rz, &mut self.p);
            rz = rz_new;
        }
        Ok(())
    }

    /// As [`Cg::run`], for a preconditioner that is not quite the same symmetric operator every time. The last
    /// iteration does not apply it.
    fn run_flexible(
        &mut self,
        comm: &Comm,
        x: &mut [f64],
        aim: f64,
        progress: &mut Progress,
    ) -> Result<()> {
        let System {
            matrix,
            preconditioner,
        } = self.system;
        self.p.fill(0.0);
        self.q.fill(0.0);
        // (r, z), and the step of the iteration before.
        let (mut rz, mut alpha) = (1.0, 0.0);
        while self.iterations < self.options.max_iterations {
            preconditioner.apply(comm, &self.r, &mut self.z);
            let [rz_new, qz] = vector::dots(comm, [(&self.r, &self.z), (&self.q, &self.z)]);
            let rz_new = self.positive(rz_new, "preconditioner")?;
            // (z, r - r_before) over (z, r) before; the residual changed by -alpha q.
            vector::axpby(1.0, &self.z, -alpha * qz / rz, &mut self.p);
            matrix.apply(comm, &self.p, &mut self.q);
            let [pq, pr] = vector::dots(comm, [(&self.p, &self.q), (&self.p, &self.r)]);
            alpha = pr / self.positive(pq, "matrix")?;
            let rr = comm.sum(vector::step_and_norm(
                alpha,
                &self.p,
                &self.q,
                x,
                &mut self.r,
            ));
            self.iterations += 1;
            let residual = self.finite(rr.sqrt() / self.norm_b, "residual")?;
            self.record(residual, progress);
            if residual <= aim {
                break;
            }
            rz = rz_new;
        }
        Ok(())
    }

    fn record(&mut self, residual: f64, progress: &mut Progress) {
        self.history.push(residual);
        progress(self.iterations, residual);
    }

    fn finite(&self, value: f64, name: &str) -> Result<f64> {
        if value.is_finite() {
            return Ok(value);
        }
        let what = format!(
            "the {name} is not finite after {} iterations of the solver",
            self.iterations
        );
        Err(Error::model(what)
            .advice("look for zero or huge values among the material data and the coordinates"))
    }

    /// Checks a scalar product (v, M v) of the operator `name`.
    fn positive(&self, product: f64, name: &str) -> Result<f64> {
        let product = self.finite(product, name)?;
        if product > 0.0 {
            return Ok(product);
        }
        let n = self.iterations;
        let what = format!(
            "the {name} is not positive definite: found in iteration {n} of the conjugate gradients"
        );
        Err(Error::model(what)
            .advice("is the model restrained, and are all material data positive?"))
    }

    fn report(self, true_residual: f64, norm_x: f64, stalled: bool) -> SolveReport {
        let norms = Norms {
            residual: true_residual * self.norm_b,
            rhs: self.norm_b,
            solution: norm_x,
            matrix: self.options.matrix_norm,
        };
        SolveReport {
            iterations: self.iterations,
            ..SolveReport::new(norms, self.options.tolerance, stalled, self.history)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CgOptions, System, conjugate_gradients};
    use crate::krylov::{ROUNDING_LEVEL, SolveReport};
    use crate::linalg::sample::{distribute, laplace_grid, noise, owned_rows, spring_grid};
    use crate::linalg::{BlockCsr, DistMatrix, LinearOperator};
    use crate::precond::{BlockJacobi, Jacobi};
    use fem_mesh::comm::run_threads;
    use fem_mesh::{Comm, ErrorKind, Result};

    /// Solves with block-Jacobi from zero.
    fn solve<const B: usize>(
        comm: &Comm,
        a: &DistMatrix<B>,
        b: &[f64],
        options: CgOptions,
    ) -> Result<(Vec<f64>, SolveReport)> {
        let preconditioner = BlockJacobi::new(comm, a)?;
        let system = System {
            matrix: a,
            preconditioner: &preconditioner,
        };
        let options = CgOptions {
            matrix_norm: a.norm_inf(comm),
            ..options
        };
        let mut x = vec![0.0; b.len()];
        let report = conjugate_gradients(comm, system, b, &mut x, &options, &mut |_, _| ())?;
        Ok((x, report))
    }

    fn to(tolerance: f64) -> CgOptions {
        CgOptions {
            tolerance,
            max_iterations: 2000,
            matrix_norm: 0.0,
            flexible: false,
        }
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
                let (x, report) = solve(comm, &matrix, &b[mine.clone()], to(1e-12))
                    .expect("it is positive definite");
                assert!(report.true_residual <= 1e-12);
                assert!(report.iterations.abs_diff(alone.iterations) <= 1);
                assert_eq!(report.history.len(), report.iterations + 1);
                for (x, expected) in x.iter().zip(&expected[mine]) {
                    assert!((x - expected).abs() < 1e-10 * scale, "{x} {expected}");
                }
            });
        }
    }

    #[test]
    fn one_to_four_ranks_find_the_same_solution() {
        check_on_ranks(&spring_grid(6, 10.0));
        check_on_ranks(&laplace_grid(8));
    }

    #[test]
    fn point_jacobi_needs_more_iterations_than_block_jacobi() {
        let a = spring_grid(8, 100.0);
        run_threads(2, |comm| {
            let matrix = distribute(comm, &a);
            let b = vec![1.0; matrix.n_owned()];
            let (by_blocks, report) =
                solve(comm, &matrix, &b, to(1e-10)).expect("it is positive definite");
            let preconditioner = Jacobi::new(comm, &matrix).expect("its diagonal is positive");
            let system = System {
                matrix: &matrix,
                preconditioner: &preconditioner,
            };
            let mut x = vec![0.0; b.len()];
            let mut seen = Vec::new();
            let mut progress = |iteration: usize, residual: f64| seen.push((iteration, residual));
            let point = conjugate_gradients(comm, system, &b, &mut x, &to(1e-10), &mut progress)
                .expect("it is positive definite");
            assert!(
                point.converged && point.iterations > report.iterations,
                "{} {}",
                point.iterations,
                report.iterations
            );
            assert_eq!(seen.len(), point.history.len());
            assert_eq!(
                seen.last(),
                Some(&(point.iterations, point.history[point.iterations]))
            );
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
        let run = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(n_threads)
                .build()
                .expect("threads start");
            let options = CgOptions {
                max_iterations: 12,
                ..to(1e-10)
            };
            pool.install(|| {
                let comm = Comm::alone();
                let (x, report) = solve(&comm, &distribute(&comm, &a), &b, options)
                    .expect("it is positive definite");
                assert!(!report.converged && report.iterations == 12);
                (x, report.history)
            })
        };
        let one = run(1);
        assert_eq!(one, run(2));
        assert_eq!(one, run(3));
    }

    #[test]
    fn a_zero_right_hand_side_needs_no_iteration() {
        run_threads(2, |comm| {
            let matrix = distribute(comm, &laplace_grid(3));
            let b = vec![0.0; matrix.n_owned()];
            let system = System {
                matrix: &matrix,
                preconditioner: &matrix,
            };
            let mut x = vec![1.0; b.len()];
            let report = conjugate_gradients(comm, system, &b, &mut x, &to(1e-8), &mut |_, _| ())
                .expect("it is solved");
            assert!(report.converged && report.iterations == 0);
            assert!(x.iter().all(|&x| x == 0.0));
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
            let (_, report) = solve(comm, &matrix, &b, to(1e-12)).expect("it is positive definite");
            assert!(report.true_residual > 1e-9, "{}", report.true_residual);
            assert!(
                report.at_rounding_level && report.converged,
                "{}",
                report.backward_error
            );
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

    #[test]
    fn indefinite_matrices_and_nan_are_refused() {
        let message = |matrix: [[f64; 1]; 1], b: f64| {
            let blocks = (0..8).map(|row| (row, row, if row == 6 { matrix } else { [[1.0]] }));
            let a = BlockCsr::from_blocks(8, 8, blocks.collect());
            let mut text = String::new();
            let found = std::sync::Mutex::new(&mut text);
            run_threads(2, |comm| {
                let matrix = distribute(comm, &a);
                let identity = distribute(
                    comm,
                    &BlockCsr::from_blocks(8, 8, (0..8).map(|i| (i, i, [[1.0]])).collect()),
                );
                let system = System {
                    matrix: &matrix,
                    preconditioner: &identity,
                };
                let b = vec![b; matrix.n_owned()];
                let mut x = vec![0.0; b.len()];
                let Err(error) =
                    conjugate_gradients(comm, system, &b, &mut x, &to(1e-8), &mut |_, _| ())
                else {
                    panic!("accepted");
                };
                assert_eq!(error.kind(), ErrorKind::Model);
                **found.lock().expect("no rank panicked") = error.to_string();
            });
            text
        };
        assert!(message([[-9.0]], 1.0).starts_with("the matrix is not positive definite"));
        assert!(message([[f64::NAN]], 1.0).contains("not finite"));
        assert!(message([[1.0]], f64::INFINITY).starts_with("the right-hand side holds numbers"));
        assert!(message([[1.0]], 1e-160).contains("too small"));
    }
}
