//! Fill-reducing ordering of a sparse symmetric matrix: nested dissection by METIS.
//!
//! Invariant: sees the graph of the block rows only. Holds the one call of the METIS C library that the crate `metis`
//! does not offer.
#![allow(unsafe_code)]

use crate::linalg::{BlockCsr, Scalar, Upper};
use fem_mesh::{Error, Result};
use metis_sys::idx_t;

/// An elimination order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ordering {
    /// Row that is eliminated at each step.
    pub(super) rows: Vec<usize>,
    /// Step at which each row is eliminated.
    pub(super) steps: Vec<usize>,
}

/// Nested-dissection order of the block rows of the symmetric matrix with the lower half `lower`.
///
/// Karypis and Kumar, SIAM J. Sci. Comput. 20 (1998) 359.
///
/// # Errors
/// A matrix with more entries than the 32-bit numbers of METIS can count.
pub(super) fn nested_dissection<T: Scalar, const B: usize>(
    lower: &BlockCsr<T, B>,
) -> Result<Ordering> {
    let (mut starts, mut neighbors) = graph(lower)?;
    let n = lower.n_rows;
    if neighbors.is_empty() {
        return Ok(Ordering {
            rows: (0..n).collect(),
            steps: (0..n).collect(),
        });
    }
    let mut n_vertices = n as idx_t;
    let (mut rows, mut steps) = (vec![0; n], vec![0; n]);
    // SAFETY: `starts` has n + 1 entries that index `neighbors`, whose entries are below n (`graph` and the matrix
    // type see to that); `rows` and `steps` have room for the n entries written; null stands for no weights and
    // default options. METIS keeps no pointer.
    let status = unsafe {
        metis_sys::METIS_NodeND(
            &raw mut n_vertices,
            starts.as_mut_ptr(),
            neighbors.as_mut_ptr(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            rows.as_mut_ptr(),
            steps.as_mut_ptr(),
        )
    };
    if status != metis_sys::rstatus_et_METIS_OK {
        return Err(Error::machine(format!(
            "METIS could not order a matrix of {n} block rows (status {status})"
        ))
        .advice("is there enough memory? `method = \"cg\"` needs less"));
    }
    let to_usize = |numbers: Vec<idx_t>| numbers.into_iter().map(|i| i as usize).collect();
    Ok(Ordering {
        rows: to_usize(rows),
        steps: to_usize(steps),
    })
}

/// Adjacency of the block rows without the diagonal: starts and neighbors.
fn graph<T: Scalar, const B: usize>(lower: &BlockCsr<T, B>) -> Result<(Vec<idx_t>, Vec<idx_t>)> {
    debug_assert!(lower.is_well_formed() && lower.is_lower_half());
    let n_neighbors = 2 * (lower.n_blocks() - lower.n_rows);
    if n_neighbors > idx_t::MAX as usize {
        return Err(Error::model(format!(
            "{n_neighbors} matrix blocks are too many for the direct solver"
        ))
        .advice("use `method = \"cg\"`"));
    }
    let upper = Upper::new(lower);
    let mut starts = Vec::with_capacity(lower.n_rows + 1);
    let mut neighbors = Vec::with_capacity(n_neighbors);
    starts.push(0);
    for row in 0..lower.n_rows {
        let blocks = lower.row(row);
        let below = &lower.columns[blocks.start..blocks.end - 1];
        let above = upper.row(row).iter().map(|block| &block.column);
        neighbors.extend(below.iter().chain(above).map(|&column| column as idx_t));
        starts.push(neighbors.len() as idx_t);
    }
    Ok((starts, neighbors))
}

impl Ordering {
    /// The order of scalars when each row stands for `size` of them.
    pub(super) fn expand(&self, size: usize) -> Ordering {
        let expand = |numbers: &[usize]| {
            numbers
                .iter()
                .flat_map(|i| i * size..(i + 1) * size)
                .collect()
        };
        Ordering {
            rows: expand(&self.rows),
            steps: expand(&self.steps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::nested_dissection;
    use crate::linalg::BlockCsr;
    use crate::linalg::sample::{laplace_grid, lower_half};

    #[test]
    fn an_order_and_its_inverse_come_back() {
        let order = nested_dissection(&lower_half(&laplace_grid(6)))
            .expect("METIS orders it")
            .expand(3);
        assert_eq!(order.rows.len(), 3 * 216);
        for (step, &row) in order.rows.iter().enumerate() {
            assert_eq!(order.steps[row], step);
            assert_eq!(row % 3, step % 3);
        }
        assert!(!order.rows.is_sorted());
    }

    #[test]
    fn a_matrix_without_couplings_keeps_its_order() {
        let a = BlockCsr::from_blocks(3, 3, (0..3).map(|i| (i, i, [[1.0]])).collect());
        assert_eq!(nested_dissection(&a).expect("trivial").rows, [0, 1, 2]);
    }
}
