//! What a project's file may say about safety and money: it may tighten what a person's layers
//! say, never loosen it (docs/decisions/0017-who-may-loosen.md). One table, and pure.

use midturn_core::rules::limits::Money;
use midturn_core::rules::settings::{Direction, Settings, UNSAID, Unit};
use midturn_core::rules::time::Span;
use midturn_tools::network::Network;
use serde::Deserialize;
use serde_json::Value;

use super::{keys, terminal};
use Direction::{
    Down, DownFrom, DownFromNone, Fewer, Free, More, Off, OffOrHosts, Persons, PersonsOrError, Words,
};
use Unit::{Dollars, Number, Time};

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
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
    /// This part of it holds, and the person is told why not all; the text says why.
    Partly(Value, String),
    /// It doesn't hold, and the person is told; the text says why.
    NotTaken(String),
    /// Nothing starts unless the person's own layers say something; the text says why.
    Refused(String),
}

/// From the loosest to the strictest.
const MODES: &[&str] = &["auto", "accept-edits", "ask", "plan"];

/// As [`MODES`]. Without a word the best kind there is has to work, whichever that is.
const TIERS: &[&str] = &["none", "landlock", "", "bubblewrap"];

/// As [`MODES`].
const GIT: &[&str] = &["write", "read"];

const PRICE: &str = "only a person knows what they pay";
const EFFORT: &str = "how much a model may think for you is yours to say";
const TERMINAL: &str = "how your terminal behaves, and what your keys do, is yours to say";
const COMMANDS: &str = "how much of your machine agents take at once is yours to say";
const PAGE: &str = "what closing your page does is yours to say";
const NOTIFY: &str = "what runs on your machine to tell you something is yours to say";
const UNDO: &str = "what you can take back is yours to say";
const BASE: &str = "where folders are made on your disks is yours to say";
const TRAILER: &str = "what commits in your name say is yours to decide";
const THERE: &str = "your key would go there with every request, which is yours to decide";
const LOGIN: &str = "which server gets which of your keys, and what goes with them, is yours to decide";

/// The table: every key of the configuration that is not a setting, where `*` is a name that somebody chose;
/// settings say it where they are defined. A key that is in neither fails a test, and until then a
/// project's file may not set it.
const TABLE: &[(&str, Direction)] = &[
    ("agents.isolation", Words(&["none", "worktree"])),
    // Models and tools are chosen among those that the person has keys for and that the sandbox,
    // the rules and the limits hold.
    ("agents.model", Free),
    ("agents.tools", Free),
    ("aliases.*", Free),
    ("approvals.allow", Fewer),
    ("approvals.deny", More),
    ("approvals.mode", Words(MODES)),
    ("approvals.patience", Down(Time)),
    ("folder.base", Persons(BASE)),
    ("folder.copy", Fewer),
    ("folder.copy_max", Down(Number)),
    // As a command of an agent's: the mode, the rules and the sandbox hold it.
    ("folder.setup", Free),
    ("folder.setup_time", Down(Time)),
    ("folder.trailer", Persons(TRAILER)),
    ("max_event_bytes", Down(Number)),
    ("model", Free),
    ("models.*.cached", Persons(PRICE)),
    ("models.*.context_tokens", Free),
    ("models.*.input", Persons(PRICE)),
    ("models.*.output", Persons(PRICE)),
    ("notify.command", Persons(NOTIFY)),
    ("page.on_leave", Persons(PAGE)),
    ("providers.*.base_url", PersonsOrError(THERE)),
    ("providers.*.dialect", PersonsOrError(LOGIN)),
    ("providers.*.headers.*", PersonsOrError(LOGIN)),
    ("providers.*.key_env", PersonsOrError(LOGIN)),
    ("providers.*.max_concurrent", Down(Number)),
    ("providers.*.max_output_tokens", DownFrom(u32::MAX)),
    ("providers.*.query.*", PersonsOrError(LOGIN)),
    ("providers.*.reasoning_effort", Persons(EFFORT)),
    ("providers.*.thinking_budget", DownFrom(0)),
    ("sandbox.commands", Persons(COMMANDS)),
    ("sandbox.environment", Fewer),
    ("sandbox.git", Words(GIT)),
    ("sandbox.file_size", Down(Number)),
    ("sandbox.memory", Down(Number)),
    ("sandbox.network", OffOrHosts),
    ("sandbox.open_files", Down(Number)),
    ("sandbox.processes", Down(Number)),
    ("sandbox.read", Fewer),
    ("sandbox.tier", Words(TIERS)),
    ("sandbox.writable", Fewer),
    ("store.patience", Down(Time)),
    ("terminal.ascii", Persons(TERMINAL)),
    ("terminal.keys.*", Persons(TERMINAL)),
    ("terminal.mouse", Persons(TERMINAL)),
    ("terminal.notify", Persons(TERMINAL)),
    ("terminal.notify_unsure", Persons(TERMINAL)),
    ("terminal.queue_mode", Persons(TERMINAL)),
    ("timeouts.command", Down(Time)),
    ("timeouts.command_max", Down(Time)),
    ("timeouts.connect", Down(Time)),
    ("timeouts.idle", Down(Time)),
    ("undo.turns", Persons(UNDO)),
];

/// The key as the table has it.
pub(super) fn in_table(key: &str) -> String {
    if key.starts_with(terminal::KEYS) {
        return format!("{}*", terminal::KEYS);
    }
    match keys::free(key).as_deref() {
        Some([table, _]) => format!("{table}.*"),
        Some([table, _, fact]) => format!("{table}.*.{fact}"),
        Some([table, _, below, _]) => format!("{table}.*.{below}.*"),
        _ => key.to_owned(),
    }
}

fn direction(key: &str) -> Direction {
    let listed = in_table(key);
    let listed = TABLE.iter().find(|(row, _)| *row == listed).map(|(_, direction)| *direction);
    let setting = || Settings::all().into_iter().find(|setting| setting.key == key);
    listed.or_else(|| Some(setting()?.direction)).unwrap_or(Persons(UNSAID))
}

/// Whether a project's file can't say it.
pub(super) fn is_a_persons(key: &str) -> bool {
    matches!(direction(key), Persons(_) | PersonsOrError(_) | Fewer)
}

/// The words that a key takes, where they are few.
pub(super) fn words(key: &str) -> Option<Vec<&'static str>> {
    match direction(key) {
        Words(words) => Some(words.iter().copied().filter(|word| !word.is_empty()).collect()),
        _ => None,
    }
}

/// Whether the values of all layers hold together.
pub(super) fn adds_up(key: &str) -> bool {
    direction(key) == More
}

/// What becomes of what a project's file says, where `now` is what holds before it.
pub(super) fn ruling(key: &str, now: &Value, said: &Value) -> Ruling {
    let not_taken = |why: &str| Ruling::NotTaken(why.to_owned());
    let looser = |is_looser: bool| {
        if is_looser {
            Ruling::NotTaken(format!("`{}` holds, which is stricter", shown(key, now)))
        } else {
            Ruling::Taken
        }
    };
    match direction(key) {
        Free => Ruling::Taken,
        More => Ruling::Added,
        Words(words) => looser(rank(words, said) < rank(words, now)),
        Off => looser(said == true && now != true),
        OffOrHosts => hosts(key, now, said),
        Down(unit) => looser(amount(unit, said) > amount(unit, now)),
        DownFromNone(unit) => looser(bound(unit, said) > bound(unit, now)),
        DownFrom(unset) => {
            let many = |value| amount(Number, value).unwrap_or(unset.into());
            looser(many(said) > many(now))
        }
        Fewer if items(said).iter().all(|item| items(now).contains(item)) => Ruling::Taken,
        Fewer => not_taken("only a person can allow that"),
        Persons(_) | PersonsOrError(_) if said == now => Ruling::Taken,
        Persons(why) => not_taken(why),
        PersonsOrError(why) => Ruling::Refused(why.to_owned()),
    }
}

/// Of hosts that a project names those hold that the person has named, too.
fn hosts(key: &str, now: &Value, said: &Value) -> Ruling {
    let read = |value| Network::deserialize(value).unwrap_or_default();
    match (read(now), read(said)) {
        (Network::On, _) | (_, Network::Off) => Ruling::Taken,
        (Network::Off, _) | (_, Network::On) => {
            Ruling::NotTaken(format!("`{}` holds, which is stricter", shown(key, now)))
        }
        (Network::Hosts(now), Network::Hosts(said)) => {
            let both = now.in_both(&said);
            let is_all = both == *said;
            let both = Value::from(both.written());
            if is_all {
                Ruling::Taken
            } else {
                Ruling::Partly(both, "only a person can name a host".to_owned())
            }
        }
    }
}

fn shown(key: &str, value: &Value) -> String {
    match value {
        Value::Null if key == "sandbox.tier" => "the best there is".to_owned(),
        Value::Null => "what is built in".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn rank(words: &[&str], value: &Value) -> Option<usize> {
    let word = value.as_str().unwrap_or_default();
    words.iter().position(|known| *known == word)
}

/// How much it is.
fn amount(unit: Unit, value: &Value) -> Option<u64> {
    match unit {
        Number => value.as_u64(),
        Time => Span::deserialize(value).ok().map(|span| span.0),
        Dollars => Money::deserialize(value).ok().map(Money::picos),
    }
}

/// How much it is; 0 is no limit.
fn bound(unit: Unit, value: &Value) -> u64 {
    amount(unit, value).filter(|amount| *amount > 0).unwrap_or(u64::MAX)
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
    use std::collections::BTreeSet;

    use midturn_core::rules::settings::Setting;
    use serde_json::json;

    use super::*;
    use crate::config::providers::TABLES;
    use crate::config::safety::FACTS;

    type Row = (&'static str, serde_json::Value, serde_json::Value, &'static str);

    /// What becomes of what a project says of keys that stand so.
    fn hold(rows: impl IntoIterator<Item = Row>) {
        for (key, now, said, expected) in rows {
            let got = match ruling(key, &now, &said) {
                Ruling::Taken => "taken",
                Ruling::Added => "added",
                Ruling::Partly(..) => "partly",
                Ruling::NotTaken(_) => "not taken",
                Ruling::Refused(_) => "refused",
            };
            assert_eq!(got, expected, "{key}: {now} then {said}");
        }
    }

    #[test]
    fn a_project_tightens_and_never_loosens() {
        let (taken, kept) = ("taken", "not taken");
        hold([
            ("approvals.mode", json!("auto"), json!("plan"), taken),
            ("approvals.mode", json!("auto"), json!("auto"), taken),
            ("approvals.mode", json!("ask"), json!("accept-edits"), kept),
            ("approvals.mode", json!("plan"), json!("ask"), kept),
            ("approvals.deny", json!(["read"]), json!([]), "added"),
            ("approvals.allow", json!([]), json!(["bash"]), kept),
            ("approvals.allow", json!(["bash(ls)", "edit"]), json!(["edit"]), taken),
            ("sandbox.tier", json!(null), json!("landlock"), kept),
            ("sandbox.tier", json!(null), json!("bubblewrap"), taken),
            ("sandbox.tier", json!("none"), json!("landlock"), taken),
            ("sandbox.tier", json!("bubblewrap"), json!("none"), kept),
            ("sandbox.git", json!("read"), json!("write"), kept),
            ("sandbox.git", json!("write"), json!("read"), taken),
            ("sandbox.network", json!(false), json!(true), kept),
            ("sandbox.network", json!(true), json!(false), taken),
            ("sandbox.network", json!(true), json!(["a.example"]), taken),
            ("sandbox.network", json!(false), json!(["a.example"]), kept),
            ("sandbox.network", json!(["a.example"]), json!(true), kept),
            ("sandbox.network", json!(["a.example"]), json!(false), taken),
            ("sandbox.network", json!(["a.example"]), json!([]), taken),
            ("sandbox.network", json!(["a.example", "b.example"]), json!("b.example:443"), taken),
            ("sandbox.network", json!(["registries"]), json!(["pypi.org:443"]), taken),
            ("sandbox.network", json!(["a.example"]), json!(["a.example", "b.example"]), "partly"),
            ("sandbox.network", json!(["a.example:443"]), json!(["a.example"]), "partly"),
            ("sandbox.network", json!(["a.example"]), json!(["b.example"]), "partly"),
            ("sandbox.environment", json!([]), json!(["AWS_PROFILE"]), kept),
            ("sandbox.environment", json!([]), json!("AWS_PROFILE"), kept),
            ("sandbox.writable", json!([]), json!(["/"]), kept),
            ("sandbox.environment", json!(["A", "B"]), json!(["B"]), taken),
            ("sandbox.memory", json!(1), json!(2), kept),
            ("sandbox.memory", json!(2), json!(1), taken),
            ("store.patience", json!("30s"), json!("1m"), kept),
            ("store.patience", json!("30s"), json!("0"), taken),
        ]);
    }

    #[test]
    fn a_project_lowers_limits_and_never_raises_them() {
        let (taken, kept) = ("taken", "not taken");
        hold([
            ("max_agents", json!(64), json!(65), kept),
            ("max_turns", json!(0), json!(5), taken),
            ("max_turns", json!(5), json!(0), kept),
            ("max_turns", json!(5), json!(6), kept),
            ("max_cost", json!("0.00"), json!(2.5), taken),
            ("max_cost", json!(2), json!("2.50"), kept),
            ("session.max_cost", json!(10.0), json!(0), kept),
            ("session.max_time", json!("1h"), json!("30m"), taken),
            ("max_time", json!("30m"), json!("1h"), kept),
            ("models.a/b.input", json!(null), json!(0.0), kept),
            ("models.a/b.input", json!(3.0), json!(3.0), taken),
            ("models.a/b.context_tokens", json!(null), json!(5), taken),
            ("providers.openai-chat.base_url", json!("https://a"), json!("https://b"), "refused"),
            ("providers.openai-chat.base_url", json!("https://a"), json!("https://a"), taken),
            ("retry.attempts", json!(5), json!(100_000), kept),
            ("retry.attempts", json!(5), json!(2), taken),
            ("retry.time", json!("5m"), json!("10m"), kept),
            ("retry.time", json!("5m"), json!("1m"), taken),
            ("agents.isolation", json!("worktree"), json!("none"), kept),
            ("agents.isolation", json!("none"), json!("worktree"), taken),
            ("concurrency", json!("safe"), json!("all"), kept),
            ("urgent_from_peers", json!(false), json!(true), kept),
            ("urgent_cuts_stream", json!(true), json!(false), kept),
            ("abort_deadline", json!("2s"), json!("1h"), kept),
            ("timeouts.command_max", json!("10m"), json!("10h"), kept),
            ("providers.anthropic.max_output_tokens", json!(32_000), json!(64_000), kept),
            ("providers.anthropic.max_output_tokens", json!(32_000), json!(77), taken),
            ("providers.mine.dialect", json!(null), json!("chat"), "refused"),
            ("providers.mine.dialect", json!("chat"), json!("chat"), taken),
            ("providers.mine.key_env", json!(null), json!("OPENAI_API_KEY"), "refused"),
            ("providers.openai.headers.x-a.b", json!(null), json!("c"), "refused"),
            ("providers.openai.query.v", json!("1"), json!("2"), "refused"),
            ("providers.mine.max_concurrent", json!(256), json!(257), kept),
            ("providers.anthropic.thinking_budget", json!(null), json!(1_024), kept),
            ("providers.openai.max_output_tokens", json!(null), json!(77), taken),
            ("providers.openai.reasoning_effort", json!(null), json!("high"), kept),
            ("agents.tools", json!(null), json!(["read"]), taken),
            ("aliases.sonnet", json!("a/b"), json!("c/d"), taken),
            ("page.on_leave", json!("go_on"), json!("stop"), kept),
            ("page.on_leave", json!("stop"), json!("go_on"), kept),
            ("notify.command", json!(null), json!("curl evil"), kept),
            ("notify.command", json!("mine"), json!("curl evil"), kept),
            ("terminal.notify", json!("bell"), json!("off"), kept),
            ("terminal.notify_unsure", json!(false), json!(true), kept),
            ("terminal.queue_mode", json!(false), json!(true), kept),
            ("undo.turns", json!(100), json!(0), kept),
            ("terminal.keys.now", json!(["ctrl+x"]), json!(["ctrl+s"]), kept),
            ("a.key.of.tomorrow", json!(1), json!(2), kept),
        ]);
    }

    /// A20: a key that nobody thought of gives a project nothing, and this test says so.
    #[test]
    fn every_key_of_the_configuration_has_a_direction_and_nothing_else_has() {
        let free = ["aliases.*".to_owned()].into_iter();
        let free = free.chain(FACTS.map(|fact| format!("models.*.{fact}")));
        let free = free.chain(TABLES.map(|table| format!("providers.*.{table}.*")));
        // The table `models` is empty by default; the aliases that are built in are names.
        let known = keys::defaults().into_keys().filter(|key| key != "models");
        let known: BTreeSet<String> = known.map(|key| in_table(&key)).chain(free).collect();
        let listed = TABLE.iter().map(|(key, _)| (*key).to_owned());
        let listed: Vec<String> =
            listed.chain(Settings::all().into_iter().map(|setting| setting.key)).collect();
        assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), known);
        assert_eq!(listed.len(), known.len(), "each has one direction");
        for Setting { key, direction, .. } in Settings::all() {
            assert_ne!(direction, Persons(UNSAID), "{key}");
        }
    }

    #[test]
    fn every_limit_is_counted_in_its_own_unit() {
        let defaults = keys::defaults();
        for (key, value) in defaults.iter().filter(|(_, value)| !value.is_null()) {
            if let Down(unit) | DownFromNone(unit) = direction(key) {
                assert!(amount(unit, value).is_some(), "{key}: {value}");
            }
        }
    }
}
