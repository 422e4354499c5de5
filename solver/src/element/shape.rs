//! Shape functions of every cell type and their gradients in natural coordinates.
//!
//! Simplices use barycentric coordinates on 0 <= r, s, t with r + s + t <= 1, hexahedra and quadrilaterals the cube
//! [-1, 1]^d, the wedge a triangle (r, s) times t in [-1, 1], the pyramid |r|, |s| <= 1 - t with 0 <= t <= 1. Facets ignore
//! the third coordinate. The node order is that drawn in [`fem_mesh::cell_type`]. Sources: Zienkiewicz and Taylor, The
//! Finite Element Method, volume 1, chapter 4 (serendipity and Lagrange families, simplices, wedges); pyramids: Bedrosian,
//! Int. J. Numer. Meth. Engng 35 (1992) 95-108, rational functions whose traces are those of the neighbors' faces.
//!
//! Invariant: natural coordinates only; knows no cell of a mesh and no quadrature rule.

use fem_mesh::CellType;

/// Largest number of nodes of a cell type: the size of arrays on the stack that serve all types.
pub const MAX_NODES: usize = 27;

static TRIANGLE: [[f64; 3]; 6] = [
    [0.0, 0.0, 0.0],
    [1.0, 0.0, 0.0],
    [0.0, 1.0, 0.0],
    [0.5, 0.0, 0.0],
    [0.5, 0.5, 0.0],
    [0.0, 0.5, 0.0],
];

static TETRAHEDRON: [[f64; 3]; 10] = [
    [0.0, 0.0, 0.0],
    [1.0, 0.0, 0.0],
    [0.0, 1.0, 0.0],
    [0.0, 0.0, 1.0],
    [0.5, 0.0, 0.0],
    [0.5, 0.5, 0.0],
    [0.0, 0.5, 0.0],
    [0.0, 0.0, 0.5],
    [0.5, 0.0, 0.5],
    [0.0, 0.5, 0.5],
];

static QUADRILATERAL: [[f64; 3]; 9] = [
    [-1.0, -1.0, 0.0],
    [1.0, -1.0, 0.0],
    [1.0, 1.0, 0.0],
    [-1.0, 1.0, 0.0],
    [0.0, -1.0, 0.0],
    [1.0, 0.0, 0.0],
    [0.0, 1.0, 0.0],
    [-1.0, 0.0, 0.0],
    [0.0, 0.0, 0.0],
];

static PYRAMID: [[f64; 3]; 13] = [
    [-1.0, -1.0, 0.0],
    [1.0, -1.0, 0.0],
    [1.0, 1.0, 0.0],
    [-1.0, 1.0, 0.0],
    [0.0, 0.0, 1.0],
    [0.0, -1.0, 0.0],
    [1.0, 0.0, 0.0],
    [0.0, 1.0, 0.0],
    [-1.0, 0.0, 0.0],
    [-0.5, -0.5, 0.5],
    [0.5, -0.5, 0.5],
    [0.5, 0.5, 0.5],
    [-0.5, 0.5, 0.5],
];

static WEDGE: [[f64; 3]; 15] = [
    [0.0, 0.0, -1.0],
    [1.0, 0.0, -1.0],
    [0.0, 1.0, -1.0],
    [0.0, 0.0, 1.0],
    [1.0, 0.0, 1.0],
    [0.0, 1.0, 1.0],
    [0.5, 0.0, -1.0],
    [0.5, 0.5, -1.0],
    [0.0, 0.5, -1.0],
    [0.5, 0.0, 1.0],
    [0.5, 0.5, 1.0],
    [0.0, 0.5, 1.0],
    [0.0, 0.0, 0.0],
    [1.0, 0.0, 0.0],
    [0.0, 1.0, 0.0],
];

static HEXAHEDRON: [[f64; 3]; 27] = [
    [-1.0, -1.0, -1.0],
    [1.0, -1.0, -1.0],
    [1.0, 1.0, -1.0],
    [-1.0, 1.0, -1.0],
    [-1.0, -1.0, 1.0],
    [1.0, -1.0, 1.0],
    [1.0, 1.0, 1.0],
    [-1.0, 1.0, 1.0],
    [0.0, -1.0, -1.0],
    [1.0, 0.0, -1.0],
    [0.0, 1.0, -1.0],
    [-1.0, 0.0, -1.0],
    [0.0, -1.0, 1.0],
    [1.0, 0.0, 1.0],
    [0.0, 1.0, 1.0],
    [-1.0, 0.0, 1.0],
    [-1.0, -1.0, 0.0],
    [1.0, -1.0, 0.0],
    [1.0, 1.0, 0.0],
    [-1.0, 1.0, 0.0],
    [-1.0, 0.0, 0.0],
    [1.0, 0.0, 0.0],
    [0.0, -1.0, 0.0],
    [0.0, 1.0, 0.0],
    [0.0, 0.0, -1.0],
    [0.0, 0.0, 1.0],
    [0.0, 0.0, 0.0],
];

/// Natural coordinates of the nodes of a cell type; facets have a third coordinate of 0.
pub fn natural_nodes(cell_type: CellType) -> &'static [[f64; 3]] {
    let all: &[[f64; 3]] = match cell_type {
        CellType::Tri3 | CellType::Tri6 => &TRIANGLE,
        CellType::Quad4 | CellType::Quad8 | CellType::Quad9 => &QUADRILATERAL,
        CellType::Tet4 | CellType::Tet10 => &TETRAHEDRON,
        CellType::Pyramid5 | CellType::Pyramid13 => &PYRAMID,
        CellType::Wedge6 | CellType::Wedge15 => &WEDGE,
        CellType::Hex8 | CellType::Hex20 | CellType::Hex27 => &HEXAHEDRON,
    };
    &all[..cell_type.n_nodes()]
}

/// Values and natural gradients of all shape functions at one point, in node order; entries past the number of
/// nodes are zero.
#[derive(Clone, Debug)]
pub struct ShapeAt {
    /// Values N_a.
    pub shape: [f64; MAX_NODES],
    /// Gradients dN_a / dxi; for facets the third entry is 0.
    pub grad: [[f64; 3]; MAX_NODES],
}

/// Shape functions of `cell_type` at the natural coordinates `xi`.
pub fn shape_at(cell_type: CellType, xi: [f64; 3]) -> ShapeAt {
    let mut at = ShapeAt {
        shape: [0.0; MAX_NODES],
        grad: [[0.0; 3]; MAX_NODES],
    };
    match cell_type {
        CellType::Tri3 | CellType::Tet4 => simplex_linear(cell_type, xi, &mut at),
        CellType::Tri6 | CellType::Tet10 => simplex_quadratic(cell_type, xi, &mut at),
        CellType::Quad4 | CellType::Hex8 => cube_linear(cell_type, xi, &mut at),
        CellType::Quad8 | CellType::Hex20 => cube_serendipity(cell_type, xi, &mut at),
        CellType::Quad9 | CellType::Hex27 => cube_lagrange(cell_type, xi, &mut at),
        CellType::Wedge6 => wedge_linear(xi, &mut at),
        CellType::Wedge15 => wedge_quadratic(xi, &mut at),
        CellType::Pyramid5 => pyramid_linear(xi, &mut at),
        CellType::Pyramid13 => pyramid_quadratic(xi, &mut at),
    }
    at
}

/// Barycentric coordinates and their gradients on the unit simplex of dimension 2 or 3.
fn barycentric(dimension: usize, xi: [f64; 3]) -> ([f64; 4], [[f64; 3]; 4]) {
    let mut value = [1.0, 0.0, 0.0, 0.0];
    let mut grad = [[0.0; 3]; 4];
    for i in 0..dimension {
        value[0] -= xi[i];
        value[i + 1] = xi[i];
        grad[0][i] = -1.0;
        grad[i + 1][i] = 1.0;
    }
    (value, grad)
}

fn simplex_linear(cell_type: CellType, xi: [f64; 3], at: &mut ShapeAt) {
    let (l, dl) = barycentric(cell_type.dimension(), xi);
    let n = cell_type.n_corners();
    at.shape[..n].copy_from_slice(&l[..n]);
    at.grad[..n].copy_from_slice(&dl[..n]);
}

/// Corners l (2 l - 1), edges 4 l_a l_b.
fn simplex_quadratic(cell_type: CellType, xi: [f64; 3], at: &mut ShapeAt) {
    let (l, dl) = barycentric(cell_type.dimension(), xi);
    let n_corners = cell_type.n_corners();
    for a in 0..n_corners {
        at.shape[a] = l[a] * (2.0 * l[a] - 1.0);
        at.grad[a] = dl[a].map(|d| (4.0 * l[a] - 1.0) * d);
    }
    for (k, edge) in cell_type.edges().iter().enumerate() {
        let [a, b] = edge.map(usize::from);
        at.shape[n_corners + k] = 4.0 * l[a] * l[b];
        for i in 0..3 {
            at.grad[n_corners + k][i] = 4.0 * (l[a] * dl[b][i] + l[b] * dl[a][i]);
        }
    }
}

/// Value and gradient of f_0 f_1 (f_2), given each factor and its derivative by its own coordinate.
fn product(dimension: usize, factors: &[[f64; 2]; 3]) -> (f64, [f64; 3]) {
    let mut value = 1.0;
    let mut grad = [0.0; 3];
    for i in 0..dimension {
        value *= factors[i][0];
        grad[i] = (0..dimension)
            .map(|k| if k == i { factors[k][1] } else { factors[k][0] })
            .product();
    }
    (value, grad)
}

fn cube_linear(cell_type: CellType, xi: [f64; 3], at: &mut ShapeAt) {
    for (a, node) in natural_nodes(cell_type).iter().enumerate() {
        let factors = [0, 1, 2].map(|i| [0.5 * (1.0 + node[i] * xi[i]), 0.5 * node[i]]);
        (at.shape[a], at.grad[a]) = product(cell_type.dimension(), &factors);
    }
}

/// Corners 2^-d P (sum_i x_i xi_i - (d - 1)) with P the product of (1 + x_i xi_i); on an edge along direction k
/// the factor of k is 1 - xi_k^2 and the sum is absent.
fn cube_serendipity(cell_type: CellType, xi: [f64; 3], at: &mut ShapeAt) {
    let dimension = cell_type.dimension();
    for (a, node) in natural_nodes(cell_type).iter().enumerate() {
        let factors = [0, 1, 2].map(|i| {
            if node[i] == 0.0 {
                [1.0 - xi[i] * xi[i], -2.0 * xi[i]]
            } else {
                [0.5 * (1.0 + node[i] * xi[i]), 0.5 * node[i]]
            }
        });
        let (value, grad) = product(dimension, &factors);
        if a >= cell_type.n_corners() {
            (at.shape[a], at.grad[a]) = (value, grad);
            continue;
        }
        let sum = (0..dimension).map(|i| node[i] * xi[i]).sum::<f64>() - (dimension - 1) as f64;
        at.shape[a] = value * sum;
        for i in 0..dimension {
            at.grad[a][i] = grad[i] * sum + value * node[i];
        }
    }
}

/// Products of x (x + x_i) / 2 at the ends of an axis and 1 - x^2 in its middle.
fn cube_lagrange(cell_type: CellType, xi: [f64; 3], at: &mut ShapeAt) {
    for (a, node) in natural_nodes(cell_type).iter().enumerate() {
        let factors = [0, 1, 2].map(|i| {
            if node[i] == 0.0 {
                [1.0 - xi[i] * xi[i], -2.0 * xi[i]]
            } else {
                [0.5 * xi[i] * (xi[i] + node[i]), xi[i] + 0.5 * node[i]]
            }
        });
        (at.shape[a], at.grad[a]) = product(cell_type.dimension(), &factors);
    }
}

fn wedge_linear(xi: [f64; 3], at: &mut ShapeAt) {
    let (l, dl) = barycentric(2, xi);
    for a in 0..6 {
        let sign = if a < 3 { -1.0 } else { 1.0 };
        let along = 0.5 * (1.0 + sign * xi[2]);
        at.shape[a] = l[a % 3] * along;
        at.grad[a] = [
            dl[a % 3][0] * along,
            dl[a % 3][1] * along,
            l[a % 3] * 0.5 * sign,
        ];
    }
}

/// Corners l ((2 l - 1)(1 + t t_i) - (1 - t^2)) / 2, edges of the triangles 2 l_a l_b (1 + t t_i), upright edges
/// l (1 - t^2).
fn wedge_quadratic(xi: [f64; 3], at: &mut ShapeAt) {
    let (l, dl) = barycentric(2, xi);
    let t = xi[2];
    let bubble = 1.0 - t * t;
    for a in 0..6 {
        let (l, dl) = (l[a % 3], dl[a % 3]);
        let sign = if a < 3 { -1.0 } else { 1.0 };
        let along = 1.0 + sign * t;
        at.shape[a] = 0.5 * l * ((2.0 * l - 1.0) * along - bubble);
        let by_l = 0.5 * ((4.0 * l - 1.0) * along - bubble);
        let by_t = 0.5 * l * ((2.0 * l - 1.0) * sign + 2.0 * t);
        at.grad[a] = [by_l * dl[0], by_l * dl[1], by_t];
    }
    for (k, edge) in CellType::Wedge15.edges().iter().enumerate() {
        let [a, b] = edge.map(|i| usize::from(i) % 3);
        if a == b {
            at.shape[6 + k] = l[a] * bubble;
            at.grad[6 + k] = [dl[a][0] * bubble, dl[a][1] * bubble, -2.0 * t * l[a]];
            continue;
        }
        let sign = if k < 3 { -1.0 } else { 1.0 };
        let along = 2.0 * (1.0 + sign * t);
        at.shape[6 + k] = l[a] * l[b] * along;
        let by = |i: usize| along * (l[a] * dl[b][i] + l[b] * dl[a][i]);
        at.grad[6 + k] = [by(0), by(1), 2.0 * sign * l[a] * l[b]];
    }
}

/// A number with its gradient.
type Graded = (f64, [f64; 3]);

fn times((f, df): Graded, (g, dg): Graded) -> Graded {
    (f * g, [0, 1, 2].map(|i| f * dg[i] + g * df[i]))
}

/// r / (1 - t) and s / (1 - t) of a point of the pyramid: the coordinates within the square at its height; 0 at the
/// apex, where every direction has its own limit.
pub fn within_square([r, s, t]: [f64; 3]) -> [f64; 2] {
    let height = 1.0 - t;
    if height.abs() < f64::EPSILON {
        [0.0; 2]
    } else {
        [r / height, s / height]
    }
}

/// ((1 - t) + r r_a) ((1 - t) + s s_a) / (4 (1 - t)): the function of a corner of the base.
fn pyramid_corner(a: usize, xi: [f64; 3]) -> Graded {
    let [x, y, _] = PYRAMID[a];
    let [u, v] = within_square(xi);
    let value = 0.25 * (1.0 - xi[2] + x * xi[0] + y * xi[1] + x * y * u * xi[1]);
    let grad = [
        0.25 * x * (1.0 + y * v),
        0.25 * y * (1.0 + x * u),
        0.25 * (x * y * u * v - 1.0),
    ];
    (value, grad)
}

fn pyramid_linear(xi: [f64; 3], at: &mut ShapeAt) {
    for a in 0..4 {
        (at.shape[a], at.grad[a]) = pyramid_corner(a, xi);
    }
    (at.shape[4], at.grad[4]) = (xi[2], [0.0, 0.0, 1.0]);
}

/// With p the functions of [`pyramid_corner`] and h = 1 - t: corners p (r r_a + s s_a - 1), apex t (2 t - 1), edges of the
/// base (h^2 - r^2) (h + s s_a) / (2 h) and the same with r and s exchanged, edges to the apex 4 t p.
fn pyramid_quadratic(xi: [f64; 3], at: &mut ShapeAt) {
    let [r, s, t] = xi;
    let [u, v] = within_square(xi);
    for a in 0..4 {
        let corner = pyramid_corner(a, xi);
        let [x, y, _] = PYRAMID[a];
        (at.shape[a], at.grad[a]) = times(corner, (x * r + y * s - 1.0, [x, y, 0.0]));
        (at.shape[9 + a], at.grad[9 + a]) = times(corner, (4.0 * t, [0.0, 0.0, 4.0]));
    }
    (at.shape[4], at.grad[4]) = (t * (2.0 * t - 1.0), [0.0, 0.0, 4.0 * t - 1.0]);
    for k in 5..9 {
        let [x, y, _] = PYRAMID[k];
        // (h^2 - r^2) / h and (h + s s_a) / 2, or the other way round.
        let (bubble, side) = if x == 0.0 {
            (
                (1.0 - t - r * u, [-2.0 * u, 0.0, -1.0 - u * u]),
                (0.5 * (1.0 - t + y * s), [0.0, 0.5 * y, -0.5]),
            )
        } else {
            (
                (1.0 - t - s * v, [0.0, -2.0 * v, -1.0 - v * v]),
                (0.5 * (1.0 - t + x * r), [0.5 * x, 0.0, -0.5]),
            )
        };
        (at.shape[k], at.grad[k]) = times(bubble, side);
    }
}

#[cfg(test)]
mod tests {
    use super::{natural_nodes, shape_at};
    use fem_mesh::CellType;
    use proptest::prelude::{Strategy, prop_assert, proptest};

    fn any_type() -> impl Strategy<Value = CellType> {
        (0u8..14).prop_map(|i| CellType::from_index(i).unwrap())
    }

    /// The functions of pyramids are no polynomials: their points are taken into the cell, away from the apex.
    fn inside(cell_type: CellType, [r, s, t]: [f64; 3]) -> [f64; 3] {
        if cell_type.n_corners() == 5 {
            let t = 0.45 * (1.0 + t);
            [r * (1.0 - t), s * (1.0 - t), t]
        } else {
            [r, s, t]
        }
    }

    #[test]
    fn each_shape_function_is_one_at_its_own_node() {
        for cell_type in (0..14).filter_map(CellType::from_index) {
            for (b, &xi) in natural_nodes(cell_type).iter().enumerate() {
                let at = shape_at(cell_type, xi);
                for a in 0..cell_type.n_nodes() {
                    let expected = if a == b { 1.0 } else { 0.0 };
                    assert!(
                        (at.shape[a] - expected).abs() < 1e-14,
                        "{cell_type}: N_{a} at node {b}"
                    );
                }
            }
        }
    }

    #[test]
    fn mid_nodes_stand_halfway_between_their_corners() {
        let all = (0..14).filter_map(CellType::from_index);
        for cell_type in all.filter(|t| t.order() == 2) {
            let nodes = natural_nodes(cell_type);
            let edges = cell_type.edges().iter().map(|edge| &edge[..]);
            let around = edges.chain(cell_type.inner_nodes().iter().copied());
            for (around, node) in around.zip(&nodes[cell_type.n_corners()..]) {
                let sum = |i: usize| {
                    around
                        .iter()
                        .map(|&k| nodes[usize::from(k)][i])
                        .sum::<f64>()
                };
                let mean = [0, 1, 2].map(|i| sum(i) / around.len() as f64);
                assert_eq!(*node, mean, "{cell_type}");
            }
        }
    }

    /// On a face the functions of its nodes are those of the face, and the others vanish: neighbors of any type fit.
    #[test]
    fn traces_on_faces_are_the_functions_of_the_faces() {
        for cell_type in CellType::SOLIDS {
            let nodes = natural_nodes(cell_type);
            for face in cell_type.faces() {
                for xi in [[0.2, 0.3, 0.0], [0.1, 0.6, 0.0], [0.45, 0.15, 0.0]] {
                    let on_face = shape_at(face.cell_type, xi);
                    let xi = [0, 1, 2].map(|i| {
                        let of_nodes = face.nodes.iter().zip(on_face.shape);
                        of_nodes.map(|(&k, n)| nodes[usize::from(k)][i] * n).sum()
                    });
                    let at = shape_at(cell_type, xi);
                    let mut expected = [0.0; super::MAX_NODES];
                    for (&k, n) in face.nodes.iter().zip(on_face.shape) {
                        expected[usize::from(k)] = n;
                    }
                    for (found, expected) in at.shape.iter().zip(expected) {
                        assert!((found - expected).abs() < 1e-14, "{cell_type}");
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn shape_functions_are_a_partition_of_unity_and_reproduce_the_point(
            cell_type in any_type(), r in -1.0..1.0f64, s in -1.0..1.0f64, t in -1.0..1.0f64,
        ) {
            let xi = inside(cell_type, [r, s, if cell_type.dimension() == 3 { t } else { 0.0 }]);
            let at = shape_at(cell_type, xi);
            let nodes = natural_nodes(cell_type);
            prop_assert!((at.shape.iter().sum::<f64>() - 1.0).abs() < 1e-13);
            for i in 0..3 {
                prop_assert!(at.grad.iter().map(|g| g[i]).sum::<f64>().abs() < 1e-13);
                let x: f64 = nodes.iter().zip(&at.shape).map(|(x, n)| x[i] * n).sum();
                prop_assert!((x - xi[i]).abs() < 1e-13);
            }
        }

        #[test]
        fn gradients_agree_with_central_differences(
            cell_type in any_type(), r in -1.0..1.0f64, s in -1.0..1.0f64, t in -1.0..1.0f64,
        ) {
            let xi = inside(cell_type, [r, s, t]);
            let at = shape_at(cell_type, xi);
            let step = 1e-5;
            for i in 0..cell_type.dimension() {
                let (mut low, mut high) = (xi, xi);
                low[i] -= step;
                high[i] += step;
                let (low, high) = (shape_at(cell_type, low), shape_at(cell_type, high));
                for a in 0..cell_type.n_nodes() {
                    let difference = (high.shape[a] - low.shape[a]) / (2.0 * step);
                    prop_assert!((difference - at.grad[a][i]).abs() < 1e-8, "{cell_type} N_{a}, direction {i}");
                }
            }
        }
    }
}
