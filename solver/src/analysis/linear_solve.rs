//! The choice of method for a linear system, its set-up, and the solution for one right-hand side after the other.
//!
//! What goes in: a matrix, the nodes of its rows and the user's options. [`LinearSolver`] sets up once and solves as
//! often as wanted. Where the iterations fail, it helps itself, and says so: conjugate gradients start again or
//! strengthen their preconditioner (see [`crate::krylov::cg`]); if that does not help either, `auto` factorizes a model
//! that is small enough and stays with the factor.
//!
//! Invariant: sees a matrix, right-hand sides, the nodes and the user's options; knows no element or load.

mod direct;
mod preconditioner;
#[cfg(test)]
mod tests;

pub use preconditioner::Hierarchy;

use crate::direct::DirectSolver;
use crate::krylov::cg::{CgOptions, News, System};
use crate::krylov::{Form, MAX_RESIDUAL, ROUNDING_LEVEL, SolveReport, conjugate_gradients};
use crate::linalg::{DistMatrix, DistSymmetric, LinearOperator, vector};
use crate::log::Log;
use direct::{analyze, factorize, is_affordable, name_dof, require_memory};
use fem_io::case::{Method, Reductions, SolverOptions};
use fem_mesh::{Comm, Error, LocalMesh, Result};
use preconditioner::{Built, build};

const MIB: f64 = 1024.0 * 1024.0;

/// Largest model that `auto` factorizes at once, degrees of freedom: above it multigrid is faster, measured on boxes of
/// hex8 from 4,000 dof.
pub const FEW_DOFS: u64 = 3_000;
/// Largest model for which `auto` turns to a factorization after the iterations failed, degrees of freedom.
const MAX_DIRECT_DOFS: u64 = 400_000;

/// A vector with less than this part of the energy that the norm of the matrix allows is a free motion but for rounding.
const NO_ENERGY: f64 = 1e-12;

/// What was solved, and how.
#[derive(Clone, Debug)]
pub struct Solved {
    /// What the solution achieved.
    pub report: SolveReport,
    /// Method used: "cg" or "direct".
    pub method: &'static str,
    /// Preconditioner used; "none" for the direct method.
    pub preconditioner: &'static str,
    /// Why this method, and what was tried on the way.
    pub reason: String,
    /// Levels of the preconditioner, if it is multigrid.
    pub hierarchy: Hierarchy,
}

/// The nodes of the rows of a matrix, three rows a node.
#[derive(Clone, Copy)]
pub struct Nodes<'a> {
    /// Nodes and cells.
    pub mesh: &'a LocalMesh,
    /// Prescribed degrees of freedom, as in [`crate::model::Model`].
    pub fixed: &'a [(u32, f64)],
    /// Owned degrees of freedom that follow others: their rows and columns are zero but for the diagonal as well.
    pub dependent: &'a [u32],
    /// Owned nodes whose degrees of freedom are rotations, ascending.
    pub rotations: &'a [u32],
}

/// A matrix with what it takes to solve for any number of right-hand sides.
pub struct LinearSolver<'a> {
    options: &'a SolverOptions,
    matrix: Stored,
    /// Largest absolute row sum of the stored matrix.
    matrix_norm: f64,
    /// The power of two by which the matrix was divided so that single precision can hold it, as right-hand sides are.
    unit: f64,
    means: Means,
    /// Why this method.
    reason: String,
    n_set_ups: usize,
}

/// By what a matrix of that norm is divided: 1, unless its numbers are near the ends of single precision.
fn unit_of(matrix_norm: f64) -> f64 {
    const ROOM: std::ops::RangeInclusive<f64> = 1e-20..=1e20;
    if ROOM.contains(&matrix_norm) {
        1.0
    } else {
        vector::power_of_two(matrix_norm)
    }
}

/// The matrix: in slabs, for many products, once nobody needs its rows any more.
enum Stored {
    Rows(DistMatrix<3>),
    Slabs(DistSymmetric<3>),
}

impl Stored {
    fn operator(&self) -> &dyn LinearOperator {
        match self {
            Stored::Rows(matrix) => matrix,
            Stored::Slabs(matrix) => matrix,
        }
    }
}

/// How the system is solved.
enum Means {
    Iterations(Built),
    Factor(DirectSolver),
}

impl<'a> LinearSolver<'a> {
    /// Collective. Chooses the method that the user asked for or the one that suits, and sets it up. Rows and columns of
    /// prescribed degrees of freedom are zero but for the diagonal.
    ///
    /// # Errors
    /// A matrix that is not positive definite, or with numbers that are not finite; too little memory.
    pub fn new(
        comm: &Comm,
        mut matrix: DistMatrix<3>,
        nodes: Nodes,
        options: &'a SolverOptions,
        log: &mut Log,
    ) -> Result<Self> {
        let mut matrix_norm = matrix.norm_inf(comm);
        if !matrix_norm.is_finite() {
            return Err(describe_not_finite(comm, &matrix, nodes));
        }
        let unit = unit_of(matrix_norm);
        if unit != 1.0 {
            matrix.scale(1.0 / unit);
            matrix_norm /= unit;
        }
        let n_dofs = 3 * matrix.map().n_global();
        let is_direct = options.method == Method::Direct
            || options.method == Method::Auto && n_dofs <= FEW_DOFS;
        let mut reason = describe_choice(options, n_dofs);
        log.note(&format!("solver: {reason}"));
        if is_direct {
            let analysis = analyze(comm, &matrix, log)?;
            require_memory(comm, &analysis)?;
            let factor = factorize(comm, &matrix, nodes, analysis, log)?;
            return Ok(LinearSolver {
                options,
                matrix: Stored::Rows(matrix),
                matrix_norm,
                unit,
                means: Means::Factor(factor),
                reason,
                n_set_ups: 1,
            });
        }
        let built = log.phase("setup", "set up the preconditioner", |_| {
            build(comm, &matrix, nodes, options.preconditioner)
        });
        let mut n_set_ups = 1;
        let (means, matrix) = match built {
            Ok(built) => {
                built.description.iter().for_each(|line| log.note(line));
                let slabs = log.phase("setup", "matrix in slabs", |_| DistSymmetric::new(matrix));
                (Means::Iterations(built), Stored::Slabs(slabs))
            }
            Err(error) => {
                let why = format!("cg failed ({error})");
                let Some(factor) = try_factor(comm, &matrix, nodes, options, &why, log)? else {
                    return Err(error);
                };
                reason = format!("direct, after {why}");
                n_set_ups += 1;
                (Means::Factor(factor), Stored::Rows(matrix))
            }
        };
        Ok(LinearSolver {
            options,
            matrix,
            matrix_norm,
            unit,
            means,
            reason,
            n_set_ups,
        })
    }

    /// How often something was set up: once, and once more for each turn to another method.
    pub fn n_set_ups(&self) -> usize {
        self.n_set_ups
    }

    /// Collective. Solves A x = `rhs`, both on the owned degrees of freedom. `nodes` are those of [`LinearSolver::new`].
    /// Iterations start from `x`; close to the solution, as that of the load case before may be, they are fewer.
    ///
    /// # Errors
    /// A matrix that is not positive definite or nearly singular, numbers that are not finite, too little memory. Missing
    /// the tolerance otherwise is no error here: see [`SolveReport::converged`].
    pub fn solve_next(
        &mut self,
        comm: &Comm,
        nodes: Nodes,
        rhs: &[f64],
        x: &mut [f64],
        log: &mut Log,
    ) -> Result<Solved> {
        let scaled: Vec<f64>;
        let rhs = if self.unit == 1.0 {
            rhs
        } else {
            scaled = rhs.iter().map(|f| f / self.unit).collect();
            &scaled
        };
        let solved = match &self.means {
            Means::Factor(_) => self.solve_directly(comm, rhs, x, log)?,
            Means::Iterations(_) => match self.iterate(comm, rhs, x, log) {
                Ok(solved) if solved.report.converged => solved,
                failed => self.second_try(comm, nodes, (rhs, x), failed, log)?,
            },
        };
        self.require_meaning(comm, x, &solved.report)?;
        Ok(solved)
    }

    /// Collective. That the solution means something. In a singular system, or one that rounding makes so, it does not:
    /// the backward error is at rounding level, but the residual is not, or `x` has grown until it has no energy to
    /// speak of.
    fn require_meaning(&self, comm: &Comm, x: &[f64], report: &SolveReport) -> Result<()> {
        let advice = "look for parts that hang together at an edge or a point only, nearly free parts, extreme ratios \
                      of stiffness, Poisson's ratios near 0.5, very thin or flat elements, and numbers whose units do not \
                      fit together";
        let residual = report.true_residual;
        if !residual.is_finite() {
            let what =
                "the solution is not a number: the system cannot be solved in double precision";
            return Err(Error::model(what).advice(advice));
        }
        if report.converged || residual <= MAX_RESIDUAL {
            return Ok(());
        }
        let mut force = vec![0.0; x.len()];
        let energy = comm.sum(self.matrix.operator().apply_dot(comm, x, &mut force));
        let largest_energy = self.matrix_norm * vector::dot(comm, x, x);
        if report.backward_error <= ROUNDING_LEVEL || energy <= NO_ENERGY * largest_energy {
            let what = format!(
                "the system is nearly singular: something moves with next to no resistance, and the best solution in double \
                 precision has a relative residual of {residual:.1e}"
            );
            return Err(Error::model(what).advice(advice));
        }
        Ok(())
    }

    /// Collective. Conjugate gradients.
    fn iterate(
        &mut self,
        comm: &Comm,
        rhs: &[f64],
        x: &mut [f64],
        log: &mut Log,
    ) -> Result<Solved> {
        let Means::Iterations(built) = &mut self.means else {
            unreachable!("the caller has looked")
        };
        let cg = CgOptions {
            tolerance: self.options.tolerance,
            max_iterations: self.options.max_iterations,
            matrix_norm: self.matrix_norm,
            flexible: built.is_single_precision,
            window: built.window,
            form: choose_form(comm, self.options.reductions),
        };
        let operators = System {
            matrix: self.matrix.operator(),
            preconditioner: &mut *built.operator,
        };
        let report = log.phase("solve", "solve", |log| {
            let mut display = log.residual_display(self.options.tolerance);
            conjugate_gradients(comm, operators, rhs, x, &cg, &mut |news| match news {
                News::Residual(iteration, residual) => display.update(iteration, residual),
                News::Change(text) => log.warn(format!("cg {text}")),
            })
        })?;
        let mut reason = self.reason.clone();
        if comm.n_ranks() > 1 && !report.form_reason.is_empty() {
            log.note(&format!("  {}", report.form_reason));
            reason = format!("{reason}; {}", report.form_reason);
        }
        for change in &report.changes {
            reason = format!("{reason}; {change}");
        }
        Ok(Solved {
            report,
            method: "cg",
            preconditioner: built.name,
            reason,
            hierarchy: built.hierarchy.clone(),
        })
    }

    /// Collective. Solves by the factor.
    fn solve_directly(
        &self,
        comm: &Comm,
        rhs: &[f64],
        x: &mut [f64],
        log: &mut Log,
    ) -> Result<Solved> {
        let Means::Factor(factor) = &self.means else {
            unreachable!("the caller has looked")
        };
        let report = log.phase("solve", "solve", |_| {
            factor.solve(comm, self.matrix.operator(), rhs, x, self.options.tolerance)
        })?;
        Ok(Solved {
            report,
            method: "direct",
            preconditioner: "none",
            reason: self.reason.clone(),
            hierarchy: Hierarchy::default(),
        })
    }

    /// Collective. After iterations that failed, a factorization if `auto` may and can, which then stays the method. The
    /// better of the two solutions is left in `x`.
    fn second_try(
        &mut self,
        comm: &Comm,
        nodes: Nodes,
        (rhs, x): (&[f64], &mut [f64]),
        failed: Result<Solved>,
        log: &mut Log,
    ) -> Result<Solved> {
        let why = match &failed {
            Ok(solved) => format!(
                "cg did not converge in {} iterations (relative residual {:.1e})",
                solved.report.iterations, solved.report.true_residual
            ),
            Err(error) => format!("cg failed ({error})"),
        };
        let changes = match &failed {
            Ok(solved) if !solved.report.changes.is_empty() => {
                format!("; cg {}", solved.report.changes.join("; "))
            }
            _ => String::new(),
        };
        let Stored::Slabs(slabs) = &self.matrix else {
            return failed;
        };
        if !may_factorize(self.options, 3 * slabs.map().n_global()) {
            return failed;
        }
        let rows = slabs.to_rows(comm);
        let Some(factor) = try_factor(comm, &rows, nodes, self.options, &why, log)? else {
            return failed;
        };
        drop(rows);
        self.means = Means::Factor(factor);
        self.reason = format!("direct, after {why}{changes}");
        self.n_set_ups += 1;
        let mut by_factor = vec![0.0; x.len()];
        let solved = self.solve_directly(comm, rhs, &mut by_factor, log)?;
        match failed {
            Ok(iterated) if iterated.report.true_residual < solved.report.true_residual => {
                Ok(iterated)
            }
            _ => {
                x.copy_from_slice(&by_factor);
                Ok(solved)
            }
        }
    }
}

/// Whether `auto` may turn to a factorization.
fn may_factorize(options: &SolverOptions, n_dofs: u64) -> bool {
    options.method == Method::Auto && n_dofs <= MAX_DIRECT_DOFS
}

/// Collective. The factor of a model that iterations failed on, with a warning; `None` if `auto` may not or cannot.
///
/// # Errors
/// A matrix that is not positive definite, with the place, or too little memory.
fn try_factor(
    comm: &Comm,
    matrix: &DistMatrix<3>,
    nodes: Nodes,
    options: &SolverOptions,
    why: &str,
    log: &mut Log,
) -> Result<Option<DirectSolver>> {
    if !may_factorize(options, 3 * matrix.map().n_global()) {
        return Ok(None);
    }
    let analysis = analyze(comm, matrix, log)?;
    if !is_affordable(comm, &analysis) {
        return Ok(None);
    }
    log.warn(format!("{why}; trying a direct solution"));
    factorize(comm, matrix, nodes, analysis, log).map(Some)
}

/// Collective. The form of the iterations; `None` to have it measured. Ranks of one host exchange a sum faster than the
/// merged form moves its vectors, so there is nothing to measure, and the bits do not depend on it.
fn choose_form(comm: &Comm, wanted: Reductions) -> Option<Form> {
    match wanted {
        Reductions::Two => Some(Form::Plain),
        Reductions::One => Some(Form::Merged),
        Reductions::Auto if comm.host_layout().n_hosts == 1 => Some(Form::Plain),
        Reductions::Auto => None,
    }
}

/// Collective. The first row that holds a number that is not finite, in the numbers of the input.
fn describe_not_finite(comm: &Comm, matrix: &DistMatrix<3>, nodes: Nodes) -> Error {
    let n = matrix.map().n_owned();
    let bad_rows = (0..n).flat_map(|row| {
        let parts = [matrix.lower(), matrix.ghost()];
        let blocks = parts.map(|part| part.row(row).map(|k| part.block(k)));
        let values = blocks
            .into_iter()
            .flatten()
            .flat_map(|b| b.iter().enumerate());
        let bad = values.filter(|(_, value)| !value.is_finite());
        bad.map(move |(at, _)| 3 * matrix.map().global(row) + at as u64 / 3)
    });
    // As a number that holds an integer exactly, infinite where there is none.
    let first = bad_rows.min().map_or(f64::INFINITY, |dof| dof as f64);
    let first = comm.min(first);
    let place = if first.is_finite() {
        format!("the first at {}", name_dof(comm, nodes, first as u64))
    } else {
        "in the sum of a row".to_owned()
    };
    Error::model(format!(
        "the matrix holds numbers that are not finite, {place}"
    ))
    .advice("look for zero or huge values among the material data and the coordinates")
}

/// The method that [`LinearSolver`] uses, and why.
pub fn describe_choice(options: &SolverOptions, n_dofs: u64) -> String {
    match options.method {
        Method::Direct => "direct, asked for".to_owned(),
        Method::Cg => "cg, asked for".to_owned(),
        Method::Auto if n_dofs <= FEW_DOFS => {
            format!("direct: {n_dofs} dof are no more than {FEW_DOFS}")
        }
        Method::Auto => format!("cg: {n_dofs} dof are more than {FEW_DOFS}"),
    }
}
