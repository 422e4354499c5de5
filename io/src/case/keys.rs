//! How the keys of the case file are described: type, range, need; and what is refused because it is not built yet.
//!
//! The keys themselves stand in [`super::tables`].
//!
//! Invariant: describes values; reads nothing and builds nothing.

use super::words::quoted;

/// One table of the case file.
pub(crate) struct TableSpec {
    /// Dotted path without indices, empty for the top of the file.
    pub(crate) path: &'static str,
    /// As written in messages.
    pub(crate) title: &'static str,
    /// What it is for.
    pub(crate) about: &'static str,
    /// Its keys.
    pub(crate) keys: &'static [Key],
    /// Keys of which exactly one must be given; empty if there is no such choice.
    pub(crate) one_of: &'static [&'static str],
}

/// One key of a table.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) need: Need,
    pub(crate) about: &'static str,
}

/// Whether a key must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    Optional,
    /// Required beside this other key.
    With(&'static str),
    /// Optional, with this TOML value as the default.
    Default(&'static str),
}

/// Type of a value.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Text,
    Flag,
    Number(Range),
    /// Whole number from the given one on.
    Count(i64),
    /// Whole number from 1 on, or "auto".
    CountOrAuto,
    /// A list of finite numbers of one of these lengths.
    Numbers(&'static [usize]),
    /// A finite number, or a list of them of one of these lengths.
    NumberOr(&'static [usize]),
    /// A finite number, or a table that describes a scalar field.
    Field(&'static TableSpec),
    /// A list of pairs of a whole number from 0 on and a finite number.
    Pairs,
    /// A list of pairs of finite numbers.
    Points,
    Vector(Range),
    /// Three whole numbers from 1 on.
    Counts,
    /// Three components, each a number or "free".
    Displacement,
    /// Three components, each a number or infinite.
    Bound,
    /// A name or a list of names.
    Names,
    /// A node number, or the name of a node set.
    NodeOrSet,
    /// A list of node numbers.
    NodeNumbers,
    Choice(&'static [&'static str]),
    Choices(&'static [&'static str]),
    Table(&'static TableSpec),
    Tables(&'static TableSpec),
}

/// Range of a finite number.
#[derive(Clone, Copy)]
pub(crate) enum Range {
    Any,
    Positive,
    NonNegative,
    /// Between these, both excluded.
    Between(f64, f64),
}

impl Range {
    pub(crate) fn contains(self, value: f64) -> bool {
        value.is_finite()
            && match self {
                Range::Any => true,
                Range::Positive => value > 0.0,
                Range::NonNegative => value >= 0.0,
                Range::Between(low, high) => low < value && value < high,
            }
    }

    /// Completes "a finite number ...".
    fn words(self) -> String {
        match self {
            Range::Any => String::new(),
            Range::Positive => " greater than 0".to_owned(),
            Range::NonNegative => " of 0 or more".to_owned(),
            Range::Between(low, high) => format!(" between {low} and {high} (both excluded)"),
        }
    }
}

impl Kind {
    /// What a message says was expected.
    pub(crate) fn expected(self) -> String {
        match self {
            Kind::Text => "text in quotes".to_owned(),
            Kind::Flag => "`true` or `false`".to_owned(),
            Kind::Number(range) => format!("a finite number{}", range.words()),
            Kind::Count(from) => format!("a whole number from {from} on"),
            Kind::CountOrAuto => "a whole number from 1 on, or \"auto\"".to_owned(),
            Kind::Numbers(lengths) => format!("a list of {} finite numbers", either(lengths)),
            Kind::NumberOr(lengths) => {
                format!("a finite number, or a list of {} of them", either(lengths))
            }
            Kind::Field(spec) => format!("a finite number, or {}", spec.title),
            Kind::Points => "a list of pairs of finite numbers".to_owned(),
            Kind::Pairs => "a list of pairs of a node number and a finite number".to_owned(),
            Kind::Vector(range) => format!("a list of 3 finite numbers{}", range.words()),
            Kind::Counts => "a list of 3 whole numbers from 1 on".to_owned(),
            Kind::Displacement => {
                "a list of 3 entries, each a finite number or \"free\"".to_owned()
            }
            Kind::Bound => "a list of 3 entries, each a number or \"inf\"".to_owned(),
            Kind::Names => "the name of a set in quotes, or a list of names".to_owned(),
            Kind::NodeOrSet => "a node number, or the name of a node set in quotes".to_owned(),
            Kind::NodeNumbers => "a list of node numbers".to_owned(),
            Kind::Choice(names) => format!("one of {}", quoted(names)),
            Kind::Choices(names) => format!("a list of some of {}", quoted(names)),
            Kind::Table(spec) => format!("a table {}", spec.title),
            Kind::Tables(spec) => format!(
                "one or more tables, each headed {} in double brackets",
                spec.title
            ),
        }
    }
}

/// `3 or 6`.
fn either(lengths: &[usize]) -> String {
    let words: Vec<String> = lengths.iter().map(usize::to_string).collect();
    words.join(" or ")
}

/// What the format of the case file names and this version cannot do: the key with its path, the value it is about
/// (empty: any), what to do. Such input is refused by name, never ignored. Building the feature removes the line here.
pub(crate) const NOT_YET: &[(&str, &str, &str)] = &[
    (
        "analysis.type",
        "thermal",
        "the analysis available is \"static\"",
    ),
    (
        "analysis.type",
        "modal",
        "the analysis available is \"static\"",
    ),
    ("constraint.temperature", "", "thermal analysis is to come"),
    ("load.heat_flux", "", "thermal analysis is to come"),
    ("load.heat_source", "", "thermal analysis is to come"),
    ("load.film", "", "thermal analysis is to come"),
    ("parallel.balance", "measured", "use \"cells\""),
    (
        "output.report",
        "true",
        "leave it out or write `report = false`",
    ),
];

/// Whether [`NOT_YET`] refuses this value of this key.
pub(crate) fn is_available(path: &str, key: &str, value: &str) -> bool {
    let refuses = |&(name, refused, _): &(&str, &str, &str)| {
        name.rsplit_once('.') == Some((path, key)) && refused == value
    };
    !NOT_YET.iter().any(refuses)
}

/// Whether the table of that path (empty: the top) has the key.
pub(crate) fn is_key(path: &str, key: &str) -> bool {
    let mut found = false;
    visit_tables(&super::tables::ROOT, &mut |spec| {
        found |= spec.path == path && spec.keys.iter().any(|k| k.name == key);
    });
    found
}

/// Calls `visit` for every table of the case file, the top first.
pub(crate) fn visit_tables(spec: &'static TableSpec, visit: &mut impl FnMut(&'static TableSpec)) {
    visit(spec);
    for key in spec.keys {
        if let Kind::Table(inner) | Kind::Tables(inner) | Kind::Field(inner) = key.kind {
            visit_tables(inner, visit);
        }
    }
}
