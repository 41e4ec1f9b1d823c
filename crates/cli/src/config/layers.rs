//! Lays the layers: every key of every layer is checked where it comes in, with its place,
//! so that what is assembled at the end can't be wrong.

use std::collections::BTreeMap;
use std::path::Path;

use midturn_core::rules::settings::{Patched, Settings};
use midturn_providers::BUILT_IN;
use serde_json::Value;

use super::authority::{self, Ruling, Whose};
use super::file::{self, Leaf};
use super::keys::{self, General, Named};
use super::providers;
use super::text::{PREFIX, nearest, secret, suggestion, variable};
use super::{Entry, Origin};
use crate::args::LayerArgs;
use crate::env::Env;
use crate::failure::Failure;
use crate::files::{Misplaced, Spot, complaint};

/// The keys with the strongest value laid so far.
pub(super) struct Layers {
    pub(super) entries: BTreeMap<String, Entry>,
    /// What a project's files say and may not, in order.
    pub(super) notes: Vec<String>,
    /// What of it is refused unless the person's own layers say something, by its key.
    refused: Vec<(String, String)>,
}

impl Layers {
    /// The first layer.
    pub(super) fn defaults() -> Self {
        let entries = keys::defaults().into_iter().map(|(key, value)| (key, Entry::unsaid(value))).collect();
        Self { entries, notes: Vec::new(), refused: Vec::new() }
    }

    /// Lays a file over what is there.
    pub(super) fn lay_file(&mut self, path: &Path, source: &str, whose: Whose) -> Result<(), Failure> {
        let complain = complaint(path);
        let leaves = file::leaves(source).map_err(complain)?;
        let mut said: BTreeMap<String, Spot> = BTreeMap::new();
        for leaf in leaves {
            let key = canonical(&leaf.key.join("."));
            self.admit_leaf(&key, &leaf).map_err(complain)?;
            if let Some(before) = said.insert(key.clone(), leaf.key_at) {
                return Err(complain((
                    leaf.key_at,
                    format!("`{key}` is set already, in line {}", before.line),
                )));
            }
            if !is_empty_table(&leaf.value) {
                self.lay_leaf(&key, leaf, path, whose);
            }
        }
        Ok(())
    }

    /// Lays what a file says, as far as the file may say it.
    fn lay_leaf(&mut self, key: &str, leaf: Leaf, path: &Path, whose: Whose) {
        let origin = |at: Spot| Origin::File { path: path.to_owned(), line: at.line, column: at.column };
        let items = match leaf.items_at.is_empty() {
            true => vec![origin(leaf.value_at)],
            false => leaf.items_at.iter().map(|at| origin(*at)).collect(),
        };
        let entry = Entry { value: leaf.value, origin: origin(leaf.value_at), items };
        let ruling = match whose {
            Whose::Person => Ruling::Taken,
            Whose::Project => self.ruling(key, &entry.value),
        };
        let place = &entry.origin;
        match ruling {
            Ruling::Taken | Ruling::Added => self.lay(key, entry),
            Ruling::Partly(value, why) => {
                self.notes.push(format!(
                    "{place}: of `{key}` `{value}` is taken from a project's file: {why} (docs/configuration.md, \"Who may loosen\")"
                ));
                self.lay(key, Entry::one(value, entry.origin));
            }
            Ruling::NotTaken(why) => self.notes.push(format!(
                "{place}: `{key}` is not taken from a project's file: {why} (docs/configuration.md, \"Who may loosen\")"
            )),
            Ruling::Refused(why) => self.refused.push((
                key.to_owned(),
                format!(
                    "{place}: `{key}` can't come from a project's file: {why}; if you want it, set it in your own \
                     configuration file{} or with --set",
                    own_variable(key).map_or_else(String::new, |name| format!(", as {name}"))
                ),
            )),
        }
    }

    /// What becomes of what a project's file says. A limit for a provider that the person hasn't got
    /// must not keep them from working.
    fn ruling(&self, key: &str, said: &Value) -> Ruling {
        match authority::ruling(key, &providers::held(key, &self.entries), said) {
            Ruling::Taken | Ruling::NotTaken(_) if providers::is_nobodys(key, &self.entries) => {
                Ruling::NotTaken("you have no provider of this name".to_owned())
            }
            ruling => ruling,
        }
    }

    /// Lays a value over what is there, or to it where the values of all layers hold.
    fn lay(&mut self, key: &str, mut entry: Entry) {
        self.lay_provider(key);
        if let Some(before) = self.entries.get(key).filter(|_| authority::adds_up(key)) {
            let all = [&before.value, &entry.value].map(authority::items).concat();
            let origins = [before.items.clone(), entry.items].concat();
            entry = Entry { value: Value::from(all), items: origins, ..entry };
        }
        self.entries.insert(key.to_owned(), entry);
    }

    /// A provider that nobody has spoken of has all keys from then on.
    fn lay_provider(&mut self, key: &str) {
        if let Some([_, name, ..]) = providers::segments(key).as_deref() {
            for (key, value) in providers::unsaid(name, None) {
                self.entries.entry(key).or_insert_with(|| Entry::unsaid(value));
            }
        }
    }

    /// Whether a file may say this.
    fn admit_leaf(&self, key: &str, leaf: &Leaf) -> Result<(), Misplaced> {
        match keys::named(key, self.entries.keys()) {
            Named::Key => keys::check(key, &leaf.value).map_err(|what| {
                let bad = keys::bad_item(key, &leaf.value);
                let (at, what) = bad.map_or((leaf.value_at, what), |(at, what)| (leaf.items_at[at], what));
                (at, format!("`{key}`: {what}"))
            }),
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
        if let Some(model) = key.strip_prefix("models.") {
            return format!(
                "unknown key `{key}`: a model (here `{}`) has context_tokens, input, output and cached, \
                 as in [models.\"PROVIDER/NAME\"]",
                model.rsplit_once('.').map_or(model, |(model, _)| model)
            );
        }
        if let Some(why) = providers::unknown(key) {
            return why;
        }
        // A key below a key is a wrong type, not a wrong name.
        if let Some((above, _)) = key.rsplit_once('.').filter(|(above, _)| self.entries.contains_key(*above))
        {
            return format!("`{above}`: invalid type: a table, expected a value");
        }
        format!("unknown key `{key}`{}", suggestion(key, self.entries.keys().map(String::as_str)))
    }

    /// Lays the environment over what is there.
    pub(super) fn lay_environment(&mut self, env: &Env) -> Result<(), Failure> {
        // The variables that everybody knows, below our own for the same keys.
        for one in BUILT_IN {
            self.lay_variable(env, one.base_url_env, &format!("providers.{}.base_url", one.name))?;
        }
        let by_name: BTreeMap<String, String> =
            self.entries.keys().filter_map(|key| Some((own_variable(key)?, key.clone()))).collect();
        let aliases = format!("{PREFIX}ALIASES_");
        for name in env.names_beginning(PREFIX) {
            let alias = name.strip_prefix(&aliases).filter(|alias| !alias.is_empty());
            let key = by_name.get(name).cloned();
            let key = key.or_else(|| alias.map(|alias| format!("aliases.{}", alias.to_ascii_lowercase())));
            match key.or_else(|| providers::of_variable(name)) {
                Some(key) => self.lay_variable(env, name, &key)?,
                None => return Err(unknown_variable(name, by_name.keys())),
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
        self.lay(key, Entry::one(value, Origin::Environment { variable: name.to_owned() }));
        Ok(())
    }

    /// Lays the flags over what is there.
    pub(super) fn lay_flags(&mut self, flags: &LayerArgs) -> Result<(), Failure> {
        for said in &flags.set {
            let (key, text) = split(said).ok_or_else(|| {
                Failure::usage(format!("--set {said}: expected KEY=VALUE, for example --set max_turns=20"))
            })?;
            let key = file::one_key(key.trim()).map_err(|why| Failure::usage(format!("--set: {why}")))?;
            self.lay_flag(&canonical(&key), text.trim(), "--set")?;
        }
        match &flags.model {
            Some(model) => self.lay_flag("model", model, "--model"),
            None => Ok(()),
        }
    }

    fn lay_flag(&mut self, key: &str, text: &str, flag: &'static str) -> Result<(), Failure> {
        let value = match keys::named(key, self.entries.keys()) {
            Named::Key => read_text(key, text).map_err(|what| format!("`{key}`: {what}")),
            Named::Table => Err(format!("`{key}` is a table of keys, not a value")),
            Named::Unknown => Err(self.unknown(key)),
        };
        let value = value.map_err(|what| Failure::usage(format!("{flag}: {what}")))?;
        self.lay(key, Entry::one(value, Origin::Flag { flag }));
        Ok(())
    }

    /// What a project's files may not say is refused where the person's own layers say nothing.
    pub(super) fn settle(&mut self) -> Result<(), Failure> {
        let is_default =
            |key: &str| self.entries.get(key).is_none_or(|entry| entry.origin == Origin::Default);
        if let Some((_, why)) = self.refused.iter().find(|(key, _)| is_default(key)) {
            return Err(Failure::usage(why.clone()));
        }
        for (key, _) in std::mem::take(&mut self.refused) {
            self.notes.push(format!("a project's file sets `{key}` too: yours holds"));
        }
        providers::settle(&mut self.entries)
    }

    /// The structs that the program works with.
    pub(super) fn assemble(&self) -> Result<(General, Settings), Failure> {
        let set = self.entries.iter().filter(|(_, entry)| !entry.value.is_null());
        let nested = keys::nest(set.map(|(key, entry)| (key.as_str(), &entry.value)));
        let (general, patch) = keys::read_types(&nested)
            .map_err(|error| Failure::usage(format!("the configuration doesn't fit together: {error}")))?;
        let mut settings = Settings::default();
        settings.patch(&patch);
        Ok((general, settings))
    }
}

/// A key and its value; what stands in quotes may have `=` in it.
pub(super) fn split(said: &str) -> Option<(&str, &str)> {
    let is_open = |text: &str| text.matches('"').count() % 2 == 1 || text.matches('\'').count() % 2 == 1;
    let outside = said.match_indices('=').find(|(at, _)| !is_open(&said[..*at]));
    let at = outside.map_or_else(|| said.find('='), |(at, _)| Some(at))?;
    Some((&said[..at], &said[at + 1..]))
}

/// The one way to write a key; `[settings]`, as scenario files have it, is another way to write
/// the top level.
pub(super) fn canonical(key: &str) -> String {
    providers::canonical(key.strip_prefix("settings.").unwrap_or(key))
}

/// The environment variable of a key that has one: headers and parameters name variables themselves.
fn own_variable(key: &str) -> Option<String> {
    let is_filled = providers::segments(key).is_some_and(|segments| segments.len() == 4);
    (!is_filled).then(|| variable(key))
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
