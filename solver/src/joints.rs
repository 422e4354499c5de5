//! Parts that hang together at an edge or a point only: the rigid motions that neither supports nor joints hold.
//!
//! A hinge lets the parts turn about it, the stiffness matrix is singular, and yet a load that does not turn them has a
//! solution, which iterations would find without a sign of trouble. So mechanisms are looked for before anything is
//! assembled: each piece of the mesh ([`label_pieces`]) is taken as rigid, moves in six ways, and must go along with the
//! others at the nodes that it shares with them. What is left in the null space of these conditions and of the supports
//! can move.
//!
//! Invariant: looks at topology, coordinates and fixed degrees of freedom only, never at stiffness.

use crate::model::Model;
use crate::restraint::{
    BodySums, FreeBody, NULL_TOLERANCE, merge_over_ranks, name_motions, rigid_motion_row,
};
use fem_mesh::Comm;
use fem_mesh::components::{find, join};
use fem_mesh::pieces::{Pieces, label_pieces};
use nalgebra::{DMatrix, Matrix3, Vector3, Vector6};
use std::collections::BTreeMap;

/// Most parts that are looked at: their conditions are a dense matrix.
const MAX_PARTS: usize = 80;
/// Shared nodes make a joint rigid if they reach this far across their longest direction, relative to it.
const LEAST_WIDTH: f64 = 1e-5;
/// Share of a motion below which a part is taken to stand still.
const STANDS_STILL: f64 = 1e-5;

/// A node that two pieces share.
#[derive(Clone, Copy, Debug)]
struct Joint {
    pieces: [u32; 2],
    x: [f64; 3],
}

/// Collective. Parts that can still move, the largest first, where bodies consist of several pieces. More than 80 parts
/// that are not joined rigidly are not looked at.
pub fn loose_parts(comm: &Comm, model: &Model) -> Vec<FreeBody> {
    let Some(pieces) = label_pieces(comm, &model.mesh) else {
        return Vec::new();
    };
    let of_node = pieces_of_nodes(model, &pieces);
    let part_of_piece = join_rigidly(pieces.n, &joints(comm, model, &of_node));
    let n_parts = part_of_piece
        .iter()
        .max()
        .map_or(0, |&last| last as usize + 1);
    if !(2..=MAX_PARTS).contains(&n_parts) {
        return Vec::new();
    }
    let of_node: Vec<Vec<u32>> = of_node
        .into_iter()
        .map(|mut pieces| {
            pieces
                .iter_mut()
                .for_each(|p| *p = part_of_piece[*p as usize]);
            pieces.sort_unstable();
            pieces.dedup();
            pieces
        })
        .collect();
    let parts = describe_parts(comm, model, &of_node);
    let joints = joints(comm, model, &of_node);
    let mut free = free_motions(&parts, &joints);
    free.sort_by_key(|part| (std::cmp::Reverse(part.n_nodes), part.first_node_id));
    free
}

/// The pieces that meet at each owned node, ascending.
fn pieces_of_nodes(model: &Model, pieces: &Pieces) -> Vec<Vec<u32>> {
    let mesh = &model.mesh;
    let mut of_node: Vec<Vec<u32>> = vec![Vec::new(); mesh.nodes.n_owned()];
    for (cell, &piece) in pieces.of_cell.iter().enumerate() {
        for &node in mesh.cells.nodes_of(cell) {
            if let Some(list) = of_node.get_mut(node as usize)
                && let Err(place) = list.binary_search(&piece)
            {
                list.insert(place, piece);
            }
        }
    }
    of_node
}

/// Collective. All shared nodes of the mesh, with the first piece and each further one, on every rank.
fn joints(comm: &Comm, model: &Model, of_node: &[Vec<u32>]) -> Vec<Joint> {
    let mut mine = Vec::new();
    for (node, list) in of_node.iter().enumerate() {
        for &other in list.iter().skip(1) {
            mine.extend([f64::from(list[0]), f64::from(other)]);
            mine.extend(model.mesh.coords[node]);
        }
    }
    let all = comm.all_gather(&mine).concat();
    let joint = |v: &[f64]| Joint {
        pieces: [v[0] as u32, v[1] as u32],
        x: [v[2], v[3], v[4]],
    };
    all.chunks_exact(5).map(joint).collect()
}

/// Part of each piece, where pieces that share nodes off one line are one part. Parts are numbered from 0.
///
/// Parts that were joined share more nodes with a third than either did, so it is looked again until nothing is joined.
fn join_rigidly(n_pieces: usize, joints: &[Joint]) -> Vec<u32> {
    let mut parent: Vec<u32> = (0..n_pieces as u32).collect();
    loop {
        let mut shared: BTreeMap<[u32; 2], Vec<[f64; 3]>> = BTreeMap::new();
        for joint in joints {
            let mut pair = joint.pieces.map(|piece| find(&mut parent, piece));
            pair.sort_unstable();
            if pair[0] != pair[1] {
                shared.entry(pair).or_default().push(joint.x);
            }
        }
        shared.retain(|_, places| are_off_one_line(places));
        if shared.is_empty() {
            break;
        }
        for [a, b] in shared.into_keys() {
            join(&mut parent, a, b);
        }
    }
    let part: Vec<u32> = (0..n_pieces as u32)
        .map(|piece| find(&mut parent, piece))
        .collect();
    let mut leaders = part.clone();
    leaders.sort_unstable();
    leaders.dedup();
    let number = |p: &u32| leaders.partition_point(|l| l < p) as u32;
    part.iter().map(number).collect()
}

fn are_off_one_line(places: &[[f64; 3]]) -> bool {
    let n = places.len() as f64;
    let center = places
        .iter()
        .map(|x| Vector3::from(*x))
        .sum::<Vector3<f64>>()
        / n;
    let spread: Matrix3<f64> = places
        .iter()
        .map(|x| Vector3::from(*x) - center)
        .map(|d| d * d.transpose())
        .sum();
    let mut extents: Vec<f64> = spread.symmetric_eigenvalues().iter().copied().collect();
    extents.sort_by(f64::total_cmp);
    extents[1] > LEAST_WIDTH.powi(2) * extents[2]
}

/// Collective. Sizes and places of the parts, with the supports of each in its frame.
fn describe_parts(comm: &Comm, model: &Model, of_node: &[Vec<u32>]) -> Vec<BodySums> {
    let mut parts: BTreeMap<u64, BodySums> = BTreeMap::new();
    for (node, list) in of_node.iter().enumerate() {
        for &part in list {
            let sums = parts.entry(u64::from(part)).or_insert_with(BodySums::empty);
            sums.add_node(&model.mesh, node);
        }
    }
    let mut parts = merge_over_ranks(comm, parts);
    let mut grams: BTreeMap<u64, BodySums> = BTreeMap::new();
    for &(dof, _) in &model.fixed {
        let (node, component) = (dof as usize / 3, dof as usize % 3);
        // A support of a shared node holds one part; the others go along.
        if let Some(&part) = of_node.get(node).and_then(|list| list.first()) {
            let part = u64::from(part);
            let row = rigid_motion_row(parts[&part].in_frame(model.mesh.coords[node]), component);
            grams.entry(part).or_insert_with(BodySums::empty).gram += row * row.transpose();
        }
    }
    for (part, sums) in merge_over_ranks(comm, grams) {
        if let Some(known) = parts.get_mut(&part) {
            known.gram = sums.gram;
        }
    }
    parts.into_values().collect()
}

/// The parts that move in the null space of supports and joints.
fn free_motions(parts: &[BodySums], joints: &[Joint]) -> Vec<FreeBody> {
    let n = 6 * parts.len();
    let mut gram = DMatrix::<f64>::zeros(n, n);
    for (k, part) in parts.iter().enumerate() {
        gram.fixed_view_mut::<6, 6>(6 * k, 6 * k)
            .copy_from(&part.gram);
    }
    for joint in joints {
        let [a, b] = joint.pieces.map(|piece| piece as usize);
        for component in 0..3 {
            let [in_a, in_b] =
                [a, b].map(|k| rigid_motion_row(parts[k].in_frame(joint.x), component));
            let mut add = |i: usize, j: usize, block: nalgebra::Matrix6<f64>| {
                let mut view = gram.fixed_view_mut::<6, 6>(6 * i, 6 * j);
                view += block;
            };
            add(a, a, in_a * in_a.transpose());
            add(b, b, in_b * in_b.transpose());
            add(a, b, -in_a * in_b.transpose());
            add(b, a, -in_b * in_a.transpose());
        }
    }
    let eigen = gram.symmetric_eigen();
    let largest = eigen.eigenvalues.max();
    let null: Vec<usize> = (0..n)
        .filter(|&i| eigen.eigenvalues[i] <= NULL_TOLERANCE * largest)
        .collect();
    let moving = parts.iter().enumerate().filter_map(|(k, part)| {
        let motions = null
            .iter()
            .map(|&i| eigen.eigenvectors.fixed_view::<6, 1>(6 * k, i));
        let basis = orthonormal(motions.map(|motion| motion.into_owned()));
        (!basis.is_empty()).then(|| part.with_motions(name_motions(&basis)))
    });
    moving.collect()
}

/// An orthonormal basis of what some motions span.
pub(crate) fn orthonormal(motions: impl Iterator<Item = Vector6<f64>>) -> Vec<Vector6<f64>> {
    let mut basis: Vec<Vector6<f64>> = Vec::new();
    for mut motion in motions {
        // Twice is enough.
        for _ in 0..2 {
            for known in &basis {
                motion -= known * known.dot(&motion);
            }
        }
        if motion.norm() > STANDS_STILL {
            basis.push(motion.normalize());
        }
    }
    basis
}

#[cfg(test)]
mod tests {
    use super::loose_parts;
    use crate::assembly::test_models::{model, split};
    use crate::restraint::free_bodies;
    use fem_mesh::comm::run_threads;
    use fem_mesh::{CellType, Halo, Mesh};
    use std::sync::Mutex;

    /// Rows of four unit hexahedra along x from each of `corners`; nodes at one place are one.
    fn rows(corners: &[[f64; 3]]) -> Mesh {
        let mut mesh = Mesh::default();
        for corner in corners {
            for i in 0..4 {
                let at = |d: [f64; 3]| [0, 1, 2].map(|k| corner[k] + d[k]);
                let x = f64::from(i);
                let nodes = [[0., 0.], [1., 0.], [1., 1.], [0., 1.]]
                    .map(|[dx, dy]| [dx + x, dy])
                    .map(|[dx, dy]| [at([dx, dy, 0.0]), at([dx, dy, 1.0])]);
                let nodes = [0, 1].map(|top| {
                    nodes.map(|pair| {
                        let known = mesh.coords.iter().position(|y| *y == pair[top]);
                        known.unwrap_or_else(|| {
                            mesh.coords.push(pair[top]);
                            mesh.coords.len() - 1
                        }) as u32
                    })
                });
                mesh.cells.push(CellType::Hex8, nodes.as_flattened());
            }
        }
        mesh.node_ids = (1..=mesh.n_nodes() as u64).collect();
        mesh.cell_ids = (1..=mesh.n_cells() as u64).collect();
        mesh
    }

    /// Names of the free motions of the parts of a mesh that is clamped where `is_fixed` says, on 1 to 4 ranks.
    fn motions(mesh: &Mesh, is_fixed: fn([f64; 3]) -> bool) -> Vec<(u64, Vec<String>)> {
        let found = Mutex::new(Vec::new());
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let mut model = model(split(comm, mesh));
                let fixed = (0..model.mesh.nodes.n_local())
                    .filter(|&node| is_fixed(model.mesh.coords[node]))
                    .flat_map(|node| (0..3).map(move |c| ((3 * node + c) as u32, 0.0)));
                model.fixed = fixed.collect();
                let halo = Halo::new(comm, &model.mesh.nodes);
                assert_eq!(free_bodies(comm, &model, &halo), []);
                let loose = loose_parts(comm, &model).into_iter();
                let names: Vec<_> = loose.map(|part| (part.n_nodes, part.motions)).collect();
                found.lock().expect("no rank panicked").push(names);
            });
        }
        let found = found.into_inner().expect("no rank panicked");
        assert!(found.iter().all(|names| *names == found[0]), "{found:?}");
        found[0].clone()
    }

    fn named(n_nodes: u64, names: &[&str]) -> (u64, Vec<String>) {
        (
            n_nodes,
            names.iter().map(|name| (*name).to_owned()).collect(),
        )
    }

    #[test]
    fn a_hinge_lets_a_part_turn_about_it() {
        let hinge = rows(&[[0.0; 3], [0.0, 1.0, 1.0]]);
        let below = |x: [f64; 3]| x[2] == 0.0;
        assert_eq!(motions(&hinge, below), [named(20, &["rotation about x"])]);
        // Held at an edge on the other side, it cannot turn.
        let both = |x: [f64; 3]| x[2] == 0.0 || (x[1], x[2]) == (2.0, 2.0);
        assert_eq!(motions(&hinge, both), []);
    }

    #[test]
    fn a_point_lets_a_part_turn_in_three_ways() {
        let point = rows(&[[0.0; 3], [4.0, 1.0, 1.0]]);
        let below = |x: [f64; 3]| x[2] == 0.0;
        let three = ["rotation about x", "rotation about y", "rotation about z"];
        assert_eq!(motions(&point, below), [named(20, &three)]);
    }

    #[test]
    fn a_chain_of_hinges_moves_part_by_part_and_a_closed_one_does_not() {
        let below = |x: [f64; 3]| x[2] == 0.0;
        let chain = rows(&[[0.0; 3], [0.0, 1.0, 1.0], [0.0, 2.0, 2.0]]);
        let found = motions(&chain, below);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[1].1.contains(&"rotation about x".to_owned()),
            "{found:?}"
        );
        // No two parts are joined rigidly, but all three are: a lintel on two walls.
        let lintel = rows(&[[0.0; 3], [0.0, 1.0, 1.0], [0.0, 2.0, 0.0]]);
        assert_eq!(motions(&lintel, below), []);
    }

    #[test]
    fn one_piece_has_no_joints() {
        let block = rows(&[[0.0; 3], [0.0, 1.0, 0.0]]);
        assert_eq!(motions(&block, |x| x[2] == 0.0), []);
    }
}
