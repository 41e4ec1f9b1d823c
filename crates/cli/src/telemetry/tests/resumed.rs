//! Spans of a session that goes on: its agents have names, models and parents already.

use std::sync::Arc;

use axum::http::StatusCode;
use midturn_core::engine::ports::archive::{AgentJournal, SessionJournal, SessionRecord};
use midturn_core::engine::ports::store::AgentRecord;
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_core::rules::mail::Role;
use midturn_core::rules::progress::Progress;
use midturn_core::rules::settings::Settings;
use midturn_core::rules::time::Micros;
use serde_json::{Value, json};

use super::collector::Collector;
use super::{event, row, telemetry};

/// An agent in the middle of its first run.
fn agent(name: &str, parent: Option<&str>) -> AgentJournal {
    let record = AgentRecord {
        index: 0,
        name: AgentName::new(name).unwrap(),
        role: Role::Subagent,
        parent: parent.map(|parent| AgentName::new(parent).unwrap()),
        prompt: None,
        model: Some("openai/gpt-x".into()),
        system: "".into(),
        settings: Arc::new(Settings::default()),
        memo: Value::Null,
    };
    let stands = Progress { run: 1, turns: 1, calls: 1, ..Progress::default() };
    AgentJournal { stands, ..AgentJournal::new(record) }
}

#[test]
fn a_resumed_session_knows_its_models_and_parents() {
    let record = SessionRecord {
        id: SessionId::new("s7"),
        began_at: 0,
        folder: String::new(),
        title: String::new(),
        memo: Value::Null,
    };
    let agents = vec![agent("lead", None), agent("worker", Some("lead"))];
    let journal = SessionJournal {
        record,
        last_seq: 9,
        last_t: Micros(9),
        lived: Default::default(),
        limits: Default::default(),
        agents,
        mail: Vec::new(),
    };
    let collector = Collector::start(StatusCode::OK);
    let telemetry = telemetry(&collector, &[]);
    let observer = telemetry.observer(&journal.record.id, journal.view());
    let usage = json!({"input": 1, "output": 1, "cached": 0});
    let asks = |t: f64, agent: &str| json!({"t": t, "agent": agent, "run": 1, "turn": 2, "type": "model_started", "call": 2, "messages": 3});
    let ends = |t: f64, agent: &str| json!({"t": t, "agent": agent, "run": 1, "turn": 2, "type": "run_finished", "outcome": "stopped", "turns": 2, "usage": usage});
    for fields in [asks(10.0, "lead"), asks(11.0, "worker"), ends(12.0, "worker"), ends(13.0, "lead")] {
        observer.event(&event(fields));
    }
    telemetry.shutdown(false);
    let spans = collector.spans();
    let mut rows: Vec<String> = spans.iter().map(|span| row(&spans, span)).collect();
    rows.sort();
    assert_eq!(
        rows,
        [
            "chat gpt-x < invoke_agent lead: error 3s lost",
            "chat gpt-x < invoke_agent worker: error 1s lost",
            "invoke_agent lead < -: ok 3s stopped",
            "invoke_agent worker < invoke_agent lead: ok 1s stopped",
        ]
    );
    assert!(spans.iter().all(|span| span.attributes["gen_ai.conversation.id"] == "s7"));
}
