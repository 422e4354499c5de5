//! `Pattern`: which blocks the rows of this rank have, and where each element's blocks go.
//!
//! What goes in: the local mesh. What comes out: matrices of zeros for the owned rows, columns split into owned and
//! ghost, and for each row the positions in it of the nodes of each cell that touches it, so that the element loop
//! searches nothing. The matrix is symmetric: of the blocks in owned columns a row keeps those on and below the diagonal
//! (see [`is_stored`]). Positions take 2 bytes each (about 80 bytes a hex8) and are stored by rows in ascending order of
//! cells: a thread that goes over its cells in that order reads them one after another.
//!
//! Invariant: structure only; knows no values.

use super::slabs::Slabs;
use crate::linalg::BlockCsr;
use fem_mesh::adjacency::{Graph, node_cells};
use fem_mesh::{Cells, Error, LocalMesh, Result};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::ops::Range;

/// A rank's block rows: blocks in owned columns apart from those in ghost columns (column g is local node
/// `n_owned + g`). Both have a row for each owned node.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockRows {
    /// Blocks in the columns of owned nodes, on and below the diagonal; the diagonal block is the last of its row.
    pub lower: BlockCsr<f64, 3>,
    /// Blocks in the columns of ghost nodes.
    pub ghost: BlockCsr<f64, 3>,
}

/// Where the blocks of each element go in the [`BlockRows`] it was made with.
#[derive(Clone, Debug)]
pub struct Pattern {
    slabs: Slabs,
    positions: Vec<SlabPositions>,
}

/// Positions of a slab: `values[start[r]..start[r + 1]]` belong to row r of the slab, the nodes of its cells one after
/// another, as far as they [`is_stored`]. A position counts the blocks of the row, owned columns first, then ghosts.
#[derive(Clone, Debug, Default)]
pub(super) struct SlabPositions {
    pub(super) start: Vec<usize>,
    pub(super) values: Vec<u16>,
}

/// What one thread finds out about its slab.
#[derive(Default)]
struct SlabPattern {
    lower: SlabColumns,
    ghost: SlabColumns,
    positions: SlabPositions,
    widest_row: usize,
}

#[derive(Default)]
struct SlabColumns {
    columns: Vec<u32>,
    row_end: Vec<usize>,
}

/// Whether a row stores the block in the column of local node `column`: not if that is above the diagonal and in
/// an owned column, whose row then stores the transpose.
#[inline(always)]
pub(crate) fn is_stored(row: usize, column: u32, n_owned: usize) -> bool {
    column as usize <= row || column as usize >= n_owned
}

impl Pattern {
    /// The pattern of `mesh`, made by and for the threads of the current rayon pool, with matrices of zeros.
    ///
    /// # Errors
    /// A node with more than 65,536 neighbors.
    pub fn new(mesh: &LocalMesh) -> Result<(Pattern, BlockRows)> {
        Self::with_slabs(mesh, rayon::current_num_threads())
    }

    /// As [`Pattern::new`], for a given number of slabs.
    pub(crate) fn with_slabs(mesh: &LocalMesh, n_slabs: usize) -> Result<(Pattern, BlockRows)> {
        let (n_owned, n_ghosts) = (mesh.nodes.n_owned(), mesh.nodes.n_ghosts());
        let graph = node_cells(&mesh.cells, mesh.nodes.n_local());
        let slabs = Slabs::balanced(&graph.offsets[..=n_owned], n_slabs);
        let ranges: Vec<Range<usize>> = slabs.rows().collect();
        let found: Vec<SlabPattern> = (ranges.into_par_iter())
            .map(|rows| SlabPattern::new(&mesh.cells, &graph, rows, n_owned))
            .collect();
        let widest = found.iter().map(|slab| slab.widest_row).max().unwrap_or(0);
        if widest > usize::from(u16::MAX) + 1 {
            return Err(
                Error::model(format!("a node shares elements with {widest} others"))
                    .expected("at most 65,536 neighbors of a node"),
            );
        }
        let rows = BlockRows {
            lower: join(
                &slabs,
                n_owned,
                found.iter().map(|slab| &slab.lower).collect(),
            ),
            ghost: join(
                &slabs,
                n_ghosts,
                found.iter().map(|slab| &slab.ghost).collect(),
            ),
        };
        let positions = found.into_iter().map(|slab| slab.positions).collect();
        Ok((Pattern { slabs, positions }, rows))
    }

    /// The rows of each thread.
    pub fn slabs(&self) -> &Slabs {
        &self.slabs
    }

    pub(super) fn positions(&self) -> &[SlabPositions] {
        &self.positions
    }

    /// Memory held, bytes.
    pub fn memory(&self) -> usize {
        let slab =
            |p: &SlabPositions| size_of_val(p.start.as_slice()) + size_of_val(p.values.as_slice());
        self.positions.iter().map(slab).sum()
    }
}

impl SlabPattern {
    fn new(cells: &Cells, graph: &Graph, rows: Range<usize>, n_owned: usize) -> Self {
        let mut slab = SlabPattern::default();
        // Row (counted from 1) in which each node was last seen, and its number among the columns of that row in the
        // order of their first occurrence. Pages of nodes that this slab never meets stay untouched and cost no memory.
        let mut seen = vec![[0u32; 2]; graph.n_rows()];
        // Columns of the row with their numbers in the lower half, and the place of each number after sorting.
        let mut columns: Vec<u64> = Vec::new();
        let mut place: Vec<u16> = Vec::new();
        slab.positions.start.push(0);
        for row in rows {
            let stamp = row as u32 + 1;
            let first = slab.positions.values.len();
            columns.clear();
            // The diagonal block exists even where no cell touches the node.
            columns.push((row as u64) << 32);
            seen[row] = [stamp, 0];
            for &cell in graph.row(row) {
                let nodes = cells.nodes_of(cell as usize).iter();
                for &node in nodes.filter(|&&node| is_stored(row, node, n_owned)) {
                    let [last, number] = &mut seen[node as usize];
                    if *last != stamp {
                        *last = stamp;
                        *number = columns.len() as u32;
                        columns.push(u64::from(node) << 32 | u64::from(*number));
                    }
                    slab.positions.values.push(*number as u16);
                }
            }
            columns.sort_unstable();
            place.resize(columns.len(), 0);
            for (position, &column) in columns.iter().enumerate() {
                place[column as u32 as usize] = position as u16;
            }
            for number in &mut slab.positions.values[first..] {
                *number = place[usize::from(*number)];
            }
            slab.widest_row = slab.widest_row.max(columns.len());
            slab.positions.start.push(slab.positions.values.len());
            let nodes = columns.iter().map(|column| (column >> 32) as u32);
            let split = columns.partition_point(|column| ((column >> 32) as usize) < n_owned);
            slab.lower.push_row(nodes.clone().take(split));
            slab.ghost
                .push_row(nodes.skip(split).map(|node| node - n_owned as u32));
        }
        slab
    }
}

impl SlabColumns {
    fn push_row(&mut self, columns: impl Iterator<Item = u32>) {
        self.columns.extend(columns);
        self.row_end.push(self.columns.len());
    }
}

/// One matrix of zeros from the columns of all slabs; each thread first touches the pages of its slab.
fn join(slabs: &Slabs, n_cols: usize, parts: Vec<&SlabColumns>) -> BlockCsr<f64, 3> {
    let mut row_start = vec![0];
    for part in &parts {
        let base = row_start[row_start.len() - 1];
        row_start.extend(part.row_end.iter().map(|end| base + end));
    }
    let mut columns = vec![0; row_start[row_start.len() - 1]];
    let targets = slabs.split(&mut columns, |row| row_start[row]);
    let jobs: Vec<_> = targets.into_iter().zip(parts).collect();
    jobs.into_par_iter()
        .for_each(|(target, part)| target.copy_from_slice(&part.columns));
    BlockCsr::zeros(n_cols, row_start, columns)
}

#[cfg(test)]
mod tests {
    use super::Pattern;
    use crate::assembly::test_models::{mixed_mesh, split};
    use fem_mesh::comm::run_threads;
    use std::collections::BTreeSet;

    #[test]
    fn rows_hold_exactly_the_lower_neighbors_for_any_number_of_slabs() {
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let mesh = split(comm, &mixed_mesh());
                let (_, rows) = Pattern::with_slabs(&mesh, 1).unwrap();
                let n_owned = mesh.nodes.n_owned();
                for row in 0..n_owned {
                    let mut expected = BTreeSet::from([row as u32]);
                    for cell in 0..mesh.n_cells() {
                        let nodes = mesh.cells.nodes_of(cell);
                        if nodes.contains(&(row as u32)) {
                            expected.extend(nodes);
                        }
                    }
                    let is_ghost = |node: u32| node as usize >= n_owned;
                    expected.retain(|&node| node as usize <= row || is_ghost(node));
                    let lower = rows.lower.columns[rows.lower.row(row)].iter().copied();
                    let ghost = rows.ghost.columns[rows.ghost.row(row)]
                        .iter()
                        .map(|g| g + n_owned as u32);
                    assert!(lower.chain(ghost).eq(expected), "row {row}");
                }
                for n_slabs in [2, 3, 5] {
                    assert_eq!(Pattern::with_slabs(&mesh, n_slabs).unwrap().1, rows);
                }
            });
        }
    }
}
