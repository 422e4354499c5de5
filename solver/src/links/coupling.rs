//! Kinematic and distributing couplings, and rigid bodies, for small rotations.
//!
//! Kinematic: a node at arm r from the reference moves by u_ref + theta x r. Distributing: nodes have weights, on faces
//! the integrals of their shape functions, and the reference moves as the rigid motion that fits theirs best in the
//! weighted mean square. A force so becomes a constant traction, a moment about the center of the nodes forces in
//! proportion to weight and arm: both exactly equivalent, and the forces of CalculiX.
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

/// Weights of nodes with places r counted from the reference node.
#[derive(Default)]
struct Spread {
    /// Weight w and w r of each node, by global number.
    of_node: BTreeMap<u64, (f64, Vector3<f64>)>,
    /// Sums of w, w r and w r r^T.
    area: f64,
    first: Vector3<f64>,
    second: Matrix3<f64>,
}

impl Spread {
    /// From global nodes, weights and places.
    fn new(nodes: impl Iterator<Item = (u64, f64, Vector3<f64>)>) -> Self {
        let mut spread = Spread::default();
        for (node, w, r) in nodes {
            spread.of_node.insert(node, (w, r * w));
            spread.area += w;
            spread.first += r * w;
            spread.second += r * r.transpose() * w;
        }
        spread
    }

    /// Equal weights at nodes.
    fn of_nodes(nodes: &[PlacedNode], reference: &Reference) -> Self {
        let others = nodes
            .iter()
            .filter(|node| node.global != reference.node.global);
        Self::new(others.map(|node| {
            let r = Vector3::from(node.x) - Vector3::from(reference.node.x);
            (node.global, 1.0, r)
        }))
    }

    /// Collective. Integrals of the shape functions over the owned ones of `faces` of all ranks.
    fn of_faces(comm: &Comm, mesh: &LocalMesh, faces: &[CellFace], origin: [f64; 3]) -> Self {
        let mut mine: BTreeMap<u32, f64> = BTreeMap::new();
        for &face in faces
            .iter()
            .filter(|face| (face.cell as usize) < mesh.n_owned_cells)
        {
            add_face(mesh, face, &mut mine);
        }
        let record = |(&node, &weight): (&u32, &f64)| {
            let x = mesh.coords[node as usize];
            let [x, y, z] = [0, 1, 2].map(|i| (x[i] - origin[i]).to_bits());
            [mesh.nodes.global(node as usize), weight.to_bits(), x, y, z]
        };
        let records: Vec<[u64; 5]> = mine.iter().map(record).collect();
        let mut all: BTreeMap<u64, (f64, [f64; 3])> = BTreeMap::new();
        for [node, weight, x, y, z] in comm.all_gather(&records).concat() {
            let r = [x, y, z].map(f64::from_bits);
            all.entry(node).or_insert((0.0, r)).0 += f64::from_bits(weight);
        }
        Self::new(all.into_iter().map(|(node, (w, r))| (node, w, r.into())))
    }
}

/// Adds the integrals of the shape functions of a face to the weights of its local nodes.
fn add_face(mesh: &LocalMesh, face: CellFace, weights: &mut BTreeMap<u32, f64>) {
    let (cell_type, nodes) = mesh.cells.nodes_of_face(face);
    let table = Tabulation::of(cell_type, Purpose::Load);
    let nodes: Vec<u32> = nodes.collect();
    let mut coords = [[0.0; 3]; MAX_NODES];
    for (slot, &node) in coords.iter_mut().zip(&nodes) {
        *slot = mesh.coords[node as usize];
    }
    for (q, point) in table.points.iter().enumerate() {
        let normal = area_normal(&coords[..nodes.len()], table.grad(q));
        let area = point.weight * dot(normal, normal).sqrt();
        for (&node, n) in nodes.iter().zip(table.shape(q)) {
            *weights.entry(node).or_default() += area * n;
        }
    }
}
