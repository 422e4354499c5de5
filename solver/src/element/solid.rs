//! Stiffness of isotropic linear-elastic solid elements, several elements at a time.
//!
//! With h_a = sqrt(mu w det J) dN_a/dx at each quadrature point, all blocks of an element follow from
//! M_ab = sum_q h_a h_b^T (a <= b): K_ab = r M_ab + M_ab^T + tr(M_ab) I with r = lambda / mu. Where the Jacobian is
//! constant, the sum over the points is known beforehand: see [`super::affine`]. A batch holds one element a lane;
//! every operation runs over all lanes at once. The same source is compiled for the baseline CPU and for AVX2 with FMA,
//! chosen at run time; AVX-512 was measured to be no faster. Lanes never mix: an element's result does not depend on its
//! place in a batch.
//!
//! Invariant: allocates nothing per element; knows coordinates and Lame constants only.

use super::affine::AffineElement;
use super::lanes::{LANES, Lanes};
use super::quadrature::{Purpose, Tabulation};
use fem_mesh::CellType;

/// Number of blocks K_ab with a <= b of an element of `n_nodes` nodes.
pub const fn n_pairs(n_nodes: usize) -> usize {
    n_nodes * (n_nodes + 1) / 2
}

/// Scalars of the stored half of an element's stiffness: 3x3 blocks K_ab, a <= b, row by row, each row-major.
pub const fn stiffness_len(cell_type: CellType) -> usize {
    9 * n_pairs(cell_type.n_nodes())
}

/// Instruction set a kernel was compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Isa {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Isa {
    fn best() -> Isa {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Isa::Avx2;
            }
        }
        Isa::Baseline
    }
}

/// Numbers of work space a lane, set by hex27: gradients at the points, coordinates, stiffness of an unused lane.
const WORK: usize = 27 * 27 * 3 + 27 * 3 + 9 * n_pairs(27);

/// Computes element stiffness matrices; holds the work space of one thread.
pub struct StiffnessKernel {
    isa: Isa,
    work: Vec<f64>,
}

impl Default for StiffnessKernel {
    fn default() -> Self {
        StiffnessKernel {
            isa: Isa::best(),
            work: vec![0.0; LANES * WORK],
        }
    }
}

/// Elements of one type, one after another.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    /// Their common type.
    pub cell_type: CellType,
    /// The quadrature: [`Purpose::Stiffness`], or [`Purpose::Reduced`] for hex20 and wedge6.
    pub rule: Purpose,
    /// Coordinates of their nodes, `n_nodes` an element, m.
    pub coords: &'a [[f64; 3]],
    /// Lame constants lambda and mu > 0 of each element, Pa.
    pub lame: &'a [[f64; 2]],
}

impl StiffnessKernel {
    /// Writes the stiffness of each element to `into`, [`stiffness_len`] numbers an element, N/m, and the smallest
    /// det J of its quadrature points to `min_det`. An element whose smallest det J is not greater than 0 is
    /// inside out or flat; its stiffness is then meaningless.
    pub fn compute(&mut self, elements: Elements, into: &mut [f64], min_det: &mut [f64]) {
        let is_reduced = elements.rule == Purpose::Reduced;
        match elements.cell_type {
            CellType::Tet4 => self.compute_as::<4, 1>(elements, into, min_det),
            CellType::Tet10 => self.compute_as::<10, 4>(elements, into, min_det),
            CellType::Pyramid5 => self.compute_as::<5, 4>(elements, into, min_det),
            CellType::Pyramid13 => self.compute_as::<13, 18>(elements, into, min_det),
            CellType::Wedge6 if is_reduced => self.compute_as::<6, 2>(elements, into, min_det),
            CellType::Wedge6 => self.compute_as::<6, 6>(elements, into, min_det),
            CellType::Wedge15 => self.compute_as::<15, 9>(elements, into, min_det),
            CellType::Hex8 => self.compute_as::<8, 8>(elements, into, min_det),
            CellType::Hex20 if is_reduced => self.compute_as::<20, 8>(elements, into, min_det),
            CellType::Hex20 => self.compute_as::<20, 27>(elements, into, min_det),
            CellType::Hex27 => self.compute_as::<27, 27>(elements, into, min_det),
            CellType::Tri3
            | CellType::Tri6
            | CellType::Quad4
            | CellType::Quad8
            | CellType::Quad9 => unreachable!("facets have no stiffness of a solid"),
        }
    }

    /// For elements of N nodes and Q points.
    fn compute_as<const N: usize, const Q: usize>(
        &mut self,
        elements: Elements,
        into: &mut [f64],
        min_det: &mut [f64],
    ) {
        let work = &mut self.work[..];
        match self.isa {
            Isa::Baseline => batches::<[f64; LANES], N, Q>(elements, work, into, min_det),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Isa::best` found the instruction set on this machine.
            #[allow(unsafe_code)]
            Isa::Avx2 => unsafe { batches_avx2::<N, Q>(elements, work, into, min_det) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn batches_avx2<const N: usize, const Q: usize>(
    elements: Elements,
    work: &mut [f64],
    into: &mut [f64],
    min_det: &mut [f64],
) {
    batches::<std::arch::x86_64::__m256d, N, Q>(elements, work, into, min_det);
}

/// Walks over the elements [`LANES`] at a time; the last batch is filled up with copies of its last element. Of a batch
/// in which some Jacobians are constant and some are not, each element takes its own of both results.
#[inline(always)]
fn batches<V: Lanes, const N: usize, const Q: usize>(
    elements: Elements,
    work: &mut [f64],
    into: &mut [f64],
    min_det: &mut [f64],
) {
    let table = Tabulation::of(elements.cell_type, elements.rule);
    debug_assert_eq!(
        table.n_points(),
        Q,
        "{} {:?}",
        elements.cell_type,
        elements.rule
    );
    // The tables of affine elements are those of full integration.
    let affine = match elements.rule {
        Purpose::Stiffness => AffineElement::of(elements.cell_type),
        _ => None,
    };
    let size = 9 * n_pairs(N);
    let (gradients, work) = work.split_at_mut(N * Q * 3 * LANES);
    let (coords, spare) = work.split_at_mut(N * 3 * LANES);
    for (batch, into) in into.chunks_mut(LANES * size).enumerate() {
        let first = batch * LANES;
        let n_used = into.len() / size;
        let law = gather::<V, N>(&elements, first..first + n_used, coords);
        let min_det = &mut min_det[first..first + n_used];
        let mut is_curved = [true; LANES];
        if let Some(affine) = affine {
            let is_affine = affine.fits::<V>(coords);
            if is_affine[..n_used].contains(&true) {
                let mut target = target(into, &mut spare[..LANES * size], is_affine);
                let det = affine.stiffness(coords, law, &mut target);
                take(min_det, det, is_affine);
            }
            is_curved = is_affine.map(|is| !is);
        }
        if is_curved[..n_used].contains(&true) {
            let mut target = target(into, &mut spare[..LANES * size], is_curved);
            let det = weighted_gradients::<V, N, Q>(table, coords, law.mu, gradients);
            blocks::<V, N, Q>(gradients, law.ratio, &mut target);
            take(min_det, det, is_curved);
        }
    }
}

/// The law of each lane: lambda / mu and mu.
#[derive(Clone, Copy)]
pub(super) struct Law<V> {
    pub(super) ratio: V,
    pub(super) mu: V,
}

/// Coordinates and laws of a few elements, one a lane; the lanes left over repeat the last.
#[inline(always)]
fn gather<V: Lanes, const N: usize>(
    elements: &Elements,
    range: std::ops::Range<usize>,
    coords: &mut [f64],
) -> Law<V> {
    let mut lame = [[0.0; LANES]; 2];
    for l in 0..LANES {
        let element = (range.start + l).min(range.end - 1);
        let nodes = elements.coords[element * N..(element + 1) * N].as_flattened();
        for (lanes, x) in coords.chunks_exact_mut(LANES).zip(nodes) {
            lanes[l] = *x;
        }
        lame[0][l] = elements.lame[element][0];
        lame[1][l] = elements.lame[element][1];
    }
    let mu = V::load(&lame[1]);
    Law {
        ratio: V::load(&lame[0]).div(mu),
        mu,
    }
}

/// Where each lane writes the blocks of its element: to its place in `into` if it is wanted, else to waste.
pub(super) type Target<'a> = [&'a mut [[f64; 9]]; LANES];

fn target<'a>(into: &'a mut [f64], spare: &'a mut [f64], is_wanted: [bool; LANES]) -> Target<'a> {
    let size = spare.len() / LANES;
    let (mut into, mut spare) = (into.chunks_exact_mut(size), spare.chunks_exact_mut(size));
    is_wanted.map(|is_wanted| {
        let (place, waste) = (into.next(), spare.next());
        let place = place.filter(|_| is_wanted).or(waste).unwrap_or_default();
        place.as_chunks_mut().0
    })
}

/// The numbers of the lanes that are wanted.
fn take(into: &mut [f64], lanes: [f64; LANES], is_wanted: [bool; LANES]) {
    for (slot, (value, is_wanted)) in into.iter_mut().zip(lanes.into_iter().zip(is_wanted)) {
        if is_wanted {
            *slot = value;
        }
    }
}

/// h_a = sqrt(mu w det J) dN_a/dx at each point, number (a, q, i) of `gradients`; returns the smallest det J of each
/// lane.
#[inline(always)]
fn weighted_gradients<V: Lanes, const N: usize, const Q: usize>(
    table: &Tabulation,
    coords: &[f64],
    mu: V,
    gradients: &mut [f64],
) -> [f64; LANES] {
    let mut min_det = [f64::INFINITY; LANES];
    for q in 0..Q {
        let natural = &table.grad(q)[..N];
        let mut jac = [[V::splat(0.0); 3]; 3];
        for (x, dn) in coords.chunks_exact(3 * LANES).zip(natural) {
            for i in 0..3 {
                let x = V::load(&x[i * LANES..]);
                for j in 0..3 {
                    jac[i][j] = x.mul_add(V::splat(dn[j]), jac[i][j]);
                }
            }
        }
        let cofactors = cofactors(&jac);
        let det = determinant(&jac, &cofactors);
        let mut lanes = [0.0; LANES];
        det.store(&mut lanes);
        for (min, det) in min_det.iter_mut().zip(lanes) {
            // NaN counts as smallest and stays.
            if det < *min || det.is_nan() {
                *min = det;
            }
        }
        let scale = V::splat(table.points[q].weight).mul(mu).div(det).sqrt();
        for i in 0..3 {
            let (c0, c1, c2) = (
                cofactors[i][0].mul(scale),
                cofactors[i][1].mul(scale),
                cofactors[i][2].mul(scale),
            );
            for (a, dn) in natural.iter().enumerate() {
                let sum = c1.mul_add(V::splat(dn[1]), c0.mul(V::splat(dn[0])));
                let sum = c2.mul_add(V::splat(dn[2]), sum);
                sum.store(&mut gradients[((a * Q + q) * 3 + i) * LANES..]);
            }
        }
    }
    min_det
}

/// Cofactors of a 3x3 matrix in each lane.
#[inline(always)]
pub(super) fn cofactors<V: Lanes>(m: &[[V; 3]; 3]) -> [[V; 3]; 3] {
    let mut cofactors = [[V::splat(0.0); 3]; 3];
    for i in 0..3 {
        for j in 0..3 {
            let (i1, i2, j1, j2) = ((i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3);
            cofactors[i][j] = m[i1][j1].mul_sub(m[i2][j2], m[i1][j2].mul(m[i2][j1]));
        }
    }
    cofactors
}

/// Determinant of `m` from its cofactors in each lane.
#[inline(always)]
pub(super) fn determinant<V: Lanes>(m: &[[V; 3]; 3], cofactors: &[[V; 3]; 3]) -> V {
    let first = m[0][0].mul(cofactors[0][0]);
    let two = m[0][1].mul_add(cofactors[0][1], first);
    m[0][2].mul_add(cofactors[0][2], two)
}

/// All blocks K_ab, a <= b, of each lane from the weighted gradients. Of many nodes, whose gradients do not fit into the
/// first cache, some rows at a time.
#[inline(always)]
fn blocks<V: Lanes, const N: usize, const Q: usize>(
    gradients: &[f64],
    ratio: V,
    target: &mut Target,
) {
    let of_node = 3 * Q * LANES;
    let gradients = &gradients[..N * of_node];
    let n_rows = if N > 10 { 4 } else { 1 };
    for first in (0..N).step_by(n_rows) {
        let of_rows = &gradients[first * of_node..(first + n_rows).min(N) * of_node];
        for (b, h_b) in (first..).zip(gradients[first * of_node..].chunks_exact(of_node)) {
            for (a, h_a) in (first..=b).zip(of_rows.chunks_exact(of_node)) {
                let m = if a == b {
                    square::<V, Q>(h_a)
                } else {
                    product::<V, Q>(h_a, h_b)
                };
                // Row a begins behind a rows of N, N - 1, ... blocks.
                write(block(&m, ratio), a * (2 * N - a + 1) / 2 + b - a, target);
            }
        }
    }
}

/// M = sum_q h_a h_b^T.
#[inline(always)]
fn product<V: Lanes, const Q: usize>(h_a: &[f64], h_b: &[f64]) -> [[V; 3]; 3] {
    let mut m = [[V::splat(0.0); 3]; 3];
    for (h_a, h_b) in h_a.chunks_exact(3 * LANES).zip(h_b.chunks_exact(3 * LANES)) {
        for i in 0..3 {
            let a = V::load(&h_a[i * LANES..]);
            for j in 0..3 {
                m[i][j] = a.mul_add(V::load(&h_b[j * LANES..]), m[i][j]);
            }
        }
    }
    m
}

/// M = sum_q h h^T, which is symmetric.
#[inline(always)]
fn square<V: Lanes, const Q: usize>(h: &[f64]) -> [[V; 3]; 3] {
    let mut m = [[V::splat(0.0); 3]; 3];
    for h in h.chunks_exact(3 * LANES) {
        for i in 0..3 {
            let a = V::load(&h[i * LANES..]);
            for j in i..3 {
                m[i][j] = a.mul_add(V::load(&h[j * LANES..]), m[i][j]);
            }
        }
    }
    (m[1][0], m[2][0], m[2][1]) = (m[0][1], m[0][2], m[1][2]);
    m
}

/// K = r M + M^T + tr(M) I, row by row.
#[inline(always)]
fn block<V: Lanes>(m: &[[V; 3]; 3], ratio: V) -> [V; 9] {
    let trace = m[0][0].add(m[1][1]).add(m[2][2]);
    let on_diagonal = ratio.add(V::splat(1.0));
    let mut k = [trace; 9];
    for i in 0..3 {
        for j in 0..3 {
            k[3 * i + j] = if i == j {
                on_diagonal.mul_add(m[i][i], trace)
            } else {
                ratio.mul_add(m[i][j], m[j][i])
            };
        }
    }
    k
}

/// Writes block number `place` of each lane to where it belongs.
#[inline(always)]
pub(super) fn write<V: Lanes>(k: [V; 9], place: usize, target: &mut Target) {
    let first = V::transpose([k[0], k[1], k[2], k[3]]);
    let second = V::transpose([k[4], k[5], k[6], k[7]]);
    let mut last = [0.0; LANES];
    k[8].store(&mut last);
    for l in 0..LANES {
        let block = &mut target[l][place];
        first[l].store(&mut block[..4]);
        second[l].store(&mut block[4..8]);
        block[8] = last[l];
    }
}

#[cfg(test)]
mod tests {
    use super::{Elements, Isa, StiffnessKernel, n_pairs, stiffness_len};
    use crate::element::geometry::point_geometry;
    use crate::element::test_cells::distorted;
    use crate::element::{Purpose, Tabulation};
    use fem_mesh::CellType;
    use nalgebra::{DMatrix, Matrix6};

    const LAME: [f64; 2] = [1.2, 0.7];

    fn kernels() -> Vec<StiffnessKernel> {
        let mut isas = vec![Isa::Baseline];
        #[cfg(target_arch = "x86_64")]
        if Isa::best() == Isa::Avx2 {
            isas.push(Isa::Avx2);
        }
        isas.into_iter()
            .map(|isa| StiffnessKernel {
                isa,
                ..Default::default()
            })
            .collect()
    }

    fn stiffness(
        kernel: &mut StiffnessKernel,
        cell_type: CellType,
        coords: &[[f64; 3]],
    ) -> Vec<f64> {
        stiffness_by(kernel, cell_type, Purpose::Stiffness, coords)
    }

    fn stiffness_by(
        kernel: &mut StiffnessKernel,
        cell_type: CellType,
        rule: Purpose,
        coords: &[[f64; 3]],
    ) -> Vec<f64> {
        let n_elements = coords.len() / cell_type.n_nodes();
        let lame = vec![LAME; n_elements];
        let mut into = vec![0.0; n_elements * stiffness_len(cell_type)];
        let mut det = vec![0.0; n_elements];
        kernel.compute(
            Elements {
                cell_type,
                rule,
                coords,
                lame: &lame,
            },
            &mut into,
            &mut det,
        );
        assert!(det.iter().all(|&d| d > 0.0), "{cell_type}: {det:?}");
        into
    }

    /// The whole matrix from its stored half.
    fn full(cell_type: CellType, half: &[f64]) -> DMatrix<f64> {
        let n = cell_type.n_nodes();
        let mut k = DMatrix::zeros(3 * n, 3 * n);
        let mut blocks = half.chunks_exact(9);
        for a in 0..n {
            for b in a..n {
                let block = blocks.next().unwrap();
                for (at, &value) in block.iter().enumerate() {
                    let (i, j) = (at / 3, at % 3);
                    k[(3 * a + i, 3 * b + j)] = value;
                    k[(3 * b + j, 3 * a + i)] = value;
                }
            }
        }
        k
    }

    /// Sum of w B^T D B, as in the textbooks.
    fn naive(cell_type: CellType, rule: Purpose, coords: &[[f64; 3]]) -> DMatrix<f64> {
        let n = cell_type.n_nodes();
        let [lambda, mu] = LAME;
        let mut d = Matrix6::zeros();
        for i in 0..3 {
            for j in 0..3 {
                d[(i, j)] = lambda;
            }
            d[(i, i)] += 2.0 * mu;
            d[(i + 3, i + 3)] = mu;
        }
        let table = Tabulation::of(cell_type, rule);
        let mut k = DMatrix::zeros(3 * n, 3 * n);
        for (q, point) in table.points.iter().enumerate() {
            let at = point_geometry(coords, table.grad(q));
            let mut b = DMatrix::zeros(6, 3 * n);
            for (a, g) in at.grad[..n].iter().enumerate() {
                for i in 0..3 {
                    b[(i, 3 * a + i)] = g[i];
                }
                for (row, (i, j)) in [(0, 1), (1, 2), (2, 0)].into_iter().enumerate() {
                    b[(3 + row, 3 * a + i)] = g[j];
                    b[(3 + row, 3 * a + j)] = g[i];
                }
            }
            k += b.transpose() * d * &b * (point.weight * at.det_jac);
        }
        k
    }

    #[test]
    fn blocks_agree_with_b_transposed_d_b_on_every_instruction_set() {
        for cell_type in CellType::SOLIDS {
            for amount in [0.0, 0.08] {
                let coords = distorted(cell_type, amount);
                for rule in [Purpose::Stiffness, Purpose::Reduced] {
                    if rule == Purpose::Reduced && cell_type == CellType::Hex8 {
                        continue; // has hourglass control, no part of this kernel
                    }
                    let expected = naive(cell_type, rule, &coords);
                    for mut kernel in kernels() {
                        let half = stiffness_by(&mut kernel, cell_type, rule, &coords);
                        let k = full(cell_type, &half);
                        let error = (&k - &expected).norm() / expected.norm();
                        assert!(
                            error < 1e-14,
                            "{cell_type} {rule:?} {:?}: {error:e}",
                            kernel.isa
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn rigid_motions_cause_no_force() {
        for cell_type in CellType::SOLIDS {
            let coords = distorted(cell_type, 0.08);
            let k = full(
                cell_type,
                &stiffness(&mut StiffnessKernel::default(), cell_type, &coords),
            );
            for mode in 0..6 {
                let u = coords.iter().flat_map(|&[x, y, z]| match mode {
                    0 => [1.0, 0.0, 0.0],
                    1 => [0.0, 1.0, 0.0],
                    2 => [0.0, 0.0, 1.0],
                    3 => [0.0, -z, y],
                    4 => [z, 0.0, -x],
                    _ => [-y, x, 0.0],
                });
                let u = DMatrix::from_iterator(3 * coords.len(), 1, u);
                let force = (&k * &u).norm() / (k.norm() * u.norm());
                assert!(force < 1e-13, "{cell_type} mode {mode}: {force:e}");
            }
        }
    }

    #[test]
    fn the_place_in_a_batch_does_not_change_a_bit() {
        for cell_type in CellType::SOLIDS {
            // Every third has a constant Jacobian.
            let cells: Vec<_> = (0..19)
                .map(|i| distorted(cell_type, 0.005 * f64::from(i % 3)))
                .map(|mut cell| {
                    cell.iter_mut().for_each(|x| x[0] *= 1.25);
                    cell
                })
                .collect();
            for mut kernel in kernels() {
                let together = stiffness(&mut kernel, cell_type, &cells.concat());
                for (cell, k) in cells
                    .iter()
                    .zip(together.chunks_exact(9 * n_pairs(cell_type.n_nodes())))
                {
                    assert_eq!(
                        stiffness(&mut kernel, cell_type, cell),
                        k,
                        "{cell_type} {:?}",
                        kernel.isa
                    );
                }
            }
        }
    }

    #[test]
    fn inverted_and_flat_elements_are_seen() {
        let good = distorted(CellType::Hex8, 0.0);
        let mut inverted = good.clone();
        inverted.swap(0, 6);
        let flat: Vec<[f64; 3]> = good.iter().map(|x| [x[0], x[1], 0.0]).collect();
        let broken = vec![[f64::NAN; 3]; 8];
        let coords = [good, inverted, flat, broken].concat();
        for mut kernel in kernels() {
            let mut into = vec![0.0; 4 * stiffness_len(CellType::Hex8)];
            let mut det = [0.0; 4];
            let elements = Elements {
                cell_type: CellType::Hex8,
                rule: Purpose::Stiffness,
                coords: &coords,
                lame: &[LAME; 4],
            };
            kernel.compute(elements, &mut into, &mut det);
            assert_eq!(det.map(|d| d > 0.0), [true, false, false, false], "{det:?}");
        }
    }
}
