//! The choice of method for one linear system, and its solution.
//!
//! Invariant: sees a matrix, a right-hand side, the nodes and the user's options; knows no element or load.

use super::corner_parents::corner_parents;
use crate::direct::DirectAnalysis;
use crate::krylov::cg::{CgOptions, System};
use crate::krylov::{MAX_RESIDUAL, ROUNDING_LEVEL, SolveReport, conjugate_gradients};
use crate::linalg::{DistMatrix, DistSymmetric, LinearOperator};
use crate::log::Log;
use crate::precond::amg::NodeData;
use crate::precond::{Amg, AmgOptions, BlockJacobi, Jacobi, rigid_body_modes};
use fem_io::case::{Method, Preconditioner, SolverOptions};
use fem_io::summary::Level;
use fem_mesh::{Comm, Error, LocalMesh, Result};

const MIB: f64 = 1024.0 * 1024.0;

/// Largest model that `auto` factorizes at once, degrees of freedom: above it multigrid is faster, measured on boxes of
/// hex8 from 4,000 dof.
pub const FEW_DOFS: u64 = 3_000;
/// Largest model for which `auto` turns to a factorization after the iterations failed, degrees of freedom.
const MAX_DIRECT_DOFS: u64 = 400_000;
/// Most work of a factorization that `auto` accepts then: less than a minute on one core.
const MAX_DIRECT_FLOPS: f64 = 2e12;

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

impl Solved {
    fn directly(report: SolveReport, reason: String) -> Self {
        Solved {
            report,
            method: "direct",
            preconditioner: "none",
            reason,
            levels: Vec::new(),
        }
    }
}

/// What belongs to the matrix of a linear system: the right-hand side, and the nodes of its rows.
#[derive(Clone, Copy)]
pub struct LinearSystem<'a> {
    /// Right-hand side of the owned degrees of freedom.
    pub rhs: &'a [f64],
    /// Nodes and cells.
    pub mesh: &'a LocalMesh,
    /// Prescribed degrees of freedom, as in [`crate::model::Model`].
    pub fixed: &'a [(u32, f64)],
}

/// Collective. Solves `matrix` x = `system.rhs` by the method the user asked for or the one that suits; x starts at 0.
/// Rows and columns of prescribed degrees of freedom are zero but for the diagonal.
///
/// # Errors
/// A matrix that is not positive definite or nearly singular, numbers that are not finite, too little memory. Missing the
/// tolerance otherwise is no error here: see [`SolveReport::converged`].
pub fn solve(
    comm: &Comm,
    matrix: DistMatrix<3>,
    system: &LinearSystem,
    x: &mut [f64],
    options: &SolverOptions,
    log: &mut Log,
) -> Result<Solved> {
    let n_dofs = 3 * matrix.map().n_global();
    let solved = match options.method {
        Method::Direct => {
            factorize_and_solve(comm, &matrix, system, x, options, "direct, asked for", log)?
        }
        Method::Cg => iterate(comm, matrix, system, x, options, "cg, asked for", log).outcome?,
        Method::Auto if n_dofs <= FEW_DOFS => {
            let reason = format!("direct: {n_dofs} dof are no more than {FEW_DOFS}");
            factorize_and_solve(comm, &matrix, system, x, options, &reason, log)?
        }
        Method::Auto => {
            let reason = format!("cg: {n_dofs} dof are more than {FEW_DOFS}");
            let iterated = iterate(comm, matrix, system, x, options, &reason, log);
            match iterated.outcome {
                Ok(solved) if solved.report.converged => solved,
                // Both ends are the same on every rank: they rest on reduced numbers.
                failed if n_dofs > MAX_DIRECT_DOFS => failed?,
                failed => {
                    let matrix = iterated.matrix.into_rows(comm);
                    second_try(comm, &matrix, system, x, options, failed, log)?
                }
            }
        }
    };
    require_digits(&solved.report)?;
    Ok(solved)
}

/// Collective. After iterations that failed, a factorization, if the model is small enough for one.
fn second_try(
    comm: &Comm,
    matrix: &DistMatrix<3>,
    system: &LinearSystem,
    x: &mut [f64],
    options: &SolverOptions,
    failed: Result<Solved>,
    log: &mut Log,
) -> Result<Solved> {
    let analysis = log.phase("setup", "order the matrix for factorization", |_| {
        DirectAnalysis::new(comm, matrix)
    })?;
    let cost = analysis.cost();
    if cost.flops > MAX_DIRECT_FLOPS || cost.memory > comm.broadcast(0, vec![available_memory()])[0]
    {
        return failed;
    }
    let why = match &failed {
        Ok(solved) => format!(
            "cg did not converge in {} iterations (relative residual {:.1e})",
            solved.report.iterations, solved.report.true_residual
        ),
        Err(error) => format!("cg failed ({error})"),
    };
    log.warn(format!("{why}; trying a direct solution"));
    let reason = format!("direct, after {why}");
    log.note(&describe_cost(&reason, &analysis));
    let report = factorize(comm, matrix, system, x, options.tolerance, analysis, log)?;
    Ok(Solved::directly(report, reason))
}

/// Bytes that the system can still give; infinite where it does not say.
fn available_memory() -> f64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
    kib.map_or(f64::INFINITY, |kib| 1024.0 * kib)
}

/// That the solution means something: in a nearly singular system a backward error at rounding level does not.
fn require_digits(report: &SolveReport) -> Result<()> {
    let advice = "look for parts that hang together at an edge or a point only, nearly free parts, extreme ratios of \
                  stiffness, and very thin or flat elements";
    if !report.true_residual.is_finite() {
        let what = "the solution is not a number: the system cannot be solved in double precision";
        return Err(Error::model(what).advice(advice));
    }
    if !report.converged
        && report.backward_error <= ROUNDING_LEVEL
        && report.true_residual > MAX_RESIDUAL
    {
        let what = format!(
            "the system is nearly singular: the best solution in double precision has a relative residual of {:.1e}",
            report.true_residual
        );
        return Err(Error::model(what).advice(advice));
    }
    Ok(())
}

/// The method that [`solve`] will use.
pub fn describe_choice(options: &SolverOptions, n_dofs: u64) -> String {
    match options.method {
        Method::Direct => "direct".to_owned(),
        Method::Cg => "cg".to_owned(),
        Method::Auto if n_dofs <= FEW_DOFS => {
            format!("auto: direct, since {n_dofs} dof are no more than {FEW_DOFS}")
        }
        Method::Auto => format!("auto: cg, since {n_dofs} dof are more than {FEW_DOFS}"),
    }
}

/// Collective. Orders, factorizes and solves.
fn factorize_and_solve(
    comm: &Comm,
    matrix: &DistMatrix<3>,
    system: &LinearSystem,
    x: &mut [f64],
    options: &SolverOptions,
    reason: &str,
    log: &mut Log,
) -> Result<Solved> {
    let label = "order the matrix for factorization";
    let analysis = log.phase("setup", label, |_| DirectAnalysis::new(comm, matrix))?;
    let available = comm.broadcast(0, vec![available_memory()])[0];
    let wanted = analysis.cost().memory;
    if wanted > available {
        let what = format!(
            "the direct solution would take about {:.0} MiB of memory, and {:.0} MiB are free",
            wanted / MIB,
            available / MIB
        );
        return Err(Error::machine(what).advice("use solver.method = \"cg\""));
    }
    log.note(&describe_cost(reason, &analysis));
    let report = factorize(comm, matrix, system, x, options.tolerance, analysis, log)?;
    Ok(Solved::directly(report, reason.to_owned()))
}

fn describe_cost(reason: &str, analysis: &DirectAnalysis<3>) -> String {
    let cost = analysis.cost();
    format!(
        "solver: {reason}; {:.2e} entries in the factor, {:.1e} flop",
        cost.factor_entries, cost.flops
    )
}

/// Collective. Factorizes and solves.
fn factorize(
    comm: &Comm,
    matrix: &DistMatrix<3>,
    system: &LinearSystem,
    x: &mut [f64],
    tolerance: f64,
    analysis: DirectAnalysis<3>,
    log: &mut Log,
) -> Result<SolveReport> {
    let name_row = |comm: &Comm, row: u64| name_dof(comm, system.mesh, row);
    let solver = log.phase("setup", "factorize", |_| {
        analysis.factorize(comm, matrix, &name_row)
    })?;
    log.phase("solve", "solve", |_| {
        solver.solve(comm, matrix, system.rhs, x, tolerance)
    })
}

/// Collective. A global degree of freedom in the numbers of the input: "node 7 in direction x".
fn name_dof(comm: &Comm, mesh: &LocalMesh, dof: u64) -> String {
    let local = mesh
        .nodes
        .local(dof / 3)
        .filter(|&n| n < mesh.nodes.n_owned());
    let node = comm.sum_u64(local.map_or(0, |n| mesh.node_ids[n]));
    format!(
        "node {node} in direction {}",
        ["x", "y", "z"][(dof % 3) as usize]
    )
}

/// How iterations ended, and the matrix.
struct Iterated {
    outcome: Result<Solved>,
    matrix: Stored,
}

/// The matrix as the iterations left it.
enum Stored {
    Rows(DistMatrix<3>),
    Slabs(DistSymmetric<3>),
}

impl Stored {
    /// Collective. By rows.
    fn into_rows(self, comm: &Comm) -> DistMatrix<3> {
        match self {
            Stored::Rows(matrix) => matrix,
            Stored::Slabs(matrix) => matrix.into_rows(comm),
        }
    }
}

/// Collective. Conjugate gradients with the preconditioner asked for. Once that is made, nobody needs the rows.
fn iterate(
    comm: &Comm,
    matrix: DistMatrix<3>,
    system: &LinearSystem,
    x: &mut [f64],
    options: &SolverOptions,
    reason: &str,
    log: &mut Log,
) -> Iterated {
    log.note(&format!("solver: {reason}"));
    x.fill(0.0);
    let built = log.phase("setup", "set up the preconditioner", |_| {
        build(comm, &matrix, system, options)
    });
    let built = match built {
        Ok(built) => built,
        Err(error) => {
            let (outcome, matrix) = (Err(error), Stored::Rows(matrix));
            return Iterated { outcome, matrix };
        }
    };
    built.description.iter().for_each(|line| log.note(line));
    let (matrix_norm, matrix) = log.phase("setup", "matrix in slabs", |_| {
        (matrix.norm_inf(comm), DistSymmetric::new(matrix))
    });
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
        conjugate_gradients(comm, operators, system.rhs, x, &cg, &mut |i, r| {
            display.update(i, r)
        })
    });
    let outcome = report.map(|report| Solved {
        report,
        method: "cg",
        preconditioner: built.name,
        reason: reason.to_owned(),
        levels: built.levels,
    });
    let matrix = Stored::Slabs(matrix);
    Iterated { outcome, matrix }
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
fn build(
    comm: &Comm,
    matrix: &DistMatrix<3>,
    system: &LinearSystem,
    options: &SolverOptions,
) -> Result<Built> {
    Ok(match options.preconditioner {
        Preconditioner::Jacobi => Built::plain(Box::new(Jacobi::new(comm, matrix)?), "jacobi"),
        Preconditioner::BlockJacobi => {
            Built::plain(Box::new(BlockJacobi::new(comm, matrix)?), "block_jacobi")
        }
        Preconditioner::Amg | Preconditioner::Auto => multigrid(comm, matrix, system)?,
    })
}

/// Collective. Multigrid with the rigid-body modes, over the corners of second-order elements.
fn multigrid(comm: &Comm, matrix: &DistMatrix<3>, system: &LinearSystem) -> Result<Built> {
    let LinearSystem { mesh, fixed, .. } = *system;
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
