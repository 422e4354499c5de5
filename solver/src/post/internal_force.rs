//! Internal forces and strain energy of a displacement.
//!
//! Invariant: the quadrature and the strains of the stiffness, so that without thermal strain the internal force is K u.

use super::stress::{CellLaw, CellMotion, Deformation, GeneralCell, node_slabs};
use crate::assembly::slabs::cells_touching;
use crate::element::formulation::rule;
use crate::element::geometry::dot;
use crate::element::{MAX_NODES, Tabulation};
use crate::material::Isotropic;
use crate::model::Model;
use fem_mesh::Comm;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Cells whose energies are summed as one piece; part of the definition of the sum.
const CHUNK: usize = 1024;

/// Integral of B^T stress over all cells at the owned nodes, 3 a node, N. `u` is the displacement, m, 3 a local node.
/// Less the external force it is the reaction where the displacement is prescribed and the residual elsewhere.
///
/// Every cell that touches an owned node is held here: nothing is communicated.
pub fn internal_force(model: &Model, u: &[f64]) -> Vec<f64> {
    let deformation = Deformation::new(model, u);
    let cells = &model.mesh.cells;
    let mut force = vec![[0.0; 3]; model.mesh.nodes.n_owned()];
    node_slabs(&model.mesh).for_each(&mut force, |nodes, force| {
        for cell in cells_touching(cells, nodes.clone()) {
            let of_cell = cell_force(&deformation, cell);
            for (&node, f) in cells.nodes_of(cell).iter().zip(of_cell) {
                if nodes.contains(&(node as usize)) {
                    let sum = &mut force[node as usize - nodes.start];
                    *sum = [0, 1, 2].map(|i| sum[i] + f[i]);
                }
            }
        }
    });
    force.into_flattened()
}

/// Internal forces of one cell at its nodes; the fourth number of each is 0, for the sake of vector registers.
fn cell_force(deformation: &Deformation, cell: usize) -> [[f64; 4]; MAX_NODES] {
    if let Some(general) = deformation.general(cell) {
        return general_force(&general);
    }
    let (cell_type, formulation) = deformation.element_of(cell);
    let table = Tabulation::of(cell_type, rule(formulation));
    let motion = deformation.gather(cell);
    match deformation.law(cell) {
        CellLaw::Uniform(law, change) => {
            force_of_stress(table, &motion, |_, strain| law.stress(strain, change))
        }
        law => force_of_stress(table, &motion, |q, strain| law.stress(table, q, strain)),
    }
}

/// Forces of the stresses `stress(point, strain)` of one cell.
#[inline(always)]
fn force_of_stress(
    table: &Tabulation,
    motion: &CellMotion,
    stress: impl Fn(usize, &[f64; 6]) -> [f64; 6],
) -> [[f64; 4]; MAX_NODES] {
    let mut force = [[0.0; 4]; MAX_NODES];
    for (q, point) in table.points.iter().enumerate() {
        let natural = table.grad(q);
        let state = motion.at(natural);
        let [xx, yy, zz, xy, yz, zx] = stress(q, &state.strain).map(|s| point.weight * s);
        let stress = [[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]];
        // The force is stress det J dN/dx; the part common to all nodes first, by column of dN/dxi.
        let flux = [0, 1, 2].map(|k| {
            let column = state.cofactors.map(|row| row[k]);
            [
                dot(stress[0], column),
                dot(stress[1], column),
                dot(stress[2], column),
                0.0,
            ]
        });
        for (f, dn) in force.iter_mut().zip(natural) {
            for i in 0..4 {
                f[i] += flux[0][i] * dn[0] + flux[1][i] * dn[1] + flux[2][i] * dn[2];
            }
        }
    }
    force
}

/// Internal forces of a cell with strains of its own.
fn general_force(general: &GeneralCell) -> [[f64; 4]; MAX_NODES] {
    let stresses: Vec<[f64; 6]> = general.stresses().collect();
    let mut force = [[0.0; 3]; MAX_NODES];
    general
        .element
        .forces_into(&stresses, &general.u, &mut force);
    force.map(|[x, y, z]| [x, y, z, 0.0])
}

/// Collective. Elastic energy, J: half the integral of stress times elastic strain (total less thermal and initial); an
/// initial stress counts with its work. Its derivative is the internal force. `u` is the displacement, m, 3 a local node.
/// Hourglass control adds its energy.
pub fn strain_energy(comm: &Comm, model: &Model, u: &[f64]) -> f64 {
    let deformation = Deformation::new(model, u);
    let n = model.mesh.n_owned_cells;
    let chunks: Vec<f64> = (0..n.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            (chunk * CHUNK..n.min((chunk + 1) * CHUNK))
                .map(|cell| cell_energy(&deformation, cell))
                .sum()
        })
        .collect();
    comm.sum(chunks.iter().sum())
}

/// Elastic energy of one cell.
fn cell_energy(deformation: &Deformation, cell: usize) -> f64 {
    if let Some(general) = deformation.general(cell) {
        let element = &general.element;
        let points = general.strains.iter().zip(element.volumes());
        let of_points = points
            .zip(&general.laws)
            .map(|((strain, volume), law)| volume * law.energy(strain));
        return of_points.sum::<f64>() + element.hourglass_energy(&general.u);
    }
    let (cell_type, formulation) = deformation.element_of(cell);
    let table = Tabulation::of(cell_type, rule(formulation));
    let motion = deformation.gather(cell);
    let law = deformation.law(cell);
    let mut energy = 0.0;
    for (q, point) in table.points.iter().enumerate() {
        let state = motion.at(table.grad(q));
        let density = match &law {
            CellLaw::Uniform(law, change) => 0.5 * work(law, *change, &state.strain),
            CellLaw::ByPoint(law) => law.at(point.xi, table.shape(q)).energy(&state.strain),
        };
        energy += point.weight * state.det_jac * density;
    }
    energy
}

/// Stress times elastic strain, J/m3.
fn work(law: &Isotropic, change: f64, strain: &[f64; 6]) -> f64 {
    let stress = law.stress(strain, change);
    let thermal = law.expansion * change;
    let mut work = 0.0;
    for i in 0..6 {
        work += stress[i]
            * if i < 3 {
                strain[i] - thermal
            } else {
                strain[i]
            };
    }
    work
}

#[cfg(test)]
mod tests {
    use super::{internal_force, strain_energy};
    use crate::assembly::test_models::{
        EXPANSION, POISSON, YOUNG, distorted_box, mixed_mesh, model, split,
    };
    use crate::assembly::{BlockRows, Pattern, Slabs, add_initial_force, assemble_stiffness};
    use crate::element::Formulation;
    use crate::model::{Load, Model};
    use crate::post::compute_nodal_tensors;
    use crate::post::test_fields::{boxes, linear, meshes, sample, wavy};
    use fem_mesh::comm::run_threads;
    use fem_mesh::{CellType, Comm, Halo, Mesh};

    fn norm(v: &[f64]) -> f64 {
        v.iter().map(|v| v * v).sum::<f64>().sqrt()
    }

    #[test]
    fn a_constant_stress_is_in_equilibrium_inside() {
        for mesh in boxes(false) {
            let inside =
                |x: &[f64; 3]| (0..3).all(|i| x[i] > 1e-9 && x[i] < [1.5, 1.0, 2.0][i] - 1e-9);
            for n_ranks in 1..=4 {
                run_threads(n_ranks, |comm| {
                    let model = model(split(comm, &mesh));
                    let force = internal_force(&model, &sample(&model.mesh, linear));
                    let mut sums = [0.0; 3];
                    for (f, x) in force.chunks_exact(3).zip(&model.mesh.coords) {
                        assert!(!inside(x) || norm(f) < 1e-12, "{f:?} at {x:?}");
                        sums = [0, 1, 2].map(|i| sums[i] + f[i]);
                    }
                    comm.sum_into(&mut sums);
                    assert!(norm(&sums) < 1e-12, "{sums:?}");
                    assert!(comm.any(norm(&force) > 1.0));
                });
            }
        }
    }

    /// K u of the owned rows.
    fn product(rows: &BlockRows, n_owned: usize, u: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; 3 * n_owned];
        for (part, first) in [(&rows.lower, 0), (&rows.ghost, n_owned)] {
            for row in 0..n_owned {
                for place in part.row(row) {
                    let column = part.columns[place] as usize + first;
                    for (at, k) in part.block(place).iter().enumerate() {
                        let (i, j) = (3 * row + at / 3, 3 * column + at % 3);
                        product[i] += k * u[j];
                        if column < row {
                            product[j] += k * u[i];
                        }
                    }
                }
            }
        }
        product
    }

    #[test]
    fn force_and_energy_are_those_of_the_stiffness() {
        for mesh in meshes(true) {
            for n_ranks in 1..=4 {
                run_threads(n_ranks, |comm| {
                    let model = model(split(comm, &mesh));
                    let (pattern, mut rows) = Pattern::new(&model.mesh).unwrap();
                    assemble_stiffness(comm, &model, &pattern, &mut rows).unwrap();
                    let u = sample(&model.mesh, wavy);
                    let expected = product(&rows, model.mesh.nodes.n_owned(), &u);
                    let found = internal_force(&model, &u);
                    let error: Vec<f64> = found.iter().zip(&expected).map(|(a, b)| a - b).collect();
                    assert!(norm(&error) <= 1e-12 * norm(&expected));
                    let twice = comm.sum(expected.iter().zip(&u).map(|(f, u)| f * u).sum());
                    let energy = strain_energy(comm, &model, &u);
                    assert!(
                        (energy - 0.5 * twice).abs() < 1e-12 * twice,
                        "{energy} is not half of {twice}"
                    );
                });
            }
        }
    }

    #[test]
    fn force_and_energy_are_those_of_the_stiffness_in_every_formulation() {
        for (_, formulation) in Formulation::NAMES {
            for &cell_type in formulation.cell_types() {
                let mesh = distorted_box(cell_type, [2, 3, 2], true);
                for n_ranks in 1..=4 {
                    run_threads(n_ranks, |comm| {
                        let mut model = model(split(comm, &mesh));
                        // Some cells of their own formulation, some not.
                        for (cell, f) in model.cell_formulation.iter_mut().enumerate() {
                            let is_odd = model.mesh.cell_ids[cell] % 2 == 1;
                            *f = if is_odd {
                                formulation
                            } else {
                                Formulation::Full
                            };
                        }
                        let (pattern, mut rows) = Pattern::new(&model.mesh).unwrap();
                        assemble_stiffness(comm, &model, &pattern, &mut rows).unwrap();
                        let u = sample(&model.mesh, wavy);
                        let n_owned = model.mesh.nodes.n_owned();
                        let expected = product(&rows, n_owned, &u);
                        let found = internal_force(&model, &u);
                        let error: Vec<f64> =
                            found.iter().zip(&expected).map(|(a, b)| a - b).collect();
                        assert!(norm(&error) <= 1e-12 * norm(&expected));
                        let twice = comm.sum(expected.iter().zip(&u).map(|(f, u)| f * u).sum());
                        let energy = strain_energy(comm, &model, &u);
                        assert!((energy - 0.5 * twice).abs() < 1e-12 * twice);
                    });
                }
            }
        }
    }

    #[test]
    fn free_expansion_is_free_in_every_formulation() {
        let comm = Comm::alone();
        for (_, formulation) in Formulation::NAMES {
            for &cell_type in formulation.cell_types() {
                let mut model = heated(&comm, &distorted_box(cell_type, [2, 2, 2], false), 50.0);
                model.cell_formulation.fill(formulation);
                let thermal = EXPANSION * 50.0;
                let u = sample(&model.mesh, |x| x.map(|x| thermal * x));
                assert!(norm(&internal_force(&model, &u)) < 1e-12, "{cell_type}");
                // Against hourglasses the energy is u^T K u, zero by cancellation.
                assert!(strain_energy(&comm, &model, &u).abs() < 1e-15);
                let mut thermal_force = vec![0.0; u.len()];
                let slabs = Slabs::even(model.mesh.nodes.n_owned(), 2);
                add_initial_force(&model, &slabs, &mut thermal_force);
                let held = vec![0.0; u.len()];
                let force = internal_force(&model, &held);
                let error: Vec<f64> = force
                    .iter()
                    .zip(&thermal_force)
                    .map(|(a, b)| a + b)
                    .collect();
                assert!(
                    norm(&error) < 1e-12 * norm(&force),
                    "{cell_type} {formulation:?}"
                );
            }
        }
    }

    fn heated(comm: &Comm, mesh: &Mesh, change: f64) -> Model {
        let mut model = model(split(comm, mesh));
        let cells = (0..model.mesh.n_cells() as u32).collect();
        model.loads.push(Load::TemperatureChange { cells, change });
        model
    }

    #[test]
    fn free_expansion_causes_neither_force_nor_energy() {
        let mesh = distorted_box(CellType::Wedge6, [2, 3, 2], false);
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let model = heated(comm, &mesh, 50.0);
                let thermal = EXPANSION * 50.0;
                let u = sample(&model.mesh, |x| x.map(|x| thermal * x));
                assert!(norm(&internal_force(&model, &u)) < 1e-12);
                assert!(strain_energy(comm, &model, &u).abs() < 1e-24);
                let held = vec![0.0; u.len()];
                assert!(norm(&internal_force(&model, &held)) > 1.0 / n_ranks as f64);
                // e : D : e of the strain -thermal I, times the volume of the box.
                let expected = 0.5 * 3.0 * YOUNG / (1.0 - 2.0 * POISSON) * thermal * thermal * 3.0;
                let energy = strain_energy(comm, &model, &held);
                assert!(
                    (energy - expected).abs() < 1e-12 * expected,
                    "{energy} {expected}"
                );
            });
        }
    }

    #[test]
    fn force_is_the_derivative_of_energy() {
        let comm = Comm::alone();
        let model = heated(&comm, &mixed_mesh(), -20.0);
        let mut u = sample(&model.mesh, wavy);
        let force = internal_force(&model, &u);
        for dof in (0..u.len()).step_by(17) {
            // The energy is a quadratic function: the central difference is exact for any step.
            let (at, step) = (u[dof], 0.1);
            let [high, low] = [at + step, at - step].map(|value| {
                u[dof] = value;
                strain_energy(&comm, &model, &u)
            });
            u[dof] = at;
            assert!(((high - low) / (2.0 * step) - force[dof]).abs() < 1e-12 * norm(&force));
        }
    }

    #[test]
    fn the_number_of_threads_does_not_change_a_bit() {
        let model = heated(&Comm::alone(), &mixed_mesh(), 5.0);
        let u = sample(&model.mesh, wavy);
        let with = |n_threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(n_threads)
                .build()
                .unwrap();
            pool.install(|| {
                (
                    internal_force(&model, &u),
                    strain_energy(&Comm::alone(), &model, &u),
                )
            })
        };
        let one = with(1);
        assert_eq!(one, with(2));
        assert_eq!(one, with(5));
    }

    /// CPU seconds of this thread.
    fn cpu_seconds() -> f64 {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        text.split(' ')
            .next()
            .and_then(|ns| ns.parse::<f64>().ok())
            .unwrap_or(f64::NAN)
            * 1e-9
    }

    /// Run with `--ignored --nocapture`, in an optimized build.
    #[test]
    #[ignore = "a measurement: recovery beside assembly, a cube of 64^3 hexahedra and others"]
    fn speed() {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .unwrap();
        for (cell_type, n) in [
            (CellType::Hex8, 64),
            (CellType::Tet10, 24),
            (CellType::Hex20, 24),
        ] {
            let model = model(split(
                &Comm::alone(),
                &distorted_box(cell_type, [n; 3], false),
            ));
            let u = sample(&model.mesh, wavy);
            pool.install(|| {
                let comm = Comm::alone();
                let halo = Halo::new(&comm, &model.mesh.nodes);
                let (pattern, mut rows) = Pattern::new(&model.mesh).unwrap();
                for _ in 0..2 {
                    let start = cpu_seconds();
                    assemble_stiffness(&comm, &model, &pattern, &mut rows).unwrap();
                    let assembled = cpu_seconds();
                    std::hint::black_box(compute_nodal_tensors(&comm, &model, &halo, &u));
                    let recovered = cpu_seconds();
                    std::hint::black_box(internal_force(&model, &u));
                    let forced = cpu_seconds();
                    std::hint::black_box(strain_energy(&comm, &model, &u));
                    let ended = cpu_seconds();
                    println!(
                        "{cell_type} {n}^3: assembly {:.3} s, stress {:.3} s, force {:.3} s, energy {:.3} s",
                        assembled - start,
                        recovered - assembled,
                        forced - recovered,
                        ended - forced
                    );
                }
            });
        }
    }
}
