//! What a project's file may say about safety and money: it may tighten what a person's layers
//! say, never loosen it (docs/decisions/0017-who-may-loosen.md). One table, and pure.

use midturn_core::rules::limits::Money;
use midturn_core::rules::time::Span;
use serde::Deserialize;
use serde_json::Value;

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// The person's own, in the configuration folder.
    Person,
    /// One that came with the project: strangers and agents may have written it.
    Project,
}

/// What becomes of a value that a project's file gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ruling {
    /// It holds, as the nearer one.
    Taken,
    /// It holds besides what is there.
    Added,
    /// It doesn't hold, and the person is told; the text says why.
    Left(String),
    /// Nothing starts unless the person's own layers say something; the text says why.
    Refused(String),
}

/// How a key can be loosened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// It gives nobody anything: the nearer file's value holds.
    Free,
    /// Of these words each is stricter than the one before it.
    Words(&'static [&'static str]),
    /// A smaller number is stricter.
    Down,
    /// So it is, and 0 is no limit at all.
    DownFromNone,
    /// `true` is looser.
    Off,
    /// More entries are looser.
    Fewer,
    /// More entries are stricter.
    More,
    /// Only a person can know it.
    Persons,
    /// The person's keys go there.
    WhereKeysGo,
}

/// From the loosest to the strictest.
const MODES: [&str; 4] = ["auto", "accept-edits", "ask", "plan"];

/// As [`MODES`]. Without a word the best kind there is has to work, whichever that is.
const TIERS: [&str; 4] = ["none", "landlock", "", "bubblewrap"];

/// The table.
fn direction(key: &str) -> Direction {
    match key {
        "approvals.mode" => Direction::Words(&MODES),
        "sandbox.tier" => Direction::Words(&TIERS),
        "sandbox.network" => Direction::Off,
        "approvals.allow" | "sandbox.environment" | "sandbox.writable" => Direction::Fewer,
        "approvals.deny" => Direction::More,
        "sandbox.processes" | "sandbox.memory" | "sandbox.file_size" | "sandbox.open_files" => {
            Direction::Down
        }
        "max_depth" | "max_agents" | "max_spawns" => Direction::Down,
        "max_turns" | "max_tokens" | "max_cost" | "max_time" => Direction::DownFromNone,
        "session.max_turns" | "session.max_tokens" | "session.max_cost" | "session.max_time" => {
            Direction::DownFromNone
        }
        _ if key.starts_with("providers.") && key.ends_with(".base_url") => Direction::WhereKeysGo,
        _ if key.starts_with("models.") && !key.ends_with(".context_tokens") => Direction::Persons,
        _ => Direction::Free,
    }
}

/// Whether the values of all layers hold together.
pub(super) fn adds_up(key: &str) -> bool {
    direction(key) == Direction::More
}

/// What becomes of what a project's file says, where `now` is what holds before it.
pub(super) fn ruling(key: &str, now: &Value, said: &Value) -> Ruling {
    let left = |why: &str| Ruling::Left(why.to_owned());
    let looser = |is_looser: bool| {
        if is_looser {
            Ruling::Left(format!("`{}` holds, which is stricter", shown(now)))
        } else {
            Ruling::Taken
        }
    };
    match direction(key) {
        Direction::Free => Ruling::Taken,
        Direction::More => Ruling::Added,
        Direction::Words(words) => looser(rank(words, said) < rank(words, now)),
        Direction::Off => looser(said == true && now != true),
        Direction::Down => looser(said.as_u64() > now.as_u64()),
        Direction::DownFromNone => looser(bound(key, said) > bound(key, now)),
        Direction::Fewer if items(said).iter().all(|item| items(now).contains(item)) => Ruling::Taken,
        Direction::Fewer => left("only a person can allow that"),
        Direction::Persons | Direction::WhereKeysGo if said == now => Ruling::Taken,
        Direction::Persons => left("only a person knows what they pay"),
        Direction::WhereKeysGo => Ruling::Refused(
            "your key would go there with every request, and only you can want that".to_owned(),
        ),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "the best there is".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn rank(words: &[&str], value: &Value) -> Option<usize> {
    let word = value.as_str().unwrap_or_default();
    words.iter().position(|known| *known == word)
}

/// How much it is, in the key's own unit; 0 is no limit.
fn bound(key: &str, value: &Value) -> u64 {
    let amount = match key.rsplit('.').next() {
        Some("max_cost") => Money::deserialize(value).ok().map(Money::picos),
        Some("max_time") => Span::deserialize(value).ok().map(|span| span.0),
        _ => value.as_u64(),
    };
    amount.filter(|amount| *amount > 0).unwrap_or(u64::MAX)
}

/// The entries of a list; a text alone is a list of one, or with commas of several.
pub(super) fn items(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.clone(),
        Value::Null => Vec::new(),
        one => vec![one.clone()],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_project_tightens_and_never_loosens() {
        let (taken, left) = ("taken", "left");
        for (key, now, said, expected) in [
            ("approvals.mode", json!("auto"), json!("plan"), taken),
            ("approvals.mode", json!("auto"), json!("auto"), taken),
            ("approvals.mode", json!("ask"), json!("accept-edits"), left),
            ("approvals.mode", json!("plan"), json!("ask"), left),
            ("approvals.deny", json!(["read"]), json!([]), "added"),
            ("approvals.allow", json!([]), json!(["bash"]), left),
            ("approvals.allow", json!(["bash(ls)", "edit"]), json!(["edit"]), taken),
            ("sandbox.tier", json!(null), json!("landlock"), left),
            ("sandbox.tier", json!(null), json!("bubblewrap"), taken),
            ("sandbox.tier", json!("none"), json!("landlock"), taken),
            ("sandbox.tier", json!("bubblewrap"), json!("none"), left),
            ("sandbox.network", json!(false), json!(true), left),
            ("sandbox.network", json!(true), json!(false), taken),
            ("sandbox.environment", json!([]), json!(["AWS_PROFILE"]), left),
            ("sandbox.environment", json!([]), json!("AWS_PROFILE"), left),
            ("sandbox.writable", json!([]), json!(["/"]), left),
            ("sandbox.environment", json!(["A", "B"]), json!(["B"]), taken),
            ("sandbox.memory", json!(1), json!(2), left),
            ("sandbox.memory", json!(2), json!(1), taken),
            ("max_agents", json!(64), json!(65), left),
            ("max_turns", json!(0), json!(5), taken),
            ("max_turns", json!(5), json!(0), left),
            ("max_turns", json!(5), json!(6), left),
            ("max_cost", json!("0.00"), json!(2.5), taken),
            ("max_cost", json!(2), json!("2.50"), left),
            ("session.max_cost", json!(10.0), json!(0), left),
            ("session.max_time", json!("1h"), json!("30m"), taken),
            ("max_time", json!("30m"), json!("1h"), left),
            ("models.a/b.input", json!(null), json!(0.0), left),
            ("models.a/b.input", json!(3.0), json!(3.0), taken),
            ("models.a/b.context_tokens", json!(null), json!(5), taken),
            ("providers.openai-chat.base_url", json!("https://a"), json!("https://b"), "refused"),
            ("providers.openai-chat.base_url", json!("https://a"), json!("https://a"), taken),
            ("retry.attempts", json!(5), json!(50), taken),
        ] {
            let got = match ruling(key, &now, &said) {
                Ruling::Taken => taken,
                Ruling::Added => "added",
                Ruling::Left(_) => left,
                Ruling::Refused(_) => "refused",
            };
            assert_eq!(got, expected, "{key}: {now} then {said}");
        }
    }
}
