//! Lays the layers: every key of every layer is checked where it comes in, with its place,
//! so that what is assembled at the end can't be wrong.

use std::collections::BTreeMap;
use std::path::Path;

use midturn_core::rules::settings::{Patched, Settings};
use serde_json::Value;

use super::file::{self, Leaf, Spot};
use super::keys::{self, General, Named};
use super::text::{PREFIX, nearest, secret, suggestion, variable};
use super::{Entry, Flags, Origin};
use crate::env::Env;
use crate::failure::Failure;

/// The variables that everybody knows, below our own for the same keys.
const USUAL: [(&str, &str); 3] = [
    ("ANTHROPIC_BASE_URL", "providers.anthropic.base_url"),
    ("OPENAI_BASE_URL", "providers.openai.base_url"),
    ("OPENAI_BASE_URL", "providers.openai-chat.base_url"),
];

/// The keys with the strongest value laid so far.
pub(super) struct Layers(BTreeMap<String, Entry>);

impl Layers {
    /// The first layer.
    pub(super) fn defaults() -> Self {
        let entry = |value| Entry { value, origin: Origin::Default };
        Self(keys::defaults().into_iter().map(|(key, value)| (key, entry(value))).collect())
    }

    /// Lays a file over what is there.
    pub(super) fn lay_file(&mut self, path: &Path, source: &str) -> Result<(), Failure> {
        let complain = |(at, what): (Spot, String)| {
            Failure::usage(format!("{}:{}:{}: {what}", path.display(), at.line, at.column))
        };
        let leaves = file::leaves(source).map_err(complain)?;
        let mut said: BTreeMap<String, Spot> = BTreeMap::new();
        for leaf in leaves {
            let key = file_key(&leaf);
            self.admit_leaf(&key, &leaf).map_err(complain)?;
            if let Some(before) = said.insert(key.clone(), leaf.key_at) {
                return Err(complain((
                    leaf.key_at,
                    format!("`{key}` is there already, in line {}", before.line),
                )));
            }
            if !is_empty_table(&leaf.value) {
                let Spot { line, column } = leaf.value_at;
                self.0.insert(
                    key,
                    Entry { value: leaf.value, origin: Origin::File { path: path.to_owned(), line, column } },
                );
            }
        }
        Ok(())
    }

    /// Whether a file may say this.
    fn admit_leaf(&self, key: &str, leaf: &Leaf) -> Result<(), (Spot, String)> {
        match keys::named(key, self.0.keys()) {
            Named::Key => {
                keys::check(key, &leaf.value).map_err(|what| (leaf.value_at, format!("`{key}`: {what}")))
            }
            Named::Table if is_empty_table(&leaf.value) => Ok(()),
            Named::Table => Err((leaf.value_at, format!("`{key}` is a table of keys, not a value"))),
            Named::Unknown => Err((leaf.key_at, self.unknown(key))),
        }
    }

    /// Why an unknown key is refused.
    fn unknown(&self, key: &str) -> String {
        if let Some(reason) = secret(key) {
            return format!("`{key}` is refused: {reason}");
        }
        // A key below a key is a wrong type, not a wrong name.
        if let Some((above, _)) = key.rsplit_once('.').filter(|(above, _)| self.0.contains_key(*above)) {
            return format!("`{above}`: invalid type: a table, expected a value");
        }
        format!("unknown key `{key}`{}", suggestion(key, self.0.keys().map(String::as_str)))
    }

    /// Lays the environment over what is there.
    pub(super) fn lay_environment(&mut self, env: &Env) -> Result<(), Failure> {
        for (name, key) in USUAL {
            self.lay_variable(env, name, key)?;
        }
        let by_name: BTreeMap<String, String> =
            self.0.keys().map(|key| (variable(key), key.clone())).collect();
        let aliases = format!("{PREFIX}ALIASES_");
        for name in env.names_beginning(PREFIX) {
            let alias = name.strip_prefix(&aliases).filter(|alias| !alias.is_empty());
            match (by_name.get(name), alias) {
                (Some(key), _) => self.lay_variable(env, name, key)?,
                (None, Some(alias)) => {
                    self.lay_variable(env, name, &format!("aliases.{}", alias.to_ascii_lowercase()))?
                }
                (None, None) => return Err(unknown_variable(name, by_name.keys())),
            }
        }
        Ok(())
    }

    fn lay_variable(&mut self, env: &Env, name: &str, key: &str) -> Result<(), Failure> {
        let Some(text) = env.text(name)? else {
            return Ok(());
        };
        let value = read_text(key, text)
            .map_err(|what| Failure::usage(format!("the environment variable {name}: {what}")))?;
        self.0.insert(key.to_owned(), Entry { value, origin: Origin::Environment(name.to_owned()) });
        Ok(())
    }

    /// Lays the flags over what is there.
    pub(super) fn lay_flags(&mut self, flags: &Flags) -> Result<(), Failure> {
        for said in &flags.set {
            let (key, text) = said.split_once('=').ok_or_else(|| {
                Failure::usage(format!("--set {said}: expected KEY=VALUE, for example --set max_turns=20"))
            })?;
            let key = without_settings(key.trim());
            self.lay_flag(key, text.trim(), "--set")?;
        }
        match &flags.model {
            Some(model) => self.lay_flag("model", model, "--model"),
            None => Ok(()),
        }
    }

    fn lay_flag(&mut self, key: &str, text: &str, flag: &'static str) -> Result<(), Failure> {
        let value = match keys::named(key, self.0.keys()) {
            Named::Key => read_text(key, text).map_err(|what| format!("`{key}`: {what}")),
            Named::Table => Err(format!("`{key}` is a table of keys, not a value")),
            Named::Unknown => Err(self.unknown(key)),
        };
        let value = value.map_err(|what| Failure::usage(format!("{flag}: {what}")))?;
        self.0.insert(key.to_owned(), Entry { value, origin: Origin::Flag(flag) });
        Ok(())
    }

    /// The structs that the program works with.
    pub(super) fn assemble(&self) -> Result<(General, Settings), Failure> {
        let set = self.0.iter().filter(|(_, entry)| !entry.value.is_null());
        let nested = keys::nest(set.map(|(key, entry)| (key.as_str(), &entry.value)));
        let (general, patch) = keys::read_types(&nested)
            .map_err(|error| Failure::usage(format!("the configuration doesn't fit together: {error}")))?;
        let mut settings = Settings::default();
        settings.patch(&patch);
        Ok((general, settings))
    }

    /// All keys with their values.
    pub(super) fn into_entries(self) -> BTreeMap<String, Entry> {
        self.0
    }
}

/// The dotted name; `[settings]`, as scenario files have it, is another way to write the top level.
fn file_key(leaf: &Leaf) -> String {
    without_settings(&leaf.key.join(".")).to_owned()
}

fn without_settings(key: &str) -> &str {
    key.strip_prefix("settings.").unwrap_or(key)
}

fn is_empty_table(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}

fn unknown_variable<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> Failure {
    // All names begin alike; what follows is what was mistyped.
    let end = |name: &'a str| name.strip_prefix(PREFIX).unwrap_or(name);
    let rest = name.strip_prefix(PREFIX).unwrap_or(name);
    Failure::usage(match (secret(rest), nearest(rest, known.map(|known| end(known)))) {
        (Some(reason), _) => format!("the environment variable {name} is refused: {reason}"),
        (None, Some(meant)) => {
            format!("unknown environment variable {name}; the nearest known name is `{PREFIX}{meant}`")
        }
        (None, None) => format!("unknown environment variable {name}; `midturn config` lists the known keys"),
    })
}

/// A value written as text: as in a file where that fits, else the text itself.
fn read_text(key: &str, text: &str) -> Result<Value, String> {
    let as_text = Value::from(text);
    let as_written = file::one_value(text).filter(|value| keys::check(key, value).is_ok());
    match as_written {
        Some(value) => Ok(value),
        None => keys::check(key, &as_text).map(|()| as_text),
    }
}
