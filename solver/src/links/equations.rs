//! Equations as the user writes them, and multi-point constraints for small displacements.
//!
//! Invariant: geometry of the undeformed mesh only.

use super::Equation;
use super::build::Maker;
use super::frames::{across, local_terms};
use super::gather::{NodeBook, PlacedNode, fault};
use fem_io::case::{EquationInput, MpcInput, MpcKind, TermInput};
use fem_mesh::Result;
use nalgebra::Vector3;

/// Three nodes whose triangle is flatter than this span no plane, relative to their distances.
const FLAT: f64 = 1e-9;

impl Maker<'_> {
    /// The equations of one table: one for each node of its sets.
    pub(super) fn add_equations(&mut self, book: &NodeBook, input: &EquationInput) -> Result<()> {
        let origin = self.origin(input.place, "[[equation]]");
        let mut nodes = Vec::with_capacity(input.terms.len());
        for term in &input.terms {
            nodes.push(book.nodes(&term.node, term.place)?);
        }
        let n = nodes.iter().map(Vec::len).max().unwrap_or(0);
        if let Some((term, set)) = input
            .terms
            .iter()
            .zip(&nodes)
            .find(|(_, set)| set.len() != 1 && set.len() != n)
        {
            let what = format!(
                "the sets of an [[equation]] have {} and {n} nodes",
                set.len()
            );
            return Err(
                fault(self.case, term.place, what).expected("sets of one node or of equally many")
            );
        }
        for k in 0..n {
            let mut terms = Vec::with_capacity(input.terms.len());
            for (term, set) in input.terms.iter().zip(&nodes) {
                let node = if set.len() == 1 { set[0] } else { set[k] };
                terms.extend(self.term(term, node)?);
            }
            terms.retain(|(_, c)| *c != 0.0);
            self.equations.push(Equation {
                terms,
                constant: input.constant,
                origin,
            });
        }
        Ok(())
    }

    /// A term at one of its nodes, in global degrees of freedom.
    fn term(&self, term: &TermInput, node: PlacedNode) -> Result<Vec<(u64, f64)>> {
        let (global, component) = match term.component.checked_sub(3) {
            None => (node.global, term.component),
            Some(axis) => (self.rotation_of(&node, term.place)?, axis),
        };
        let frame = self.frame_of(global);
        let terms = local_terms(global, frame.as_ref(), component);
        Ok(terms
            .map(|(dof, cosine)| (dof, term.coefficient * cosine))
            .collect())
    }

    /// A plane, a line or a distance that nodes keep to. The exact conditions are linear in small displacements.
    pub(super) fn add_mpc(&mut self, book: &NodeBook, input: &MpcInput) -> Result<()> {
        let origin = self.origin(input.place, "[[mpc]]");
        let nodes: Vec<PlacedNode> = (input.nodes.iter())
            .map(|&id| book.by_number(id, input.place))
            .collect::<Result<_>>()?;
        let x: Vec<Vector3<f64>> = nodes.iter().map(|node| Vector3::from(node.x)).collect();
        let flat = |what: &str| fault(self.case, input.place, what.to_owned());
        match input.kind {
            MpcKind::Beam => {
                let along = x[0] - x[1];
                if along.norm() == 0.0 {
                    return Err(flat("the two nodes of a beam are at one place"));
                }
                self.along(
                    origin,
                    along.normalize(),
                    &[(nodes[0], 1.0), (nodes[1], -1.0)],
                );
            }
            MpcKind::Straight => {
                let line = x[1] - x[0];
                if line.norm() == 0.0 {
                    return Err(flat("the first two nodes of a line are at one place"));
                }
                let e1 = across(line.normalize());
                let e2 = line.normalize().cross(&e1);
                for (node, x_k) in nodes.iter().zip(&x).skip(2) {
                    let s = line.dot(&(x_k - x[0])) / line.norm_squared();
                    let weights = [(*node, 1.0), (nodes[0], s - 1.0), (nodes[1], -s)];
                    for e in [e1, e2] {
                        self.along(origin, e, &weights);
                    }
                }
            }
            MpcKind::Plane => {
                let (a, b) = (x[1] - x[0], x[2] - x[0]);
                let normal = a.cross(&b);
                if normal.norm() <= FLAT * a.norm() * b.norm() {
                    return Err(flat("the first three nodes of a plane are on one line"));
                }
                for (node, x_k) in nodes.iter().zip(&x).skip(3) {
                    let d = x_k - x[0];
                    let s = d.cross(&b).dot(&normal) / normal.norm_squared();
                    let t = a.cross(&d).dot(&normal) / normal.norm_squared();
                    let weights = [
                        (*node, 1.0),
                        (nodes[0], s + t - 1.0),
                        (nodes[1], -s),
                        (nodes[2], -t),
                    ];
                    self.along(origin, normal.normalize(), &weights);
                }
            }
        }
        Ok(())
    }

    /// The weighted sum of displacements along `direction` is zero.
    fn along(&mut self, origin: u32, direction: Vector3<f64>, weights: &[(PlacedNode, f64)]) {
        let mut order = [0, 1, 2];
        order.sort_by(|&i, &j| direction[j].abs().total_cmp(&direction[i].abs()));
        let terms = weights.iter().flat_map(|(node, weight)| {
            order.map(|i| (3 * node.global + i as u64, weight * direction[i]))
        });
        self.equations.push(Equation {
            terms: terms.filter(|(_, c)| *c != 0.0).collect(),
            constant: 0.0,
            origin,
        });
    }
}
