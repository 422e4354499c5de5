//! Numbering of nodes for small bandwidth, so that what is near in the mesh is near in memory.
//!
//! In: cells. Out: an order of their nodes by breadth-first search from a node at the rim of each component, after
//! E. Cuthill and J. McKee, Reducing the bandwidth of sparse symmetric matrices, Proc. 24th ACM Nat. Conf. (1969)
//! 157-172; the first node as in A. George and J. W. H. Liu, An implementation of a pseudoperipheral node finder, ACM
//! Trans. Math. Softw. 5 (1979) 284-295.
//!
//! Invariant: walks from nodes to cells to nodes and stores no graph of nodes; time and memory grow as the cells do.

use crate::Cells;
use crate::adjacency::Graph;

/// Searches for a better first node end after so many.
const MAX_SEARCHES: usize = 5;

/// The order in which to number nodes `0..n_nodes`: entry i is the node to become number i. Nodes of `cells` from
/// `n_nodes` on are passed over. The order given, 0, 1, 2 ..., is kept if its bandwidth is no worse.
pub fn bandwidth_order(cells: &Cells, n_nodes: usize) -> Vec<u32> {
    let order = breadth_first_order(cells, n_nodes);
    let mut position = vec![0; n_nodes];
    for (new, &old) in order.iter().enumerate() {
        position[old as usize] = new as u32;
    }
    let given: Vec<u32> = (0..n_nodes as u32).collect();
    if bandwidth(cells, &given) <= bandwidth(cells, &position) {
        given
    } else {
        order
    }
}

/// Largest difference of the numbers of two nodes of one cell. `position` holds the number of each node; nodes beyond
/// its end are passed over.
pub fn bandwidth(cells: &Cells, position: &[u32]) -> u32 {
    let of_cell = |cell: usize| {
        let numbers = cells
            .nodes_of(cell)
            .iter()
            .filter_map(|&node| position.get(node as usize));
        let (lo, hi) = numbers.fold((u32::MAX, 0), |(lo, hi), &n| (lo.min(n), hi.max(n)));
        hi.saturating_sub(lo)
    };
    (0..cells.len()).map(of_cell).max().unwrap_or(0)
}

fn breadth_first_order(cells: &Cells, n_nodes: usize) -> Vec<u32> {
    let touching = Graph::from_pairs(n_nodes, || {
        let nodes =
            (0..cells.len()).flat_map(|c| cells.nodes_of(c).iter().map(move |&n| (n, c as u32)));
        nodes.filter(|&(node, _)| (node as usize) < n_nodes)
    });
    let mut search = Search {
        cells,
        touching,
        node_seen: vec![0; n_nodes],
        cell_seen: vec![0; cells.len()],
        number: 0,
    };
    let mut order = Vec::with_capacity(n_nodes);
    for node in 0..n_nodes {
        if search.node_seen[node] == 0 {
            order.append(&mut search.component_of(node as u32));
        }
    }
    order
}

/// Repeated breadth-first searches over the same cells.
struct Search<'a> {
    cells: &'a Cells,
    /// Cells that touch each node.
    touching: Graph,
    /// Number of the last search that reached each node, 0 if none did; and the same for cells.
    node_seen: Vec<u32>,
    cell_seen: Vec<u32>,
    number: u32,
}

/// Nodes of one component, level by level.
struct Levels {
    order: Vec<u32>,
    n_levels: usize,
    /// Where the last level starts in `order`.
    last: usize,
}

impl Search<'_> {
    /// Nodes of the component of `node`, in the order of a search from its rim.
    fn component_of(&mut self, node: u32) -> Vec<u32> {
        let mut best = self.levels_from(node);
        for _ in 1..MAX_SEARCHES {
            let far = best.order[best.last..].iter().copied();
            let Some(root) = far.min_by_key(|&n| (self.degree(n), n)) else {
                break;
            };
            let next = self.levels_from(root);
            let is_deeper = next.n_levels > best.n_levels;
            // Seen from the far end the levels are as many at least, and as good a start.
            best = next;
            if !is_deeper {
                break;
            }
        }
        best.order
    }

    /// A measure of how many neighbors a node has.
    fn degree(&self, node: u32) -> usize {
        self.touching.row(node as usize).len()
    }

    fn levels_from(&mut self, root: u32) -> Levels {
        self.number += 1;
        self.node_seen[root as usize] = self.number;
        let mut levels = Levels {
            order: vec![root],
            n_levels: 1,
            last: 0,
        };
        let mut end_of_level = 1;
        let mut next = 0;
        while next < levels.order.len() {
            if next == end_of_level {
                levels.n_levels += 1;
                levels.last = next;
                end_of_level = levels.order.len();
            }
            self.push_neighbors(levels.order[next], &mut levels.order);
            next += 1;
        }
        levels
    }

    /// Appends the neighbors of `node` not yet seen, those with few neighbors first.
    fn push_neighbors(&mut self, node: u32, order: &mut Vec<u32>) {
        let first_new = order.len();
        for &cell in self.touching.row(node as usize) {
            if std::mem::replace(&mut self.cell_seen[cell as usize], self.number) == self.number {
                continue;
            }
            for &neighbor in self.cells.nodes_of(cell as usize) {
                if let Some(seen) = self.node_seen.get_mut(neighbor as usize)
                    && std::mem::replace(seen, self.number) != self.number
                {
                    order.push(neighbor);
                }
            }
        }
        let touching = &self.touching;
        order[first_new..].sort_unstable_by_key(|&n| (touching.row(n as usize).len(), n));
    }
}

#[cfg(test)]
mod tests {
    use super::{bandwidth, bandwidth_order};
    use crate::test_meshes::{mixed_box, two_bodies, unit_bricks};
    use crate::{CellType, Cells, Comm, Mesh, generate_slice};

    /// The mesh with node n renamed to n * 37 mod n_nodes, which must have no factor 37.
    fn shuffled(mesh: &Mesh) -> Cells {
        let n_nodes = mesh.n_nodes();
        assert_ne!(n_nodes % 37, 0);
        let mut cells = mesh.cells.clone();
        for node in &mut cells.nodes {
            *node = (*node as usize * 37 % n_nodes) as u32;
        }
        cells
    }

    fn positions(order: &[u32]) -> Vec<u32> {
        let mut position = vec![u32::MAX; order.len()];
        for (new, &old) in order.iter().enumerate() {
            assert_eq!(
                std::mem::replace(&mut position[old as usize], new as u32),
                u32::MAX
            );
        }
        position
    }

    #[test]
    fn a_shuffled_bar_becomes_narrow_again() {
        let spec = unit_bricks(CellType::Hex8, [30, 2, 2]);
        let mesh = generate_slice(&spec, &Comm::alone(), None).unwrap();
        let cells = shuffled(&mesh);
        let order = bandwidth_order(&cells, mesh.n_nodes());
        // From a corner the second level takes up two layers and more, 19 nodes; from there on each has 9.
        assert!(bandwidth(&cells, &positions(&order)) < 19 + 9);
        let shuffled: Vec<u32> = (0..mesh.n_nodes() as u32).collect();
        assert!(bandwidth(&cells, &shuffled) > 100);
    }

    #[test]
    fn an_order_that_is_no_worse_is_kept() {
        let spec = unit_bricks(CellType::Hex8, [2, 2, 30]);
        let mesh = generate_slice(&spec, &Comm::alone(), None).unwrap();
        let order = bandwidth_order(&mesh.cells, mesh.n_nodes());
        assert!(order.is_sorted());
    }

    #[test]
    fn every_node_gets_a_place_in_loose_parts_and_without_cells() {
        for mesh in [two_bodies(), mixed_box([4, 3, 2])] {
            let cells = shuffled(&mesh);
            let n_nodes = mesh.n_nodes() + 3;
            assert_eq!(positions(&bandwidth_order(&cells, n_nodes)).len(), n_nodes);
            // Ghosts are passed over.
            assert_eq!(positions(&bandwidth_order(&cells, 7)).len(), 7);
        }
        assert!(bandwidth_order(&Cells::default(), 0).is_empty());
    }
}
