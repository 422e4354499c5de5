//! How fast multigrid converges: iterations to 1e-8, and the mean factor of an iteration on the residual, on problems of
//! different shapes, elements and materials, in serial and on several ranks.

use super::tests::{Prepared, Problem, prepare, set_up, solve, solve_for_a_smooth_load};
use super::{Amg, AmgOptions, NodeData};
use crate::assembly::test_models::{distorted_box, mixed_mesh, model};
use crate::krylov::SolveReport;
use crate::linalg::sample::{distribute, laplace_grid, noise, owned_rows};
use crate::linalg::{BlockCsr, LinearOperator};
use fem_mesh::comm::run_threads;
use fem_mesh::{
    CellType, Comm, LocalMesh, Mesh, PartitionMethod, PartitionOptions, distribute_whole,
};
use std::path::Path;

/// What a problem may take.
#[derive(Clone, Copy)]
struct Limits {
    iterations: usize,
    /// Geometric mean over the iterations of the factor on the residual.
    factor: f64,
}

fn mean_factor(report: &SolveReport) -> f64 {
    let last = report.history.last().copied().unwrap_or(1.0);
    last.powf(1.0 / report.iterations as f64)
}

/// Holds what `run` finds on each number of ranks against the limits; returns the most iterations.
fn check(
    name: &str,
    ranks: &[usize],
    limits: Limits,
    run: impl Fn(&Comm) -> SolveReport + Sync,
) -> usize {
    let most = std::sync::atomic::AtomicUsize::new(0);
    for &n_ranks in ranks {
        run_threads(n_ranks, |comm| {
            let report = run(comm);
            let (n, factor) = (report.iterations, mean_factor(&report));
            let text = format!("{name}: {n} iterations, factor {factor:.3} on {n_ranks} ranks");
            if comm.is_root() {
                println!("{text}");
            }
            assert!(n <= limits.iterations && factor <= limits.factor, "{text}");
            most.fetch_max(n, std::sync::atomic::Ordering::Relaxed);
        });
    }
    most.into_inner()
}

/// [`check`] of a box.
fn check_box(
    name: &str,
    problem: Problem,
    ranks: &[usize],
    iterations: usize,
    factor: f64,
) -> usize {
    let mesh = problem.mesh();
    let run = |comm: &Comm| solve_for_a_smooth_load(comm, prepare(comm, &problem, &mesh));
    check(name, ranks, Limits { iterations, factor }, run)
}

fn hex8(size: [f64; 3], cells: [usize; 3]) -> Problem {
    Problem::boxed(CellType::Hex8, size, cells)
}

#[test]
fn iterations_hardly_grow_when_n_doubles() {
    let n_iterations = [8, 16, 32]
        .map(|n| check_box(&format!("cube of {n}"), Problem::cube(n), &[1, 2], 18, 0.32));
    for pair in n_iterations.windows(2) {
        assert!(pair[1] <= pair[0] + 3, "{n_iterations:?}");
    }
    check_box("cube of 12", Problem::cube(12), &[1, 2, 3, 4], 18, 0.32);
    let beams = [1, 2].map(|n| {
        let beam = hex8([40.0, 1.0, 1.0], [120 * n, 3 * n, 3 * n]);
        check_box(&format!("beam 40:1, {n}"), beam, &[1], 36, 0.6)
    });
    assert!(beams[1] <= beams[0] + 6, "{beams:?}");
}

#[test]
fn second_order_elements_are_coarsened_to_their_corners() {
    let tet10 = Problem::boxed(CellType::Tet10, [1.0, 1.0, 2.0], [5, 5, 9]);
    check_box("tet10", tet10, &[1, 2, 3, 4], 26, 0.5);
    let hex20 = Problem::boxed(CellType::Hex20, [1.0; 3], [6, 6, 6]);
    check_box("hex20", hex20, &[1, 3], 26, 0.5);
}

#[test]
fn distorted_elements_of_every_type_are_borne() {
    let solve_mesh = |comm: &Comm, mesh: &Mesh| {
        let problem = Problem::cube(1);
        solve_for_a_smooth_load(comm, prepare(comm, &problem, mesh))
    };
    for cell_type in CellType::SOLIDS {
        let mesh = distorted_box(cell_type, [6, 5, 7], false);
        let limits = Limits {
            iterations: if cell_type.order() == 1 { 26 } else { 32 },
            factor: if cell_type.order() == 1 { 0.5 } else { 0.56 },
        };
        let name = format!("distorted {}", cell_type.name());
        check(&name, &[1, 2, 3, 4], limits, |comm| solve_mesh(comm, &mesh));
    }
    let limits = Limits {
        iterations: 20,
        factor: 0.4,
    };
    let mesh = mixed_mesh();
    check("mixed elements", &[1, 2, 3, 4], limits, |comm| {
        solve_mesh(comm, &mesh)
    });
}

#[test]
fn slender_and_flat_bodies_are_borne() {
    let beam = hex8([40.0, 1.0, 1.0], [120, 3, 3]);
    check_box("beam 40:1", beam, &[1, 2, 3, 4], 36, 0.6);
    let plate = hex8([10.0, 0.2, 10.0], [40, 1, 40]);
    check_box("thin plate", plate, &[1, 2, 3, 4], 70, 0.77);
}

#[test]
fn jumps_of_the_material_are_borne() {
    let beam = hex8([10.0, 1.0, 1.0], [60, 6, 6]);
    let jumps = |thickness, factor| Problem {
        stiff_slabs: Some((thickness, factor)),
        ..beam
    };
    check_box("two materials", jumps(1.25, 1e3), &[1, 2, 3, 4], 30, 0.5);
    // The residual ends at rounding level, which spoils the mean.
    check_box("a jump of 1e6", jumps(5.0, 1e6), &[1, 2, 3, 4], 36, 0.67);
}

#[test]
fn several_bodies_and_ranks_with_little_are_borne() {
    let bodies = Problem {
        n_bodies: 3,
        ..Problem::cube(7)
    };
    check_box("three bodies", bodies, &[1, 2, 3, 4], 16, 0.3);
    // Most ranks have clamped nodes only, or next to nothing.
    let layer = hex8([1.0, 9.0, 9.0], [1, 9, 9]);
    check_box("one layer", layer, &[1, 2, 3, 4], 12, 0.15);
    check_box("one cell", hex8([1.0; 3], [1; 3]), &[1, 4], 10, 0.1);
}

/// Collective. The bracket of the prebuilt cases on this rank, its bolts clamped.
fn bracket(comm: &Comm, whole: &Mesh) -> Prepared {
    let whole = if comm.is_root() {
        whole.clone()
    } else {
        Mesh::default()
    };
    let options = PartitionOptions {
        method: PartitionMethod::Rcb,
        ..PartitionOptions::default()
    };
    let (local, _): (LocalMesh, _) = distribute_whole(comm, whole, &options).expect("a sound mesh");
    let mut model = model(local);
    let mesh = &model.mesh;
    let faces = mesh.sets.faces["bolts"].iter();
    let mut nodes: Vec<u32> = faces.flat_map(|&f| mesh.cells.nodes_of_face(f).1).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let dofs = nodes.iter().flat_map(|&n| (0..3).map(move |c| 3 * n + c));
    model.fixed = dofs.map(|dof| (dof, 0.0)).collect();
    set_up(comm, &model)
}

#[test]
fn the_bracket_is_solved_in_few_iterations() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cases/bracket/bracket.msh");
    let whole = fem_io::mesh_file::read(&path).expect("a sound file").mesh;
    let limits = Limits {
        iterations: 34,
        factor: 0.58,
    };
    check("bracket", &[1, 3], limits, |comm| {
        solve_for_a_smooth_load(comm, bracket(comm, &whole))
    });
}

#[test]
fn heat_needs_the_constant_mode_only() {
    for n in [16, 32] {
        let a = laplace_grid(n);
        let limits = Limits {
            iterations: 13,
            factor: 0.22,
        };
        check(&format!("heat, {n}"), &[1, 2, 3, 4], limits, |comm| {
            let matrix = distribute(comm, &a);
            let near_nullspace = vec![[[1.0]]; matrix.map().n_owned()];
            let nodes = NodeData {
                near_nullspace,
                parents: None,
            };
            let mut amg = Amg::new(comm, &matrix, nodes, &AmgOptions::default()).expect("definite");
            assert!(amg.report().levels.len() >= 2);
            solve(comm, &matrix, &mut amg, &vec![1.0; matrix.n_owned()])
        });
    }
}

/// Stiffness of an n x n grid of bilinear squares in plane strain (E = 1, nu = 0.3), clamped at x = 0, by 2 x 2 Gauss
/// points, and the three rigid motions at its nodes.
fn plane_strain(n: usize) -> (BlockCsr<f64, 2>, Vec<[[f64; 3]; 2]>) {
    let (lambda, mu) = (0.3 / (1.3 * 0.4), 1.0 / 2.6);
    let corners = [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]];
    let mut k = [[[[0.0f64; 2]; 2]; 4]; 4];
    for gauss in corners.map(|c: [f64; 2]| c.map(|c| c / 3.0f64.sqrt())) {
        // Unit squares: d/dx = 2 d/dxi, and a point has the weight 1/4.
        let grad =
            corners.map(|c| [0, 1].map(|i: usize| 0.5 * c[i] * (1.0 + c[1 - i] * gauss[1 - i])));
        for (a, b) in (0..16).map(|ab| (ab / 4, ab % 4)) {
            let dot = grad[a][0] * grad[b][0] + grad[a][1] * grad[b][1];
            for (i, j) in (0..4).map(|ij| (ij / 2, ij % 2)) {
                let same = if i == j { dot } else { 0.0 };
                let value =
                    lambda * grad[a][i] * grad[b][j] + mu * (grad[a][j] * grad[b][i] + same);
                k[a][b][i][j] += 0.25 * value;
            }
        }
    }
    let node = |i: usize, j: usize| i * (n + 1) + j;
    let mut blocks = Vec::new();
    for (i, j) in (0..n * n).map(|c| (c / n, c % n)) {
        let nodes = [
            node(i, j),
            node(i + 1, j),
            node(i + 1, j + 1),
            node(i, j + 1),
        ];
        for (a, b) in (0..16).map(|ab| (ab / 4, ab % 4)) {
            let is_free = nodes[a] > n && nodes[b] > n;
            let block = match (is_free, a == b) {
                (true, _) => k[a][b],
                (false, true) => [[1.0, 0.0], [0.0, 1.0]],
                (false, false) => [[0.0; 2]; 2],
            };
            blocks.push((nodes[a] as u32, nodes[b] as u32, block));
        }
    }
    let modes = (0..(n + 1) * (n + 1)).map(|at| {
        let (x, y) = (
            (at / (n + 1)) as f64 / n as f64,
            (at % (n + 1)) as f64 / n as f64,
        );
        if at <= n {
            [[0.0; 3]; 2]
        } else {
            [[1.0, 0.0, -y], [0.0, 1.0, x]]
        }
    });
    let n_nodes = (n + 1) * (n + 1);
    (
        BlockCsr::from_blocks(n_nodes, n_nodes, blocks),
        modes.collect(),
    )
}

#[test]
fn plane_strain_has_three_modes() {
    for n in [24, 48, 96] {
        let (a, modes) = plane_strain(n);
        let limits = Limits {
            iterations: 19,
            factor: 0.36,
        };
        check(
            &format!("plane strain, {n}"),
            &[1, 2, 3, 4],
            limits,
            |comm| {
                let matrix = distribute(comm, &a);
                let rows = owned_rows(comm, a.n_rows);
                let nodes = NodeData {
                    near_nullspace: modes[rows.clone()].to_vec(),
                    parents: None,
                };
                let mut amg = Amg::<2, 3>::new(comm, &matrix, nodes, &AmgOptions::default())
                    .expect("definite");
                assert!(amg.report().levels.len() >= 2 || n == 24);
                let force = |row: usize| if row > n { [0.1, 1.0] } else { [0.0; 2] };
                let b: Vec<f64> = rows.flat_map(force).collect();
                solve(comm, &matrix, &mut amg, &b)
            },
        );
    }
}

#[test]
fn stronger_smoothing_takes_fewer_iterations() {
    use crate::linalg::Preconditioner;
    let problem = hex8([10.0, 0.2, 10.0], [40, 1, 40]);
    let mesh = problem.mesh();
    for n_ranks in [1, 3] {
        run_threads(n_ranks, |comm| {
            let one = solve_for_a_smooth_load(comm, prepare(comm, &problem, &mesh));
            let mut prepared = prepare(comm, &problem, &mesh);
            let how = prepared.amg.strengthen();
            assert_eq!(how.as_deref(), Some("2 smoothing sweeps a level"));
            assert_eq!(prepared.amg.strengthen(), None);
            let two = solve_for_a_smooth_load(comm, prepared);
            assert!(
                two.iterations < one.iterations,
                "{} {}",
                two.iterations,
                one.iterations
            );
        });
    }
}

#[test]
fn a_stronger_cycle_is_symmetric_too() {
    use crate::linalg::{Preconditioner, vector};
    let problem = Problem::boxed(CellType::Hex20, [2.0, 1.0, 1.0], [8, 5, 5]);
    let mesh = problem.mesh();
    for n_ranks in 1..=3 {
        run_threads(n_ranks, |comm| {
            let Prepared {
                matrix, mut amg, ..
            } = prepare(comm, &problem, &mesh);
            amg.strengthen();
            let n = matrix.n_owned();
            let [x, y] = [3, 77].map(|seed| noise(n, seed + comm.rank() as u64));
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
