//! What the generator makes and the comparison holds the engine to, one switch each.
//!
//! `MIDTURN_KINDS=name,-other,…` switches kinds and rules on and off, `all` all of them; level 4 makes the kinds that
//! it names, else those that are on.

use std::collections::BTreeSet;

/// Kinds of scenarios, made in level 4: the name, whether it is on, and what it has more of.
pub const KINDS: &[(&str, bool, &str)] = &[
    ("supersedes", true, "`supersedes` to all, to other receivers, of what is too late or committed"),
    ("if_queued", true, "the same with `if_queued`"),
    ("asks", true, "mail, withdrawals and further stops while a stopped run's last calls end"),
    ("prompts", true, "stops, closes, supersedes and mail in the instant of a prompt"),
    ("resume", true, "`resume` of stopped and failed agents and of all"),
    ("room", true, "people and agents who write to a full mailbox"),
    ("turns", true, "`max_turns` of agent and session"),
    ("raise", true, "the same, raised and lowered"),
    ("time", true, "`max_time` of agent and session"),
    ("tokens", true, "`max_tokens` of an agent"),
    ("crash", true, "crashes of the process"),
    ("shutdown", true, "shutdowns of the process"),
    ("ends_after", true, "calls and replies that end with an event"),
    ("words", true, "replies with white space and thinking that are cut"),
    ("agents", true, "spawning and closing under `max_agents`"),
    ("halts", true, "`stop_agent` and `close_agent` that are cut, and waits for who is superseded"),
];

/// Rules that a scenario may come upon in every level. Where one is off the scenario is not compared, and counted.
pub const RULES: &[(&str, bool)] = &[
    ("stop_of_a_prompt", true),
    ("waits_for_the_next_run", true),
    ("taken_back", true),
    ("room_of_ones_own", true),
    ("goes_on", true),
    ("cut_halt", true),
    ("resume_without_work", true),
    ("resume_of_a_failed_run", true),
    ("resume_all", true),
    ("limit", true),
    ("refused_supersede", true),
    ("too_late", true),
    ("supersedes_here_only", true),
    ("shutting_down", true),
    ("white_space", true),
    ("asked_for_at_a_limit", true),
    ("halt_of_a_stopping_run", true),
    ("crash_in_shutdown", true),
];

/// What is on in this run.
#[derive(Clone, Debug)]
pub struct Kinds {
    /// What level 4 makes.
    pub made: Vec<&'static str>,
    on: BTreeSet<&'static str>,
}

impl Kinds {
    /// The defaults, changed as `MIDTURN_KINDS` says.
    pub fn from_env() -> Kinds {
        Kinds::new(&std::env::var("MIDTURN_KINDS").unwrap_or_default())
    }

    /// The defaults, changed as a list of names says.
    pub fn new(words: &str) -> Kinds {
        let all: Vec<(&'static str, bool)> =
            KINDS.iter().map(|(name, on, _)| (*name, *on)).chain(RULES.iter().copied()).collect();
        let mut on: BTreeSet<&'static str> =
            all.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
        let mut named = Vec::new();
        for word in words.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            let (name, off) = word.strip_prefix('-').map_or((word, false), |name| (name, true));
            match all.iter().map(|(known, _)| *known).find(|known| *known == name) {
                _ if name == "all" => on.extend(all.iter().map(|(known, _)| *known)),
                Some(known) if off => drop(on.remove(known)),
                Some(known) => {
                    on.insert(known);
                    named.push(known);
                }
                None => eprintln!("MIDTURN_KINDS: nothing is called {name}"),
            }
        }
        named.retain(|name| KINDS.iter().any(|(kind, _, _)| kind == name));
        if named.is_empty() {
            named = KINDS.iter().map(|(kind, _, _)| *kind).filter(|kind| on.contains(kind)).collect();
        }
        Kinds { made: named, on }
    }

    /// The rules of a scenario that the engine is not held to.
    pub fn off<'r>(&self, met: &'r BTreeSet<&'static str>) -> Vec<&'r str> {
        met.iter().copied().filter(|rule| !self.on.contains(rule)).collect()
    }
}
