//! Stiffness of isotropic linear-elastic solid elements, several elements at a time.
//!
//! With h_a = sqrt(w det J) dN_a/dx at each quadrature point, all blocks of an element follow from
//! M_ab = sum_q h_a h_b^T (a <= b): K_ab = lambda M_ab + mu M_ab^T + mu tr(M_ab) I. A batch holds one element a lane;
//! every operation runs over the lanes of small arrays, which the compiler turns into vector instructions. The same
//! source is compiled for the baseline CPU, for AVX2 with FMA and for AVX-512, and the best is chosen at run time.
//! Lanes never mix: an element's result does not depend on its place in a batch.
//!
//! Invariant: allocates nothing per element; knows coordinates and Lame constants only.

use super::geometry::{cofactors, determinant};
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
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    fn best() -> Isa {
        #[cfg(target_arch = "x86_64")]
        {
            let fma = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if fma && is_x86_feature_detected!("avx512f") {
                return Isa::Avx512;
            }
            if fma {
                return Isa::Avx2;
            }
        }
        Isa::Baseline
    }
}

/// Largest number of lanes of a batch.
const MAX_LANES: usize = 8;
/// Nodes times quadrature points of the largest element, hex20.
const MAX_NODE_POINTS: usize = 20 * 27;

/// Computes element stiffness matrices; holds the work space of one thread.
pub struct StiffnessKernel {
    isa: Isa,
    gradients: Vec<f64>,
}

impl Default for StiffnessKernel {
    fn default() -> Self {
        StiffnessKernel { isa: Isa::best(), gradients: vec![0.0; MAX_NODE_POINTS * 3 * MAX_LANES] }
    }
}

/// Elements of one type, one after another.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    /// Their common type.
    pub cell_type: CellType,
    /// Coordinates of their nodes, `n_nodes` an element, m.
    pub coords: &'a [[f64; 3]],
    /// Lame constants lambda and mu of each element, Pa.
    pub lame: &'a [[f64; 2]],
}

impl StiffnessKernel {
    /// Writes the stiffness of each element to `into`, [`stiffness_len`] numbers an element, N/m, and the smallest
    /// det J of its quadrature points to `min_det`. An element whose smallest det J is not greater than 0 is
    /// inside out or flat; its stiffness is then meaningless.
    pub fn compute(&mut self, elements: Elements, into: &mut [f64], min_det: &mut [f64]) {
        let work = &mut self.gradients[..];
        match self.isa {
            Isa::Baseline => compute_lanes::<4, false>(elements, work, into, min_det),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Isa::best` found the instruction set on this machine.
            #[allow(unsafe_code)]
            Isa::Avx2 => unsafe { compute_avx2(elements, work, into, min_det) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Isa::best` found the instruction set on this machine.
            #[allow(unsafe_code)]
            Isa::Avx512 => unsafe { compute_avx512(elements, work, into, min_det) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn compute_avx2(elements: Elements, work: &mut [f64], into: &mut [f64], min_det: &mut [f64]) {
    compute_lanes::<4, true>(elements, work, into, min_det);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512f")]
fn compute_avx512(elements: Elements, work: &mut [f64], into: &mut [f64], min_det: &mut [f64]) {
    compute_lanes::<8, true>(elements, work, into, min_det);
}

#[inline(always)]
fn compute_lanes<const L: usize, const FMA: bool>(
    elements: Elements,
    work: &mut [f64],
    into: &mut [f64],
    min_det: &mut [f64],
) {
    match elements.cell_type {
        CellType::Tet4 => batches::<4, 1, L, FMA>(elements, work, into, min_det),
        CellType::Tet10 => batches::<10, 4, L, FMA>(elements, work, into, min_det),
        CellType::Wedge6 => batches::<6, 6, L, FMA>(elements, work, into, min_det),
        CellType::Hex8 => batches::<8, 8, L, FMA>(elements, work, into, min_det),
        CellType::Hex20 => batches::<20, 27, L, FMA>(elements, work, into, min_det),
        CellType::Tri3 | CellType::Tri6 | CellType::Quad4 | CellType::Quad8 => {
            unreachable!("facets have no stiffness of a solid")
        }
    }
}

/// Walks over the elements `L` at a time; the last batch is filled up with copies of its last element.
#[inline(always)]
fn batches<const N: usize, const Q: usize, const L: usize, const FMA: bool>(
    elements: Elements,
    work: &mut [f64],
    into: &mut [f64],
    min_det: &mut [f64],
) {
    let table = Tabulation::of(elements.cell_type, Purpose::Stiffness);
    let size = 9 * n_pairs(N);
    let (lanes, _) = work[..N * Q * 3 * L].as_chunks_mut::<L>();
    let (vectors, _) = lanes.as_chunks_mut::<3>();
    let (gradients, _) = vectors.as_chunks_mut::<Q>();
    let n_elements = elements.lame.len();
    for first in (0..n_elements).step_by(L) {
        let n_used = L.min(n_elements - first);
        let mut x = [[[0.0; L]; 3]; N];
        let mut lame = [[0.0; L]; 2];
        for l in 0..L {
            let element = first + l.min(n_used - 1);
            for a in 0..N {
                for i in 0..3 {
                    x[a][i][l] = elements.coords[element * N + a][i];
                }
            }
            for i in 0..2 {
                lame[i][l] = elements.lame[element][i];
            }
        }
        let det = weighted_gradients::<N, Q, L, FMA>(table, &x, gradients);
        min_det[first..first + n_used].copy_from_slice(&det[..n_used]);
        let into = &mut into[first * size..(first + n_used) * size];
        blocks::<N, Q, L, FMA>(gradients, &lame, into);
    }
}

/// a * b + c for each lane.
#[inline(always)]
fn multiply_add<const L: usize, const FMA: bool>(a: &[f64; L], b: &[f64; L], c: &[f64; L]) -> [f64; L] {
    let mut sum = [0.0; L];
    for l in 0..L {
        sum[l] = if FMA { a[l].mul_add(b[l], c[l]) } else { a[l] * b[l] + c[l] };
    }
    sum
}

/// h_a = sqrt(w det J) dN_a/dx at each point, `gradients[a][q][i]`; returns the smallest det J of each lane.
#[inline(always)]
fn weighted_gradients<const N: usize, const Q: usize, const L: usize, const FMA: bool>(
    table: &Tabulation,
    x: &[[[f64; L]; 3]; N],
    gradients: &mut [[[[f64; L]; 3]; Q]],
) -> [f64; L] {
    let mut min_det = [f64::INFINITY; L];
    for q in 0..Q {
        let natural = table.grad(q);
        let mut jac = [[[0.0; L]; 3]; 3];
        for a in 0..N {
            for i in 0..3 {
                for j in 0..3 {
                    jac[i][j] = multiply_add::<L, FMA>(&x[a][i], &[natural[a][j]; L], &jac[i][j]);
                }
            }
        }
        let mut inverse = [[[0.0; L]; 3]; 3];
        for l in 0..L {
            let jac = jac.map(|row| row.map(|lanes| lanes[l]));
            let cofactors = cofactors(&jac);
            let det = determinant(&jac, &cofactors);
            // Written so that NaN counts as smallest.
            min_det[l] = if det >= min_det[l] { min_det[l] } else { det };
            let scale = (table.points[q].weight / det).sqrt();
            for i in 0..3 {
                for j in 0..3 {
                    inverse[i][j][l] = cofactors[i][j] * scale;
                }
            }
        }
        for a in 0..N {
            for i in 0..3 {
                let mut sum = [0.0; L];
                for j in 0..3 {
                    sum = multiply_add::<L, FMA>(&inverse[i][j], &[natural[a][j]; L], &sum);
                }
                gradients[a][q][i] = sum;
            }
        }
    }
    min_det
}

/// All blocks K_ab, a <= b, from the weighted gradients; `into` holds one element after another.
#[inline(always)]
fn blocks<const N: usize, const Q: usize, const L: usize, const FMA: bool>(
    gradients: &[[[[f64; L]; 3]; Q]],
    lame: &[[f64; L]; 2],
    into: &mut [f64],
) {
    let size = 9 * n_pairs(N);
    let n_used = into.len() / size;
    let mut pair = 0;
    for a in 0..N {
        for b in a..N {
            let block = block::<Q, L, FMA>(&gradients[a], &gradients[b], lame);
            for (l, element) in into.chunks_exact_mut(size).enumerate().take(n_used) {
                let target = &mut element[9 * pair..9 * pair + 9];
                for k in 0..9 {
                    target[k] = block[k][l];
                }
            }
            pair += 1;
        }
    }
}

/// One block of each lane: M = sum_q h_a h_b^T, then K = lambda M + mu M^T + mu tr(M) I.
#[inline(always)]
fn block<const Q: usize, const L: usize, const FMA: bool>(
    h_a: &[[[f64; L]; 3]; Q],
    h_b: &[[[f64; L]; 3]; Q],
    lame: &[[f64; L]; 2],
) -> [[f64; L]; 9] {
    let mut m = [[0.0; L]; 9];
    for (a, b) in h_a.iter().zip(h_b) {
        for i in 0..3 {
            for j in 0..3 {
                m[3 * i + j] = multiply_add::<L, FMA>(&a[i], &b[j], &m[3 * i + j]);
            }
        }
    }
    let [lambda, mu] = lame;
    let mut k = [[0.0; L]; 9];
    for i in 0..3 {
        for j in 0..3 {
            for l in 0..L {
                k[3 * i + j][l] = lambda[l] * m[3 * i + j][l] + mu[l] * m[3 * j + i][l];
            }
        }
        for l in 0..L {
            k[4 * i][l] += mu[l] * (m[0][l] + m[4][l] + m[8][l]);
        }
    }
    k
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
        if Isa::best() == Isa::Avx512 {
            isas.extend([Isa::Avx2, Isa::Avx512]);
        } else if Isa::best() == Isa::Avx2 {
            isas.push(Isa::Avx2);
        }
        isas.into_iter().map(|isa| StiffnessKernel { isa, ..Default::default() }).collect()
    }

    fn stiffness(kernel: &mut StiffnessKernel, cell_type: CellType, coords: &[[f64; 3]]) -> Vec<f64> {
        let n_elements = coords.len() / cell_type.n_nodes();
        let lame = vec![LAME; n_elements];
        let mut into = vec![0.0; n_elements * stiffness_len(cell_type)];
        let mut det = vec![0.0; n_elements];
        kernel.compute(Elements { cell_type, coords, lame: &lame }, &mut into, &mut det);
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
    fn naive(cell_type: CellType, coords: &[[f64; 3]]) -> DMatrix<f64> {
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
        let table = Tabulation::of(cell_type, Purpose::Stiffness);
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
            let coords = distorted(cell_type, 0.08);
            let expected = naive(cell_type, &coords);
            for mut kernel in kernels() {
                let k = full(cell_type, &stiffness(&mut kernel, cell_type, &coords));
                let error = (&k - &expected).norm() / expected.norm();
                assert!(error < 1e-13, "{cell_type} {:?}: {error:e}", kernel.isa);
            }
        }
    }

    #[test]
    fn rigid_motions_cause_no_force() {
        for cell_type in CellType::SOLIDS {
            let coords = distorted(cell_type, 0.08);
            let k = full(cell_type, &stiffness(&mut StiffnessKernel::default(), cell_type, &coords));
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
            let cells: Vec<_> = (1..=19).map(|i| distorted(cell_type, 0.005 * f64::from(i))).collect();
            for mut kernel in kernels() {
                let together = stiffness(&mut kernel, cell_type, &cells.concat());
                for (cell, k) in cells.iter().zip(together.chunks_exact(9 * n_pairs(cell_type.n_nodes()))) {
                    assert_eq!(stiffness(&mut kernel, cell_type, cell), k, "{cell_type} {:?}", kernel.isa);
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
            let elements = Elements { cell_type: CellType::Hex8, coords: &coords, lame: &[LAME; 4] };
            kernel.compute(elements, &mut into, &mut det);
            assert_eq!(det.map(|d| d > 0.0), [true, false, false, false], "{det:?}");
        }
    }

    #[test]
    #[ignore = "a measurement: elements per second on one core, in cache"]
    fn speed() {
        for cell_type in CellType::SOLIDS {
            let cells: Vec<_> = (0..32).map(|i| distorted(cell_type, 0.002 * f64::from(i))).collect();
            let coords = cells.concat();
            let lame = vec![LAME; 32];
            let mut into = vec![0.0; 32 * stiffness_len(cell_type)];
            let mut det = vec![0.0; 32];
            for mut kernel in kernels() {
                let start = std::time::Instant::now();
                let mut n_done = 0;
                while start.elapsed().as_secs_f64() < 0.3 {
                    for _ in 0..100 {
                        let elements = Elements { cell_type, coords: &coords, lame: &lame };
                        kernel.compute(elements, std::hint::black_box(&mut into), &mut det);
                        n_done += 32;
                    }
                }
                let rate = f64::from(n_done) / start.elapsed().as_secs_f64();
                println!("{cell_type} {:?}: {:.2} M elements/s", kernel.isa, rate * 1e-6);
            }
        }
    }
}
