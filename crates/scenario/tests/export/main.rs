//! An export says what the session was: replayed, it comes to the same.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod instant;
mod odd;
mod random;
mod recorded;
#[path = "../../../../tests/reference/mod.rs"]
mod reference;

use std::collections::BTreeMap;

use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::time::Span;
use midturn_scenario::export::{ExportError, scenario as export};
use midturn_scenario::{check_text, replay_text};
use recorded::{Recorded, is_unfinished, played, played_slowly, simulated};

/// What has to agree: by agent, what became of its calls and runs, and of mail to it.
type Facts = BTreeMap<String, String>;

fn facts(events: &[Event]) -> Facts {
    let mut facts = Facts::new();
    for event in events {
        let agent = event.at.agent.as_ref().map(ToString::to_string).unwrap_or_default();
        let place = format!("run {:?} turn {:?}", event.at.run, event.at.turn);
        match &event.kind {
            EventKind::ToolFinished { tool, status, .. } => {
                facts.insert(format!("{agent}: call {tool}"), format!("{status:?} {place}"));
            }
            EventKind::MessageInjected { messages, point, skipped, interrupted, .. } => {
                for message in messages {
                    let what = format!("{point:?} {place}, skipped {skipped:?}, interrupted {interrupted:?}");
                    facts.insert(format!("{agent}: message {message}"), what);
                }
            }
            EventKind::MessageReturned { message, reason } => {
                facts.insert(format!("{agent}: message {message}"), format!("{reason:?}"));
            }
            EventKind::Compacted { messages, tokens } => {
                facts.insert(format!("{agent}: compacted in {place}"), format!("{messages:?} {tokens:?}"));
            }
            EventKind::RunFinished { outcome, turns, .. } => {
                facts.insert(
                    format!("{agent}: run {}", event.at.run.unwrap()),
                    format!("{outcome:?} after {turns}"),
                );
            }
            _ => {}
        }
    }
    facts
}

fn read(events: Vec<serde_json::Value>) -> Vec<Event> {
    events.into_iter().map(|event| serde_json::from_value(event).unwrap()).collect()
}

/// What doesn't agree between a session and the replay of its export.
fn differences(session: &Recorded, text: &str) -> Vec<String> {
    let (before, after) = (facts(&session.events), facts(&read(replay_text(text).unwrap())));
    let mut told: Vec<String> = Vec::new();
    for (what, was) in &before {
        let is = after.get(what).map_or("nothing", String::as_str);
        if is != was {
            told.push(format!("{what}: {was}, and now {is}"));
        }
    }
    told.extend(after.keys().filter(|what| !before.contains_key(*what)).map(|what| format!("{what} is new")));
    told
}

#[test]
fn every_scenario_comes_back_from_its_export() {
    let mut told = Vec::new();
    for (path, scenario) in simulated() {
        let session = played(&scenario).unwrap();
        let text = match export(&session.journal, &session.events) {
            Ok(text) => text,
            Err(ExportError::Unfinished { .. }) if is_unfinished(&session.events) => continue,
            Err(error) => {
                told.push(format!("{}: {error}", path.display()));
                continue;
            }
        };
        let mut wrong = differences(&session, &text);
        wrong.extend(check_text("export", &text).unwrap().iter().map(|failure| failure.to_string()));
        if !wrong.is_empty() {
            told.push(format!("{}:\n    {}\n{text}", path.display(), wrong.join("\n    ")));
        }
    }
    assert!(told.is_empty(), "{} do not:\n{}", told.len(), told.join("\n"));
}

/// How long commits take, in microseconds, one row a machine.
const MACHINES: [&[u64]; 4] =
    [&[1_000], &[100, 2_300, 700, 9_000, 50], &[4_000, 1, 1, 30_000, 12, 800, 2_000], &[17, 6_100, 450]];

/// What an export can't say of some slow machine: the scenario, and why.
const LOST: [(&str, &str); 10] = [
    (
        "receipts/the-same-id-is-the-same-message.yaml",
        "the first of three sends was read and answered before the third",
    ),
    ("agents/a-report-whose-call-is-cut-is-mail-after-all.yaml", BEHIND_A_CALL),
    ("stop/a-second-stop-waits-for-the-same-end.yaml", BEHIND_A_CALL),
    ("approvals/an-answer-that-is-overtaken-leaves-no-request-open.yaml", WITHIN_A_START),
    ("approvals/of-an-answer-and-an-urgent-message-in-one-instant-the-message-wins.yaml", WITHIN_A_START),
    ("crash/a-crash-in-the-last-turn-reaches-no-limit.yaml", AT_A_TAKE_UP),
    ("crash/a-shutdown-at-the-take-up-stops-the-run-that-was-left.yaml", AT_A_TAKE_UP),
    ("crash/an-end-that-was-not-told-is-told-before-all-else.yaml", AT_A_TAKE_UP),
    ("crash/who-is-at-a-limit-goes-on-behind-a-crash-no-more-than-before.yaml", AT_A_TAKE_UP),
    (
        "instants/a-limit-in-time-acts-before-what-arrives.yaml",
        "a limit in time is up at its own microsecond",
    ),
];

const BEHIND_A_CALL: &str =
    "a call of the coordinator's ends in no time, and a report came while its end was recorded";
const WITHIN_A_START: &str = "a message came while the start of an approved call was recorded";
const AT_A_TAKE_UP: &str =
    "what came while no process lived was taken in while the first steps were recorded";

#[test]
fn a_session_of_a_slow_machine_checks_itself_when_it_is_replayed() {
    let mut told = Vec::new();
    let mut exported = 0;
    for (path, scenario) in simulated() {
        let path = path.to_string_lossy().into_owned();
        for (machine, takes) in MACHINES.iter().enumerate() {
            let session = played_slowly(&scenario, takes.iter().copied().map(Span).collect()).unwrap();
            let wrong: Vec<String> = match export(&session.journal, &session.events) {
                Ok(text) => {
                    exported += 1;
                    let failures = check_text("export", &text).unwrap();
                    failures.iter().map(|failure| failure.expected.clone()).collect()
                }
                Err(ExportError::Unfinished { .. }) if is_unfinished(&session.events) => Vec::new(),
                Err(error) => vec![error.to_string()],
            };
            if !wrong.is_empty() && !LOST.iter().any(|(known, _)| *known == path) {
                told.push(format!("{path} on machine {machine}:\n    {}", wrong.join("\n    ")));
            }
        }
    }
    assert!(exported > 500 && told.is_empty(), "{} of {exported} do not:\n{}", told.len(), told.join("\n"));
}

#[test]
fn an_export_of_an_earlier_version_still_replays() {
    let failures = check_text("of-before.yaml", include_str!("of-before.yaml")).unwrap();
    assert!(failures.is_empty(), "{failures:?}");
}
