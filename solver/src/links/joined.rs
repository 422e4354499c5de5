//! Bodies that equations join: the rigid motions that neither supports nor equations hold.
//!
//! Every body is taken as rigid and moves in six ways, every node of no element in three. Supports and equations are
//! conditions on these motions; what is left in their null space can move.
//!
//! Invariant: looks at coordinates, fixed degrees of freedom and equations only, never at stiffness.

use crate::joints::orthonormal;
use crate::model::Model;
use crate::restraint::{
    BodySums, FreeBody, NULL_TOLERANCE, merge_over_ranks, name_motions, rigid_motion_row,
};
use fem_mesh::{Comm, Halo, components};
use nalgebra::{DMatrix, Vector6};
use std::collections::{BTreeMap, BTreeSet};

/// Most motions that are looked at: their conditions are a dense matrix.
const MAX_MOTIONS: usize = 600;

/// A body or a free node, and where its motions stand in the matrix.
struct Mover {
    sums: BodySums,
    first: usize,
    /// 6, or 3 for a free node.
    n_motions: usize,
}

/// Collective. As [`crate::restraint::free_bodies`] for a model with links; models of very many bodies are not looked at.
pub fn free_groups(comm: &Comm, model: &Model, halo: &Halo) -> Vec<FreeBody> {
    let mesh = &model.mesh;
    let labels = components::label_bodies(comm, mesh, halo);
    let n_owned = mesh.nodes.n_owned();
    let mut bodies: BTreeMap<u64, BodySums> = BTreeMap::new();
    for node in 0..n_owned {
        bodies
            .entry(labels[node])
            .or_insert_with(BodySums::empty)
            .add_node(mesh, node);
    }
    let mut movers: BTreeMap<u64, Mover> = BTreeMap::new();
    let mut n = 0;
    for (label, sums) in merge_over_ranks(comm, bodies) {
        let n_motions = if sums.is_node() { 3 } else { 6 };
        movers.insert(
            label,
            Mover {
                sums,
                first: n,
                n_motions,
            },
        );
        n += n_motions;
    }
    if n > MAX_MOTIONS {
        return Vec::new();
    }
    let mut gram = DMatrix::<f64>::zeros(n, n);
    for &(dof, _) in model
        .fixed
        .iter()
        .filter(|(dof, _)| (*dof as usize) < 3 * n_owned)
    {
        let (node, component) = (dof as usize / 3, dof as usize % 3);
        let row = movers[&labels[node]].row(mesh.coords[node], component);
        add_condition(&mut gram, &row, 1.0);
    }
    comm.sum_into(gram.as_mut_slice());
    let size = movers
        .values()
        .map(|mover| mover.sums.size())
        .fold(0.0, f64::max);
    let places = places_of_terms(comm, model, &labels);
    for equation in &model.links.equations {
        let mut row: BTreeMap<usize, f64> = BTreeMap::new();
        for (dof, coefficient) in &equation.terms {
            let Some((label, x)) = places.get(&(dof / 3)) else {
                continue;
            };
            // Rotations in units of displacement: over the size of the largest body.
            let unit = if model.links.is_rotation(dof / 3) && size > 0.0 {
                1.0 / size
            } else {
                1.0
            };
            for (at, value) in movers[label].row(*x, (dof % 3) as usize) {
                *row.entry(at).or_default() += coefficient * unit * value;
            }
        }
        let norm: f64 = row.values().map(|v| v * v).sum();
        if norm > 0.0 {
            add_condition(&mut gram, &row.into_iter().collect::<Vec<_>>(), 1.0 / norm);
        }
    }
    let mut free = free_motions(&gram, movers.values());
    free.sort_by_key(|body| (std::cmp::Reverse(body.n_nodes), body.first_node_id));
    free
}

impl Mover {
    /// Displacement component at `x` by the motions: place in the matrix and value.
    fn row(&self, x: [f64; 3], component: usize) -> Vec<(usize, f64)> {
        let row = rigid_motion_row(self.sums.in_frame(x), component);
        let motions = 0..self.n_motions;
        motions
            .map(|k| (self.first + k, row[k]))
            .filter(|(_, v)| *v != 0.0)
            .collect()
    }
}

fn add_condition(gram: &mut DMatrix<f64>, row: &[(usize, f64)], factor: f64) {
    for (i, a) in row {
        for (j, b) in row {
            gram[(*i, *j)] += factor * a * b;
        }
    }
}

/// Collective. Body and place of every node that equations name, by global number.
fn places_of_terms(comm: &Comm, model: &Model, labels: &[u64]) -> BTreeMap<u64, (u64, [f64; 3])> {
    let terms = model
        .links
        .equations
        .iter()
        .flat_map(|equation| &equation.terms);
    let named: BTreeSet<u64> = terms.map(|(dof, _)| dof / 3).collect();
    let nodes = &model.mesh.nodes;
    let owned = named.iter().filter_map(|&global| {
        let local = nodes
            .local(global)
            .filter(|&local| local < nodes.n_owned())?;
        let [x, y, z] = model.mesh.coords[local].map(f64::to_bits);
        Some([global, labels[local], x, y, z])
    });
    let owned: Vec<[u64; 5]> = owned.collect();
    let all = comm.all_gather(&owned).concat();
    all.iter()
        .map(|&[global, label, x, y, z]| (global, (label, [x, y, z].map(f64::from_bits))))
        .collect()
}

fn free_motions<'a>(gram: &DMatrix<f64>, movers: impl Iterator<Item = &'a Mover>) -> Vec<FreeBody> {
    let eigen = gram.clone().symmetric_eigen();
    let largest = eigen.eigenvalues.max();
    let null: Vec<usize> = (0..gram.nrows())
        .filter(|&i| eigen.eigenvalues[i] <= NULL_TOLERANCE * largest || largest == 0.0)
        .collect();
    let moving = movers.filter_map(|mover| {
        let motions = null.iter().map(|&i| {
            let mut motion = Vector6::zeros();
            for k in 0..mover.n_motions {
                motion[k] = eigen.eigenvectors[(mover.first + k, i)];
            }
            motion
        });
        let basis = orthonormal(motions);
        (!basis.is_empty()).then(|| mover.sums.with_motions(name_motions(&basis)))
    });
    moving.collect()
}
