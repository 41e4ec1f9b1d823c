//! Every simulated scenario, folded as people read it, here and in the page.

#![expect(clippy::unwrap_used, reason = "a test that can't read its files fails")]

#[expect(dead_code, reason = "other tests throw more")]
#[path = "crash/dice.rs"]
mod dice;
mod needs;
#[path = "fold/page.rs"]
mod page;
#[path = "fold/random.rs"]
mod random;
#[path = "fold/review.rs"]
mod review;
#[path = "fold/same.rs"]
mod same;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::mail::ReceiptState;
use midturn_tests::root;
use midturn_view::fold::{CallState, Conversation, EntryKind, Session};
use midturn_view::{agents, mail};

/// The scenario files below a folder. A workspace that a scenario brings along is below `real`, as are
/// those that need real tools.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path != root().join("scenarios/real") {
            files(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "yaml" || ext == "yml") {
            found.push(path);
        }
    }
}

/// What was played of each scenario, by its path; once for all tests.
fn played() -> impl Iterator<Item = (std::path::Display<'static>, &'static [Event])> {
    static PLAYED: OnceLock<BTreeMap<PathBuf, Vec<Event>>> = OnceLock::new();
    let played = PLAYED.get_or_init(|| {
        let mut found = Vec::new();
        files(&root().join("scenarios"), &mut found);
        assert!(found.len() >= 100, "{} scenarios", found.len());
        found.into_iter().map(|path| (path.strip_prefix(root()).unwrap().to_owned(), play(&path))).collect()
    });
    played.iter().map(|(path, events)| (path.display(), events.as_slice()))
}

fn play(path: &Path) -> Vec<Event> {
    let text = std::fs::read_to_string(path).unwrap();
    let events = midturn_scenario::replay_text(&text).unwrap();
    events.into_iter().map(|event| serde_json::from_value(event).unwrap()).collect()
}

/// How often each thing is told of each agent.
type Count<Of> = BTreeMap<(AgentName, Of), usize>;

fn count<Of: Ord>(all: impl Iterator<Item = (AgentName, Of)>) -> Count<Of> {
    let mut count = Count::new();
    all.for_each(|one| *count.entry(one).or_default() += 1);
    count
}

/// Of the events, what `of` finds in each; of an agent that it is told of.
fn told<Of: Ord>(events: &[Event], of: impl Fn(&EventKind) -> Vec<Of>) -> Count<Of> {
    let agent = |event: &Event| event.at.agent.clone();
    let all = events.iter().filter_map(|event| Some((agent(event)?, of(&event.kind))));
    count(all.flat_map(|(agent, all)| all.into_iter().map(move |one| (agent.clone(), one))))
}

fn conversations(session: &Session) -> impl Iterator<Item = (&AgentName, &Conversation)> {
    session.view().agents().filter_map(|(name, _)| Some((name, session.conversation(name)?)))
}

/// The same of the entries.
fn shown<Of: Ord>(session: &Session, of: impl Fn(&EntryKind) -> Vec<Of>) -> Count<Of> {
    let entries =
        conversations(session).flat_map(|(name, it)| it.entries().map(move |(_, entry)| (name, entry)));
    count(entries.flat_map(|(name, entry)| of(&entry.kind).into_iter().map(|one| (name.clone(), one))))
}

fn folded(events: &[Event]) -> Session {
    let mut session = Session::default();
    events.iter().for_each(|event| {
        session.event(event);
    });
    session
}

#[test]
fn every_call_that_ended_is_shown_once_with_its_status() {
    for (path, events) in played() {
        let told = told(events, |kind| match kind {
            EventKind::ToolFinished { tool, status, .. } => vec![(tool.to_string(), status.as_str())],
            _ => vec![],
        });
        let shown = shown(&folded(events), |kind| match kind {
            EntryKind::Call(call) => match &call.state {
                CallState::Ended { status, .. } => vec![(call.id.to_string(), status.as_str())],
                CallState::Waiting | CallState::Running { .. } => vec![],
            },
            _ => vec![],
        });
        assert_eq!(shown, told, "{path}");
    }
}

#[test]
fn every_message_that_was_injected_or_returned_is_shown_once() {
    for (path, events) in played() {
        let session = folded(events);
        let injected = told(events, |kind| match kind {
            EventKind::MessageInjected { messages, .. } => messages.clone(),
            _ => vec![],
        });
        let came_in = shown(&session, |kind| match kind {
            EntryKind::Injected(mail) => mail.letters.iter().map(|letter| letter.id.clone()).collect(),
            _ => vec![],
        });
        assert_eq!(came_in, injected, "{path}");
        let returned = told(events, |kind| match kind {
            EventKind::MessageReturned { message, .. } => vec![message.clone()],
            _ => vec![],
        });
        let came_back = shown(&session, |kind| match kind {
            EntryKind::Returned { letter, .. } => vec![letter.id.clone()],
            _ => vec![],
        });
        assert_eq!(came_back, returned, "{path}");
    }
}

#[test]
fn every_letter_has_its_sender_and_its_text() {
    for (path, events) in played() {
        let nameless = shown(&folded(events), |kind| match kind {
            EntryKind::Injected(mail) => {
                let nameless = mail.letters.iter().filter(|letter| letter.from.is_empty());
                nameless.map(|letter| letter.id.clone()).collect()
            }
            _ => vec![],
        });
        assert_eq!(nameless, Count::<MessageId>::new(), "{path}");
    }
}

#[test]
fn of_a_run_that_has_ended_nothing_waits_or_runs() {
    for (path, events) in played() {
        let session = folded(events);
        for (name, conversation) in conversations(&session) {
            let ended = session.view().agent(name).unwrap().ended;
            for (_, entry) in conversation.entries().filter(|(_, entry)| entry.run <= ended) {
                if let EntryKind::Call(call) = &entry.kind {
                    let has_ended = matches!(call.state, CallState::Ended { .. });
                    assert!(has_ended, "{path}: {name}: {call:?}");
                }
            }
        }
    }
}

#[test]
fn every_word_of_a_person_stands_with_its_call() {
    for (path, events) in played() {
        let told = told(events, |kind| match kind {
            EventKind::ApprovalResolved { tool, decision, .. } => vec![(tool.to_string(), decision.as_str())],
            _ => vec![],
        });
        let shown = shown(&folded(events), |kind| match kind {
            EntryKind::Call(call) => {
                let word = call.word.iter().map(|(decision, ..)| (call.id.to_string(), decision.as_str()));
                word.collect()
            }
            _ => vec![],
        });
        assert_eq!(shown, told, "{path}");
    }
}

#[test]
fn what_is_answered_is_what_the_receipts_say() {
    for (path, events) in played() {
        let session = folded(events);
        for (name, conversation) in conversations(&session) {
            let agent = session.view().agent(name).unwrap();
            for message in &agent.past {
                let letters = conversation.entries().filter_map(|(_, entry)| match &entry.kind {
                    EntryKind::Injected(mail) => Some(mail),
                    _ => None,
                });
                let is_it = |mail: &&midturn_view::fold::Injected| {
                    mail.letters.iter().any(|it| it.id == message.id && *it.from == *message.from)
                };
                let answered = letters.filter(is_it).any(|mail| mail.answered);
                let expected = matches!(message.state, ReceiptState::Answered { .. });
                assert_eq!(answered, expected, "{path}: {name}: {message:?}");
            }
        }
    }
}

#[test]
fn at_every_moment_there_are_words_of_one_line_for_every_agent_and_its_mail() {
    for (path, events) in played() {
        let mut session = Session::default();
        for event in events {
            session.event(event);
            let Some(name) = &event.at.agent else { continue };
            let Some(agent) = session.view().agent(name) else { continue };
            let ask = session.view().open_asks().iter().find(|ask| ask.agent == *name);
            let doing = agents::doing(agent, ask, event.t);
            let last = session.conversation(name).and_then(|it| it.entries().next_back());
            let injected = match last.map(|(_, entry)| &entry.kind) {
                Some(EntryKind::Injected(injected)) => mail::injected(injected),
                _ => String::from("-"),
            };
            for words in [doing.words, injected] {
                let is_fine = !words.trim().is_empty() && !words.contains(char::is_control);
                assert!(is_fine, "{path}: {name}: {words:?}");
            }
        }
    }
}
