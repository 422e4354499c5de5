//! Types of the tables that join degrees of freedom: nodes, equations, couplings, rigid bodies, ties, cyclic symmetry,
//! multi-point constraints and local systems.
//!
//! Invariant: plain data; set names are as the user typed them, not yet looked up in a mesh.

use super::Place;

/// One node: by number, or the only member of a node set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeRef {
    /// Number in the input.
    Number(u64),
    /// Name of a node set.
    Set(String),
}

/// `[[node]]`: a node in no element, for constraints and loads to refer to.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeInput {
    /// Number; new unless `at` is `None`.
    pub number: u64,
    /// Coordinates, m, after `mesh.scale`; `None` for a node of the mesh file that is in no element.
    pub at: Option<[f64; 3]>,
    /// Name of the node set that it makes up; empty for none.
    pub name: String,
    /// Place of `number`.
    pub place: Place,
}

/// One term of an equation.
#[derive(Clone, Debug, PartialEq)]
pub struct TermInput {
    /// The node. Sets of several nodes stand for as many equations, node by node in the order of their numbers.
    pub node: NodeRef,
    /// 0 to 2: displacement x, y, z; 3 to 5: rotation about them, of a reference node.
    pub component: usize,
    /// Coefficient.
    pub coefficient: f64,
    /// Place of the node.
    pub place: Place,
}

/// `[[equation]]`: the sum of the terms is constant. Components at nodes with a [`TransformInput`] are those of its axes.
#[derive(Clone, Debug, PartialEq)]
pub struct EquationInput {
    /// At least one. The first is eliminated where possible.
    pub terms: Vec<TermInput>,
    /// Right-hand side.
    pub constant: f64,
    /// Place of `terms`.
    pub place: Place,
}

/// A local system of axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SystemInput {
    /// x toward `a`; y in the plane of `a` and `b`, on the side of `b`.
    Rectangular {
        /// A point on the local x axis, seen from the origin.
        a: [f64; 3],
        /// A point in the local x-y plane, seen from the origin.
        b: [f64; 3],
    },
    /// Radial, tangential, axial, about the line from `a` to `b`.
    Cylindrical {
        /// A point on the axis, m.
        a: [f64; 3],
        /// Another one, m.
        b: [f64; 3],
    },
}

/// `[[transform]]`: prescribed displacements, nodal forces and equations at these nodes are in a local system.
#[derive(Clone, Debug, PartialEq)]
pub struct TransformInput {
    /// Sets of any kind.
    pub on: Vec<String>,
    /// The axes.
    pub system: SystemInput,
    /// Place of `on`.
    pub place: Place,
}

/// How a surface hangs on its reference node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CouplingKind {
    /// The surface moves like a rigid body with the reference node.
    Kinematic,
    /// The reference node moves with the mean of the surface; its forces and moments are spread over the surface.
    Distributing,
}

impl CouplingKind {
    pub(crate) const NAMES: [(&'static str, CouplingKind); 2] = [
        ("kinematic", CouplingKind::Kinematic),
        ("distributing", CouplingKind::Distributing),
    ];
}

/// `[[coupling]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct CouplingInput {
    /// Kind.
    pub kind: CouplingKind,
    /// The reference node.
    pub reference: NodeRef,
    /// Sets whose nodes are coupled; over face sets a distributing coupling weighs by area, over others evenly.
    pub on: Vec<String>,
    /// Coupled components of a kinematic coupling.
    pub components: [bool; 3],
    /// Axes of `components` and of everything prescribed at the reference node; global ones if `None`.
    pub system: Option<SystemInput>,
    /// Place of `on`.
    pub place: Place,
}

/// `[[rigid_body]]`: nodes that move as one, by small rotations.
#[derive(Clone, Debug, PartialEq)]
pub struct RigidBodyInput {
    /// Sets of the nodes.
    pub on: Vec<String>,
    /// Node that carries the displacement.
    pub reference: NodeRef,
    /// Node whose "displacements" are the rotations; made for the purpose if `None`.
    pub rotation_node: Option<NodeRef>,
    /// Place of `on`.
    pub place: Place,
}

/// `[[tie]]`: nodes of one surface follow the faces of another.
#[derive(Clone, Debug, PartialEq)]
pub struct TieInput {
    /// Face or node sets whose nodes follow.
    pub slave: Vec<String>,
    /// Face sets that they follow.
    pub master: Vec<String>,
    /// Largest distance of a tied node, m; `None`: 2.5 % of the size of a face.
    pub position_tolerance: Option<f64>,
    /// Whether slave nodes are moved onto the faces before anything is computed.
    pub adjust: bool,
    /// Place of `slave`.
    pub place: Place,
}

/// `[[cyclic_symmetry]]` of a static analysis: all sectors deform alike.
#[derive(Clone, Debug, PartialEq)]
pub struct CyclicInput {
    /// Face or node sets of one border of the sector.
    pub slave: Vec<String>,
    /// Face sets of the other.
    pub master: Vec<String>,
    /// A point on the axis, m.
    pub origin: [f64; 3],
    /// Direction of the axis, of any length but zero.
    pub axis: [f64; 3],
    /// Number of sectors of the whole, at least 2.
    pub n_sectors: usize,
    /// Largest distance of a node from the turned faces, m; `None`: 2.5 % of the size of a face.
    pub position_tolerance: Option<f64>,
    /// Place of `slave`.
    pub place: Place,
}

/// What nodes of a multi-point constraint keep to, for small displacements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpcKind {
    /// All nodes stay in one plane, that of the first three.
    Plane,
    /// All nodes stay on one line, that of the first two.
    Straight,
    /// Two nodes keep their distance.
    Beam,
}

impl MpcKind {
    pub(crate) const NAMES: [(&'static str, MpcKind); 3] = [
        ("plane", MpcKind::Plane),
        ("straight", MpcKind::Straight),
        ("beam", MpcKind::Beam),
    ];
}

/// `[[mpc]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct MpcInput {
    /// Kind.
    pub kind: MpcKind,
    /// Numbers of its nodes, in order: at least 4 for a plane, 3 for a line, 2 for a beam.
    pub nodes: Vec<u64>,
    /// Place of `nodes`.
    pub place: Place,
}

/// Everything that joins degrees of freedom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkInputs {
    /// Nodes in no element.
    pub nodes: Vec<NodeInput>,
    /// Local systems.
    pub transforms: Vec<TransformInput>,
    /// Equations.
    pub equations: Vec<EquationInput>,
    /// Couplings.
    pub couplings: Vec<CouplingInput>,
    /// Rigid bodies.
    pub rigid_bodies: Vec<RigidBodyInput>,
    /// Ties.
    pub ties: Vec<TieInput>,
    /// Cyclic symmetries.
    pub cyclic: Vec<CyclicInput>,
    /// Multi-point constraints.
    pub mpcs: Vec<MpcInput>,
}

impl LinkInputs {
    /// Single nodes that are referred to, in the order of the tables.
    pub fn references(&self) -> Vec<&NodeRef> {
        let terms = self
            .equations
            .iter()
            .flat_map(|e| &e.terms)
            .map(|t| &t.node);
        let couplings = self.couplings.iter().map(|c| &c.reference);
        let bodies = self.rigid_bodies.iter();
        let bodies = bodies.flat_map(|b| std::iter::once(&b.reference).chain(&b.rotation_node));
        terms.chain(couplings).chain(bodies).collect()
    }

    /// Whether there is nothing at all.
    pub fn is_empty(&self) -> bool {
        *self == LinkInputs::default()
    }
}
