//! The largest eigenvalue of D⁻¹ A, with D the block diagonal of A.
//!
//! Invariant: the start vector depends on global row numbers only, so the estimate is the same for any threads.

use crate::linalg::{LinearOperator, vector};
use crate::precond::BlockJacobi;
use fem_mesh::{Comm, Error, IndexMap, Result};
use nalgebra::DMatrix;

/// Steps of the Lanczos method.
const STEPS: usize = 7;
/// The method approaches the eigenvalue from below.
const SAFETY: f64 = 1.05;

/// Collective. An estimate of the largest eigenvalue, where `a` has rows distributed as `map` says, by the tridiagonal matrix of a few steps of conjugate gradients
/// (Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., section 6.7.3).
///
/// # Errors
/// A matrix that is seen not to be positive definite, or not finite.
pub(super) fn largest_eigenvalue<const B: usize>(
    comm: &Comm,
    map: &IndexMap,
    a: &dyn LinearOperator,
    inverse: &BlockJacobi<B>,
) -> Result<f64> {
    let n = a.n_owned();
    let first = map.offset() * B as u64;
    let mut r: Vec<f64> = (0..n as u64).map(|i| noise(first + i)).collect();
    let (mut z, mut q) = (vec![0.0; n], vec![0.0; n]);
    inverse.apply(comm, &r, &mut z);
    let mut p = z.clone();
    let start = vector::dot(comm, &r, &z);
    let mut rz = start;
    let mut tridiagonal = DMatrix::<f64>::zeros(STEPS, STEPS);
    let (mut steps, mut last) = (0, (0.0, 1.0));
    while steps < STEPS && rz > 1e-20 * start {
        a.apply(comm, &p, &mut q);
        let pq = vector::dot(comm, &p, &q);
        if pq.is_nan() || pq <= 0.0 {
            return Err(
                Error::model("the matrix is not positive definite: found by multigrid")
                    .advice("is the model restrained, and are all material data positive?"),
            );
        }
        let alpha = rz / pq;
        vector::descend(alpha, &q, &mut r);
        inverse.apply(comm, &r, &mut z);
        let rz_new = vector::dot(comm, &r, &z);
        let beta = rz_new / rz;
        let (last_beta, last_alpha) = last;
        tridiagonal[(steps, steps)] = 1.0 / alpha + last_beta / last_alpha;
        if steps + 1 < STEPS {
            tridiagonal[(steps, steps + 1)] = beta.max(0.0).sqrt() / alpha;
            tridiagonal[(steps + 1, steps)] = tridiagonal[(steps, steps + 1)];
        }
        vector::axpby(1.0, &z, beta, &mut p);
        (rz, last) = (rz_new, (beta, alpha));
        steps += 1;
    }
    let found = tridiagonal.view((0, 0), (steps, steps)).into_owned();
    let largest = if steps == 0 {
        1.0
    } else {
        found.symmetric_eigenvalues().max()
    };
    if largest > 0.0 && largest.is_finite() {
        return Ok(SAFETY * largest);
    }
    Err(Error::model("the matrix holds numbers that are not finite")
        .advice("look for zero or huge values among the material data and the coordinates"))
}

/// A number in [-1, 1) that looks random, for each index (Steele, Lea and Flood's SplitMix64).
fn noise(index: u64) -> f64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::largest_eigenvalue;
    use crate::linalg::BlockCsr;
    use crate::linalg::sample::{distribute, spring_grid, to_sprs};
    use crate::precond::BlockJacobi;
    use fem_mesh::comm::run_threads;
    use nalgebra::DMatrix;

    #[test]
    fn the_estimate_is_close_and_rather_high() {
        let a = spring_grid(5, 100.0);
        let dense = to_sprs(&a).to_dense();
        let n = a.n_rows * 3;
        let matrix = DMatrix::from_fn(n, n, |i, j| dense[(i, j)]);
        let diagonal = DMatrix::from_fn(
            n,
            n,
            |i, j| if i / 3 == j / 3 { dense[(i, j)] } else { 0.0 },
        );
        let lower = diagonal.cholesky().expect("positive definite").l();
        let inverse = lower.try_inverse().expect("regular");
        let exact = (&inverse * matrix * inverse.transpose())
            .symmetric_eigenvalues()
            .max();
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let matrix = distribute(comm, &a);
                let inverse = BlockJacobi::new(comm, &matrix).expect("positive definite");
                let found = largest_eigenvalue(comm, matrix.map(), &matrix, &inverse)
                    .expect("positive definite");
                assert!(
                    (0.95..1.06).contains(&(found / exact)),
                    "{found} of {exact}"
                );
            });
        }
    }

    #[test]
    fn an_indefinite_matrix_is_refused() {
        let mut blocks: Vec<_> = (0..40).map(|i| (i, i, [[1.0]])).collect();
        blocks.extend((0..39).flat_map(|i| [(i, i + 1, [[0.9]]), (i + 1, i, [[0.9]])]));
        let a = BlockCsr::from_blocks(40, 40, blocks);
        run_threads(2, |comm| {
            let matrix = distribute(comm, &a);
            let inverse = BlockJacobi::new(comm, &matrix).expect("positive diagonal");
            let error =
                largest_eigenvalue(comm, matrix.map(), &matrix, &inverse).expect_err("indefinite");
            assert!(
                error.to_string().contains("not positive definite"),
                "{error}"
            );
        });
    }
}
