//! The words behind `/limit`.

use midturn_core::rules::settings::LimitsPatch;
use serde_json::{Map, Value};

/// The limits that a command names, and whether they are for all agents together.
///
/// # Errors
/// A sentence: what a limit looks like.
pub(super) fn limits(words: &str) -> Result<(bool, LimitsPatch), String> {
    let complain = || {
        "write /limit max_turns=60, max_tokens=2000000, max_cost=5 or max_time=2h; with `all` before it for all agents together"
            .to_owned()
    };
    let (all, words) = match words.strip_prefix("all ") {
        Some(rest) => (true, rest),
        None => (false, words),
    };
    let mut patch = Map::new();
    for word in words.split_whitespace() {
        let (name, value) = word.split_once('=').ok_or_else(complain)?;
        let number = value.parse::<u64>().ok().filter(|_| matches!(name, "max_turns" | "max_tokens"));
        patch.insert(name.to_owned(), number.map_or_else(|| value.into(), Value::from));
    }
    if patch.is_empty() {
        return Err(complain());
    }
    serde_json::from_value(Value::Object(patch))
        .map(|patch| (all, patch))
        .map_err(|error| format!("{error}; {}", complain()))
}
