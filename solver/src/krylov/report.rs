//! `SolveReport`: what the solution of a linear system achieved, judged by the matrix itself.
//!
//! Invariant: the same for every method; rests on the true residual, never on one that a method carries along.

use super::form::Form;
use crate::linalg::vector;
use fem_mesh::{Comm, Error, Result};

/// Largest backward error at which a solution counts as solved at rounding level.
///
/// A product of a row of n terms has itself a rounding error of up to n epsilon relative to the norms; in practice
/// errors of the terms cancel and a backward stable solution shows less than one epsilon.
pub const ROUNDING_LEVEL: f64 = 4.0 * f64::EPSILON;

/// Largest true residual at which a solution can count as solved at rounding level: two digits of the load are balanced.
/// Beyond it the matrix is singular for all practical purposes, and the backward error small only because x is huge.
pub const MAX_RESIDUAL: f64 = 1e-2;

/// What a solution achieved; both errors are computed from the matrix and the final solution.
#[derive(Clone, Debug, PartialEq)]
pub struct SolveReport {
    /// Iterations that the method took; 0 for a direct solution.
    pub iterations: usize,
    /// ‖b - A x‖ / ‖b‖ in the 2-norm; 0 where b is zero.
    pub true_residual: f64,
    /// ‖b - A x‖ / (‖A‖ ‖x‖ + ‖b‖) in the 2-norm for vectors, the largest absolute row sum for A (for a symmetric
    /// matrix an upper bound of its 2-norm). Rigal and Gaches, J. ACM 14 (1967) 543.
    pub backward_error: f64,
    /// Residual that the method saw, relative to ‖b‖: at the start and after each iteration.
    pub history: Vec<f64>,
    /// Whether `true_residual` is within the tolerance, or `at_rounding_level`.
    pub converged: bool,
    /// Whether the tolerance was not met, but no further progress was possible and the backward error is at rounding
    /// level: the best that double precision gives.
    pub at_rounding_level: bool,
    /// What the method did because it made no progress as it was: one sentence each, in order.
    pub changes: Vec<String>,
    /// Form of the iterations.
    pub form: Form,
    /// The measurement that chose the form; empty where none did.
    pub form_reason: String,
}

/// 2-norms of the vectors of a solved system, and the largest absolute row sum of its matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norms {
    pub(crate) residual: f64,
    pub(crate) rhs: f64,
    pub(crate) solution: f64,
    pub(crate) matrix: f64,
}

impl Norms {
    /// ‖b - A x‖ / (‖A‖ ‖x‖ + ‖b‖).
    pub(crate) fn backward_error(&self) -> f64 {
        self.residual / (self.matrix * self.solution + self.rhs)
    }
}

impl SolveReport {
    /// Judges a solution by its norms. `stalled`: whether the method ended because it made no more progress. The
    /// backward error means nothing otherwise: in an ill-conditioned system it is small long before the end.
    pub(crate) fn new(norms: Norms, tolerance: f64, stalled: bool, history: Vec<f64>) -> Self {
        let true_residual = norms.residual / norms.rhs;
        let backward_error = norms.backward_error();
        let at_rounding_level = stalled
            && true_residual > tolerance
            && true_residual <= MAX_RESIDUAL
            && backward_error <= ROUNDING_LEVEL;
        SolveReport {
            iterations: 0,
            true_residual,
            backward_error,
            history,
            converged: true_residual <= tolerance || at_rounding_level,
            at_rounding_level,
            ..SolveReport::of_zero()
        }
    }

    /// The report of a zero right-hand side, solved by zero.
    pub(crate) fn of_zero() -> Self {
        SolveReport {
            iterations: 0,
            true_residual: 0.0,
            backward_error: 0.0,
            history: Vec::new(),
            converged: true,
            at_rounding_level: false,
            changes: Vec::new(),
            form: Form::Plain,
            form_reason: String::new(),
        }
    }
}

/// Collective. 2-norm of a right-hand side; exactly zero only if all of `b` is.
///
/// # Errors
/// Numbers that are not finite, or so small that their squares vanish.
pub(crate) fn norm_of_rhs(comm: &Comm, b: &[f64]) -> Result<f64> {
    let norm = vector::norm(comm, b);
    if !norm.is_finite() {
        return Err(Error::model(
            "the right-hand side holds numbers that are not finite",
        ));
    }
    if norm < 1e-150 && comm.any(b.iter().any(|&b| b != 0.0)) {
        let what = format!("the right-hand side is too small to compute with (norm {norm:e})");
        return Err(Error::model(what).advice("use other units"));
    }
    Ok(norm)
}

#[cfg(test)]
mod tests {
    use super::{Norms, SolveReport};

    #[test]
    fn the_tolerance_comes_first_and_the_backward_error_second() {
        let judge = |residual: f64, matrix: f64, stalled: bool| {
            let norms = Norms {
                residual,
                rhs: 2.0,
                solution: 3.0,
                matrix,
            };
            let report = SolveReport::new(norms, 1e-8, stalled, vec![1.0]);
            (report.converged, report.at_rounding_level)
        };
        assert_eq!(judge(1e-8, 1.0, true), (true, false));
        assert_eq!(judge(1e-7, 1.0, true), (false, false));
        assert_eq!(judge(1e-7, 1e9, true), (true, true));
        assert_eq!(judge(1e-7, 1e9, false), (false, false));
        assert_eq!(judge(0.1, 1e18, true), (false, false));
        assert_eq!(judge(f64::NAN, 1.0, true), (false, false));
    }
}
