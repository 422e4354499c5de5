//! How long each phase of a run takes: reading, partition, assembly, set-up of multigrid, solution, recovery, writing.
//!
//! Meshes of about 108,000 degrees of freedom: the unit cube under its weight as 32^3 hex8 and as 6 x 16^3 tet10, and
//! the bracket of `cases/` where a file is read or divided. All cores that the process may use: `taskset -c 0` measures
//! one thread. Criterion keeps what it measured in `target/criterion` and says what changed since the run before.
//!
//! Run: `cargo bench -p fem-solve --bench phases [-- FILTER]`

use criterion::{BatchSize, BenchmarkGroup, Criterion, measurement};
use fem_io::case::Field;
use fem_io::mesh_file;
use fem_io::results::write_results;
use fem_mesh::comm::run_threads;
use fem_mesh::partition::{PartitionMethod, PartitionOptions, cell_work, partition};
use fem_mesh::{
    BoxMesh, CellType, Comm, Mesh, Result, distribute_slices, distribute_whole, generate_slice,
};
use fem_solve::analysis::corner_parents::corner_parents;
use fem_solve::analysis::linear_static;
use fem_solve::assembly::{Pattern, assemble_stiffness, constrain, external_force};
use fem_solve::krylov::{CgOptions, System, conjugate_gradients};
use fem_solve::linalg::{DistMatrix, DistSymmetric, LinearOperator};
use fem_solve::log::Log;
use fem_solve::output::part_data;
use fem_solve::parallel::start_threads;
use fem_solve::post::{compute_nodal_tensors, internal_force};
use fem_solve::precond::amg::NodeData;
use fem_solve::precond::{Amg, AmgOptions, rigid_body_modes};
use fem_solve::run::{Prepared, Request, load_case, prepare};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

type Group<'a> = BenchmarkGroup<'a, measurement::WallTime>;

/// The boxes: element and cells along an edge.
const BOXES: [(&str, usize); 2] = [("hex8", 32), ("tet10", 16)];

fn case_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../cases")
        .join(name)
}

fn start(c: &mut Criterion, phase: &str, measure: impl FnOnce(&mut Group) -> Result<()>) {
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut group = c.benchmark_group(phase);
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500));
    group.measurement_time(Duration::from_secs(3));
    if let Err(error) = start_threads(n_threads).and_then(|()| measure(&mut group)) {
        eprintln!("{phase}: {error}");
        std::process::exit(error.exit_code());
    }
    group.finish();
}

/// The cube of `cases/scaling` with n^3 bricks, as a run has it before it assembles.
fn cube(comm: &Comm, element: &str, n: usize) -> Result<Prepared> {
    let request = Request {
        case: case_path("scaling/case.toml"),
        overrides: vec![
            format!("mesh.box.cells=[{n},{n},{n}]"),
            format!("mesh.box.element=\"{element}\""),
            "solver.method=\"cg\"".to_owned(),
        ],
        ..Request::default()
    };
    let mut log = Log::new(false);
    let (case, deck) = load_case(comm, &request, &mut log)?;
    prepare(comm, case, deck, &request, &mut log)
}

/// Matrix and right-hand side of the prepared case.
fn system(comm: &Comm, prepared: &Prepared) -> Result<(DistMatrix<3>, Vec<f64>)> {
    let model = &prepared.resolved.model;
    let (pattern, mut rows) = Pattern::new(&model.mesh)?;
    assemble_stiffness(comm, model, &pattern, &mut rows)?;
    let mut rhs = external_force(model, pattern.slabs());
    constrain(pattern.slabs(), &model.fixed, &mut rows, &mut rhs);
    let matrix = DistMatrix::new(comm, model.mesh.nodes.clone(), rows.lower, rows.ghost);
    Ok((matrix, rhs))
}

/// Multigrid, with what a run computes for it.
fn multigrid(comm: &Comm, prepared: &Prepared, matrix: &DistMatrix<3>) -> Result<Amg<3, 6>> {
    let model = &prepared.resolved.model;
    let coords = &model.mesh.coords[..model.mesh.nodes.n_owned()];
    let fixed = model.fixed.iter().map(|(dof, _)| *dof);
    let parents = corner_parents(comm, &model.mesh);
    let nodes = NodeData {
        near_nullspace: rigid_body_modes(comm, coords, fixed, &[]),
        parents: parents.as_deref(),
    };
    Amg::new(comm, matrix, nodes, &AmgOptions::default())
}

fn read(c: &mut Criterion) {
    start(c, "read", |group| {
        for (name, path) in [
            ("msh, tet10 bracket", "bracket/bracket.msh"),
            ("inp, tet10 bracket", "bracket-inp/bracket.inp"),
        ] {
            let path = case_path(path);
            mesh_file::read(&path)?;
            group.bench_function(name, |b| b.iter(|| mesh_file::read(black_box(&path))));
        }
        Ok(())
    });
}

/// Divides and deals out a mesh that rank 0 holds.
fn deal(comm: &Comm, mesh: &Mesh) -> Result<()> {
    let mesh = if comm.is_root() {
        mesh.clone()
    } else {
        Mesh::default()
    };
    let work: Vec<u32> = mesh.cells.types.iter().map(|&t| cell_work(t)).collect();
    let options = PartitionOptions {
        method: PartitionMethod::Auto,
        part_weights: None,
        cell_weights: Some(&work),
    };
    black_box(distribute_whole(comm, mesh, &options)?);
    Ok(())
}

fn divide(c: &mut Criterion) {
    start(c, "partition", |group| {
        let bracket = mesh_file::read(&case_path("bracket/bracket.msh"))?.mesh;
        for (name, method) in [
            ("metis", PartitionMethod::Metis),
            ("rcb", PartitionMethod::Rcb),
        ] {
            let options = PartitionOptions {
                method,
                part_weights: None,
                cell_weights: None,
            };
            group.bench_function(format!("{name}, bracket in 8 parts"), |b| {
                b.iter(|| partition(black_box(&bracket), 8, &options));
            });
        }
        for n_ranks in [1, 2] {
            group.bench_function(format!("deal out, bracket on {n_ranks} rank(s)"), |b| {
                b.iter(|| run_threads(n_ranks, |comm| deal(comm, &bracket).expect("a good mesh")));
            });
        }
        let spec = BoxMesh {
            size: [1.0; 3],
            cells: [32; 3],
            cell_type: CellType::Hex8,
            origin: [0.0; 3],
        };
        let comm = Comm::alone();
        group.bench_function("generate and deal out, hex8 box", |b| {
            b.iter(|| distribute_slices(&comm, generate_slice(&spec, &comm, None)?, None));
        });
        Ok(())
    });
}

fn assemble(c: &mut Criterion) {
    start(c, "assemble", |group| {
        let comm = Comm::alone();
        for (element, n) in BOXES {
            let prepared = cube(&comm, element, n)?;
            let model = &prepared.resolved.model;
            Pattern::new(&model.mesh)?;
            group.bench_function(format!("pattern, {element}"), |b| {
                b.iter(|| Pattern::new(&model.mesh))
            });
            let pattern = || Pattern::new(&model.mesh).expect("made before");
            group.bench_function(format!("stiffness, {element}"), |b| {
                let stiffness = |(pattern, mut rows): (Pattern, _)| {
                    assemble_stiffness(&comm, model, &pattern, &mut rows).map(|()| rows)
                };
                b.iter_batched(pattern, stiffness, BatchSize::PerIteration);
            });
        }
        Ok(())
    });
}

fn set_up(c: &mut Criterion) {
    start(c, "set-up", |group| {
        let comm = Comm::alone();
        for (element, n) in BOXES {
            let prepared = cube(&comm, element, n)?;
            let (matrix, _) = system(&comm, &prepared)?;
            group.bench_function(format!("multigrid, {element}"), |b| {
                b.iter(|| multigrid(&comm, &prepared, &matrix));
            });
            group.bench_function(format!("half storage, {element}"), |b| {
                let full = || system(&comm, &prepared).expect("made before").0;
                b.iter_batched(full, DistSymmetric::new, BatchSize::PerIteration);
            });
        }
        Ok(())
    });
}

fn solve(c: &mut Criterion) {
    start(c, "solve", |group| {
        let comm = Comm::alone();
        for (element, n) in BOXES {
            let prepared = cube(&comm, element, n)?;
            let (matrix, rhs) = system(&comm, &prepared)?;
            let mut amg = multigrid(&comm, &prepared, &matrix)?;
            let options = CgOptions {
                matrix_norm: matrix.norm_inf(&comm),
                flexible: true,
                ..CgOptions::default()
            };
            let matrix = DistSymmetric::new(matrix);
            let mut x = vec![0.0; rhs.len()];
            group.bench_function(format!("product, {element}"), |b| {
                b.iter(|| matrix.apply(&comm, black_box(&rhs), &mut x));
            });
            group.bench_function(format!("V-cycle, {element}"), |b| {
                b.iter(|| amg.apply(&comm, black_box(&rhs), &mut x));
            });
            group.bench_function(format!("conjugate gradients, {element}"), |b| {
                b.iter(|| {
                    x.fill(0.0);
                    let system = System {
                        matrix: &matrix,
                        preconditioner: &mut amg,
                    };
                    let report =
                        conjugate_gradients(&comm, system, &rhs, &mut x, &options, &mut |_| {});
                    assert!(report.is_ok_and(|r| r.converged));
                });
            });
        }
        Ok(())
    });
}

fn recover_and_write(c: &mut Criterion) {
    start(c, "recover and write", |group| {
        let comm = Comm::alone();
        let folder = tempfile::tempdir().map_err(|e| fem_mesh::Error::machine(e.to_string()))?;
        for (element, n) in BOXES {
            let prepared = cube(&comm, element, n)?;
            let (model, halo) = (&prepared.resolved.model, &prepared.halo);
            let options = &prepared.case.solver;
            let solution = linear_static::solve(&comm, model, halo, options, &mut Log::new(false))?;
            let u = &solution.displacement;
            group.bench_function(format!("forces, {element}"), |b| {
                b.iter(|| internal_force(model, u))
            });
            group.bench_function(format!("strains and stresses, {element}"), |b| {
                b.iter(|| compute_nodal_tensors(&comm, model, halo, u));
            });
            let fields = [
                Field::Displacement,
                Field::Stress,
                Field::VonMises,
                Field::Reaction,
            ];
            group.bench_function(format!("collect fields, {element}"), |b| {
                b.iter(|| part_data(&comm, &fields, model, &solution));
            });
            let part = part_data(&comm, &fields, model, &solution);
            write_results(&comm, folder.path(), &part)?;
            group.bench_function(format!("write results, {element}"), |b| {
                b.iter(|| write_results(&comm, folder.path(), &part));
            });
        }
        Ok(())
    });
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for phase in [read, divide, assemble, set_up, solve, recover_and_write] {
        phase(&mut criterion);
    }
    criterion.final_summary();
}
