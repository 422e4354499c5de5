//! Pieces of a mesh: cut out, turned to bytes for another rank, and put together again.
//!
//! A piece is a [`Mesh`] of some cells with exactly their nodes and the membership of both in sets. It goes by the
//! numbers of the input, so pieces from several ranks fit together.
//!
//! Invariant: all ranks hold sets of the same names, so bytes carry members only.

use super::ids::IdMap;
use crate::adjacency::Graph;
use crate::mesh::Sets;
use crate::{CellFace, CellType, Cells, Mesh};

/// Cuts pieces out of a mesh; each costs time in proportion to its own size.
pub(super) struct Cutter<'a> {
    mesh: &'a Mesh,
    /// By node, the numbers of the node sets it is in (in the order of names); likewise for cells.
    sets_of_node: Graph,
    sets_of_cell: Graph,
    /// By cell, its faces in face sets as `set * 256 + face`.
    faces_of_cell: Graph,
    /// Index of each node in the piece being cut.
    node_in_piece: Vec<u32>,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(mesh: &'a Mesh) -> Self {
        let sets = &mesh.sets;
        Cutter {
            mesh,
            sets_of_node: Graph::from_pairs(mesh.n_nodes(), || {
                members(sets.nodes.values()).map(|(set, &node)| (node, set))
            }),
            sets_of_cell: Graph::from_pairs(mesh.n_cells(), || {
                members(sets.cells.values()).map(|(set, &cell)| (cell, set))
            }),
            faces_of_cell: Graph::from_pairs(mesh.n_cells(), || {
                members(sets.faces.values()).map(|(set, f)| (f.cell, set * 256 + u32::from(f.face)))
            }),
            node_in_piece: vec![0; mesh.n_nodes()],
        }
    }

    /// The piece of these cells, and the index in the whole mesh of each of its nodes, ascending.
    pub(super) fn cut(&mut self, cells: &[u32]) -> (Mesh, Vec<u32>) {
        let mesh = self.mesh;
        let mut nodes: Vec<u32> = cells
            .iter()
            .flat_map(|&c| mesh.cells.nodes_of(c as usize))
            .copied()
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        for (&node, index) in nodes.iter().zip(0..) {
            self.node_in_piece[node as usize] = index;
        }
        let mut piece = Mesh {
            coords: nodes.iter().map(|&n| mesh.coords[n as usize]).collect(),
            node_ids: nodes.iter().map(|&n| mesh.node_ids[n as usize]).collect(),
            cell_ids: cells.iter().map(|&c| mesh.cell_ids[c as usize]).collect(),
            sets: self.cut_sets(cells, &nodes),
            ..Mesh::default()
        };
        let mut in_piece = Vec::new();
        for &cell in cells {
            let cell = cell as usize;
            in_piece.clear();
            let nodes = mesh.cells.nodes_of(cell).iter();
            in_piece.extend(nodes.map(|&n| self.node_in_piece[n as usize]));
            piece.cells.push(mesh.cells.types[cell], &in_piece);
        }
        (piece, nodes)
    }

    fn cut_sets(&self, cells: &[u32], nodes: &[u32]) -> Sets {
        let mut sets = empty_like(&self.mesh.sets);
        let mut node_sets: Vec<_> = sets.nodes.values_mut().collect();
        for (&node, index) in nodes.iter().zip(0..) {
            for &set in self.sets_of_node.row(node as usize) {
                node_sets[set as usize].push(index);
            }
        }
        let mut cell_sets: Vec<_> = sets.cells.values_mut().collect();
        let mut face_sets: Vec<_> = sets.faces.values_mut().collect();
        for (&cell, index) in cells.iter().zip(0..) {
            for &set in self.sets_of_cell.row(cell as usize) {
                cell_sets[set as usize].push(index);
            }
            for &entry in self.faces_of_cell.row(cell as usize) {
                let face = CellFace {
                    cell: index,
                    face: (entry % 256) as u8,
                };
                face_sets[entry as usize / 256].push(face);
            }
        }
        sets
    }
}

fn members<'a, T: 'a>(
    sets: impl Iterator<Item = &'a Vec<T>>,
) -> impl Iterator<Item = (u32, &'a T)> {
    sets.zip(0..)
        .flat_map(|(members, set)| members.iter().map(move |m| (set, m)))
}

/// Sets of the same names without members.
pub(super) fn empty_like(sets: &Sets) -> Sets {
    Sets {
        nodes: sets
            .nodes
            .keys()
            .map(|name| (name.clone(), Vec::new()))
            .collect(),
        cells: sets
            .cells
            .keys()
            .map(|name| (name.clone(), Vec::new()))
            .collect(),
        faces: sets
            .faces
            .keys()
            .map(|name| (name.clone(), Vec::new()))
            .collect(),
    }
}

/// Puts pieces together: nodes of the same number become one.
pub(super) struct Merger {
    mesh: Mesh,
    node_by_id: IdMap,
}

impl Merger {
    /// Begins with a mesh in which each number occurs once.
    pub(super) fn new(mesh: Mesh) -> Self {
        let node_by_id = mesh.node_ids.iter().copied().zip(0..).collect();
        Merger { mesh, node_by_id }
    }

    /// Adds a piece with sets of the same names; its cells must be new. Returns where its nodes are now.
    pub(super) fn add(&mut self, piece: &Mesh) -> Vec<u32> {
        let mesh = &mut self.mesh;
        let mut nodes = Vec::with_capacity(piece.n_nodes());
        for (&id, &x) in piece.node_ids.iter().zip(&piece.coords) {
            let node = *self
                .node_by_id
                .entry(id)
                .or_insert(mesh.node_ids.len() as u32);
            if node as usize == mesh.node_ids.len() {
                mesh.node_ids.push(id);
                mesh.coords.push(x);
            }
            nodes.push(node);
        }
        let first_cell = mesh.n_cells() as u32;
        let mut moved = Vec::new();
        for cell in 0..piece.n_cells() {
            moved.clear();
            moved.extend(
                piece
                    .cells
                    .nodes_of(cell)
                    .iter()
                    .map(|&n| nodes[n as usize]),
            );
            mesh.cells.push(piece.cells.types[cell], &moved);
        }
        mesh.cell_ids.extend_from_slice(&piece.cell_ids);
        for (set, added) in mesh.sets.nodes.values_mut().zip(piece.sets.nodes.values()) {
            set.extend(added.iter().map(|&n| nodes[n as usize]));
        }
        for (set, added) in mesh.sets.cells.values_mut().zip(piece.sets.cells.values()) {
            set.extend(added.iter().map(|&c| first_cell + c));
        }
        for (set, added) in mesh.sets.faces.values_mut().zip(piece.sets.faces.values()) {
            set.extend(added.iter().map(|f| CellFace {
                cell: first_cell + f.cell,
                ..*f
            }));
        }
        nodes
    }

    /// The whole. A node set can list a node once for each piece that had it.
    pub(super) fn finish(self) -> Mesh {
        self.mesh
    }
}

/// A piece as bytes.
pub(super) fn to_bytes(piece: &Mesh) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_list(&mut bytes, &piece.coords);
    push_list(&mut bytes, &piece.node_ids);
    let types: Vec<u8> = piece.cells.types.iter().map(|&t| t as u8).collect();
    push_list(&mut bytes, &types);
    push_list(&mut bytes, &piece.cells.nodes);
    push_list(&mut bytes, &piece.cell_ids);
    for set in piece.sets.nodes.values().chain(piece.sets.cells.values()) {
        push_list(&mut bytes, set);
    }
    for set in piece.sets.faces.values() {
        let pairs: Vec<[u32; 2]> = set.iter().map(|f| [f.cell, u32::from(f.face)]).collect();
        push_list(&mut bytes, &pairs);
    }
    bytes
}

/// The inverse of [`to_bytes`]; `names` holds sets of the names that the sender had.
pub(super) fn from_bytes(bytes: &[u8], names: &Sets) -> Mesh {
    let mut piece = Mesh {
        sets: empty_like(names),
        ..Mesh::default()
    };
    if bytes.is_empty() {
        return piece;
    }
    let mut rest = bytes;
    piece.coords = take_list(&mut rest);
    piece.node_ids = take_list(&mut rest);
    let types: Vec<u8> = take_list(&mut rest);
    let nodes: Vec<u32> = take_list(&mut rest);
    let mut first = 0;
    for cell_type in types.into_iter().filter_map(CellType::from_index) {
        piece
            .cells
            .push(cell_type, &nodes[first..first + cell_type.n_nodes()]);
        first += cell_type.n_nodes();
    }
    piece.cell_ids = take_list(&mut rest);
    for set in piece
        .sets
        .nodes
        .values_mut()
        .chain(piece.sets.cells.values_mut())
    {
        *set = take_list(&mut rest);
    }
    for set in piece.sets.faces.values_mut() {
        let pairs: Vec<[u32; 2]> = take_list(&mut rest);
        *set = pairs
            .iter()
            .map(|&[cell, face]| CellFace {
                cell,
                face: face as u8,
            })
            .collect();
    }
    piece
}

fn push_list<T: bytemuck::NoUninit>(bytes: &mut Vec<u8>, values: &[T]) {
    bytes.extend_from_slice(&(values.len() as u64).to_ne_bytes());
    bytes.extend_from_slice(bytemuck::cast_slice(values));
}

fn take_list<T: bytemuck::Pod>(rest: &mut &[u8]) -> Vec<T> {
    let (length, tail) = rest.split_at(size_of::<u64>());
    let length = bytemuck::pod_read_unaligned::<u64>(length) as usize;
    let (values, tail) = tail.split_at(length * size_of::<T>());
    *rest = tail;
    values
        .chunks_exact(size_of::<T>())
        .map(bytemuck::pod_read_unaligned)
        .collect()
}

/// Cells by the node order of a mesh with other node numbers: node `n` becomes `new_of_old[n]`.
pub(super) fn renumbered(cells: &Cells, order: &[u32], new_of_old: &[u32]) -> Cells {
    let mut result = Cells::default();
    let mut nodes = Vec::new();
    for &cell in order {
        nodes.clear();
        let old = cells.nodes_of(cell as usize).iter();
        nodes.extend(old.map(|&n| new_of_old[n as usize]));
        result.push(cells.types[cell as usize], &nodes);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::{Cutter, Merger, from_bytes, to_bytes};
    use crate::test_meshes::{mixed_box, with_sets};

    #[test]
    fn a_piece_survives_as_bytes() {
        let mesh = with_sets(mixed_box([3, 2, 2]));
        let (piece, _) = Cutter::new(&mesh).cut(&[1, 4, 5]);
        assert_eq!(from_bytes(&to_bytes(&piece), &mesh.sets), piece);
        assert_eq!(piece.n_cells(), 3);
    }

    #[test]
    fn pieces_put_together_are_the_whole() {
        let mesh = with_sets(mixed_box([3, 2, 2]));
        let mut cutter = Cutter::new(&mesh);
        let cells: Vec<u32> = (0..mesh.n_cells() as u32).collect();
        let (low, high) = cells.split_at(7);
        let mut merger = Merger::new(cutter.cut(low).0);
        merger.add(&cutter.cut(high).0);
        let whole = merger.finish();
        assert_eq!(whole.cell_ids, mesh.cell_ids);
        assert_eq!(whole.n_nodes(), mesh.n_nodes());
        assert_eq!(whole.sets.cells, mesh.sets.cells);
        assert_eq!(whole.sets.faces, mesh.sets.faces);
        for cell in 0..mesh.n_cells() {
            for (a, b) in whole
                .cells
                .nodes_of(cell)
                .iter()
                .zip(mesh.cells.nodes_of(cell))
            {
                assert_eq!(whole.node_ids[*a as usize], mesh.node_ids[*b as usize]);
                assert_eq!(whole.coords[*a as usize], mesh.coords[*b as usize]);
            }
        }
    }
}
