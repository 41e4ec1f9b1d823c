//! The JSON Schema of `midturn.toml` (`midturn schema config`), for editors. Settings have theirs where they are
//! defined; of the other keys it is made from the same table as the page and `midturn init`.

use midturn_core::rules::settings::SettingsPatch;
use midturn_core::rules::time::Span;
use serde_json::{Map, Value, json};

use super::meaning::meaning;
use super::{authority, keys, template};

/// The schema.
pub(crate) fn schema() -> Value {
    let mut schema = schemars::schema_for!(SettingsPatch).to_value();
    let settings = schema["properties"].clone();
    for (key, value) in template::keys() {
        let first = key.split('.').next().unwrap_or(&key);
        if settings.get(first).is_none() {
            let segments = keys::free(&key).unwrap_or_else(|| key.split('.').collect());
            place(&mut schema, &segments, leaf(&key, &value));
        }
    }
    schema["properties"]["settings"] =
        json!({"type": "object", "description": "The same as the top level.", "properties": settings});
    schema["title"] = "midturn.toml".into();
    schema["description"] = "The configuration of Midturn.".into();
    schema
}

/// Puts a key's schema where its segments lead; a name that somebody chose stands for every other.
fn place(table: &mut Value, segments: &[&str], leaf: Value) {
    let [first, rest @ ..] = segments else {
        *table = leaf;
        return;
    };
    let properties = &mut table["properties"];
    if properties.is_null() {
        *properties = Value::Object(Map::new());
    }
    let below = &mut properties[*first];
    if below.is_null() && !rest.is_empty() {
        *below = json!({"type": "object", "additionalProperties": false});
    }
    match rest {
        [_, deeper @ ..] if is_free(first) => {
            let every = &mut below["additionalProperties"];
            if !every.is_object() {
                *every = if deeper.is_empty() {
                    Value::Null
                } else {
                    json!({"type": "object", "additionalProperties": false})
                };
            }
            place(every, deeper, leaf);
        }
        _ => place(below, rest, leaf),
    }
}

fn is_free(table: &str) -> bool {
    ["aliases", "headers", "models", "providers", "query"].contains(&table)
}

/// What a key takes, as far as its default or its example says.
fn leaf(key: &str, value: &Value) -> Value {
    let mut leaf = match value {
        _ if key == "sandbox.network" => {
            json!({"type": ["boolean", "array", "string"], "items": {"type": "string"}})
        }
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(number) if number.is_f64() => json!({"type": ["number", "string"], "minimum": 0}),
        Value::Number(_) => json!({"type": "integer", "minimum": 0}),
        Value::Array(_) => json!({"type": ["array", "string"], "items": {"type": "string"}}),
        Value::String(text) => match (authority::words(key), text.parse::<Span>()) {
            (Some(words), _) => json!({"enum": words}),
            (None, Ok(_)) => json!({"type": "string", "pattern": "^(0|[0-9]+(\\.[0-9]+)?(us|ms|s|m|h))$"}),
            (None, Err(_)) => json!({"type": "string"}),
        },
        _ => json!({}),
    };
    leaf["description"] = meaning(key).unwrap_or_default().into();
    leaf
}
