//! Parts of a mesh that share no node, and nodes that stand at the same place.
//!
//! Invariant: looks at node indices and coordinates only; the caller words what is found.

use fem_mesh::Mesh;
use fem_mesh::components::{find, join};

/// A part of the mesh that shares no node with the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Number of its elements.
    pub n_elements: usize,
    /// The smallest element set that holds it whole, `all` and the set of every element apart.
    pub name: Option<String>,
    /// Its element of lowest index.
    pub first: u32,
}

/// The parts, largest first.
pub(crate) fn find_parts(mesh: &Mesh) -> Vec<Part> {
    let part_of_cell = label_cells(mesh);
    let n_parts = part_of_cell.iter().max().map_or(0, |&p| p as usize + 1);
    let mut parts: Vec<Part> = vec![
        Part {
            n_elements: 0,
            name: None,
            first: u32::MAX,
        };
        n_parts
    ];
    for (cell, &part) in part_of_cell.iter().enumerate() {
        let part = &mut parts[part as usize];
        part.n_elements += 1;
        part.first = part.first.min(cell as u32);
    }
    if n_parts > 1 {
        name_parts(mesh, &part_of_cell, &mut parts);
    }
    parts.sort_by_key(|part| (std::cmp::Reverse(part.n_elements), part.first));
    parts
}

/// Number of the part of each cell, in the order of their first cells; by union-find over the nodes.
fn label_cells(mesh: &Mesh) -> Vec<u32> {
    let mut parent: Vec<u32> = (0..mesh.n_nodes() as u32).collect();
    for cell in 0..mesh.n_cells() {
        for pair in mesh.cells.nodes_of(cell).windows(2) {
            join(&mut parent, pair[0], pair[1]);
        }
    }
    const NONE: u32 = u32::MAX;
    let mut label_of_root = vec![NONE; mesh.n_nodes()];
    let mut n_labels = 0;
    (0..mesh.n_cells())
        .map(|cell| {
            let top = find(&mut parent, mesh.cells.nodes_of(cell)[0]) as usize;
            if label_of_root[top] == NONE {
                label_of_root[top] = n_labels;
                n_labels += 1;
            }
            label_of_root[top]
        })
        .collect()
}

fn name_parts(mesh: &Mesh, part_of_cell: &[u32], parts: &mut [Part]) {
    let mut smallest = vec![usize::MAX; parts.len()];
    let mut counts = vec![0_usize; parts.len()];
    for (name, cells) in &mesh.sets.cells {
        if cells.len() == mesh.n_cells() {
            continue;
        }
        for &cell in cells {
            counts[part_of_cell[cell as usize] as usize] += 1;
        }
        for &cell in cells {
            let k = part_of_cell[cell as usize] as usize;
            if counts[k] == parts[k].n_elements && cells.len() < smallest[k] {
                smallest[k] = cells.len();
                parts[k].name = Some(name.clone());
            }
            counts[k] = 0;
        }
    }
}

/// Distance, relative to the size of the mesh, up to which two nodes are at the same place.
pub(crate) const COINCIDENT: f64 = 1e-9;

/// Nodes within `tolerance` of another along each axis: (earlier node, later node), ascending by the later one. Of
/// several at one place each later one is paired with the first.
///
/// Runs of nodes close in x, within them of nodes close in y, then in z: three sorts, whatever the mesh looks like.
pub(crate) fn coincident_pairs(coords: &[[f64; 3]], tolerance: f64) -> Vec<(u32, u32)> {
    let mut nodes: Vec<Node> = coords.iter().copied().zip(0..).collect();
    let mut pairs = Vec::new();
    split_runs(tolerance, &mut nodes, 0, &mut pairs);
    pairs.sort_unstable_by_key(|&(_, later)| later);
    pairs
}

/// Place and index: beside each other, for sorting reads little else.
type Node = ([f64; 3], u32);

fn split_runs(tolerance: f64, nodes: &mut [Node], axis: usize, pairs: &mut Vec<(u32, u32)>) {
    if nodes.len() < 2 {
        return;
    }
    if axis == 3 {
        pair_up(tolerance, nodes, pairs);
        return;
    }
    nodes.sort_unstable_by(|(a, _), (b, _)| a[axis].total_cmp(&b[axis]));
    let mut start = 0;
    for k in 1..=nodes.len() {
        if k == nodes.len() || nodes[k].0[axis] - nodes[k - 1].0[axis] > tolerance {
            split_runs(tolerance, &mut nodes[start..k], axis + 1, pairs);
            start = k;
        }
    }
}

/// Pairs within one run, which is hardly ever longer than a few nodes.
fn pair_up(tolerance: f64, nodes: &mut [Node], pairs: &mut Vec<(u32, u32)>) {
    nodes.sort_unstable_by_key(|&(_, node)| node);
    let mut firsts: Vec<Node> = Vec::new();
    for &(at, node) in &*nodes {
        let near =
            |(other, _): &&Node| (0..3).all(|axis| (at[axis] - other[axis]).abs() <= tolerance);
        match firsts.iter().find(near) {
            Some(&(_, first)) => pairs.push((first, node)),
            None => firsts.push((at, node)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{coincident_pairs, find_parts};
    use fem_mesh::{CellType, Mesh};

    #[test]
    fn pairs_are_found_across_any_grid_and_none_is_made_up() {
        let mut coords: Vec<[f64; 3]> = Vec::new();
        for k in 0..1000_u32 {
            let [i, j, l] = [k % 10, k / 10 % 10, k / 100].map(f64::from);
            coords.push([i, j, l]);
        }
        assert!(coincident_pairs(&coords, 1e-8).is_empty());
        coords.push([3.0 + 0.9e-8, 4.0 - 0.9e-8, 5.0]);
        coords.push([3.0, 4.0, 5.0]);
        coords.push([9.0, 9.0, 9.0 + 1.1e-8]);
        coords.push([0.0, -0.0, 0.0]);
        assert_eq!(
            coincident_pairs(&coords, 1e-8),
            [(543, 1000), (543, 1001), (0, 1003)]
        );
        assert_eq!(coincident_pairs(&[[1.0; 3]; 500], 0.0).len(), 499);
    }

    #[test]
    fn parts_come_by_size_with_the_smallest_set_that_holds_them() {
        let mut mesh = Mesh {
            coords: vec![[0.0; 3]; 13],
            ..Mesh::default()
        };
        for nodes in [[0, 1, 2, 3], [4, 5, 6, 7], [7, 8, 9, 4], [9, 10, 11, 12]] {
            mesh.cells.push(CellType::Tet4, &nodes);
        }
        mesh.sets.cells.insert("all".into(), vec![0, 1, 2, 3]);
        mesh.sets.cells.insert("big".into(), vec![1, 2, 3]);
        mesh.sets.cells.insert("half".into(), vec![0, 1, 2]);
        mesh.sets.cells.insert("one".into(), vec![0]);
        let parts = find_parts(&mesh);
        let shown: Vec<_> = parts
            .iter()
            .map(|p| (p.n_elements, p.name.as_deref(), p.first))
            .collect();
        assert_eq!(shown, [(3, Some("big"), 1), (1, Some("one"), 0)]);
    }
}
