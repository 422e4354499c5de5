//! JSON Schema of the case file, for completion and checks in editors; and its reference, for readers.
//!
//! Invariant: made from the same list of keys that the parser obeys; says nothing of its own.

mod reference;

pub use reference::case_reference;

use crate::case::keys::{Kind, Need, Range, TableSpec, is_available};
use crate::case::tables::ROOT;
use serde_json::{Map, Value, json};

/// The JSON Schema (draft 7, which the TOML editors understand) of the case file, indented.
pub fn case_schema() -> String {
    let mut schema = table(&ROOT);
    schema.insert(
        "$schema".to_owned(),
        json!("http://json-schema.org/draft-07/schema#"),
    );
    schema.insert("title".to_owned(), json!("fem-solve case file"));
    format!("{:#}\n", Value::Object(schema))
}

fn table(spec: &TableSpec) -> Map<String, Value> {
    let properties: Map<String, Value> = spec
        .keys
        .iter()
        .map(|key| {
            let mut schema = kind(spec.path, key.name, key.kind);
            schema.insert("description".to_owned(), json!(key.about));
            if let Need::Default(text) = key.need {
                schema.insert("default".to_owned(), default_value(text));
            }
            (key.name.to_owned(), Value::Object(schema))
        })
        .collect();
    let required: Vec<_> = spec
        .keys
        .iter()
        .filter(|key| key.need == Need::Required)
        .map(|key| key.name)
        .collect();
    let dependencies: Map<String, Value> = spec
        .keys
        .iter()
        .filter_map(|key| match key.need {
            Need::With(other) => Some((other.to_owned(), json!([key.name]))),
            _ => None,
        })
        .collect();
    let mut schema = object(json!({
        "type": "object",
        "description": spec.about,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    }));
    if !dependencies.is_empty() {
        schema.insert("dependencies".to_owned(), Value::Object(dependencies));
    }
    if !spec.one_of.is_empty() {
        let alternatives: Vec<_> = spec
            .one_of
            .iter()
            .map(|key| json!({ "required": [key] }))
            .collect();
        schema.insert("oneOf".to_owned(), Value::Array(alternatives));
    }
    schema
}

fn kind(path: &str, key: &str, kind: Kind) -> Map<String, Value> {
    let choice = |names: &[&str]| {
        let names: Vec<_> = names
            .iter()
            .filter(|name| is_available(path, key, name))
            .collect();
        json!({ "type": "string", "enum": names })
    };
    let three =
        |item: Value| json!({ "type": "array", "items": item, "minItems": 3, "maxItems": 3 });
    let name = json!({ "type": "string", "minLength": 1 });
    object(match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Flag if is_available(path, key, "true") => json!({ "type": "boolean" }),
        Kind::Flag => json!({ "type": "boolean", "enum": [false] }),
        Kind::Number(range) => number(range),
        Kind::Count(from) => json!({ "type": "integer", "minimum": from }),
        Kind::CountOrAuto => {
            json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "const": "auto" }] })
        }
        Kind::Vector(range) => three(number(range)),
        Kind::Numbers(lengths) => json!({ "anyOf": lists(lengths) }),
        Kind::NumberOr(lengths) => {
            let any = [vec![number(Range::Any)], lists(lengths)].concat();
            json!({ "anyOf": any })
        }
        Kind::Field(spec) => {
            let mut field = table(spec);
            field.insert("type".to_owned(), json!(["number", "object"]));
            Value::Object(field)
        }
        Kind::Pairs | Kind::Points => {
            let pair = json!({ "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": 2 });
            json!({ "type": "array", "items": pair, "minItems": 1 })
        }
        Kind::Counts => three(json!({ "type": "integer", "minimum": 1 })),
        Kind::Displacement => {
            three(json!({ "anyOf": [{ "type": "number" }, { "const": "free" }] }))
        }
        Kind::Bound => {
            three(json!({ "anyOf": [{ "type": "number" }, { "enum": ["inf", "+inf", "-inf"] }] }))
        }
        Kind::Names => {
            json!({ "anyOf": [name, { "type": "array", "items": name, "minItems": 1, "uniqueItems": true }] })
        }
        Kind::NodeOrSet => json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, name] }),
        Kind::NodeNumbers => {
            json!({ "type": "array", "items": { "type": "integer", "minimum": 1 }, "minItems": 1 })
        }
        Kind::Choice(names) => choice(names),
        Kind::Choices(names) => {
            json!({ "type": "array", "items": choice(names), "minItems": 1, "uniqueItems": true })
        }
        Kind::Table(spec) => Value::Object(table(spec)),
        Kind::Tables(spec) => json!({ "type": "array", "items": table(spec), "minItems": 1 }),
    })
}

/// Lists of numbers of these lengths.
fn lists(lengths: &[usize]) -> Vec<Value> {
    let of = |n: &usize| json!({ "type": "array", "items": { "type": "number" }, "minItems": n, "maxItems": n });
    lengths.iter().map(of).collect()
}

fn number(range: Range) -> Value {
    match range {
        Range::Any => json!({ "type": "number" }),
        Range::Positive => json!({ "type": "number", "exclusiveMinimum": 0 }),
        Range::NonNegative => json!({ "type": "number", "minimum": 0 }),
        Range::Between(low, high) => {
            json!({ "type": "number", "exclusiveMinimum": low, "exclusiveMaximum": high })
        }
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// The JSON form of a default, which the list of keys writes as TOML.
fn default_value(text: &str) -> Value {
    let table: std::result::Result<toml::Table, _> = toml::from_str(&format!("value = {text}"));
    table
        .ok()
        .and_then(|table| {
            table
                .get("value")
                .and_then(|value| serde_json::to_value(value).ok())
        })
        .unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::case_schema;
    use crate::case::keys::{Kind, Need, TableSpec, visit_tables};
    use crate::case::parse;
    use crate::case::tables::ROOT;
    use serde_json::Value;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Together these use every key. The first names a file, the second a box, the third has materials of every kind.
    const SAMPLES: [&str; 4] = [
        include_str!("case/samples/file.toml"),
        include_str!("case/samples/box.toml"),
        include_str!("case/samples/materials.toml"),
        include_str!("case/samples/steps.toml"),
    ];

    fn schema() -> Value {
        serde_json::from_str(&case_schema()).unwrap()
    }

    /// Dotted paths of all keys of a table, without indices.
    fn paths_of_table(path: &str, value: &toml::Value, out: &mut BTreeSet<String>) {
        match value {
            toml::Value::Table(table) => {
                for (key, value) in table {
                    let path = format!("{path}.{key}");
                    paths_of_table(&path, value, out);
                    out.insert(path);
                }
            }
            toml::Value::Array(items) => items
                .iter()
                .for_each(|item| paths_of_table(path, item, out)),
            _ => {}
        }
    }

    fn paths_of_schema(path: &str, schema: &Value, out: &mut BTreeSet<String>) {
        let schema = schema.get("items").unwrap_or(schema);
        for (key, value) in schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let path = format!("{path}.{key}");
            paths_of_schema(&path, value, out);
            out.insert(path);
        }
    }

    /// Says why `value` does not fit; knows the words of JSON Schema that this schema uses.
    fn fault(schema: &Value, value: &Value) -> Option<String> {
        let list = |word: &str| schema.get(word).and_then(Value::as_array);
        let bound = |word: &str| schema.get(word).and_then(Value::as_f64);
        let fits_type = match schema.get("type").and_then(Value::as_str) {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("integer") => value.is_i64(),
            Some("number") => value.is_number(),
            _ if schema.get("type").is_some() => value.is_number() || value.is_object(),
            _ => true,
        };
        let has = |key: &Value| value.get(key.as_str().unwrap()).is_some();
        let number = value.as_f64().unwrap_or(1.0);
        let bad = !fits_type
            || list("enum").is_some_and(|names| !names.contains(value))
            || schema
                .get("const")
                .is_some_and(|constant| constant != value)
            || bound("minimum").is_some_and(|low| number < low)
            || bound("exclusiveMinimum").is_some_and(|low| number <= low)
            || bound("exclusiveMaximum").is_some_and(|high| number >= high)
            || (value.is_object() && list("required").is_some_and(|keys| !keys.iter().all(has)))
            || (schema.get("dependencies").and_then(Value::as_object)).is_some_and(|all| {
                let lacks = |keys: &Value| !keys.as_array().unwrap().iter().all(has);
                all.iter()
                    .any(|(key, keys)| value.get(key).is_some() && lacks(keys))
            })
            || list("anyOf").is_some_and(|all| all.iter().all(|one| fault(one, value).is_some()))
            || list("oneOf").is_some_and(|all| {
                all.iter().filter(|one| fault(one, value).is_none()).count() != 1
            });
        if bad {
            return Some(format!("{value} does not fit {schema}"));
        }
        let inner = |(key, value): (&String, &Value)| match schema.get("properties") {
            Some(properties) => properties
                .get(key)
                .map_or(Some(format!("unknown {key}")), |s| fault(s, value)),
            None => None,
        };
        let items = value.as_array().into_iter().flatten();
        let in_items = items
            .filter_map(|item| schema.get("items").and_then(|schema| fault(schema, item)))
            .next();
        in_items.or_else(|| value.as_object().into_iter().flatten().find_map(inner))
    }

    #[test]
    fn samples_fit_the_schema_and_the_parser_and_together_use_every_key() {
        let mut used = BTreeSet::new();
        for text in SAMPLES {
            let value: toml::Value = toml::from_str(text).unwrap();
            paths_of_table("", &value, &mut used);
            assert_eq!(
                fault(&schema(), &serde_json::to_value(&value).unwrap()),
                None
            );
            parse(Path::new("case.toml"), text).unwrap();
        }
        let mut known = BTreeSet::new();
        paths_of_schema("", &schema(), &mut known);
        assert_eq!(used, known);
    }

    #[test]
    fn what_the_parser_refuses_the_schema_refuses() {
        for (old, new) in [
            ("young = 210e9", "young = 0.0"),
            ("young = 210e9", ""),
            ("poisson = 0.3", ""),
            ("poisson = 0.3", "poisson = 0.5"),
            ("tolerance = 1e-8", "tolerance = 2"),
            ("method = \"cg\"", "method = \"lu\""),
            ("pressure = 1e6", "pressure = 1e6\nforce = [0, 0, 1]"),
            ("pressure = 1e6", ""),
            ("pressure = 1e6", "presure = 1e6"),
            ("threads = 2", "threads = 0"),
        ] {
            assert!(SAMPLES[0].contains(old), "{old}");
            let text = SAMPLES[0].replacen(old, new, 1);
            assert!(parse(Path::new("case.toml"), &text).is_err(), "{new}");
            let value: toml::Value = toml::from_str(&text).unwrap();
            assert!(
                fault(&schema(), &serde_json::to_value(&value).unwrap()).is_some(),
                "{new}"
            );
        }
    }

    /// Calls `change` on the table of each sample that holds the key, for every key, and parses the result.
    fn for_every_key(
        change: impl Fn(&mut toml::Table, &'static str),
        look: impl Fn(&'static TableSpec, usize, fem_mesh::Result<crate::case::Case>),
    ) {
        let tables = |value: &toml::Value, key: &str| value.get(key).cloned();
        let mut specs = Vec::new();
        visit_tables(&ROOT, &mut |spec| specs.push(spec));
        for spec in specs
            .into_iter()
            .filter(|spec| !spec.path.is_empty() && !spec.path.contains('.'))
        {
            for (k, key) in spec.keys.iter().enumerate() {
                for text in SAMPLES {
                    let mut root: toml::Value = toml::from_str(text).unwrap();
                    let Some(mut section) = tables(&root, spec.path) else {
                        continue;
                    };
                    let table = match &mut section {
                        toml::Value::Array(items) => {
                            items.iter_mut().find(|item| item.get(key.name).is_some())
                        }
                        single => single.get(key.name).is_some().then_some(single),
                    };
                    let Some(toml::Value::Table(table)) = table else {
                        continue;
                    };
                    change(table, key.name);
                    root.as_table_mut()
                        .unwrap()
                        .insert(spec.path.to_owned(), section);
                    look(
                        spec,
                        k,
                        parse(Path::new("case.toml"), &toml::to_string(&root).unwrap()),
                    );
                }
            }
        }
    }

    #[test]
    fn every_key_is_read_and_none_ignored() {
        let date = toml::Value::Datetime("2026-11-30".parse().unwrap());
        for_every_key(
            |table, key| drop(table.insert(key.to_owned(), date.clone())),
            |spec, k, case| {
                let error = case.expect_err(spec.keys[k].name).to_string();
                assert!(
                    error.contains(&format!("`{}` is a date", spec.keys[k].name)),
                    "{error}"
                );
            },
        );
    }

    #[test]
    fn a_required_key_is_missed_and_a_default_is_what_it_says() {
        for_every_key(
            |table, key| drop(table.remove(key)),
            |spec, k, case| {
                let key = &spec.keys[k];
                let missed = case.as_ref().is_err_and(|e| {
                    e.to_string()
                        .contains(&format!("`{}` is missing in", key.name))
                });
                assert_eq!(
                    missed,
                    matches!(key.need, Need::Required | Need::With(_)),
                    "{} in {}: {case:?}",
                    key.name,
                    spec.title
                );
            },
        );
        let minimal = SAMPLES[1].split("# ---").next().unwrap();
        let expected = parse(Path::new("case.toml"), minimal).unwrap();
        let mut n = 0;
        visit_tables(&ROOT, &mut |spec| {
            if !["", "analysis", "solver", "parallel", "output", "mesh"].contains(&spec.path) {
                return;
            }
            for key in spec.keys {
                if let (Need::Default(value), false) = (
                    key.need,
                    matches!(key.kind, Kind::Table(_) | Kind::Tables(_)),
                ) {
                    let path = [spec.path, ".", key.name].concat();
                    let text = format!("{minimal}\0{}={value}", path.trim_start_matches('.'));
                    let mut case = parse(Path::new("case.toml"), &text).unwrap();
                    case.overrides.clear();
                    assert_eq!(case, expected, "{path}");
                    n += 1;
                }
            }
        });
        assert_eq!(n, 16);
    }
}
