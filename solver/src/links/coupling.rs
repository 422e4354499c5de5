//! Kinematic and distributing couplings, and rigid bodies, for small rotations.
//!
//! Kinematic: a node at arm r from the reference moves by u_ref + theta x r. Distributing: the reference moves as the
//! rigid motion that fits the surface best in the mean square over its area, which spreads a force over the surface as
//! a constant traction and a moment about its center as a traction that grows linearly: both exactly equivalent.
//!
//! Invariant: geometry only.

use super::Equation;
use super::build::{Maker, Reference};
use super::frames::frame;
use super::gather::{PlacedNode, fault, gather_nodes};
use crate::element::geometry::{area_normal, dot};
use crate::element::{MAX_NODES, Purpose, Tabulation};
use crate::resolve::Names;
use fem_io::case::{CouplingInput, SystemInput};
use fem_io::check::{SetKind, SetUse};
use fem_mesh::{CellFace, Comm, LocalMesh, Result};
use nalgebra::{Matrix3, Vector3};
use std::collections::BTreeMap;

/// Second moments below this share of the largest resist no moment.
const NO_ARM: f64 = 1e-12;

/// The degrees of freedom of theta x r, component i: (axis of rotation, arm).
fn rotation_terms(i: usize, r: [f64; 3]) -> [(usize, f64); 2] {
    let (j, k) = ((i + 1) % 3, (i + 2) % 3);
    [(j, r[k]), (k, -r[j])]
}

impl Maker<'_> {
    /// Nodes that move with a reference node in some components, of global or local axes.
    pub(super) fn add_rigid(
        &mut self,
        origin: u32,
        nodes: &[PlacedNode],
        reference: &Reference,
        components: [bool; 3],
        system: Option<&SystemInput>,
    ) {
        // All three components are the same in any axes.
        let system = system.filter(|_| components != [true; 3]);
        let is_reference = |node: &&PlacedNode| {
            node.global == reference.node.global || node.global == reference.rotation
        };
        for node in nodes.iter().filter(|node| !is_reference(node)) {
            let axes = system.map_or(IDENTITY, |system| frame(system, node.x));
            let r = [0, 1, 2].map(|i| node.x[i] - reference.node.x[i]);
            for axis in (0..3).filter(|&k| components[k]).map(|k| axes[k]) {
                let mut order = [0, 1, 2];
                order.sort_by(|&i, &j| axis[j].abs().total_cmp(&axis[i].abs()));
                let mut terms: Vec<(u64, f64)> = order
                    .map(|i| (3 * node.global + i as u64, axis[i]))
                    .to_vec();
                for i in 0..3 {
                    terms.push((3 * reference.node.global + i as u64, -axis[i]));
                    let arms = rotation_terms(i, r);
                    terms.extend(
                        arms.map(|(a, arm)| (3 * reference.rotation + a as u64, -axis[i] * arm)),
                    );
                }
                terms.retain(|(_, c)| *c != 0.0);
                self.equations.push(Equation {
                    terms,
                    constant: 0.0,
                    origin,
                });
            }
        }
    }

    /// Collective. A reference node that moves with the mean of a surface or of nodes.
    ///
    /// # Errors
    /// Faces and nodes at once.
    pub(super) fn add_distributing(
        &mut self,
        comm: &Comm,
        names: &Names,
        input: &CouplingInput,
        reference: &Reference,
    ) -> Result<()> {
        let origin = self.origin(input.place, "distributing [[coupling]]");
        let kinds = names.kinds(&input.on, SetUse::Constraint);
        if kinds.len() > 1 && kinds.contains(&SetKind::Face) {
            let what = "a distributing [[coupling]] acts on faces and on nodes at once, which leaves their shares open";
            return Err(fault(self.case, input.place, what).expected("face sets only, or none"));
        }
        let faces = names.faces(&input.on, SetUse::Constraint);
        let spread = if kinds.contains(&SetKind::Face) {
            Spread::of_faces(comm, names.mesh, &faces, reference.node.x)
        } else {
            let local = names.nodes(&input.on, SetUse::Constraint);
            Spread::of_nodes(&gather_nodes(comm, names.mesh, &local), reference)
        };
        let center = spread.first / spread.area;
        let about_center = spread.second - center * center.transpose() * spread.area;
        let inertia = Matrix3::identity() * about_center.trace() - about_center;
        let eigen = inertia.symmetric_eigen();
        let largest = eigen.eigenvalues.max();
        let mut inverse = Matrix3::zeros();
        for (value, axis) in eigen
            .eigenvalues
            .iter()
            .zip(eigen.eigenvectors.column_iter())
        {
            if *value > NO_ARM * largest {
                inverse += axis * axis.transpose() / *value;
            } else {
                self.warnings.push(
                    "the nodes of a distributing [[coupling]] lie on one line: it carries no moment about that line"
                        .to_owned(),
                );
            }
        }
        for i in 0..3 {
            let mut terms = vec![(3 * reference.node.global + i as u64, 1.0)];
            let weights = spread.of_node.iter();
            terms.extend(weights.map(|(node, (w, _))| (3 * node + i as u64, -w / spread.area)));
            // u_ref = mean + theta x (x_ref - center), with places counted from x_ref.
            let arms = rotation_terms(i, center.into());
            terms.extend(arms.map(|(a, arm)| (3 * reference.rotation + a as u64, arm)));
            terms.retain(|(_, c)| *c != 0.0);
            self.equations.push(Equation {
                terms,
                constant: 0.0,
                origin,
            });
        }
        for a in 0..3 {
            let mut terms = vec![(3 * reference.rotation + a as u64, 1.0)];
            for (node, (w, s)) in &spread.of_node {
                let s = s - center * *w;
                // Row a of -inverse * [s]_x.
                let row = inverse.row(a) * -s.cross_matrix();
                terms.extend((0..3).map(|i| (3 * node + i as u64, row[i])));
            }
            terms.retain(|(_, c)| *c != 0.0);
            self.equations.push(Equation {
                terms,
                constant: 0.0,
                origin,
            });
        }
        Ok(())
    }
}

const IDENTITY: [[f64; 3]; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

/// Integrals of shape functions over a surface, with places r counted from the reference node.
#[derive(Default)]
struct Spread {
    /// Of N and N r, by global node.
    of_node: BTreeMap<u64, (f64, Vector3<f64>)>,
    /// Of 1, r and r r^T.
    area: f64,
    first: Vector3<f64>,
    second: Matrix3<f64>,
}

impl Spread {
    /// Equal weights at nodes.
    fn of_nodes(nodes: &[PlacedNode], reference: &Reference) -> Self {
        let mut spread = Spread::default();
        for node in nodes
            .iter()
            .filter(|node| node.global != reference.node.global)
        {
            let r = Vector3::from(node.x) - Vector3::from(reference.node.x);
            spread.of_node.insert(node.global, (1.0, r));
            spread.area += 1.0;
            spread.first += r;
            spread.second += r * r.transpose();
        }
        spread
    }

    /// Collective. Over the owned ones of `faces` of all ranks.
    fn of_faces(comm: &Comm, mesh: &LocalMesh, faces: &[CellFace], origin: [f64; 3]) -> Self {
        let mut mine = Spread::default();
        for &face in faces
            .iter()
            .filter(|face| (face.cell as usize) < mesh.n_owned_cells)
        {
            mine.add_face(mesh, face, origin);
        }
        let records: Vec<[f64; 5]> = (mine.of_node.iter())
            .map(|(&node, (w, s))| [f64::from_bits(node), *w, s[0], s[1], s[2]])
            .collect();
        let mut totals = [0.0; 13];
        totals[0] = mine.area;
        totals[1..4].copy_from_slice(mine.first.as_slice());
        totals[4..].copy_from_slice(mine.second.as_slice());
        comm.sum_into(&mut totals);
        let mut all = Spread {
            area: totals[0],
            first: Vector3::from_column_slice(&totals[1..4]),
            second: Matrix3::from_column_slice(&totals[4..]),
            ..Spread::default()
        };
        for [node, w, x, y, z] in comm.all_gather(&records).concat() {
            let (sum, moment) = all.of_node.entry(node.to_bits()).or_default();
            *sum += w;
            *moment += Vector3::new(x, y, z);
        }
        all
    }

    fn add_face(&mut self, mesh: &LocalMesh, face: CellFace, origin: [f64; 3]) {
        let (cell_type, nodes) = mesh.cells.nodes_of_face(face);
        let table = Tabulation::of(cell_type, Purpose::Load);
        let nodes: Vec<u32> = nodes.collect();
        let mut coords = [[0.0; 3]; MAX_NODES];
        for (slot, &node) in coords.iter_mut().zip(&nodes) {
            *slot = [0, 1, 2].map(|i| mesh.coords[node as usize][i] - origin[i]);
        }
        let coords = &coords[..nodes.len()];
        for (q, point) in table.points.iter().enumerate() {
            let normal = area_normal(coords, table.grad(q));
            let area = point.weight * dot(normal, normal).sqrt();
            let shape = table.shape(q);
            let r: Vector3<f64> = (coords.iter().zip(shape))
                .map(|(x, n)| Vector3::from(*x) * *n)
                .sum();
            self.area += area;
            self.first += r * area;
            self.second += r * r.transpose() * area;
            for (&node, n) in nodes.iter().zip(shape) {
                let global = mesh.nodes.global(node as usize);
                let (w, s) = self.of_node.entry(global).or_default();
                *w += area * n;
                *s += r * (area * n);
            }
        }
    }
}
