//! Quadrature rules and the shape functions tabulated at their points.
//!
//! What goes in: a cell type and what is to be integrated. What comes out: points, weights, N and dN/dxi, made once
//! for the whole run. Sources: Gauss-Legendre; triangle rule of degree 5 by Radon (1948); tetrahedron rules of degree 2
//! (Hammer and Stroud 1956) and degree 5 with 14 points (Walkington 2000).
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
    /// Stiffness and internal forces (full integration): tet4 1 point, tet10 4, wedge6 6, hex8 8, hex20 27.
    Stiffness,
    /// Loads on cells and facets: exact for constant body forces and pressures on curved cells of every type.
    Load,
    /// Stress recovery: the points from which stresses are extrapolated to the nodes; hex20 has 8, the other types
    /// those of their stiffness.
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
        static ALL: LazyLock<Vec<[Tabulation; 4]>> = LazyLock::new(|| {
            let purposes = [
                Purpose::Stiffness,
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
        (CellType::Quad8, _) => cube(2, 3),
        (CellType::Tet4, Purpose::Load)
        | (CellType::Tet10, Purpose::Stiffness | Purpose::Recovery) => tetrahedron_4(),
        (CellType::Tet4, _) => vec![QuadraturePoint {
            xi: [0.25; 3],
            weight: 1.0 / 6.0,
        }],
        (CellType::Tet10, _) => tetrahedron_14(),
        (CellType::Wedge6, _) => wedge(),
        (CellType::Hex20, Purpose::Stiffness) => cube(3, 3),
        (CellType::Hex20, Purpose::Load) => cube(3, 4),
        (CellType::Hex8 | CellType::Hex20, _) => cube(3, 2),
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

/// Three points in the triangle times two along the axis.
fn wedge() -> Vec<QuadraturePoint> {
    let mut points = Vec::new();
    for (t, weight) in gauss(2) {
        let layer = triangle_3().into_iter();
        points.extend(layer.map(|p| QuadraturePoint {
            xi: [p.xi[0], p.xi[1], t],
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
            CellType::Quad4 | CellType::Quad8 => on_line(i) * on_line(j),
            CellType::Tet4 | CellType::Tet10 => {
                factorial(i) * factorial(j) * factorial(k) / factorial(i + j + k + 3)
            }
            CellType::Wedge6 => factorial(i) * factorial(j) / factorial(i + j + 2) * on_line(k),
            CellType::Hex8 | CellType::Hex20 => on_line(i) * on_line(j) * on_line(k),
        }
    }

    /// Largest error over the monomials of degree `degree` (total on simplices, of each coordinate on cubes).
    fn worst(cell_type: CellType, purpose: Purpose, degree: u32) -> f64 {
        let table = Tabulation::of(cell_type, purpose);
        let depth = if cell_type.dimension() == 3 {
            degree
        } else {
            0
        };
        let simplex = cell_type.name().starts_with('t');
        let mut worst = 0.0f64;
        for i in 0..=degree {
            for j in 0..=degree {
                for k in 0..=depth {
                    let in_triangle = cell_type != CellType::Wedge6 || i + j < degree;
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
        use CellType::{Hex8, Hex20, Quad4, Quad8, Tet4, Tet10, Tri3, Tri6, Wedge6};
        let degrees = [
            (Tri3, Purpose::Load, 2),
            (Tri6, Purpose::Load, 5),
            (Quad4, Purpose::Load, 3),
            (Quad8, Purpose::Load, 5),
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
            for purpose in [Purpose::Stiffness, Purpose::Load, Purpose::Recovery] {
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
