//! The result file's part of this rank: which field has which value at which point and in which cell.
//!
//! Invariant: rearranges what the solution holds; computes invariants of stress, nothing else.

use crate::analysis::linear_static::Solution;
use crate::model::Model;
use crate::post::points::{cell_points, mean_stress};
use crate::post::stress::Deformation;
use crate::post::{principal, von_mises};
use fem_io::case::{Field, OutputOptions};
use fem_io::results::{Field as PointField, PartData};
use fem_mesh::Comm;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Name of the cell field with the stresses at integration points: 6 components (xx yy zz xy yz zx) for each, point by
/// point as `[[print]]` numbers them, zeros behind the last of an element with fewer than others.
pub const INTEGRATION_STRESS: &str = "integration_stress";
/// Name of the cell field with the number of integration points.
pub const N_INTEGRATION_POINTS: &str = "n_integration_points";

/// The owned cells of this rank with the nodal fields asked for, in that order.
pub fn part_data(comm: &Comm, fields: &[Field], model: &Model, solution: &Solution) -> PartData {
    let (mut part, points) =
        PartData::of_owned_cells(&model.mesh, &model.cell_material, comm.rank());
    part.point_fields
        .extend(point_fields(fields, solution, &points));
    part
}

/// The nodal fields among `fields` at points, given as local node and material.
pub fn point_fields(
    fields: &[Field],
    solution: &Solution,
    points: &[(u32, u16)],
) -> Vec<PointField> {
    let of_points = fields.iter().filter(|field| !field.is_of_elements());
    let values = |&field: &Field| {
        let mut values = Vec::with_capacity(points.len() * field.n_components());
        for &(node, material) in points {
            push_value(solution, field, node as usize, material, &mut values);
        }
        PointField::f64(field.name(), field.n_components(), values)
    };
    of_points.map(values).collect()
}

/// Collective. The fields of elements that are asked for, on the owned cells.
pub fn cell_fields(
    comm: &Comm,
    output: &OutputOptions,
    model: &Model,
    solution: &Solution,
) -> Vec<PointField> {
    let n_cells = model.mesh.n_owned_cells;
    let deformation = Deformation::new(model, &solution.displacement);
    let mut fields = Vec::new();
    for &field in output.fields.iter().filter(|field| field.is_of_elements()) {
        let values = match field {
            Field::ErrorEstimate => solution.errors.clone(),
            _ => {
                let mean = |cell| mean_stress(&cell_points(&deformation, cell));
                let means: Vec<[f64; 6]> = (0..n_cells).into_par_iter().map(mean).collect();
                means.into_flattened()
            }
        };
        fields.push(PointField::f64(field.name(), field.n_components(), values));
    }
    if output.integration_points {
        fields.extend(integration_fields(comm, &deformation, n_cells));
    }
    fields
}

/// Collective. Stresses at the integration points, and their number.
fn integration_fields(comm: &Comm, deformation: &Deformation, n_cells: usize) -> [PointField; 2] {
    let stresses: Vec<Vec<[f64; 6]>> = (0..n_cells)
        .into_par_iter()
        .map(|cell| {
            let mut stresses = Vec::new();
            deformation.integration_stresses(cell, &mut stresses);
            stresses
        })
        .collect();
    let most = stresses.iter().map(Vec::len).max().unwrap_or(0);
    let most = (comm.max(most as f64) as usize).max(1);
    let mut values = Vec::with_capacity(6 * most * n_cells);
    for of_cell in &stresses {
        values.extend_from_slice(of_cell.as_flattened());
        values.resize(values.len() + 6 * (most - of_cell.len()), 0.0);
    }
    let numbers = stresses.iter().map(|s| s.len() as f64).collect();
    [
        PointField::f64(INTEGRATION_STRESS, 6 * most, values),
        PointField::f64(N_INTEGRATION_POINTS, 1, numbers),
    ]
}

/// Appends the components of a nodal `field` at a local node, in the cells of `material`; zeros for a field of elements.
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
        Field::ElementStress | Field::ErrorEstimate => {
            into.resize(into.len() + field.n_components(), 0.0);
        }
    }
}
