//! Loads of the model as forces on this rank's owned nodes.
//!
//! What goes in: the model. What comes out: three force components a node, N. Contributions of ghost cells are
//! computed here too, so nothing is communicated; what falls on ghost nodes is left to their owners.
//!
//! Invariant: consistent nodal forces by quadrature (body forces and pressures exact on curved cells, but for the body forces
//! of reduced elements); no lumping.

use super::slabs::Slabs;
use crate::conditions::{Conditions, PointLaw};
use crate::element::formulation::{is_plain, mean_rule, rule};
use crate::element::general::Element;
use crate::element::geometry::{
    area_normal, cofactors, determinant, dot, integrate_facet, interpolate, jacobian,
};
use crate::element::{GeneralElement, MAX_NODES, Purpose, Tabulation};
use crate::material::Isotropic;
use crate::model::{Load, Model};
use fem_io::case::Formulation;
use fem_mesh::{CellFace, LocalMesh};

/// Forces of all loads but those that strain the material on the owned nodes, 3 a node, N. `slabs` divides the owned nodes
/// among threads; the result does not depend on it.
pub fn external_force(model: &Model, slabs: &Slabs) -> Vec<f64> {
    let mesh = &model.mesh;
    let mut force = vec![[0.0; 3]; mesh.nodes.n_owned()];
    let density = |cell: usize| model.materials[usize::from(model.cell_material[cell])].density;
    for load in &model.loads {
        match load {
            Load::Traction { faces, traction } => {
                add_face_force(mesh, faces, &mut force, |normal, _| {
                    let area = dot(normal, normal).sqrt();
                    traction.map(|t| t * area)
                });
            }
            Load::Pressure { faces, pressure } => {
                add_face_force(mesh, faces, &mut force, |normal, _| {
                    normal.map(|n| -pressure * n)
                });
            }
            Load::PressureField { faces, pressure } => {
                add_face_force(mesh, faces, &mut force, |normal, point| {
                    let pressure = pressure.value_at(point.x());
                    normal.map(|n| -pressure * n)
                });
            }
            Load::NodalForce { nodes, force: each } => {
                for &node in nodes {
                    if let Some(at) = force.get_mut(node as usize) {
                        add(at, *each);
                    }
                }
            }
            Load::BodyForce { cells, body_force } => {
                add_cell_force(model, slabs, cells, &mut force, |_, _| *body_force);
            }
            Load::Gravity {
                cells,
                acceleration,
            } => {
                add_cell_force(model, slabs, cells, &mut force, |cell, _| {
                    acceleration.map(|g| density(cell) * g)
                });
            }
            Load::Centrifugal {
                cells,
                origin,
                axis,
                omega,
            } => {
                add_cell_force(model, slabs, cells, &mut force, |cell, point| {
                    let arm = [0, 1, 2].map(|i| point.x()[i] - origin[i]);
                    let along = dot(arm, *axis);
                    [0, 1, 2].map(|i| density(cell) * omega * omega * (arm[i] - along * axis[i]))
                });
            }
            Load::TemperatureChange { .. }
            | Load::InitialStress { .. }
            | Load::InitialStrain { .. } => {}
        }
    }
    force.into_flattened()
}

/// Adds the forces that stand for thermal strains, initial strains and initial stresses to `force` (3 an owned node, N):
/// the integral of B^T (D (thermal + initial strain) - initial stress), with the quadrature of the stiffness.
pub fn add_initial_force(model: &Model, slabs: &Slabs, force: &mut [f64]) {
    let mesh = &model.mesh;
    let conditions = Conditions::new(model);
    let strained: Vec<u32> = (0..mesh.n_cells() as u32)
        .filter(|&cell| conditions.has_initial_force(cell as usize))
        .collect();
    let force = force.as_chunks_mut().0;
    add_by_cells(mesh, slabs, &strained, force, |cell, coords, nodal| {
        let (cell_type, formulation) = (mesh.cells.types[cell], model.cell_formulation[cell]);
        let of_rule = Tabulation::of(cell_type, rule(formulation));
        let is_plain = is_plain(formulation);
        if let Some((law, change)) = conditions.uniform(cell) {
            // A uniform isotropic stress does the same work on mean strains as on those of all points, and none on
            // incompatible modes.
            let table = Tabulation::of(cell_type, mean_rule(cell_type, formulation));
            return add_uniform_heat(table, coords, law, change, nodal);
        }
        let of_cell = conditions.of_cell(cell);
        let laws: Vec<PointLaw> = of_cell.at_points(of_rule).collect();
        if is_plain {
            return add_held_stress(of_rule, coords, &laws, nodal);
        }
        let mut element = GeneralElement::default();
        let det = element.set(&Element {
            cell_type,
            formulation,
            coords,
            d: &laws.iter().map(|law| law.d).collect::<Vec<_>>(),
        });
        if det > 0.0 {
            let held: Vec<[f64; 6]> = laws.iter().map(PointLaw::held_stress).collect();
            element.forces_into(&held, &[[0.0; 3]; MAX_NODES], nodal);
        }
    });
}

/// Forces of one change of temperature in a cell of a constant isotropic law.
fn add_uniform_heat(
    table: &Tabulation,
    coords: &[[f64; 3]],
    law: Isotropic,
    change: f64,
    nodal: &mut [[f64; 3]],
) {
    let stress = change * ((3.0 * law.lambda + 2.0 * law.mu) * law.expansion);
    for (q, point) in table.points.iter().enumerate() {
        let natural = table.grad(q);
        let cofactors = cofactors(&jacobian(coords, natural));
        for (slot, dn) in nodal.iter_mut().zip(natural) {
            // det J dN/dx is the cofactors times dN/dxi.
            add(
                slot,
                cofactors.map(|row| point.weight * stress * dot(row, *dn)),
            );
        }
    }
}

/// Forces of the free strain and the initial stress of a plain cell.
fn add_held_stress(
    table: &Tabulation,
    coords: &[[f64; 3]],
    laws: &[PointLaw],
    nodal: &mut [[f64; 3]],
) {
    for (q, (point, law)) in table.points.iter().zip(laws).enumerate() {
        let natural = table.grad(q);
        let cofactors = cofactors(&jacobian(coords, natural));
        let [xx, yy, zz, xy, yz, zx] = law.held_stress().map(|s| point.weight * s);
        let stress = [[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]];
        for (slot, dn) in nodal.iter_mut().zip(natural) {
            let gradient = cofactors.map(|row| dot(row, *dn));
            add(slot, stress.map(|row| dot(row, gradient)));
        }
    }
}

/// Area of those of `faces` that belong to owned cells, m2.
pub fn face_area(mesh: &LocalMesh, faces: &[CellFace]) -> f64 {
    let mut area = 0.0;
    for &face in faces
        .iter()
        .filter(|face| (face.cell as usize) < mesh.n_owned_cells)
    {
        let facet = Facet::new(mesh, face);
        for (q, point) in facet.table.points.iter().enumerate() {
            let normal = area_normal(facet.coords(), facet.table.grad(q));
            area += point.weight * dot(normal, normal).sqrt();
        }
    }
    area
}

/// A face of a cell with its nodes gathered.
struct Facet {
    table: &'static Tabulation,
    nodes: [u32; MAX_NODES],
    coords: [[f64; 3]; MAX_NODES],
}

impl Facet {
    fn new(mesh: &LocalMesh, face: CellFace) -> Self {
        let (cell_type, face_nodes) = mesh.cells.nodes_of_face(face);
        let mut facet = Facet {
            table: Tabulation::of(cell_type, Purpose::Load),
            nodes: [0; MAX_NODES],
            coords: [[0.0; 3]; MAX_NODES],
        };
        for (a, node) in face_nodes.enumerate() {
            facet.nodes[a] = node;
            facet.coords[a] = mesh.coords[node as usize];
        }
        facet
    }

    fn nodes(&self) -> &[u32] {
        &self.nodes[..self.table.n_nodes()]
    }

    fn coords(&self) -> &[[f64; 3]] {
        &self.coords[..self.table.n_nodes()]
    }
}

/// Adds a surface load to the owned nodes of `faces`. `f` is the force on a patch of surface, given its normal as
/// long as its area and the point.
fn add_face_force(
    mesh: &LocalMesh,
    faces: &[CellFace],
    force: &mut [[f64; 3]],
    f: impl Fn([f64; 3], CellPoint) -> [f64; 3],
) {
    for &face in faces {
        let facet = Facet::new(mesh, face);
        let mut nodal = [[0.0; 3]; MAX_NODES];
        let coords = facet.coords();
        integrate_facet(facet.table, coords, &mut nodal, |normal, shape| {
            f(normal, CellPoint { coords, shape })
        });
        for (&node, value) in facet.nodes().iter().zip(nodal) {
            if let Some(at) = force.get_mut(node as usize) {
                add(at, value);
            }
        }
    }
}

/// A quadrature point of a cell or facet.
struct CellPoint<'a> {
    coords: &'a [[f64; 3]],
    shape: &'a [f64],
}

impl CellPoint<'_> {
    /// Its coordinates, m.
    fn x(&self) -> [f64; 3] {
        interpolate(self.coords, self.shape)
    }
}

/// Adds a force per volume `f(cell, point)` on `cells` to the owned nodes. Elements of reduced integration are integrated
/// at the points of their stiffness, as CalculiX does; the others exactly.
fn add_cell_force(
    model: &Model,
    slabs: &Slabs,
    cells: &[u32],
    force: &mut [[f64; 3]],
    f: impl Fn(usize, CellPoint) -> [f64; 3] + Sync,
) {
    let mesh = &model.mesh;
    add_by_cells(mesh, slabs, cells, force, |cell, coords, nodal| {
        let purpose = match model.cell_formulation[cell] {
            Formulation::Reduced => Purpose::Reduced,
            _ => Purpose::Load,
        };
        let table = Tabulation::of(mesh.cells.types[cell], purpose);
        for (q, point) in table.points.iter().enumerate() {
            let jac = jacobian(coords, table.grad(q));
            let volume = point.weight * determinant(&jac, &cofactors(&jac));
            let shape = table.shape(q);
            let density = f(cell, CellPoint { coords, shape });
            for (slot, n) in nodal.iter_mut().zip(shape) {
                add(slot, density.map(|d| volume * n * d));
            }
        }
    });
}

/// Adds `f(cell, coords, nodal forces)` of `cells`, ascending, to the owned nodes; each thread writes its slab.
fn add_by_cells(
    mesh: &LocalMesh,
    slabs: &Slabs,
    cells: &[u32],
    force: &mut [[f64; 3]],
    f: impl Fn(usize, &[[f64; 3]], &mut [[f64; 3]]) + Sync,
) {
    slabs.for_each(force, |rows, part| {
        for &cell in cells {
            let nodes = mesh.cells.nodes_of(cell as usize);
            if !nodes.iter().any(|&node| rows.contains(&(node as usize))) {
                continue;
            }
            let mut coords = [[0.0; 3]; MAX_NODES];
            mesh.gather_coords(cell as usize, &mut coords);
            let mut nodal = [[0.0; 3]; MAX_NODES];
            f(cell as usize, &coords[..nodes.len()], &mut nodal);
            for (&node, value) in nodes.iter().zip(nodal) {
                if rows.contains(&(node as usize)) {
                    add(&mut part[node as usize - rows.start], value);
                }
            }
        }
    });
}

fn add(sum: &mut [f64; 3], value: [f64; 3]) {
    for i in 0..3 {
        sum[i] += value[i];
    }
}

#[cfg(test)]
mod tests {
    use super::{add_initial_force, external_force, face_area};
    use crate::assembly::Slabs;
    use crate::assembly::test_models::{boundary_faces, distorted_box, mixed_mesh, model, split};
    use crate::model::{Load, Model};
    use fem_io::case::LinearField;
    use fem_mesh::comm::run_threads;
    use fem_mesh::{CellFace, CellType, Comm, Mesh};

    fn on_1_to_4_ranks(mesh: &Mesh, body: impl Fn(&Comm, Model) + Sync) {
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| body(comm, model(split(comm, mesh))));
        }
    }

    /// Sum over ranks of the force and of its moment about the origin.
    fn resultant(comm: &Comm, model: &Model, load: Load) -> [f64; 6] {
        let model = Model {
            loads: vec![load],
            ..model.clone()
        };
        let force = external_force(&model, &Slabs::even(model.mesh.nodes.n_owned(), 3));
        let mut sum = [0.0; 6];
        for (f, x) in force.as_chunks::<3>().0.iter().zip(&model.mesh.coords) {
            for i in 0..3 {
                let (j, k) = ((i + 1) % 3, (i + 2) % 3);
                sum[i] += f[i];
                sum[3 + i] += x[j] * f[k] - x[k] * f[j];
            }
        }
        comm.sum_into(&mut sum);
        sum
    }

    fn assert_close(values: &[f64], expected: &[f64], what: &str) {
        for (value, expected) in values.iter().zip(expected) {
            assert!(
                (value - expected).abs() < 1e-12 * (1.0 + expected.abs()),
                "{what}: {values:?}"
            );
        }
    }

    fn all_cells(model: &Model) -> Vec<u32> {
        (0..model.mesh.n_cells() as u32).collect()
    }

    #[test]
    fn gravity_acts_as_the_weight_at_the_center_of_gravity_of_curved_cells_too() {
        for cell_type in CellType::SOLIDS {
            // The outside is the box, whatever its inner nodes and edges do.
            on_1_to_4_ranks(&distorted_box(cell_type, [3, 2, 2], true), |comm, model| {
                let load = Load::Gravity {
                    cells: all_cells(&model),
                    acceleration: [0.0, 2.0, -10.0],
                };
                let (w_y, w_z) = (7.5 * 3.0 * 2.0, 7.5 * 3.0 * -10.0);
                let expected = [0.0, w_y, w_z, 0.5 * w_z - w_y, -0.75 * w_z, 0.75 * w_y];
                assert_close(&resultant(comm, &model, load), &expected, cell_type.name());
            });
        }
    }

    #[test]
    fn a_closed_body_under_pressure_rests() {
        for cell_type in CellType::SOLIDS {
            let mut mesh = distorted_box(cell_type, [3, 2, 2], true);
            for x in &mut mesh.coords {
                // A curved outside.
                *x = [
                    x[0] + 0.1 * x[1] * x[2],
                    x[1] + 0.05 * x[2] * x[2],
                    x[2] - 0.1 * x[0] * x[0],
                ];
            }
            on_1_to_4_ranks(&mesh, |comm, model| {
                let faces = boundary_faces(comm, &model.mesh);
                let sum = resultant(
                    comm,
                    &model,
                    Load::Pressure {
                        faces,
                        pressure: 3.0,
                    },
                );
                assert_close(&sum[..3], &[0.0; 3], cell_type.name());
            });
        }
    }

    #[test]
    fn traction_and_pressure_sum_to_area_times_value() {
        for cell_type in CellType::SOLIDS {
            on_1_to_4_ranks(
                &distorted_box(cell_type, [3, 2, 2], false),
                |comm, model| {
                    let mut faces = boundary_faces(comm, &model.mesh);
                    faces.retain(|&face| {
                        let (_, mut nodes) = model.mesh.cells.nodes_of_face(face);
                        nodes.all(|node| model.mesh.coords[node as usize][0] > 1.5 - 1e-9)
                    });
                    assert_close(&[comm.sum(face_area(&model.mesh, &faces))], &[2.0], "area");
                    let traction = Load::Traction {
                        faces: faces.clone(),
                        traction: [1.0, -2.0, 0.5],
                    };
                    let expected = [2.0, -4.0, 1.0, 0.5 * 1.0 + 4.0, 2.0 - 1.5, -6.0 - 1.0];
                    assert_close(
                        &resultant(comm, &model, traction),
                        &expected,
                        cell_type.name(),
                    );
                    let pressure = Load::Pressure {
                        faces,
                        pressure: 4.0,
                    };
                    assert_close(
                        &resultant(comm, &model, pressure)[..3],
                        &[-8.0, 0.0, 0.0],
                        cell_type.name(),
                    );
                },
            );
        }
    }

    #[test]
    fn body_force_centrifugal_and_nodal_forces() {
        on_1_to_4_ranks(
            &distorted_box(CellType::Wedge6, [3, 2, 2], false),
            |comm, model| {
                let body = Load::BodyForce {
                    cells: all_cells(&model),
                    body_force: [1.0, 0.0, 0.0],
                };
                assert_close(
                    &resultant(comm, &model, body)[..3],
                    &[3.0, 0.0, 0.0],
                    "body force",
                );
                let n_global = model.mesh.nodes.n_global() as f64;
                let nodes = (0..model.mesh.nodes.n_local() as u32).collect();
                let nodal = Load::NodalForce {
                    nodes,
                    force: [0.0, 2.0, 0.0],
                };
                assert_close(
                    &resultant(comm, &model, nodal)[..3],
                    &[0.0, 2.0 * n_global, 0.0],
                    "nodal force",
                );
            },
        );
        on_1_to_4_ranks(
            &distorted_box(CellType::Tet10, [3, 2, 2], false),
            |comm, model| {
                let (origin, axis) = ([0.0, 0.0, 9.0], [0.0, 0.0, 1.0]);
                let load = Load::Centrifugal {
                    cells: all_cells(&model),
                    origin,
                    axis,
                    omega: 2.0,
                };
                let mass_omega2 = 7.5 * 3.0 * 4.0;
                let expected = [mass_omega2 * 0.75, mass_omega2 * 0.5, 0.0];
                assert_close(
                    &resultant(comm, &model, load)[..3],
                    &expected,
                    "centrifugal",
                );
            },
        );
    }

    #[test]
    fn hydrostatic_pressure_holds_up_a_floating_body_and_pushes_a_wall() {
        // Archimedes: the weight of the displaced fluid, upward through its center.
        let water = LinearField {
            value: 20.0,
            gradient: [0.0, 0.0, -4.0],
            at: [0.0, 0.0, 1.0],
        };
        for cell_type in CellType::SOLIDS {
            on_1_to_4_ranks(
                &distorted_box(cell_type, [3, 2, 2], false),
                |comm, model| {
                    let mut faces = boundary_faces(comm, &model.mesh);
                    let load = |faces: &[CellFace]| Load::PressureField {
                        faces: faces.to_vec(),
                        pressure: water,
                    };
                    let lift = 4.0 * 3.0;
                    let expected = [0.0, 0.0, lift, 0.5 * lift, -0.75 * lift, 0.0];
                    assert_close(
                        &resultant(comm, &model, load(&faces)),
                        &expected,
                        cell_type.name(),
                    );
                    faces.retain(|&face| {
                        let (_, mut nodes) = model.mesh.cells.nodes_of_face(face);
                        nodes.all(|node| model.mesh.coords[node as usize][0] > 1.5 - 1e-9)
                    });
                    // p = 24 - 4 z on the wall x = 1.5, z from 0 to 2: force 40, moment the integral of p z.
                    let sum = resultant(comm, &model, load(&faces));
                    let moment = 24.0 * 2.0 - 4.0 * 8.0 / 3.0;
                    assert_close(&sum[..3], &[-40.0, 0.0, 0.0], cell_type.name());
                    assert_close(&sum[3..], &[0.0, -moment, 20.0], cell_type.name());
                },
            );
        }
    }

    #[test]
    fn slabs_do_not_change_a_bit() {
        let mut model = model(split(&Comm::alone(), &mixed_mesh()));
        let cells = all_cells(&model);
        model.loads = vec![
            Load::Gravity {
                cells: cells.clone(),
                acceleration: [1.0, 2.0, 3.0],
            },
            Load::TemperatureChange { cells, change: 5.0 },
        ];
        let with_slabs = |n| {
            let slabs = Slabs::even(model.mesh.nodes.n_owned(), n);
            let mut force = external_force(&model, &slabs);
            add_initial_force(&model, &slabs, &mut force);
            force
        };
        for n in [2, 3, 5] {
            assert_eq!(with_slabs(n), with_slabs(1));
        }
    }
}
