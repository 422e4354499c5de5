//! Types of the repeated tables of a case: constraint, load, set, probe, check.
//!
//! Invariant: plain data; set names are as the user typed them, not yet looked up in a mesh.

use super::{Field, Formulation, LinearField, Place};

/// `[[element]]`: how the stiffness of elements is formed.
#[derive(Clone, Debug, PartialEq)]
pub struct ElementInput {
    /// Element sets, at least one; `all` by default.
    pub elements: Vec<String>,
    /// Their formulation; full by default. Types that lack it keep full integration.
    pub formulation: Formulation,
    /// Place of `elements`, or of the table where that is left out.
    pub place: Place,
}

/// `[[constraint]]`: prescribed displacement.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstraintInput {
    /// Node, face or element sets, at least one.
    pub on: Vec<String>,
    /// Prescribed components, m; `None` is free. At least one of these and of `rotation` is prescribed.
    pub displacement: [Option<f64>; 3],
    /// Prescribed rotations of reference nodes, rad; `None` is free.
    pub rotation: [Option<f64>; 3],
    /// Place of `on`.
    pub place: Place,
}

/// `[[load]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadInput {
    /// Sets that carry the load, at least one.
    pub on: Vec<String>,
    /// What acts on them.
    pub kind: LoadKind,
    /// Place of `on`.
    pub place: Place,
}

/// What a load does.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadKind {
    /// Force per area on faces, N/m2.
    Traction([f64; 3]),
    /// Pressure on faces, Pa; positive pushes into the surface.
    Pressure(f64),
    /// Pressure on faces that is linear in space, Pa; positive pushes into the surface.
    PressureField(LinearField),
    /// Total force, N: spread over faces by area, over a node set evenly.
    Force([f64; 3]),
    /// The same force on each node of node sets, N.
    NodalForce([f64; 3]),
    /// Total moment, N m, on the rotations of reference nodes, evenly.
    Moment([f64; 3]),
    /// Force per volume on elements, N/m3.
    BodyForce([f64; 3]),
    /// Acceleration on elements, m/s2; times density.
    Gravity([f64; 3]),
    /// Rotation of elements about an axis.
    Centrifugal {
        /// A point on the axis, m.
        origin: [f64; 3],
        /// Direction of the axis, of any length but zero.
        axis: [f64; 3],
        /// Angular speed, rad/s.
        omega: f64,
    },
    /// Uniform change of temperature of elements, K.
    TemperatureChange(f64),
    /// Stress of elements that are not deformed, Pa, xx yy zz xy yz zx in global axes.
    InitialStress([f64; 6]),
    /// Strain of elements that are free of stress, xx yy zz xy yz zx (engineering shear) in global axes.
    InitialStrain([f64; 6]),
}

impl LoadKind {
    /// The key in case files.
    pub const fn name(&self) -> &'static str {
        match self {
            LoadKind::Traction(_) => "traction",
            LoadKind::Pressure(_) | LoadKind::PressureField(_) => "pressure",
            LoadKind::Force(_) => "force",
            LoadKind::NodalForce(_) => "nodal_force",
            LoadKind::Moment(_) => "moment",
            LoadKind::BodyForce(_) => "body_force",
            LoadKind::Gravity(_) => "gravity",
            LoadKind::Centrifugal { .. } => "centrifugal",
            LoadKind::TemperatureChange(_) => "temperature_change",
            LoadKind::InitialStress(_) => "initial_stress",
            LoadKind::InitialStrain(_) => "initial_strain",
        }
    }
}

/// `[[set]]`: a set defined by a box, for meshes without named groups.
#[derive(Clone, Debug, PartialEq)]
pub struct SetDefinition {
    /// Name, unique among the definitions.
    pub name: String,
    /// What it selects.
    pub selection: Selection,
    /// Place of `name`.
    pub place: Place,
}

/// Items all of whose nodes lie in the closed box from `min` to `max` (infinite where a bound is left out), give or
/// take 1e-9 of the size of the model. Coordinates are those after `mesh.scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Selection {
    /// Nodes.
    NodesInBox { min: [f64; 3], max: [f64; 3] },
    /// Faces on the boundary of the mesh.
    FacesInBox { min: [f64; 3], max: [f64; 3] },
    /// Elements.
    ElementsInBox { min: [f64; 3], max: [f64; 3] },
}

/// `[[probe]]`: a value to report.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// Unique name.
    pub name: String,
    /// Where.
    pub at: ProbeAt,
    /// What.
    pub field: Field,
    /// Place of `at` or `set`.
    pub place: Place,
}

/// Where a probe looks.
#[derive(Clone, Debug, PartialEq)]
pub enum ProbeAt {
    /// A point, m, after `mesh.scale`; interpolated inside its element.
    Point([f64; 3]),
    /// The nodes of a set: the mean of the field over them, for `reaction` the sum.
    Set(String),
}

/// `[[check]]`: what a probe ought to show.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Name of the probe.
    pub probe: String,
    /// Component, from 0; `None` for a scalar field.
    pub component: Option<usize>,
    /// Expected value.
    pub expected: f64,
    /// Largest error that passes (see [`Check::error`]), > 0.
    pub tolerance: f64,
    /// Where the expected value comes from; empty by default.
    pub source: String,
    /// Place of `probe`.
    pub place: Place,
}

impl Check {
    /// Error of `value`: relative to the expected value, or absolute where 0 is expected.
    pub fn error(&self, value: f64) -> f64 {
        let difference = (value - self.expected).abs();
        if self.expected == 0.0 {
            difference
        } else {
            difference / self.expected.abs()
        }
    }

    /// Whether `value` passes; NaN does not.
    pub fn passes(&self, value: f64) -> bool {
        self.error(value) <= self.tolerance
    }
}
