//! Short words for what the claims submit, for a store's own tests, too.

use std::sync::Arc;

use midturn_core::engine::ports::store::{Accepted, AgentRecord, ReceiptMove, Row, RunEnd};
use midturn_core::engine::ports::{Changes, SessionRecord, Transaction};
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::{InterruptReason, Usage};
use midturn_core::rules::event::{Event, EventKind, Outcome, Place, Trigger, VERSION};
use midturn_core::rules::id::{AgentName, MessageId, SessionId};
use midturn_core::rules::mail::{Injection, Mail, MailKind, Point, ReceiptState, Role, Sender, Urgency};
use midturn_core::rules::record::Line;
use midturn_core::rules::settings::Settings;
use midturn_core::rules::time::Micros;

/// A name that is one.
pub fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

/// A session of this id, with odd letters in all that is text.
pub fn session(id: &str) -> SessionRecord {
    SessionRecord {
        id: SessionId::new(id),
        began_at: 1_700_000_000_000_000,
        folder: "/a folder".into(),
        title: "a task\0with ␀".into(),
        memo: serde_json::json!({"model": "m\0", "n": 0.1}),
    }
}

/// An agent in this place of the order: the lead in the first, the others below it.
pub fn agent(index: u32, text: &str) -> AgentRecord {
    let settings = Settings { max_turns: index + 3, ..Settings::default() };
    AgentRecord {
        index,
        name: name(text),
        role: if index == 0 { Role::Lead } else { Role::Subagent },
        parent: (index > 0).then(|| name("lead")),
        prompt: (index > 0).then(|| "do\0it ␀0".into()),
        model: Some("scripted/x".into()),
        system: "You are \u{1f600}.".into(),
        settings: Arc::new(settings),
        memo: serde_json::json!([1.5, 1e300, {"␀\0": null}]),
    }
}

/// An event of an agent in a run and a turn; 0 stands for neither.
pub fn event(seq: u64, agent: &str, run: u64, turn: u32, kind: EventKind) -> Event {
    Event { v: VERSION, seq, t: Micros(seq * 1_000_003), at: Place::of(&name(agent), run, turn), kind }
}

/// A run begins with its prompt.
pub fn run_started() -> EventKind {
    EventKind::RunStarted { trigger: Trigger::Prompt }
}

/// A model is called.
pub fn model_started(call: u64) -> EventKind {
    EventKind::ModelStarted { call, messages: 3, purpose: Purpose::Turn }
}

/// A run has finished after this many turns.
pub fn run_finished(turns: u32) -> EventKind {
    EventKind::RunFinished { outcome: Outcome::Finished, error: None, turns, usage: Usage::default() }
}

/// A message that is accepted for the next boundary.
pub fn mail(from: Sender, id: &str, to: &str, text: &str) -> Accepted {
    let mail = Mail {
        id: MessageId::new(id),
        from,
        to: name(to),
        text: text.into(),
        urgency: Urgency::NextBoundary,
        kind: MailKind::Words,
        only_run: None,
        expires_at: None,
    };
    Accepted { mail: Arc::new(mail), address: to.into(), urgency: None }
}

/// The event that tells of a message.
pub fn queued(seq: u64, run: u64, turn: u32, accepted: &Accepted) -> Event {
    let mail = &accepted.mail;
    let kind = EventKind::MessageQueued {
        message: mail.id.clone(),
        from: mail.from.to_string(),
        urgency: mail.urgency,
        text: mail.text.clone(),
    };
    event(seq, mail.to.as_str(), run, turn, kind)
}

/// Where a message was injected, and what it skipped.
pub fn injection() -> Injection {
    Injection {
        point: Point::C,
        run: 1,
        turn: 2,
        skipped: vec![midturn_core::rules::id::CallId::new("c\0")].into(),
        interrupted: Arc::default(),
    }
}

/// The receipt of a message moves.
pub fn moved(accepted: &Accepted, state: ReceiptState) -> ReceiptMove {
    let mail = &accepted.mail;
    ReceiptMove { from: mail.from.clone(), id: mail.id.clone(), to: mail.to.clone(), state }
}

/// A line of an agent's conversation.
pub fn said(agent: &str, text: &str) -> Row {
    Row { agent: name(agent), run: 1, turn: 1, line: Line::Prompt(text.into()) }
}

/// The end of a run, stopped if there is a reason, that the lead has still to be told of.
pub fn ended(agent: &str, run: u64, reason: Option<InterruptReason>) -> RunEnd {
    RunEnd {
        agent: name(agent),
        run,
        outcome: if reason.is_some() { Outcome::Stopped } else { Outcome::Finished },
        reason,
        text: "an\0swer".into(),
        changes: Changes {
            branch: Some("midturn/x".into()),
            files: vec!["a b\0".into()],
            notes: vec!["␀".into()],
        },
        restarts: run == 1,
        owed_to: Some(name("lead")),
    }
}

/// A transaction of rows only.
pub fn rows(rows: Vec<Row>) -> Arc<Transaction> {
    Arc::new(Transaction { rows, ..Transaction::default() })
}

/// A transaction of events only.
pub fn events(events: Vec<Event>) -> Arc<Transaction> {
    Arc::new(Transaction { events, ..Transaction::default() })
}
