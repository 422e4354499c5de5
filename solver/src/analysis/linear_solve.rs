//! The choice of method for one linear system, and its solution.
//!
//! Invariant: sees a matrix, a right-hand side and the user's options; knows no element or load.

use crate::direct::DirectAnalysis;
use crate::krylov::cg::{CgOptions, System};
use crate::krylov::{SolveReport, conjugate_gradients};
use crate::linalg::{DistMatrix, LinearOperator};
use crate::log::Log;
use crate::precond::{BlockJacobi, Jacobi};
use fem_io::case::{Method, Preconditioner, SolverOptions};
use fem_mesh::{Comm, Error, Result};

/// Largest model for which `auto` asks what a factorization would cost, degrees of freedom. The ordering alone takes
/// longer than the iterations on larger ones.
pub const MAX_DIRECT_DOFS: u64 = 250_000;
/// Most work of a factorization that `auto` accepts: 10 to 30 s on one core.
pub const MAX_DIRECT_FLOPS: f64 = 1e12;

/// What was solved, and how.
#[derive(Clone, Debug)]
pub struct Solved {
    /// What the solution achieved.
    pub report: SolveReport,
    /// Method used: "cg" or "direct".
    pub method: &'static str,
    /// Preconditioner used; "none" for the direct method.
    pub preconditioner: &'static str,
    /// Why this method.
    pub reason: String,
}

/// Collective. Solves `matrix` x = `rhs` by the method the user asked for or the one that suits; x starts at 0.
///
/// # Errors
/// A matrix that is not positive definite, numbers that are not finite, too little memory. Missing the tolerance is no
/// error here: see [`SolveReport::converged`].
pub fn solve(
    comm: &Comm,
    matrix: &DistMatrix<3>,
    rhs: &[f64],
    x: &mut [f64],
    options: &SolverOptions,
    log: &mut Log,
) -> Result<Solved> {
    let n_dofs = 3 * matrix.map().n_global();
    if options.method == Method::Direct
        || (options.method == Method::Auto && n_dofs <= MAX_DIRECT_DOFS)
    {
        let label = "order the matrix for factorization";
        let analysis = log.phase("setup", label, |_| DirectAnalysis::new(comm, matrix))?;
        let cost = analysis.cost();
        let size = format!(
            "{:.2e} entries in the factor, {:.1e} flop",
            cost.factor_entries, cost.flops
        );
        if options.method == Method::Direct || cost.flops <= MAX_DIRECT_FLOPS {
            let chosen = if options.method == Method::Direct {
                "asked for"
            } else {
                "small enough to factorize"
            };
            let reason = format!("direct, {chosen}: {size}");
            log.note(&format!("solver: {reason}"));
            return direct(comm, matrix, rhs, x, options, analysis, log).map(|report| Solved {
                report,
                method: "direct",
                preconditioner: "none",
                reason,
            });
        }
        let reason = format!("cg, since a factorization would be expensive: {size}");
        return iterate(comm, matrix, rhs, x, options, reason, log);
    }
    let reason = match options.method {
        Method::Auto => format!("cg, since {n_dofs} dof are more than {MAX_DIRECT_DOFS}"),
        _ => "cg, asked for".to_owned(),
    };
    iterate(comm, matrix, rhs, x, options, reason, log)
}

/// The method that [`solve`] will use, as far as it can be told without the matrix.
pub fn describe_choice(options: &SolverOptions, n_dofs: u64) -> String {
    match options.method {
        Method::Direct => "direct".to_owned(),
        Method::Cg => "cg".to_owned(),
        Method::Auto if n_dofs <= MAX_DIRECT_DOFS => {
            "auto: direct if a factorization is cheap, else cg".to_owned()
        }
        Method::Auto => format!("auto: cg, since {n_dofs} dof are more than {MAX_DIRECT_DOFS}"),
    }
}

/// Collective. Factorizes and solves.
fn direct(
    comm: &Comm,
    matrix: &DistMatrix<3>,
    rhs: &[f64],
    x: &mut [f64],
    options: &SolverOptions,
    analysis: DirectAnalysis<3>,
    log: &mut Log,
) -> Result<SolveReport> {
    let solver = log.phase("setup", "factorize", |_| analysis.factorize(comm, matrix))?;
    log.phase("solve", "solve", |_| {
        solver.solve(comm, matrix, rhs, x, options.tolerance)
    })
}

/// Collective. Conjugate gradients with the preconditioner asked for.
fn iterate(
    comm: &Comm,
    matrix: &DistMatrix<3>,
    rhs: &[f64],
    x: &mut [f64],
    options: &SolverOptions,
    reason: String,
    log: &mut Log,
) -> Result<Solved> {
    log.note(&format!("solver: {reason}"));
    let (preconditioner, name) = log.phase("setup", "set up the preconditioner", |_| {
        build(comm, matrix, options)
    })?;
    let system = System {
        matrix,
        preconditioner: &*preconditioner,
    };
    let cg = CgOptions {
        tolerance: options.tolerance,
        max_iterations: options.max_iterations,
        matrix_norm: matrix.norm_inf(comm),
    };
    let report = log.phase("solve", "solve", |log| {
        let mut display = log.residual_display(options.tolerance);
        conjugate_gradients(comm, system, rhs, x, &cg, &mut |i, r| display.update(i, r))
    })?;
    Ok(Solved {
        report,
        method: "cg",
        preconditioner: name,
        reason,
    })
}

type BoxedOperator = Box<dyn LinearOperator>;

/// Collective. The preconditioner and its name.
fn build(
    comm: &Comm,
    matrix: &DistMatrix<3>,
    options: &SolverOptions,
) -> Result<(BoxedOperator, &'static str)> {
    Ok(match options.preconditioner {
        Preconditioner::Jacobi => (Box::new(Jacobi::new(comm, matrix)?), "jacobi"),
        Preconditioner::BlockJacobi | Preconditioner::Auto => {
            (Box::new(BlockJacobi::new(comm, matrix)?), "block_jacobi")
        }
        Preconditioner::Amg => {
            return Err(Error::input(
                "the preconditioner \"amg\" is not available in this version",
            )
            .advice("use \"auto\""));
        }
    })
}
