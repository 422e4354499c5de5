//! Constraints that join degrees of freedom: equations, couplings, rigid bodies, ties, cyclic symmetry, local systems.
//!
//! Whatever the user writes becomes [`Equation`]s over global degrees of freedom (3 * global node + component), which any
//! ranks may own. [`reduce::reduce`] solves them for one degree of freedom each, so that what is left are [`Row`]s:
//! "dependent = sum of coefficient * independent + constant". `assembly::elimination` then takes the dependent ones out of
//! the linear system.
//!
//! Every rank holds all equations: their number goes with the size of the joined surfaces, not of the model.
//!
//! The three rotations of a reference node are the "displacements" of a node of their own, its *rotation node*, which no
//! element has.
//!
//! Invariant: knows geometry and degrees of freedom; no stiffness, and no matrix.

mod build;
mod coupling;
mod equations;
mod frames;
mod gather;
mod joined;
mod project;
pub mod reduce;
#[cfg(test)]
mod test_couplings;
#[cfg(test)]
mod test_links;
mod tie;

pub use build::{Preparation, build, prepare};
pub use frames::{Frame, frames_of_nodes};
pub use joined::free_groups;
pub use reduce::{Reduced, reduce};

use std::collections::BTreeMap;

/// Number of the rotation node of node n: this plus n. No input has numbers as large.
pub const ROTATION_ID: u64 = 1 << 62;

/// `sum of coefficient * displacement = constant`.
#[derive(Clone, Debug, PartialEq)]
pub struct Equation {
    /// Global degree of freedom and coefficient. The first is the one to eliminate, where it can be.
    pub terms: Vec<(u64, f64)>,
    /// The right-hand side.
    pub constant: f64,
    /// What it stems from: index into a list of descriptions that the maker keeps.
    pub origin: u32,
}

/// `dependent = sum of coefficient * independent + constant`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Global independent degrees of freedom, ascending, with their coefficients.
    pub terms: Vec<(u64, f64)>,
    /// The constant.
    pub constant: f64,
}

impl Row {
    /// Whether only degrees of freedom of the node of `dependent` take part: the ground holds it, as a support does.
    pub fn is_support(&self, dependent: u64) -> bool {
        self.terms.iter().all(|(dof, _)| dof / 3 == dependent / 3)
    }
}

/// All constraints of a model that join degrees of freedom, the same on every rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Links {
    /// By dependent degree of freedom; no row names a dependent one.
    pub rows: BTreeMap<u64, Row>,
    /// The equations that the rows stem from.
    pub equations: Vec<Equation>,
    /// Global numbers of the rotation nodes, ascending.
    pub rotations: Vec<u64>,
}

impl Links {
    /// Whether there is nothing to eliminate and no rotation.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.rotations.is_empty()
    }

    /// Whether the displacements of global node `node` are rotations.
    pub fn is_rotation(&self, node: u64) -> bool {
        self.rotations.binary_search(&node).is_ok()
    }
}

/// A node in the words of the user: "node 7", "the rotation of node 7".
pub fn name_node(id: u64) -> String {
    match id.checked_sub(ROTATION_ID) {
        Some(reference) => format!("the rotation of node {reference}"),
        None => format!("node {id}"),
    }
}
