//! Quadrature rules and the shape functions tabulated at their points.
//!
//! What goes in: a cell type and what is to be integrated. What comes out: points, weights, N and dN/dxi, made once
//! for the whole run. Sources: Gauss-Legendre; triangle rule of degree 5 by Radon (1948); tetrahedron rules of degree 2
//! (Hammer and Stroud 1956) and degree 5 with 14 points (Walkington 2000); pyramids: conical products of Gauss-Legendre
//! rules over the square and Gauss-Jacobi rules with weight (1 - t)^2 (Stroud 1971, section 2.5).
//!
//! ```text
//! points        tet4  tet10  pyramid5  pyramid13  wedge6  wedge15  hex8  hex20  hex27
//! Stiffness     1     4      4         18         6       9        8     27     27
//! Reduced       -     -      -         -          2       -        1     8      -
//! Recovery      1     4      4         8          6       6        8     8      8
//! ```
//!
//! Invariant: natural coordinates only; knows no cell of a mesh.

use super::shape::{natural_nodes, shape_at};
use fem_mesh::CellType;
use std::sync::LazyLock;

/// A quadrature point: natural coordinates and weight. The weights of a rule sum to the size of the natural cell.
#[derive(Clone, Copy, Debug)]
pub struct QuadraturePoint {
    /// Natural coordinates.
    pub xi: [f64; 3],
    /// Weight.
    pub weight: f64,
}

/// What a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Stiffness and internal forces (full integration).
    Stiffness,
    /// Reduced integration of the types that have it, as in Abaqus and CalculiX (C3D8R, C3D20R; two points in wedge6, as
    /// C3D6 has); full integration of the others.
    Reduced,
    /// Loads on cells and facets: exact for constant body forces and pressures on curved cells of every type.
    Load,
    /// Stress recovery: the points from which stresses of fully integrated elements are extrapolated to the nodes.
    Recovery,
    /// The nodes themselves, with weight 0.
    Nodes,
}

/// A rule with the shape functions of one cell type at its points.
#[derive(Clone, Debug)]
pub struct Tabulation {
    /// The rule.
    pub points: Vec<QuadraturePoint>,
    n_nodes: usize,
    shape: Vec<f64>,
    grad: Vec<[f64; 3]>,
}

impl Tabulation {
    /// The rule of `cell_type` for `purpose`. Facets have one rule, that for loads.
    pub fn of(cell_type: CellType, purpose: Purpose) -> &'static Tabulation {
        static ALL: LazyLock<Vec<[Tabulation; 5]>> = LazyLock::new(|| {
            let purposes = [
                Purpose::Stiffness,
                Purpose::Reduced,
                Purpose::Load,
                Purpose::Recovery,
                Purpose::Nodes,
            ];
            let types = (0..).map_while(CellType::from_index);
            types
                .map(|t| purposes.map(|p| Tabulation::new(t, rule(t, p))))
                .collect()
        });
        &ALL[cell_type as usize][purpose as usize]
    }

    fn new(cell_type: CellType, points: Vec<QuadraturePoint>) -> Self {
        let n_nodes = cell_type.n_nodes();
        let mut table = Tabulation {
            points,
            n_nodes,
            shape: Vec::new(),
            grad: Vec::new(),
        };
        for point in &table.points {
            let at = shape_at(cell_type, point.xi);
            table.shape.extend_from_slice(&at.shape[..n_nodes]);
            table.grad.extend_from_slice(&at.grad[..n_nodes]);
        }
        table
    }

    /// Number of points.
    pub fn n_points(&self) -> usize {
        self.points.len()
    }

    /// Number of nodes of the cell type.
    pub fn n_nodes(&self) -> usize {
        self.n_nodes
    }

    /// Values N_a at point `q`, in node order.
    #[inline]
    pub fn shape(&self, q: usize) -> &[f64] {
        &self.shape[q * self.n_nodes..(q + 1) * self.n_nodes]
    }

    /// Gradients dN_a / dxi at point `q`, in node order.
    #[inline]
    pub fn grad(&self, q: usize) -> &[[f64; 3]] {
        &self.grad[q * self.n_nodes..(q + 1) * self.n_nodes]
    }
}

fn rule(cell_type: CellType, purpose: Purpose) -> Vec<QuadraturePoint> {
    if purpose == Purpose::Nodes {
        return natural_nodes(cell_type)
            .iter()
            .map(|&xi| QuadraturePoint { xi, weight: 0.0 })
            .collect();
    }
    match (cell_type, purpose) {
        (CellType::Tri3, _) => triangle_3(),
        (CellType::Tri6, _) => triangle_7(),
        (CellType::Quad4, _) => cube(2, 2),
        (CellType::Quad8 | CellType::Quad9, _) => cube(2, 3),
        (CellType::Tet4, Purpose::Load) => tetrahedron_4(),
        (CellType::Tet4, _) => vec![QuadraturePoint {
            xi: [0.25; 3],
            weight: 1.0 / 6.0,
        }],
        (CellType::Tet10, Purpose::Load) => tetrahedron_14(),
        (CellType::Tet10, _) => tetrahedron_4(),
        (CellType::Pyramid5, Purpose::Load) => pyramid(2, &shifted_gauss(2)),
        (CellType::Pyramid5, _) => pyramid(2, &CENTER_OF_PYRAMID),
        (CellType::Pyramid13, Purpose::Load) => pyramid(4, &shifted_gauss(4)),
        (CellType::Pyramid13, Purpose::Recovery) => pyramid(2, &jacobi_2()),
        (CellType::Pyramid13, _) => pyramid(3, &jacobi_2()),
        (CellType::Wedge6, Purpose::Reduced) => wedge(&triangle_1(), 2),
        (CellType::Wedge6, _) | (CellType::Wedge15, Purpose::Recovery) => wedge(&triangle_3(), 2),
        (CellType::Wedge15, Purpose::Load) => wedge(&triangle_16(), 4),
        (CellType::Wedge15, _) => wedge(&triangle_3(), 3),
        (CellType::Hex8, Purpose::Reduced) => cube(3, 1),
        (CellType::Hex20 | CellType::Hex27, Purpose::Load) => cube(3, 4),
        (CellType::Hex20, Purpose::Stiffness)
        | (CellType::Hex27, Purpose::Stiffness | Purpose::Reduced) => cube(3, 3),
        (CellType::Hex8 | CellType::Hex20 | CellType::Hex27, _) => cube(3, 2),
    }
}

/// Gauss-Legendre on [-1, 1] with `n` points, 1 to 4: (abscissa, weight), exact to degree 2 n - 1.
fn gauss(n: usize) -> Vec<(f64, f64)> {
    match n {
        1 => vec![(0.0, 2.0)],
        2 => vec![(-(1.0f64 / 3.0).sqrt(), 1.0), ((1.0f64 / 3.0).sqrt(), 1.0)],
        3 => {
            let x = 0.6f64.sqrt();
            vec![(-x, 5.0 / 9.0), (0.0, 8.0 / 9.0), (x, 5.0 / 9.0)]
        }
        _ => {
            let root = 1.2f64.sqrt();
            let inner = ((3.0 - 2.0 * root) / 7.0).sqrt();
            let outer = ((3.0 + 2.0 * root) / 7.0).sqrt();
            let (w_inner, w_outer) = ((18.0 + 30f64.sqrt()) / 36.0, (18.0 - 30f64.sqrt()) / 36.0);
            vec![
                (-outer, w_outer),
                (-inner, w_inner),
                (inner, w_inner),
                (outer, w_outer),
            ]
        }
    }
}

/// Gauss product rule on [-1, 1]^dimension, the first coordinate running fastest.
fn cube(dimension: usize, n: usize) -> Vec<QuadraturePoint> {
    let line = gauss(n);
    let third = if dimension == 3 {
        line.clone()
    } else {
        vec![(0.0, 1.0)]
    };
    let mut points = Vec::new();
    for &(t, w_t) in &third {
        for &(s, w_s) in &line {
            points.extend(line.iter().map(|&(r, w_r)| QuadraturePoint {
                xi: [r, s, t],
                weight: w_r * w_s * w_t,
            }));
        }
    }
    points
}

/// Degree 1 on the unit triangle.
fn triangle_1() -> Vec<QuadraturePoint> {
    vec![QuadraturePoint {
        xi: [1.0 / 3.0, 1.0 / 3.0, 0.0],
        weight: 0.5,
    }]
}

/// Degree 6 on the unit triangle: a square of 4 x 4 points with one side drawn together.
fn triangle_16() -> Vec<QuadraturePoint> {
    let line = shifted_gauss_of(&gauss(4));
    let mut points = Vec::with_capacity(16);
    for &(r, w_r) in &line {
        points.extend(line.iter().map(|&(s, w_s)| QuadraturePoint {
            xi: [r, s * (1.0 - r), 0.0],
            weight: w_r * w_s * (1.0 - r),
        }));
    }
    points
}

/// A rule on [-1, 1] moved to [0, 1].
fn shifted_gauss_of(line: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let move_point = |&(x, w): &(f64, f64)| (0.5 * (1.0 + x), 0.5 * w);
    line.iter().map(move_point).collect()
}

/// Degree 2 on the unit triangle.
fn triangle_3() -> Vec<QuadraturePoint> {
    let (a, b, weight) = (1.0 / 6.0, 2.0 / 3.0, 1.0 / 6.0);
    [[a, a, 0.0], [b, a, 0.0], [a, b, 0.0]]
        .map(|xi| QuadraturePoint { xi, weight })
        .to_vec()
}

/// Degree 5 on the unit triangle.
fn triangle_7() -> Vec<QuadraturePoint> {
    let root = 15f64.sqrt();
    let mut points = vec![QuadraturePoint {
        xi: [1.0 / 3.0, 1.0 / 3.0, 0.0],
        weight: 9.0 / 80.0,
    }];
    for sign in [-1.0, 1.0] {
        let a = (6.0 + sign * root) / 21.0;
        let weight = (155.0 + sign * root) / 2400.0;
        let b = 1.0 - 2.0 * a;
        points.extend(
            [[a, a, 0.0], [b, a, 0.0], [a, b, 0.0]].map(|xi| QuadraturePoint { xi, weight }),
        );
    }
    points
}

/// The four points with barycentric coordinates (a, a, a, 1 - 3 a) in every order.
fn tetrahedron_orbit(a: f64, weight: f64) -> [QuadraturePoint; 4] {
    let b = 1.0 - 3.0 * a;
    [[a, a, a], [b, a, a], [a, b, a], [a, a, b]].map(|xi| QuadraturePoint { xi, weight })
}

/// Degree 2 on the unit tetrahedron.
fn tetrahedron_4() -> Vec<QuadraturePoint> {
    tetrahedron_orbit((5.0 - 5f64.sqrt()) / 20.0, 1.0 / 24.0).to_vec()
}

/// Degree 5 on the unit tetrahedron.
fn tetrahedron_14() -> Vec<QuadraturePoint> {
    let mut points =
        tetrahedron_orbit(0.310_885_919_263_300_6, 0.112_687_925_718_015_85 / 6.0).to_vec();
    points.extend(tetrahedron_orbit(
        0.092_735_250_310_891_23,
        0.073_493_043_116_361_95 / 6.0,
    ));
    let a = 0.045_503_704_125_649_65;
    let b = 0.5 - a;
    let weight = 0.042_546_020_777_081_466 / 6.0;
    let edges = [
        [a, a, b],
        [a, b, a],
        [b, a, a],
        [a, b, b],
        [b, a, b],
        [b, b, a],
    ];
    points.extend(edges.map(|xi| QuadraturePoint { xi, weight }));
    points
}

/// Points in the triangle times `n` along the axis.
fn wedge(triangle: &[QuadraturePoint], n: usize) -> Vec<QuadraturePoint> {
    let mut points = Vec::new();
    for (t, weight) in gauss(n) {
        points.extend(triangle.iter().map(|p| QuadraturePoint {
            xi: [p.xi[0], p.xi[1], t],
            weight: p.weight * weight,
        }));
    }
    points
}

/// Gauss-Jacobi with weight (1 - t)^2 on [0, 1], degree 1 (the height of the center of gravity),
const CENTER_OF_PYRAMID: [(f64, f64); 1] = [(0.25, 1.0 / 3.0)];

/// and degree 3: the roots of t^2 - 2 t / 3 + 1 / 15.
fn jacobi_2() -> [(f64, f64); 2] {
    let half = (2.0f64 / 45.0).sqrt();
    let (low, high) = (1.0 / 3.0 - half, 1.0 / 3.0 + half);
    // Exact for 1 and t, whose integrals are 1/3 and 1/12.
    let w_low = (1.0 / 12.0 - high / 3.0) / (low - high);
    [(low, w_low), (high, 1.0 / 3.0 - w_low)]
}

/// Gauss-Legendre with the weight (1 - t)^2 taken into the weights, degree 2 n - 3 on [0, 1].
fn shifted_gauss(n: usize) -> Vec<(f64, f64)> {
    let line = shifted_gauss_of(&gauss(n));
    let weigh = |(t, w): (f64, f64)| (t, w * (1.0 - t) * (1.0 - t));
    line.into_iter().map(weigh).collect()
}

/// `n` x `n` points in the square at each height of `heights`, a rule with weight (1 - t)^2.
fn pyramid(n: usize, heights: &[(f64, f64)]) -> Vec<QuadraturePoint> {
    let mut points = Vec::new();
    for &(t, weight) in heights {
        points.extend(cube(2, n).into_iter().map(|p| QuadraturePoint {
            xi: [p.xi[0] * (1.0 - t), p.xi[1] * (1.0 - t), t],
            weight: p.weight * weight,
        }));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::{Purpose, Tabulation};
    use fem_mesh::CellType;

    fn factorial(n: u32) -> f64 {
        (1..=n).map(f64::from).product()
    }

    fn on_line(i: u32) -> f64 {
        if i.is_multiple_of(2) {
            2.0 / f64::from(i + 1)
        } else {
            0.0
        }
    }

    /// Integral of r^i s^j t^k over the natural cell.
    fn exact(cell_type: CellType, [i, j, k]: [u32; 3]) -> f64 {
        match cell_type {
            CellType::Tri3 | CellType::Tri6 => factorial(i) * factorial(j) / factorial(i + j + 2),
            CellType::Quad4 | CellType::Quad8 | CellType::Quad9 => on_line(i) * on_line(j),
            CellType::Tet4 | CellType::Tet10 => {
                factorial(i) * factorial(j) * factorial(k) / factorial(i + j + k + 3)
            }
            CellType::Wedge6 | CellType::Wedge15 => {
                factorial(i) * factorial(j) / factorial(i + j + 2) * on_line(k)
            }
            // At height t the square has sides of 2 (1 - t).
            CellType::Pyramid5 | CellType::Pyramid13 => {
                let along = factorial(k) * factorial(i + j + 2) / factorial(i + j + k + 3);
                on_line(i) * on_line(j) * along
            }
            CellType::Hex8 | CellType::Hex20 | CellType::Hex27 => {
                on_line(i) * on_line(j) * on_line(k)
            }
        }
    }

    /// Largest error over the monomials of degree `degree` (total on simplices and pyramids, of each coordinate on cubes,
    /// both in wedges, where the triangle has one less).
    fn worst(cell_type: CellType, purpose: Purpose, degree: u32) -> f64 {
        let table = Tabulation::of(cell_type, purpose);
        let depth = if cell_type.dimension() == 3 {
            degree
        } else {
            0
        };
        let simplex = cell_type.name().starts_with(['t', 'p']);
        let mut worst = 0.0f64;
        for i in 0..=degree {
            for j in 0..=degree {
                for k in 0..=depth {
                    let in_triangle = cell_type.n_corners() != 6 || i + j < degree;
                    if (simplex && i + j + k > degree) || !in_triangle {
                        continue;
                    }
                    let power = |x: f64, n: u32| x.powi(n as i32);
                    let sum: f64 = (table.points.iter())
                        .map(|p| {
                            p.weight * power(p.xi[0], i) * power(p.xi[1], j) * power(p.xi[2], k)
                        })
                        .sum();
                    worst = worst.max((sum - exact(cell_type, [i, j, k])).abs());
                }
            }
        }
        worst
    }

    #[test]
    fn rules_integrate_their_degree_and_no_more() {
        use CellType::{
            Hex8, Hex20, Hex27, Pyramid5, Pyramid13, Quad4, Quad8, Quad9, Tet4, Tet10, Tri3, Tri6,
            Wedge6, Wedge15,
        };
        let degrees = [
            (Tri3, Purpose::Load, 2),
            (Tri6, Purpose::Load, 5),
            (Quad4, Purpose::Load, 3),
            (Quad8, Purpose::Load, 5),
            (Quad9, Purpose::Load, 5),
            (Pyramid5, Purpose::Stiffness, 1),
            (Pyramid5, Purpose::Load, 1),
            (Pyramid13, Purpose::Stiffness, 3),
            (Pyramid13, Purpose::Load, 5),
            (Wedge6, Purpose::Reduced, 2),
            (Wedge15, Purpose::Stiffness, 3),
            (Wedge15, Purpose::Load, 7),
            (Hex8, Purpose::Reduced, 1),
            (Hex20, Purpose::Reduced, 3),
            (Hex27, Purpose::Stiffness, 5),
            (Hex27, Purpose::Load, 7),
            (Tet4, Purpose::Stiffness, 1),
            (Tet4, Purpose::Load, 2),
            (Tet10, Purpose::Stiffness, 2),
            (Tet10, Purpose::Load, 5),
            (Wedge6, Purpose::Stiffness, 3),
            (Hex8, Purpose::Stiffness, 3),
            (Hex20, Purpose::Stiffness, 5),
            (Hex20, Purpose::Load, 7),
            (Hex20, Purpose::Recovery, 3),
        ];
        for (cell_type, purpose, degree) in degrees {
            assert!(
                worst(cell_type, purpose, degree) < 1e-14,
                "{cell_type} {purpose:?} degree {degree}"
            );
            assert!(
                worst(cell_type, purpose, degree + 1) > 1e-6,
                "{cell_type} {purpose:?} is better than {degree}"
            );
        }
    }

    #[test]
    fn weights_are_positive_and_points_inside() {
        for cell_type in CellType::SOLIDS {
            for purpose in [
                Purpose::Stiffness,
                Purpose::Reduced,
                Purpose::Load,
                Purpose::Recovery,
            ] {
                let table = Tabulation::of(cell_type, purpose);
                for (q, point) in table.points.iter().enumerate() {
                    assert!(point.weight > 0.0);
                    assert!(point.xi.iter().all(|x| x.abs() < 1.0));
                    assert_eq!(
                        (table.shape(q).len(), table.grad(q).len()),
                        (cell_type.n_nodes(), cell_type.n_nodes())
                    );
                }
            }
        }
    }
}
