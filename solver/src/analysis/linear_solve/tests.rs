//! `LinearSolver`: one set-up for many right-hand sides, what follows where iterations fail, bad matrices.

use super::{LinearSolver, Nodes, Solved};
use crate::assembly::test_models::{model, split};
use crate::assembly::{Pattern, assemble_stiffness, constrain};
use crate::linalg::DistMatrix;
use crate::log::Log;
use crate::model::Model;
use fem_io::case::{Method, Preconditioner, Reductions, SolverOptions};
use fem_mesh::comm::run_threads;
use fem_mesh::generate::{BoxMesh, generate_slice};
use fem_mesh::{CellType, Comm, Error, ErrorKind, Mesh, Result};
use std::sync::Mutex;

/// Enough of a box that `auto` iterates.
fn cube() -> Mesh {
    let spec = BoxMesh {
        size: [1.0; 3],
        cells: [10; 3],
        cell_type: CellType::Hex8,
        origin: [0.0; 3],
    };
    generate_slice(&spec, &Comm::alone(), None).expect("a valid box")
}

/// A model with its stiffness.
struct Assembled {
    model: Model,
    matrix: DistMatrix<3>,
}

/// Collective. Clamped where `is_fixed` says; `spoil` may change the blocks of the owned rows before.
fn assemble(
    comm: &Comm,
    mesh: &Mesh,
    is_fixed: fn([f64; 3]) -> bool,
    spoil: &dyn Fn(&Model, &mut crate::assembly::BlockRows),
) -> Assembled {
    let mut model = model(split(comm, mesh));
    let nodes = 0..model.mesh.nodes.n_local();
    model.fixed = nodes
        .filter(|&node| is_fixed(model.mesh.coords[node]))
        .flat_map(|node| (0..3).map(move |c| ((3 * node + c) as u32, 0.0)))
        .collect();
    let (pattern, mut rows) = Pattern::new(&model.mesh).expect("few neighbors");
    assemble_stiffness(comm, &model, &pattern, &mut rows).expect("valid elements");
    let n = model.mesh.nodes.n_owned();
    let mut nothing = vec![0.0; 3 * n];
    constrain(pattern.slabs(), &model.fixed, &mut rows, &mut nothing);
    spoil(&model, &mut rows);
    let matrix = DistMatrix::new(comm, model.mesh.nodes.clone(), rows.lower, rows.ghost);
    Assembled { model, matrix }
}

fn clamped(x: [f64; 3]) -> bool {
    x[0] == 0.0
}

/// A load on the free nodes at x = 1 along `direction`.
fn load(model: &Model, direction: [f64; 3]) -> Vec<f64> {
    let owned = &model.mesh.coords[..model.mesh.nodes.n_owned()];
    let at = |x: &[f64; 3]| {
        let is_loaded = (x[0] - 1.0).abs() < 1e-12;
        direction.map(|f| if is_loaded { f } else { 0.0 })
    };
    owned.iter().flat_map(at).collect()
}

fn options(method: Method, preconditioner: Preconditioner) -> SolverOptions {
    SolverOptions {
        method,
        preconditioner,
        ..SolverOptions::default()
    }
}

/// Every way to solve.
fn ways() -> [SolverOptions; 4] {
    [
        options(Method::Direct, Preconditioner::Auto),
        options(Method::Auto, Preconditioner::Auto),
        options(Method::Cg, Preconditioner::BlockJacobi),
        SolverOptions {
            reductions: Reductions::One,
            ..options(Method::Cg, Preconditioner::Amg)
        },
    ]
}

/// Runs on 1 to 4 ranks.
fn on_ranks(body: impl Fn(&Comm) + Sync) {
    for n_ranks in 1..=4 {
        run_threads(n_ranks, &body);
    }
}

#[test]
fn units_of_force_do_not_matter() {
    let mesh = cube();
    on_ranks(|comm| {
        for options in ways() {
            let solve = |unit: f64| {
                let scale = |_: &Model, rows: &mut crate::assembly::BlockRows| {
                    for values in [&mut rows.lower.values, &mut rows.ghost.values] {
                        values.iter_mut().for_each(|k| *k *= unit);
                    }
                };
                let Assembled { model, matrix } = assemble(comm, &mesh, clamped, &scale);
                let nodes = Nodes {
                    mesh: &model.mesh,
                    fixed: &model.fixed,
                    dependent: &[],
                    rotations: &[],
                };
                let rhs = load(&model, [0.0, 0.0, unit]);
                let (mut x, mut log) = (vec![0.0; rhs.len()], Log::new(false));
                LinearSolver::new(comm, matrix, nodes, &options, &mut log)
                    .expect("definite")
                    .solve_next(comm, nodes, &rhs, &mut x, &mut log)
                    .expect("it is solved");
                x
            };
            let expected = solve(1.0);
            let largest = expected.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            for unit in [1e45, 1e-45, 1e250] {
                let x = solve(unit);
                let error = x.iter().zip(&expected).map(|(x, y)| (x - y).abs());
                assert!(error.fold(0.0, f64::max) < 1e-6 * largest, "{unit:e}");
            }
        }
    });
}

#[test]
fn one_set_up_serves_all_load_cases() {
    let mesh = cube();
    on_ranks(|comm| {
        for options in ways() {
            let mut log = Log::new(false);
            let Assembled { model, matrix } = assemble(comm, &mesh, clamped, &|_, _| ());
            let nodes = Nodes {
                mesh: &model.mesh,
                fixed: &model.fixed,
                dependent: &[],
                rotations: &[],
            };
            let mut solver =
                LinearSolver::new(comm, matrix, nodes, &options, &mut log).expect("definite");
            let set_up = log.seconds("setup");
            for direction in [[1.0, 0.0, 0.0], [0.0, 1.0, -2.0], [0.0, 0.0, 1e6]] {
                let rhs = load(&model, direction);
                let mut x = vec![0.0; rhs.len()];
                let solved = solver
                    .solve_next(comm, nodes, &rhs, &mut x, &mut log)
                    .expect("it is solved");
                assert!(solved.report.converged && solved.report.true_residual <= 1e-8);

                let Assembled { matrix, .. } = assemble(comm, &mesh, clamped, &|_, _| ());
                let mut alone = vec![0.0; rhs.len()];
                LinearSolver::new(comm, matrix, nodes, &options, &mut Log::new(false))
                    .expect("definite")
                    .solve_next(comm, nodes, &rhs, &mut alone, &mut log)
                    .expect("it is solved");
                // The order of elimination is not the same if other threads of this process ask METIS for one.
                let error = x.iter().zip(&alone).map(|(x, y)| (x - y).abs());
                let error = error.fold(0.0, f64::max);
                let scale = alone.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
                let bound = if options.method == Method::Direct {
                    1e-13 * scale
                } else {
                    0.0
                };
                assert!(error <= bound, "{options:?}: {error}");
            }
            assert_eq!(solver.n_set_ups(), 1);
            assert_eq!(log.seconds("setup"), set_up);
        }
    });
}

#[test]
fn a_start_near_the_solution_saves_iterations() {
    let mesh = cube();
    on_ranks(|comm| {
        let mut log = Log::new(false);
        let Assembled { model, matrix } = assemble(comm, &mesh, clamped, &|_, _| ());
        let nodes = Nodes {
            mesh: &model.mesh,
            fixed: &model.fixed,
            dependent: &[],
            rotations: &[],
        };
        let options = SolverOptions::default();
        let mut solver =
            LinearSolver::new(comm, matrix, nodes, &options, &mut log).expect("definite");
        let mut x = vec![0.0; 3 * model.mesh.nodes.n_owned()];
        let mut iterations = |force: f64| {
            let rhs = load(&model, [0.0, 0.0, force]);
            let solved = solver.solve_next(comm, nodes, &rhs, &mut x, &mut log);
            solved.expect("it is solved").report.iterations
        };
        let (first, same, near) = (iterations(1.0), iterations(1.0), iterations(1.001));
        assert!(
            same == 0 && near > 0 && near < first,
            "{first} {same} {near}"
        );
    });
}

#[test]
fn auto_factorizes_where_iterations_fail_and_stays_with_the_factor() {
    let mesh = cube();
    let few = SolverOptions {
        max_iterations: 2,
        ..SolverOptions::default()
    };
    on_ranks(|comm| {
        let mut log = Log::new(false);
        let Assembled { model, matrix } = assemble(comm, &mesh, clamped, &|_, _| ());
        let nodes = Nodes {
            mesh: &model.mesh,
            fixed: &model.fixed,
            dependent: &[],
            rotations: &[],
        };
        let mut solver = LinearSolver::new(comm, matrix, nodes, &few, &mut log).expect("definite");
        for round in 1..=2 {
            let rhs = load(&model, [f64::from(round), 0.0, 1.0]);
            let mut x = vec![0.0; rhs.len()];
            let solved = solver
                .solve_next(comm, nodes, &rhs, &mut x, &mut log)
                .expect("it is solved");
            assert!(solved.report.converged && solved.report.true_residual < 1e-12);
            assert_eq!(solved.method, "direct");
            let why = "direct, after cg did not converge in 2 iterations (relative residual ";
            assert!(solved.reason.starts_with(why), "{}", solved.reason);
            assert_eq!((solver.n_set_ups(), log.warnings().len()), (2, 1));
            assert!(log.warnings()[0].ends_with("trying a direct solution"));
        }
    });
}

#[test]
fn cg_asked_for_ends_with_what_it_has() {
    let mesh = cube();
    let few = SolverOptions {
        max_iterations: 3,
        ..options(Method::Cg, Preconditioner::Auto)
    };
    on_ranks(|comm| {
        let solved = solve(comm, &mesh, clamped, &|_, _| (), &few).expect("no error of numbers");
        let report = &solved.report;
        assert!(!report.converged && report.iterations == 3 && report.true_residual < 0.5);
    });
}

/// Collective. Sets up and solves for one load.
fn solve(
    comm: &Comm,
    mesh: &Mesh,
    is_fixed: fn([f64; 3]) -> bool,
    spoil: &dyn Fn(&Model, &mut crate::assembly::BlockRows),
    options: &SolverOptions,
) -> Result<Solved> {
    let mut log = Log::new(false);
    let Assembled { model, matrix } = assemble(comm, mesh, is_fixed, spoil);
    let nodes = Nodes {
        mesh: &model.mesh,
        fixed: &model.fixed,
        dependent: &[],
        rotations: &[],
    };
    let rhs = load(&model, [1.0, 0.3, -0.2]);
    let mut x = vec![0.0; rhs.len()];
    let mut solver = LinearSolver::new(comm, matrix, nodes, options, &mut log)?;
    let solved = solver.solve_next(comm, nodes, &rhs, &mut x, &mut log)?;
    let mut r = vec![0.0; rhs.len()];
    solver.matrix.operator().apply(comm, &x, &mut r);
    let norm = |v: &[f64]| comm.sum(v.iter().map(|v| v * v).sum::<f64>()).sqrt();
    r.iter_mut().zip(&rhs).for_each(|(r, b)| *r = b - *r);
    let residual = norm(&r) / norm(&rhs);
    assert!((residual - solved.report.true_residual).abs() <= 1e-3 * residual);
    Ok(solved)
}

/// The message of each way to solve; it must be that of every rank, and of the kind for which the program exits with 3.
fn messages(
    mesh: &Mesh,
    is_fixed: fn([f64; 3]) -> bool,
    spoil: impl Fn(&Model, &mut crate::assembly::BlockRows) + Sync,
) -> Vec<String> {
    let found = Mutex::new(Vec::new());
    on_ranks(|comm| {
        for (way, options) in ways().into_iter().enumerate() {
            let error: Error =
                solve(comm, mesh, is_fixed, &spoil, &options).expect_err("it cannot be solved");
            assert_eq!(error.kind(), ErrorKind::Model, "{options:?}: {error}");
            let entry = (comm.n_ranks(), way, error.to_string());
            found.lock().expect("no rank panicked").push(entry);
        }
    });
    let mut found = found.into_inner().expect("no rank panicked");
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 4 * ways().len(), "ranks differ: {found:#?}");
    found.into_iter().map(|(_, _, message)| message).collect()
}

/// Spoils the entry of the node at (1, 1, 1) in direction y.
fn set_last_diagonal(value: f64) -> impl Fn(&Model, &mut crate::assembly::BlockRows) + Sync {
    move |model, rows| {
        let owned = 0..model.mesh.nodes.n_owned();
        if let Some(node) = owned
            .into_iter()
            .find(|&n| model.mesh.coords[n] == [1.0; 3])
        {
            let k = rows
                .lower
                .find(node, node as u32)
                .expect("a diagonal block");
            rows.lower.block_mut(k)[4] = value;
        }
    }
}

#[test]
fn numbers_that_are_not_finite_are_found_and_named() {
    for value in [f64::NAN, f64::INFINITY] {
        for message in messages(&cube(), clamped, set_last_diagonal(value)) {
            // 11 x 11 x 11 nodes, numbered from 0 as the generator does.
            let start = "the matrix holds numbers that are not finite, the first at node ";
            assert!(message.starts_with(start), "{message}");
            assert!(message.contains(" in direction "), "{message}");
        }
    }
}

#[test]
fn matrices_that_are_not_positive_definite_are_refused() {
    for message in messages(&cube(), clamped, set_last_diagonal(-1.0)) {
        assert!(message.contains("not positive definite"), "{message}");
    }
}

#[test]
fn a_floating_body_is_refused() {
    for message in messages(&cube(), |_| false, |_, _| ()) {
        let is_clear = message.contains("no positive pivot at node")
            || message.contains("something moves without resistance")
            || message.contains("is the model restrained");
        assert!(is_clear, "{message}");
    }
}
