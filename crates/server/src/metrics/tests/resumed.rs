//! Figures of a session that goes on: what was there before is known, and counted once.

use std::sync::Arc;

use midturn_core::engine::ports::archive::{AgentJournal, KeptMail, SessionJournal, SessionRecord};
use midturn_core::engine::ports::store::{Accepted, AgentRecord, RunEnd};
use midturn_core::engine::ports::tool::Changes;
use midturn_core::rules::event::Outcome;
use midturn_core::rules::id::{AgentName, MessageId, RunId, SessionId};
use midturn_core::rules::mail::{Injection, Mail, MailKind, Point, ReceiptState, Role, Sender, Urgency};
use midturn_core::rules::progress::{Closed, Progress};
use midturn_core::rules::settings::Settings;
use midturn_core::rules::time::Micros;
use serde_json::Value;

use super::super::Metrics;
use super::{ended, event, figure, injected, replied};

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

/// An agent whose last run was `run`, and the last that ended was `ended`.
fn agent(who: &str, run: RunId, ended: RunId, closed: bool) -> AgentJournal {
    let record = AgentRecord {
        index: 0,
        name: name(who),
        role: Role::Subagent,
        parent: None,
        prompt: None,
        model: None,
        system: "".into(),
        settings: Arc::new(Settings::default()),
        memo: Value::Null,
    };
    let end = RunEnd {
        agent: name(who),
        run: ended,
        outcome: Outcome::Finished,
        reason: None,
        text: "".into(),
        changes: Changes::default(),
        restarts: false,
        owed_to: None,
    };
    let closed = if closed { Closed::Told } else { Closed::No };
    let stands = Progress { run, closed, turns: 1, calls: 1, ..Progress::default() };
    let last_end = (ended > 0).then_some((end, 1));
    AgentJournal { stands, last_end, ..AgentJournal::new(record) }
}

fn mail(id: &str, state: ReceiptState) -> KeptMail {
    let mail = Mail {
        id: MessageId::new(id),
        from: Sender::User,
        to: name("w"),
        text: "zebra".into(),
        urgency: Urgency::AfterTools,
        kind: MailKind::Words,
        only_run: None,
        expires_at: None,
    };
    KeptMail {
        accepted: Accepted { mail: Arc::new(mail), address: "w".into(), urgency: None },
        seq: 1,
        state,
    }
}

fn journal() -> SessionJournal {
    let injection =
        Injection { point: Point::D, run: 1, turn: 1, skipped: Arc::default(), interrupted: Arc::default() };
    let record = SessionRecord {
        id: SessionId::new("s1"),
        began_at: 0,
        folder: "".to_owned(),
        title: "".to_owned(),
        memo: Value::Null,
    };
    SessionJournal {
        record,
        last_seq: 9,
        last_t: Micros(9),
        lived: Default::default(),
        limits: Default::default(),
        agents: vec![agent("w", 1, 0, false), agent("rests", 2, 2, false), agent("gone", 1, 1, true)],
        mail: vec![
            mail("waits", ReceiptState::Queued),
            mail("read", ReceiptState::Sent { injection: injection.clone(), call: 1 }),
            mail("done", ReceiptState::Answered { injection, call: 1 }),
        ],
    }
}

#[test]
fn a_resumed_session_brings_its_agents_and_mail_and_counts_nothing_twice() {
    let metrics = Metrics::default();
    let session = metrics.for_resumed(&journal());
    let told = |path: &str| figure(&metrics, path).as_i64().unwrap();
    for (path, expected) in [
        ("/agents/live", 2),
        ("/agents/working", 1),
        ("/messages/waiting", 1),
        ("/messages/accepted", 0),
        ("/runs/started", 0),
    ] {
        assert_eq!(told(path), expected, "{path}");
    }
    for fields in [injected(10.0, &["waits"], "D"), replied(11.0), ended(12.0, 1, "finished")] {
        session.event(&event(fields));
    }
    for (path, expected) in [
        ("/agents/live", 2),
        ("/agents/working", 0),
        ("/messages/waiting", 0),
        ("/messages/injected", 1),
        // The one that was injected now, and the one that had no reply yet.
        ("/messages/answered", 2),
        ("/runs/ended/finished", 1),
    ] {
        assert_eq!(told(path), expected, "{path}");
    }
    // How long it had waited is not known.
    assert_eq!(figure(&metrics, "/messages/wait_seconds"), serde_json::json!({}));
    drop(session);
    assert_eq!((told("/agents/live"), told("/sessions")), (0, 0));
}
