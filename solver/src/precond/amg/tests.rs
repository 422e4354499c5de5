//! Multigrid as a whole: iterations on problems of different shapes, symmetry, bits, bad matrices.

use super::replicate::{replicate, replicate_vector};
use super::transfer::Transfer;
use super::{Amg, AmgOptions, NodeData};
use crate::analysis::corner_parents::corner_parents;
use crate::assembly::test_models::{POISSON, YOUNG, model, split};
use crate::assembly::{Pattern, assemble_stiffness, constrain};
use crate::krylov::{CgOptions, SolveReport, System, conjugate_gradients};
use crate::linalg::sample::{both_halves, distribute, laplace_grid, noise, to_sprs};
use crate::linalg::{BlockCsr, DistMatrix, LinearOperator, Preconditioner, vector};
use crate::model::{Material, Model};
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
pub(super) struct Problem {
    pub(super) cell_type: CellType,
    pub(super) size: [f64; 3],
    pub(super) cells: [usize; 3],
    /// Stiffness of the material of cells whose centroid lies in every other slab of this thickness along x.
    pub(super) stiff_slabs: Option<(f64, f64)>,
    pub(super) n_bodies: usize,
}

impl Problem {
    pub(super) fn cube(n: usize) -> Self {
        Self::boxed(CellType::Hex8, [1.0; 3], [n; 3])
    }

    pub(super) fn boxed(cell_type: CellType, size: [f64; 3], cells: [usize; 3]) -> Self {
        Problem {
            cell_type,
            size,
            cells,
            stiff_slabs: None,
            n_bodies: 1,
        }
    }

    pub(super) fn mesh(&self) -> Mesh {
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
pub(super) struct Prepared {
    pub(super) matrix: DistMatrix<3>,
    pub(super) amg: Amg<3, 6>,
    /// Prescribed degrees of freedom, owned or not.
    pub(super) fixed: Vec<u32>,
}

/// Collective. Assembles and sets up.
pub(super) fn prepare(comm: &Comm, problem: &Problem, mesh: &Mesh) -> Prepared {
    let mut model = model(split(comm, mesh));
    let mesh = &model.mesh;
    let fixed = |node: &usize| mesh.coords[*node][0].abs() < 1e-12;
    let dofs = (0..mesh.nodes.n_local())
        .filter(fixed)
        .flat_map(|n| (0..3).map(move |c| 3 * n + c));
    model.fixed = dofs.map(|dof| (dof as u32, 0.0)).collect();
    if let Some((thickness, factor)) = problem.stiff_slabs {
        let stiff = Material::isotropic("stiff", factor * YOUNG, POISSON, 0.0);
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
    set_up(comm, &model)
}

/// Collective. Assembles a model and sets up.
pub(super) fn set_up(comm: &Comm, model: &Model) -> Prepared {
    let (pattern, mut rows) = Pattern::new(&model.mesh).expect("few neighbors");
    assemble_stiffness(comm, model, &pattern, &mut rows).expect("valid elements");
    let mesh = &model.mesh;
    let n = mesh.nodes.n_owned();
    constrain(
        pattern.slabs(),
        &model.fixed,
        &mut rows,
        &mut vec![0.0; 3 * n],
    );
    let matrix = DistMatrix::new(comm, mesh.nodes.clone(), rows.lower, rows.ghost);
    let fixed: Vec<u32> = model.fixed.iter().map(|(dof, _)| *dof).collect();
    let near_nullspace = rigid_body_modes(comm, &mesh.coords[..n], fixed.iter().copied(), &[]);
    let parents = corner_parents(comm, mesh);
    let nodes = NodeData {
        near_nullspace,
        parents: parents.as_deref(),
    };
    let amg = Amg::new(comm, &matrix, nodes, &AmgOptions::default()).expect("positive definite");
    Prepared { matrix, amg, fixed }
}

/// Collective. Solves for the same force on every free degree of freedom of a direction.
pub(super) fn solve_for_a_smooth_load(comm: &Comm, prepared: Prepared) -> SolveReport {
    let Prepared {
        matrix,
        mut amg,
        fixed,
    } = prepared;
    let forces = [0.1, 1.0, -0.3];
    let mut b: Vec<f64> = (0..matrix.n_owned()).map(|i| forces[i % 3]).collect();
    for dof in fixed {
        if let Some(force) = b.get_mut(dof as usize) {
            *force = 0.0;
        }
    }
    solve(comm, &matrix, &mut amg, &b)
}

/// Collective. Solves to 1e-8, or to the rounding limit, without a change on the way.
pub(super) fn solve<const B: usize>(
    comm: &Comm,
    matrix: &DistMatrix<B>,
    preconditioner: &mut dyn Preconditioner,
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
        window: 50,
        ..CgOptions::default()
    };
    let mut x = vec![0.0; b.len()];
    let report = conjugate_gradients(comm, system, b, &mut x, &options, &mut |_| ());
    let report = report.expect("positive definite");
    assert!(
        report.converged && report.changes.is_empty(),
        "{} after {}: {:?}",
        report.true_residual,
        report.iterations,
        report.changes
    );
    report
}

#[test]
fn the_cycle_is_symmetric_and_positive() {
    let problem = Problem::boxed(CellType::Hex8, [3.0, 1.0, 1.0], [18, 7, 6]);
    let mesh = problem.mesh();
    for n_ranks in 1..=4 {
        run_threads(n_ranks, |comm| {
            let Prepared { matrix, amg, .. } = prepare(comm, &problem, &mesh);
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
            let Prepared { matrix, amg, .. } = prepare(&comm, &problem, &mesh);
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
