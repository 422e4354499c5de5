//! `fem-solve check`: everything up to the solution, and what it would take.
//!
//! Where a factorization is what a run would do, the matrix is ordered as the run would order it: that tells the
//! memory of the factor, which no formula does for parts of all shapes.
//!
//! Invariant: solves nothing and factorizes nothing.

use crate::analysis::linear_solve::{FEW_DOFS, describe_choice};
use crate::assembly::pattern::is_stored;
use crate::assembly::{Pattern, Slabs, external_force};
use crate::direct::{DirectAnalysis, DirectCost};
use crate::linalg::DistMatrix;
use crate::log::Log;
use crate::model::{Load, Model};
use crate::run::{Request, load_case, mesh_summary, prepare, require_supports};
use fem_io::case::{Case, Formulation, Method, Preconditioner, SolverOptions};
use fem_io::check::SetKind;
use fem_io::summary::MeshSummary;
use fem_mesh::adjacency::node_cells;
use fem_mesh::{Comm, LocalMesh, Result, select};

const MIB: f64 = 1024.0 * 1024.0;

/// A named set, for display.
#[derive(Clone, Debug, PartialEq)]
pub struct SetLine {
    /// "face", "node" or "element".
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Number of members in the whole mesh.
    pub size: u64,
}

/// What a material is used for.
#[derive(Clone, Debug, PartialEq)]
pub struct MaterialLine {
    /// Its name.
    pub name: String,
    /// Number of its elements in the whole mesh.
    pub n_elements: u64,
    /// Their volume, m3.
    pub volume: f64,
    /// Their mass, kg; `None` where the case gives no density.
    pub mass: Option<f64>,
}

/// What `check` found.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// Title of the case.
    pub title: String,
    /// The case's label of its unit set.
    pub units: String,
    /// Type of analysis.
    pub analysis: &'static str,
    /// Counts of the mesh.
    pub mesh: MeshSummary,
    /// Corners of the bounding box, m.
    pub bounds: [[f64; 3]; 2],
    /// Degrees of freedom, prescribed ones included.
    pub n_dofs: u64,
    /// Prescribed degrees of freedom.
    pub n_prescribed: u64,
    /// All sets.
    pub sets: Vec<SetLine>,
    /// Materials.
    pub materials: Vec<MaterialLine>,
    /// Sum of the loads, changes of temperature left out, N.
    pub load_sum: [f64; 3],
    /// Number of constraints.
    pub n_constraints: usize,
    /// Number of loads.
    pub n_loads: usize,
    /// Method that a run would use.
    pub method: String,
    /// Ranks and threads that a run would use.
    pub decision: String,
    /// Predicted peak memory, MiB: all ranks together, largest rank.
    pub memory_mib: (f64, f64),
}

/// Collective. Reads and checks a case, and predicts the memory of its solution.
///
/// # Errors
/// As for a run, up to the solution.
pub fn inspect(comm: &Comm, request: &Request, log: &mut Log) -> Result<Inspection> {
    let (case, deck) = load_case(comm, request, log)?;
    let mut prepared = prepare(comm, case, deck, request, log)?;
    let materials = measure_materials(comm, &prepared.case, &mut prepared.resolved.model);
    let (case, model) = (&prepared.case, &prepared.resolved.model);
    require_supports(comm, case, model, &prepared.halo)?;
    let mesh = &model.mesh;
    let bounds = select::bounds(comm, mesh);
    let n_dofs = 3 * mesh.nodes.n_global();
    let direct = log.phase("setup", "predict the cost", |_| {
        direct_cost(comm, mesh, &case.solver)
    })?;
    let has_levels = direct.is_none()
        && matches!(
            case.solver.preconditioner,
            Preconditioner::Auto | Preconditioner::Amg
        );
    let bytes = predict_memory(comm, mesh, direct, has_levels);
    let owned_fixed = model
        .fixed
        .iter()
        .filter(|(dof, _)| (*dof as usize) < 3 * mesh.nodes.n_owned());
    let sets = prepared.resolved.catalog.iter().map(|set| SetLine {
        kind: match set.kind {
            SetKind::Face => "face",
            SetKind::Node => "node",
            SetKind::Cell => "element",
        },
        name: set.name.to_owned(),
        size: set.n_members,
    });
    Ok(Inspection {
        title: case.title.clone(),
        units: case.units.clone(),
        analysis: case.analysis.kind.name(),
        mesh: mesh_summary(comm, mesh),
        bounds: [bounds.min, bounds.max],
        n_dofs,
        n_prescribed: comm.sum_u64(owned_fixed.count() as u64),
        sets: sets.collect(),
        materials,
        load_sum: load_sum(comm, model),
        n_constraints: case.constraints.len(),
        n_loads: case.loads.len(),
        method: describe_method(&case.solver, n_dofs, direct),
        decision: prepared.parallelism.decision.clone(),
        memory_mib: (comm.sum(bytes) / MIB, comm.max(bytes) / MIB),
    })
}

/// Collective. Sizes of the materials. The volume of a material is the resultant of a unit force per volume on it.
/// The loads of `model` are changed on the way and put back.
fn measure_materials(comm: &Comm, case: &Case, model: &mut Model) -> Vec<MaterialLine> {
    let loads = std::mem::take(&mut model.loads);
    // Volumes are exact whatever points the elements have.
    let full = vec![Formulation::Full; model.cell_formulation.len()];
    let formulations = std::mem::replace(&mut model.cell_formulation, full);
    let mut lines = Vec::with_capacity(case.materials.len());
    for (index, material) in case.materials.iter().enumerate() {
        let is_of = |&cell: &u32| usize::from(model.cell_material[cell as usize]) == index;
        let cells: Vec<u32> = (0..model.mesh.n_cells() as u32).filter(is_of).collect();
        let n_owned = cells.partition_point(|&cell| (cell as usize) < model.mesh.n_owned_cells);
        model.loads = vec![Load::BodyForce {
            cells,
            body_force: [1.0, 0.0, 0.0],
        }];
        let volume = load_sum(comm, model)[0];
        lines.push(MaterialLine {
            name: material.name.clone(),
            n_elements: comm.sum_u64(n_owned as u64),
            volume,
            mass: material.density.map(|density| density * volume),
        });
    }
    model.loads = loads;
    model.cell_formulation = formulations;
    lines
}

/// Collective. Sum of the loads, N.
fn load_sum(comm: &Comm, model: &Model) -> [f64; 3] {
    let slabs = Slabs::even(model.mesh.nodes.n_owned(), rayon::current_num_threads());
    let mut sum = [0.0; 3];
    for force in external_force(model, &slabs).chunks_exact(3) {
        (0..3).for_each(|i| sum[i] += force[i]);
    }
    comm.sum_into(&mut sum);
    sum
}

fn describe_method(options: &SolverOptions, n_dofs: u64, direct: Option<DirectCost>) -> String {
    let choice = describe_choice(options, n_dofs);
    match direct {
        Some(cost) => format!(
            "{choice}: {:.2e} entries in the factor, {:.1e} flop",
            cost.factor_entries, cost.flops
        ),
        None => choice,
    }
}

/// Collective. What the factorization that a run would do costs; `None` if it would not do one.
fn direct_cost(
    comm: &Comm,
    mesh: &LocalMesh,
    options: &SolverOptions,
) -> Result<Option<DirectCost>> {
    let is_direct = match options.method {
        Method::Direct => true,
        Method::Auto => 3 * mesh.nodes.n_global() <= FEW_DOFS,
        Method::Cg => false,
    };
    if !is_direct {
        return Ok(None);
    }
    let (_, rows) = comm.all_ok(Pattern::new(mesh))?;
    let matrix = DistMatrix::<3>::new(comm, mesh.nodes.clone(), rows.lower, rows.ghost);
    Ok(Some(DirectAnalysis::new(comm, &matrix)?.cost()))
}

/// Collective. Bytes that this rank will need at the peak of a run: program, mesh, matrix, vectors, and a factor or the
/// levels of multigrid.
fn predict_memory(
    comm: &Comm,
    mesh: &LocalMesh,
    direct: Option<DirectCost>,
    has_levels: bool,
) -> f64 {
    let program = 30.0 * MIB;
    let (n_cells, n_nodes) = (mesh.n_cells() as f64, mesh.nodes.n_local() as f64);
    let connectivity = mesh.cells.nodes.len() as f64;
    // Coordinates, numbers, connectivity; while it travels between ranks the mesh is there about three times.
    let mesh_bytes = 3.0 * (32.0 * n_nodes + 13.0 * n_cells + 4.0 * connectivity);
    let scatter: f64 = mesh
        .cells
        .types
        .iter()
        .map(|t| 2.0 * (t.n_nodes() * t.n_nodes()) as f64)
        .sum();
    // 3x3 blocks with their column; seven vectors, the preconditioner, stress and strain of each node.
    let matrix = count_blocks(mesh) as f64 * 76.0;
    let vectors = n_nodes * (7.0 * 24.0 + 72.0 + 12.0 * 8.0 + 100.0);
    let factor = match direct {
        Some(cost) if comm.is_root() => cost.memory,
        _ => 0.0,
    };
    // Levels of multigrid beside the matrix, measured on boxes. First order: its copy in single precision, and the
    // prolongator with the coarser levels, which go with the nodes. Second order: coarser levels begin at the corners.
    let n_second = mesh.cells.types.iter().filter(|t| t.order() == 2).count();
    let levels = if 2 * n_second > mesh.n_cells() {
        0.8 * matrix
    } else {
        0.5 * matrix + 700.0 * n_nodes
    };
    let levels = if has_levels { levels } else { 0.0 };
    program + mesh_bytes + (scatter + matrix).max(matrix + vectors + factor + levels)
}

/// Number of 3x3 blocks that the rows of this rank store.
fn count_blocks(mesh: &LocalMesh) -> u64 {
    let graph = node_cells(&mesh.cells, mesh.nodes.n_local());
    let mut seen_by = vec![u32::MAX; mesh.nodes.n_local()];
    let mut n_blocks = 0;
    for row in 0..mesh.nodes.n_owned() {
        for &cell in graph.row(row) {
            for &node in mesh.cells.nodes_of(cell as usize) {
                let seen = &mut seen_by[node as usize];
                let is_new = *seen != row as u32 && is_stored(row, node, mesh.nodes.n_owned());
                n_blocks += u64::from(is_new);
                *seen = row as u32;
            }
        }
    }
    n_blocks
}
