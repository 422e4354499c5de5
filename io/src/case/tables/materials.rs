//! Keys of `[[material]]`, `[[orientation]]` and `[[temperature]]`.
//!
//! Invariant: a table of constants; reads nothing and builds nothing.

use super::super::OrientationSystem;
use super::super::keys::{Key, Kind, TableSpec};
use super::Kind::{
    Choice, Count, Flag, Names, Number, NumberOr, Numbers, Pairs, Table, Tables, Text, Vector,
};
use super::Need::{Default, Optional, Required, With};
use super::Range::{Any, Between, NonNegative, Positive};
use super::{key, names};

static ORIENTATION_SYSTEMS: [&str; 2] = names(&OrientationSystem::NAMES);

pub(super) static MATERIAL: TableSpec = TableSpec {
    path: "material",
    title: "[[material]]",
    about: "A linear elastic material. Every element needs exactly one.",
    one_of: &["young", "orthotropic", "stiffness", "table"],
    keys: &[
        key("name", Text, Required, "Unique name."),
        key(
            "elements",
            Names,
            Default("\"all\""),
            "Element set or list of element sets.",
        ),
        YOUNG,
        POISSON,
        ORTHOTROPIC_KEY,
        STIFFNESS,
        key(
            "table",
            Tables(&MATERIAL_ROW),
            Optional,
            "Elastic constants, and expansion if wanted, by ascending temperature.",
        ),
        key(
            "density",
            Number(NonNegative),
            Optional,
            "Mass per volume; needed by gravity and centrifugal loads.",
        ),
        EXPANSION,
        key(
            "expansion_table",
            Tables(&EXPANSION_ROW),
            Optional,
            "Thermal expansion by ascending temperature, where it is measured at other ones than `table`.",
        ),
        key(
            "reference_temperature",
            Number(Any),
            Default("0.0"),
            "Temperature from which the coefficients of expansion are means (secant); the initial one where none is given.",
        ),
        key(
            "conductivity",
            Number(Positive),
            Optional,
            "Thermal conductivity; not used by statics.",
        ),
        key(
            "specific_heat",
            Number(Positive),
            Optional,
            "Heat capacity per mass; not used by statics.",
        ),
    ],
};

const YOUNG: Key = key(
    "young",
    Number(Positive),
    Optional,
    "Young's modulus of an isotropic material.",
);
const POISSON: Key = key(
    "poisson",
    Number(Between(-1.0, 0.5)),
    With("young"),
    "Poisson's ratio of an isotropic material.",
);
const ORTHOTROPIC_KEY: Key = key(
    "orthotropic",
    Table(&ORTHOTROPIC),
    Optional,
    ORTHOTROPIC.about,
);
const STIFFNESS: Key = key(
    "stiffness",
    Numbers(&[9, 21]),
    Optional,
    "Stiffness terms in material axes: orthotropic D1111 D1122 D2222 D1133 D2233 D3333 D1212 D1313 D2323, or anisotropic \
     D1111 D1122 D2222 D1133 D2233 D3333 D1112 D2212 D3312 D1212 D1113 D2213 D3313 D1213 D1313 D1123 D2223 D3323 D1223 D1323 D2323.",
);
const EXPANSION: Key = key(
    "expansion",
    NumberOr(&[3, 6]),
    Optional,
    "Thermal expansion per kelvin, the same in all directions, or in material axes 11 22 33, or 11 22 33 12 13 23 (of the \
     strain tensor); needed by temperature_change.",
);

static ORTHOTROPIC: TableSpec = TableSpec {
    path: "material.orthotropic",
    title: "material.orthotropic",
    about: "Engineering constants of an orthotropic material along material axes 1, 2, 3.",
    one_of: &[],
    keys: &[
        key("young", Vector(Positive), Required, "E1, E2, E3."),
        key(
            "poisson",
            Vector(Any),
            Required,
            "nu12, nu13, nu23: nu12 is the contraction along 2 per stretch along 1 under tension along 1; nu21 = nu12 E2 / E1.",
        ),
        key("shear", Vector(Positive), Required, "G12, G13, G23."),
    ],
};

static MATERIAL_ROW: TableSpec = TableSpec {
    path: "material.table",
    title: "material.table",
    about: "A material at one temperature. Between rows values are interpolated, outside those of the nearest row hold.",
    one_of: &["young", "orthotropic", "stiffness"],
    keys: &[
        key(
            "temperature",
            Number(Any),
            Required,
            "Ascending from row to row.",
        ),
        YOUNG,
        POISSON,
        ORTHOTROPIC_KEY,
        STIFFNESS,
        EXPANSION,
    ],
};

static EXPANSION_ROW: TableSpec = TableSpec {
    path: "material.expansion_table",
    title: "material.expansion_table",
    about: "Thermal expansion at one temperature, interpolated as `table`.",
    one_of: &[],
    keys: &[
        key(
            "temperature",
            Number(Any),
            Required,
            "Ascending from row to row.",
        ),
        key(
            "expansion",
            NumberOr(&[3, 6]),
            Required,
            "As `expansion` of the material.",
        ),
    ],
};

pub(super) static ORIENTATION: TableSpec = TableSpec {
    path: "orientation",
    title: "[[orientation]]",
    about: "Material axes of an element set; elements in none have the global axes.",
    one_of: &[],
    keys: &[
        key("name", Text, Required, "Unique name."),
        key(
            "elements",
            Names,
            Default("\"all\""),
            "Element set or list of element sets.",
        ),
        key(
            "type",
            Choice(&ORIENTATION_SYSTEMS),
            Default("\"rectangular\""),
            "How `a` and `b` are read.",
        ),
        key(
            "a",
            Vector(Any),
            Required,
            "Rectangular: a vector along axis 1. Cylindrical: a point on the axis of the cylinder, in scaled coordinates.",
        ),
        key(
            "b",
            Vector(Any),
            Required,
            "Rectangular: a vector in the plane of axes 1 and 2, on the side of 2. Cylindrical: another point on the axis; \
             at each point 1 is radial, 2 tangential, 3 along the axis from `a` to `b`.",
        ),
        key("rotate", Table(&ROTATE), Optional, ROTATE.about),
    ],
};

static ROTATE: TableSpec = TableSpec {
    path: "orientation.rotate",
    title: "orientation.rotate",
    about: "A further rotation of the axes about one of them.",
    one_of: &[],
    keys: &[
        key("axis", Count(1), Required, "Material axis 1, 2 or 3."),
        key(
            "angle",
            Number(Any),
            Required,
            "Angle in degrees, positive by the right-hand rule.",
        ),
    ],
};

pub(super) static FIELD: TableSpec = TableSpec {
    path: "field",
    title: "a field { value = ..., gradient = [...], at = [...] }",
    about: "A scalar that is linear in space: value + gradient . (x - at).",
    one_of: &[],
    keys: &[
        key("value", Number(Any), Required, "Value at the point `at`."),
        key(
            "gradient",
            Vector(Any),
            Required,
            "Increase per unit of length along x, y, z.",
        ),
        key(
            "at",
            Vector(Any),
            Default("[0.0, 0.0, 0.0]"),
            "A point, in scaled coordinates.",
        ),
    ],
};

pub(super) static TEMPERATURE: TableSpec = TableSpec {
    path: "temperature",
    title: "[[temperature]]",
    about: "Temperatures of nodes, for thermal strain and temperature-dependent materials. Of several for one node the last counts.",
    one_of: &["value", "by_node"],
    keys: &[
        key(
            "on",
            Names,
            With("value"),
            "Node, face or element set, or a list of them; their nodes are meant.",
        ),
        key("value", Kind::Field(&FIELD), Optional, "The temperature."),
        key(
            "by_node",
            Pairs,
            Optional,
            "Pairs of node number in the mesh file and temperature.",
        ),
        key(
            "initial",
            Flag,
            Default("false"),
            "`true`: the temperature before loading, at which there is no thermal strain; `false`: that of the loaded body.",
        ),
    ],
};
