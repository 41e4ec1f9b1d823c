//! `midturn config`: every value and where it came from. What it prints is itself a valid
//! configuration file. Secrets are in no layer, so there is none that it could show.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{Config, Entry, Origin, keys};
use crate::env::Env;

/// Which providers' keys are set; never what they are.
#[derive(Debug, Clone)]
pub struct Keys(Vec<(String, bool)>);

impl Keys {
    /// Looks which are set.
    pub fn of(config: &Config, env: &Env) -> Self {
        let look = |name: String| {
            let is_set = env.is_set(&name);
            (name, is_set)
        };
        Self(config.key_variables().into_iter().map(look).collect())
    }

    /// Each variable, and whether it is set.
    pub fn each(&self) -> impl Iterator<Item = (&str, bool)> {
        self.0.iter().map(|(name, is_set)| (name.as_str(), *is_set))
    }
}

/// For people: a line per key, as it would stand in a file, then the files and the keys.
pub fn shown(config: &Config, keys_set: &Keys) -> String {
    let lines: Vec<(String, String)> = config
        .entries
        .iter()
        .map(|(key, entry)| (assignment(key, &entry.value), entry.origin.to_string()))
        .collect();
    let width = lines.iter().map(|(line, _)| line.chars().count()).filter(|n| *n <= 60).max().unwrap_or(0);
    let mut text = String::new();
    for (line, origin) in &lines {
        let _ = writeln!(text, "{line:width$}  # {origin}");
    }
    for note in &config.notes {
        let _ = writeln!(text, "# note: {note}");
    }
    for looked in &config.looked {
        let found = if looked.found { "read" } else { "not there" };
        let _ = writeln!(text, "# file {}: {found}", looked.path.display());
    }
    for (name, is_set) in &keys_set.0 {
        let _ = writeln!(text, "# environment {name}: {}", if *is_set { "set" } else { "not set" });
    }
    text
}

fn assignment(key: &str, value: &Value) -> String {
    let quoted = |segments: Vec<&str>| {
        let segments: Vec<String> = segments.into_iter().map(quoted_if_needed).collect();
        segments.join(".")
    };
    let key = keys::free(key).map_or_else(|| key.to_owned(), quoted);
    match value {
        Value::Null => format!("# {key} is not set"),
        value => format!("{key} = {value}"),
    }
}

fn quoted_if_needed(name: &str) -> String {
    let is_bare = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if is_bare { name.to_owned() } else { Value::from(name).to_string() }
}

/// For programs: the same as one JSON object.
pub fn shown_as_json(config: &Config, keys_set: &Keys) -> Value {
    let values: serde_json::Map<String, Value> =
        config.entries.iter().map(|(key, entry)| (key.clone(), entry_json(entry))).collect();
    let files: Vec<Value> = config
        .looked
        .iter()
        .map(|looked| json!({"path": looked.path.display().to_string(), "found": looked.found}))
        .collect();
    let set: serde_json::Map<String, Value> =
        keys_set.0.iter().map(|(name, is_set)| (name.clone(), Value::from(*is_set))).collect();
    json!({"values": values, "files": files, "keys_set": set, "notes": config.notes})
}

fn entry_json(entry: &Entry) -> Value {
    let from = match &entry.origin {
        Origin::Default => json!({"layer": "default"}),
        Origin::File { path, line, column } => {
            json!({"layer": "file", "path": path.display().to_string(), "line": line, "column": column})
        }
        Origin::Environment(name) => json!({"layer": "environment", "variable": name}),
        Origin::Flag(name) => json!({"layer": "flag", "flag": name}),
    };
    json!({"value": entry.value, "from": from})
}
