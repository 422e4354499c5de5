//! How much of the deformation of reduced elements their quadrature points do not see.
//!
//! Invariant: a measure of a displacement; knows no law.

use super::stress::Deformation;
use crate::element::formulation::rule;
use crate::element::{Formulation, Purpose, Tabulation};
use crate::model::Model;
use fem_mesh::Comm;

/// Integrals of the squared strain over the elements with reduced integration, m3.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SeenStrain {
    /// By the points of the elements.
    pub seen: f64,
    /// By those of full integration, where that is more in an element.
    pub hidden: f64,
}

impl SeenStrain {
    /// Whether patterns of displacement that cause no strain at the points (hourglasses) are larger than the rest.
    pub fn is_mostly_hidden(&self) -> bool {
        self.hidden > self.seen
    }
}

/// Collective. What the points of reduced elements see of the displacement `u`, m, 3 a local node; all zero if there are
/// none.
pub fn seen_strain(comm: &Comm, model: &Model, u: &[f64]) -> SeenStrain {
    let deformation = Deformation::new(model, u);
    let mut sums = [0.0; 2];
    let is_reduced = |&cell: &usize| model.cell_formulation[cell] == Formulation::Reduced;
    for cell in (0..model.mesh.n_owned_cells).filter(is_reduced) {
        let seen = squared_strain(&deformation, cell, rule(Formulation::Reduced));
        let full = squared_strain(&deformation, cell, Purpose::Stiffness);
        sums[0] += seen;
        sums[1] += (full - seen).max(0.0);
    }
    comm.sum_into(&mut sums);
    SeenStrain {
        seen: sums[0],
        hidden: sums[1],
    }
}

/// Integral of e : e over a cell by a rule, m3.
fn squared_strain(deformation: &Deformation, cell: usize, rule: Purpose) -> f64 {
    let table = Tabulation::of(deformation.element_of(cell).0, rule);
    let motion = deformation.gather(cell);
    let mut sum = 0.0;
    for (q, point) in table.points.iter().enumerate() {
        let state = motion.at(table.grad(q));
        let [xx, yy, zz, xy, yz, zx] = state.strain;
        let square = xx * xx + yy * yy + zz * zz + 0.5 * (xy * xy + yz * yz + zx * zx);
        sum += point.weight * state.det_jac * square;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::seen_strain;
    use crate::assembly::test_models::{distorted_box, model, split};
    use crate::element::Formulation;
    use crate::post::test_fields::{linear, sample};
    use fem_mesh::CellType;
    use fem_mesh::comm::run_threads;

    #[test]
    fn uniform_strain_is_seen() {
        for cell_type in [CellType::Hex8, CellType::Hex20] {
            let mesh = distorted_box(cell_type, [2, 2, 2], false);
            for n_ranks in 1..=3 {
                run_threads(n_ranks, |comm| {
                    let mut model = model(split(comm, &mesh));
                    model.cell_formulation.fill(Formulation::Reduced);
                    let u = sample(&model.mesh, linear);
                    let found = seen_strain(comm, &model, &u);
                    assert!(
                        found.seen > 1e-4 && found.hidden < 0.05 * found.seen,
                        "{found:?}"
                    );
                });
            }
        }
    }

    #[test]
    fn hourglasses_are_not_seen() {
        // With r and s from -1 to 1 across the element: r s has no mean strain, and the strains of the second field vanish
        // where r^2 = s^2 = 1/3.
        let field = |cell_type, [x, y, _]: [f64; 3]| {
            let (r, s) = (x / 0.75 - 1.0, y / 0.5 - 1.0);
            match cell_type {
                CellType::Hex8 => [r * s, 0.0, 0.0],
                _ => [
                    0.5 * r * (1.0 - 3.0 * s * s),
                    -0.75 * s * (1.0 - 3.0 * r * r),
                    0.0,
                ],
            }
        };
        for cell_type in [CellType::Hex8, CellType::Hex20] {
            let mesh = distorted_box(cell_type, [1, 1, 1], false);
            for n_ranks in 1..=3 {
                run_threads(n_ranks, |comm| {
                    let mut model = model(split(comm, &mesh));
                    model.cell_formulation.fill(Formulation::Reduced);
                    let u = sample(&model.mesh, |x| field(cell_type, x));
                    let found = seen_strain(comm, &model, &u);
                    assert!(found.is_mostly_hidden(), "{cell_type} {found:?}");
                    assert!(found.seen < 1e-20 * found.hidden, "{cell_type} {found:?}");
                });
            }
        }
    }
}
