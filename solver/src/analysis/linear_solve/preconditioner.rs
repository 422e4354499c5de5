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
use fem_mesh::{Comm, Halo, LocalMesh, Result};

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

/// Collective. Brings parents to the numbering of a matrix with more ghosts than the mesh. A node beside one that takes no
/// part in the system, since it depends on others, becomes a corner itself.
fn adopt(
    comm: &Comm,
    mesh: &LocalMesh,
    matrix: &DistMatrix<3>,
    dependent: &[u32],
    parents: &mut [[u32; 2]],
) {
    let n_owned = mesh.nodes.n_owned();
    let mut is_dead = vec![0u8; mesh.nodes.n_local()];
    for dof in dependent {
        is_dead[*dof as usize / 3] = 1;
    }
    let (owned, ghosts) = is_dead.split_at_mut(n_owned);
    Halo::new(comm, &mesh.nodes).forward(comm, owned, ghosts, 1);
    for (node, pair) in parents.iter_mut().enumerate() {
        if pair.iter().any(|&parent| is_dead[parent as usize] != 0) {
            *pair = [node as u32; 2];
        }
        let local = |parent: u32| matrix.map().local(mesh.nodes.global(parent as usize));
        *pair = pair.map(|parent| local(parent).unwrap_or(node) as u32);
    }
}

/// Collective. Multigrid with the rigid-body modes, over the corners of second-order elements.
fn multigrid(comm: &Comm, matrix: &DistMatrix<3>, nodes: Nodes) -> Result<Built> {
    let Nodes {
        mesh,
        fixed,
        dependent,
        rotations,
    } = nodes;
    let coords = &mesh.coords[..mesh.nodes.n_owned()];
    let fixed_dofs = fixed.iter().map(|(dof, _)| dof).chain(dependent).copied();
    let near_nullspace = rigid_body_modes(comm, coords, fixed_dofs, rotations);
    let parents = corner_parents(comm, mesh).map(|mut parents| {
        if *matrix.map() != mesh.nodes {
            adopt(comm, mesh, matrix, dependent, &mut parents);
        }
        parents
    });
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
