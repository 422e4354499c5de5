//! Estimate of the error of the stresses by how much they differ from their smoothed field (O. C. Zienkiewicz and J. Z. Zhu,
//! A simple error estimator and adaptive procedure for practical engineering analysis, Int. J. Numer. Meth. Engng 24 (1987)
//! 337-357): in the energy norm, the integral of d^T D^-1 d over an element, with d the stress interpolated from its nodal
//! means less that of the element.
//!
//! Invariant: reads the solution; one cell at a time.

use super::nodal::NodalTensors;
use super::stress::Deformation;
use crate::element::formulation::{is_plain, rule};
use crate::element::geometry::{interpolate, point_geometry};
use crate::element::{MAX_NODES, Purpose, Tabulation};
use fem_mesh::Comm;
use nalgebra::{Matrix6, Vector6};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Energy norm of the estimated error of each owned cell, the square root of J.
pub fn error_estimate(deformation: &Deformation, tensors: &NodalTensors) -> Vec<f64> {
    let n = deformation.model.mesh.n_owned_cells;
    let of_cell = |cell| square_of_cell(deformation, tensors, cell).max(0.0).sqrt();
    (0..n).into_par_iter().map(of_cell).collect()
}

/// Collective. The error of the whole model relative to its solution: ‖e‖ / (‖u‖² + ‖e‖²)^½, where ‖u‖² is twice the strain
/// energy, J.
pub fn relative_error(comm: &Comm, errors: &[f64], strain_energy: f64) -> f64 {
    let square = comm.sum(errors.iter().map(|e| e * e).sum());
    let whole = 2.0 * strain_energy + square;
    if whole > 0.0 {
        (square / whole).sqrt()
    } else {
        0.0
    }
}

fn square_of_cell(deformation: &Deformation, tensors: &NodalTensors, cell: usize) -> f64 {
    let (cell_type, formulation) = deformation.element_of(cell);
    let model = deformation.model;
    // Where strains are those of the shape functions, at more points than the stiffness has: at its own the stresses are
    // too good, and one point does not see how the smoothed field changes.
    let plain = is_plain(formulation);
    let purpose = if plain {
        Purpose::Load
    } else {
        rule(formulation)
    };
    let table = Tabulation::of(cell_type, purpose);
    let material = model.cell_material[cell];
    let nodes = model.mesh.cells.nodes_of(cell);
    let mut smooth = [[0.0; 6]; MAX_NODES];
    for (slot, &node) in smooth.iter_mut().zip(nodes) {
        *slot = tensors.stress_at(node as usize, material);
    }
    let mut coords = [[0.0; 3]; MAX_NODES];
    model.mesh.gather_coords(cell, &mut coords);
    let coords = &coords[..nodes.len()];
    let laws = deformation.conditions().of_cell(cell);
    let general = deformation.general(cell);
    let motion = deformation.gather(cell);
    let mut square = 0.0;
    for (q, point) in table.points.iter().enumerate() {
        let law = laws.at(point.xi, table.shape(q));
        let (strain, volume) = match &general {
            Some(general) => (general.strains[q], general.element.volumes()[q]),
            None => {
                let det = point_geometry(coords, table.grad(q)).det_jac;
                (motion.at(table.grad(q)).strain, point.weight * det)
            }
        };
        let stress = law.stress(&strain);
        let smooth: [f64; 6] = interpolate(&smooth[..nodes.len()], table.shape(q));
        let difference = Vector6::from_fn(|i, _| smooth[i] - stress[i]);
        let d = Matrix6::from_fn(|i, j| law.d[i][j]);
        // The laws are positive definite.
        if let Some(factor) = d.cholesky() {
            square += volume * difference.dot(&factor.solve(&difference));
        }
    }
    square
}

#[cfg(test)]
mod tests {
    use super::{error_estimate, relative_error};
    use crate::assembly::test_models::{distorted_box, model, split};
    use crate::post::stress::Deformation;
    use crate::post::test_fields::{linear, sample};
    use crate::post::{compute_nodal_tensors, strain_energy};
    use fem_mesh::comm::run_threads;
    use fem_mesh::{CellType, Halo};

    #[test]
    fn constant_stress_has_no_error_and_bending_has_that_of_its_elements() {
        for cell_type in CellType::SOLIDS {
            for n_ranks in [1, 3] {
                let mesh = distorted_box(cell_type, [2, 2, 2], false);
                run_threads(n_ranks, |comm| {
                    let model = model(split(comm, &mesh));
                    let halo = Halo::new(comm, &model.mesh.nodes);
                    let u = sample(&model.mesh, linear);
                    let tensors = compute_nodal_tensors(comm, &model, &halo, &u);
                    let errors = error_estimate(&Deformation::new(&model, &u), &tensors);
                    let energy = strain_energy(comm, &model, &u);
                    assert!(relative_error(comm, &errors, energy) < 1e-6, "{cell_type}");
                });
            }
        }
    }

    /// The exact error of tet4 and hex8 for u = (x z, 0, -x^2 / 2), whose stress is linear, is of first order; the estimate goes
    /// to it as the mesh gets finer.
    #[test]
    fn the_estimate_halves_with_the_size_of_linear_elements() {
        for cell_type in [CellType::Tet4, CellType::Hex8] {
            let relative = [4, 8].map(|n| {
                let mesh = distorted_box(cell_type, [n, n, n], false);
                let comm = fem_mesh::Comm::alone();
                let model = model(split(&comm, &mesh));
                let halo = Halo::new(&comm, &model.mesh.nodes);
                let bend = |[x, _, z]: [f64; 3]| [x * z, 0.0, -0.5 * x * x];
                let u = sample(&model.mesh, bend);
                let tensors = compute_nodal_tensors(&comm, &model, &halo, &u);
                let errors = error_estimate(&Deformation::new(&model, &u), &tensors);
                relative_error(&comm, &errors, strain_energy(&comm, &model, &u))
            });
            let rate = (relative[0] / relative[1]).log2();
            assert!((rate - 1.0).abs() < 0.25, "{cell_type}: {relative:?}");
        }
    }
}
