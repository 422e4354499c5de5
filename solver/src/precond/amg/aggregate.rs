//! Aggregation: owned nodes into compact groups, each of which becomes one coarse node.
//!
//! Vanek, Mandel and Brezina, Computing 56 (1996) 179, algorithm 5.1: a node none of whose strong neighbors is taken
//! becomes the root of an aggregate of its whole neighborhood; what is left joins the aggregate to which it has most
//! connections. Aggregates never cross ranks.
//!
//! Invariant: sees a graph; the result depends on the order of the nodes and on nothing else.

use super::strength::StrongGraph;

/// Mark of a node in no aggregate.
pub(super) const NONE: u32 = u32::MAX;

/// Smallest group of leftover nodes that becomes an aggregate of its own if it could join another.
const MIN_LEFTOVERS: usize = 4;

/// Aggregates of one rank's nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Aggregates {
    /// Aggregate of each owned node, numbered by their first nodes; [`NONE`] for nodes that take no part.
    pub(super) of_node: Vec<u32>,
    /// Number of aggregates.
    pub(super) n: usize,
}

/// Groups the nodes that `takes_part`.
pub(super) fn aggregate(graph: &StrongGraph, takes_part: &[bool]) -> Aggregates {
    let mut growth = Growth {
        graph,
        takes_part,
        of_node: vec![NONE; graph.n_nodes()],
        n: 0,
    };
    growth.take_whole_neighborhoods();
    growth.join_neighbors();
    growth.gather_leftovers();
    growth.number_by_first_node()
}

struct Growth<'a> {
    graph: &'a StrongGraph<'a>,
    takes_part: &'a [bool],
    of_node: Vec<u32>,
    n: usize,
}

impl Growth<'_> {
    fn is_free(&self, node: usize) -> bool {
        self.of_node[node] == NONE && self.takes_part[node]
    }

    fn free_nodes(&self) -> Vec<usize> {
        (0..self.of_node.len())
            .filter(|&node| self.is_free(node))
            .collect()
    }

    fn take_whole_neighborhoods(&mut self) {
        for root in 0..self.of_node.len() {
            let is_free = |node| self.of_node[node] == NONE;
            if self.is_free(root) && self.graph.strong_neighbors(root).all(is_free) {
                self.found(root, true);
            }
        }
    }

    /// Founds an aggregate of `root` and its free neighbors.
    fn found(&mut self, root: usize, only_strong: bool) {
        let aggregate = self.n as u32;
        self.of_node[root] = aggregate;
        let mut take = |node: usize| {
            if self.takes_part[node] && self.of_node[node] == NONE {
                self.of_node[node] = aggregate;
            }
        };
        if only_strong {
            self.graph.strong_neighbors(root).for_each(&mut take);
        } else {
            self.graph.neighbors(root).for_each(&mut take);
        }
        self.n += 1;
    }

    /// Each free node joins the aggregate, as they stand before, to which it has most strong connections.
    fn join_neighbors(&mut self) {
        let free = self.free_nodes();
        let joins: Vec<u32> = (free.iter())
            .map(|&node| self.most_connected(self.graph.strong_neighbors(node)))
            .collect();
        for (node, aggregate) in free.into_iter().zip(joins) {
            self.of_node[node] = aggregate;
        }
    }

    /// The aggregate that occurs most often among `nodes`, the first of several; [`NONE`] if there is none.
    fn most_connected(&self, nodes: impl Iterator<Item = usize>) -> u32 {
        let mut counts: Vec<(u32, u32)> = Vec::new();
        for aggregate in nodes.map(|node| self.of_node[node]).filter(|&a| a != NONE) {
            match counts.iter_mut().find(|(a, _)| *a == aggregate) {
                Some((_, count)) => *count += 1,
                None => counts.push((aggregate, 1)),
            }
        }
        let most = counts.iter().map(|c| c.1).max();
        counts
            .iter()
            .find(|c| Some(c.1) == most)
            .map_or(NONE, |c| c.0)
    }

    /// Nodes far from every aggregate found their own if they are several, or join over weak connections.
    fn gather_leftovers(&mut self) {
        for node in self.free_nodes() {
            if !self.is_free(node) {
                continue;
            }
            let others = |n: &usize| *n != node && self.is_free(*n);
            let n_free = 1 + self.graph.neighbors(node).filter(others).count();
            if n_free < MIN_LEFTOVERS {
                let joined = self.most_connected(self.graph.neighbors(node));
                if joined != NONE {
                    self.of_node[node] = joined;
                    continue;
                }
            }
            self.found(node, false);
        }
    }

    /// Renumbers so that coarse nodes lie in memory as fine ones do.
    fn number_by_first_node(mut self) -> Aggregates {
        let mut number = vec![NONE; self.n];
        let mut next = 0;
        for aggregate in self.of_node.iter_mut().filter(|a| **a != NONE) {
            let number = &mut number[*aggregate as usize];
            if *number == NONE {
                *number = next;
                next += 1;
            }
            *aggregate = *number;
        }
        Aggregates {
            of_node: self.of_node,
            n: self.n,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NONE, aggregate};
    use crate::linalg::sample::{distribute, laplace_grid};
    use crate::linalg::{BlockCsr, DistMatrix, Upper};
    use crate::precond::amg::strength::StrongGraph;
    use fem_mesh::Comm;

    fn groups(matrix: &DistMatrix<1>, takes_part: &[bool]) -> (Vec<u32>, Vec<usize>) {
        let upper = Upper::new(matrix.lower());
        let found = aggregate(&StrongGraph::new(matrix, &upper, 0.0), takes_part);
        let mut sizes = vec![0; found.n];
        found
            .of_node
            .iter()
            .filter(|&&a| a != NONE)
            .for_each(|&a| sizes[a as usize] += 1);
        (found.of_node, sizes)
    }

    #[test]
    fn a_grid_falls_into_compact_groups() {
        let matrix = distribute(&Comm::alone(), &laplace_grid(12));
        let (of_node, sizes) = groups(&matrix, &[true; 12 * 12 * 12]);
        assert!(of_node.iter().all(|&a| a != NONE));
        let mean = of_node.len() as f64 / sizes.len() as f64;
        assert!((18.0..36.0).contains(&mean), "{mean} nodes an aggregate");
        assert!(sizes.iter().all(|&n| n >= 8), "{sizes:?}");
    }

    #[test]
    fn nodes_that_take_no_part_are_in_no_group() {
        let matrix = distribute(&Comm::alone(), &laplace_grid(6));
        let takes_part: Vec<bool> = (0..216).map(|node| node >= 36).collect();
        let (of_node, _) = groups(&matrix, &takes_part);
        assert!(
            of_node
                .iter()
                .zip(&takes_part)
                .all(|(&a, &part)| (a != NONE) == part)
        );
        assert_eq!(groups(&matrix, &[false; 216]).1, [] as [usize; 0]);
    }

    #[test]
    fn a_node_without_neighbors_stands_alone() {
        let blocks = (0..3).map(|i| (i, i, [[1.0]])).collect();
        let matrix = distribute(&Comm::alone(), &BlockCsr::from_blocks(3, 3, blocks));
        assert_eq!(
            groups(&matrix, &[true, false, true]),
            (vec![0, NONE, 1], vec![1, 1])
        );
    }
}
