//! The steps of a run, in order: case, mesh, partition, model, solution, results. Start reading here.
//!
//! Invariant: straight-line code that calls the parts; no numerics of its own.

use crate::analysis::linear_static::{LinearStatics, Solution};
use crate::joints::loose_parts;
use crate::links::free_groups;
use crate::log::{Log, peak_memory_mib};
use crate::model::Model;
use crate::parallel::{self, Parallelism};
use crate::post::Location;
use crate::resolve::{Resolved, resolve};
use crate::restraint::{FreeBody, free_bodies, loads_do_nothing};
use crate::{input, output, print, probes};
use fem_io::atomic::prepare_directory;
use fem_io::case::{self, AnalysisKind, Case, Field, Frame, MeshSource, Partitioner};
use fem_io::deck;
use fem_io::mesh_file::MeshFile;
use fem_io::printed::Printed;
use fem_io::results::{PartData, RESULTS_FILE, ResultWriter, WriteOptions};
use fem_io::summary::{
    Memory, MeshSummary, ParallelSummary, PartitionSummary, Probe, SUMMARY_FILE, Status,
    StepSummary, Summary, Times,
};
use fem_mesh::report::PartitionReport;
use fem_mesh::{CellType, Comm, Error, Halo, LocalMesh, Result, select};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub use crate::inspect::{Inspection, inspect};

/// Name under which the summary of earlier results is kept when a later run into the same directory fails.
const KEPT_SUMMARY_FILE: &str = "summary.previous.json";

/// Largest displacement, as a share of the size of the model, up to which linear theory is taken to hold.
const SMALL_DISPLACEMENT: f64 = 0.1;

/// What the user asked for on the command line.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The case file.
    pub case: PathBuf,
    /// Directory of the results, if not the case's own.
    pub output: Option<PathBuf>,
    /// `KEY=VALUE` changes of the case.
    pub overrides: Vec<String>,
    /// Ceiling on the threads of a rank, if not the case's own.
    pub threads: Option<usize>,
}

/// A case with its model on this rank, ready to be solved.
pub struct Prepared {
    /// The case.
    pub case: Case,
    /// The model of this rank, with the sets of its mesh and warnings.
    pub resolved: Resolved,
    /// Where the point of each probe is; `None` for a probe over a set.
    pub probe_points: Vec<Option<Location>>,
    /// Exchange plan of the nodes.
    pub halo: Halo,
    /// How the mesh was divided.
    pub partition: PartitionReport,
    /// Ranks and threads.
    pub parallelism: Parallelism,
}

/// Collective. Runs a case and leaves its results and `summary.json` in the output directory. The summary of a case
/// with a failed check has exit code 1 and says which.
///
/// # Errors
/// Whatever keeps the case from being solved; once the output directory is known, a summary with the error is
/// written there all the same.
pub fn run(comm: &Comm, request: &Request, log: &mut Log) -> Result<Summary> {
    let (case, deck) = load_case(comm, request, log)?;
    let directory = request
        .output
        .clone()
        .unwrap_or_else(|| case.output.directory.clone());
    prepare_directory(comm, &directory)?;
    let mut summary = Summary {
        title: case.title.clone(),
        units: case.units.clone(),
        analysis: case.analysis.kind.name().to_owned(),
        ..Summary::default()
    };
    let outcome = match case.analysis.kind {
        AnalysisKind::Static => {
            run_static(comm, (case, deck), request, &directory, &mut summary, log)
        }
    };
    if let Err(error) = &outcome {
        summary.record_failure(error);
    }
    record_costs(comm, log, &mut summary);
    let written = if comm.is_root() {
        write_summary(&directory, &summary)
    } else {
        Ok(())
    };
    if outcome.is_err() && comm.is_root() {
        remark_on_earlier_results(&directory, log);
    }
    comm.all_ok(outcome.and(written))?;
    Ok(summary)
}

/// Says whose results are in the directory of a failed run.
fn remark_on_earlier_results(directory: &Path, log: &Log) {
    let results = directory.join(RESULTS_FILE);
    if !results.exists() {
        return;
    }
    let summary = if directory.join(KEPT_SUMMARY_FILE).exists() {
        format!("; its summary is kept as {KEPT_SUMMARY_FILE}")
    } else {
        String::new()
    };
    log.remark(&format!(
        "{} is of an earlier run{summary}",
        results.display()
    ));
}

/// Collective. Steps 3 to 10 of a linear static run.
fn run_static(
    comm: &Comm,
    (case, deck): (Case, Option<MeshFile>),
    request: &Request,
    directory: &Path,
    summary: &mut Summary,
    log: &mut Log,
) -> Result<()> {
    let mut prepared = prepare(comm, case, deck, request, log)?;
    describe(comm, &prepared, summary);
    summary.solver.tolerance = prepared.case.solver.tolerance;
    let results = solve_frames(comm, &mut prepared, directory, summary, log)?;
    log.phase("write", "write results", |_| {
        results.finish(comm, directory)
    })?;
    let case = &prepared.case;
    summary.status = Status::Converged;
    summary.exit_code = 0;
    probes::judge(case, summary);
    Ok(())
}

/// Collective. Solves one frame after the other and writes what it gives.
fn solve_frames(
    comm: &Comm,
    prepared: &mut Prepared,
    directory: &Path,
    summary: &mut Summary,
    log: &mut Log,
) -> Result<Results> {
    let Prepared {
        case,
        resolved,
        probe_points,
        halo,
        ..
    } = prepared;
    let case = &*case;
    let frames = case.frames();
    let mut statics = LinearStatics::new(&case.solver);
    let mut results = Results::new(case);
    let mut values: Vec<Option<Probe>> = vec![None; case.probes.len()];
    let mut seen = BTreeSet::new();
    for (k, frame) in frames.iter().enumerate() {
        if k > 0 {
            resolved.enter(comm, case, frame)?;
        }
        if !case.steps.is_empty() {
            let (k, n, name) = (frame.increment, frame.n_increments, &frame.name);
            log.note(&format!("step \"{name}\", frame {k} of {n}"));
        }
        let model = &resolved.model;
        if frame.increment == 1 {
            require_supports(comm, case, model, halo)?;
        }
        let is_last = k + 1 == frames.len();
        let mut solution = statics.solve(comm, model, halo, is_last, log)?;
        if case.output.fields.contains(&Field::ErrorEstimate) {
            log.phase("recover", "error estimate", |_| {
                solution.estimate_errors(comm, model);
            });
        }
        solution.describe(summary);
        require_convergence(&solution, case)?;
        if seen.insert(frame.step) {
            warn_of_large_displacement(comm, model, &solution, log);
        }
        log.phase("recover", "probes", |_| {
            let wanted = |probe: &fem_io::case::Probe| match &probe.step {
                Some(step) => frame.is_end() && *step == frame.name,
                None => is_last,
            };
            if case.probes.iter().any(wanted) {
                let names = resolved.names();
                let found = probes::evaluate(comm, case, &names, model, probe_points, &solution);
                for ((slot, probe), value) in values.iter_mut().zip(&case.probes).zip(found) {
                    if wanted(probe) {
                        *slot = Some(value);
                    }
                }
            }
            probes::find_peaks(comm, model, &solution, summary);
        });
        record_step(case, frame, statics.n_set_ups(), &solution, summary);
        log.phase("write", "write the frame", |_| {
            results.write_frame(
                comm,
                case,
                resolved,
                &solution,
                (frame, frames.len(), directory),
            )
        })?;
    }
    summary.probes = values.into_iter().flatten().collect();
    Ok(results)
}

/// Enters a frame into the summary of its step.
fn record_step(
    case: &Case,
    frame: &Frame,
    n_set_ups: usize,
    solution: &Solution,
    summary: &mut Summary,
) {
    if case.steps.is_empty() {
        return;
    }
    let before: usize = summary.steps.iter().map(|step| step.set_ups).sum();
    if frame.increment == 1 {
        summary.steps.push(StepSummary {
            name: frame.name.clone(),
            ..StepSummary::default()
        });
    }
    if let Some(step) = summary.steps.last_mut() {
        step.time = frame.time;
        step.frames += 1;
        step.iterations += solution.solved.report.iterations as u64;
        step.set_ups += n_set_ups - before;
        step.results = summary.results.clone();
    }
}

/// What the frames leave in the output directory.
struct Results {
    writer: Option<ResultWriter>,
    /// Local node and material of each point.
    points: Vec<(u32, u16)>,
    /// On rank 0.
    printed: Printed,
    case: PathBuf,
}

impl Results {
    fn new(case: &Case) -> Self {
        Results {
            writer: None,
            points: Vec::new(),
            printed: Printed::default(),
            case: case.path.clone(),
        }
    }

    /// Collective. Writes a frame, of `n_frames`.
    fn write_frame(
        &mut self,
        comm: &Comm,
        case: &Case,
        resolved: &Resolved,
        solution: &Solution,
        (frame, n_frames, directory): (&Frame, usize, &Path),
    ) -> Result<()> {
        let model = &resolved.model;
        if self.writer.is_none() {
            let (part, points) =
                PartData::of_owned_cells(&model.mesh, &model.cell_material, comm.rank());
            self.points = points;
            let options = WriteOptions::default();
            let writer = ResultWriter::create(comm, directory, part, n_frames, options)?;
            self.writer = Some(writer);
        }
        let on_points = output::point_fields(&case.output.fields, solution, &self.points);
        let on_cells = output::cell_fields(comm, &case.output, model, solution);
        if let Some(writer) = &mut self.writer {
            writer.write_frame(comm, frame.time, on_points, on_cells)?;
        }
        // CalculiX's one step takes a time of 1.
        let time = if case.steps.is_empty() {
            1.0
        } else {
            frame.time
        };
        print::print_frame(
            comm,
            case,
            resolved,
            solution,
            (frame, time),
            &mut self.printed,
        );
        Ok(())
    }

    /// Collective. Gives the files their names.
    fn finish(self, comm: &Comm, directory: &Path) -> Result<()> {
        if let Some(writer) = self.writer {
            writer.finish(comm)?;
        }
        let printed = if comm.is_root() && !self.printed.is_empty() {
            self.printed.write(directory, &self.case).map(|_| ())
        } else {
            Ok(())
        };
        comm.all_ok(printed)
    }
}

/// Collective. Small displacements are what the theory assumes.
fn warn_of_large_displacement(comm: &Comm, model: &Model, solution: &Solution, log: &mut Log) {
    let bounds = select::bounds(comm, &model.mesh);
    let extent = [0, 1, 2].map(|i| (bounds.max[i] - bounds.min[i]).powi(2));
    let size = extent.iter().sum::<f64>().sqrt();
    let largest = solution.totals.max_displacement;
    if largest > SMALL_DISPLACEMENT * size {
        log.warn(format!(
            "the largest displacement is {:.0} % of the size of the model: the theory is that of small displacements; \
             check the units of young, the loads and the mesh",
            100.0 * largest / size
        ));
    }
}

/// Collective. The case: rank 0 reads the text, every rank parses it. With a deck, rank 0 gets its mesh, too.
///
/// # Errors
/// Those of [`case::load_text`], [`deck::read`] and [`case::parse`], on every rank.
pub fn load_case(
    comm: &Comm,
    request: &Request,
    log: &mut Log,
) -> Result<(Case, Option<MeshFile>)> {
    let path = &request.case;
    let read = || -> Result<(String, Option<MeshFile>)> {
        if !comm.is_root() {
            return Ok((String::new(), None));
        }
        if !deck::is_deck(path) {
            return Ok((case::load_text(path, &request.overrides)?, None));
        }
        let deck = deck::read(path)?;
        let text = case::with_overrides(path, deck.text, &request.overrides)?;
        Ok((text, Some(deck.mesh)))
    };
    let read = if deck::is_deck(path) {
        let label = format!("read {}", path.display());
        log.phase("read", &label, |_| comm.all_ok(read()))
    } else {
        comm.all_ok(read())
    };
    let (text, deck) = read?;
    let text = comm.broadcast_text(text);
    Ok((case::parse(path, &text)?, deck))
}

/// Collective. Steps 3 to 6: mesh, partition, model, threads. `deck` is the mesh that came with the case, if any.
///
/// # Errors
/// Bad mesh files, sets that do not exist, elements without material, probes outside the mesh, ...
pub fn prepare(
    comm: &Comm,
    case: Case,
    deck: Option<MeshFile>,
    request: &Request,
    log: &mut Log,
) -> Result<Prepared> {
    let label = match &case.mesh.source {
        _ if deck::is_deck(&case.path) => "take the mesh of the deck".to_owned(),
        MeshSource::File(path) => format!("read {}", path.display()),
        MeshSource::Box(_) => "generate the box".to_owned(),
    };
    let (raw, warnings) = log.phase("read", &label, |_| input::read_mesh(comm, &case, deck))?;
    warnings.into_iter().for_each(|w| log.warn(w));
    if matches!(case.mesh.source, MeshSource::Box(_))
        && case.parallel.partitioner == Partitioner::Metis
    {
        log.warn(
            "a generated box is divided into blocks; the partitioner \"metis\" is for mesh files",
        );
    }
    let (mesh, partition) = log.phase("partition", "partition and distribute", |_| {
        input::distribute_mesh(comm, &case, raw)
    })?;
    let label = "resolve sets, loads, supports and probes";
    let (resolved, probe_points) = log.phase("partition", label, |_| {
        let resolved = resolve(comm, &case, mesh)?;
        let points = probes::locate_points(comm, &case, &resolved.model.mesh)?;
        Ok((resolved, points))
    })?;
    resolved.warnings.iter().for_each(|w| log.warn(w.as_str()));
    if loads_do_nothing(comm, &resolved.model) {
        log.warn(
            "no load acts where the model is free to move: the loads add to the reactions only",
        );
    }
    let halo = Halo::new(comm, &resolved.model.mesh.nodes);
    let ceiling = request.threads.or(case.parallel.threads);
    let parallelism = parallel::decide(comm, 3 * resolved.model.mesh.nodes.n_global(), ceiling);
    comm.all_ok(parallel::start_threads(parallelism.threads))?;
    log.note(&parallelism.decision);
    Ok(Prepared {
        case,
        resolved,
        probe_points,
        halo,
        partition,
        parallelism,
    })
}

/// Collective. Sizes of the model, for the summary.
fn describe(comm: &Comm, prepared: &Prepared, summary: &mut Summary) {
    let mesh = &prepared.resolved.model.mesh;
    summary.mesh = mesh_summary(comm, mesh);
    summary.dofs = 3 * mesh.nodes.n_global();
    let p = &prepared.parallelism;
    summary.parallel = ParallelSummary {
        ranks: p.n_ranks,
        threads_per_rank: comm.max(p.threads as f64) as usize,
        hosts: p.n_hosts,
        decision: p.decision.clone(),
    };
    let partition = &prepared.partition;
    summary.partition = PartitionSummary {
        method: partition.method.clone(),
        imbalance: partition.imbalance,
        edge_cut: partition.edge_cut,
        halo_nodes_max: partition.halo_nodes_max,
    };
}

/// Collective. Counts of the whole mesh.
pub fn mesh_summary(comm: &Comm, mesh: &LocalMesh) -> MeshSummary {
    let mut summary = MeshSummary {
        nodes: mesh.nodes.n_global(),
        elements: mesh.n_global_cells,
        ..MeshSummary::default()
    };
    for cell_type in CellType::SOLIDS {
        let owned = &mesh.cells.types[..mesh.n_owned_cells];
        let n = comm.sum_u64(owned.iter().filter(|&&t| t == cell_type).count() as u64);
        if n > 0 {
            summary.by_type.insert(cell_type.name().to_owned(), n);
        }
    }
    summary
}

/// Collective. That no body and no part of one can move without resistance.
///
/// # Errors
/// A body or part with free rigid motions, named.
pub fn require_supports(comm: &Comm, case: &Case, model: &Model, halo: &Halo) -> Result<()> {
    let free = if model.links.is_empty() {
        free_bodies(comm, model, halo)
    } else {
        free_groups(comm, model, halo)
    };
    if let Some(first) = free.first() {
        return Err(Error::model(describe_free_body("body", first, free.len()))
            .in_file(&case.path)
            .expected("supports that hold all six rigid motions of every body")
            .advice("add a [[constraint]], or join the body to one that is held"));
    }
    // The cells of a generated box hang together through faces.
    let loose = match case.mesh.source {
        MeshSource::Box(_) => Vec::new(),
        // Equations may hold what touches at an edge only.
        MeshSource::File(_) if !model.links.is_empty() => Vec::new(),
        MeshSource::File(_) => loose_parts(comm, model),
    };
    let Some(first) = loose.first() else {
        return Ok(());
    };
    let what = describe_free_body("part", first, loose.len());
    Err(Error::model(format!(
        "{what}; it touches its neighbors at an edge or a point only"
    ))
    .in_file(&case.path)
    .expected("parts that share faces, or supports that hold each of them")
    .advice("let the parts overlap in the geometry and mesh again, or add a [[constraint]]"))
}

/// `kind`: what is free, a body or a part.
fn describe_free_body(kind: &str, body: &FreeBody, n_free: usize) -> String {
    let [low, high] = body
        .bounds
        .map(|x| format!("({:.4e}, {:.4e}, {:.4e})", x[0], x[1], x[2]));
    let others = match n_free {
        1 => String::new(),
        2 => format!(" (one more {kind} is free as well)"),
        n => format!(" ({} more are free as well)", n - 1),
    };
    format!(
        "the model is not restrained: {} of the {kind} with node {} ({} nodes, from {low} to {high}) left free{others}",
        body.motions.join(", "),
        body.first_node_id,
        body.n_nodes
    )
}

/// The tolerance was met, or what can be met in double precision.
fn require_convergence(solution: &Solution, case: &Case) -> Result<()> {
    let report = &solution.solved.report;
    if report.converged {
        return Ok(());
    }
    let limit = case.solver.max_iterations;
    let tried = report.changes.iter().map(|change| format!("; cg {change}"));
    let what = format!(
        "not converged: relative residual {:.2e} after {} iterations (target {:.0e}){}",
        report.true_residual,
        report.iterations,
        case.solver.tolerance,
        tried.collect::<String>()
    );
    let advice = if report.iterations >= limit {
        format!(
            "raise solver.max_iterations (now {limit}), or use solver.method = \"direct\" if the model is small"
        )
    } else {
        "no further progress: the model is badly conditioned; look for nearly free parts, extreme stiffness ratios \
         or flat elements, or use solver.method = \"direct\""
            .to_owned()
    };
    Err(Error::not_converged(what).advice(advice))
}

/// Collective. Times of the slowest rank, and memory.
fn record_costs(comm: &Comm, log: &Log, summary: &mut Summary) {
    let seconds = |name: &str| comm.max(log.seconds(name));
    summary.time_s = Times {
        read: seconds("read"),
        partition: seconds("partition"),
        assemble: seconds("assemble"),
        setup: seconds("setup"),
        solve: seconds("solve"),
        recover: seconds("recover"),
        write: seconds("write"),
        total: comm.max(log.total_seconds()),
    };
    let peak_per_rank = comm.all_gather(&[peak_memory_mib()]).concat();
    let peak_total = peak_per_rank.iter().sum();
    summary.memory_mib = Memory {
        peak_per_rank,
        peak_total,
    };
    summary.warnings = log.warnings().to_vec();
}

/// Writes the summary. That of a failed run leaves an earlier one, whose results are still in the directory, beside it.
fn write_summary(directory: &Path, summary: &Summary) -> Result<()> {
    let path = directory.join(SUMMARY_FILE);
    let kept = directory.join(KEPT_SUMMARY_FILE);
    let is_of_results = summary.status == Status::Converged;
    let moved = if is_of_results && kept.exists() {
        std::fs::remove_file(&kept)
    } else if !is_of_results
        && path.exists()
        && directory.join(RESULTS_FILE).exists()
        && !kept.exists()
    {
        std::fs::rename(&path, &kept)
    } else {
        Ok(())
    };
    moved.map_err(|e| {
        Error::machine(format!("cannot keep the earlier summary: {e}")).in_file(&kept)
    })?;
    summary.write(directory).map(|_| ())
}
