//! Stiffness of elements whose Jacobian is constant: straight-sided tetrahedra, parallelepipeds, straight prisms.
//!
//! Where x is an affine function of the natural coordinates, grad N_a = sum_k v_k dN_a/dxi_k with the same vectors v_k
//! at every quadrature point, so that
//!
//! ```text
//! K_ab = sum_kl c_ab,kl B(v_k, v_l)      c_ab,kl = sum_q w dN_a/dxi_k dN_b/dxi_l
//! B(v, w) = r v w^T + w v^T + v.w I      r = lambda / mu, v_k scaled by sqrt(mu / det J)
//! ```
//!
//! The numbers c are those of the quadrature rule, made once for a cell type: in full ([`dense`]), or for tetrahedra, by
//! their four barycentric gradients, of which most c are zero ([`sparse`]).
//!
//! Invariant: the same integrals as by [`super::solid`], up to rounding; knows one batch of elements.

mod dense;
mod sparse;

use super::lanes::{LANES, Lanes};
use super::quadrature::{Purpose, Tabulation};
use super::shape::natural_nodes;
use super::solid::{Law, Target, cofactors, determinant};
use dense::DenseBlocks;
use fem_mesh::CellType;
use sparse::SparseBlocks;
use std::sync::LazyLock;

/// Nodes may be off their places in an affine element by so many units of rounding of the largest coordinate, as a
/// root of the sum of squares over all nodes.
const ROUNDINGS: f64 = 10.0;

/// What all affine elements of one type have in common.
#[derive(Debug)]
pub(super) struct AffineElement {
    /// For each natural axis the node that lies along it from node 0, and how far, inverted.
    axes: [(usize, f64); 3],
    /// Natural coordinates of the nodes from node 0.
    natural: Vec<[f64; 3]>,
    blocks: Blocks,
}

#[derive(Debug)]
enum Blocks {
    Dense(DenseBlocks),
    Sparse(SparseBlocks),
}

impl AffineElement {
    /// The tables of a cell type; `None` where they are of no use: elements with a single quadrature point, and those
    /// that have no node along an axis.
    pub(super) fn of(cell_type: CellType) -> Option<&'static AffineElement> {
        static ALL: LazyLock<Vec<Option<AffineElement>>> = LazyLock::new(|| {
            let types = (0..).map_while(CellType::from_index);
            types.map(AffineElement::new).collect()
        });
        ALL[cell_type as usize].as_ref()
    }

    fn new(cell_type: CellType) -> Option<Self> {
        let table = Tabulation::of(cell_type, Purpose::Stiffness);
        if cell_type.dimension() < 3 || table.n_points() < 2 {
            return None;
        }
        let origin = *natural_nodes(cell_type).first()?;
        let natural: Vec<[f64; 3]> = (natural_nodes(cell_type).iter())
            .map(|xi| [0, 1, 2].map(|k| xi[k] - origin[k]))
            .collect();
        let axis = |k: usize| {
            let is_along = |xi: &[f64; 3]| (0..3).all(|j| (xi[j] != 0.0) == (j == k));
            let node = natural[..cell_type.n_corners()].iter().position(is_along)?;
            Some((node, 1.0 / natural[node][k]))
        };
        Some(AffineElement {
            axes: [axis(0)?, axis(1)?, axis(2)?],
            natural,
            blocks: match cell_type {
                CellType::Tet10 => Blocks::Sparse(SparseBlocks::of_quadratic_tetrahedron()),
                _ => Blocks::Dense(DenseBlocks::new(table)),
            },
        })
    }

    /// Whether the element of each lane is affine: its nodes are where those at the ends of the three axes put them.
    #[inline(always)]
    pub(super) fn fits<V: Lanes>(&self, coords: &[f64]) -> [bool; LANES] {
        let jac = self.jacobian::<V>(coords);
        let origin = point::<V>(coords, 0);
        let mut deviation = V::splat(0.0);
        let mut size = V::splat(0.0);
        for (a, xi) in self.natural.iter().enumerate() {
            let x = point::<V>(coords, a);
            for i in 0..3 {
                let mut expected = origin[i];
                for k in 0..3 {
                    expected = jac[i][k].mul_add(V::splat(xi[k]), expected);
                }
                let difference = x[i].sub(expected);
                deviation = difference.mul_add(difference, deviation);
                size = size.max(x[i].abs());
            }
        }
        let limit = size.mul(V::splat(ROUNDINGS * f64::EPSILON));
        let (mut deviations, mut limits) = ([0.0; LANES], [0.0; LANES]);
        deviation.store(&mut deviations);
        limit.mul(limit).store(&mut limits);
        // Numbers that are not finite do not fit.
        let mut fits = [false; LANES];
        for l in 0..LANES {
            fits[l] = deviations[l] <= limits[l];
        }
        fits
    }

    /// J[i][k] = dx_i / dxi_k.
    #[inline(always)]
    fn jacobian<V: Lanes>(&self, coords: &[f64]) -> [[V; 3]; 3] {
        let origin = point::<V>(coords, 0);
        let mut jac = [[V::splat(0.0); 3]; 3];
        for (k, &(node, inverse)) in self.axes.iter().enumerate() {
            let end = point::<V>(coords, node);
            for i in 0..3 {
                jac[i][k] = end[i].sub(origin[i]).mul(V::splat(inverse));
            }
        }
        jac
    }

    /// Writes the blocks of the elements with these coordinates, one a lane; returns their det J.
    #[inline(always)]
    pub(super) fn stiffness<V: Lanes>(
        &self,
        coords: &[f64],
        law: Law<V>,
        target: &mut Target,
    ) -> [f64; LANES] {
        let jac = self.jacobian::<V>(coords);
        let cofactors = cofactors(&jac);
        let det = determinant(&jac, &cofactors);
        let scale = law.mu.div(det).sqrt();
        let mut v = [[scale; 3]; 3];
        for k in 0..3 {
            for i in 0..3 {
                v[k][i] = cofactors[i][k].mul(scale);
            }
        }
        match &self.blocks {
            Blocks::Dense(blocks) => blocks.write(&v, law.ratio, target),
            Blocks::Sparse(blocks) => blocks.write(&v, law.ratio, target),
        }
        let mut lanes = [0.0; LANES];
        det.store(&mut lanes);
        lanes
    }
}

/// Coordinates of node `a` in each lane.
#[inline(always)]
fn point<V: Lanes>(coords: &[f64], a: usize) -> [V; 3] {
    let x = &coords[3 * a * LANES..3 * (a + 1) * LANES];
    [V::load(x), V::load(&x[LANES..]), V::load(&x[2 * LANES..])]
}

/// (B(v, w) + B(w, v)) / 2 = p (v w^T + w v^T) + v.w I with p = (r + 1) / 2: xx yy zz xy yz zx.
#[inline(always)]
fn symmetric_part<V: Lanes>(v: &[V; 3], w: &[V; 3], plus: V) -> [V; 6] {
    let dot = v[2].mul_add(w[2], v[1].mul_add(w[1], v[0].mul(w[0])));
    let twice = plus.add(plus);
    let mut part = [dot; 6];
    for i in 0..3 {
        let j = (i + 1) % 3;
        part[i] = twice.mul_add(v[i].mul(w[i]), dot);
        part[3 + i] = plus.mul(v[i].mul_add(w[j], v[j].mul(w[i])));
    }
    part
}

/// (B(v, w) - B(w, v)) / 2 = m (v w^T - w v^T) with m = (r - 1) / 2: xy yz zx.
#[inline(always)]
fn antisymmetric_part<V: Lanes>(v: &[V; 3], w: &[V; 3], minus: V) -> [V; 3] {
    let mut part = [minus; 3];
    for i in 0..3 {
        let j = (i + 1) % 3;
        part[i] = minus.mul(v[i].mul_sub(w[j], v[j].mul(w[i])));
    }
    part
}

/// The matrix with these parts, row by row.
#[inline(always)]
fn joined<V: Lanes>([xx, yy, zz, xy, yz, zx]: [V; 6], [a_xy, a_yz, a_zx]: [V; 3]) -> [V; 9] {
    [
        xx,
        xy.add(a_xy),
        zx.sub(a_zx),
        xy.sub(a_xy),
        yy,
        yz.add(a_yz),
        zx.add(a_zx),
        yz.sub(a_yz),
        zz,
    ]
}

/// The transpose of a matrix given row by row.
#[inline(always)]
fn transposed<T: Copy>([xx, xy, xz, yx, yy, yz, zx, zy, zz]: [T; 9]) -> [T; 9] {
    [xx, yx, zx, xy, yy, zy, xz, yz, zz]
}

#[cfg(test)]
mod tests {
    use super::AffineElement;
    use crate::element::lanes::LANES;
    use crate::element::test_cells::distorted;
    use fem_mesh::CellType;

    const TYPES: [CellType; 4] = [
        CellType::Tet10,
        CellType::Wedge6,
        CellType::Hex8,
        CellType::Hex20,
    ];

    /// Whether a cell is taken for affine in each lane, beside straight ones.
    fn fits(cell_type: CellType, coords: &[[f64; 3]]) -> [bool; LANES] {
        let straight = distorted(cell_type, 0.0);
        let mut found = [false; LANES];
        for lane in 0..LANES {
            let mut lanes = Vec::new();
            for (x, other) in coords.as_flattened().iter().zip(straight.as_flattened()) {
                lanes.extend((0..LANES).map(|l| if l == lane { *x } else { *other }));
            }
            let fits = AffineElement::of(cell_type)
                .unwrap()
                .fits::<[f64; LANES]>(&lanes);
            assert!((0..LANES).all(|l| l == lane || fits[l]), "{cell_type}");
            found[lane] = fits[lane];
        }
        found
    }

    #[test]
    fn straight_cells_are_told_from_others_by_the_last_digits() {
        for cell_type in TYPES {
            let mut coords = distorted(cell_type, 0.0);
            for x in &mut coords {
                *x = [x[0] / 3.0 + 100.0, x[1] - 70.0, 0.1 * x[2]];
            }
            assert_eq!(fits(cell_type, &coords), [true; LANES], "{cell_type}");
            let last = coords.len() - 1;
            coords[last][1] += 1e-12;
            assert_eq!(fits(cell_type, &coords), [false; LANES], "{cell_type}");
            coords[last][1] = f64::NAN;
            assert_eq!(fits(cell_type, &coords), [false; LANES], "{cell_type}");
        }
    }

    #[test]
    fn one_point_is_as_fast_without() {
        assert!(AffineElement::of(CellType::Tet4).is_none());
    }
}
