//! Stiffness against the displacements that the points of reduced elements do not see.
//!
//! What a displacement has beyond its mean gradient, w = u - (b . u) x with b the mean gradients of the shape functions, is
//! taken at the nodes; of it the part orthogonal to the polynomials that the element is made for (linear, or quadratic in
//! hex20) is held: energy c w^T H w / 2 for each direction, with H the projector onto what is orthogonal. Linear fields
//! cause no force on any shape of element, so that patch tests pass. In hex8 these are the four patterns of Flanagan and
//! Belytschko (Int. J. Numer. Meth. Engng 17 (1981) 679-706), with the coefficient of CalculiX: hourglasses of hex8 are
//! found everywhere. Those of hex20 and wedge6 cannot pass from element to element but in special meshes; there a millionth
//! of the stiffness keeps the matrix positive definite and changes no digit that anyone reads.
//!
//! Invariant: one element; knows its nodes and Young's modulus.

use super::formulation::mean_rule;
use super::geometry::point_geometry;
use super::quadrature::Tabulation;
use super::shape::{MAX_NODES, natural_nodes};
use fem_io::case::Formulation;
use fem_mesh::CellType;
use nalgebra::DMatrix;
use std::sync::LazyLock;

/// Coefficient of hex8 relative to E: 0.0005 for each pattern, whose entries are +1 and -1 at 8 nodes.
const HEX8: f64 = 8.0 * 0.0005;
/// Coefficient of the others.
const TINY: f64 = 1e-6;

/// The matrix c (1 - b x)^T H (1 - b x) of one element, the same in each direction.
#[derive(Clone, Debug)]
pub struct Hourglass {
    n_nodes: usize,
    /// Row by row, N/m.
    k: Vec<f64>,
}

/// Mean gradient of each shape function over the element, 1/m, and its volume, m3, by the points of its reduced
/// formulation (hex8: all points of full integration).
fn mean_gradients(cell_type: CellType, coords: &[[f64; 3]]) -> ([[f64; 3]; MAX_NODES], f64) {
    let table = Tabulation::of(cell_type, mean_rule(cell_type, Formulation::Reduced));
    let mut sum = [[0.0; 3]; MAX_NODES];
    let mut total = 0.0;
    for (q, point) in table.points.iter().enumerate() {
        let at = point_geometry(coords, table.grad(q));
        let volume = point.weight * at.det_jac;
        total += volume;
        for (sum, grad) in sum.iter_mut().zip(&at.grad[..coords.len()]) {
            (0..3).for_each(|i| sum[i] += volume * grad[i]);
        }
    }
    (sum.map(|b| b.map(|b| b / total)), total)
}

impl Hourglass {
    /// Of an element of [`Formulation::Reduced`] with these coordinates, m, and Young's modulus, Pa.
    pub fn new(cell_type: CellType, coords: &[[f64; 3]], young: f64) -> Self {
        let n = cell_type.n_nodes();
        let (b, volume) = mean_gradients(cell_type, coords);
        let squares: f64 = b[..n].as_flattened().iter().map(|b| b * b).sum();
        let coefficient = if cell_type == CellType::Hex8 {
            HEX8
        } else {
            TINY
        };
        let c = coefficient * young * volume * squares;
        let h = projector(cell_type);
        // H x with x from the first node, since constants drop out.
        let mut hx = [[0.0; 3]; MAX_NODES];
        let mut xhx = [[0.0; 3]; 3];
        let x = |a: usize| [0, 1, 2].map(|i| coords[a][i] - coords[0][i]);
        for (hx, row) in hx.iter_mut().zip(h.chunks_exact(n)) {
            for (a, h) in row.iter().enumerate() {
                (0..3).for_each(|i| hx[i] += h * x(a)[i]);
            }
        }
        for (a, hx) in hx.iter().enumerate().take(n) {
            for i in 0..3 {
                (0..3).for_each(|j| xhx[i][j] += x(a)[i] * hx[j]);
            }
        }
        let mut k = Vec::with_capacity(n * n);
        for a in 0..n {
            for d in 0..n {
                let mut sum = h[a * n + d];
                for i in 0..3 {
                    sum -= b[a][i] * hx[d][i] + hx[a][i] * b[d][i];
                    sum += (0..3).map(|j| b[a][i] * xhx[i][j] * b[d][j]).sum::<f64>();
                }
                k.push(c * sum);
            }
        }
        Hourglass { n_nodes: n, k }
    }

    /// Stiffness between two nodes in each direction, N/m.
    pub fn coupling(&self, a: usize, b: usize) -> f64 {
        self.k[a * self.n_nodes + b]
    }

    /// Adds the stiffness to the half K_ab, a <= b, of an element's: 3x3 blocks row by row.
    pub fn add_to(&self, half: &mut [f64]) {
        let mut blocks = half.as_chunks_mut::<9>().0.iter_mut();
        for a in 0..self.n_nodes {
            for (b, block) in (a..self.n_nodes).zip(&mut blocks) {
                let k = self.coupling(a, b);
                [0, 4, 8].into_iter().for_each(|i| block[i] += k);
            }
        }
    }

    /// Forces of the displacements `u` of the nodes, m, added to `into`, N.
    pub fn add_forces(&self, u: &[[f64; 3]], into: &mut [[f64; 3]]) {
        for (force, row) in into.iter_mut().zip(self.k.chunks_exact(self.n_nodes)) {
            for (k, u) in row.iter().zip(u) {
                (0..3).for_each(|i| force[i] += k * u[i]);
            }
        }
    }

    /// Energy of the displacements, J.
    pub fn energy(&self, u: &[[f64; 3]]) -> f64 {
        let mut force = [[0.0; 3]; MAX_NODES];
        self.add_forces(u, &mut force);
        let u = u[..self.n_nodes].as_flattened().iter();
        0.5 * u.zip(force.as_flattened()).map(|(u, f)| u * f).sum::<f64>()
    }
}

/// 1 - M (M^T M)^-1 M^T, with M the polynomials at the nodes, row by row.
fn projector(cell_type: CellType) -> &'static [f64] {
    static ALL: LazyLock<Vec<Vec<f64>>> = LazyLock::new(|| {
        let types = (0..).map_while(CellType::from_index);
        types.map(projector_of).collect()
    });
    &ALL[cell_type as usize]
}

fn projector_of(cell_type: CellType) -> Vec<f64> {
    if !Formulation::Reduced.cell_types().contains(&cell_type) {
        return Vec::new();
    }
    let nodes = natural_nodes(cell_type);
    let polynomials = |&[r, s, t]: &[f64; 3]| {
        let mut all = vec![1.0, r, s, t];
        if cell_type.order() == 2 {
            all.extend([r * r, s * s, t * t, r * s, s * t, t * r]);
        }
        all
    };
    let rows: Vec<f64> = nodes.iter().flat_map(polynomials).collect();
    let m = DMatrix::from_row_slice(nodes.len(), rows.len() / nodes.len(), &rows);
    // Independent at the nodes of each type.
    let inverse = (m.transpose() * &m)
        .try_inverse()
        .unwrap_or_else(|| unreachable!("nodes of {cell_type}"));
    let h = DMatrix::identity(nodes.len(), nodes.len()) - &m * inverse * m.transpose();
    h.as_slice().to_vec()
}

#[cfg(test)]
mod tests {
    use super::Hourglass;
    use crate::element::shape::natural_nodes;
    use crate::element::test_cells::distorted;
    use fem_io::case::Formulation;
    use fem_mesh::CellType;

    #[test]
    fn linear_fields_are_free_on_any_shape_far_from_the_origin() {
        for &cell_type in Formulation::Reduced.cell_types() {
            let mut coords = distorted(cell_type, 0.08);
            coords.iter_mut().for_each(|x| x[1] += 1e3);
            let hourglass = Hourglass::new(cell_type, &coords, 2.0);
            let u: Vec<[f64; 3]> = (coords.iter())
                .map(|[x, y, z]| [1.0 + x - 2.0 * z, 0.5 * y, 3.0 * y - x])
                .collect();
            let mut force = vec![[0.0; 3]; u.len()];
            hourglass.add_forces(&u, &mut force);
            let scale = hourglass.coupling(0, 0) * 3e3;
            assert!(force.as_flattened().iter().all(|f| f.abs() < 1e-12 * scale));
        }
    }

    /// The patterns of hex8 have E V sum b^2 0.0005 each: on a cube of edge 2 sum b^2 is 24 / 64.
    #[test]
    fn patterns_of_hex8_have_the_stiffness_of_flanagan_and_belytschko() {
        let coords = natural_nodes(CellType::Hex8);
        let hourglass = Hourglass::new(CellType::Hex8, coords, 2.0);
        let c = 0.0005 * 2.0 * 8.0 * 24.0 / 64.0;
        let patterns: [fn([f64; 3]) -> f64; 2] = [|[r, s, _]| r * s, |[r, s, t]| r * s * t];
        for pattern in patterns {
            let u: Vec<[f64; 3]> = coords.iter().map(|&x| [pattern(x), 0.0, 0.0]).collect();
            // Each pattern is its own amplitude, 8.
            assert!((hourglass.energy(&u) - 0.5 * c * 64.0).abs() < 1e-14);
        }
    }
}
