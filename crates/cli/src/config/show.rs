//! `midturn config`: every value and where it came from. What it prints is itself a valid
//! configuration file. Secrets are in no layer, so there is none that it could show.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

use super::{Config, keys};
use crate::env::Env;

/// Which variables of providers' keys are set; never what they are.
pub(crate) fn keys_set(config: &Config, env: &Env) -> BTreeMap<String, bool> {
    let look = |name: String| {
        let is_set = env.is_set(&name);
        (name, is_set)
    };
    config.key_variables().into_iter().map(look).collect()
}

/// For people: a line per key, as it would stand in a file, then the files and the keys.
pub(crate) fn shown(config: &Config, keys_set: &BTreeMap<String, bool>) -> String {
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
    for (name, is_set) in keys_set {
        let _ = writeln!(text, "# environment {name}: {}", if *is_set { "set" } else { "not set" });
    }
    text
}

/// A key and its value as a file has them.
pub(super) fn assignment(key: &str, value: &Value) -> String {
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
pub(crate) fn shown_as_json(config: &Config, keys_set: &BTreeMap<String, bool>) -> Value {
    let Config { entries, looked, notes, .. } = config;
    json!({"values": entries, "files": looked, "keys_set": keys_set, "notes": notes})
}
