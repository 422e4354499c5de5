//! Strength of connection: which neighbors of a node an aggregate may gather.
//!
//! Invariant: looks at the blocks of one rank's own rows and columns only.

use crate::linalg::{BlockCsr, DistMatrix, Upper};
use rayon::prelude::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

/// Rows that a thread takes at a time.
const ROWS_PER_TASK: usize = 4096;

/// Graph of strong connections among the owned rows, as a part of the matrix's own pattern.
pub(super) struct StrongGraph<'a> {
    row_start: &'a [usize],
    columns: &'a [u32],
    upper: &'a Upper,
    /// Whether each block of the lower half is strong; `None`: all are.
    strong: Option<Vec<bool>>,
}

impl<'a> StrongGraph<'a> {
    /// Block (i, j) is strong if its Frobenius norm exceeds `threshold` times the geometric mean of those of the
    /// diagonal blocks (i, i) and (j, j). Vanek, Mandel and Brezina, Computing 56 (1996) 179, with blocks for scalars.
    /// `upper` belongs to the lower half of `a`.
    pub(super) fn new<const B: usize>(
        a: &'a DistMatrix<B>,
        upper: &'a Upper,
        threshold: f64,
    ) -> Self {
        let lower = a.lower();
        StrongGraph {
            row_start: &lower.row_start,
            columns: &lower.columns,
            upper,
            strong: (threshold > 0.0).then(|| strong_blocks(lower, threshold)),
        }
    }

    /// Number of nodes.
    pub(super) fn n_nodes(&self) -> usize {
        self.row_start.len() - 1
    }

    /// Strongly connected nodes of `node`, ascending; `node` itself may be among them.
    pub(super) fn strong_neighbors(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let blocks = self.row_start[node]..self.row_start[node + 1];
        let is_strong = |k: usize| self.strong.as_ref().is_none_or(|strong| strong[k]);
        let below = blocks
            .filter(move |&k| is_strong(k))
            .map(|k| self.columns[k] as usize);
        let above = self.upper.row(node).iter();
        let above = above.filter(move |block| is_strong(block.place as usize));
        below.chain(above.map(|block| block.column as usize))
    }

    /// All connected nodes of `node`, ascending.
    pub(super) fn neighbors(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let blocks = self.row_start[node]..self.row_start[node + 1];
        let below = self.columns[blocks].iter();
        let above = self.upper.row(node).iter().map(|block| &block.column);
        below.chain(above).map(|&column| column as usize)
    }
}

/// Whether each block of the lower half is strong.
fn strong_blocks<const B: usize>(lower: &BlockCsr<f64, B>, threshold: f64) -> Vec<bool> {
    let norm2 = |k: usize| lower.block(k).iter().map(|v| v * v).sum::<f64>();
    let diagonal: Vec<f64> = (0..lower.n_rows)
        .into_par_iter()
        .map(|row| norm2(lower.row_start[row + 1] - 1))
        .collect();
    let limit = threshold.powi(4);
    let of_row = |row: usize| lower.row(row).map(move |k| (k, row));
    let is_strong = |(k, row): (usize, usize)| {
        let product = diagonal[row] * diagonal[lower.columns[k] as usize];
        norm2(k).powi(2) > limit * product
    };
    let n_tasks = lower.n_rows.div_ceil(ROWS_PER_TASK);
    let tasks: Vec<Vec<bool>> = (0..n_tasks)
        .into_par_iter()
        .with_max_len(1)
        .map(|task| {
            let rows = task * ROWS_PER_TASK..lower.n_rows.min((task + 1) * ROWS_PER_TASK);
            rows.flat_map(of_row).map(is_strong).collect()
        })
        .collect();
    tasks.concat()
}

#[cfg(test)]
mod tests {
    use super::StrongGraph;
    use crate::linalg::sample::distribute;
    use crate::linalg::{BlockCsr, Upper};
    use fem_mesh::Comm;

    #[test]
    fn weak_connections_are_left_out() {
        // A chain whose middle link is weak.
        let mut blocks = vec![
            (0, 0, [[1.0]]),
            (1, 1, [[1.01]]),
            (2, 2, [[1.01]]),
            (3, 3, [[1.0]]),
        ];
        for (i, j, value) in [(0, 1, -1.0), (1, 2, -0.01), (2, 3, -1.0)] {
            blocks.extend([(i, j, [[value]]), (j, i, [[value]])]);
        }
        let matrix = distribute(&Comm::alone(), &BlockCsr::from_blocks(4, 4, blocks));
        let upper = Upper::new(matrix.lower());
        let strong = |threshold| {
            let graph = StrongGraph::new(&matrix, &upper, threshold);
            (0..4)
                .map(|node| graph.strong_neighbors(node).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        assert_eq!(strong(0.0)[1], [0, 1, 2]);
        assert_eq!(strong(0.1), [[0, 1], [0, 1], [2, 3], [2, 3]]);
        assert_eq!(
            StrongGraph::new(&matrix, &upper, 0.1)
                .neighbors(2)
                .collect::<Vec<_>>(),
            [1, 2, 3]
        );
    }
}
