//! The map from natural to real coordinates: Jacobians, gradients, surface normals and the inverse map.
//!
//! What goes in: node coordinates of one cell or facet (m) and shape functions at a point. What comes out: plain
//! numbers for that point.
//!
//! Invariant: one cell at a time; knows no mesh, material or field.

use super::quadrature::Tabulation;
use super::shape::{MAX_NODES, shape_at};
use fem_mesh::CellType;

/// Jacobian `J[i][j] = dx_i / dxi_j` from node coordinates and natural gradients.
#[inline]
pub fn jacobian(coords: &[[f64; 3]], grad: &[[f64; 3]]) -> [[f64; 3]; 3] {
    let mut jac = [[0.0; 3]; 3];
    for (x, dn) in coords.iter().zip(grad) {
        for i in 0..3 {
            for j in 0..3 {
                jac[i][j] += x[i] * dn[j];
            }
        }
    }
    jac
}

/// Cofactors of a 3x3 matrix: its inverse transposed, times the determinant.
#[inline]
pub fn cofactors(m: &[[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let mut cofactors = [[0.0; 3]; 3];
    for i in 0..3 {
        for j in 0..3 {
            let (i1, i2, j1, j2) = ((i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3);
            cofactors[i][j] = m[i1][j1] * m[i2][j2] - m[i1][j2] * m[i2][j1];
        }
    }
    cofactors
}

/// Determinant of `m` from its cofactors.
#[inline]
pub fn determinant(m: &[[f64; 3]; 3], cofactors: &[[f64; 3]; 3]) -> f64 {
    dot(m[0], cofactors[0])
}

/// Scalar product.
#[inline]
pub fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Vector product.
#[inline]
pub fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

/// A point of a solid cell: gradients of the shape functions in real coordinates, 1/m, and det J.
#[derive(Clone, Debug)]
pub struct PointGeometry {
    /// dN_a / dx in node order; zero past the number of nodes.
    pub grad: [[f64; 3]; MAX_NODES],
    /// Determinant of the Jacobian, m3 per unit of natural volume.
    pub det_jac: f64,
}

/// Gradients in real coordinates at a point whose natural gradients are `grad`.
#[inline]
pub fn point_geometry(coords: &[[f64; 3]], grad: &[[f64; 3]]) -> PointGeometry {
    let jac = jacobian(coords, grad);
    let cofactors = cofactors(&jac);
    let det_jac = determinant(&jac, &cofactors);
    let inverse = cofactors.map(|row| row.map(|c| c / det_jac));
    let mut real = [[0.0; 3]; MAX_NODES];
    for (g, dn) in real.iter_mut().zip(grad) {
        *g = inverse.map(|row| dot(row, *dn));
    }
    PointGeometry {
        grad: real,
        det_jac,
    }
}

/// Normal of a facet at a point, as long as its area per unit of natural area (m2); by the right-hand rule on the
/// node order, so that it points out of the cell whose face the facet is.
#[inline]
pub fn area_normal(coords: &[[f64; 3]], grad: &[[f64; 3]]) -> [f64; 3] {
    let jac = jacobian(coords, grad);
    cross(jac.map(|row| row[0]), jac.map(|row| row[1]))
}

/// Sum of w N_a f(normal, shape functions) over the points of a facet rule, added to `into[a]`: the nodal forces of a
/// surface load `f` per unit of natural area.
#[inline]
pub fn integrate_facet(
    table: &Tabulation,
    coords: &[[f64; 3]],
    into: &mut [[f64; 3]],
    f: impl Fn([f64; 3], &[f64]) -> [f64; 3],
) {
    for (q, point) in table.points.iter().enumerate() {
        let value = f(area_normal(coords, table.grad(q)), table.shape(q));
        for (slot, n) in into.iter_mut().zip(table.shape(q)) {
            for i in 0..3 {
                slot[i] += point.weight * n * value[i];
            }
        }
    }
}

/// Real coordinates from shape functions.
#[inline]
pub fn interpolate<const W: usize>(values: &[[f64; W]], shape: &[f64]) -> [f64; W] {
    let mut sum = [0.0; W];
    for (value, n) in values.iter().zip(shape) {
        for i in 0..W {
            sum[i] += n * value[i];
        }
    }
    sum
}

/// Natural coordinates of the point `x` in a cell by Newton's method; `None` if it does not converge, which is usual
/// for points far away.
pub fn natural_coordinates(
    cell_type: CellType,
    coords: &[[f64; 3]],
    x: [f64; 3],
) -> Option<[f64; 3]> {
    let mut xi = center(cell_type);
    for _ in 0..30 {
        let at = shape_at(cell_type, xi);
        let here = interpolate(coords, &at.shape[..coords.len()]);
        let jac = jacobian(coords, &at.grad[..coords.len()]);
        let cofactors = cofactors(&jac);
        let det = determinant(&jac, &cofactors);
        let gap = [0, 1, 2].map(|i| x[i] - here[i]);
        let step = [0, 1, 2].map(|j| (0..3).map(|i| cofactors[i][j] * gap[i]).sum::<f64>() / det);
        let size = step.iter().fold(0.0f64, |m, s| m.max(s.abs()));
        // A singular Jacobian makes the step infinite or NaN; `max` would hide the NaN.
        if det == 0.0 || !det.is_finite() || size > 1e3 {
            return None;
        }
        xi = [0, 1, 2].map(|i| xi[i] + step[i]);
        if size < 1e-12 {
            return Some(xi);
        }
    }
    None
}

/// Center of the natural cell.
pub fn center(cell_type: CellType) -> [f64; 3] {
    match cell_type {
        CellType::Tet4 | CellType::Tet10 => [0.25; 3],
        CellType::Pyramid5 | CellType::Pyramid13 => [0.0, 0.0, 0.25],
        CellType::Wedge6 | CellType::Wedge15 => [1.0 / 3.0, 1.0 / 3.0, 0.0],
        _ => [0.0; 3],
    }
}

/// How far natural coordinates are outside the natural cell, in natural units; 0 or less inside.
pub fn distance_outside(cell_type: CellType, xi: [f64; 3]) -> f64 {
    let [r, s, t] = xi;
    match cell_type {
        CellType::Tet4 | CellType::Tet10 => (-r).max(-s).max(-t).max(r + s + t - 1.0),
        CellType::Pyramid5 | CellType::Pyramid13 => (-t).max(r.abs().max(s.abs()) + t - 1.0),
        CellType::Wedge6 | CellType::Wedge15 => (-r).max(-s).max(r + s - 1.0).max(t.abs() - 1.0),
        _ => r.abs().max(s.abs()).max(t.abs()) - 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::{cofactors, determinant, distance_outside, interpolate, natural_coordinates};
    use crate::element::shape::{natural_nodes, shape_at};
    use crate::element::test_cells::distorted;
    use fem_mesh::CellType;
    use nalgebra::Matrix3;

    #[test]
    fn cofactors_give_the_inverse() {
        let m = [[2.0, 1.0, 0.5], [-1.0, 3.0, 0.25], [0.1, 0.2, 1.5]];
        let c = cofactors(&m);
        let reference = Matrix3::from_fn(|i, j| m[i][j]);
        let det = determinant(&m, &c);
        assert!((det - reference.determinant()).abs() < 1e-14);
        let inverse = reference.try_inverse().unwrap();
        for (i, j) in [(0, 0), (0, 2), (1, 0), (2, 1)] {
            assert!((inverse[(i, j)] - c[j][i] / det).abs() < 1e-14);
        }
    }

    #[test]
    fn the_inverse_map_finds_points_inside_and_outside() {
        for cell_type in CellType::SOLIDS {
            let coords = distorted(cell_type, 0.1);
            for xi in [[0.2, 0.3, 0.1], [0.1, 0.1, 0.7], [-0.05, 0.2, 0.2]] {
                let x = interpolate(&coords, &shape_at(cell_type, xi).shape[..coords.len()]);
                let found = natural_coordinates(cell_type, &coords, x).unwrap();
                for i in 0..3 {
                    assert!(
                        (found[i] - xi[i]).abs() < 1e-10,
                        "{cell_type}: {found:?} is not {xi:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn nodes_are_on_the_boundary() {
        for cell_type in CellType::SOLIDS {
            let n_inside = usize::from(cell_type == CellType::Hex27);
            for &xi in &natural_nodes(cell_type)[..cell_type.n_nodes() - n_inside] {
                assert!(distance_outside(cell_type, xi).abs() < 1e-15);
            }
        }
        assert!(distance_outside(CellType::Tet4, [0.2; 3]) < 0.0);
        assert!(distance_outside(CellType::Wedge6, [0.6, 0.6, 0.0]) > 0.1);
    }
}
