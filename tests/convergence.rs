//! Manufactured solution: the error falls with the mesh as theory says, L2 by order p + 1 and energy by order p.
//!
//! The displacement is a sum of plane waves, u_i = a_i sin(k_i . x + phi_i), prescribed on the boundary of a distorted
//! box; the body force is minus the divergence of its stress, put on the nodes by quadrature here.

use crate::common::{POISSON, YOUNG, held_model, smooth_box};
use fem_io::case::{Method, SolverOptions};
use fem_mesh::comm::run_threads;
use fem_mesh::{CellType, Comm, Halo};
use fem_solve::analysis::linear_static::solve;
use fem_solve::element::geometry::{interpolate, point_geometry};
use fem_solve::element::{Purpose, Tabulation};
use fem_solve::log::Log;
use fem_solve::model::{Load, Model};

const AMPLITUDE: [f64; 3] = [1.0, -0.7, 0.5];
const WAVE: [[f64; 3]; 3] = [[2.0, 1.1, -0.6], [0.9, -1.7, 1.2], [-1.3, 0.8, 1.9]];
const PHASE: [f64; 3] = [0.3, 1.1, -0.4];

fn phase(i: usize, x: [f64; 3]) -> f64 {
    (0..3).map(|j| WAVE[i][j] * x[j]).sum::<f64>() + PHASE[i]
}

fn exact(x: [f64; 3]) -> [f64; 3] {
    [0, 1, 2].map(|i| AMPLITUDE[i] * phase(i, x).sin())
}

fn exact_gradient(x: [f64; 3]) -> [[f64; 3]; 3] {
    [0, 1, 2].map(|i| WAVE[i].map(|k| AMPLITUDE[i] * k * phase(i, x).cos()))
}

fn lame() -> (f64, f64) {
    (
        YOUNG * POISSON / ((1.0 + POISSON) * (1.0 - 2.0 * POISSON)),
        YOUNG / (2.0 * (1.0 + POISSON)),
    )
}

/// Minus the divergence of the stress: -(lambda + mu) grad div u - mu laplace u.
fn body_force(x: [f64; 3]) -> [f64; 3] {
    let (lambda, mu) = lame();
    let second = |j: usize| -AMPLITUDE[j] * phase(j, x).sin();
    [0, 1, 2].map(|i| {
        let grad_div: f64 = (0..3).map(|j| second(j) * WAVE[j][j] * WAVE[j][i]).sum();
        let laplace: f64 = second(i) * WAVE[i].iter().map(|k| k * k).sum::<f64>();
        -(lambda + mu) * grad_div - mu * laplace
    })
}

/// Calls `visit` with every quadrature point (weight times volume, position, shape, gradients) of a local cell.
fn for_each_point(
    model: &Model,
    cell: usize,
    mut visit: impl FnMut(f64, [f64; 3], &[f64], &[[f64; 3]]),
) {
    let mesh = &model.mesh;
    let cell_type = mesh.cells.types[cell];
    let mut coords = vec![[0.0; 3]; cell_type.n_nodes()];
    mesh.gather_coords(cell, &mut coords);
    // Errors of exact polynomials need more points than loads: the rule of the stiffness is added where it has more.
    let table = [Purpose::Load, Purpose::Stiffness]
        .map(|purpose| Tabulation::of(cell_type, purpose))
        .into_iter()
        .max_by_key(|t| t.n_points())
        .unwrap();
    for (q, point) in table.points.iter().enumerate() {
        let geometry = point_geometry(&coords, table.grad(q));
        let x = interpolate(&coords, table.shape(q));
        visit(
            point.weight * geometry.det_jac,
            x,
            table.shape(q),
            &geometry.grad,
        );
    }
}

fn add_body_force(model: &mut Model) {
    let n_owned = model.mesh.nodes.n_owned();
    let mut force = vec![[0.0; 3]; model.mesh.nodes.n_local()];
    for cell in 0..model.mesh.n_cells() {
        let nodes = model.mesh.cells.nodes_of(cell).to_vec();
        for_each_point(model, cell, |volume, x, shape, _| {
            let b = body_force(x);
            for (&node, n) in nodes.iter().zip(shape) {
                (0..3).for_each(|i| force[node as usize][i] += volume * n * b[i]);
            }
        });
    }
    let loads = (0..n_owned).map(|n| Load::NodalForce {
        nodes: vec![n as u32],
        force: force[n],
    });
    model.loads = loads.collect();
}

/// L2 error of the displacement and energy error, over all ranks.
fn errors(comm: &Comm, model: &Model, u: &[f64]) -> [f64; 2] {
    let (lambda, mu) = lame();
    let mut squares = [0.0, 0.0];
    for cell in 0..model.mesh.n_owned_cells {
        let nodes = model.mesh.cells.nodes_of(cell);
        let nodal: Vec<[f64; 3]> = nodes
            .iter()
            .map(|&n| [0, 1, 2].map(|i| u[3 * n as usize + i]))
            .collect();
        for_each_point(model, cell, |volume, x, shape, grads| {
            let difference = interpolate(&nodal, shape);
            let wanted = exact(x);
            squares[0] += volume
                * (0..3)
                    .map(|i| (difference[i] - wanted[i]).powi(2))
                    .sum::<f64>();
            let mut e = exact_gradient(x).map(|row| row.map(|v| -v));
            for (value, grad) in nodal.iter().zip(grads) {
                (0..3).for_each(|i| (0..3).for_each(|j| e[i][j] += value[i] * grad[j]));
            }
            let trace = e[0][0] + e[1][1] + e[2][2];
            let strain: f64 = (0..9)
                .map(|k| (0.5 * (e[k / 3][k % 3] + e[k % 3][k / 3])).powi(2))
                .sum();
            squares[1] += volume * (lambda * trace * trace + 2.0 * mu * strain);
        });
    }
    comm.sum_into(&mut squares);
    squares.map(f64::sqrt)
}

fn solve_and_measure(cell_type: CellType, n: usize, n_ranks: usize) -> [f64; 2] {
    let result = std::sync::Mutex::new([0.0; 2]);
    run_threads(n_ranks, |comm| {
        let mut model = held_model(smooth_box(comm, cell_type, n), exact);
        add_body_force(&mut model);
        let halo = Halo::new(comm, &model.mesh.nodes);
        let options = SolverOptions {
            method: Method::Cg,
            tolerance: 1e-11,
            ..SolverOptions::default()
        };
        let solution = solve(comm, &model, &halo, &options, &mut Log::new(false)).unwrap();
        let found = errors(comm, &model, &solution.displacement);
        if comm.is_root() {
            *result.lock().unwrap() = found;
        }
    });
    result.into_inner().unwrap()
}

#[test]
fn errors_fall_at_the_rate_of_the_element() {
    for (cell_type, n) in [
        (CellType::Hex8, 8),
        (CellType::Wedge6, 8),
        (CellType::Tet4, 10),
        (CellType::Pyramid5, 7),
        (CellType::Hex20, 5),
        (CellType::Tet10, 5),
        (CellType::Pyramid13, 4),
        (CellType::Wedge15, 4),
        (CellType::Hex27, 4),
    ] {
        let coarse = solve_and_measure(cell_type, n, 1);
        let fine = solve_and_measure(cell_type, 2 * n, 3);
        let rates = [0, 1].map(|k| (coarse[k] / fine[k]).log2());
        println!(
            "{cell_type}: L2 {:.3}, energy {:.3}; errors {fine:?}",
            rates[0], rates[1]
        );
        let order = cell_type.order() as f64;
        assert!(
            (rates[0] - (order + 1.0)).abs() < 0.1,
            "{cell_type}: L2 rate {}",
            rates[0]
        );
        assert!(
            (rates[1] - order).abs() < 0.1,
            "{cell_type}: energy rate {}",
            rates[1]
        );
    }
}
