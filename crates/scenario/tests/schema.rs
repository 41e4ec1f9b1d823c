//! The shipped JSON Schema accepts what the reader accepts, and refuses what it refuses.

#![allow(clippy::unwrap_used, reason = "a test's own helpers may panic")]

use std::path::{Path, PathBuf};

use serde_json::Value;

/// As much of JSON Schema as schemars writes for these types. `None`: it fits.
fn misfit(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    let schema = schema.as_object()?;
    for (keyword, rule) in schema {
        if let Some(inner) = inner_misfit(root, keyword, rule, value) {
            return Some(inner);
        }
        let fits = match keyword.as_str() {
            "type" => of_type(rule, value),
            "const" => rule == value,
            "anyOf" | "oneOf" => {
                rule.as_array().unwrap().iter().any(|schema| misfit(root, schema, value).is_none())
            }
            "required" => {
                let has = |key: &Value| value.get(key.as_str().unwrap()).is_some();
                !value.is_object() || rule.as_array().unwrap().iter().all(has)
            }
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Value::as_object);
                let strange = |key: &String| known.is_none_or(|known| !known.contains_key(key));
                all(value.as_object(), |(key, value)| {
                    !strange(key) || *rule != false && misfit(root, rule, value).is_none()
                })
            }
            "minimum" => value.as_f64().is_none_or(|n| n >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|n| n <= rule.as_f64().unwrap()),
            _ => true,
        };
        if !fits {
            let shown: String = value.to_string().chars().take(300).collect();
            return Some(format!("{keyword} {rule} against {shown}"));
        }
    }
    None
}

/// A misfit of a part of the value.
fn inner_misfit(root: &Value, keyword: &str, rule: &Value, value: &Value) -> Option<String> {
    match keyword {
        "$ref" => {
            let name = rule.as_str().unwrap().rsplit('/').next().unwrap();
            misfit(root, &root["$defs"][name], value)
        }
        "items" => value.as_array()?.iter().find_map(|value| misfit(root, rule, value)),
        "properties" => rule.as_object()?.iter().find_map(|(key, rule)| misfit(root, rule, value.get(key)?)),
        _ => None,
    }
}

fn all<T: IntoIterator>(items: Option<T>, fits: impl Fn(T::Item) -> bool) -> bool {
    items.is_none_or(|items| items.into_iter().all(fits))
}

fn of_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("an unknown type {other}"),
    };
    rule.as_array().map_or_else(|| is(rule), |names| names.iter().any(is))
}

/// YAML 1.2, as the reader has it.
fn yaml(text: &str) -> Value {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).unwrap()
}

fn scenarios(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            scenarios(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
}

#[test]
fn every_scenario_of_the_house_fits_the_schema() {
    let schema = midturn_scenario::schema();
    let mut files = Vec::new();
    scenarios(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios"), &mut files);
    assert!(files.len() >= 40);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let value = yaml(&text);
        assert_eq!(misfit(&schema, &schema, &value), None, "{}", file.display());
    }
}

#[test]
fn what_the_reader_refuses_by_shape_the_schema_refuses_too() {
    let schema = midturn_scenario::schema();
    for wrong in [
        "{}",
        "{midturn: 2, agents: []}",
        "{midturn: 1, agents: [{nam: x}]}",
        "{midturn: 1, agents: [{name: x, role: boss}]}",
        "{midturn: 1, agents: [{name: x, model: [{takes: 5}]}]}",
        "{midturn: 1, agents: [{name: x, model: [{tools: [{id: a}]}]}]}",
        "{midturn: 1, agents: [], messages: [{at: 1s, urgency: soon}]}",
        "{midturn: 1, agents: [], settings: {retry: {tries: 1}}}",
        "{midturn: 1, agents: [], settings: {compact_at: 500}}",
        "{midturn: 1, agents: [], settings: {retry: {attempts: 0}}}",
        "{midturn: 1, agents: [], messages: [{at: 1s, crash: 5}]}",
        "{midturn: 1, agents: [], messages: [{after: {agent: x, text_delta: any}, stop: x}]}",
        "{midturn: 1, agents: [], expect: [{agent: x, tools: {a: done}}]}",
    ] {
        let value = yaml(wrong);
        assert!(misfit(&schema, &schema, &value).is_some(), "{wrong}");
    }
}
