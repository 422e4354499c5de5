//! Keys of `[[amplitude]]`, `[[step]]` and `[[print]]`.
//!
//! Invariant: a table of constants; reads nothing and builds nothing.

use super::super::keys::TableSpec;
use super::super::{AmplitudeTime, PrintKind, PrintQuantity, PrintTotals, StepOp};
use super::Kind::{Choice, Choices, Count, Flag, Number, Points, Tables, Text};
use super::Need::{Default, Optional, Required};
use super::Range::Positive;
use super::materials::TEMPERATURE;
use super::{CONSTRAINT, LOAD, key, names};

static TIMES: [&str; 2] = names(&AmplitudeTime::NAMES);
static OPS: [&str; 2] = names(&StepOp::NAMES);
static KINDS: [&str; 3] = names(&PrintKind::NAMES);
static TOTALS: [&str; 3] = names(&PrintTotals::NAMES);
static QUANTITIES: [&str; PrintQuantity::ALL.len()] = quantity_names();

const fn quantity_names() -> [&'static str; PrintQuantity::ALL.len()] {
    let mut names = [""; PrintQuantity::ALL.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = PrintQuantity::ALL[i].0;
        i += 1;
    }
    names
}

pub(super) static AMPLITUDE: TableSpec = TableSpec {
    path: "amplitude",
    title: "[[amplitude]]",
    about: "A factor of loads and constraints as a function of time, used in steps.",
    one_of: &[],
    keys: &[
        key("name", Text, Required, "Unique name."),
        key(
            "table",
            Points,
            Required,
            "Pairs of time and factor, times ascending; linear between, constant before and after.",
        ),
        key(
            "time",
            Choice(&TIMES),
            Default("\"step\""),
            "Time from the start of the step, or from that of the first step.",
        ),
    ],
};

pub(super) static STEP: TableSpec = TableSpec {
    path: "step",
    title: "[[step]]",
    about: "A load case after another. Tables at the top of the file act in every step, those of steps from theirs on.",
    one_of: &[],
    keys: &[
        key(
            "name",
            Text,
            Optional,
            "Unique name; `step k`, counted from 1, by default.",
        ),
        key(
            "time_period",
            Number(Positive),
            Default("1.0"),
            "Length of the step.",
        ),
        key(
            "increments",
            Count(1),
            Default("1"),
            "Result frames of the step, evenly spread over its time.",
        ),
        key(
            "op",
            Choice(&OPS),
            Default("\"mod\""),
            "Whether what earlier steps gave stays (and is replaced where this step gives the same anew) or ends.",
        ),
        key(
            "constraint",
            Tables(&CONSTRAINT),
            Optional,
            "As [[constraint]]; headed [[step.constraint]].",
        ),
        key(
            "load",
            Tables(&LOAD),
            Optional,
            "As [[load]]; headed [[step.load]].",
        ),
        key(
            "temperature",
            Tables(&TEMPERATURE),
            Optional,
            "As [[temperature]], not initial; headed [[step.temperature]].",
        ),
    ],
};

pub(super) static PRINT: TableSpec = TableSpec {
    path: "print",
    title: "[[print]]",
    about: "Tables of numbers in the file `<name of the case>.dat`, in the layout of CalculiX.",
    one_of: &[],
    keys: &[
        key(
            "kind",
            Choice(&KINDS),
            Required,
            "What the tables go over: nodes, integration points of elements or whole elements, a section of faces.",
        ),
        key(
            "set",
            Text,
            Required,
            "Node, element or face set, by the kind.",
        ),
        key(
            "quantities",
            Choices(&QUANTITIES),
            Required,
            "Of nodes: U, RF, NT; of elements: S, E, ME, COORD, ENER, ELSE, EVOL; of a section: SOF, SOM, SOAREA.",
        ),
        key(
            "global",
            Flag,
            Default("false"),
            "Global axes, or those of the [[transform]] of a node and the [[orientation]] of an element.",
        ),
        key(
            "totals",
            Choice(&TOTALS),
            Default("\"no\""),
            "Whether the sum over the set of RF, ELSE or EVOL is printed as well, or only.",
        ),
        key("name", Text, Default("\"\""), "Name of a section."),
    ],
};
