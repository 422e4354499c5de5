//! Strength of connection: which neighbors of a node an aggregate may gather.
//!
//! Invariant: looks at the blocks of one rank's own rows and columns only.

use crate::linalg::DistMatrix;
use rayon::prelude::{IntoParallelRefIterator, ParallelIterator, ParallelSlice};

/// Graph of strong connections among the owned rows, as a part of the matrix's own pattern.
pub(super) struct StrongGraph<'a> {
    row_start: &'a [usize],
    columns: &'a [u32],
    /// Whether each block of the pattern is strong; `None`: all are.
    strong: Option<Vec<bool>>,
}

impl<'a> StrongGraph<'a> {
    /// Block (i, j) is strong if its Frobenius norm exceeds `threshold` times the geometric mean of those of the
    /// diagonal blocks (i, i) and (j, j). Vanek, Mandel and Brezina, Computing 56 (1996) 179, with blocks for scalars.
    pub(super) fn new<const B: usize>(a: &'a DistMatrix<B>, threshold: f64) -> Self {
        let owned = a.owned();
        let strong = (threshold > 0.0).then(|| {
            let rows: Vec<usize> = (0..owned.n_rows).collect();
            let norm2 = |k: usize| owned.block(k).iter().map(|v| v * v).sum::<f64>();
            let diagonal: Vec<f64> = (rows.par_iter())
                .map(|&row| owned.find(row, row as u32).map_or(0.0, norm2))
                .collect();
            let limit = threshold.powi(4);
            let is_strong = |row: usize, k: usize| {
                let product = diagonal[row] * diagonal[owned.columns[k] as usize];
                norm2(k).powi(2) > limit * product
            };
            let of_rows = |rows: &[usize]| {
                let blocks = rows
                    .iter()
                    .flat_map(|&row| owned.row(row).map(move |k| (row, k)));
                blocks
                    .map(|(row, k)| is_strong(row, k))
                    .collect::<Vec<bool>>()
            };
            rows.par_chunks(4096)
                .map(of_rows)
                .collect::<Vec<_>>()
                .concat()
        });
        StrongGraph {
            row_start: &owned.row_start,
            columns: &owned.columns,
            strong,
        }
    }

    /// Number of nodes.
    pub(super) fn n_nodes(&self) -> usize {
        self.row_start.len() - 1
    }

    /// Strongly connected nodes of `node`, ascending; `node` itself may be among them.
    pub(super) fn strong_neighbors(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let blocks = self.row_start[node]..self.row_start[node + 1];
        let is_strong = |k: &usize| self.strong.as_ref().is_none_or(|strong| strong[*k]);
        blocks.filter(is_strong).map(|k| self.columns[k] as usize)
    }

    /// All connected nodes of `node`, ascending.
    pub(super) fn neighbors(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let blocks = self.row_start[node]..self.row_start[node + 1];
        self.columns[blocks].iter().map(|&column| column as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::StrongGraph;
    use crate::linalg::BlockCsr;
    use crate::linalg::sample::distribute;
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
        let strong = |threshold| {
            let graph = StrongGraph::new(&matrix, threshold);
            (0..4)
                .map(|node| graph.strong_neighbors(node).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        assert_eq!(strong(0.0)[1], [0, 1, 2]);
        assert_eq!(strong(0.1), [[0, 1], [0, 1], [2, 3], [2, 3]]);
        assert_eq!(
            StrongGraph::new(&matrix, 0.1)
                .neighbors(2)
                .collect::<Vec<_>>(),
            [1, 2, 3]
        );
    }
}
