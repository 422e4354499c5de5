//! Linear statics: K u = f, then strains, stresses, reactions and the balance of forces.
//!
//! Invariant: a function of the ranks and the model; reads no file and writes none.

use super::linear_solve::{LinearSolver, Nodes, Solved};
use crate::assembly::{
    BlockRows, Elimination, Pattern, Slabs, add_initial_force, assemble_stiffness, constrain,
    external_force,
};
use crate::element::geometry::point_geometry;
use crate::element::{MAX_NODES, Purpose, Tabulation};
use crate::linalg::DistMatrix;
use crate::log::Log;
use crate::model::Model;
use crate::post::{
    NodalTensors, compute_nodal_tensors, internal_force, seen_strain, strain_energy, von_mises,
};
use fem_io::case::SolverOptions;
use fem_io::summary::{ResultSummary, SolverSummary, Summary};
use fem_mesh::{Comm, Halo, LocalMesh, Result};
use std::borrow::Cow;

/// Balance error of loads and reactions above which a warning is given, unless the tolerance of the solver is as coarse.
const BALANCE_LIMIT: f64 = 1e-6;
/// How many element numbers a warning lists.
const LISTED: usize = 10;

/// The solution on this rank, with its totals over all ranks.
pub struct Solution {
    /// Displacement, m, 3 a local node (owned nodes first, then ghosts).
    pub displacement: Vec<f64>,
    /// Reaction force, N, 3 a local node; 0 where the displacement is free.
    pub reaction: Vec<f64>,
    /// Force of constraints between nodes on each, N (moment on a rotation node, N m), 3 a local node; empty in a model
    /// without such constraints.
    pub constraint_force: Vec<f64>,
    /// Strain and stress at the local nodes.
    pub tensors: NodalTensors,
    /// How the system was solved.
    pub solved: Solved,
    /// Totals and largest values over all ranks.
    pub totals: ResultSummary,
}

impl Solution {
    /// Enters the solution into the summary of its run.
    pub fn describe(&self, summary: &mut Summary) {
        let solved = &self.solved;
        summary.solver = SolverSummary {
            method: solved.method.to_owned(),
            preconditioner: solved.preconditioner.to_owned(),
            reason: solved.reason.clone(),
            tolerance: summary.solver.tolerance,
            iterations: solved.report.iterations as u64,
            true_residual: solved.report.true_residual,
            backward_error: solved.report.backward_error,
            history: solved.report.history.clone(),
            levels: solved.hierarchy.levels.clone(),
            operator_complexity: solved.hierarchy.operator_complexity,
            levels_mib: solved.hierarchy.memory_mib,
        };
        summary.results = self.totals.clone();
    }
}

/// The linear system of this rank's rows.
struct System {
    rows: BlockRows,
    /// Constraints between degrees of freedom, if there are any.
    elimination: Option<Elimination>,
    /// Right-hand side after elimination of the prescribed displacements, N.
    rhs: Vec<f64>,
    /// Force of the loads on the owned nodes, without that of thermal and initial strains, N.
    external: Vec<f64>,
}

/// Collective. Solves the model. A solution that missed the tolerance is returned as well: see
/// `solved.report.converged`.
///
/// # Errors
/// Inverted elements, a matrix that is not positive definite, too little memory.
pub fn solve(
    comm: &Comm,
    model: &Model,
    halo: &Halo,
    options: &SolverOptions,
    log: &mut Log,
) -> Result<Solution> {
    warn_of_distortion(comm, &model.mesh, log);
    let System {
        rows,
        elimination,
        rhs,
        external,
    } = log.phase("assemble", "assemble", |_| assemble(comm, model))?;
    let map = elimination
        .as_ref()
        .map_or(&model.mesh.nodes, Elimination::map);
    let matrix = DistMatrix::new(comm, map.clone(), rows.lower, rows.ghost);
    let dependent = elimination
        .as_ref()
        .map_or_else(Vec::new, Elimination::dependent);
    let rotations = owned_rotations(model);
    let mut displacement = vec![0.0; 3 * model.mesh.nodes.n_local()];
    let free = &mut displacement[..rhs.len()];
    let nodes = Nodes {
        mesh: &model.mesh,
        fixed: &model.fixed,
        dependent: &dependent,
        rotations: &rotations,
    };
    let solved =
        LinearSolver::new(comm, matrix, nodes, options, log)?.solve_next(comm, &rhs, free, log)?;
    warn_of_precision(&solved, options, log);
    let solution = log.phase("recover", "strains, stresses, reactions", |_| {
        let elimination = elimination.as_ref();
        recover(
            comm,
            model,
            halo,
            solved,
            displacement,
            &external,
            elimination,
        )
    });
    warn_of_hourglasses(comm, model, &solution.displacement, log);
    let balance = solution.totals.balance_error;
    let is_solved = solution.solved.report.converged;
    if is_solved && balance > BALANCE_LIMIT.max(100.0 * options.tolerance) {
        log.warn(format!(
            "loads and reactions do not balance: error {balance:.1e}; digits are lost, as by coordinates far from the \
             origin or extreme ratios of stiffness"
        ));
    }
    Ok(solution)
}

/// Collective. A warning about second-order elements that are folded at a node: the quadrature points, where a negative
/// Jacobian is an error, do not see it.
fn warn_of_distortion(comm: &Comm, mesh: &LocalMesh, log: &mut Log) {
    let mut coords = [[0.0; 3]; MAX_NODES];
    let mut folded = Vec::new();
    for cell in (0..mesh.n_owned_cells).filter(|&c| mesh.cells.types[c].order() == 2) {
        let cell_type = mesh.cells.types[cell];
        mesh.gather_coords(cell, &mut coords);
        let nodes = Tabulation::of(cell_type, Purpose::Nodes);
        let x = &coords[..cell_type.n_nodes()];
        if (0..nodes.n_points()).any(|q| point_geometry(x, nodes.grad(q)).det_jac <= 0.0) {
            folded.push(mesh.cell_ids[cell]);
        }
    }
    let n_folded = comm.sum_u64(folded.len() as u64);
    if n_folded > 0 {
        folded.truncate(LISTED);
        let mut ids = comm.all_gather(&folded).concat();
        ids.sort_unstable();
        let listed: Vec<String> = ids.iter().take(LISTED).map(u64::to_string).collect();
        let more = if n_folded > listed.len() as u64 {
            ", ..."
        } else {
            ""
        };
        log.warn(format!(
            "{n_folded} second-order element(s) are folded at a node (mid-side nodes far from the middle of their \
             edge): {}{more}; stresses there are doubtful",
            listed.join(", ")
        ));
    }
}

/// Collective. A warning where the displacement of reduced elements is mostly of patterns that their points do not see:
/// one element across the thickness may leave them free, or held by little.
fn warn_of_hourglasses(comm: &Comm, model: &Model, displacement: &[f64], log: &mut Log) {
    let strain = seen_strain(comm, model, displacement);
    if strain.is_mostly_hidden() {
        log.warn(format!(
            "the quadrature points of the elements with formulation \"reduced\" see {:.0} % of their deformation: the \
             rest are hourglass patterns, and displacements and stresses there are wrong; use several elements across \
             the thickness, or another formulation",
            100.0 * strain.seen / (strain.seen + strain.hidden)
        ));
    }
}

/// A warning where the tolerance could not be met in double precision.
fn warn_of_precision(solved: &Solved, options: &SolverOptions, log: &mut Log) {
    let report = &solved.report;
    if report.at_rounding_level {
        log.warn(format!(
            "the relative residual {:.1e} misses the tolerance {:.0e}, but no better solution exists in double \
             precision (backward error {:.1e}): about {:.0} digits of the load are balanced",
            report.true_residual,
            options.tolerance,
            report.backward_error,
            -report.true_residual.log10()
        ));
    }
}

/// Collective. Stiffness, loads, constraints.
fn assemble(comm: &Comm, model: &Model) -> Result<System> {
    let (pattern, mut rows) = comm.all_ok(Pattern::new(&model.mesh))?;
    assemble_stiffness(comm, model, &pattern, &mut rows)?;
    let slabs: &Slabs = pattern.slabs();
    let external = external_force(model, slabs);
    let mut rhs = external.clone();
    add_initial_force(model, slabs, &mut rhs);
    let elimination = if model.links.is_empty() {
        constrain(slabs, &model.fixed, &mut rows, &mut rhs);
        None
    } else {
        let nodes = &model.mesh.nodes;
        let (elimination, reduced) = Elimination::apply(comm, nodes, &model.links, rows, &mut rhs);
        rows = reduced;
        let fixed = elimination.fixed(comm, &model.fixed);
        constrain(slabs, &fixed, &mut rows, &mut rhs);
        Some(elimination)
    };
    Ok(System {
        rows,
        elimination,
        rhs,
        external,
    })
}

/// Collective. What follows from the free displacements.
fn recover(
    comm: &Comm,
    model: &Model,
    halo: &Halo,
    solved: Solved,
    mut displacement: Vec<f64>,
    external: &[f64],
    elimination: Option<&Elimination>,
) -> Solution {
    let n_owned = external.len();
    for &(dof, value) in &model.fixed {
        displacement[dof as usize] = value;
    }
    let (owned, ghosts) = displacement.split_at_mut(n_owned);
    if let Some(elimination) = elimination {
        elimination.expand(comm, owned);
    }
    halo.forward(comm, owned, ghosts, 3);
    let internal = internal_force(model, &displacement);
    let mut reaction = vec![0.0; displacement.len()];
    let mut residual: Vec<f64> = (internal.iter().zip(external))
        .map(|(internal, external)| internal - external)
        .collect();
    let mut constraint_force = Vec::new();
    if let Some(elimination) = elimination {
        support_forces(model, &residual, &mut reaction);
        constraint_force = residual.clone();
        elimination.gather(comm, &mut residual);
        // What has gone to other degrees of freedom; that against the ground is reaction.
        for (dof, force) in constraint_force.iter_mut().enumerate() {
            *force -= residual[dof] + reaction[dof];
        }
        constraint_force.resize(displacement.len(), 0.0);
        let (owned, ghosts) = constraint_force.split_at_mut(n_owned);
        halo.forward(comm, owned, ghosts, 3);
    }
    for dof in model
        .fixed
        .iter()
        .map(|(dof, _)| *dof as usize)
        .filter(|&dof| dof < n_owned)
    {
        // What constraints give a support of the same node is there already.
        reaction[dof] = if elimination.is_some() {
            reaction[dof] + residual[dof]
        } else {
            residual[dof]
        };
    }
    let (owned, ghosts) = reaction.split_at_mut(n_owned);
    halo.forward(comm, owned, ghosts, 3);
    let tensors = compute_nodal_tensors(comm, model, halo, &displacement);
    let rotations = owned_rotations(model);
    let sum = |values: &[f64]| sum_of_nodes(comm, &without(&rotations, values));
    let (load_sum, reaction_sum) = (sum(external), sum(&reaction[..n_owned]));
    let constraint_sum = elimination.map(|_| sum(&constraint_force[..n_owned]));
    let magnitudes = [external, &reaction[..n_owned]].map(|forces| without(&rotations, forces));
    let moved = without(&rotations, &displacement[..n_owned]);
    let all_forces = [0, 1, 2].map(|i| {
        load_sum[i] + reaction_sum[i] + constraint_sum.map_or(0.0, |sum: [f64; 3]| sum[i])
    });
    let totals = ResultSummary {
        max_displacement: comm.max(largest_length(&moved)),
        max_von_mises: comm.max(largest_von_mises(model, &tensors)),
        strain_energy: strain_energy(comm, model, &displacement),
        reaction_sum,
        load_sum,
        constraint_sum,
        balance_error: balance_error(comm, &magnitudes, all_forces),
        ..ResultSummary::default()
    };
    Solution {
        displacement,
        reaction,
        constraint_force,
        tensors,
        solved,
        totals,
    }
}

/// Owned nodes whose degrees of freedom are rotations, ascending.
fn owned_rotations(model: &Model) -> Vec<u32> {
    let nodes = &model.mesh.nodes;
    let local = model
        .links
        .rotations
        .iter()
        .filter_map(|&node| nodes.local(node));
    let owned = local.filter(|&node| node < nodes.n_owned());
    owned.map(|node| node as u32).collect()
}

/// A nodal vector with zeros at the rotation nodes.
fn without<'a>(rotations: &[u32], values: &'a [f64]) -> Cow<'a, [f64]> {
    if rotations.is_empty() {
        return Cow::Borrowed(values);
    }
    let mut values = values.to_vec();
    for &node in rotations {
        values[3 * node as usize..3 * node as usize + 3].fill(0.0);
    }
    Cow::Owned(values)
}

/// Adds the forces of constraints that hold a node against the ground to its `reaction`, given what is missing to
/// equilibrium at the owned degrees of freedom.
fn support_forces(model: &Model, residual: &[f64], reaction: &mut [f64]) {
    let nodes = &model.mesh.nodes;
    for (&dof, row) in model
        .links
        .rows
        .iter()
        .filter(|(dof, row)| row.is_support(**dof))
    {
        let Some(node) = nodes.local(dof / 3).filter(|&node| node < nodes.n_owned()) else {
            continue;
        };
        let force = residual[3 * node + (dof % 3) as usize];
        reaction[3 * node + (dof % 3) as usize] += force;
        for (other, c) in &row.terms {
            reaction[3 * node + (other % 3) as usize] -= c * force;
        }
    }
}

/// Collective. Sum over all nodes of a nodal vector given at the owned ones.
fn sum_of_nodes(comm: &Comm, values: &[f64]) -> [f64; 3] {
    let mut total = [0.0; 3];
    for node in values.chunks_exact(3) {
        (0..3).for_each(|i| total[i] += node[i]);
    }
    comm.sum_into(&mut total);
    total
}

fn largest_length(vectors: &[f64]) -> f64 {
    vectors
        .chunks_exact(3)
        .map(|v| v.iter().map(|c| c * c).sum::<f64>().sqrt())
        .fold(0.0, f64::max)
}

fn largest_von_mises(model: &Model, tensors: &NodalTensors) -> f64 {
    let of_node = |node: usize| {
        let materials = tensors.materials_of(node).iter();
        materials
            .map(move |&m| von_mises(&tensors.stress_at(node, m)))
            .fold(0.0, f64::max)
    };
    (0..model.mesh.nodes.n_owned())
        .map(of_node)
        .fold(0.0, f64::max)
}

/// Collective. Length of the sum of all forces, relative to the largest sum of their magnitudes: self-balanced loads
/// have a zero resultant, by which nothing can be measured.
fn balance_error(comm: &Comm, loads_and_reactions: &[Cow<[f64]>; 2], sum: [f64; 3]) -> f64 {
    let mut magnitudes = [0.0, 0.0];
    for (magnitude, forces) in magnitudes.iter_mut().zip(loads_and_reactions) {
        *magnitude = forces.iter().map(|f| f.abs()).sum();
    }
    comm.sum_into(&mut magnitudes);
    let out_of_balance = sum.iter().map(|f| f * f).sum::<f64>().sqrt();
    let scale = magnitudes[0].max(magnitudes[1]);
    if scale > 0.0 {
        out_of_balance / scale
    } else {
        0.0
    }
}
