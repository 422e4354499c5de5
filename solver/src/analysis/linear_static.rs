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
use crate::links::Links;
use crate::log::Log;
use crate::model::{Load, Model, Temperatures};
use crate::post::stress::Deformation;
use crate::post::{
    NodalTensors, compute_nodal_tensors, error_estimate, internal_force, relative_error,
    seen_strain, strain_energy, von_mises,
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
    /// Energy norm of the estimated error of each owned cell; empty until [`Solution::estimate_errors`].
    pub errors: Vec<f64>,
}

impl Solution {
    /// Collective. Estimates the errors of the stresses.
    pub fn estimate_errors(&mut self, comm: &Comm, model: &Model) {
        let deformation = Deformation::new(model, &self.displacement);
        self.errors = error_estimate(&deformation, &self.tensors);
        let energy = self.totals.strain_energy;
        self.totals.error_estimate = relative_error(comm, &self.errors, energy);
    }

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
    slabs: Slabs,
    /// Constraints between degrees of freedom, if there are any.
    elimination: Option<Elimination>,
    /// Right-hand side after elimination of the prescribed displacements, N.
    rhs: Vec<f64>,
    /// Force of the loads on the owned nodes, without that of thermal and initial strains, N.
    external: Vec<f64>,
}

/// Solves one model for one frame after another; sets up anew only where the matrix has changed.
pub struct LinearStatics<'a> {
    options: &'a SolverOptions,
    ready: Option<Ready<'a>>,
    n_set_ups: usize,
}

/// A matrix that has been set up, and what it depends on.
struct Ready<'a> {
    solver: LinearSolver<'a>,
    slabs: Slabs,
    elimination: Option<Elimination>,
    dependent: Vec<u32>,
    rotations: Vec<u32>,
    fixed: Vec<u32>,
    links: Links,
    /// If the stiffness depends on them.
    temperatures: Option<Temperatures>,
    /// The last solution at the owned degrees of freedom, before those that follow others are set, m.
    independent: Vec<f64>,
}

impl<'a> LinearStatics<'a> {
    /// Nothing is set up yet.
    pub fn new(options: &'a SolverOptions) -> Self {
        LinearStatics {
            options,
            ready: None,
            n_set_ups: 0,
        }
    }

    /// How many matrices have been set up.
    pub fn n_set_ups(&self) -> usize {
        self.n_set_ups
    }

    /// Collective. Solves the model as it is. Between calls only what a frame changes may change: prescribed values,
    /// loads, temperatures, links. After the last one the matrix makes room for what follows from the solution. A solution
    /// that missed the tolerance is returned as well: see `solved.report.converged`.
    ///
    /// # Errors
    /// Inverted elements, a matrix that is not positive definite, too little memory.
    pub fn solve(
        &mut self,
        comm: &Comm,
        model: &Model,
        halo: &Halo,
        is_last: bool,
        log: &mut Log,
    ) -> Result<Solution> {
        if self.n_set_ups == 0 {
            warn_of_distortion(comm, &model.mesh, log);
        }
        let fits = self.ready.as_ref().is_some_and(|ready| ready.fits(model));
        let (rhs, external) = if comm.any(!fits) {
            // The old matrix goes before the new one comes.
            self.ready = None;
            let (ready, rhs, external) = set_up(comm, model, self.options, log)?;
            self.n_set_ups += 1;
            self.ready = Some(ready);
            (rhs, external)
        } else {
            let ready = self.ready.as_ref();
            log.phase("assemble", "loads", |_| {
                ready.map_or_else(Default::default, |r| r.next_load(comm, model, halo))
            })
        };
        let Some(ready) = &mut self.ready else {
            unreachable!("it has just been set up")
        };
        let nodes = Nodes {
            mesh: &model.mesh,
            fixed: &model.fixed,
            dependent: &ready.dependent,
            rotations: &ready.rotations,
        };
        let x = &mut ready.independent;
        let solved = ready.solver.solve_next(comm, nodes, &rhs, x, log)?;
        warn_of_precision(&solved, self.options, log);
        let mut displacement = vec![0.0; 3 * model.mesh.nodes.n_local()];
        displacement[..rhs.len()].copy_from_slice(x);
        let at_the_end;
        let elimination = if is_last {
            at_the_end = self.ready.take().and_then(|ready| ready.elimination);
            at_the_end.as_ref()
        } else {
            ready.elimination.as_ref()
        };
        let solution = log.phase("recover", "strains, stresses, reactions", |_| {
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
        if is_solved && balance > BALANCE_LIMIT.max(100.0 * self.options.tolerance) {
            log.warn(format!(
                "loads and reactions do not balance: error {balance:.1e}; digits are lost, as by coordinates far from \
                 the origin or extreme ratios of stiffness"
            ));
        }
        Ok(solution)
    }
}

/// Collective. Solves the model once: see [`LinearStatics::solve`].
///
/// # Errors
/// As [`LinearStatics::solve`].
pub fn solve(
    comm: &Comm,
    model: &Model,
    halo: &Halo,
    options: &SolverOptions,
    log: &mut Log,
) -> Result<Solution> {
    LinearStatics::new(options).solve(comm, model, halo, true, log)
}

/// Collective. Assembles the matrix and sets up its solver; with the right-hand side and the force of the loads.
fn set_up<'a>(
    comm: &Comm,
    model: &Model,
    options: &'a SolverOptions,
    log: &mut Log,
) -> Result<(Ready<'a>, Vec<f64>, Vec<f64>)> {
    let System {
        rows,
        slabs,
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
    let nodes = Nodes {
        mesh: &model.mesh,
        fixed: &model.fixed,
        dependent: &dependent,
        rotations: &rotations,
    };
    let solver = LinearSolver::new(comm, matrix, nodes, options, log)?;
    let ready = Ready {
        solver,
        slabs,
        elimination,
        dependent,
        rotations,
        fixed: model.fixed.iter().map(|(dof, _)| *dof).collect(),
        links: model.links.clone(),
        temperatures: stiffness_temperatures(model).cloned(),
        independent: vec![0.0; rhs.len()],
    };
    Ok((ready, rhs, external))
}

/// The temperatures, if the stiffness depends on them.
fn stiffness_temperatures(model: &Model) -> Option<&Temperatures> {
    let is_constant = (model.materials.iter()).all(|m| m.law.has_constant_stiffness());
    model.temperatures.as_ref().filter(|_| !is_constant)
}

impl Ready<'_> {
    /// Whether the matrix is that of the model.
    fn fits(&self, model: &Model) -> bool {
        let fixed = model.fixed.iter().map(|(dof, _)| dof);
        let changes = |load: &Load| matches!(load, Load::TemperatureChange { .. });
        let is_constant = (model.materials.iter()).all(|m| m.law.has_constant_stiffness());
        self.fixed.iter().eq(fixed)
            && self.links == model.links
            && (is_constant || !model.loads.iter().any(changes))
            && same_temperatures(self.temperatures.as_ref(), stiffness_temperatures(model))
    }

    /// Collective. Right-hand side and force of the loads of a frame for which the matrix holds: what is missing to
    /// equilibrium when only what is prescribed moves. In place of the prescribed displacements stand zeros.
    fn next_load(&self, comm: &Comm, model: &Model, halo: &Halo) -> (Vec<f64>, Vec<f64>) {
        let external = external_force(model, &self.slabs);
        let n_owned = external.len();
        let mut prescribed = vec![0.0; 3 * model.mesh.nodes.n_local()];
        for &(dof, value) in &model.fixed {
            prescribed[dof as usize] = value;
        }
        let (owned, ghosts) = prescribed.split_at_mut(n_owned);
        if let Some(elimination) = &self.elimination {
            elimination.expand(comm, owned);
        }
        halo.forward(comm, owned, ghosts, 3);
        let internal = internal_force(model, &prescribed);
        let mut rhs: Vec<f64> = (external.iter().zip(&internal))
            .map(|(external, internal)| external - internal)
            .collect();
        if let Some(elimination) = &self.elimination {
            elimination.gather(comm, &mut rhs);
        }
        let fixed = model.fixed.iter().map(|(dof, _)| *dof);
        for dof in fixed.chain(self.dependent.iter().copied()) {
            if let Some(entry) = rhs.get_mut(dof as usize) {
                *entry = 0.0;
            }
        }
        (rhs, external)
    }
}

/// Whether two fields of temperature are the same; places without one are.
fn same_temperatures(a: Option<&Temperatures>, b: Option<&Temperatures>) -> bool {
    let same = |a: &[f64], b: &[f64]| {
        a.iter()
            .map(|v| v.to_bits())
            .eq(b.iter().map(|v| v.to_bits()))
    };
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => same(&a.initial, &b.initial) && same(&a.current, &b.current),
        _ => false,
    }
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
        slabs: slabs.clone(),
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
        errors: Vec::new(),
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
