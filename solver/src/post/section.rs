//! Forces and moments on a surface: the integral of the stress times the normal.
//!
//! The stress is interpolated on each face from its means at the nodes, as CalculiX does for *SECTION PRINT.
//!
//! Invariant: reads the solution; knows faces of cells by number.

use super::nodal::NodalTensors;
use crate::element::geometry::{area_normal, cross, dot, interpolate};
use crate::element::{MAX_NODES, Purpose, Tabulation};
use crate::model::Model;
use fem_io::printed::Section;
use fem_mesh::{CellFace, Comm};

/// Collective. Forces, area, center and normal of the faces of all ranks; of `faces` those of owned cells count.
pub fn section_forces(
    comm: &Comm,
    model: &Model,
    tensors: &NodalTensors,
    faces: &[CellFace],
) -> Section {
    // Force, moment, area, first moments of area, normal.
    let mut sums = [0.0; 13];
    for &face in faces {
        if (face.cell as usize) < model.mesh.n_owned_cells {
            add_face(model, tensors, face, &mut sums);
        }
    }
    comm.sum_into(&mut sums);
    let three = |k: usize| [sums[k], sums[k + 1], sums[k + 2]];
    let area = sums[6];
    let size = dot(three(10), three(10)).sqrt();
    Section {
        force: three(0),
        moment: three(3),
        area,
        center: three(7).map(|x| if area > 0.0 { x / area } else { 0.0 }),
        normal: three(10).map(|n| if size > 0.0 { n / size } else { 0.0 }),
    }
}

fn add_face(model: &Model, tensors: &NodalTensors, face: CellFace, sums: &mut [f64; 13]) {
    let mesh = &model.mesh;
    let material = model.cell_material[face.cell as usize];
    let (cell_type, nodes) = mesh.cells.nodes_of_face(face);
    let table = Tabulation::of(cell_type, Purpose::Load);
    let mut coords = [[0.0; 3]; MAX_NODES];
    let mut stresses = [[0.0; 6]; MAX_NODES];
    for (a, node) in nodes.enumerate() {
        coords[a] = mesh.coords[node as usize];
        stresses[a] = tensors.stress_at(node as usize, material);
    }
    let n = table.n_nodes();
    let (coords, stresses) = (&coords[..n], &stresses[..n]);
    for (q, point) in table.points.iter().enumerate() {
        let shape = table.shape(q);
        let normal = area_normal(coords, table.grad(q)).map(|c| point.weight * c);
        let [xx, yy, zz, xy, yz, zx] = interpolate(stresses, shape);
        let force = [
            dot([xx, xy, zx], normal),
            dot([xy, yy, yz], normal),
            dot([zx, yz, zz], normal),
        ];
        let x = interpolate(coords, shape);
        let moment = cross(x, force);
        let area = dot(normal, normal).sqrt();
        let parts = [force, moment].into_iter().flatten().chain([area]);
        let all = parts.chain(x.map(|x| x * area)).chain(normal);
        sums.iter_mut()
            .zip(all)
            .for_each(|(sum, part)| *sum += part);
    }
}

#[cfg(test)]
mod tests {
    use super::section_forces;
    use crate::assembly::test_models::{
        POISSON, YOUNG, boundary_faces, distorted_box, model, split,
    };
    use crate::material::Isotropic;
    use crate::post::compute_nodal_tensors;
    use crate::post::test_fields::{assert_close, linear, linear_strain, sample};
    use fem_mesh::comm::run_threads;
    use fem_mesh::{CellType, Halo};

    /// The face z = 2 of a box of 1.5 x 1 x 2 under constant stress.
    #[test]
    fn constant_stress_gives_area_times_traction_on_any_ranks() {
        let [_, _, zz, _, yz, zx] =
            Isotropic::new(YOUNG, POISSON, 0.0).stress(&linear_strain(), 0.0);
        for cell_type in CellType::SOLIDS {
            let mesh = distorted_box(cell_type, [2, 2, 2], false);
            for n_ranks in 1..=4 {
                run_threads(n_ranks, |comm| {
                    let model = model(split(comm, &mesh));
                    let halo = Halo::new(comm, &model.mesh.nodes);
                    let u = sample(&model.mesh, linear);
                    let tensors = compute_nodal_tensors(comm, &model, &halo, &u);
                    let mut faces = boundary_faces(comm, &model.mesh);
                    faces.retain(|&face| {
                        let (_, mut nodes) = model.mesh.cells.nodes_of_face(face);
                        nodes.all(|n| (model.mesh.coords[n as usize][2] - 2.0).abs() < 1e-9)
                    });
                    let section = section_forces(comm, &model, &tensors, &faces);
                    let force = [zx, yz, zz].map(|s| 1.5 * s);
                    assert_close(&section.force, &force, 1e-9);
                    assert_close(&[section.area], &[1.5], 1e-12);
                    assert_close(&section.center, &[0.75, 0.5, 2.0], 1e-12);
                    assert_close(&section.normal, &[0.0, 0.0, 1.0], 1e-12);
                    assert_close(&section.moment_about_center(), &[0.0; 3], 1e-9);
                });
            }
        }
    }
}
