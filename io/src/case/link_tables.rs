//! Keys of the tables that join degrees of freedom, as in [`super::tables`].
//!
//! Invariant: a table of constants; reads nothing and builds nothing.

use super::keys::{Key, Kind, Need, Range, TableSpec};
use super::links::{CouplingKind, MpcKind};
use super::tables::names;
use Kind::{
    Choice, Choices, Count, Flag, Names, NodeNumbers, NodeOrSet, Number, Table, Tables, Text,
    Vector,
};
use Need::{Default, Optional, Required};
use Range::{Any, Positive};

static COMPONENTS: [&str; 6] = ["x", "y", "z", "rx", "ry", "rz"];
static TRANSLATIONS: [&str; 3] = ["x", "y", "z"];
static SYSTEMS: [&str; 2] = ["rectangular", "cylindrical"];
static COUPLINGS: [&str; 2] = names(&CouplingKind::NAMES);
static MPCS: [&str; 3] = names(&MpcKind::NAMES);

const fn key(name: &'static str, kind: Kind, need: Need, about: &'static str) -> Key {
    Key {
        name,
        kind,
        need,
        about,
    }
}

const fn spec(
    path: &'static str,
    title: &'static str,
    about: &'static str,
    keys: &'static [Key],
) -> TableSpec {
    TableSpec {
        path,
        title,
        about,
        one_of: &[],
        keys,
    }
}

const SYSTEM_KIND: Key = key(
    "kind",
    Choice(&SYSTEMS),
    Required,
    "\"rectangular\": local x toward a, y on the side of b; \"cylindrical\": radial, tangential, axial about the line from a to b.",
);
const SYSTEM_A: Key = key("a", Vector(Any), Required, "First point of the system.");
const SYSTEM_B: Key = key("b", Vector(Any), Required, "Second point of the system.");

pub(crate) static NODE: TableSpec = spec(
    "node",
    "[[node]]",
    "A node in no element, for constraints and loads to refer to.",
    &[
        key("number", Count(1), Required, "Number of the node."),
        key(
            "at",
            Vector(Any),
            Optional,
            "Coordinates, scaled ones; left out for a node of the mesh file that is in no element.",
        ),
        key(
            "name",
            Text,
            Optional,
            "Name of the node set that it makes up.",
        ),
    ],
);

pub(crate) static TRANSFORM: TableSpec = spec(
    "transform",
    "[[transform]]",
    "Prescribed displacements, nodal forces and equations at these nodes are in a local system.",
    &[
        key(
            "on",
            Names,
            Required,
            "Node, face or element set, or a list of them.",
        ),
        SYSTEM_KIND,
        SYSTEM_A,
        SYSTEM_B,
    ],
);

static SYSTEM: TableSpec = spec(
    "coupling.system",
    "coupling.system",
    "A local system of axes.",
    &[SYSTEM_KIND, SYSTEM_A, SYSTEM_B],
);

pub(crate) static EQUATION: TableSpec = spec(
    "equation",
    "[[equation]]",
    "A linear equation between displacements: the sum of the terms is constant.",
    &[
        key("terms", Tables(&TERM), Required, TERM.about),
        key("constant", Number(Any), Default("0.0"), "Right-hand side."),
    ],
);

static TERM: TableSpec = spec(
    "equation.terms",
    "a term { node = ..., component = ..., coefficient = ... }",
    "Terms of the equation; the first is eliminated where possible.",
    &[
        key(
            "node",
            NodeOrSet,
            Required,
            "Sets of several nodes stand for as many equations, node by node in the order of their numbers.",
        ),
        key(
            "component",
            Choice(&COMPONENTS),
            Required,
            "Displacement, or rotation of a reference node.",
        ),
        key("coefficient", Number(Any), Default("1.0"), "Its factor."),
    ],
);

pub(crate) static COUPLING: TableSpec = spec(
    "coupling",
    "[[coupling]]",
    "A surface that hangs on a reference node with three displacements and three rotations.",
    &[
        key(
            "kind",
            Choice(&COUPLINGS),
            Required,
            "Kinematic: the surface is rigid; distributing: forces and moments of the reference node are spread over it.",
        ),
        key("reference", NodeOrSet, Required, "The reference node."),
        key("on", Names, Required, "Sets whose nodes are coupled."),
        key(
            "components",
            Choices(&TRANSLATIONS),
            Optional,
            "Coupled components of a kinematic coupling; all if left out.",
        ),
        key(
            "system",
            Table(&SYSTEM),
            Optional,
            "Axes of `components` and of what is prescribed at the reference node.",
        ),
    ],
);

pub(crate) static RIGID_BODY: TableSpec = spec(
    "rigid_body",
    "[[rigid_body]]",
    "Nodes that move as one, by small rotations.",
    &[
        key("on", Names, Required, "Sets of the nodes."),
        key(
            "reference",
            NodeOrSet,
            Required,
            "Node that carries the displacement.",
        ),
        key(
            "rotation_node",
            NodeOrSet,
            Optional,
            "Node whose displacements stand for the rotations.",
        ),
    ],
);

pub(crate) static TIE: TableSpec = spec(
    "tie",
    "[[tie]]",
    "Joins surfaces whose meshes do not match: slave nodes follow the master faces.",
    &[
        key("slave", Names, Required, "Face or node sets that follow."),
        key("master", Names, Required, "Face sets that they follow."),
        POSITION_TOLERANCE,
        key(
            "adjust",
            Flag,
            Default("true"),
            "Whether slave nodes are moved onto the master faces first.",
        ),
    ],
);

const POSITION_TOLERANCE: Key = key(
    "position_tolerance",
    Number(Positive),
    Optional,
    "Largest distance of a slave node; 2.5 % of the size of a face if left out.",
);

pub(crate) static CYCLIC: TableSpec = spec(
    "cyclic_symmetry",
    "[[cyclic_symmetry]]",
    "One sector of a body and a load that repeat around an axis.",
    &[
        key("slave", Names, Required, "Face or node sets of one border."),
        key("master", Names, Required, "Face sets of the other border."),
        key(
            "origin",
            Vector(Any),
            Default("[0.0, 0.0, 0.0]"),
            "A point on the axis.",
        ),
        key(
            "axis",
            Vector(Any),
            Required,
            "Direction of the axis, not zero.",
        ),
        key(
            "n_sectors",
            Count(2),
            Required,
            "Number of sectors of the whole.",
        ),
        POSITION_TOLERANCE,
    ],
);

pub(crate) static MPC: TableSpec = spec(
    "mpc",
    "[[mpc]]",
    "Nodes that stay in a plane or on a line, or keep their distance, for small displacements.",
    &[
        key("kind", Choice(&MPCS), Required, "What they keep to."),
        key(
            "nodes",
            NodeNumbers,
            Required,
            "Numbers of the nodes: the first three span the plane, the first two the line; a beam has two.",
        ),
    ],
);
