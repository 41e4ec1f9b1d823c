//! The event types and their fields: what `after`, `ends_after`, `event` and `never` may name.
//!
//! A misspelt field or value in `never` would hold for ever, so both are checked, against the
//! schema of the engine's own type: a new event, or a new field of one, can't be forgotten
//! here. What is live only is no event of a replay.

use std::sync::LazyLock;

use midturn_core::rules::event::{EventKind, LiveKind, Place};
use midturn_core::rules::time::Span;
use serde_json::{Value, json};

use crate::error::one_of;

/// The types and what each of their fields may be.
struct Vocabulary {
    /// What schemas refer to.
    shared: Value,
    types: Vec<(String, Value)>,
    live: Vec<String>,
}

static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| {
    let recorded = schemars::schema_for!(EventKind).to_value();
    let live = schemars::schema_for!(LiveKind).to_value();
    Vocabulary {
        types: variants(&recorded),
        live: variants(&live).into_iter().map(|(name, _)| name).collect(),
        shared: recorded.get("$defs").cloned().unwrap_or_default(),
    }
});

/// The variants of a tagged enum, each with its fields but for the tag.
fn variants(schema: &Value) -> Vec<(String, Value)> {
    let variants = schema["oneOf"].as_array().into_iter().flatten();
    let variant = |variant: &Value| {
        let mut fields = variant["properties"].as_object()?.clone();
        let name = fields.remove("type")?["const"].as_str()?.to_owned();
        Some((name, Value::Object(fields)))
    };
    variants.filter_map(variant).collect()
}

/// The fields that every event may have, and what they may be.
static COMMON: LazyLock<Value> = LazyLock::new(|| {
    let mut fields = schemars::schema_for!(Place).to_value()["properties"].take();
    fields["v"] = json!({"type": "integer"});
    fields["seq"] = json!({"type": "integer"});
    // An instant may be written as a duration.
    fields["t"] = json!({"anyOf": [{"type": "number"}, {"$ref": "#/$defs/Duration"}]});
    fields
});

/// The names of all types.
pub(crate) fn type_names() -> impl Iterator<Item = &'static str> {
    VOCABULARY.types.iter().map(|(name, _)| name.as_str())
}

/// The name of a type, if there is one of this name.
pub(crate) fn type_of(event: &str) -> Option<&'static str> {
    type_names().find(|name| *name == event)
}

/// Whether a type is told only while it happens.
pub(crate) fn is_live(event: &str) -> bool {
    VOCABULARY.live.iter().any(|name| name == event)
}

/// Whether an event of this type can be the session's, and no agent's.
pub(crate) fn is_of_session(event: &str) -> bool {
    matches!(event, "session_started" | "session_resumed" | "limit_raised")
}

/// The fields that an event of the type may have.
pub(crate) fn fields_of(event: &str) -> impl Iterator<Item = &'static str> {
    let own = VOCABULARY.types.iter().find(|(name, _)| name == event).map(|(_, fields)| fields);
    own.into_iter()
        .chain([&*COMMON])
        .filter_map(Value::as_object)
        .flat_map(|fields| fields.keys())
        .map(String::as_str)
}

/// What the value of a field should be, if it is something that no such event ever has.
pub(crate) fn misfit(event: &str, field: &str, value: &Value) -> Option<String> {
    let own = VOCABULARY.types.iter().find(|(name, _)| name == event)?;
    let schema = own.1.get(field).or_else(|| COMMON.get(field))?;
    expected(schema, value)
}

/// What the schema wants in the place of the value; `None`: it fits. Of an object that a file
/// names, some fields are enough.
fn expected(schema: &Value, value: &Value) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return match (name, value) {
            ("Duration", Value::String(text)) => {
                text.parse::<Span>().err().map(|_| "a duration such as 1.5s".to_owned())
            }
            _ => expected(&VOCABULARY.shared[name], value),
        };
    }
    if let Some(choices) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
        let fits = choices.iter().any(|choice| expected(choice, value).is_none());
        return (!fits).then(|| in_words(schema, value));
    }
    let is_word = |words: &Value| words.as_array().is_some_and(|words| words.contains(value));
    match (&schema["const"], &schema["enum"]) {
        (Value::Null, Value::Null) => {}
        (only, words) => return (only != value && !is_word(words)).then(|| in_words(schema, value)),
    }
    if !of_type(&schema["type"], value) {
        return Some(in_words(schema, value));
    }
    inner(schema, value)
}

/// What a part of the value should be.
fn inner(schema: &Value, value: &Value) -> Option<String> {
    match (value, schema["properties"].as_object()) {
        (Value::Object(fields), Some(known)) => {
            fields.iter().find_map(|(name, value)| match known.get(name) {
                Some(schema) => expected(schema, value).map(|what| format!("{what} as `{name}`")),
                None => Some(format!(
                    "{} in the place of `{name}`",
                    one_of(name, known.keys().map(String::as_str))
                )),
            })
        }
        (Value::Array(items), _) => items.iter().find_map(|item| expected(&schema["items"], item)),
        _ => None,
    }
}

fn of_type(types: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        _ => value.is_null(),
    };
    match types {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        // A schema without a type takes anything.
        _ => true,
    }
}

/// What a schema takes, for people.
fn in_words(schema: &Value, value: &Value) -> String {
    let mut words = Vec::new();
    let mut kinds = Vec::new();
    gather(schema, &mut words, &mut kinds);
    if !words.is_empty() {
        return one_of(value.as_str().unwrap_or_default(), words);
    }
    kinds.dedup();
    if kinds.is_empty() { "another value".to_owned() } else { kinds.join(" or ") }
}

fn gather<'a>(schema: &'a Value, words: &mut Vec<&'a str>, kinds: &mut Vec<&'static str>) {
    words.extend(schema["const"].as_str());
    words.extend(schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str));
    let types =
        schema["type"].as_array().into_iter().flatten().chain([&schema["type"]]).filter_map(Value::as_str);
    kinds.extend(types.map(|name| match name {
        "object" => "a map",
        "array" => "a list",
        "string" => "a text",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        _ => "nothing",
    }));
    let shared = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    let choices = schema["oneOf"].as_array().into_iter().chain(schema["anyOf"].as_array()).flatten();
    for schema in choices.chain(shared.map(|name| &VOCABULARY.shared[name])) {
        gather(schema, words, kinds);
    }
}

#[cfg(test)]
mod tests;
