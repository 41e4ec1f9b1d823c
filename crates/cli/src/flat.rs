//! What is nested, as a list of dotted names.

use serde_json::Value;

/// What is in a value, each by its dotted name. A list is one, unless there are tables or lists in it.
pub(crate) fn flat(value: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    gather(String::new(), value, &mut found);
    found
}

fn gather<'a>(name: String, value: &'a Value, found: &mut Vec<(String, &'a Value)>) {
    let below = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| gather(below(key), value, found)),
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            items.iter().enumerate().for_each(|(at, item)| gather(below(&at.to_string()), item, found));
        }
        _ => found.push((name, value)),
    }
}
