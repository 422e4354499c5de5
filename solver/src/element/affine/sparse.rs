//! Blocks of straight-sided second-order tetrahedra by the gradients of their four barycentric coordinates.
//!
//! With N = L (2 L - 1) at a corner and 4 L_i L_j on an edge, grad N has one or two of the four gradients, and a block
//! one, two or four of their sixteen products.
//!
//! Invariant: coefficients of a cell type and one batch of vectors; knows no coordinates.

use super::{antisymmetric_part, joined, symmetric_part, transposed};
use crate::element::lanes::Lanes;
use crate::element::quadrature::{Purpose, Tabulation};
use crate::element::solid::{Target, write};
use fem_mesh::CellType;

/// Blocks by their number of terms.
#[derive(Debug)]
pub(super) struct SparseBlocks {
    one: Vec<Block<1>>,
    two: Vec<Block<2>>,
    four: Vec<Block<4>>,
}

/// A block is the sum of `coefficients[t]` times product `products[t]`: number 4 k + l is B(v_k, v_l).
#[derive(Debug)]
struct Block<const T: usize> {
    place: usize,
    coefficients: [f64; T],
    products: [usize; T],
}

/// B(v_k, v_l) of each pair, row by row.
type Products<V> = [[V; 9]; 16];

impl SparseBlocks {
    /// From the quadrature rule of the type.
    pub(super) fn of_quadratic_tetrahedron() -> Self {
        let mut found = SparseBlocks {
            one: Vec::new(),
            two: Vec::new(),
            four: Vec::new(),
        };
        let n = CellType::Tet10.n_nodes();
        for (place, (a, b)) in (0..n).flat_map(|a| (a..n).map(move |b| (a, b))).enumerate() {
            let terms = terms(a, b);
            match terms.len() {
                1 => found.one.push(Block::new(place, &terms)),
                2 => found.two.push(Block::new(place, &terms)),
                _ => found.four.push(Block::new(place, &terms)),
            }
        }
        found
    }

    /// Writes all blocks; `v` are the scaled gradients of the last three barycentric coordinates.
    #[inline(always)]
    pub(super) fn write<V: Lanes>(&self, v: &[[V; 3]; 3], ratio: V, target: &mut Target) {
        let plus = ratio.add(V::splat(1.0)).mul(V::splat(0.5));
        let minus = ratio.sub(V::splat(1.0)).mul(V::splat(0.5));
        let products = products(v, plus, minus);
        // No closures: they would be compiled for the baseline CPU.
        for block in &self.one {
            write(block.sum(&products), block.place, target);
        }
        for block in &self.two {
            write(block.sum(&products), block.place, target);
        }
        for block in &self.four {
            write(block.sum(&products), block.place, target);
        }
    }
}

/// From the scaled gradients of the last three barycentric coordinates.
#[inline(always)]
fn products<V: Lanes>(v: &[[V; 3]; 3], plus: V, minus: V) -> Products<V> {
    // The barycentric coordinates sum to one, their gradients to zero.
    let mut first = [plus; 3];
    for i in 0..3 {
        first[i] = V::splat(0.0).sub(v[0][i].add(v[1][i]).add(v[2][i]));
    }
    let [a, b, c] = v;
    let (ab, ba) = both_products(a, b, plus, minus);
    let (bc, cb) = both_products(b, c, plus, minus);
    let (ca, ac) = both_products(c, a, plus, minus);
    let (fa, af) = both_products(&first, a, plus, minus);
    let (fb, bf) = both_products(&first, b, plus, minus);
    let (fc, cf) = both_products(&first, c, plus, minus);
    let [ff, aa, bb, cc] = [
        square(&first, plus),
        square(a, plus),
        square(b, plus),
        square(c, plus),
    ];
    [
        ff, fa, fb, fc, //
        af, aa, ab, ac, //
        bf, ba, bb, bc, //
        cf, ca, cb, cc,
    ]
}

/// B(v, v).
#[inline(always)]
fn square<V: Lanes>(v: &[V; 3], plus: V) -> [V; 9] {
    let [xx, yy, zz, xy, yz, zx] = symmetric_part(v, v, plus);
    [xx, xy, zx, xy, yy, yz, zx, yz, zz]
}

/// B(v, w) and B(w, v).
#[inline(always)]
fn both_products<V: Lanes>(v: &[V; 3], w: &[V; 3], plus: V, minus: V) -> ([V; 9], [V; 9]) {
    let product = joined(symmetric_part(v, w, plus), antisymmetric_part(v, w, minus));
    (product, transposed(product))
}

impl<const T: usize> Block<T> {
    /// Of at most `T` terms.
    fn new(place: usize, terms: &[(f64, usize)]) -> Self {
        let mut block = Block {
            place,
            coefficients: [0.0; T],
            products: [0; T],
        };
        for (t, &(coefficient, product)) in terms.iter().enumerate() {
            (block.coefficients[t], block.products[t]) = (coefficient, product);
        }
        block
    }

    #[inline(always)]
    fn sum<V: Lanes>(&self, products: &Products<V>) -> [V; 9] {
        let mut sum = [V::splat(0.0); 9];
        for t in 0..T {
            let c = V::splat(self.coefficients[t]);
            // The remainder spares the check of the bounds.
            let product = &products[self.products[t] % 16];
            for i in 0..9 {
                sum[i] = if t == 0 {
                    c.mul(product[i])
                } else {
                    c.mul_add(product[i], sum[i])
                };
            }
        }
        sum
    }
}

/// The integrals of a pair of nodes that are not zero, each with the number of its product.
fn terms(a: usize, b: usize) -> Vec<(f64, usize)> {
    let mut c = [0.0; 16];
    let mut is_there = [false; 16];
    for point in &Tabulation::of(CellType::Tet10, Purpose::Stiffness).points {
        let [of_a, of_b] = [a, b].map(|node| barycentric_gradient(node, point.xi));
        for (k, a) in of_a.iter().enumerate() {
            for (l, b) in of_b.iter().enumerate() {
                if let (Some(a), Some(b)) = (a, b) {
                    c[4 * k + l] += point.weight * a * b;
                    is_there[4 * k + l] = true;
                }
            }
        }
    }
    (0..16)
        .filter(|&at| is_there[at])
        .map(|at| (c[at], at))
        .collect()
}

/// Derivatives of the shape function of a node by the barycentric coordinates it depends on.
fn barycentric_gradient(node: usize, [r, s, t]: [f64; 3]) -> [Option<f64>; 4] {
    let l = [1.0 - r - s - t, r, s, t];
    let mut gradient = [None; 4];
    match node.checked_sub(CellType::Tet10.n_corners()) {
        None => gradient[node] = Some(4.0 * l[node] - 1.0),
        Some(edge) => {
            let [i, j] = CellType::Tet10.edges()[edge].map(usize::from);
            gradient[i] = Some(4.0 * l[j]);
            gradient[j] = Some(4.0 * l[i]);
        }
    }
    gradient
}

#[cfg(test)]
mod tests {
    use super::SparseBlocks;

    #[test]
    fn blocks_have_few_terms_and_each_place_is_written_once() {
        let found = SparseBlocks::of_quadratic_tetrahedron();
        assert_eq!(
            (found.one.len(), found.two.len(), found.four.len()),
            (10, 24, 21)
        );
        let mut places: Vec<usize> = found.one.iter().map(|block| block.place).collect();
        places.extend(found.two.iter().map(|block| block.place));
        places.extend(found.four.iter().map(|block| block.place));
        places.sort_unstable();
        assert!(places.into_iter().eq(0..55));
        // Corners: 1/6 of the mean of (4 L - 1)^2, and of (4 L_a - 1) (4 L_b - 1).
        let corner = |place: usize| found.one.iter().find(|b| b.place == place).unwrap();
        assert!((corner(0).coefficients[0] - 0.1).abs() < 1e-15);
        assert!((corner(1).coefficients[0] + 1.0 / 30.0).abs() < 1e-15);
    }
}
