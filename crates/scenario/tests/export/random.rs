//! Random sessions come back from their exports: those of the generators in `tests/reference`, on
//! virtual time as they are, and as on a machine whose store takes its time, so that what is one
//! instant there comes one after the other here.
//!
//! `MIDTURN_RANDOM=N` exports N seeds of each level, `MIDTURN_FIRST=S` begins with seed S,
//! `MIDTURN_KINDS=name,…` makes other kinds (`tests/reference/kinds.rs`).

use midturn_core::rules::time::Span;
use midturn_scenario::export::{ExportError, scenario as export};
use midturn_scenario::file;

use crate::differences;
use crate::recorded::{Recorded, is_unfinished, played, played_slowly};
use crate::reference::generate::generate_with;
use crate::reference::kinds::Kinds;
use crate::reference::yaml;

/// Seeds of each level when the environment names no number.
const SEEDS: u64 = 25;

/// How long commits take on the slow machine, in microseconds, from the beginning again at the end.
const COMMITS: [u64; 7] = [400, 1_100, 700, 3_000, 50, 900, 2_200];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// What doesn't come back; `None` when the session can't be exported, since somebody works.
fn lost(session: &Recorded) -> Option<Vec<String>> {
    match export(&session.journal, &session.events) {
        Ok(text) => Some(differences(session, &text)),
        Err(ExportError::Unfinished { .. }) if is_unfinished(&session.events) => None,
        Err(error) => Some(vec![error.to_string()]),
    }
}

/// Exports the seeds of each level: how many there were, and which don't come back.
fn exported(commits: &[u64]) -> (u64, Vec<String>) {
    let (first, seeds) = (number("MIDTURN_FIRST", 0), number("MIDTURN_RANDOM", SEEDS));
    let kinds = Kinds::from_env();
    let (mut all, mut told) = (0, Vec::new());
    for (level, seed) in (1..=4).flat_map(|level| (first..first + seeds).map(move |seed| (level, seed))) {
        let text = yaml::write(&generate_with(level, seed, &kinds.made));
        // What a file must not say is not what this is about.
        let Ok(scenario) = file::parse("random.yaml".into(), text.as_bytes()) else { continue };
        let takes = commits.iter().copied().map(Span).collect();
        let session = if commits.is_empty() { played(&scenario) } else { played_slowly(&scenario, takes) };
        let Some(wrong) = session.and_then(|session| lost(&session)) else { continue };
        all += 1;
        if !wrong.is_empty() {
            told.push(format!("level {level} seed {seed}:\n    {}", wrong.join("\n    ")));
        }
    }
    (all, told)
}

#[test]
fn a_random_session_comes_back_from_its_export() {
    let (all, told) = exported(&[]);
    assert!(all > 0 && told.is_empty(), "{} of {all} do not:\n{}", told.len(), told.join("\n"));
}

/// Commits of milliseconds beside scripts that take none: many times what happens in a session with
/// real models. Nine in ten come back all the same; the others are the orders within one commit that a
/// file has no words for.
#[test]
fn a_random_session_of_a_slow_machine_comes_back_but_for_orders_within_a_commit() {
    let (all, told) = exported(&COMMITS);
    let lost = told.len() as u64;
    eprintln!("{lost} of {all} don't come back");
    assert!(all > 0 && lost * 10 <= all, "{lost} of {all} do not:\n{}", told.join("\n"));
}
