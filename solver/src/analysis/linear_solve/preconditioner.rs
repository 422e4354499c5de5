//! The preconditioner that the user asked for, with what is to be told of it.
//!
//! Invariant: knows nodes as coordinates and numbers of degrees of freedom, no element and no load.

use super::super::corner_parents::corner_parents;
use super::{MIB, Nodes};
use crate::linalg::{DistMatrix, Preconditioner};
use crate::precond::amg::NodeData;
use crate::precond::{Amg, AmgOptions, BlockJacobi, Jacobi, rigid_body_modes};
use fem_io::case;
use fem_io::summary::Level;
use fem_mesh::{Comm, Result};

/// Iterations in which multigrid must bring the residual to a new low. It takes tens of them in all; slender bodies may
/// spend half of these before the residual falls at all.
const WINDOW: usize = 100;

/// A preconditioner ready for use.
pub(super) struct Built {
    pub(super) operator: Box<dyn Preconditioner>,
    pub(super) name: &'static str,
    /// Whether it is a fixed symmetric operator only up to the rounding of single precision.
    pub(super) is_single_precision: bool,
    /// Iterations after which a residual that does not fall has stagnated.
    pub(super) window: usize,
    pub(super) hierarchy: Hierarchy,
    /// Lines for the log.
    pub(super) description: Vec<String>,
}

/// Levels of a multigrid preconditioner; empty for others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hierarchy {
    /// Levels, finest first.
    pub levels: Vec<Level>,
    /// Stored scalars of all levels over those of the matrix.
    pub operator_complexity: f64,
    /// Memory of all levels over all ranks, MiB.
    pub memory_mib: f64,
}

impl Built {
    fn plain(operator: Box<dyn Preconditioner>, name: &'static str) -> Self {
        Built {
            operator,
            name,
            is_single_precision: false,
            window: usize::MAX,
            hierarchy: Hierarchy::default(),
            description: Vec::new(),
        }
    }
}

/// Collective. The preconditioner asked for; multigrid where none was.
///
/// # Errors
/// A matrix that is seen not to be positive definite, or too little memory.
pub(super) fn build(
    comm: &Comm,
    matrix: &DistMatrix<3>,
    nodes: Nodes,
    wanted: case::Preconditioner,
) -> Result<Built> {
    Ok(match wanted {
        case::Preconditioner::Jacobi => {
            Built::plain(Box::new(Jacobi::new(comm, matrix)?), "jacobi")
        }
        case::Preconditioner::BlockJacobi => {
            Built::plain(Box::new(BlockJacobi::new(comm, matrix)?), "block_jacobi")
        }
        case::Preconditioner::Amg | case::Preconditioner::Auto => multigrid(comm, matrix, nodes)?,
    })
}

/// Collective. Multigrid with the rigid-body modes, over the corners of second-order elements.
fn multigrid(comm: &Comm, matrix: &DistMatrix<3>, nodes: Nodes) -> Result<Built> {
    let Nodes { mesh, fixed } = nodes;
    let coords = &mesh.coords[..mesh.nodes.n_owned()];
    let near_nullspace = rigid_body_modes(comm, coords, fixed.iter().map(|(dof, _)| *dof));
    let parents = corner_parents(comm, mesh);
    let nodes = NodeData {
        near_nullspace,
        parents: parents.as_deref(),
    };
    let amg = Amg::new(comm, matrix, nodes, &AmgOptions::default())?;
    let report = amg.report();
    let levels = report.levels.iter().map(|l| Level {
        rows: l.rows,
        nonzeros: l.nonzeros,
        memory_mib: l.memory as f64 / MIB,
    });
    let hierarchy = Hierarchy {
        levels: levels.collect(),
        operator_complexity: report.operator_complexity(),
        memory_mib: report.memory() as f64 / MIB,
    };
    let description = report.lines();
    Ok(Built {
        operator: Box::new(amg),
        name: "amg",
        is_single_precision: true,
        window: WINDOW,
        hierarchy,
        description,
    })
}
