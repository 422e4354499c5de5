//! `fem-solve check`: everything up to the solution, and what it would take.
//!
//! Invariant: solves nothing and allocates nothing of the size of the matrix.

use crate::log::Log;
use crate::model::Model;
use crate::run::{Request, load_case, mesh_summary, prepare, require_supports};
use fem_io::case::{Method, SolverOptions};
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

/// What `check` found.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// Title of the case.
    pub title: String,
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
    /// Name of each material and its number of elements.
    pub materials: Vec<(String, u64)>,
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
    let case = load_case(comm, request)?;
    let prepared = prepare(comm, case, request, log)?;
    let (case, model) = (&prepared.case, &prepared.resolved.model);
    require_supports(comm, case, model, &prepared.halo)?;
    let mesh = &model.mesh;
    let bounds = select::bounds(comm, mesh);
    let n_dofs = 3 * mesh.nodes.n_global();
    let bytes = predict_memory(mesh, n_dofs, &case.solver, comm);
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
        analysis: case.analysis.kind.name(),
        mesh: mesh_summary(comm, mesh),
        bounds: [bounds.min, bounds.max],
        n_dofs,
        n_prescribed: comm.sum_u64(owned_fixed.count() as u64),
        sets: sets.collect(),
        materials: material_sizes(comm, model),
        n_constraints: case.constraints.len(),
        n_loads: case.loads.len(),
        method: crate::analysis::linear_solve::describe_choice(&case.solver, n_dofs),
        decision: prepared.parallelism.decision.clone(),
        memory_mib: (comm.sum(bytes) / MIB, comm.max(bytes) / MIB),
    })
}

/// Collective. Name and number of elements of each material.
fn material_sizes(comm: &Comm, model: &Model) -> Vec<(String, u64)> {
    let owned = &model.cell_material[..model.mesh.n_owned_cells];
    let size = |index: usize| owned.iter().filter(|&&m| usize::from(m) == index).count() as u64;
    model
        .materials
        .iter()
        .enumerate()
        .map(|(i, m)| (m.name.clone(), comm.sum_u64(size(i))))
        .collect()
}

/// Bytes that this rank will need at the peak of a run: program, mesh, matrix, vectors, factor.
fn predict_memory(mesh: &LocalMesh, n_dofs: u64, solver: &SolverOptions, comm: &Comm) -> f64 {
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
    let direct = solver.method == Method::Direct
        || (solver.method == Method::Auto && n_dofs <= crate::analysis::linear_solve::FEW_DOFS);
    // Fill of a nested-dissection factor of a compact 3D body: measured 20 to 23 n^(4/3) entries.
    let factor = if direct && comm.is_root() {
        23.0 * (n_dofs as f64).powf(4.0 / 3.0) * 8.0
    } else {
        0.0
    };
    program + mesh_bytes + (scatter + matrix).max(matrix + vectors + factor)
}

/// Number of 3x3 blocks in the rows of this rank.
fn count_blocks(mesh: &LocalMesh) -> u64 {
    let graph = node_cells(&mesh.cells, mesh.nodes.n_local());
    let mut seen_by = vec![u32::MAX; mesh.nodes.n_local()];
    let mut n_blocks = 0;
    for row in 0..mesh.nodes.n_owned() {
        for &cell in graph.row(row) {
            for &node in mesh.cells.nodes_of(cell as usize) {
                let seen = &mut seen_by[node as usize];
                n_blocks += u64::from(*seen != row as u32);
                *seen = row as u32;
            }
        }
    }
    n_blocks
}
