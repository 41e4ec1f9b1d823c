//! What the fold of a session's events says at its end is what a store kept of it, in every
//! scenario: those with crashes, stops, compactions and limits among them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use midturn_core::engine::ports::archive::{AgentJournal, SessionJournal, SessionRecord};
use midturn_core::engine::ports::{KeepingStore, Store};
use midturn_core::rules::conversation::Usage;
use midturn_core::rules::id::SessionId;
use midturn_core::rules::view::{Agent, View};
use midturn_scenario::file;
use midturn_scenario::play::{Keeps, play_kept};
use midturn_scenario::scenario::{Scenario, Tools};

fn below(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => below(&path, paths),
            false => paths.push(path),
        }
    }
}

fn scenarios() -> Vec<Scenario> {
    let mut paths = Vec::new();
    below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios"), &mut paths);
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    let read = paths.into_iter().map(|path| file::load(&path).unwrap());
    read.filter(|scenario| matches!(scenario.tools, Tools::Simulated)).collect()
}

/// What was kept, and what is seen.
fn both(scenario: &Scenario) -> (SessionJournal, View) {
    let store = Arc::new(KeepingStore::default());
    let kept: Arc<dyn Store> = store.clone();
    let keeps = Keeps { store: kept, clock: Arc::default(), virtual_time: true };
    let played = play_kept(scenario, keeps).unwrap();
    let mut view = View::default();
    played.record.events.iter().for_each(|event| {
        view.event(event);
    });
    let record = SessionRecord {
        id: SessionId::new("s1"),
        began_at: 0,
        folder: String::new(),
        title: String::new(),
        memo: serde_json::Value::Null,
    };
    (store.journal(record), view)
}

fn agree(what: &str, kept: &AgentJournal, known: &Agent, seen: &Agent) {
    let shape = |agent: &Agent| (agent.parent.clone(), agent.role, agent.model.clone(), agent.is_closed);
    assert_eq!(shape(known), shape(seen), "{what}");
    assert_eq!((known.ended, &known.plan), (seen.ended, &seen.plan), "{what}");
    assert!(known.outcome.is_none_or(|outcome| seen.outcome == Some(outcome)), "{what}");
    let mut usage = Usage::default();
    kept.rows.iter().filter_map(|row| row.line.usage()).for_each(|used| usage.add(used));
    assert_eq!(usage, seen.usage, "{what}");
    let under_way = (seen.request.is_some(), seen.calls.len(), seen.said.pieces().count());
    assert_eq!(under_way, (false, 0, 0), "{what}");
}

#[test]
fn what_is_seen_of_a_session_is_what_was_kept_of_it() {
    let scenarios = scenarios();
    assert!(scenarios.len() > 200, "{} scenarios", scenarios.len());
    let mut states = std::collections::BTreeSet::new();
    for scenario in &scenarios {
        let (journal, seen) = both(scenario);
        let known = journal.view();
        for kept in &journal.agents {
            let name = &kept.record.name;
            let what = format!("{}: {name}", scenario.source.path);
            agree(&what, kept, known.agent(name).unwrap(), seen.agent(name).unwrap());
        }
        for kept in &journal.mail {
            let (mail, from) = (&kept.accepted.mail, kept.accepted.mail.from.to_string());
            let receiver = seen.agent(&mail.to).unwrap();
            let mut all = receiver.queue.iter().chain(&receiver.past);
            let found = all.find(|message| message.id == mail.id && message.from == from);
            let what = format!("{}: {} to {}", scenario.source.path, mail.id, mail.to);
            // Of those that nothing more happens to only the newest are seen.
            assert!(found.is_some() || kept.state.is_final(), "{what}: {:?}", kept.state);
            assert!(
                found.is_none_or(|found| found.state == kept.state),
                "{what}: {found:?}, {:?}",
                kept.state
            );
            states.insert(kept.state.as_str());
        }
        assert_eq!(seen.open_asks(), [], "{}", scenario.source.path);
        assert_eq!(seen.waiting(), known.waiting(), "{}", scenario.source.path);
    }
    assert_eq!(
        states.into_iter().collect::<Vec<_>>(),
        ["answered", "injected", "queued", "returned", "sent"]
    );
}
