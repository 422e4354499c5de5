//! Graphs of a mesh: which cells touch a node, and which cells share a face.
//!
//! In: cells. Out: a [`Graph`] in compressed rows. Faces match by their corner nodes, so that cells of any mix of
//! types and orders find their neighbors.
//!
//! Invariant: looks at node indices only; no hashing, so the result depends on nothing but the cells.

use crate::Cells;
use crate::facets::{face_key, faces_of};

/// Compressed rows: the neighbors of `i` are `targets[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Start of each row; one longer than there are rows.
    pub offsets: Vec<u32>,
    /// Neighbors of all rows, ascending within each.
    pub targets: Vec<u32>,
}

impl Graph {
    /// Rows that list, for each pair `(row, target)`, the target; in the order of the pairs. The pairs are run
    /// through twice.
    pub(crate) fn from_pairs<I>(n_rows: usize, pairs: impl Fn() -> I) -> Graph
    where
        I: Iterator<Item = (u32, u32)>,
    {
        let mut offsets = vec![0u32; n_rows + 1];
        for (row, _) in pairs() {
            offsets[row as usize + 1] += 1;
        }
        for row in 0..n_rows {
            offsets[row + 1] += offsets[row];
        }
        let mut next = offsets.clone();
        let mut targets = vec![0u32; offsets[n_rows] as usize];
        for (row, target) in pairs() {
            let slot = &mut next[row as usize];
            targets[*slot as usize] = target;
            *slot += 1;
        }
        Graph { offsets, targets }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Neighbors of row `row`.
    pub fn row(&self, row: usize) -> &[u32] {
        &self.targets[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    /// Whether every row can be reached from every other; the graph must be symmetric.
    pub fn is_connected(&self) -> bool {
        let mut reached = vec![false; self.n_rows()];
        let mut queue = Vec::new();
        if let Some(first) = reached.first_mut() {
            *first = true;
            queue.push(0);
        }
        let mut n_reached = queue.len();
        while let Some(row) = queue.pop() {
            for &target in self.row(row) {
                if !std::mem::replace(&mut reached[target as usize], true) {
                    queue.push(target as usize);
                    n_reached += 1;
                }
            }
        }
        n_reached == self.n_rows()
    }
}

/// The cells that touch each node: `n_nodes` rows, cells ascending in each.
pub fn node_cells(cells: &Cells, n_nodes: usize) -> Graph {
    Graph::from_pairs(n_nodes, || {
        (0..cells.len()).flat_map(|c| cells.nodes_of(c).iter().map(move |&node| (node, c as u32)))
    })
}

/// The dual graph: cells that share a face. Symmetric, without loops; neighbors ascending in each row. Where, in a
/// broken mesh, more than two cells share one face, each is a neighbor of each.
pub fn dual_graph(cells: &Cells) -> Graph {
    let mut pairs = Vec::new();
    for_each_face(cells, |sharers| {
        for (i, &a) in sharers.iter().enumerate() {
            for &b in sharers[i + 1..].iter().filter(|&&b| b != a) {
                pairs.push((a, b));
                pairs.push((b, a));
            }
        }
    });
    pairs.sort_unstable();
    pairs.dedup();
    Graph::from_pairs(cells.len(), || pairs.iter().copied())
}

/// Calls `visit` once for each different face with the cells that have it, ascending.
fn for_each_face(cells: &Cells, mut visit: impl FnMut(&[u32])) {
    // Bucket the faces by lowest corner; within the few faces of a bucket sorting is cheap.
    let n_nodes = cells.nodes.iter().max().map_or(0, |&n| n as usize + 1);
    let faces = || (0..cells.len()).flat_map(|c| faces_of(cells, c));
    let mut starts = vec![0usize; n_nodes + 1];
    for face in faces() {
        starts[face_key(cells, face)[0] as usize + 1] += 1;
    }
    for node in 0..n_nodes {
        starts[node + 1] += starts[node];
    }
    let mut next = starts.clone();
    let mut entries = vec![([0u32; 3], 0u32); starts[n_nodes]];
    for face in faces() {
        let [lowest, rest @ ..] = face_key(cells, face);
        let slot = &mut next[lowest as usize];
        entries[*slot] = (rest, face.cell);
        *slot += 1;
    }
    let mut sharers = Vec::new();
    for node in 0..n_nodes {
        let bucket = &mut entries[starts[node]..starts[node + 1]];
        bucket.sort_unstable();
        for run in bucket.chunk_by(|a, b| a.0 == b.0) {
            sharers.clear();
            sharers.extend(run.iter().map(|&(_, cell)| cell));
            visit(&sharers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{dual_graph, node_cells};
    use crate::test_meshes::{mixed_box, two_bodies};
    use crate::{CellType, Cells};

    #[test]
    fn a_node_knows_its_cells() {
        let mesh = mixed_box([3, 2, 2]);
        let graph = node_cells(&mesh.cells, mesh.n_nodes());
        let mut n_entries = 0;
        for cell in 0..mesh.n_cells() {
            for &node in mesh.cells.nodes_of(cell) {
                assert!(graph.row(node as usize).contains(&(cell as u32)));
                n_entries += 1;
            }
        }
        assert_eq!(graph.targets.len(), n_entries);
        for node in 0..graph.n_rows() {
            assert!(graph.row(node).is_sorted());
        }
    }

    #[test]
    fn the_dual_graph_agrees_with_pairwise_comparison() {
        let mesh = mixed_box([3, 3, 2]);
        let graph = dual_graph(&mesh.cells);
        let shared = |a: usize, b: usize| {
            let nodes = mesh.cells.nodes_of(b);
            mesh.cells
                .nodes_of(a)
                .iter()
                .filter(|n| nodes.contains(n))
                .count()
        };
        for a in 0..mesh.n_cells() {
            // Conforming linear cells share a face exactly if they share three corners or more.
            let expected: Vec<u32> = (0..mesh.n_cells())
                .filter(|&b| b != a && shared(a, b) >= 3)
                .map(|b| b as u32)
                .collect();
            assert_eq!(graph.row(a), expected);
        }
        assert!(graph.is_connected());
        assert!(!dual_graph(&two_bodies().cells).is_connected());
    }

    #[test]
    fn second_order_cells_neighbor_linear_ones_by_corners() {
        let mut cells = Cells::default();
        cells.push(CellType::Tet10, &[0, 1, 2, 3, 10, 11, 12, 13, 14, 15]);
        cells.push(CellType::Tet4, &[0, 2, 1, 4]);
        let graph = dual_graph(&cells);
        assert_eq!((graph.row(0), graph.row(1)), (&[1u32][..], &[0u32][..]));
    }

    #[test]
    fn no_cells_make_an_empty_graph() {
        let graph = dual_graph(&Cells::default());
        assert_eq!(graph.n_rows(), 0);
        assert!(graph.is_connected());
    }
}
