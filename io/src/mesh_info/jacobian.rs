//! The sign of the Jacobian determinant of solid cells, at quadrature points.
//!
//! In: a cell type, then the coordinates of the nodes of one cell after another. Out: smallest and largest determinant
//! and their weighted sum. A curved cell can be sound though its corners alone look mirrored, and the reverse; so
//! nothing here looks at corners.
//!
//! The shape functions come from the nodes and the monomials of each type, by inverting the matrix of the monomials at
//! the nodes: an own path beside that of the elements, against which the tests of node orders hold.
//!
//! Invariant: knows reference shapes and node orders, no mesh.

use fem_mesh::CellType;

/// Determinants of the Jacobian of one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Determinants {
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
    /// Sum over the quadrature points with their weights: the volume, nearly.
    pub(crate) sum: f64,
}

/// Gradients of the shape functions of one cell type at its quadrature points.
#[derive(Clone, Debug)]
pub(crate) struct Jacobians {
    n_nodes: usize,
    weights: Vec<f64>,
    /// For each point the reference gradient of each shape function.
    gradients: Vec<[f64; 3]>,
}

/// `x^a y^b z^c`, divided by `1 - z` if `over` (pyramids).
#[derive(Clone, Copy)]
struct Term {
    powers: [u8; 3],
    over: bool,
}

impl Jacobians {
    /// Tables of a solid type.
    pub(crate) fn new(cell_type: CellType) -> Self {
        let nodes = reference_nodes(cell_type);
        let terms = terms(cell_type);
        debug_assert_eq!(nodes.len(), terms.len());
        let coefficients = inverse_at(&nodes, &terms);
        let points = quadrature(cell_type);
        let n_nodes = nodes.len();
        let mut gradients = Vec::with_capacity(points.len() * n_nodes);
        for &(point, _) in &points {
            let of_terms: Vec<[f64; 3]> = terms.iter().map(|t| t.gradient(point)).collect();
            for node in 0..n_nodes {
                let mut gradient = [0.0; 3];
                for (term, of_term) in of_terms.iter().enumerate() {
                    for axis in 0..3 {
                        gradient[axis] += coefficients[term * n_nodes + node] * of_term[axis];
                    }
                }
                gradients.push(gradient);
            }
        }
        Jacobians {
            n_nodes,
            weights: points.iter().map(|p| p.1).collect(),
            gradients,
        }
    }

    /// Determinants of the cell whose nodes stand at `coords`, in our node order.
    pub(crate) fn determinants(&self, coords: &[[f64; 3]]) -> Determinants {
        let mut found = Determinants {
            lowest: f64::INFINITY,
            highest: f64::NEG_INFINITY,
            sum: 0.0,
        };
        let at_points = self.gradients.chunks_exact(self.n_nodes);
        for (gradients, weight) in at_points.zip(&self.weights) {
            let mut j = [[0.0; 3]; 3];
            for (gradient, x) in gradients.iter().zip(coords) {
                for row in 0..3 {
                    for column in 0..3 {
                        j[row][column] += gradient[row] * x[column];
                    }
                }
            }
            let det = j[0][0] * (j[1][1] * j[2][2] - j[1][2] * j[2][1])
                + j[0][1] * (j[1][2] * j[2][0] - j[1][0] * j[2][2])
                + j[0][2] * (j[1][0] * j[2][1] - j[1][1] * j[2][0]);
            found.lowest = found.lowest.min(det);
            found.highest = found.highest.max(det);
            found.sum += weight * det;
        }
        found
    }
}

impl Term {
    fn value(self, [x, y, z]: [f64; 3]) -> f64 {
        let [a, b, c] = self.powers.map(i32::from);
        let plain = x.powi(a) * y.powi(b) * z.powi(c);
        match self.over {
            false => plain,
            // At the apex x and y go to 0 as fast as 1 - z does, and there are two of them or more.
            true if z == 1.0 => 0.0,
            true => plain / (1.0 - z),
        }
    }

    fn gradient(self, point: [f64; 3]) -> [f64; 3] {
        let [_, _, z] = point;
        let mut gradient = [0.0; 3];
        for axis in 0..3 {
            let power = self.powers[axis];
            if power > 0 {
                let mut lower = self;
                lower.powers[axis] -= 1;
                gradient[axis] = f64::from(power) * lower.value(point);
            }
        }
        if self.over {
            gradient[2] += self.value(point) / (1.0 - z);
        }
        gradient
    }
}

/// Nodes of the reference cell: corners, then middles of the edges, then (27 nodes) of the faces and of the cell.
pub(crate) fn reference_nodes(cell_type: CellType) -> Vec<[f64; 3]> {
    let square = [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]];
    let triangle = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]];
    let mut nodes: Vec<[f64; 3]> = Vec::with_capacity(27);
    let mut layer = |flat: &[[f64; 2]], z: f64| nodes.extend(flat.iter().map(|p| [p[0], p[1], z]));
    match cell_type.n_corners() {
        4 => {
            layer(&triangle, 0.0);
            layer(&[[0.0, 0.0]], 1.0);
        }
        5 => {
            layer(&square, 0.0);
            layer(&[[0.0, 0.0]], 1.0);
        }
        6 => {
            layer(&triangle, -1.0);
            layer(&triangle, 1.0);
        }
        _ => {
            layer(&square, -1.0);
            layer(&square, 1.0);
        }
    }
    if cell_type.order() == 2 {
        for &[a, b] in cell_type.edges() {
            let [a, b] = [nodes[usize::from(a)], nodes[usize::from(b)]];
            nodes.push(std::array::from_fn(|axis| (a[axis] + b[axis]) / 2.0));
        }
    }
    if cell_type.n_nodes() == 27 {
        for axis in 0..3 {
            for side in [-1.0, 1.0] {
                let mut node = [0.0; 3];
                node[axis] = side;
                nodes.push(node);
            }
        }
        nodes.push([0.0; 3]);
    }
    nodes
}

/// Whether a monomial is one of a type, by the sum of its powers and by each.
type Keep = fn(u8, [u8; 3]) -> bool;

/// Monomials that span the interpolation of each type.
fn terms(cell_type: CellType) -> Vec<Term> {
    let n_nodes = cell_type.n_nodes();
    let (most, keep): (u8, Keep) = match (cell_type.n_corners(), n_nodes) {
        (4, 4) | (5, 5) => (1, |sum, _| sum <= 1),
        (4, _) | (5, _) => (2, |sum, _| sum <= 2),
        (6, 6) => (1, |_, [a, b, _]| a + b <= 1),
        // The edges along z carry a second power of z, but only three functions do.
        (6, _) => (2, |_, [a, b, c]| a + b <= 2 && (c < 2 || a + b <= 1)),
        (_, 8) => (1, |_, _| true),
        (_, 20) => (2, |_, p| p.iter().filter(|&&p| p == 2).count() <= 1),
        _ => (2, |_, _| true),
    };
    let mut terms = Vec::with_capacity(n_nodes);
    for a in 0..=most {
        for b in 0..=most {
            for c in 0..=most {
                if keep(a + b + c, [a, b, c]) {
                    let powers = [a, b, c];
                    terms.push(Term {
                        powers,
                        over: false,
                    });
                }
            }
        }
    }
    if cell_type.n_corners() == 5 {
        let over: &[[u8; 3]] = if n_nodes == 5 {
            &[[1, 1, 0]]
        } else {
            &[[1, 1, 1], [2, 1, 0], [1, 2, 0]]
        };
        terms.extend(over.iter().map(|&powers| Term { powers, over: true }));
    }
    terms
}

/// Coefficient of each term in each shape function, `[term][node]`: the inverse of the terms at the nodes.
fn inverse_at(nodes: &[[f64; 3]], terms: &[Term]) -> Vec<f64> {
    let n = nodes.len();
    let mut rows: Vec<Vec<f64>> = (nodes.iter().enumerate())
        .map(|(k, &node)| {
            let mut row: Vec<f64> = terms.iter().map(|t| t.value(node)).collect();
            row.extend((0..n).map(|j| if j == k { 1.0 } else { 0.0 }));
            row
        })
        .collect();
    for column in 0..n {
        let pivot = (column..n)
            .max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))
            .unwrap_or(column);
        rows.swap(column, pivot);
        let scale = 1.0 / rows[column][column];
        rows[column].iter_mut().for_each(|x| *x *= scale);
        let pivot_row = rows[column].clone();
        for (k, row) in rows.iter_mut().enumerate() {
            let factor = row[column];
            if k != column && factor != 0.0 {
                for (x, p) in row.iter_mut().zip(&pivot_row) {
                    *x -= factor * p;
                }
            }
        }
    }
    rows.into_iter().flat_map(|row| row[n..].to_vec()).collect()
}

/// Points and weights on the reference cell: Gauss points, collapsed where the cell has a tip.
fn quadrature(cell_type: CellType) -> Vec<([f64; 3], f64)> {
    let order = cell_type.order();
    if cell_type.n_corners() == 4 {
        return tetrahedron_points(order);
    }
    let line: &[(f64, f64)] = if order == 1 {
        &[
            (-0.577_350_269_189_625_8, 1.0),
            (0.577_350_269_189_625_8, 1.0),
        ]
    } else {
        &[
            (-0.774_596_669_241_483_4, 5.0 / 9.0),
            (0.0, 8.0 / 9.0),
            (0.774_596_669_241_483_4, 5.0 / 9.0),
        ]
    };
    let mut points = Vec::with_capacity(27);
    for &(u, a) in line {
        for &(v, b) in line {
            for &(w, c) in line {
                let (point, factor) = match cell_type.n_corners() {
                    5 => {
                        let z = (1.0 + w) / 2.0;
                        (
                            [u * (1.0 - z), v * (1.0 - z), z],
                            (1.0 - z) * (1.0 - z) / 2.0,
                        )
                    }
                    6 => {
                        let x = (1.0 + u) / 2.0;
                        ([x, (1.0 + v) / 2.0 * (1.0 - x), w], (1.0 - x) / 4.0)
                    }
                    _ => ([u, v, w], 1.0),
                };
                points.push((point, a * b * c * factor));
            }
        }
    }
    points
}

/// One point, or the four of degree 2.
fn tetrahedron_points(order: usize) -> Vec<([f64; 3], f64)> {
    if order == 1 {
        return vec![([0.25; 3], 1.0 / 6.0)];
    }
    let (near, far) = (0.585_410_196_624_968_5, 0.138_196_601_125_010_5);
    let at = |axis: usize| std::array::from_fn(|k| if k == axis { near } else { far });
    (0..4).map(|axis| (at(axis), 1.0 / 24.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Jacobians, reference_nodes};
    use fem_mesh::CellType;

    #[test]
    fn reference_cells_have_their_volume_and_linear_maps_their_determinant() {
        for cell_type in CellType::SOLIDS {
            let volume = match cell_type.n_corners() {
                4 => 1.0 / 6.0,
                5 => 4.0 / 3.0,
                6 => 1.0,
                _ => 8.0,
            };
            let tables = Jacobians::new(cell_type);
            let mapped: Vec<[f64; 3]> = reference_nodes(cell_type)
                .iter()
                .map(|[x, y, z]| [2.0 * x + y + 7.0, 3.0 * y - z, z + 0.5 * x])
                .collect();
            let det = 2.0 * 3.0 - 0.5; // expanded by hand
            let found = tables.determinants(&mapped);
            assert!(
                (found.sum - det * volume).abs() < 1e-12,
                "{cell_type} {found:?}"
            );
            assert!((found.lowest - det).abs() < 1e-12 && (found.highest - det).abs() < 1e-12);
        }
    }

    #[test]
    fn corners_alone_decide_nothing() {
        // A corner of a tet10 pulled through the opposite face while its mid nodes stay: the tetrahedron of the corners
        // is mirrored, the cell is not, for the functions of corners integrate to nothing over a face.
        let mut nodes = reference_nodes(CellType::Tet10);
        nodes[3][2] = -0.05;
        let found = Jacobians::new(CellType::Tet10).determinants(&nodes);
        assert!((found.sum - 1.0 / 6.0).abs() < 1e-12, "{found:?}");
    }
}
