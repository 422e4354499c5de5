//! Patch tests: a linear displacement field on distorted cells of every type and formulation is solved exactly, on 1
//! to 4 ranks.
//!
//! MacNeal and Harder, Finite Elem. Anal. Des. 1 (1985) 3-20: the field is prescribed on the boundary only, the
//! interior follows; strain, stress, energy and reactions are those of the constant state.

use crate::common::{held_model, jiggled_box, root};
use fem_io::case::{Method, SolverOptions};
use fem_mesh::comm::run_threads;
use fem_mesh::{CellType, Comm, Halo, Mesh, PartitionOptions, distribute_whole};
use fem_solve::analysis::linear_static::solve;
use fem_solve::element::Formulation;
use fem_solve::element::formulation::is_available;
use fem_solve::log::Log;
use fem_solve::model::Model;

/// Displacement gradient of the field.
const GRADIENT: [[f64; 3]; 3] = [[1e-3, 4e-4, -2e-4], [3e-4, -5e-4, 6e-4], [1e-4, 2e-4, 8e-4]];

fn field(x: [f64; 3]) -> [f64; 3] {
    GRADIENT.map(|row| row[0] * x[0] + row[1] * x[1] + row[2] * x[2])
}

/// Stress of the constant strain for E = 1e6, nu = 0.25: lambda = mu = 4e5.
fn exact_stress() -> [f64; 6] {
    let (g, modulus) = (GRADIENT, 4e5);
    let trace = g[0][0] + g[1][1] + g[2][2];
    let normal = |i: usize| modulus * (trace + 2.0 * g[i][i]);
    let shear = |i: usize, j: usize| modulus * (g[i][j] + g[j][i]);
    [
        normal(0),
        normal(1),
        normal(2),
        shear(0, 1),
        shear(1, 2),
        shear(2, 0),
    ]
}

/// Solves with the field on the boundary and compares displacement, stress, energy and balance with the exact ones.
fn check(comm: &Comm, model: &Model, method: Method, context: &str) {
    let halo = Halo::new(comm, &model.mesh.nodes);
    let options = SolverOptions {
        method,
        tolerance: 1e-13,
        ..SolverOptions::default()
    };
    let solution = solve(comm, model, &halo, &options, &mut Log::new(false)).unwrap();
    let nodes = model.mesh.coords.iter();
    for (x, u) in nodes.zip(solution.displacement.chunks(3)) {
        for (found, exact) in u.iter().zip(field(*x)) {
            assert!(
                (found - exact).abs() < 1e-10 * 1e-3,
                "{context}: {found} for {exact}"
            );
        }
    }
    let exact = exact_stress();
    for node in 0..model.mesh.nodes.n_local() {
        for &material in solution.tensors.materials_of(node) {
            let stress = solution.tensors.stress_at(node, material);
            for (found, exact) in stress.iter().zip(exact) {
                assert!(
                    (found - exact).abs() < 1e-10 * 2000.0,
                    "{context}: {found} for {exact}"
                );
            }
        }
    }
    // Half of stress times strain times the volume of 1.
    let g = GRADIENT;
    let strain = [
        g[0][0],
        g[1][1],
        g[2][2],
        g[0][1] + g[1][0],
        g[1][2] + g[2][1],
        g[2][0] + g[0][2],
    ];
    let energy: f64 = exact.iter().zip(strain).map(|(s, e)| 0.5 * s * e).sum();
    assert!(
        (solution.totals.strain_energy - energy).abs() < 1e-10 * energy,
        "{context}"
    );
    assert!(solution.totals.balance_error < 1e-12, "{context}");
}

#[test]
fn constant_strain_is_exact_in_every_cell_type_by_both_methods() {
    for cell_type in CellType::SOLIDS {
        for method in [Method::Direct, Method::Cg] {
            for n_ranks in 1..=4 {
                run_threads(n_ranks, |comm| {
                    let model = held_model(jiggled_box(comm, cell_type, 3, 0.12), field);
                    let context = format!("{cell_type} by {method:?} on {n_ranks} ranks");
                    check(comm, &model, method, &context);
                });
            }
        }
    }
}

#[test]
fn constant_strain_is_exact_in_every_formulation() {
    for (_, formulation) in Formulation::NAMES {
        for cell_type in CellType::SOLIDS {
            if formulation == Formulation::Full || !is_available(cell_type, formulation) {
                continue;
            }
            for n_ranks in 1..=4 {
                run_threads(n_ranks, |comm| {
                    let mut model = held_model(jiggled_box(comm, cell_type, 3, 0.12), field);
                    model.cell_formulation.fill(formulation);
                    let context = format!("{cell_type} {formulation:?} on {n_ranks} ranks");
                    check(comm, &model, Method::Cg, &context);
                });
            }
        }
    }
}

/// The seven hexahedra of MacNeal and Harder: V01 of their patch tests.
#[test]
fn macneals_seven_hexahedra_pass_in_every_formulation() {
    let file = root().join("cases/patch-hex8/patch-hex8.msh");
    let mesh = fem_io::mesh_file::read(&file).unwrap().mesh;
    for (_, formulation) in Formulation::NAMES {
        for n_ranks in [1, 3] {
            run_threads(n_ranks, |comm| {
                let whole = if comm.is_root() {
                    mesh.clone()
                } else {
                    Mesh::default()
                };
                let options = PartitionOptions::default();
                let local = distribute_whole(comm, whole, &options).unwrap().0;
                let mut model = held_model(local, field);
                model.cell_formulation.fill(formulation);
                let context = format!("{formulation:?} on {n_ranks} ranks");
                check(comm, &model, Method::Direct, &context);
            });
        }
    }
}
