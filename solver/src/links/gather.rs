//! Nodes of sets and by number, told to all ranks: what constraints between any nodes are written with.
//!
//! Invariant: gathers as many nodes as constraints name, never the mesh.

use super::Equation;
use crate::resolve::Names;
use fem_io::case::{Case, NodeRef, Place};
use fem_io::check::SetUse;
use fem_mesh::{Comm, Error, LocalMesh, Result};
use std::collections::{BTreeMap, BTreeSet};

/// A node as every rank knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PlacedNode {
    /// Global number.
    pub(super) global: u64,
    /// Number in the input.
    pub(super) id: u64,
    /// Coordinates, m.
    pub(super) x: [f64; 3],
}

impl PlacedNode {
    fn of(mesh: &LocalMesh, node: usize) -> Self {
        PlacedNode {
            global: mesh.nodes.global(node),
            id: mesh.node_ids[node],
            x: mesh.coords[node],
        }
    }

    fn to_bits(self) -> [u64; 5] {
        let [x, y, z] = self.x.map(f64::to_bits);
        [self.global, self.id, x, y, z]
    }

    fn from_bits(&[global, id, x, y, z]: &[u64; 5]) -> Self {
        PlacedNode {
            global,
            id,
            x: [x, y, z].map(f64::from_bits),
        }
    }
}

/// Collective. The owned nodes among `local` of all ranks, ascending by their numbers in the input.
pub(super) fn gather_nodes(comm: &Comm, mesh: &LocalMesh, local: &[u32]) -> Vec<PlacedNode> {
    let owned = local
        .iter()
        .filter(|&&node| (node as usize) < mesh.nodes.n_owned());
    let mine: Vec<[u64; 5]> = owned
        .map(|&node| PlacedNode::of(mesh, node as usize).to_bits())
        .collect();
    let mut all: Vec<PlacedNode> = (comm.all_gather(&mine).iter().flatten())
        .map(PlacedNode::from_bits)
        .collect();
    all.sort_unstable_by_key(|node| node.id);
    all
}

/// Collective. The nodes with these numbers, by number; those that do not exist are missing.
pub(super) fn find_nodes(
    comm: &Comm,
    mesh: &LocalMesh,
    ids: &BTreeSet<u64>,
) -> BTreeMap<u64, PlacedNode> {
    if ids.is_empty() {
        return BTreeMap::new();
    }
    let owned = &mesh.node_ids[..mesh.nodes.n_owned()];
    let found: Vec<u32> = (owned.iter().zip(0..))
        .filter(|(id, _)| ids.contains(id))
        .map(|(_, node)| node)
        .collect();
    let found = gather_nodes(comm, mesh, &found).into_iter();
    found.map(|node| (node.id, node)).collect()
}

/// What single nodes of the case stand for.
pub(super) struct NodeBook<'a> {
    case: &'a Case,
    by_id: BTreeMap<u64, PlacedNode>,
    by_set: BTreeMap<String, Vec<PlacedNode>>,
}

impl<'a> NodeBook<'a> {
    /// Collective. Looks up every node that the tables of `case` refer to.
    pub(super) fn new(comm: &Comm, case: &'a Case, names: &Names) -> Self {
        let mut ids: BTreeSet<u64> = case
            .links
            .mpcs
            .iter()
            .flat_map(|m| &m.nodes)
            .copied()
            .collect();
        let mut sets = BTreeSet::new();
        for reference in case.links.references() {
            match reference {
                NodeRef::Number(id) => ids.insert(*id),
                NodeRef::Set(name) => sets.insert(name.clone()),
            };
        }
        let by_set = sets.into_iter().map(|name| {
            let local = names.nodes(std::slice::from_ref(&name), SetUse::Reference);
            let nodes = gather_nodes(comm, names.mesh, &local);
            (name, nodes)
        });
        NodeBook {
            case,
            by_set: by_set.collect(),
            by_id: find_nodes(comm, names.mesh, &ids),
        }
    }

    /// The node of this number.
    pub(super) fn by_number(&self, id: u64, place: Place) -> Result<PlacedNode> {
        self.by_id.get(&id).copied().ok_or_else(|| {
            let what = format!("there is no node {id}");
            self.case
                .error_at(place, what)
                .expected("a node of an element, or of a [[node]] table")
        })
    }

    /// All nodes that are meant, ascending by number.
    pub(super) fn nodes(&self, reference: &NodeRef, place: Place) -> Result<Vec<PlacedNode>> {
        match reference {
            NodeRef::Number(id) => Ok(vec![self.by_number(*id, place)?]),
            NodeRef::Set(name) => Ok(self.by_set.get(name).cloned().unwrap_or_default()),
        }
    }

    /// The one node that is meant.
    pub(super) fn node(&self, reference: &NodeRef, place: Place) -> Result<PlacedNode> {
        let nodes = self.nodes(reference, place)?;
        match (&nodes[..], reference) {
            ([node], _) => Ok(*node),
            (_, NodeRef::Number(id)) => self.by_number(*id, place),
            (_, NodeRef::Set(name)) => {
                let what = format!("\"{name}\" has {} nodes", nodes.len());
                Err(self
                    .case
                    .error_at(place, what)
                    .expected("a set of one node"))
            }
        }
    }
}

/// Collective. The equations of all ranks, in the order of ranks.
pub(super) fn gather_equations(comm: &Comm, mine: &[Equation]) -> Vec<Equation> {
    let mut bits = Vec::new();
    for equation in mine {
        bits.extend([
            u64::from(equation.origin),
            equation.constant.to_bits(),
            equation.terms.len() as u64,
        ]);
        bits.extend(
            equation
                .terms
                .iter()
                .flat_map(|&(dof, c)| [dof, c.to_bits()]),
        );
    }
    let mut all = Vec::new();
    for list in comm.all_gather(&bits) {
        let mut rest = &list[..];
        while let [origin, constant, n_terms, tail @ ..] = rest {
            let (terms, tail) = tail.split_at(2 * *n_terms as usize);
            let terms = terms.chunks_exact(2).map(|t| (t[0], f64::from_bits(t[1])));
            all.push(Equation {
                terms: terms.collect(),
                constant: f64::from_bits(*constant),
                origin: *origin as u32,
            });
            rest = tail;
        }
    }
    all
}

/// Collective. Number in the input of a global node.
pub(super) fn id_of(comm: &Comm, mesh: &LocalMesh, global: u64) -> u64 {
    let local = mesh
        .nodes
        .local(global)
        .filter(|&n| n < mesh.nodes.n_owned());
    comm.sum_u64(local.map_or(0, |n| mesh.node_ids[n]))
}

/// An error about a table of the case.
pub(super) fn fault(case: &Case, place: Place, what: impl Into<String>) -> Error {
    case.error_at(place, what)
}
