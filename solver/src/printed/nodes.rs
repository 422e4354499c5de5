//! Printed values at nodes: displacements, forces, temperatures.
//!
//! Invariant: owned nodes only; turns vectors into local systems, computes nothing else.

use super::{Sent, Titles, gathered};
use crate::analysis::linear_static::Solution;
use crate::links::{Frame, frames_of_nodes};
use crate::model::Model;
use crate::post::internal_force;
use crate::resolve::Names;
use fem_io::case::{Case, PrintQuantity, PrintRequest};
use fem_io::check::SetUse;
use fem_io::printed::Table;
use fem_mesh::{Comm, Result};
use std::collections::BTreeMap;

/// What all tables of nodes are made from.
pub(super) struct NodePrinter<'a> {
    names: &'a Names<'a>,
    model: &'a Model,
    solution: &'a Solution,
    frames: BTreeMap<u32, Frame>,
}

impl<'a> NodePrinter<'a> {
    /// Collective.
    pub(super) fn new(
        comm: &Comm,
        case: &Case,
        names: &'a Names<'a>,
        model: &'a Model,
        solution: &'a Solution,
    ) -> Result<Self> {
        Ok(NodePrinter {
            names,
            model,
            solution,
            frames: comm.all_ok(frames_of_nodes(case, names))?,
        })
    }

    /// Collective.
    pub(super) fn tables(
        &self,
        comm: &Comm,
        request: &PrintRequest,
        quantity: PrintQuantity,
    ) -> Vec<Table> {
        let set = std::slice::from_ref(&request.set);
        let mesh = &self.model.mesh;
        let is_printed = |node: &u32| {
            (*node as usize) < mesh.nodes.n_owned()
                && !(self.model.links).is_rotation(mesh.nodes.global(*node as usize))
        };
        let nodes = self.names.nodes(set, SetUse::PrintNodes);
        let nodes = nodes.into_iter().filter(is_printed);
        let id = |node: u32| mesh.node_ids[node as usize];
        let turned = |node: u32, values: &[f64]| {
            let at = 3 * node as usize;
            let v = [values[at], values[at + 1], values[at + 2]];
            match self.frames.get(&node).filter(|_| !request.global) {
                Some(axes) => axes.map(|e| e[0] * v[0] + e[1] * v[1] + e[2] * v[2]),
                None => v,
            }
        };
        let (titles, rows): (Titles, Vec<Sent>) = match quantity {
            PrintQuantity::Rf => {
                let force = internal_force(self.model, &self.solution.displacement);
                (
                    vector("forces (fx,fy,fz)", Some("total force (fx,fy,fz)")),
                    nodes
                        .map(|n| Sent::new(id(n), 0, turned(n, &force)))
                        .collect(),
                )
            }
            PrintQuantity::Nt => {
                let temperature = |node: u32| self.temperature(node as usize);
                let titles = Titles {
                    rows: "temperatures",
                    total: None,
                    n_values: 1,
                };
                let rows = nodes.map(|n| Sent::new(id(n), 0, [temperature(n)]));
                (titles, rows.collect())
            }
            _ => {
                let u = &self.solution.displacement;
                (
                    vector("displacements (vx,vy,vz)", None),
                    nodes.map(|n| Sent::new(id(n), 0, turned(n, u))).collect(),
                )
            }
        };
        gathered(comm, &titles, &request.set, request.totals, &rows)
    }

    /// Temperature of a node; 0 where the case says nothing of it.
    fn temperature(&self, node: usize) -> f64 {
        let Some(temperatures) = &self.model.temperatures else {
            return 0.0;
        };
        let given = [&temperatures.current, &temperatures.initial];
        let known = given.iter().map(|values| values[node]);
        known.into_iter().find(|t| !t.is_nan()).unwrap_or(0.0)
    }
}

fn vector(rows: &'static str, total: Option<&'static str>) -> Titles {
    Titles {
        rows,
        total,
        n_values: 3,
    }
}
