//! Every key of the case file, once: its type, range, default and meaning.
//!
//! The parser refuses what is not listed here or does not fit, and [`crate::schema`] prints the same list for editors,
//! so that the two cannot disagree.
//!
//! Invariant: a table of constants; reads nothing and builds nothing.

use super::keys::{Key, Kind, Need, Range, TableSpec};
use super::link_tables::{COUPLING, CYCLIC, EQUATION, MPC, NODE, RIGID_BODY, TIE, TRANSFORM};
use super::{
    AnalysisKind, Balance, Field, Formulation, Method, Partitioner, Preconditioner, Reductions,
};
use fem_mesh::CellType;
use materials::{FIELD, MATERIAL, ORIENTATION, TEMPERATURE};
use steps::{AMPLITUDE, PRINT, STEP};

mod materials;
mod steps;

pub(super) const fn names<const N: usize, T>(pairs: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut i = 0;
    while i < N {
        names[i] = pairs[i].0;
        i += 1;
    }
    names
}

const fn solid_names() -> [&'static str; CellType::SOLIDS.len()] {
    let mut names = [""; CellType::SOLIDS.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = CellType::SOLIDS[i].name();
        i += 1;
    }
    names
}

static ANALYSES: [&str; 1] = names(&AnalysisKind::NAMES);
static ELEMENTS: [&str; CellType::SOLIDS.len()] = solid_names();
static FORMULATIONS: [&str; 4] = names(&Formulation::NAMES);
static METHODS: [&str; 3] = names(&Method::NAMES);
static PRECONDITIONERS: [&str; 4] = names(&Preconditioner::NAMES);
static REDUCTIONS: [&str; 3] = names(&Reductions::NAMES);
static PARTITIONERS: [&str; 3] = names(&Partitioner::NAMES);
static BALANCES: [&str; 2] = names(&Balance::NAMES);
static FIELDS: [&str; 8] = names(&Field::NAMES);

pub(super) const fn key(name: &'static str, kind: Kind, need: Need, about: &'static str) -> Key {
    Key {
        name,
        kind,
        need,
        about,
    }
}

use Kind::{
    Bound, Choice, Choices, Count, CountOrAuto, Counts, Displacement, Flag, Names, Number, Numbers,
    Table, Tables, Text, Vector,
};
use Need::{Default, Optional, Required};
use Range::{Any, Between, Positive};

pub(crate) static ROOT: TableSpec = TableSpec {
    path: "",
    title: "the case",
    about: "A case of fem-solve. The numbers form one consistent set of units.",
    one_of: &[],
    keys: &[
        key("title", Text, Default("\"\""), "Title of the case."),
        key(
            "units",
            Text,
            Default("\"\""),
            "Label of the unit set, echoed only.",
        ),
        key("mesh", Table(&MESH), Required, MESH.about),
        key("analysis", Table(&ANALYSIS), Optional, ANALYSIS.about),
        key("material", Tables(&MATERIAL), Required, MATERIAL.about),
        key("element", Tables(&ELEMENT), Optional, ELEMENT.about),
        key(
            "orientation",
            Tables(&ORIENTATION),
            Optional,
            ORIENTATION.about,
        ),
        key(
            "constraint",
            Tables(&CONSTRAINT),
            Optional,
            CONSTRAINT.about,
        ),
        key("node", Tables(&NODE), Optional, NODE.about),
        key("transform", Tables(&TRANSFORM), Optional, TRANSFORM.about),
        key("equation", Tables(&EQUATION), Optional, EQUATION.about),
        key("coupling", Tables(&COUPLING), Optional, COUPLING.about),
        key(
            "rigid_body",
            Tables(&RIGID_BODY),
            Optional,
            RIGID_BODY.about,
        ),
        key("tie", Tables(&TIE), Optional, TIE.about),
        key("cyclic_symmetry", Tables(&CYCLIC), Optional, CYCLIC.about),
        key("mpc", Tables(&MPC), Optional, MPC.about),
        key("load", Tables(&LOAD), Optional, LOAD.about),
        key(
            "temperature",
            Tables(&TEMPERATURE),
            Optional,
            TEMPERATURE.about,
        ),
        key("amplitude", Tables(&AMPLITUDE), Optional, AMPLITUDE.about),
        key("step", Tables(&STEP), Optional, STEP.about),
        key("print", Tables(&PRINT), Optional, PRINT.about),
        key("set", Tables(&SET), Optional, SET.about),
        key("solver", Table(&SOLVER), Optional, SOLVER.about),
        key("parallel", Table(&PARALLEL), Optional, PARALLEL.about),
        key("output", Table(&OUTPUT), Optional, OUTPUT.about),
        key("probe", Tables(&PROBE), Optional, PROBE.about),
        key("check", Tables(&CHECK), Optional, CHECK.about),
    ],
};

static MESH: TableSpec = TableSpec {
    path: "mesh",
    title: "[mesh]",
    about: "Where the mesh comes from: a file or a generated box.",
    one_of: &["file", "box"],
    keys: &[
        key(
            "file",
            Text,
            Optional,
            "Mesh file, relative to the case file; the formats are in docs/mesh-files.md.",
        ),
        key("box", Table(&BOX), Optional, BOX.about),
        key(
            "scale",
            Number(Positive),
            Default("1.0"),
            "Coordinates are multiplied by this.",
        ),
    ],
};

static BOX: TableSpec = TableSpec {
    path: "mesh.box",
    title: "mesh.box",
    about: "A structured box with face sets xmin xmax ymin ymax zmin zmax and element set all.",
    one_of: &[],
    keys: &[
        key(
            "size",
            Vector(Positive),
            Required,
            "Edge lengths along x, y, z.",
        ),
        key(
            "cells",
            Counts,
            Required,
            "Number of divisions along x, y, z.",
        ),
        key(
            "element",
            Choice(&ELEMENTS),
            Default("\"hex8\""),
            "Element type.",
        ),
        key(
            "origin",
            Vector(Any),
            Default("[0.0, 0.0, 0.0]"),
            "Corner with the smallest coordinates.",
        ),
    ],
};

static ANALYSIS: TableSpec = TableSpec {
    path: "analysis",
    title: "[analysis]",
    about: "What is computed.",
    one_of: &[],
    keys: &[key(
        "type",
        Choice(&ANALYSES),
        Default("\"static\""),
        "Kind of analysis.",
    )],
};

static ELEMENT: TableSpec = TableSpec {
    path: "element",
    title: "[[element]]",
    about: "How the stiffness of elements is formed; those that no table names are integrated fully.",
    one_of: &[],
    keys: &[
        key(
            "elements",
            Names,
            Default("\"all\""),
            "Element set or list of element sets.",
        ),
        key(
            "formulation",
            Choice(&FORMULATIONS),
            Default("\"full\""),
            "\"reduced\": hex8 (with hourglass control), hex20, wedge6; \"b_bar\": hex8, wedge6; \"incompatible_modes\": hex8.",
        ),
    ],
};

static CONSTRAINT: TableSpec = TableSpec {
    path: "constraint",
    title: "[[constraint]]",
    about: "Prescribed displacement of sets, and rotation of reference nodes.",
    one_of: &[],
    keys: &[
        key(
            "on",
            Names,
            Required,
            "Node, face or element set, or a list of them.",
        ),
        key(
            "displacement",
            Displacement,
            Optional,
            "A number fixes that component, \"free\" leaves it.",
        ),
        key(
            "rotation",
            Displacement,
            Optional,
            "The same for the rotations of reference nodes; one of both is needed.",
        ),
        key(
            "amplitude",
            Text,
            Optional,
            "Name of the [[amplitude]] whose factor the values take in a [[step]].",
        ),
    ],
};

static LOAD: TableSpec = TableSpec {
    path: "load",
    title: "[[load]]",
    about: "A load on sets: `on` and exactly one kind of load.",
    one_of: &[
        "traction",
        "pressure",
        "force",
        "moment",
        "body_force",
        "gravity",
        "centrifugal",
        "temperature_change",
        "nodal_force",
        "initial_stress",
        "initial_strain",
    ],
    keys: &[
        key(
            "on",
            Names,
            Required,
            "Set or list of sets that carry the load.",
        ),
        key(
            "traction",
            Vector(Any),
            Optional,
            "Force per area on a face set.",
        ),
        key(
            "pressure",
            Kind::Field(&FIELD),
            Optional,
            "Pressure on a face set; positive pushes into the surface.",
        ),
        key(
            "force",
            Vector(Any),
            Optional,
            "Total force: over faces by area, over a node set evenly.",
        ),
        key(
            "moment",
            Vector(Any),
            Optional,
            "Total moment on the reference nodes of a set, evenly.",
        ),
        key(
            "body_force",
            Vector(Any),
            Optional,
            "Force per volume on an element set.",
        ),
        key(
            "gravity",
            Vector(Any),
            Optional,
            "Acceleration of an element set, times density.",
        ),
        key(
            "centrifugal",
            Table(&CENTRIFUGAL),
            Optional,
            CENTRIFUGAL.about,
        ),
        key(
            "temperature_change",
            Number(Any),
            Optional,
            "Change of temperature of an element set, beside that of [[temperature]].",
        ),
        key(
            "nodal_force",
            Vector(Any),
            Optional,
            "The same force on each node of a node set.",
        ),
        key(
            "initial_stress",
            Numbers(&[6]),
            Optional,
            "Stress of an element set before it deforms: xx, yy, zz, xy, yz, zx in global axes.",
        ),
        key(
            "initial_strain",
            Numbers(&[6]),
            Optional,
            "Strain at which an element set is free of stress: xx, yy, zz, xy, yz, zx (engineering shear) in global axes.",
        ),
        key(
            "amplitude",
            Text,
            Optional,
            "Name of the [[amplitude]] whose factor the values take in a [[step]].",
        ),
    ],
};

static CENTRIFUGAL: TableSpec = TableSpec {
    path: "load.centrifugal",
    title: "load.centrifugal",
    about: "Rotation of an element set about an axis.",
    one_of: &[],
    keys: &[
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
        key("omega", Number(Any), Required, "Angular speed, rad/s."),
    ],
};

static SET: TableSpec = TableSpec {
    path: "set",
    title: "[[set]]",
    about: "A set of all nodes, boundary faces or elements inside a box, for meshes without named groups.",
    one_of: &["nodes_in_box", "faces_in_box", "elements_in_box"],
    keys: &[
        key("name", Text, Required, "Unique name."),
        key(
            "nodes_in_box",
            Table(&LIMITS),
            Optional,
            "A node set: the nodes inside this closed box.",
        ),
        key(
            "faces_in_box",
            Table(&LIMITS),
            Optional,
            "A face set: the boundary faces with all nodes inside.",
        ),
        key(
            "elements_in_box",
            Table(&LIMITS),
            Optional,
            "An element set: the elements with all nodes inside.",
        ),
    ],
};

static LIMITS: TableSpec = TableSpec {
    path: "set.box",
    title: "a box { min = [...], max = [...] }",
    about: "A closed box in scaled coordinates; a bound left out is infinite.",
    one_of: &[],
    keys: &[
        key(
            "min",
            Bound,
            Optional,
            "Smallest coordinates; \"inf\" leaves a direction unbounded.",
        ),
        key(
            "max",
            Bound,
            Optional,
            "Largest coordinates; \"inf\" leaves a direction unbounded.",
        ),
    ],
};

static SOLVER: TableSpec = TableSpec {
    path: "solver",
    title: "[solver]",
    about: "How the linear system is solved.",
    one_of: &[],
    keys: &[
        key(
            "method",
            Choice(&METHODS),
            Default("\"auto\""),
            "Conjugate gradients or sparse Cholesky.",
        ),
        key(
            "preconditioner",
            Choice(&PRECONDITIONERS),
            Default("\"auto\""),
            "Preconditioner of cg.",
        ),
        key(
            "tolerance",
            Number(Between(0.0, 1.0)),
            Default("1e-8"),
            "Bound on the true relative residual.",
        ),
        key(
            "max_iterations",
            Count(1),
            Default("2000"),
            "Iterations after which cg gives up.",
        ),
        key(
            "reductions",
            Choice(&REDUCTIONS),
            Default("\"auto\""),
            "Sums over the ranks that an iteration of cg waits for; \"auto\": two on one host, on several the faster.",
        ),
    ],
};

static PARALLEL: TableSpec = TableSpec {
    path: "parallel",
    title: "[parallel]",
    about: "How ranks and threads are used.",
    one_of: &[],
    keys: &[
        key(
            "threads",
            CountOrAuto,
            Default("\"auto\""),
            "Ceiling on the threads of each rank.",
        ),
        key(
            "partitioner",
            Choice(&PARTITIONERS),
            Default("\"auto\""),
            "How elements are dealt to ranks.",
        ),
        key(
            "balance",
            Choice(&BALANCES),
            Default("\"cells\""),
            "What is balanced between ranks.",
        ),
    ],
};

static OUTPUT: TableSpec = TableSpec {
    path: "output",
    title: "[output]",
    about: "What is written.",
    one_of: &[],
    keys: &[
        key(
            "directory",
            Text,
            Default("\"results\""),
            "Directory, relative to the working directory.",
        ),
        key(
            "fields",
            Choices(&FIELDS),
            Default("[\"displacement\", \"stress\", \"von_mises\", \"reaction\"]"),
            "Fields in the result file.",
        ),
        key(
            "report",
            Flag,
            Default("false"),
            "Whether report.html is written.",
        ),
        key(
            "integration_points",
            Flag,
            Default("false"),
            "Whether the stresses at the integration points of each element are written.",
        ),
    ],
};

static PROBE: TableSpec = TableSpec {
    path: "probe",
    title: "[[probe]]",
    about: "A value to report, at a point or over a set.",
    one_of: &["at", "set"],
    keys: &[
        key("name", Text, Required, "Unique name."),
        key(
            "at",
            Vector(Any),
            Optional,
            "A point, in scaled coordinates; interpolated inside its element.",
        ),
        key(
            "set",
            Text,
            Optional,
            "A set: the mean over its nodes; for reaction the sum.",
        ),
        key(
            "field",
            Choice(&FIELDS),
            Required,
            "Stress and strain: xx, yy, zz, xy, yz, zx.",
        ),
        key(
            "step",
            Text,
            Optional,
            "Name of the [[step]] at whose end it looks; the last by default.",
        ),
    ],
};

static CHECK: TableSpec = TableSpec {
    path: "check",
    title: "[[check]]",
    about: "The expected value of a probe; makes a case verify itself.",
    one_of: &[],
    keys: &[
        key("probe", Text, Required, "Name of a probe."),
        key(
            "component",
            Count(0),
            Optional,
            "Component of the field, from 0; leave out for a scalar.",
        ),
        key("expected", Number(Any), Required, "Expected value."),
        key(
            "tolerance",
            Number(Positive),
            Required,
            "Largest relative error; absolute where 0 is expected.",
        ),
        key(
            "source",
            Text,
            Default("\"\""),
            "Where the expected value comes from.",
        ),
    ],
};
