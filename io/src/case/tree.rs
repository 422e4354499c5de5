//! The case file as a tree of values that know where they were written.
//!
//! Invariant: knows TOML and places, but no key of the case file.

use super::{Place, located};
use fem_mesh::{Error, Result};
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Names the case file and the overrides in messages.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    pub(super) overrides: &'a [String],
}

impl Source<'_> {
    /// An input error at `place`.
    pub(super) fn error(&self, place: Place, what: impl Into<String>) -> Error {
        located(Error::input(what), self.path, self.overrides, place)
    }
}

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
    Date,
    List(Vec<Node>),
    Table(Table),
}

/// Entries in the order of the file.
pub(super) type Table = Vec<Entry>;

/// A key with its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_place: Place,
    pub(super) node: Node,
}

impl Value {
    /// How a message shows the value.
    pub(super) fn words(&self) -> String {
        match self {
            Value::Text(text) => format!("\"{text}\""),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => format!("{number:?}"),
            Value::Flag(flag) => flag.to_string(),
            Value::Date => "a date".to_owned(),
            Value::List(items) => format!("a list of {}", items.len()),
            Value::Table(_) => "a table".to_owned(),
        }
    }
}

/// Parses the text of the case file.
///
/// # Errors
/// A TOML syntax error, with its line and column.
pub(super) fn parse(source: &Source<'_>, text: &str) -> Result<Table> {
    let lines = Lines::new(text);
    let table = DeTable::parse(text).map_err(|error| {
        let place = lines.place(error.span().map_or(text.len(), |span| span.start));
        let what = format!("TOML syntax error: {}", error.message().replace('\n', ", "));
        source.error(place, what)
    })?;
    convert_table(table.get_ref(), &|offset| lines.place(offset))
        .map_err(|(place, what)| source.error(place, what))
}

/// Parses one TOML value of an override; all its parts get the same place. `None` if it is not TOML.
pub(super) fn parse_value(text: &str, place: Place) -> Option<Node> {
    let value = DeValue::parse(text).ok()?;
    let value = convert(value.get_ref(), place, &|_| place).ok()?;
    Some(Node { place, value })
}

type Located<T> = std::result::Result<T, (Place, String)>;

fn convert_table(table: &DeTable<'_>, place_of: &dyn Fn(usize) -> Place) -> Located<Table> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, item) in table {
        let place = place_of(item.span().start);
        entries.push(Entry {
            key: key.get_ref().to_string(),
            key_place: place_of(key.span().start),
            node: Node {
                place,
                value: convert(item.get_ref(), place, place_of)?,
            },
        });
    }
    entries.sort_by_key(|entry| entry.key_place);
    Ok(entries)
}

fn convert(value: &DeValue<'_>, place: Place, place_of: &dyn Fn(usize) -> Place) -> Located<Value> {
    Ok(match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(Value::Integer)
            .map_err(|_| {
                (
                    place,
                    format!("the whole number {} is too large", number.as_str()),
                )
            })?,
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map(Value::Float)
            .map_err(|_| (place, format!("{} is not a number", number.as_str())))?,
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => {
            let node = |item: &toml::Spanned<DeValue<'_>>| {
                let place = place_of(item.span().start);
                Ok(Node {
                    place,
                    value: convert(item.get_ref(), place, place_of)?,
                })
            };
            Value::List(items.iter().map(node).collect::<Located<_>>()?)
        }
        DeValue::Table(table) => Value::Table(convert_table(table, place_of)?),
    })
}

/// Finds line and column of a byte offset.
pub(super) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        Lines { text, starts }
    }

    pub(super) fn place(&self, offset: usize) -> Place {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.starts.partition_point(|&start| start <= offset);
        let column = self.text[self.starts[line - 1]..offset].chars().count() + 1;
        Place {
            source: 0,
            line,
            column,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, Source, Value, parse};
    use std::path::Path;

    #[test]
    fn columns_count_characters_not_bytes() {
        let lines = Lines::new("é = 1\r\nab = 2\n");
        let at = |offset| (lines.place(offset).line, lines.place(offset).column);
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(3), (1, 3));
        assert_eq!(at(8), (2, 1));
        assert_eq!(at(13), (2, 6));
        assert_eq!(at(15), (3, 1));
        assert_eq!(at(99), (3, 1));
    }

    #[test]
    fn entries_keep_the_order_of_the_file_and_their_places() {
        let source = Source {
            path: Path::new("case.toml"),
            overrides: &[],
        };
        let table = parse(
            &source,
            "zeta = 1\n[b]\nc = { d = 2.5 }\n[[a]]\n[[a]]\nx = 3\n",
        )
        .unwrap();
        let keys: Vec<_> = table.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["zeta", "b", "a"]);
        let Value::List(items) = &table[2].node.value else {
            panic!("a list")
        };
        assert_eq!(
            items.iter().map(|item| item.place.line).collect::<Vec<_>>(),
            [4, 5]
        );
    }

    #[test]
    fn numbers_beyond_what_we_can_hold_are_refused_with_their_place() {
        let source = Source {
            path: Path::new("case.toml"),
            overrides: &[],
        };
        let error = parse(&source, "a = 1\nb = 99999999999999999999\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "case.toml:2:5: the whole number 99999999999999999999 is too large"
        );
    }
}
