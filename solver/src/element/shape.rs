//! Shape functions of every cell type and their gradients in natural coordinates.
//!
//! Simplices use barycentric coordinates on 0 <= r, s, t with r + s + t <= 1, hexahedra and quadrilaterals the cube
//! [-1, 1]^d, the wedge a triangle (r, s) times t in [-1, 1]. Facets ignore the third coordinate. The node order is
//! that drawn in [`fem_mesh::cell_type`]. Sources: Zienkiewicz and Taylor, The Finite Element Method, volume 1,
//! chapter 4 (serendipity family, simplices).
//!
//! Invariant: natural coordinates only; knows no cell of a mesh and no quadrature rule.

use fem_mesh::CellType;

/// Largest number of nodes of a cell type: the size of arrays on the stack that serve all types.
pub const MAX_NODES: usize = 20;

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

static QUADRILATERAL: [[f64; 3]; 8] = [
    [-1.0, -1.0, 0.0],
    [1.0, -1.0, 0.0],
    [1.0, 1.0, 0.0],
    [-1.0, 1.0, 0.0],
    [0.0, -1.0, 0.0],
    [1.0, 0.0, 0.0],
    [0.0, 1.0, 0.0],
    [-1.0, 0.0, 0.0],
];

static WEDGE: [[f64; 3]; 6] = [
    [0.0, 0.0, -1.0],
    [1.0, 0.0, -1.0],
    [0.0, 1.0, -1.0],
    [0.0, 0.0, 1.0],
    [1.0, 0.0, 1.0],
    [0.0, 1.0, 1.0],
];

static HEXAHEDRON: [[f64; 3]; 20] = [
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
];

/// Natural coordinates of the nodes of a cell type; facets have a third coordinate of 0.
pub fn natural_nodes(cell_type: CellType) -> &'static [[f64; 3]] {
    let all: &[[f64; 3]] = match cell_type {
        CellType::Tri3 | CellType::Tri6 => &TRIANGLE,
        CellType::Quad4 | CellType::Quad8 => &QUADRILATERAL,
        CellType::Tet4 | CellType::Tet10 => &TETRAHEDRON,
        CellType::Wedge6 => &WEDGE,
        CellType::Hex8 | CellType::Hex20 => &HEXAHEDRON,
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
        CellType::Wedge6 => wedge_linear(xi, &mut at),
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

#[cfg(test)]
mod tests {
    use super::{natural_nodes, shape_at};
    use fem_mesh::CellType;
    use proptest::prelude::{Strategy, prop_assert, proptest};

    fn any_type() -> impl Strategy<Value = CellType> {
        (0u8..9).prop_map(|i| CellType::from_index(i).unwrap())
    }

    #[test]
    fn each_shape_function_is_one_at_its_own_node() {
        for index in 0..9 {
            let cell_type = CellType::from_index(index).unwrap();
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
        for cell_type in [
            CellType::Tri6,
            CellType::Quad8,
            CellType::Tet10,
            CellType::Hex20,
        ] {
            let nodes = natural_nodes(cell_type);
            for (k, edge) in cell_type.edges().iter().enumerate() {
                let [a, b] = edge.map(|i| nodes[usize::from(i)]);
                let mid = [0, 1, 2].map(|i| 0.5 * (a[i] + b[i]));
                assert_eq!(nodes[cell_type.n_corners() + k], mid, "{cell_type}");
            }
        }
    }

    proptest! {
        #[test]
        fn shape_functions_are_a_partition_of_unity_and_reproduce_the_point(
            cell_type in any_type(), r in -1.0..1.0f64, s in -1.0..1.0f64, t in -1.0..1.0f64,
        ) {
            let xi = [r, s, if cell_type.dimension() == 3 { t } else { 0.0 }];
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
            let xi = [r, s, t];
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
