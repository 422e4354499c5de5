//! What the integration points of a cell hold: place, volume, strain, stress, energy.
//!
//! The points are those of the stiffness of its formulation, in the order of its rule
//! ([`crate::element::formulation::rule`]), which is CalculiX's: in hexahedra the first natural coordinate runs fastest and
//! the third slowest; in tetrahedra the points near nodes 1, 2, 3 and 4; in wedges layer by layer from below, in each the
//! points near edges' ends 1, 2, 3.
//!
//! Invariant: one cell at a time.

use super::stress::Deformation;
use crate::element::Tabulation;
use crate::element::formulation::rule;
use crate::element::geometry::{interpolate, point_geometry};

/// One integration point of a cell.
#[derive(Clone, Copy, Debug)]
pub struct CellPoint {
    /// Coordinates, m.
    pub x: [f64; 3],
    /// Volume that it stands for, m3.
    pub volume: f64,
    /// Strain, xx yy zz xy yz zx, engineering shear.
    pub strain: [f64; 6],
    /// Strain less thermal and initial strain.
    pub mechanical_strain: [f64; 6],
    /// Stress, Pa.
    pub stress: [f64; 6],
    /// Strain energy per volume, J/m3.
    pub energy_density: f64,
}

/// The integration points of a cell, in the order of its rule.
pub fn cell_points(deformation: &Deformation, cell: usize) -> Vec<CellPoint> {
    let (cell_type, formulation) = deformation.element_of(cell);
    let table = Tabulation::of(cell_type, rule(formulation));
    let mesh = &deformation.model.mesh;
    let mut coords = [[0.0; 3]; crate::element::MAX_NODES];
    mesh.gather_coords(cell, &mut coords);
    let coords = &coords[..cell_type.n_nodes()];
    let mut strains = Vec::with_capacity(table.n_points());
    deformation.integration_strains(cell, &mut strains);
    let general = deformation.general(cell);
    let laws = deformation.conditions().of_cell(cell);
    let points = table.points.iter().zip(&strains).enumerate();
    points
        .map(|(q, (point, strain))| {
            let law = laws.at(point.xi, table.shape(q));
            let volume = match &general {
                Some(general) => general.element.volumes()[q],
                None => point.weight * point_geometry(coords, table.grad(q)).det_jac,
            };
            CellPoint {
                x: interpolate(coords, table.shape(q)),
                volume,
                strain: *strain,
                mechanical_strain: law.elastic_strain(strain),
                stress: law.stress(strain),
                energy_density: law.energy(strain),
            }
        })
        .collect()
}

/// Mean stress of a cell over its volume, Pa.
pub fn mean_stress(points: &[CellPoint]) -> [f64; 6] {
    let volume: f64 = points.iter().map(|p| p.volume).sum();
    let mut mean = [0.0; 6];
    for point in points {
        for i in 0..6 {
            mean[i] += point.volume / volume * point.stress[i];
        }
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::{cell_points, mean_stress};
    use crate::assembly::test_models::{POISSON, YOUNG, distorted_box, model, split};
    use crate::element::Formulation;
    use crate::material::Isotropic;
    use crate::post::strain_energy;
    use crate::post::stress::Deformation;
    use crate::post::test_fields::{assert_close, linear, linear_strain, sample};
    use fem_mesh::{CellType, Comm};

    #[test]
    fn points_hold_the_state_of_constant_strain_in_every_element() {
        let stress = Isotropic::new(YOUNG, POISSON, 0.0).stress(&linear_strain(), 0.0);
        for (_, formulation) in Formulation::NAMES {
            for &cell_type in formulation.cell_types() {
                let mesh = distorted_box(cell_type, [2, 2, 2], false);
                let comm = Comm::alone();
                let mut model = model(split(&comm, &mesh));
                model.cell_formulation.fill(formulation);
                let u = sample(&model.mesh, linear);
                let deformation = Deformation::new(&model, &u);
                let (mut volume, mut energy) = (0.0, 0.0);
                for cell in 0..model.mesh.n_cells() {
                    let points = cell_points(&deformation, cell);
                    for point in &points {
                        assert_close(&point.strain, &linear_strain(), 1e-12);
                        assert_close(&point.mechanical_strain, &linear_strain(), 1e-12);
                        assert_close(&point.stress, &stress, 1e-9);
                        volume += point.volume;
                        energy += point.volume * point.energy_density;
                    }
                    assert_close(&mean_stress(&points), &stress, 1e-9);
                }
                assert!((volume - 3.0).abs() < 1e-12, "{cell_type} {volume}");
                let expected = strain_energy(&comm, &model, &u);
                assert!(
                    (energy - expected).abs() < 1e-9 * expected,
                    "{cell_type} {formulation:?}"
                );
            }
        }
    }

    #[test]
    fn the_first_coordinate_runs_fastest_in_hexahedra() {
        for (cell_type, n) in [(CellType::Hex8, 2usize), (CellType::Hex20, 3)] {
            let mesh = distorted_box(cell_type, [1, 1, 1], false);
            let model = model(split(&Comm::alone(), &mesh));
            let u = sample(&model.mesh, linear);
            let points = cell_points(&Deformation::new(&model, &u), 0);
            assert_eq!(points.len(), n.pow(3));
            for (q, point) in points.iter().enumerate() {
                for (axis, stride) in [(0, 1), (1, n), (2, n * n)] {
                    if q / stride % n + 1 < n {
                        assert!(points[q + stride].x[axis] > point.x[axis]);
                    }
                }
            }
        }
    }
}
