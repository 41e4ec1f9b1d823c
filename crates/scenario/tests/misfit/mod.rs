//! Holds values against the schemas that we print.

#![allow(unreachable_pub, clippy::unwrap_used, reason = "shared by test binaries, which may panic")]

use serde_json::Value;

/// As much of JSON Schema as schemars writes for these types. `None`: it fits.
pub fn misfit(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    let schema = schema.as_object()?;
    for (keyword, rule) in schema {
        if let Some(inner) = inner_misfit(root, keyword, rule, value) {
            return Some(inner);
        }
        let fits = match keyword.as_str() {
            "type" => of_type(rule, value),
            "const" => rule == value,
            "enum" => rule.as_array().unwrap().contains(value),
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
        "allOf" => rule.as_array()?.iter().find_map(|rule| misfit(root, rule, value)),
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
