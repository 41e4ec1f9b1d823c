//! What may stand in a configuration: the keys, their types and defaults. The agents'
//! settings are core's own struct; this file adds what only the command line needs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use midturn_core::rules::settings::{Patched, Settings, SettingsPatch};
use midturn_core::rules::time::Span;
use midturn_providers::{BUILT_IN, Endpoint};
use midturn_tools::workplace::{Isolation, TURNS_KEPT};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::folder::Folder;
use super::notify::Notify;
use super::page::Page;
use super::providers;
use super::safety::{Approvals, FACTS, ModelFacts, Sandboxing};
use super::terminal::{self, Terminal};
use crate::flat::flat;

/// What is configured besides the settings of semantics.md.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct General {
    /// The lead's model, `PROVIDER/NAME` or an alias.
    pub(crate) model: Option<String>,
    /// Short names for models.
    pub(crate) aliases: BTreeMap<String, String>,
    /// What holds for a subagent whose definition file doesn't say.
    pub(crate) agents: AgentDefaults,
    /// What is done unasked, and what never.
    pub(crate) approvals: Approvals,
    /// How the folders of agents are made.
    pub(crate) folder: Folder,
    /// What is known of models, by `PROVIDER/NAME` or an alias.
    pub(crate) models: BTreeMap<String, ModelFacts>,
    /// What the commands of agents run in.
    pub(crate) sandbox: Sandboxing,
    /// A person's own way to be told what waits for them.
    pub(crate) notify: Notify,
    /// How a person's page behaves.
    pub(crate) page: Page,
    /// The providers, by the word before the slash in their models' names.
    pub(crate) providers: BTreeMap<String, Endpoint>,
    /// What the sessions are kept in.
    pub(crate) store: Storing,
    /// How a person's terminal behaves.
    pub(crate) terminal: Terminal,
    /// What can be undone.
    pub(crate) undo: Undoing,
    /// How long providers and commands are waited for.
    pub(crate) timeouts: Timeouts,
    /// The largest event of a reply's stream, in bytes.
    pub(crate) max_event_bytes: u64,
}

impl Default for General {
    fn default() -> Self {
        let aliases = [
            ("haiku", "anthropic/claude-haiku-4-5"),
            ("opus", "anthropic/claude-opus-4-5"),
            ("sonnet", "anthropic/claude-sonnet-4-5"),
        ];
        Self {
            model: None,
            aliases: aliases.map(|(name, model)| (name.to_owned(), model.to_owned())).into(),
            agents: AgentDefaults::default(),
            approvals: Approvals::default(),
            folder: Folder::default(),
            models: BTreeMap::new(),
            sandbox: Sandboxing::default(),
            notify: Notify::default(),
            page: Page::default(),
            providers: midturn_providers::Config::default().0,
            store: Storing::default(),
            terminal: Terminal::default(),
            undo: Undoing::default(),
            timeouts: Timeouts::default(),
            max_event_bytes: 128 << 20,
        }
    }
}

/// What can be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Undoing {
    /// How many turns in the project folder are kept; 0: none.
    pub(crate) turns: u32,
}

impl Default for Undoing {
    fn default() -> Self {
        Self { turns: u32::try_from(TURNS_KEPT).unwrap_or(u32::MAX) }
    }
}

/// What holds for a subagent whose definition file doesn't say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AgentDefaults {
    /// Its model; `inherit` is its parent's.
    pub(crate) model: String,
    /// The tools it has; absent means all.
    pub(crate) tools: Option<Names>,
    /// Where it works.
    pub(crate) isolation: Isolation,
}

impl Default for AgentDefaults {
    fn default() -> Self {
        Self { model: "inherit".to_owned(), tools: None, isolation: Isolation::Worktree }
    }
}

/// What the sessions are kept in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Storing {
    /// How long a store that fails is waited for.
    pub(crate) patience: Span,
}

impl Default for Storing {
    fn default() -> Self {
        Self { patience: Span::secs(30) }
    }
}

/// How long providers and commands are waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Timeouts {
    /// Until the connection stands.
    pub(crate) connect: Span,
    /// Between two pieces of a reply.
    pub(crate) idle: Span,
    /// A command that an agent runs without saying how long.
    pub(crate) command: Span,
    /// The longest that an agent may ask for.
    pub(crate) command_max: Span,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Span::secs(10),
            idle: Span::secs(300),
            command: Span::secs(120),
            command_max: Span::secs(600),
        }
    }
}

/// Names of tools or variables: a list, or one text with commas, as definition files have it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Names(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let by_comma = |text: &str| {
            let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        };
        deserializer.deserialize_any(Texts { expected: "a list of names", one: by_comma }).map(Self)
    }
}

/// Reads a list of texts; `one` makes a list of a text that stands alone.
pub(super) struct Texts {
    /// For errors.
    pub(super) expected: &'static str,
    pub(super) one: fn(&str) -> Vec<String>,
}

impl<'de> Visitor<'de> for Texts {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E>(self, text: &str) -> Result<Vec<String>, E> {
        Ok((self.one)(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Vec<String>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items))
    }
}

/// The tables whose keys are free.
const FREE: [&str; 3] = ["aliases", "models", "providers"];

/// The names that are fields of [`General`]; all others are settings.
static GENERAL: LazyLock<Value> =
    LazyLock::new(|| serde_json::to_value(General::default()).unwrap_or_default());

/// Whether this version knows the key.
pub(super) fn is_known(key: &str) -> bool {
    named(key, defaults().keys()) != Named::Unknown
}

/// The segments of a key in a table whose keys are free. What is free may have dots, as
/// models' names do: `models.openai/gpt-4.1.input` has three segments.
pub(super) fn free(key: &str) -> Option<Vec<&str>> {
    let (table, rest) = key.split_once('.')?;
    let segments = match (table, rest.rsplit_once('.')) {
        ("aliases", _) => vec![table, rest],
        ("providers", _) => providers::segments(key)?,
        ("models", Some((model, fact))) if FACTS.contains(&fact) => vec![table, model, fact],
        _ => return None,
    };
    segments.iter().all(|segment| !segment.is_empty()).then_some(segments)
}

/// The settings of a session of which nobody says anything: an overload is waited out, as long as `retry.time`
/// lets it, since a person has an agent there that would fail (docs/decisions/0040).
fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.retry.attempts = 20;
    settings
}

/// Every key with its default, by its dotted name.
pub(super) fn defaults() -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for part in [GENERAL.clone(), serde_json::to_value(settings()).unwrap_or_default()] {
        all.extend(flat(&part).into_iter().map(|(key, value)| (key, value.clone())));
    }
    for (key, value) in BUILT_IN.iter().flat_map(|one| providers::unsaid(one.name, Some(one.dialect))) {
        all.entry(key).or_insert(value);
    }
    all
}

/// What a dotted name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// A key with a value.
    Key,
    /// A table of keys.
    Table,
    /// Nothing.
    Unknown,
}

/// What a dotted name is, given the known ones.
pub(super) fn named<'a>(key: &str, known: impl IntoIterator<Item = &'a String>) -> Named {
    let below = format!("{key}.");
    let of_provider = key.strip_prefix("providers.").and_then(|rest| rest.split_once('.'));
    let mut is_table =
        FREE.contains(&key) || of_provider.is_some_and(|(_, table)| providers::TABLES.contains(&table));
    for name in known {
        if name == key {
            return Named::Key;
        }
        is_table |= name.starts_with(&below);
    }
    match free(key) {
        Some(_) => Named::Key,
        None if is_table => Named::Table,
        None => Named::Unknown,
    }
}

/// Which entry of a list the key does not take, and why.
pub(super) fn bad_item(key: &str, value: &Value) -> Option<(usize, String)> {
    let items = value.as_array()?.iter().enumerate();
    let checked =
        items.filter_map(|(at, item)| Some((at, check(key, &Value::from(vec![item.clone()])).err()?)));
    checked.into_iter().next()
}

/// Whether the value is one that the key takes. The error says what it takes.
pub(super) fn check(key: &str, value: &Value) -> Result<(), String> {
    match providers::segments(key).as_deref() {
        Some([_, _, below @ ..]) => providers::check(below, value)?,
        _ => {
            let (_, patch) = read_types(&nest([(key, value)])).map_err(|error| without_place(&error))?;
            within_bounds(&patch)?;
        }
    }
    if value.is_null() {
        return Err("a value is missing".to_owned());
    }
    let at_least_one = matches!(
        key.rsplit('.').next().unwrap_or(key),
        "copy_max"
            | "commands"
            | "max_concurrent"
            | "max_event_bytes"
            | "max_output_tokens"
            | "memory"
            | "open_files"
            | "processes"
    );
    if at_least_one && value.as_u64() == Some(0) {
        return Err("invalid value: 0, expected 1 or more".to_owned());
    }
    if let Some([_, _, "base_url"]) = free(key).as_deref() {
        check_url(value.as_str().unwrap_or_default())?;
    }
    if ["sandbox.writable", "sandbox.read", "folder.base"].contains(&key) {
        check_paths(value)?;
    }
    terminal::check(key, value)?;
    let blank = !key.starts_with(terminal::KEYS) && value.as_str().is_some_and(|text| text.trim().is_empty());
    if blank { Err("invalid value: an empty text".to_owned()) } else { Ok(()) }
}

/// The settings have their bounds where they are defined.
fn within_bounds(patch: &SettingsPatch) -> Result<(), String> {
    let mut settings = Settings::default();
    settings.patch(patch);
    settings.check().map_err(|out| format!("invalid value: {}, expected {}", out.value, out.bounds))
}

/// Reads both structs out of nested values. Keys are known by now, so each goes to one of them.
pub(super) fn read_types(values: &Value) -> Result<(General, SettingsPatch), serde_json::Error> {
    let fields = values.as_object().cloned().unwrap_or_default();
    let (general, settings): (serde_json::Map<_, _>, _) =
        fields.into_iter().partition(|(name, _)| GENERAL.get(name).is_some());
    Ok((General::deserialize(Value::Object(general))?, SettingsPatch::deserialize(Value::Object(settings))?))
}

/// Dotted names as nested objects.
pub(super) fn nest<'a>(entries: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Value {
    let mut root = Value::Object(serde_json::Map::new());
    for (key, value) in entries {
        let mut at = &mut root;
        for segment in free(key).unwrap_or_else(|| key.split('.').collect()) {
            at = &mut at[segment];
        }
        *at = value.clone();
    }
    root
}

/// serde_json counts lines of a text that nobody wrote.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// A path that depends on where somebody stands would be another folder tomorrow.
fn check_paths(value: &Value) -> Result<(), String> {
    let Names(paths) = Names::deserialize(value).map_err(|error| without_place(&error))?;
    match paths.iter().find(|path| !path.starts_with('/') && !path.starts_with("~/")) {
        Some(path) => Err(format!("invalid value: `{path}`, expected a path that begins with / or ~/")),
        None => Ok(()),
    }
}

/// A base URL goes into error texts and `midturn config`, so it may hold nothing secret.
fn check_url(url: &str) -> Result<(), String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest.filter(|rest| !rest.is_empty() && !rest.starts_with('/')) else {
        return Err("invalid value: expected a URL that begins with https:// or http://".to_owned());
    };
    if rest.contains(['?', '#', '@']) || rest.contains(char::is_whitespace) {
        return Err("invalid value: a base URL has no user, password, query or white space".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_belongs_to_the_struct_that_has_it() {
        let known = defaults();
        let all = nest(
            known.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.as_str(), value)),
        );
        let (general, patch) = read_types(&all).unwrap();
        let mut settings = Settings { max_turns: 99, ..Settings::default() };
        settings.patch(&patch);
        assert_eq!((general, settings), (General::default(), super::settings()));
    }

    /// A22: the table is the settings' own.
    #[test]
    fn every_setting_that_has_bounds_is_refused_beyond_them() {
        for (key, bounds) in Settings::bounds() {
            let beyond = [bounds.least.checked_sub(1), bounds.most.checked_add(1)];
            for value in beyond.into_iter().flatten() {
                let expected = format!("invalid value: {value}, expected {bounds}");
                assert_eq!(check(&key, &Value::from(value)), Err(expected), "{key}");
            }
            assert_eq!(check(&key, &Value::from(bounds.least)), Ok(()), "{key}");
        }
    }

    #[test]
    fn every_default_is_a_value_that_its_key_takes() {
        for (key, value) in defaults().iter().filter(|(_, value)| !value.is_null()) {
            assert_eq!(check(key, value), Ok(()), "{key}");
        }
    }
}
