//! Krylov methods: iterative solution of distributed linear systems.
//!
//! Invariant: knows matrices and preconditioners as [`crate::linalg::LinearOperator`] only.

pub mod cg;

pub use cg::conjugate_gradients;

/// Largest backward error at which a solution counts as solved at rounding level, in units of the machine epsilon.
///
/// A product of a row of n terms has itself a rounding error of up to n epsilon relative to the norms; in practice
/// errors of the terms cancel and a backward stable solution shows less than one.
pub const ROUNDING_LEVEL: f64 = 4.0 * f64::EPSILON;

/// What a solution achieved; both errors are computed from the matrix and the final solution.
#[derive(Clone, Debug, PartialEq)]
pub struct SolveReport {
    /// Products with the matrix that the method itself took; 0 for a direct solution.
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
    /// Whether the tolerance was not met, but no further progress is possible in double precision: the backward error
    /// is at rounding level.
    pub at_rounding_level: bool,
}
