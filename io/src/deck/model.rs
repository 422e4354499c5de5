//! What a deck says, as plain data: its cards put together, names looked up, sets by name.
//!
//! Invariant: knows neither the syntax of decks nor that of cases; numbers and names are those of the deck.

use crate::mesh_file::draft::Place;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

/// A deck.
#[derive(Debug, Default)]
pub(super) struct DeckModel {
    pub(super) title: String,
    pub(super) materials: Vec<Material>,
    pub(super) sections: Vec<Section>,
    pub(super) orientations: Vec<Orientation>,
    pub(super) distributions: Vec<Distribution>,
    /// In the order of the deck: of several for one node the last counts.
    pub(super) initial_temperatures: Vec<Temperature>,
    pub(super) initial_tensors: Vec<InitialTensor>,
    pub(super) transforms: Vec<Transform>,
    pub(super) joins: Vec<Join>,
    pub(super) steps: Vec<Step>,
}

/// Constants at a temperature; without one they hold at every temperature.
pub(super) type Row = (Option<f64>, Vec<f64>);

/// How elastic constants are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElasticKind {
    /// E, nu.
    Isotropic,
    /// E1, E2, E3, nu12, nu13, nu23, G12, G13, G23.
    Engineering,
    /// 9 or 21 terms of the stiffness.
    Stiffness,
}

#[derive(Debug)]
pub(super) struct Material {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) elastic: Option<(ElasticKind, Vec<Row>)>,
    pub(super) density: Option<f64>,
    /// 1, 3 or 6 coefficients: all directions; 11 22 33; 11 22 33 12 13 23.
    pub(super) expansion: Vec<Row>,
    pub(super) expansion_zero: f64,
}

/// *SOLID SECTION.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) elements: String,
    pub(super) material: String,
    pub(super) orientation: Option<String>,
    pub(super) place: Place,
}

/// *ORIENTATION.
#[derive(Debug)]
pub(super) struct Orientation {
    pub(super) name: String,
    pub(super) is_cylindrical: bool,
    /// Points a and b: those of all elements first, then those of elements with others, as a *DISTRIBUTION gives them.
    pub(super) points: [[f64; 3]; 2],
    pub(super) others: Vec<(Elements, [[f64; 3]; 2])>,
    /// Axis 1 to 3 and angle in degrees.
    pub(super) rotation: Option<(u64, f64)>,
    pub(super) place: Place,
}

/// *DISTRIBUTION of the points of orientations.
#[derive(Debug)]
pub(super) struct Distribution {
    pub(super) name: String,
    pub(super) points: [[f64; 3]; 2],
    pub(super) others: Vec<(Elements, [[f64; 3]; 2])>,
}

/// A node by number, or a node set by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Nodes {
    Number(u64),
    Set(String),
}

/// An element by number, or an element set by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Elements {
    Number(u64),
    Set(String),
}

/// Faces: a surface by name, or one face of elements, from 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Faces {
    Surface(String),
    Of(Elements, u8),
}

#[derive(Clone, Debug)]
pub(super) struct Temperature {
    pub(super) nodes: Nodes,
    pub(super) value: f64,
    pub(super) place: Place,
}

/// Stress or strain before loading, xx yy zz xy xz yz, strains as of the tensor.
#[derive(Debug)]
pub(super) struct InitialTensor {
    pub(super) is_strain: bool,
    pub(super) element: u64,
    pub(super) point: u64,
    pub(super) value: [f64; 6],
    pub(super) place: Place,
}

/// *TRANSFORM.
#[derive(Debug)]
pub(super) struct Transform {
    pub(super) nodes: String,
    pub(super) is_cylindrical: bool,
    pub(super) a: [f64; 3],
    pub(super) b: [f64; 3],
    pub(super) place: Place,
}

/// What joins nodes.
#[derive(Debug)]
pub(super) struct Join {
    pub(super) kind: JoinKind,
    pub(super) place: Place,
}

#[derive(Debug)]
pub(super) enum JoinKind {
    /// Sum of coefficient times displacement is 0; degrees of freedom from 1.
    Equation(Vec<(Nodes, u64, f64)>),
    /// Type in capitals, and its nodes.
    Mpc(String, Vec<Nodes>),
    Coupling(Coupling),
    RigidBody {
        nodes: RigidNodes,
        reference: u64,
        rotation: Option<u64>,
    },
    Tie(Tie),
    Cyclic {
        slave: Surface,
        master: Surface,
        tolerance: Option<f64>,
        n_sectors: u64,
        axis: [[f64; 3]; 2],
    },
    PreTension {
        surface: String,
        node: u64,
        normal: [f64; 3],
    },
}

/// What a rigid body is made of.
#[derive(Debug)]
pub(super) enum RigidNodes {
    NodeSet(String),
    ElementSet(String),
}

/// *COUPLING with *KINEMATIC or *DISTRIBUTING.
#[derive(Debug)]
pub(super) struct Coupling {
    pub(super) name: String,
    pub(super) is_kinematic: bool,
    pub(super) reference: Nodes,
    pub(super) surface: Surface,
    pub(super) orientation: Option<String>,
    /// From 1 to 6, ascending.
    pub(super) dofs: Vec<u64>,
}

/// A surface by its kind.
#[derive(Clone, Debug)]
pub(super) enum Surface {
    Faces(String),
    Nodes(String),
}

#[derive(Debug)]
pub(super) struct Tie {
    pub(super) name: String,
    pub(super) slave: Surface,
    pub(super) master: Surface,
    pub(super) tolerance: Option<f64>,
    pub(super) adjusts: bool,
}

/// A step with all that acts in it, of earlier steps too.
#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) fixed: Vec<Fixed>,
    pub(super) loads: Vec<Load>,
    pub(super) temperatures: Vec<Temperature>,
    pub(super) prints: Vec<Print>,
    /// Quantities wanted in the result file, in capitals.
    pub(super) fields: BTreeSet<String>,
    /// Length of the step, and time at its end.
    pub(super) period: f64,
    pub(super) end: f64,
}

/// A prescribed degree of freedom, from 1 to 6.
#[derive(Clone, Debug)]
pub(super) struct Fixed {
    pub(super) nodes: Nodes,
    pub(super) dof: u64,
    pub(super) value: f64,
    pub(super) place: Place,
}

#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) on: LoadOn,
    pub(super) value: f64,
    /// The node whose prescribed degree of freedom 2 is the value.
    pub(super) of_node: Option<u64>,
    /// The step that gave it.
    pub(super) step: usize,
    pub(super) place: Place,
}

/// What acts where; two loads that are equal here are of one kind in one place. Vectors by their bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum LoadOn {
    /// Force or, from degree of freedom 4 on, moment.
    Node(Nodes, u64),
    /// Pressure.
    Faces(Faces),
    /// Force per area along a direction.
    Traction(Faces, Direction),
    /// Force per volume along x, y or z (0 to 2).
    Body(Elements, usize),
    /// Acceleration along a unit vector.
    Gravity(Elements, Direction),
    /// Square of the speed, about the axis through a point.
    Centrifugal(Elements, Direction, Direction),
}

/// A vector that can be compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direction(pub(super) [f64; 3]);

impl PartialEq for Direction {
    fn eq(&self, other: &Self) -> bool {
        self.0.map(f64::to_bits) == other.0.map(f64::to_bits)
    }
}

impl Eq for Direction {}

impl Hash for Direction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.map(f64::to_bits).hash(state);
    }
}

impl LoadOn {
    /// The keyword family whose OP=NEW removes it.
    pub(super) fn is_nodal(&self) -> bool {
        matches!(self, LoadOn::Node(..))
    }
}

/// *NODE PRINT, *EL PRINT or *SECTION PRINT.
#[derive(Clone, Debug)]
pub(super) struct Print {
    pub(super) kind: PrintKind,
    pub(super) set: String,
    /// In capitals.
    pub(super) quantities: Vec<String>,
    pub(super) global: bool,
    /// "no", "yes" or "only".
    pub(super) totals: &'static str,
    pub(super) name: String,
    pub(super) place: Place,
}

pub(super) use crate::case::PrintKind;
