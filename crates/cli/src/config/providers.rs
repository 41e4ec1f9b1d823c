//! `[providers.NAME]`: what may stand in it, and whether what all layers say makes a provider
//! (docs/decisions/0024-providers-are-data.md). It knows fields and dialects, and no server by its name.

use std::collections::{BTreeMap, BTreeSet};

use midturn_providers::{
    ANTHROPIC_MAX_TOKENS, BadWritten, Dialect, Endpoint, MAX_CONCURRENT, Written, is_variable,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::text::{PREFIX, nearest};
use super::{Entry, Origin};
use crate::failure::Failure;

/// The keys with what holds of each.
type Entries = BTreeMap<String, Entry>;

/// The fields with one value each.
const FIELDS: [&str; 7] = [
    "base_url",
    "dialect",
    "key_env",
    "max_concurrent",
    "max_output_tokens",
    "reasoning_effort",
    "thinking_budget",
];

/// The fields that are tables, of texts that the environment fills.
pub(super) const TABLES: [&str; 2] = ["headers", "query"];

/// A field that only some dialects have.
fn is_of(field: &str, dialect: Dialect) -> bool {
    match field {
        "thinking_budget" => dialect == Dialect::Anthropic,
        "reasoning_effort" => dialect != Dialect::Anthropic,
        _ => true,
    }
}

/// The keys of a provider of which nothing is said; all that there are while its dialect isn't known.
pub(super) fn unsaid(name: &str, dialect: Option<Dialect>) -> impl Iterator<Item = (String, Value)> {
    let fields = FIELDS.into_iter().filter(move |field| dialect.is_none_or(|dialect| is_of(field, dialect)));
    fields.map(move |field| {
        let value = if field == "max_concurrent" { json!(MAX_CONCURRENT) } else { Value::Null };
        (key(name, field), value)
    })
}

fn key(name: &str, field: &str) -> String {
    format!("providers.{name}.{field}")
}

/// The segments of a provider's key. What a header or a parameter is called may have dots.
pub(super) fn segments(key: &str) -> Option<Vec<&str>> {
    let (name, field) = key.strip_prefix("providers.")?.split_once('.')?;
    let segments = match field.split_once('.') {
        None if FIELDS.contains(&field) => vec!["providers", name, field],
        Some((table, what)) if TABLES.contains(&table) => vec!["providers", name, table, what],
        _ => return None,
    };
    is_a_name(name).then_some(segments)
}

/// A provider's name. It has no capitals and no `_`, so that no two names look like one, and
/// each has environment variables of its own.
fn is_a_name(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.bytes().all(|byte| is_word(byte) || byte == b'-') && name.bytes().next().is_some_and(is_word)
}

/// The one way to write a key: names of headers are the same in capitals.
pub(super) fn canonical(key: &str) -> String {
    match segments(key).as_deref() {
        Some([_, name, "headers", header]) => {
            format!("providers.{name}.headers.{}", header.to_ascii_lowercase())
        }
        _ => key.to_owned(),
    }
}

/// The key that an environment variable sets, also of a provider that no file has. Headers and
/// parameters have none: they name variables themselves.
pub(super) fn of_variable(variable: &str) -> Option<String> {
    let rest = variable.strip_prefix(PREFIX)?.strip_prefix("PROVIDERS_")?.to_ascii_lowercase();
    FIELDS.iter().find_map(|field| {
        let name = rest.strip_suffix(field)?.strip_suffix('_')?.replace('_', "-");
        is_a_name(&name).then(|| key(&name, field))
    })
}

/// Why there is no such key below `providers`.
pub(super) fn unknown(key: &str) -> Option<String> {
    let rest = key.strip_prefix("providers.")?;
    let (name, field) = rest.split_once('.').unwrap_or((rest, ""));
    if !is_a_name(name) {
        let meant = name.to_ascii_lowercase().replace(['_', ' '], "-");
        let hint = if is_a_name(&meant) { format!(": write `{meant}`") } else { String::new() };
        return Some(format!(
            "`{name}` can't be the name of a provider, which has lower-case letters, digits and `-`{hint}"
        ));
    }
    let known: Vec<&str> = FIELDS.into_iter().chain(TABLES).collect();
    let meant = nearest(field, known.iter().copied());
    let hint = meant.map_or_else(String::new, |meant| format!("; the nearest is `{meant}`"));
    Some(format!("unknown key `{key}`: a provider (here `{name}`) has {}{hint}", known.join(", ")))
}

/// Whether a value is one that a provider's field takes. The error says what it takes, and
/// repeats nothing that may be a key.
pub(super) fn check(below: &[&str], value: &Value) -> Result<(), String> {
    let written = |read: Result<Written, BadWritten>| read.map(drop).map_err(|bad| bad.to_string());
    match (below, value) {
        (["headers", name], Value::String(text)) => written(Written::header(name, text)),
        (["query", name], Value::String(text)) => written(Written::parameter(name, text)),
        (["key_env"], Value::String(text)) => check_variable(text),
        _ => check_type(below, value),
    }
}

fn check_variable(name: &str) -> Result<(), String> {
    if !is_variable(name) {
        return Err("expected the name of an environment variable that holds the key, such as \
                    GATEWAY_API_KEY; the key itself is in no file"
            .to_owned());
    }
    if name.starts_with(PREFIX) {
        return Err(format!("variables that begin with {PREFIX} are settings: expected another name"));
    }
    Ok(())
}

fn check_type(below: &[&str], value: &Value) -> Result<(), String> {
    let mut whole = json!({"dialect": Dialect::Chat, "base_url": "http://localhost"});
    let mut at = &mut whole;
    for segment in below {
        at = &mut at[*segment];
    }
    *at = value.clone();
    Endpoint::deserialize(whole).map(drop).map_err(|error| error.to_string())
}

/// Whether a key is of a provider that nobody has spoken of.
pub(super) fn is_nobodys(key: &str, entries: &Entries) -> bool {
    segments(key).is_some_and(|segments| !entries.contains_key(&self::key(segments[1], "dialect")))
}

/// What holds of a key before a project's file speaks, where nobody has said it: a reply in
/// Anthropic's dialect has a limit nevertheless.
pub(super) fn held(key: &str, entries: &Entries) -> Value {
    let value = |key: &str| entries.get(key).map_or(Value::Null, |entry| entry.value.clone());
    match (segments(key).as_deref(), value(key)) {
        (Some([_, name, "max_output_tokens"]), Value::Null) => {
            let dialect = Dialect::deserialize(value(&self::key(name, "dialect")));
            let is_open = dialect.is_ok_and(|dialect| dialect != Dialect::Anthropic);
            if is_open { Value::Null } else { json!(ANTHROPIC_MAX_TOKENS) }
        }
        (_, value) => value,
    }
}

/// Checks what only all layers together can say: each provider has what it needs and nothing
/// that its dialect hasn't, and no key goes to two logins or to another's server.
///
/// # Errors
/// [`Failure::Usage`] with the place.
pub(super) fn settle(entries: &mut Entries) -> Result<(), Failure> {
    let names: BTreeSet<String> =
        entries.keys().filter_map(|key| Some(segments(key)?[1].to_owned())).collect();
    for name in &names {
        let dialect = needed(entries, name, "dialect", &names)?;
        needed(entries, name, "base_url", &names)?;
        let dialect = Dialect::deserialize(dialect).map_err(Failure::usage)?;
        without_others_fields(entries, name, dialect)?;
        one_login(entries, name, dialect)?;
    }
    names.iter().try_for_each(|name| own_keys(entries, name, &names))
}

fn said<'a>(entries: &'a Entries, name: &str, field: &str) -> Option<&'a Entry> {
    entries.get(&key(name, field)).filter(|entry| !entry.value.is_null())
}

/// What a provider can't be without.
fn needed(entries: &Entries, name: &str, field: &str, names: &BTreeSet<String>) -> Result<Value, Failure> {
    if let Some(entry) = said(entries, name, field) {
        return Ok(entry.value.clone());
    }
    let own = entries.iter().filter(|(key, _)| segments(key).is_some_and(|segments| segments[1] == name));
    let origin = own.map(|(_, entry)| &entry.origin).find(|origin| **origin != Origin::Default);
    let place = origin.map_or_else(String::new, |origin| format!("{origin}: "));
    let dialects = Dialect::ALL.map(|dialect| format!("`{}`", dialect.word())).join(", ");
    let expected = if field == "dialect" { format!("one of {dialects}") } else { "its URL".to_owned() };
    let others = names.iter().map(String::as_str).filter(|other| *other != name);
    let meant = nearest(name, others);
    let hint = meant.map_or_else(String::new, |meant| format!("; the nearest known provider is `{meant}`"));
    Err(Failure::usage(format!("{place}the provider `{name}` has no `{field}`: expected {expected}{hint}")))
}

/// Takes out the fields that the dialect hasn't, if they are not set.
fn without_others_fields(entries: &mut Entries, name: &str, dialect: Dialect) -> Result<(), Failure> {
    for field in FIELDS.into_iter().filter(|field| !is_of(field, dialect)) {
        if let Some(Entry { origin, .. }) = said(entries, name, field) {
            let (key, word) = (key(name, field), dialect.word());
            return Err(Failure::usage(format!("{origin}: `{key}`: the dialect `{word}` doesn't have it")));
        }
        entries.remove(&key(name, field));
    }
    Ok(())
}

/// A key goes into a header of its own; a second login beside it would leave it to the server
/// which of them holds.
fn one_login(entries: &Entries, name: &str, dialect: Dialect) -> Result<(), Failure> {
    let Some(variable) = said(entries, name, "key_env").and_then(|entry| entry.value.as_str()) else {
        return Ok(());
    };
    for header in ["authorization", dialect.key_header()] {
        let field = format!("headers.{header}");
        if let Some(Entry { origin, .. }) = said(entries, name, &field) {
            return Err(Failure::usage(format!(
                "{origin}: `{}` is a second login beside `key_env` ({variable}): take one of them away, or give \
                 the server a provider of its own without `key_env`",
                key(name, &field)
            )));
        }
    }
    Ok(())
}

/// A header or parameter names no variable that is another provider's key.
fn own_keys(entries: &Entries, name: &str, names: &BTreeSet<String>) -> Result<(), Failure> {
    let key_of = |name: &str| said(entries, name, "key_env").and_then(|entry| entry.value.as_str());
    for (at, entry) in entries {
        let is_own = segments(at).is_some_and(|segments| segments.len() == 4 && segments[1] == name);
        if !is_own {
            continue;
        }
        let written = Written::deserialize(&entry.value).map_err(Failure::usage)?;
        for variable in written.variables().filter(|variable| key_of(name) != Some(*variable)) {
            if let Some(other) = names.iter().find(|other| key_of(other) == Some(variable)) {
                return Err(Failure::usage(format!(
                    "{}: `{at}` would send {variable}, the key of `{other}`, to `{name}`; if you mean it, name \
                     it as `{}`",
                    entry.origin,
                    key(name, "key_env")
                )));
            }
        }
    }
    Ok(())
}
