//! Multigrid as a whole: iterations on problems of different shapes, symmetry, bits, bad matrices.

use super::replicate::{replicate, replicate_vector};
use super::transfer::Transfer;
use super::{Amg, AmgOptions, NodeData};
use crate::analysis::corner_parents::corner_parents;
use crate::assembly::test_models::{model, split};
use crate::assembly::{Pattern, assemble_stiffness, constrain};
use crate::krylov::{CgOptions, SolveReport, System, conjugate_gradients};
use crate::linalg::sample::{both_halves, distribute, laplace_grid, noise, to_sprs};
use crate::linalg::{BlockCsr, DistMatrix, LinearOperator, vector};
use crate::model::Material;
use crate::precond::rigid_body_modes;
use fem_mesh::comm::run_threads;
use fem_mesh::generate::{BoxMesh, generate_slice};
use fem_mesh::{CellType, Comm, IndexMap, Mesh, Result};
use nalgebra::DMatrix;

/// Collective. The whole matrix.
pub(super) fn dense<const B: usize>(comm: &Comm, a: &DistMatrix<B>) -> DMatrix<f64> {
    let values = to_sprs(&both_halves(&replicate(comm, a))).to_dense();
    DMatrix::from_fn(values.nrows(), values.ncols(), |i, j| values[(i, j)])
}

/// Collective. The whole of an interpolation from nodes distributed as `coarse` says, column by column; checks that
/// restriction is its transpose.
pub(super) fn dense_columns<const B: usize, const C: usize>(
    comm: &Comm,
    transfer: &impl Transfer<B, C>,
    coarse: &IndexMap,
    n_fine: usize,
) -> DMatrix<f64> {
    assert_eq!(transfer.n_coarse(), coarse.n_owned());
    let n_columns = coarse.n_global() as usize * C;
    let seed = noise(n_fine * B, 9 + comm.rank() as u64);
    let r: Vec<[f32; B]> = seed
        .as_chunks::<B>()
        .0
        .iter()
        .map(|r| r.map(|v| v as f32))
        .collect();
    let mut restricted = vec![[0.0; C]; coarse.n_owned()];
    transfer.restrict(comm, &r, &mut restricted);
    let whole_r = replicate_vector(comm, &r);
    let whole_restricted = replicate_vector(comm, &restricted);
    let mut columns = Vec::new();
    for column in 0..n_columns {
        let mut x = vec![[0.0; C]; coarse.n_owned()];
        if let Some(row) = (column / C).checked_sub(coarse.offset() as usize)
            && row < x.len()
        {
            x[row][column % C] = 1.0;
        }
        let mut fine = vec![[0.0; B]; n_fine];
        transfer.prolong(comm, &x, &mut fine);
        let fine = replicate_vector(comm, &fine);
        let product: f32 = fine
            .as_flattened()
            .iter()
            .zip(whole_r.as_flattened())
            .map(|(p, r)| p * r)
            .sum();
        assert!((product - whole_restricted.as_flattened()[column]).abs() < 1e-4);
        columns.extend(fine.as_flattened().iter().map(|v| f64::from(*v)));
    }
    let n_rows = whole_r.len() * B;
    DMatrix::from_vec(n_rows, n_columns, columns)
}

/// A box clamped at x = 0, or several of them.
#[derive(Clone, Copy)]
struct Problem {
    cell_type: CellType,
    size: [f64; 3],
    cells: [usize; 3],
    /// Stiffness of the material of cells whose centroid lies in every other slab of this thickness along x.
    stiff_slabs: Option<(f64, f64)>,
    n_bodies: usize,
}

impl Problem {
    fn cube(n: usize) -> Self {
        Self::boxed(CellType::Hex8, [1.0; 3], [n; 3])
    }

    fn boxed(cell_type: CellType, size: [f64; 3], cells: [usize; 3]) -> Self {
        Problem {
            cell_type,
            size,
            cells,
            stiff_slabs: None,
            n_bodies: 1,
        }
    }

    fn mesh(&self) -> Mesh {
        let Problem {
            cell_type,
            size,
            cells,
            ..
        } = *self;
        let spec = BoxMesh {
            size,
            cells,
            cell_type,
            origin: [0.0; 3],
        };
        let one = generate_slice(&spec, &Comm::alone(), None).expect("a valid box");
        let mut mesh = one.clone();
        for body in 1..self.n_bodies {
            let shift = 2.0 * body as f64 * size[1];
            let first = mesh.n_nodes() as u32;
            mesh.coords
                .extend(one.coords.iter().map(|x| [x[0], x[1] + shift, x[2]]));
            for cell in 0..one.n_cells() {
                let nodes: Vec<u32> = one.cells.nodes_of(cell).iter().map(|n| n + first).collect();
                mesh.cells.push(cell_type, &nodes);
            }
        }
        mesh.node_ids = (0..mesh.n_nodes() as u64).collect();
        mesh.cell_ids = (0..mesh.n_cells() as u64).collect();
        mesh.sets = Default::default();
        mesh
    }
}

/// A distributed system with its preconditioner.
struct Prepared {
    matrix: DistMatrix<3>,
    amg: Amg<3, 6>,
}

/// Collective. Assembles and sets up.
fn prepare(comm: &Comm, problem: &Problem, mesh: &Mesh) -> Prepared {
    let mut model = model(split(comm, mesh));
    let mesh = &model.mesh;
    let fixed = |node: &usize| mesh.coords[*node][0].abs() < 1e-12;
    let dofs = (0..mesh.nodes.n_local())
        .filter(fixed)
        .flat_map(|n| (0..3).map(move |c| 3 * n + c));
    model.fixed = dofs.map(|dof| (dof as u32, 0.0)).collect();
    if let Some((thickness, factor)) = problem.stiff_slabs {
        let stiff = Material {
            young: factor * model.materials[0].young,
            ..model.materials[0].clone()
        };
        model.materials.push(stiff);
        for cell in 0..mesh.n_cells() {
            let nodes = mesh.cells.nodes_of(cell);
            let x = nodes
                .iter()
                .map(|&n| mesh.coords[n as usize][0])
                .sum::<f64>()
                / nodes.len() as f64;
            model.cell_material[cell] = (x / thickness) as u16 % 2;
        }
    }
    let (pattern, mut rows) = Pattern::new(&model.mesh).expect("few neighbors");
    assemble_stiffness(comm, &model, &pattern, &mut rows).expect("valid elements");
    let mesh = &model.mesh;
    let n = mesh.nodes.n_owned();
    constrain(
        pattern.slabs(),
        &model.fixed,
        &mut rows,
        &mut vec![0.0; 3 * n],
    );
    let matrix = DistMatrix::new(comm, mesh.nodes.clone(), rows.lower, rows.ghost);
    let fixed = model.fixed.iter().map(|(dof, _)| *dof);
    let near_nullspace = rigid_body_modes(comm, &mesh.coords[..n], fixed);
    let parents = corner_parents(comm, mesh);
    let nodes = NodeData {
        near_nullspace,
        parents: parents.as_deref(),
    };
    let amg = Amg::new(comm, &matrix, nodes, &AmgOptions::default()).expect("positive definite");
    Prepared { matrix, amg }
}

/// Collective. Iterations to 1e-8 for a smooth and a rough right-hand side, free degrees of freedom only.
fn iterations(comm: &Comm, problem: &Problem, mesh: &Mesh) -> usize {
    let Prepared { matrix, amg } = prepare(comm, problem, mesh);
    let mut is_coupled = vec![false; matrix.n_owned()];
    for part in [matrix.lower(), matrix.ghost()] {
        for row in 0..part.n_rows {
            for k in part.row(row) {
                let column = part.columns[k] as usize;
                for (at, value) in part.block(k).iter().enumerate() {
                    let (i, j) = (3 * row + at / 3, 3 * column + at % 3);
                    let is_lower = std::ptr::eq(part, matrix.lower());
                    if *value != 0.0 && !(is_lower && i == j) {
                        is_coupled[i] = true;
                        if is_lower {
                            is_coupled[j] = true;
                        }
                    }
                }
            }
        }
    }
    let forces = [0.1, 1.0, -0.3];
    let b: Vec<f64> = (is_coupled.iter().enumerate())
        .map(|(i, &is_free)| if is_free { forces[i % 3] } else { 0.0 })
        .collect();
    solve(comm, &matrix, &amg, &b).iterations
}

/// Collective. Solves to 1e-8, or to the rounding limit.
fn solve<const B: usize>(
    comm: &Comm,
    matrix: &DistMatrix<B>,
    preconditioner: &dyn LinearOperator,
    b: &[f64],
) -> SolveReport {
    let system = System {
        matrix,
        preconditioner,
    };
    let options = CgOptions {
        tolerance: 1e-8,
        max_iterations: 200,
        matrix_norm: matrix.norm_inf(comm),
        flexible: true,
    };
    let mut x = vec![0.0; b.len()];
    let report = conjugate_gradients(comm, system, b, &mut x, &options, &mut |_, _| ());
    let report = report.expect("positive definite");
    assert!(
        report.converged,
        "{} after {}",
        report.true_residual, report.iterations
    );
    report
}

/// Checks that a problem takes at most `limit` iterations on each number of ranks.
fn check(name: &str, problem: Problem, ranks: &[usize], limit: usize) {
    let mesh = problem.mesh();
    for &n_ranks in ranks {
        run_threads(n_ranks, |comm| {
            let n = iterations(comm, &problem, &mesh);
            if comm.is_root() {
                println!("{name}: {n} iterations on {n_ranks} ranks");
            }
            assert!(n <= limit, "{name}: {n} iterations on {n_ranks} ranks");
        });
    }
}

#[test]
fn iterations_do_not_grow_with_the_model() {
    for n in [8, 16, 24] {
        check(&format!("cube of {n}"), Problem::cube(n), &[1, 2], 20);
    }
    check("cube of 12", Problem::cube(12), &[1, 2, 3, 4], 20);
}

#[test]
fn second_order_elements_are_coarsened_to_their_corners() {
    let tet10 = Problem::boxed(CellType::Tet10, [1.0, 1.0, 2.0], [5, 5, 9]);
    check("tet10", tet10, &[1, 2, 3, 4], 26);
    let hex20 = Problem::boxed(CellType::Hex20, [1.0; 3], [6, 6, 6]);
    check("hex20", hex20, &[1, 3], 26);
}

#[test]
fn shapes_and_materials_are_borne() {
    let hex8 = |size, cells| Problem::boxed(CellType::Hex8, size, cells);
    check(
        "slender beam",
        hex8([40.0, 1.0, 1.0], [120, 3, 3]),
        &[1, 4],
        36,
    );
    check(
        "thin plate",
        hex8([10.0, 0.2, 10.0], [40, 1, 40]),
        &[1, 3],
        70,
    );
    let beam = hex8([10.0, 1.0, 1.0], [60, 6, 6]);
    let jumps = |thickness, factor| Problem {
        stiff_slabs: Some((thickness, factor)),
        ..beam
    };
    check("two materials", jumps(1.25, 1e3), &[1, 2, 4], 30);
    check("a jump of 1e6", jumps(5.0, 1e6), &[1, 2], 36);
    check(
        "three bodies",
        Problem {
            n_bodies: 3,
            ..Problem::cube(7)
        },
        &[1, 4],
        20,
    );
    // Most ranks have clamped nodes only, or next to nothing.
    check("one layer", hex8([1.0, 9.0, 9.0], [1, 9, 9]), &[1, 4], 20);
    check("one cell", hex8([1.0; 3], [1; 3]), &[1, 4], 10);
}

#[test]
fn the_cycle_is_symmetric_and_positive() {
    let problem = Problem::boxed(CellType::Hex8, [3.0, 1.0, 1.0], [18, 7, 6]);
    let mesh = problem.mesh();
    for n_ranks in 1..=4 {
        run_threads(n_ranks, |comm| {
            let Prepared { matrix, amg } = prepare(comm, &problem, &mesh);
            let n = matrix.n_owned();
            let (x, y) = (
                noise(n, 3 + comm.rank() as u64),
                noise(n, 77 + comm.rank() as u64),
            );
            let (mut mx, mut my) = (vec![0.0; n], vec![0.0; n]);
            amg.apply(comm, &x, &mut mx);
            amg.apply(comm, &y, &mut my);
            let [xmx, ymy, xmy, ymx] =
                vector::dots(comm, [(&x, &mx), (&y, &my), (&x, &my), (&y, &mx)]);
            assert!(xmx > 0.0 && ymy > 0.0);
            let error = (xmy - ymx).abs() / (xmx * ymy).sqrt();
            assert!(error < 1e-5, "{error}");
        });
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let problem = Problem::boxed(CellType::Hex8, [1.0, 1.0, 2.0], [17, 17, 30]);
    let mesh = problem.mesh();
    let run = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(n_threads)
            .build();
        pool.expect("threads start").install(|| {
            let comm = Comm::alone();
            let Prepared { matrix, amg } = prepare(&comm, &problem, &mesh);
            let x = noise(matrix.n_owned(), 1);
            let mut y = vec![0.0; x.len()];
            amg.apply(&comm, &x, &mut y);
            y
        })
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(3));
}

#[test]
fn scalar_problems_need_the_constant_mode_only() {
    let a = laplace_grid(16);
    for n_ranks in 1..=4 {
        run_threads(n_ranks, |comm| {
            let matrix = distribute(comm, &a);
            let near_nullspace = vec![[[1.0]]; matrix.map().n_owned()];
            let nodes = NodeData {
                near_nullspace,
                parents: None,
            };
            let amg = Amg::new(comm, &matrix, nodes, &AmgOptions::default()).expect("definite");
            assert!(amg.report().levels.len() >= 2);
            let report = solve(comm, &matrix, &amg, &vec![1.0; matrix.n_owned()]);
            assert!(report.iterations <= 16, "{}", report.iterations);
        });
    }
}

#[test]
fn bad_matrices_are_refused_on_every_rank() {
    let set_up = |comm: &Comm, a: &BlockCsr<f64, 1>| -> Result<()> {
        let matrix = distribute(comm, a);
        let near_nullspace = vec![[[1.0]]; matrix.map().n_owned()];
        let nodes = NodeData {
            near_nullspace,
            parents: None,
        };
        Amg::new(comm, &matrix, nodes, &AmgOptions::default()).map(|_| ())
    };
    for (value, part) in [
        (f64::NAN, "not positive definite"),
        (-1.0, "not positive definite"),
    ] {
        let mut a = laplace_grid(8);
        let k = a.find(300, 300).expect("a diagonal block");
        a.values[k] = value;
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let error = set_up(comm, &a).expect_err("refused");
                assert!(error.to_string().contains(part), "{error}");
            });
        }
    }
    let mut a = laplace_grid(8);
    for row in 0..a.n_rows {
        let k = a.find(row, row as u32).expect("a diagonal block");
        a.values[k] *= 0.2;
    }
    run_threads(2, |comm| {
        let error = set_up(comm, &a).expect_err("refused");
        assert!(
            error.to_string().contains("not positive definite"),
            "{error}"
        );
    });
}
