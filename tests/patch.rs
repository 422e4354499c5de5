//! Patch tests: a linear displacement field on distorted cells of every type is solved exactly, on 1 to 4 ranks.
//!
//! MacNeal and Harder, Finite Elem. Anal. Des. 1 (1985) 3-20: the field is prescribed on the boundary only, the
//! interior follows; strain, stress, energy and reactions are those of the constant state.

use crate::common::{held_model, jiggled_box};
use fem_io::case::{Method, SolverOptions};
use fem_mesh::comm::run_threads;
use fem_mesh::{CellType, Halo};
use fem_solve::analysis::linear_static::solve;
use fem_solve::log::Log;

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

#[test]
fn constant_strain_is_exact_in_every_cell_type_by_both_methods() {
    for cell_type in CellType::SOLIDS {
        for method in [Method::Direct, Method::Cg] {
            for n_ranks in 1..=4 {
                run_threads(n_ranks, |comm| {
                    let model = held_model(jiggled_box(comm, cell_type, 3, 0.12), field);
                    let halo = Halo::new(comm, &model.mesh.nodes);
                    let options = SolverOptions {
                        method,
                        tolerance: 1e-13,
                        ..SolverOptions::default()
                    };
                    let solution =
                        solve(comm, &model, &halo, &options, &mut Log::new(false)).unwrap();
                    let context = format!("{cell_type} by {method:?} on {n_ranks} ranks");
                    for (x, u) in model
                        .mesh
                        .coords
                        .iter()
                        .zip(solution.displacement.chunks(3))
                    {
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
                            for (found, exact) in
                                solution.tensors.stress_at(node, material).iter().zip(exact)
                            {
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
                });
            }
        }
    }
}
