//! METIS on the dual graph.
//!
//! G. Karypis and V. Kumar, A fast and high quality multilevel scheme for partitioning irregular graphs, SIAM J. Sci.
//! Comput. 20 (1998) 359-392.
//!
//! Invariant: the only file that names the crate `metis`.

use super::Problem;
use crate::adjacency::Graph;
use crate::{Error, Result};
use metis::Idx;
use metis::option::{Contig, MinConn, Seed, UFactor};
use std::sync::{Mutex, PoisonError};

/// Up to this many parts recursive bisection cuts less than k-way does; above, k-way keeps parts contiguous.
const MAX_RECURSIVE: usize = 64;

/// METIS draws from one random sequence per process: runs side by side would disturb each other's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Part of each cell. `graph` is the dual graph and has edges; at least two parts have weight.
pub(super) fn partition(problem: &Problem<'_>, graph: &Graph) -> Result<Vec<u32>> {
    let filled = problem.filled_parts();
    let failed = |what: &dyn std::fmt::Display| {
        Error::machine(format!("METIS could not divide the mesh: {what}"))
            .advice("use the partitioner `rcb`")
    };
    if Idx::try_from(graph.targets.len()).is_err() {
        return Err(failed(&"more neighbors than it can number"));
    }
    let offsets: &[Idx] = bytemuck::cast_slice(&graph.offsets);
    let targets: &[Idx] = bytemuck::cast_slice(&graph.targets);
    let work = scaled_work(&problem.work);
    let total: f64 = problem.shares.iter().sum();
    let shares: Vec<f32> = filled
        .iter()
        .map(|&p| (problem.shares[p as usize] / total) as f32)
        .collect();
    let mut parts = vec![0; graph.n_rows()];

    let metis_graph = metis::Graph::new(1, filled.len() as Idx, offsets, targets)
        .map_err(|e| failed(&e))?
        .set_option(Seed(1))
        .set_tpwgts(&shares)
        .set_vwgt(&work);
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let result = if filled.len() <= MAX_RECURSIVE {
        metis_graph.part_recursive(&mut parts)
    } else {
        // METIS refuses to keep the parts of a graph contiguous that is not so itself.
        let contiguous = Contig(graph.is_connected());
        let metis_graph = metis_graph.set_option(contiguous).set_option(MinConn(true));
        metis_graph.set_option(UFactor(10)).part_kway(&mut parts)
    };
    drop(guard);
    result.map_err(|e| failed(&e))?;
    Ok(parts.into_iter().map(|p| filled[p as usize]).collect())
}

/// Work in the smallest whole numbers, such that METIS can add all of it in 32 bits.
fn scaled_work(work: &[u32]) -> Vec<Idx> {
    let gcd = |mut a: u32, mut b: u32| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let common = work.iter().copied().fold(0, gcd).max(1);
    let total: u64 = work.iter().map(|&w| u64::from(w / common)).sum();
    let coarser = total.div_ceil(1 << 30).max(1);
    let divisor = u64::from(common) * coarser;
    work.iter()
        .map(|&w| (u64::from(w) / divisor).max(1) as Idx)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::scaled_work;

    #[test]
    fn work_shrinks_to_fit_32_bits() {
        assert_eq!(scaled_work(&[64, 64, 64]), [1, 1, 1]);
        assert_eq!(scaled_work(&[64, 36]), [16, 9]);
        let large = scaled_work(&[u32::MAX, u32::MAX - 1, 1]);
        assert!(large.iter().all(|&w| w > 0));
        assert!(large.iter().map(|&w| i64::from(w)).sum::<i64>() < 1 << 31);
    }
}
