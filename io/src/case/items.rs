//! Types of the repeated tables of a case: constraint, load, set, probe, check, print.
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
    /// Name of the `[[amplitude]]` of the values.
    pub amplitude: Option<String>,
    /// Of constraints for one degree of freedom that of the highest layer counts: 0 for the top of the case, k for step k.
    pub layer: usize,
    /// Share of the way from what lower layers prescribe (0 without) to this; 1 but within a step.
    pub share: f64,
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
    /// Name of its `[[amplitude]]`.
    pub amplitude: Option<String>,
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
    /// The step at whose end it looks; the last by default.
    pub step: Option<String>,
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

/// `[[print]]`: a table of numbers for the `.dat` file, as *NODE PRINT, *EL PRINT and *SECTION PRINT of a deck ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintRequest {
    /// What the table goes over.
    pub kind: PrintKind,
    /// Node set, element set or face set, by the kind.
    pub set: String,
    /// What is printed, in this order, one table each; all of the kind.
    pub quantities: Vec<PrintQuantity>,
    /// Global axes (`true`), or those of the `[[transform]]` of a node and the `[[orientation]]` of an element.
    pub global: bool,
    /// Whether the sum over the set is printed.
    pub totals: PrintTotals,
    /// Name of a section, empty for the other kinds.
    pub name: String,
    /// Place of `set`.
    pub place: Place,
}

/// What a `[[print]]` goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintKind {
    /// Nodes of a node set.
    Nodes,
    /// Integration points of an element set, or whole elements.
    Elements,
    /// A face set as one section.
    Section,
}

impl PrintKind {
    /// Every kind with its name in case files.
    pub const NAMES: [(&'static str, PrintKind); 3] = [
        ("nodes", PrintKind::Nodes),
        ("elements", PrintKind::Elements),
        ("section", PrintKind::Section),
    ];

    /// The name in case files.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }
}

/// Whether sums are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrintTotals {
    /// Single values only.
    #[default]
    No,
    /// Single values and their sum.
    Yes,
    /// The sum only.
    Only,
}

impl PrintTotals {
    /// Every choice with its name in case files.
    pub const NAMES: [(&'static str, PrintTotals); 3] = [
        ("no", PrintTotals::No),
        ("yes", PrintTotals::Yes),
        ("only", PrintTotals::Only),
    ];
}

/// What a `[[print]]` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintQuantity {
    /// Displacement of nodes, m.
    U,
    /// Force on nodes that balances the stresses: the reaction where a node is held, N.
    Rf,
    /// Temperature of nodes.
    Nt,
    /// Stress at integration points, Pa.
    S,
    /// Strain at integration points, tensor components.
    E,
    /// Strain without the thermal one at integration points, tensor components.
    Me,
    /// Coordinates of integration points, m.
    Coord,
    /// Strain energy density at integration points, Pa.
    Ener,
    /// Strain energy of elements, J.
    Else,
    /// Volume of elements, m3.
    Evol,
    /// Force on a section, its area and the mean normal force.
    Sof,
    /// Moments about the origin and about the center of a section.
    Som,
    /// Area, center and normal of a section.
    Soarea,
}

impl PrintQuantity {
    /// Every quantity with its name in case files and decks, and the kind that prints it.
    pub const ALL: [(&'static str, PrintQuantity, PrintKind); 13] = [
        ("U", PrintQuantity::U, PrintKind::Nodes),
        ("RF", PrintQuantity::Rf, PrintKind::Nodes),
        ("NT", PrintQuantity::Nt, PrintKind::Nodes),
        ("S", PrintQuantity::S, PrintKind::Elements),
        ("E", PrintQuantity::E, PrintKind::Elements),
        ("ME", PrintQuantity::Me, PrintKind::Elements),
        ("COORD", PrintQuantity::Coord, PrintKind::Elements),
        ("ENER", PrintQuantity::Ener, PrintKind::Elements),
        ("ELSE", PrintQuantity::Else, PrintKind::Elements),
        ("EVOL", PrintQuantity::Evol, PrintKind::Elements),
        ("SOF", PrintQuantity::Sof, PrintKind::Section),
        ("SOM", PrintQuantity::Som, PrintKind::Section),
        ("SOAREA", PrintQuantity::Soarea, PrintKind::Section),
    ];

    /// The name in case files and decks.
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    /// What it is printed over.
    pub const fn kind(self) -> PrintKind {
        Self::ALL[self as usize].2
    }
}

#[cfg(test)]
mod tests {
    use super::{PrintKind, PrintQuantity};

    #[test]
    fn names_stand_in_the_order_of_the_variants() {
        for (name, quantity, kind) in PrintQuantity::ALL {
            assert_eq!((quantity.name(), quantity.kind()), (name, kind));
        }
        for (name, kind) in PrintKind::NAMES {
            assert_eq!(kind.name(), name);
        }
    }
}
