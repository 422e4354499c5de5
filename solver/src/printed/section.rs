//! Forces on a face set as one section: integrals of the recovered nodal stresses over its faces.
//!
//! Invariant: each face counts once, by the rank that owns its cell.

use crate::analysis::linear_static::Solution;
use crate::element::geometry::{area_normal, dot, interpolate};
use crate::element::{MAX_NODES, Purpose, Tabulation};
use crate::model::Model;
use crate::resolve::Names;
use fem_io::case::PrintRequest;
use fem_io::check::SetUse;
use fem_io::printed::{Section, Table};
use fem_mesh::{CellFace, Comm};

/// Integrals over faces: force, moment about the origin, area times center, area times normal, area.
type Sums = [f64; 13];

/// Collective. The table of one section.
pub(super) fn table(
    comm: &Comm,
    names: &Names,
    model: &Model,
    solution: &Solution,
    request: &PrintRequest,
) -> Table {
    let set = std::slice::from_ref(&request.set);
    let faces = names.faces(set, SetUse::PrintSection);
    let mut sums = [0.0; 13];
    let is_owned = |face: &&CellFace| (face.cell as usize) < model.mesh.n_owned_cells;
    for &face in faces.iter().filter(is_owned) {
        add_face(model, solution, face, &mut sums);
    }
    comm.sum_into(&mut sums);
    let three = |at: usize| [sums[at], sums[at + 1], sums[at + 2]];
    let area = sums[12];
    let mean = |at: usize| three(at).map(|sum| sum / area);
    Table::Section {
        set: request.set.clone(),
        section: Section {
            force: three(0),
            moment: three(3),
            center: mean(6),
            normal: mean(9),
            area,
        },
    }
}

fn add_face(model: &Model, solution: &Solution, face: CellFace, sums: &mut Sums) {
    let mesh = &model.mesh;
    let material = model.cell_material[face.cell as usize];
    let (cell_type, nodes) = mesh.cells.nodes_of_face(face);
    let (mut x, mut stress) = ([[0.0; 3]; MAX_NODES], [[0.0; 6]; MAX_NODES]);
    for (a, node) in nodes.enumerate() {
        x[a] = mesh.coords[node as usize];
        stress[a] = solution.tensors.stress_at(node as usize, material);
    }
    let table = Tabulation::of(cell_type, Purpose::Load);
    for (q, point) in table.points.iter().enumerate() {
        let shape = table.shape(q);
        let normal = area_normal(&x, table.grad(q)).map(|n| point.weight * n);
        let area = dot(normal, normal).sqrt();
        let [xx, yy, zz, xy, yz, zx] = interpolate(&stress, shape);
        let force = [[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]].map(|row| dot(row, normal));
        let x = interpolate(&x, shape);
        let moment = [
            x[1] * force[2] - x[2] * force[1],
            x[2] * force[0] - x[0] * force[2],
            x[0] * force[1] - x[1] * force[0],
        ];
        for i in 0..3 {
            sums[i] += force[i];
            sums[3 + i] += moment[i];
            sums[6 + i] += area * x[i];
            sums[9 + i] += normal[i];
        }
        sums[12] += area;
    }
}
