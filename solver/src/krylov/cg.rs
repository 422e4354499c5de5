//! Conjugate gradients with preconditioning, checked against the true residual.
//!
//! The recursive residual of the method drifts away from b - A x in ill-conditioned systems. So the true one is
//! computed whenever the recursive one meets the tolerance, and if it does not, the method starts again from there,
//! until the tolerance is met or a restart brings no progress: then the backward error decides.
//!
//! A preconditioner in single precision may lose what makes it one: the residual no longer falls, or a scalar product
//! that must be positive is not. Then the method helps itself: it starts again from the true residual, after that with a
//! preconditioner made stronger, and only then gives up. Each step is reported, and the solution returned is the best
//! that a step ended with.
//!
//! Invariant: knows the matrix and the preconditioner as operators only; every rank takes the same decisions, since
//! all of them rest on reduced numbers.

use super::form::{Form, Timing};
use super::iterate::{End, not_definite};
use super::report::{Norms, ROUNDING_LEVEL, SolveReport, norm_of_rhs};
use crate::linalg::{LinearOperator, Preconditioner, vector};
use fem_mesh::{Comm, Error, Result};

/// A start that does not lower the true residual below this part of the one before has made no progress.
const PROGRESS: f64 = 0.5;

/// The recursive residual is not followed further down than by this factor: the true one stays behind long before.
const LEAP: f64 = 1e-14;

/// A restart aims below the tolerance by this factor, so that a little drift does not ask for yet another.
const RESTART_AIM: f64 = 0.1;

/// A restart lowers the residual by this factor at most: the limit of rounding is near, and iterations beyond it are
/// lost.
const RESTART_STEP: f64 = 0.01;

/// Iterations that got stuck are restarted again only if the true residual is below this part of the lowest before.
const RESTART_GAIN: f64 = 0.01;

/// When to stop, and how to go.
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
    /// Iterations in which the residual must reach a new low: otherwise the method changes something.
    pub window: usize,
    /// Form of the iterations; `None`: the faster one, by measurement.
    pub form: Option<Form>,
}

impl Default for CgOptions {
    /// To 1e-8 in 2000 iterations of the plain form, with a fixed preconditioner; the norm of the matrix is not known.
    fn default() -> Self {
        CgOptions {
            tolerance: 1e-8,
            max_iterations: 2000,
            matrix_norm: 0.0,
            flexible: false,
            window: usize::MAX,
            form: Some(Form::Plain),
        }
    }
}

/// What happens while the method runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum News<'a> {
    /// The relative residual at the start (iteration 0) or after an iteration.
    Residual(usize, f64),
    /// The method changed something, since it made no progress as it was.
    Change(&'a str),
}

/// Called with the news.
pub type Progress<'a> = dyn FnMut(News) + 'a;

/// A symmetric positive definite system: the matrix and an approximation of its inverse.
pub struct System<'a> {
    /// The matrix A.
    pub matrix: &'a dyn LinearOperator,
    /// The preconditioner, symmetric positive definite as well. The method may strengthen it.
    pub preconditioner: &'a mut dyn Preconditioner,
}

/// Collective. Solves A x = b from the start vector in `x`; a zero `b` gives zero without an iteration.
///
/// Hestenes and Stiefel, J. Res. Nat. Bur. Stand. 49 (1952) 409, as in Saad, Iterative Methods for Sparse Linear
/// Systems, 2nd ed., algorithm 9.1; the flexible variant as in Notay, SIAM J. Sci. Comput. 22 (2000) 1444, with
/// truncation to one direction. Reductions over the ranks: see [`Form`].
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
    Cg::new(comm, system, *options, norm_b, x).solve(comm, b, x, progress)
}

/// The vectors and counters of one solution.
pub(super) struct Cg<'a> {
    pub(super) system: System<'a>,
    pub(super) options: CgOptions,
    pub(super) norm_b: f64,
    /// Residual: true at a start, then recursive.
    pub(super) r: Vec<f64>,
    /// Preconditioned residual.
    pub(super) z: Vec<f64>,
    /// Search direction.
    pub(super) p: Vec<f64>,
    /// A p.
    pub(super) q: Vec<f64>,
    /// A z in the merged form; empty otherwise.
    pub(super) w: Vec<f64>,
    pub(super) iterations: usize,
    history: Vec<f64>,
    form: Form,
    form_reason: String,
    changes: Vec<String>,
}

/// Where the method stands between two starts.
struct Stand {
    /// True residual.
    residual: f64,
    /// Lowest true residual at a start with the preconditioner as it is, and whether there was a restart to get on.
    lowest: f64,
    is_restarted: bool,
    /// The solution that the best start so far ended with, and its true residual; kept from the second start on.
    best: Option<(f64, Vec<f64>)>,
}

impl Stand {
    /// Keeps the solution if it is the best that a start ended with.
    fn keep(&mut self, x: &[f64]) {
        match &mut self.best {
            None => self.best = Some((self.residual, x.to_vec())),
            Some((residual, best)) if self.residual < *residual => {
                *residual = self.residual;
                best.copy_from_slice(x);
            }
            Some(_) => {}
        }
    }

    /// Goes back to the best solution if that of the last start is worse.
    fn restore_best(&mut self, x: &mut [f64]) {
        if let Some((residual, best)) = &self.best
            && *residual < self.residual
        {
            self.residual = *residual;
            x.copy_from_slice(best);
        }
    }
}

impl<'a> Cg<'a> {
    /// Collective, if the form is to be measured.
    fn new(
        comm: &Comm,
        system: System<'a>,
        options: CgOptions,
        norm_b: f64,
        x: &mut [f64],
    ) -> Self {
        let zeros = vec![0.0; system.matrix.n_owned()];
        let (r, z, mut p, q) = (zeros.clone(), zeros.clone(), zeros.clone(), zeros);
        let (form, form_reason) = match options.form {
            Some(form) => (form, String::new()),
            None => {
                let timing = Timing::measure(comm, x, &z, &mut p);
                (timing.choose(), timing.describe())
            }
        };
        Cg {
            system,
            options,
            norm_b,
            r,
            z,
            p,
            q,
            w: Vec::new(),
            iterations: 0,
            history: Vec::new(),
            form,
            form_reason,
            changes: Vec::new(),
        }
    }

    /// Collective. One start after the other, until the tolerance is met or nothing helps.
    fn solve(
        mut self,
        comm: &Comm,
        b: &[f64],
        x: &mut [f64],
        progress: &mut Progress,
    ) -> Result<SolveReport> {
        let tolerance = self.options.tolerance;
        let residual = self.true_residual(comm, b, x)?;
        self.record(residual, progress);
        let mut stand = Stand {
            residual,
            lowest: residual,
            is_restarted: false,
            best: None,
        };
        let mut aim = tolerance.max(LEAP * residual);
        let mut is_stalled = false;
        while stand.residual > tolerance && self.iterations < self.options.max_iterations {
            let (first, before) = (self.iterations, stand.residual);
            let end = match self.form {
                Form::Plain => self.run_plain(comm, x, before, aim, progress)?,
                Form::Merged => self.run_merged(comm, x, before, aim, progress)?,
            };
            stand.residual = self.true_residual(comm, b, x)?;
            if stand.residual <= tolerance || end == End::OutOfIterations {
                break;
            }
            if end == End::Reached && stand.residual <= PROGRESS * before {
                aim = (RESTART_AIM * tolerance).max(RESTART_STEP * stand.residual);
            } else {
                let n_iterations = self.iterations - first;
                is_stalled = end == End::Reached && self.is_at_rounding_level(comm, &stand, x)
                    || !self.change(end, n_iterations, &mut stand, progress);
                if is_stalled {
                    require_operators(end, self.iterations)?;
                    break;
                }
                aim = tolerance.max(LEAP * stand.residual);
            }
            stand.lowest = stand.lowest.min(stand.residual);
            stand.keep(x);
        }
        stand.restore_best(x);
        let norm_x = vector::norm(comm, x);
        Ok(self.report(stand.residual, norm_x, is_stalled))
    }

    /// What to do after a start of `n_iterations` that ended without success: changes it, or returns `false` if nothing
    /// is left.
    fn change(
        &mut self,
        end: End,
        n_iterations: usize,
        stand: &mut Stand,
        progress: &mut Progress,
    ) -> bool {
        let why = match end {
            End::Reached | End::OutOfIterations => "the true residual did not follow".to_owned(),
            End::Stagnated => format!(
                "the residual had not fallen for {} iterations",
                self.options.window
            ),
            End::PreconditionerFailed => "the preconditioner was not positive definite".to_owned(),
            End::MatrixFailed => "the search direction had no positive energy".to_owned(),
        };
        let gets_on = !stand.is_restarted || stand.residual <= RESTART_GAIN * stand.lowest;
        let what = if end != End::Reached && n_iterations > 0 && gets_on {
            stand.is_restarted = true;
            "restarted".to_owned()
        } else if self.form == Form::Merged {
            self.form = Form::Plain;
            stand.is_restarted = false;
            "went on with two reductions an iteration".to_owned()
        } else if let Some(how) = self.system.preconditioner.strengthen() {
            stand.is_restarted = false;
            format!("went on with {how}")
        } else {
            return false;
        };
        let text = format!(
            "{what} after {} iterations at a true residual of {:.1e}: {why}",
            self.iterations, stand.residual
        );
        progress(News::Change(&text));
        self.changes.push(text);
        true
    }

    /// Collective. Leaves b - A x in `r`; returns its norm relative to that of b.
    fn true_residual(&mut self, comm: &Comm, b: &[f64], x: &[f64]) -> Result<f64> {
        self.system.matrix.apply(comm, x, &mut self.r);
        let rr = comm.sum(vector::residual_in_place(b, &mut self.r));
        self.finite(rr.sqrt() / self.norm_b, "residual")
    }

    pub(super) fn record(&mut self, residual: f64, progress: &mut Progress) {
        self.history.push(residual);
        progress(News::Residual(self.iterations, residual));
    }

    pub(super) fn finite(&self, value: f64, name: &str) -> Result<f64> {
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

    fn norms(&self, true_residual: f64, norm_x: f64) -> Norms {
        Norms {
            residual: true_residual * self.norm_b,
            rhs: self.norm_b,
            solution: norm_x,
            matrix: self.options.matrix_norm,
        }
    }

    /// Collective. Whether double precision has nothing better than `x`.
    fn is_at_rounding_level(&self, comm: &Comm, stand: &Stand, x: &[f64]) -> bool {
        let norm_x = vector::norm(comm, x);
        self.norms(stand.residual, norm_x).backward_error() <= ROUNDING_LEVEL
    }

    fn report(self, true_residual: f64, norm_x: f64, is_stalled: bool) -> SolveReport {
        let norms = self.norms(true_residual, norm_x);
        SolveReport {
            iterations: self.iterations,
            changes: self.changes,
            form: self.form,
            form_reason: self.form_reason,
            ..SolveReport::new(norms, self.options.tolerance, is_stalled, self.history)
        }
    }
}

/// That it was not an operator without the properties it must have that ended the method.
fn require_operators(end: End, iteration: usize) -> Result<()> {
    match end {
        End::PreconditionerFailed => Err(not_definite("preconditioner", iteration)),
        End::MatrixFailed => Err(not_definite("matrix", iteration)),
        End::Reached | End::OutOfIterations | End::Stagnated => Ok(()),
    }
}
