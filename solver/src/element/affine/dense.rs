//! Blocks of affine elements by all their integrals, for cell types with three natural gradients.
//!
//! Blocks with equal integrals (those of opposite nodes of a hexahedron) are computed once.
//!
//! Invariant: coefficients of a cell type and one batch of vectors; knows no coordinates.

use super::{antisymmetric_part, joined, symmetric_part, transposed};
use crate::element::lanes::Lanes;
use crate::element::quadrature::Tabulation;
use crate::element::solid::{Target, write};

/// Integrals that differ by no more than this differ by rounding.
const ROUNDING: f64 = 1e-14;

/// Pairs of gradients of which there is an antisymmetric part, in the order of its entries.
const MIXED: [(usize, usize); 3] = [(0, 1), (1, 2), (2, 0)];

/// The different blocks of a cell type.
#[derive(Debug)]
pub(super) struct DenseBlocks {
    blocks: Vec<Block>,
}

/// c_kk for each k, then c_kl + c_lk for [`MIXED`]; c_kl - c_lk for [`MIXED`]; and where the block stands.
#[derive(Debug)]
struct Block {
    symmetric: [f64; 6],
    antisymmetric: [f64; 3],
    places: Vec<usize>,
    /// Places of the transpose.
    transposed: Vec<usize>,
}

impl DenseBlocks {
    /// From the quadrature rule of the type.
    pub(super) fn new(table: &Tabulation) -> Self {
        let n = table.n_nodes();
        let mut found = DenseBlocks { blocks: Vec::new() };
        for (place, (a, b)) in (0..n).flat_map(|a| (a..n).map(move |b| (a, b))).enumerate() {
            found.enter(place, integrals(table, a, b));
        }
        // Loops of equal length one after another: their ends are foreseen.
        (found.blocks).sort_by_key(|block| (block.places.len(), block.transposed.len()));
        found
    }

    fn enter(&mut self, place: usize, c: [[f64; 3]; 3]) {
        let symmetric = [0, 1, 2, 3, 4, 5].map(|at| match at {
            0..3 => c[at][at],
            _ => {
                let (k, l) = MIXED[at - 3];
                c[k][l] + c[l][k]
            }
        });
        let antisymmetric = MIXED.map(|(k, l)| c[k][l] - c[l][k]);
        let flipped = antisymmetric.map(|c| -c);
        let are_close =
            |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= ROUNDING);
        for block in &mut self.blocks {
            if are_close(&block.symmetric, &symmetric) {
                if are_close(&block.antisymmetric, &antisymmetric) {
                    return block.places.push(place);
                }
                if are_close(&block.antisymmetric, &flipped) {
                    return block.transposed.push(place);
                }
            }
        }
        self.blocks.push(Block {
            symmetric,
            antisymmetric,
            places: vec![place],
            transposed: Vec::new(),
        });
    }

    /// Writes all blocks; `v` are the scaled gradients of the natural coordinates.
    #[inline(always)]
    pub(super) fn write<V: Lanes>(&self, v: &[[V; 3]; 3], ratio: V, target: &mut Target) {
        let plus = ratio.add(V::splat(1.0)).mul(V::splat(0.5));
        let minus = ratio.sub(V::splat(1.0)).mul(V::splat(0.5));
        let [a, b, c] = v;
        let symmetric = [
            symmetric_part(a, a, plus),
            symmetric_part(b, b, plus),
            symmetric_part(c, c, plus),
            symmetric_part(a, b, plus),
            symmetric_part(b, c, plus),
            symmetric_part(c, a, plus),
        ];
        let antisymmetric = [
            antisymmetric_part(a, b, minus),
            antisymmetric_part(b, c, minus),
            antisymmetric_part(c, a, minus),
        ];
        for block in &self.blocks {
            let k = joined(
                combined(&block.symmetric, &symmetric),
                combined(&block.antisymmetric, &antisymmetric),
            );
            for &place in &block.places {
                write(k, place, target);
            }
            for &place in &block.transposed {
                write(transposed(k), place, target);
            }
        }
    }
}

/// c_kl of a pair of nodes.
fn integrals(table: &Tabulation, a: usize, b: usize) -> [[f64; 3]; 3] {
    let mut c = [[0.0; 3]; 3];
    for (q, point) in table.points.iter().enumerate() {
        let [of_a, of_b] = [a, b].map(|node| table.grad(q)[node]);
        for k in 0..3 {
            for l in 0..3 {
                c[k][l] += point.weight * of_a[k] * of_b[l];
            }
        }
    }
    c
}

/// The sum of `parts` with these coefficients.
#[inline(always)]
fn combined<V: Lanes, const T: usize, const W: usize>(
    coefficients: &[f64; T],
    parts: &[[V; W]; T],
) -> [V; W] {
    let mut sum = parts[0];
    for t in 0..T {
        let c = V::splat(coefficients[t]);
        for i in 0..W {
            sum[i] = if t == 0 {
                c.mul(parts[t][i])
            } else {
                c.mul_add(parts[t][i], sum[i])
            };
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::DenseBlocks;
    use crate::element::solid::n_pairs;
    use crate::element::{Purpose, Tabulation};
    use fem_mesh::CellType;

    #[test]
    fn opposite_nodes_share_their_blocks_and_each_place_is_written_once() {
        for (cell_type, n_blocks) in [
            (CellType::Hex8, 20),
            (CellType::Hex20, 104),
            (CellType::Wedge6, 21),
        ] {
            let found = DenseBlocks::new(Tabulation::of(cell_type, Purpose::Stiffness));
            assert_eq!(found.blocks.len(), n_blocks, "{cell_type}");
            let places = |block: &super::Block| [&block.places[..], &block.transposed].concat();
            let mut places: Vec<usize> = found.blocks.iter().flat_map(places).collect();
            places.sort_unstable();
            assert!(places.into_iter().eq(0..n_pairs(cell_type.n_nodes())));
        }
    }
}
