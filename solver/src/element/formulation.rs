//! What a formulation means for a cell type: its quadrature, and whether its strains are those of the shape functions.
//!
//! Invariant: tables only; the strains themselves are in [`super::general`].

use super::quadrature::{Purpose, QuadraturePoint, Tabulation};
use super::shape::{natural_nodes, within_square};
use fem_io::case::Formulation;
use fem_mesh::CellType;
use nalgebra::DMatrix;
use std::sync::LazyLock;

/// Whether a cell type has the formulation. One that lacks it is integrated fully.
pub fn is_available(cell_type: CellType, formulation: Formulation) -> bool {
    formulation.cell_types().contains(&cell_type)
}

/// The quadrature of stiffness and internal forces.
pub const fn rule(formulation: Formulation) -> Purpose {
    match formulation {
        Formulation::Reduced => Purpose::Reduced,
        _ => Purpose::Stiffness,
    }
}

/// The points from which strains and stresses are extrapolated to the nodes.
pub const fn recovery_rule(formulation: Formulation) -> Purpose {
    match formulation {
        Formulation::Reduced => Purpose::Reduced,
        _ => Purpose::Recovery,
    }
}

/// The quadrature of the gradients from which the strains are made: that of [`rule`], but for the mean strain of reduced
/// hex8, which is taken over all points. The sum over its points of a uniform stress is the force of that stress.
pub fn mean_rule(cell_type: CellType, formulation: Formulation) -> Purpose {
    match cell_type {
        CellType::Hex8 => Purpose::Stiffness,
        _ => rule(formulation),
    }
}

/// Whether the strains at the points of [`rule`] are the derivatives of the shape functions there, and nothing but their
/// stresses resists. The others are [`super::GeneralElement`]s.
pub fn is_plain(formulation: Formulation) -> bool {
    formulation == Formulation::Full
}

/// Whether the stiffness of an isotropic element is that of the batched kernel ([`super::solid`]), to which reduced
/// elements add their [`super::Hourglass`].
pub fn is_batched(cell_type: CellType, formulation: Formulation) -> bool {
    match formulation {
        Formulation::Full => true,
        Formulation::Reduced => cell_type != CellType::Hex8,
        Formulation::BBar | Formulation::IncompatibleModes => false,
    }
}

/// Weights of the values at the recovery points for the value at each node: row by row, a row for each node.
pub fn extrapolation(cell_type: CellType, formulation: Formulation) -> &'static [f64] {
    static ALL: LazyLock<Vec<[Vec<f64>; 2]>> = LazyLock::new(|| {
        let types = (0..).map_while(CellType::from_index);
        let rules = [Purpose::Recovery, Purpose::Reduced];
        types
            .map(|t| rules.map(|rule| extrapolation_matrix(t, rule)))
            .collect()
    });
    let is_reduced = recovery_rule(formulation) == Purpose::Reduced;
    &ALL[cell_type as usize][usize::from(is_reduced)]
}

/// P(nodes) P(points)^-1, with P the monomials of the polynomial through the points; nothing where they are no
/// recovery points.
fn extrapolation_matrix(cell_type: CellType, rule: Purpose) -> Vec<f64> {
    let is_recovery = rule == Purpose::Recovery || is_available(cell_type, Formulation::Reduced);
    if cell_type.dimension() < 3 || !is_recovery {
        return Vec::new();
    }
    let points: &[QuadraturePoint] = &Tabulation::of(cell_type, rule).points;
    let at = |xi: &[[f64; 3]]| {
        let rows: Vec<f64> = (xi.iter())
            .flat_map(|&xi| monomials(cell_type, points.len(), xi))
            .collect();
        DMatrix::from_row_slice(xi.len(), rows.len() / xi.len(), &rows)
    };
    let at_points = at(&points.iter().map(|point| point.xi).collect::<Vec<_>>());
    // The points of a rule are unisolvent for its polynomial, a property of the tables that the tests check.
    let inverse = at_points
        .try_inverse()
        .unwrap_or_else(|| unreachable!("recovery points of {cell_type}"));
    let weights = at(natural_nodes(cell_type)) * inverse;
    weights.transpose().as_slice().to_vec()
}

/// Monomials of the polynomial that is fixed by the values at `n` recovery points: constant in tet4 and at one point,
/// linear in tet10, linear times linear in wedges, trilinear in hexahedra, bilinear within the square of a pyramid and
/// linear along its height.
pub fn monomials(cell_type: CellType, n: usize, [r, s, t]: [f64; 3]) -> Vec<f64> {
    match (cell_type, n) {
        (CellType::Tet10, _) => vec![1.0, r, s, t],
        (CellType::Pyramid5 | CellType::Pyramid13, _) => {
            let [u, v] = within_square([r, s, t]);
            let mut all = vec![1.0, u, v, u * v, t, t * u, t * v, t * u * v];
            all.truncate(n);
            all
        }
        (CellType::Wedge6 | CellType::Wedge15, 6) => vec![1.0, r, s, t, r * t, s * t],
        (CellType::Wedge6, 2) => vec![1.0, t],
        (CellType::Hex8 | CellType::Hex20 | CellType::Hex27, 8) => {
            vec![1.0, r, s, t, r * s, s * t, t * r, r * s * t]
        }
        _ => vec![1.0],
    }
}

#[cfg(test)]
mod tests {
    use super::{extrapolation, is_available, is_plain, monomials, recovery_rule, rule};
    use crate::element::Tabulation;
    use crate::element::shape::natural_nodes;
    use fem_io::case::Formulation;
    use fem_mesh::CellType;

    fn every_element() -> impl Iterator<Item = (CellType, Formulation)> {
        let all = Formulation::NAMES.map(|(_, formulation)| formulation);
        (CellType::SOLIDS.into_iter())
            .flat_map(move |t| all.map(|f| (t, f)))
            .filter(|&(t, f)| is_available(t, f))
    }

    #[test]
    fn extrapolation_reproduces_its_polynomial_at_the_nodes() {
        for (cell_type, formulation) in every_element() {
            let points = &Tabulation::of(cell_type, recovery_rule(formulation)).points;
            let n = points.len();
            for k in 0..n {
                for (weights, &node) in extrapolation(cell_type, formulation)
                    .chunks_exact(n)
                    .zip(natural_nodes(cell_type))
                {
                    let at_points = points
                        .iter()
                        .map(|point| monomials(cell_type, n, point.xi)[k]);
                    let value: f64 = at_points.zip(weights).map(|(v, w)| v * w).sum();
                    assert!(
                        (value - monomials(cell_type, n, node)[k]).abs() < 1e-14,
                        "{cell_type} {formulation:?}, monomial {k}"
                    );
                }
            }
        }
    }

    #[test]
    fn formulations_with_their_own_strains_recover_them_where_they_integrate() {
        let xi = |cell_type, rule| -> Vec<[f64; 3]> {
            let points = Tabulation::of(cell_type, rule).points.iter();
            points.map(|p| p.xi).collect()
        };
        for (cell_type, formulation) in every_element().filter(|&(_, f)| !is_plain(f)) {
            assert_eq!(
                xi(cell_type, rule(formulation)),
                xi(cell_type, recovery_rule(formulation)),
                "{cell_type} {formulation:?}"
            );
        }
    }
}
