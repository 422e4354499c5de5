//! The result file's part of this rank: which field has which value at which point.
//!
//! Invariant: rearranges what the solution holds; computes invariants of stress, nothing else.

use crate::analysis::linear_static::Solution;
use crate::model::Model;
use crate::post::{principal, von_mises};
use fem_io::case::Field;
use fem_io::results::{Field as PointField, PartData};
use fem_mesh::Comm;

/// The owned cells of this rank with the fields asked for, in that order.
pub fn part_data(comm: &Comm, fields: &[Field], model: &Model, solution: &Solution) -> PartData {
    let (mut part, points) =
        PartData::of_owned_cells(&model.mesh, &model.cell_material, comm.rank());
    for &field in fields {
        let mut values = Vec::with_capacity(points.len() * field.n_components());
        for &(node, material) in &points {
            push_value(solution, field, node as usize, material, &mut values);
        }
        part.point_fields
            .push(PointField::f64(field.name(), field.n_components(), values));
    }
    part
}

/// Appends the components of `field` at a local node, in the cells of `material`.
pub fn push_value(
    solution: &Solution,
    field: Field,
    node: usize,
    material: u16,
    into: &mut Vec<f64>,
) {
    let stress = || solution.tensors.stress_at(node, material);
    match field {
        Field::Displacement => {
            into.extend_from_slice(&solution.displacement[3 * node..3 * node + 3])
        }
        Field::Reaction => into.extend_from_slice(&solution.reaction[3 * node..3 * node + 3]),
        Field::Stress => into.extend(stress()),
        Field::Strain => into.extend(solution.tensors.strain_at(node, material)),
        Field::VonMises => into.push(von_mises(&stress())),
        Field::PrincipalStress => into.extend(principal(&stress())),
    }
}
