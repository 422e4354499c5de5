//! Reads the tables of a case file against their [`TableSpec`]: unknown keys, types, ranges, choices.
//!
//! Invariant: what a key means is not known here, only how its value must look.

use super::NodeRef;
use super::Place;
use super::keys::{self, Key, Kind, NOT_YET, Range, TableSpec};
use super::tables::ROOT;
use super::tree::{Entry, Node, Source, Table, Value};
use super::words::{quoted, suggest_key, suggest_name, ticked};
use fem_mesh::{Error, Result};

/// One table of the case file, free of unknown keys. Every getter gives `None` for a key left out.
pub(super) struct Section<'a> {
    source: Source<'a>,
    spec: &'static TableSpec,
    table: &'a Table,
    /// Place of its header.
    pub(super) place: Place,
}

impl<'a> Section<'a> {
    /// Opens the top of the file.
    ///
    /// # Errors
    /// The case asks for what is not built yet; there is an unknown key.
    pub(super) fn root(source: Source<'a>, table: &'a Table) -> Result<Self> {
        refuse_not_yet(&source, "", table)?;
        Self::open(
            source,
            &ROOT,
            table,
            Place {
                source: 0,
                line: 1,
                column: 1,
            },
        )
    }

    fn open(
        source: Source<'a>,
        spec: &'static TableSpec,
        table: &'a Table,
        place: Place,
    ) -> Result<Self> {
        match table
            .iter()
            .find(|entry| !spec.keys.iter().any(|key| key.name == entry.key))
        {
            Some(entry) => Err(unknown_key(&source, spec, entry)),
            None => Ok(Section {
                source,
                spec,
                table,
                place,
            }),
        }
    }

    /// An input error at `place`.
    pub(super) fn error(&self, place: Place, what: impl Into<String>) -> Error {
        self.source.error(place, what)
    }

    /// The heading of the table, for messages.
    pub(super) fn title(&self) -> &'static str {
        self.spec.title
    }

    /// Place of the value of `key`, or of the table if the key is left out.
    pub(super) fn place_of(&self, key: &str) -> Place {
        self.node(key).map_or(self.place, |node| node.place)
    }

    /// Whether `key` is given.
    pub(super) fn has(&self, key: &str) -> bool {
        self.node(key).is_some()
    }

    /// Whether `key` is given as this number.
    pub(super) fn is_number(&self, key: &str, value: f64) -> bool {
        self.node(key).and_then(|node| number(node, Range::Any)) == Some(value)
    }

    /// `value`, or an error that says that `key` is missing.
    pub(super) fn required<T>(&self, key: &'static str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| {
            let (what, expected) = match self.kind(key) {
                Some(kind @ (Kind::Table(spec) | Kind::Tables(spec))) => {
                    (format!("there is no {}", spec.title), kind.expected())
                }
                Some(kind) => (
                    format!("`{key}` is missing in {}", self.spec.title),
                    format!("`{key}` with {}", kind.expected()),
                ),
                None => (format!("`{key}` is missing"), String::new()),
            };
            self.error(self.place, what).expected(expected)
        })
    }

    /// The one key given of those of which exactly one must be given, and its place.
    pub(super) fn exactly_one(&self) -> Result<(&'a str, Place)> {
        let given: Vec<_> = self
            .table
            .iter()
            .filter(|entry| self.spec.one_of.contains(&entry.key.as_str()))
            .collect();
        match given[..] {
            [entry] => Ok((&entry.key, entry.key_place)),
            [] => {
                let what = format!(
                    "{} has none of {}",
                    self.spec.title,
                    ticked(self.spec.one_of)
                );
                Err(self.error(self.place, what).expected("exactly one of them"))
            }
            [first, second, ..] => {
                let what = format!(
                    "{} has both `{}` and `{}`",
                    self.spec.title, first.key, second.key
                );
                let error = self.error(second.key_place, what);
                Err(error.expected(format!("exactly one of {}", ticked(self.spec.one_of))))
            }
        }
    }

    pub(super) fn text(&self, key: &'static str) -> Result<Option<String>> {
        self.get(key, |_, node| match &node.value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        })
    }

    pub(super) fn flag(&self, key: &'static str) -> Result<Option<bool>> {
        self.get(key, |_, node| match node.value {
            Value::Flag(flag) => Some(flag),
            _ => None,
        })
    }

    pub(super) fn number(&self, key: &'static str) -> Result<Option<f64>> {
        self.get(key, |kind, node| match kind {
            Kind::Number(range) => number(node, range),
            _ => None,
        })
    }

    pub(super) fn count(&self, key: &'static str) -> Result<Option<usize>> {
        self.get(key, |kind, node| match kind {
            Kind::Count(from) => count(node, from),
            _ => None,
        })
    }

    /// `Some(None)` is "auto".
    pub(super) fn count_or_auto(&self, key: &'static str) -> Result<Option<Option<usize>>> {
        self.get(key, |_, node| match &node.value {
            Value::Text(text) => (text == "auto").then_some(None),
            _ => count(node, 1).map(Some),
        })
    }

    pub(super) fn vector(&self, key: &'static str) -> Result<Option<[f64; 3]>> {
        self.get(key, |kind, node| match kind {
            Kind::Vector(range) => three(node, |item| number(item, range)),
            _ => None,
        })
    }

    /// A list of numbers of a length that the key allows.
    pub(super) fn numbers(&self, key: &'static str) -> Result<Option<Vec<f64>>> {
        self.get(key, |kind, node| match kind {
            Kind::Numbers(lengths) => numbers(node, lengths),
            Kind::NumberOr(lengths) => match number(node, Range::Any) {
                Some(number) => Some(vec![number]),
                None => numbers(node, lengths),
            },
            _ => None,
        })
    }

    /// `Ok(Err(section))` if a table describes the field.
    pub(super) fn field(
        &self,
        key: &'static str,
    ) -> Result<Option<std::result::Result<f64, Section<'a>>>> {
        let (Some(node), Some(kind)) = (self.node(key), self.kind(key)) else {
            return Ok(None);
        };
        if let (Value::Table(table), Kind::Field(spec)) = (&node.value, kind) {
            let section = Self::open(self.source, spec, table, node.place)?;
            return Ok(Some(Err(section)));
        }
        number(node, Range::Any)
            .map(|value| Some(Ok(value)))
            .ok_or_else(|| self.unfit(key, node))
    }

    /// Pairs of numbers.
    pub(super) fn points(&self, key: &'static str) -> Result<Option<Vec<[f64; 2]>>> {
        self.get(key, |_, node| match &node.value {
            Value::List(items) if !items.is_empty() => items.iter().map(point).collect(),
            _ => None,
        })
    }

    /// Pairs of a whole number and a number.
    pub(super) fn pairs(&self, key: &'static str) -> Result<Option<Vec<(u64, f64)>>> {
        self.get(key, |_, node| match &node.value {
            Value::List(items) if !items.is_empty() => items.iter().map(pair).collect(),
            _ => None,
        })
    }

    pub(super) fn counts(&self, key: &'static str) -> Result<Option<[usize; 3]>> {
        self.get(key, |_, node| three(node, |item| count(item, 1)))
    }

    /// Components; `None` is "free".
    pub(super) fn displacement(&self, key: &'static str) -> Result<Option<[Option<f64>; 3]>> {
        self.get(key, |_, node| {
            three(node, |item| match &item.value {
                Value::Text(text) => (text == "free").then_some(None),
                _ => number(item, Range::Any).map(Some),
            })
        })
    }

    /// Components; anything infinite becomes `infinite`.
    pub(super) fn bound(&self, key: &'static str, infinite: f64) -> Result<Option<[f64; 3]>> {
        self.get(key, |_, node| {
            three(node, |item| match &item.value {
                Value::Text(text) => {
                    matches!(text.as_str(), "inf" | "+inf" | "-inf").then_some(infinite)
                }
                Value::Float(number) if number.is_infinite() => Some(infinite),
                _ => number(item, Range::Any),
            })
        })
    }

    /// One name or several; none empty, none twice.
    pub(super) fn names(&self, key: &'static str) -> Result<Option<Vec<String>>> {
        let names = self.get(key, |_, node| match &node.value {
            Value::Text(text) => Some(vec![text.clone()]),
            Value::List(items) if !items.is_empty() => items.iter().map(text_of).collect(),
            _ => None,
        })?;
        if let Some(names) = &names {
            self.refuse_repetition(key, names)?;
        }
        Ok(names)
    }

    /// A node by number or by the set that it makes up.
    pub(super) fn node_or_set(&self, key: &'static str) -> Result<Option<NodeRef>> {
        self.get(key, |_, node| match &node.value {
            Value::Text(name) if !name.trim().is_empty() => Some(NodeRef::Set(name.clone())),
            _ => count(node, 1).map(|number| NodeRef::Number(number as u64)),
        })
    }

    /// Numbers of nodes; at least one.
    pub(super) fn node_numbers(&self, key: &'static str) -> Result<Option<Vec<u64>>> {
        self.get(key, |_, node| match &node.value {
            Value::List(items) if !items.is_empty() => {
                let numbers = items.iter().map(|item| count(item, 1));
                numbers.map(|number| number.map(|n| n as u64)).collect()
            }
            _ => None,
        })
    }

    /// The value that belongs to the name given.
    pub(super) fn choice<T: Copy>(
        &self,
        key: &'static str,
        names: &[(&'static str, T)],
    ) -> Result<Option<T>> {
        self.get(key, |_, node| find(node, names))
    }

    /// The values that belong to the names given; at least one, none twice.
    pub(super) fn choices<T: Copy>(
        &self,
        key: &'static str,
        names: &[(&'static str, T)],
    ) -> Result<Option<Vec<T>>> {
        let Some(node) = self.node(key) else {
            return Ok(None);
        };
        let Value::List(items) = &node.value else {
            return Err(self.unfit(key, node));
        };
        if items.is_empty() {
            return Err(self.unfit(key, node));
        }
        let given: Vec<String> = items.iter().filter_map(text_of).collect();
        self.refuse_repetition(key, &given)?;
        items
            .iter()
            .map(|item| find(item, names).ok_or_else(|| self.unfit(key, item)))
            .collect::<Result<_>>()
            .map(Some)
    }

    pub(super) fn section(&self, key: &'static str) -> Result<Option<Section<'a>>> {
        let Some(node) = self.node(key) else {
            return Ok(None);
        };
        match (&node.value, self.kind(key)) {
            (Value::Table(table), Some(Kind::Table(spec))) => {
                Self::open(self.source, spec, table, node.place).map(Some)
            }
            _ => Err(self.unfit(key, node)),
        }
    }

    pub(super) fn sections(&self, key: &'static str) -> Result<Vec<Section<'a>>> {
        let Some(node) = self.node(key) else {
            return Ok(Vec::new());
        };
        let (Value::List(items), Some(Kind::Tables(spec))) = (&node.value, self.kind(key)) else {
            return Err(self.unfit(key, node));
        };
        let open = |item: &'a Node| match &item.value {
            Value::Table(table) => Self::open(self.source, spec, table, item.place),
            _ => Err(self.unfit(key, item)),
        };
        items.iter().map(open).collect()
    }

    fn node(&self, key: &str) -> Option<&'a Node> {
        self.table
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &entry.node)
    }

    fn kind(&self, key: &str) -> Option<Kind> {
        let found: Option<&Key> = self.spec.keys.iter().find(|spec| spec.name == key);
        debug_assert!(
            found.is_some(),
            "{key} is not in the list of keys of {}",
            self.spec.title
        );
        found.map(|spec| spec.kind)
    }

    fn get<T>(
        &self,
        key: &'static str,
        read: impl Fn(Kind, &Node) -> Option<T>,
    ) -> Result<Option<T>> {
        let (Some(node), Some(kind)) = (self.node(key), self.kind(key)) else {
            return Ok(None);
        };
        read(kind, node)
            .map(Some)
            .ok_or_else(|| self.unfit(key, node))
    }

    /// The error for a value that is not what `key` expects.
    fn unfit(&self, key: &str, node: &Node) -> Error {
        let Some(kind) = self.kind(key) else {
            return self.error(node.place, format!("`{key}` is unknown"));
        };
        let (shown, place) = offending_part(kind, node);
        let error = self.error(place, format!("`{key}` {shown}"));
        match kind {
            Kind::Choice(names) | Kind::Choices(names) => {
                let available = |name: &&str| keys::is_available(self.spec.path, key, name);
                let names: Vec<_> = names.iter().copied().filter(available).collect();
                let form = if matches!(kind, Kind::Choices(_)) {
                    "a list of some of"
                } else {
                    "one of"
                };
                let error = error.expected(format!("{form} {}", quoted(&names)));
                match &node.value {
                    Value::Text(text) => suggest_name(error, text, &names),
                    _ => error,
                }
            }
            _ => error.expected(kind.expected()),
        }
    }

    fn refuse_repetition(&self, key: &str, names: &[String]) -> Result<()> {
        let place = self.place_of(key);
        if names.iter().any(|name| name.trim().is_empty()) {
            return Err(self.error(place, format!("`{key}` has an empty name")));
        }
        let repeated = names
            .iter()
            .enumerate()
            .find(|(k, name)| names[..*k].contains(name));
        match repeated {
            Some((_, name)) => Err(self
                .error(place, format!("`{key}` names \"{name}\" twice"))
                .expected("each name once")),
            None => Ok(()),
        }
    }
}

/// What is wrong with a value, and where: a list of the right length is judged entry by entry.
fn offending_part(kind: Kind, node: &Node) -> (String, Place) {
    let Value::List(items) = &node.value else {
        return (format!("is {}", node.value.words()), node.place);
    };
    let fits = |item: &Node| match kind {
        Kind::Vector(range) => number(item, range).is_some(),
        Kind::Counts => count(item, 1).is_some(),
        Kind::Displacement => {
            matches!(&item.value, Value::Text(t) if t == "free")
                || number(item, Range::Any).is_some()
        }
        Kind::Bound => {
            matches!(&item.value, Value::Text(t) if t == "inf")
                || number(item, Range::Any).is_some()
        }
        Kind::Numbers(_) | Kind::NumberOr(_) => number(item, Range::Any).is_some(),
        Kind::Pairs => pair(item).is_some(),
        Kind::Points => point(item).is_some(),
        Kind::NodeNumbers => count(item, 1).is_some(),
        Kind::Names | Kind::Choices(_) => matches!(item.value, Value::Text(_)),
        _ => true,
    };
    match items.iter().find(|item| !fits(item)) {
        Some(item) => (format!("contains {}", item.value.words()), item.place),
        None if items.is_empty() => ("is an empty list".to_owned(), node.place),
        None => (format!("is {}", node.value.words()), node.place),
    }
}

fn number(node: &Node, range: Range) -> Option<f64> {
    let number = match node.value {
        Value::Integer(number) => number as f64,
        Value::Float(number) => number,
        _ => return None,
    };
    range.contains(number).then_some(number)
}

fn count(node: &Node, from: i64) -> Option<usize> {
    match node.value {
        Value::Integer(number) if number >= from => usize::try_from(number).ok(),
        _ => None,
    }
}

fn numbers(node: &Node, lengths: &[usize]) -> Option<Vec<f64>> {
    match &node.value {
        Value::List(items) if lengths.contains(&items.len()) => {
            items.iter().map(|item| number(item, Range::Any)).collect()
        }
        _ => None,
    }
}

fn point(node: &Node) -> Option<[f64; 2]> {
    let both = numbers(node, &[2])?;
    Some([both[0], both[1]])
}

fn pair(node: &Node) -> Option<(u64, f64)> {
    let Value::List(items) = &node.value else {
        return None;
    };
    let [id, value] = &items[..] else { return None };
    Some((count(id, 0)? as u64, number(value, Range::Any)?))
}

fn three<T>(node: &Node, read: impl Fn(&Node) -> Option<T>) -> Option<[T; 3]> {
    let Value::List(items) = &node.value else {
        return None;
    };
    let [x, y, z] = &items[..] else { return None };
    Some([read(x)?, read(y)?, read(z)?])
}

fn text_of(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}

fn find<T: Copy>(node: &Node, names: &[(&'static str, T)]) -> Option<T> {
    let Value::Text(text) = &node.value else {
        return None;
    };
    names
        .iter()
        .find(|(name, _)| name == text)
        .map(|&(_, value)| value)
}

/// Refuses what the format names but this version cannot do.
fn refuse_not_yet(source: &Source<'_>, path: &str, table: &Table) -> Result<()> {
    for entry in table {
        let path = if path.is_empty() {
            entry.key.clone()
        } else {
            format!("{path}.{}", entry.key)
        };
        let value = match &entry.node.value {
            Value::Text(text) => text.clone(),
            other => other.words(),
        };
        let refused = NOT_YET
            .iter()
            .find(|(name, refused, _)| *name == path && (refused.is_empty() || *refused == value));
        if let Some((name, refused, advice)) = refused {
            let what = if refused.is_empty() {
                format!("`{name}`")
            } else {
                format!("`{name} = {}`", entry.node.value.words())
            };
            let error = source.error(
                entry.key_place,
                format!("{what} is not available in this version"),
            );
            return Err(error.advice(*advice));
        }
        match &entry.node.value {
            Value::Table(inner) => refuse_not_yet(source, &path, inner)?,
            Value::List(items) => {
                for item in items {
                    if let Value::Table(inner) = &item.value {
                        refuse_not_yet(source, &path, inner)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn unknown_key(source: &Source<'_>, spec: &'static TableSpec, entry: &Entry) -> Error {
    let names: Vec<_> = spec.keys.iter().map(|key| key.name).collect();
    let error = source.error(
        entry.key_place,
        format!("unknown key `{}` in {}", entry.key, spec.title),
    );
    let error = error.expected(format!("one of {}", ticked(&names)));
    let mut home = None;
    keys::visit_tables(&ROOT, &mut |table| {
        if home.is_none() && table.keys.iter().any(|key| key.name == entry.key) {
            home = Some(table);
        }
    });
    match home {
        Some(home) if home.path.is_empty() => error.advice(format!(
            "`{}` belongs at the top of the file, before the first heading",
            entry.key
        )),
        Some(home) => error.advice(format!("`{}` belongs in {}", entry.key, home.title)),
        None => suggest_key(error, &entry.key, &names),
    }
}
