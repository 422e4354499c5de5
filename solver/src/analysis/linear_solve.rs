//! The choice of method for one linear system, and its solution.
//!
//! Invariant: sees a matrix, a right-hand side, the nodes and the user's options; knows no element or load.

use super::corner_parents::corner_parents;
use crate::direct::DirectAnalysis;
use crate::krylov::cg::{CgOptions, System};
use crate::krylov::{SolveReport, conjugate_gradients};
use crate::linalg::{DistMatrix, DistSymmetric, LinearOperator};
use crate::log::Log;
use crate::precond::amg::NodeData;
use crate::precond::{Amg, AmgOptions, BlockJacobi, Jacobi, rigid_body_modes};
use fem_io::case::{Method, Preconditioner, SolverOptions};
use fem_io::summary::Level;
use fem_mesh::{Comm, LocalMesh, Result};

/// Largest model for which `auto` asks what a factorization would cost, degrees of freedom. The ordering alone takes
/// longer than the iterations on larger ones.
pub const MAX_DIRECT_DOFS: u64 = 250_000;
/// Most work of a factorization that `auto` accepts: 10 to 30 s on one core.
const MAX_DIRECT_FLOPS: f64 = 1e12;

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
    /// Levels of the preconditioner, if it is multigrid.
    pub levels: Vec<Level>,
}

/// A linear system and the nodes that its rows belong to.
pub struct LinearSystem<'a> {
    /// Stiffness, rows of prescribed degrees of freedom zero but for the diagonal.
    pub matrix: DistMatrix<3>,
    /// Right-hand side of the owned degrees of freedom.
    pub rhs: &'a [f64],
    /// Nodes and cells.
    pub mesh: &'a LocalMesh,
    /// Prescribed degrees of freedom, as in [`crate::model::Model`].
    pub fixed: &'a [(u32, f64)],
}

/// Collective. Solves the system by the method the user asked for or the one that suits; x starts at 0.
///
/// # Errors
/// A matrix that is not positive definite, numbers that are not finite, too little memory. Missing the tolerance is no
/// error here: see [`SolveReport::converged`].
pub fn solve(
    comm: &Comm,
    system: LinearSystem,
    x: &mut [f64],
    options: &SolverOptions,
    log: &mut Log,
) -> Result<Solved> {
    let matrix = &system.matrix;
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
            return direct(comm, &system, x, options, analysis, log).map(|report| Solved {
                report,
                method: "direct",
                preconditioner: "none",
                reason,
                levels: Vec::new(),
            });
        }
        let reason = format!("cg, since a factorization would be expensive: {size}");
        return iterate(comm, system, x, options, reason, log);
    }
    let reason = match options.method {
        Method::Auto => format!("cg, since {n_dofs} dof are more than {MAX_DIRECT_DOFS}"),
        _ => "cg, asked for".to_owned(),
    };
    iterate(comm, system, x, options, reason, log)
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
    system: &LinearSystem,
    x: &mut [f64],
    options: &SolverOptions,
    analysis: DirectAnalysis<3>,
    log: &mut Log,
) -> Result<SolveReport> {
    let LinearSystem { matrix, rhs, .. } = system;
    let solver = log.phase("setup", "factorize", |_| analysis.factorize(comm, matrix))?;
    log.phase("solve", "solve", |_| {
        solver.solve(comm, matrix, rhs, x, options.tolerance)
    })
}

/// Collective. Conjugate gradients with the preconditioner asked for. The matrix is halved once the preconditioner is
/// made.
fn iterate(
    comm: &Comm,
    system: LinearSystem,
    x: &mut [f64],
    options: &SolverOptions,
    reason: String,
    log: &mut Log,
) -> Result<Solved> {
    log.note(&format!("solver: {reason}"));
    let rhs = system.rhs;
    let (built, matrix_norm, matrix) = log.phase("setup", "set up the preconditioner", |_| {
        let built = build(comm, &system, options)?;
        Ok((
            built,
            system.matrix.norm_inf(comm),
            DistSymmetric::new(system.matrix),
        ))
    })?;
    built.description.iter().for_each(|line| log.note(line));
    let cg = CgOptions {
        tolerance: options.tolerance,
        max_iterations: options.max_iterations,
        matrix_norm,
        flexible: built.is_single_precision,
    };
    let operators = System {
        matrix: &matrix,
        preconditioner: &*built.operator,
    };
    let report = log.phase("solve", "solve", |log| {
        let mut display = log.residual_display(options.tolerance);
        conjugate_gradients(comm, operators, rhs, x, &cg, &mut |i, r| {
            display.update(i, r)
        })
    })?;
    Ok(Solved {
        report,
        method: "cg",
        preconditioner: built.name,
        reason,
        levels: built.levels,
    })
}

/// A preconditioner with what is to be told of it.
struct Built {
    operator: Box<dyn LinearOperator>,
    name: &'static str,
    /// Whether it is a fixed symmetric operator only up to the rounding of single precision.
    is_single_precision: bool,
    levels: Vec<Level>,
    /// Lines for the log.
    description: Vec<String>,
}

impl Built {
    fn plain(operator: Box<dyn LinearOperator>, name: &'static str) -> Self {
        Built {
            operator,
            name,
            is_single_precision: false,
            levels: Vec::new(),
            description: Vec::new(),
        }
    }
}

/// Collective. The preconditioner asked for; multigrid where none was.
fn build(comm: &Comm, system: &LinearSystem, options: &SolverOptions) -> Result<Built> {
    let matrix = &system.matrix;
    Ok(match options.preconditioner {
        Preconditioner::Jacobi => Built::plain(Box::new(Jacobi::new(comm, matrix)?), "jacobi"),
        Preconditioner::BlockJacobi => {
            Built::plain(Box::new(BlockJacobi::new(comm, matrix)?), "block_jacobi")
        }
        Preconditioner::Amg | Preconditioner::Auto => multigrid(comm, system)?,
    })
}

/// Collective. Multigrid with the rigid-body modes, over the corners of second-order elements.
fn multigrid(comm: &Comm, system: &LinearSystem) -> Result<Built> {
    let (matrix, mesh, fixed) = (&system.matrix, system.mesh, system.fixed);
    let coords = &mesh.coords[..mesh.nodes.n_owned()];
    let near_nullspace = rigid_body_modes(comm, coords, fixed.iter().map(|(dof, _)| *dof));
    let parents = corner_parents(comm, mesh);
    let nodes = NodeData {
        near_nullspace,
        parents: parents.as_deref(),
    };
    let amg = Amg::new(comm, matrix, nodes, &AmgOptions::default())?;
    let report = amg.report();
    let levels = report
        .levels
        .iter()
        .map(|l| Level {
            rows: l.rows,
            nonzeros: l.nonzeros,
        })
        .collect();
    let description = report.lines();
    Ok(Built {
        operator: Box::new(amg),
        name: "amg",
        is_single_precision: true,
        levels,
        description,
    })
}
