//! Reads the case file and applies the overrides `--set KEY=VALUE` of the command line.
//!
//! The overrides travel behind the text of the file, each after a NUL character (which TOML forbids), so that one
//! string is what rank 0 sends to the others and the places in the file stay those that the user sees.
//!
//! Invariant: knows no key of the case file; an override of a wrong key is found like one in the file.

use super::Place;
use super::tree::{Entry, Lines, Node, Source, Table, Value, parse_value};
use fem_mesh::{Error, Result};
use std::path::Path;

/// Separates the overrides from the text and from one another.
pub(super) const SEPARATOR: char = '\0';

const SYNTAX: &str = "KEY=VALUE, such as solver.tolerance=1e-6 or load.0.pressure=2.0";

/// Reads the case file at `path` and puts the overrides (`KEY=VALUE`) behind its text: the string that
/// [`super::parse`] takes. For rank 0 alone; the other ranks get the string by a broadcast.
///
/// # Errors
/// The file is missing, a directory, a deck or a mesh, unreadable or not UTF-8; an override has no key or no value.
pub fn load_text(path: &Path, overrides: &[String]) -> Result<String> {
    let source = Source { path, overrides };
    refuse_what_is_no_case(path)?;
    let bytes = std::fs::read(path)
        .map_err(|error| Error::input(format!("cannot read it: {error}")).in_file(path))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|&&b| b == b'\n')
            .count()
            + 1;
        let error = Error::input("the file is not UTF-8 text")
            .in_file(path)
            .at_line(line);
        error
            .expected("a case file in TOML")
            .advice("save it with the encoding UTF-8")
    })?;
    if let Some(at) = text.find(SEPARATOR) {
        let place = Lines::new(&text).place(at);
        return Err(source
            .error(place, "there is a NUL character")
            .expected("a case file in TOML, which is text"));
    }
    with_overrides(path, text, overrides)
}

/// Puts the overrides behind the text of a case, as [`load_text`] does.
///
/// # Errors
/// An override has no key or no value.
pub fn with_overrides(path: &Path, mut text: String, overrides: &[String]) -> Result<String> {
    let source = Source { path, overrides };
    for (k, item) in overrides.iter().enumerate() {
        split(&source, k + 1, item)?;
        text.push(SEPARATOR);
        text.push_str(item);
    }
    Ok(text)
}

fn refuse_what_is_no_case(path: &Path) -> Result<()> {
    let error = |what: &str| {
        Err(Error::input(what)
            .in_file(path)
            .expected("a case file in TOML"))
    };
    if path.is_dir() {
        let case = path.join("case.toml");
        return error("this is a directory").map_err(|error| {
            if case.is_file() {
                error.advice(format!("did you mean {}?", case.display()))
            } else {
                error
            }
        });
    }
    if !path.exists() {
        return error("there is no such file")
            .map_err(|error| error.advice("check the path and the working directory"));
    }
    let extension = path
        .extension()
        .map(|e| e.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    match extension.as_str() {
        "msh" | "vtu" | "vtk" | "unv" | "bdf" | "nas" | "med" | "exo" | "e" => {
            error("this is a mesh file").map_err(|error| {
                error.advice("write a case file that names it: `file = \"...\"` in [mesh]")
            })
        }
        _ => Ok(()),
    }
}

/// Sets the value of override `k` (from 1) in the tree of the case file.
///
/// # Errors
/// The override is malformed, or leads through something that is no table and no list.
pub(super) fn apply(source: &Source<'_>, k: usize, root: &mut Table) -> Result<()> {
    let (path, value) = split(source, k, &source.overrides[k - 1])?;
    set_in_table(root, &path, value).map_err(|what| source.error(place(k), what).expected(SYNTAX))
}

fn place(k: usize) -> Place {
    Place {
        source: k,
        line: 0,
        column: 0,
    }
}

/// Key segments and value of an override.
fn split<'a>(source: &Source<'_>, k: usize, text: &'a str) -> Result<(Vec<&'a str>, Node)> {
    let error = |what: &str| source.error(place(k), what).expected(SYNTAX);
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| error("the override has no `=`"))?;
    let path: Vec<_> = key.split('.').map(str::trim).collect();
    if path.iter().any(|segment| segment.is_empty()) {
        return Err(error(
            "the key of the override is empty or has an empty part",
        ));
    }
    let value = value.trim();
    if value.is_empty() {
        return Err(error("the override has no value"));
    }
    match parse_value(value, place(k)) {
        Some(node) => Ok((path, node)),
        None if value.starts_with(['[', '{', '"', '\'']) => {
            Err(error("the value of the override is not valid TOML"))
        }
        // The shell takes the quotes off a text.
        None => Ok((
            path,
            Node {
                place: place(k),
                value: Value::Text(value.to_owned()),
            },
        )),
    }
}

type Outcome = std::result::Result<(), String>;

fn set_in_table(table: &mut Table, path: &[&str], value: Node) -> Outcome {
    let Some((&key, rest)) = path.split_first() else {
        return Ok(());
    };
    let found = table.iter().position(|entry| entry.key == key);
    if rest.is_empty() {
        let entry = Entry {
            key: key.to_owned(),
            key_place: value.place,
            node: value,
        };
        match found {
            Some(at) => table[at] = entry,
            None => table.push(entry),
        }
        return Ok(());
    }
    let at = found.unwrap_or_else(|| {
        let node = Node {
            place: value.place,
            value: Value::Table(Vec::new()),
        };
        table.push(Entry {
            key: key.to_owned(),
            key_place: value.place,
            node,
        });
        table.len() - 1
    });
    set_in_node(&mut table[at].node, key, rest, value)
}

fn set_in_node(node: &mut Node, name: &str, rest: &[&str], value: Node) -> Outcome {
    match &mut node.value {
        Value::Table(inner) => set_in_table(inner, rest, value),
        Value::List(items) => set_in_list(items, name, rest, value),
        other => Err(format!(
            "`{name}` is {} and has no key `{}`",
            other.words(),
            rest[0]
        )),
    }
}

/// The segment after a list is an index from 0, or the `name` of an entry.
fn set_in_list(items: &mut [Node], name: &str, path: &[&str], value: Node) -> Outcome {
    let (segment, rest) = (path[0], &path[1..]);
    let n = items.len();
    let index = match segment.parse::<usize>() {
        Ok(index) => (index < n).then_some(index),
        Err(_) => items.iter().position(|item| is_named(item, segment)),
    };
    let Some(index) = index else {
        return Err(format!(
            "`{name}` has {n} entries, numbered from 0, and none is `{segment}`"
        ));
    };
    if rest.is_empty() {
        items[index] = value;
        return Ok(());
    }
    set_in_node(&mut items[index], segment, rest, value)
}

fn is_named(item: &Node, name: &str) -> bool {
    let Value::Table(table) = &item.value else {
        return false;
    };
    table.iter().any(|entry| {
        entry.key == "name" && matches!(&entry.node.value, Value::Text(text) if text == name)
    })
}
