//! What a collector receives of a session.

mod asked;
mod collector;
mod resumed;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::http::StatusCode;
use midturn_core::engine::ports::{Clock, ErrorKind, Phase};
use midturn_core::engine::scripted::{ScriptedCall, ScriptedModels, ScriptedReply, Scripts, SimulatedTools};
use midturn_core::engine::{AgentSpec, Coordinator, Message, VirtualClock};
use midturn_core::rules::conversation::Usage;
use midturn_core::rules::event::{Event, Scope};
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_core::rules::mail::{Sender, Urgency};
use midturn_core::rules::time::{Micros, Span};
use midturn_core::rules::view::View;
use serde_json::{Value, json};

use super::Telemetry;
use crate::env::Env;
use collector::{Arrived, Collector, parent};

const SECOND: u64 = 1_000_000;

/// Telemetry that sends to a collector, with more variables set.
fn telemetry(collector: &Collector, more: &[(&str, &str)]) -> Telemetry {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint.as_str());
    Telemetry::from_env(&Env::of(more.iter().copied().chain([endpoint]))).unwrap()
}

fn call(id: &str, name: &str, secs: u64) -> Arc<ScriptedCall> {
    let simulated = ScriptedCall::new(id, name, json!({"path": "zebra"}));
    Arc::new(ScriptedCall { takes: Span::secs(secs), result: "zebra".to_owned(), ..simulated })
}

fn calls(tools: Vec<Arc<ScriptedCall>>) -> ScriptedReply {
    let usage = Usage { input: 50, output: 5, cached: 20 };
    ScriptedReply { takes: Span::secs(1), tools, usage, ..ScriptedReply::says("zebra") }
}

/// The lead works in a call of 30 s. The worker edits, is corrected, tries in vain, and is
/// stopped in the middle of a reply.
fn scripts() -> Scripts {
    let lead = [calls(vec![call("b1", "bash", 30)]), ScriptedReply::says("zebra")];
    let fails = ScriptedReply { error: Some(ErrorKind::Overloaded), ..ScriptedReply::default() };
    let long = ScriptedReply { takes: Span::secs(10), ..ScriptedReply::says("zebra ".repeat(10)) };
    let worker = [calls(vec![call("e1", "edit", 2), call("e2", "edit", 2)]), fails, long];
    let named = |name: &str| AgentName::new(name).unwrap();
    [(named("lead"), lead.into()), (named("worker"), worker.into())].into()
}

async fn correct_and_stop(coordinator: Coordinator, clock: Arc<VirtualClock>) {
    clock.until(Micros(2 * SECOND), Phase::Arrival(0)).await;
    let mut message = Message::new(Sender::User, "worker", "zebra");
    message.urgency = Some(Urgency::NextBoundary);
    coordinator.send(message).await.unwrap();
    clock.until(Micros(6 * SECOND), Phase::Arrival(1)).await;
    coordinator.stop("worker", Sender::User, Scope::Agent).await.unwrap();
}

/// Plays the session; the telemetry is told of it and shut down.
async fn play(telemetry: &Telemetry) {
    let clock = Arc::new(VirtualClock::default());
    let models = Arc::new(ScriptedModels::new(clock.clone(), scripts()));
    let tools = Arc::new(SimulatedTools::new(clock.clone(), scripts()));
    let session = SessionId::new("s1");
    let builder = Coordinator::builder(models, tools).clock(clock.clone());
    let coordinator = builder.observer(telemetry.observer(&session, View::default())).start().await.unwrap();
    for name in ["lead", "worker"] {
        let mut spec = AgentSpec::new(AgentName::new(name).unwrap(), "anthropic/claude-x");
        spec.prompt = Some("zebra".into());
        spec.parent = (name == "worker").then(|| AgentName::new("lead").unwrap());
        coordinator.spawn_agent(spec).await.unwrap();
    }
    let acts = tokio::spawn(correct_and_stop(coordinator.clone(), clock.clone()));
    clock.drive().await.unwrap();
    acts.await.unwrap();
    telemetry.shutdown(false);
}

/// Name, parent, whether it failed, seconds, and one attribute that says how it went.
fn row(spans: &[Arrived], span: &Arrived) -> String {
    let how = ["error.type", "midturn.tool.status", "gen_ai.response.finish_reasons", "midturn.run.outcome"];
    let how = how.iter().find_map(|key| span.attributes.get(*key)).map_or("", String::as_str);
    let mark = if span.is_error { "error" } else { "ok" };
    let parent = parent(spans, span).unwrap_or("-");
    format!("{} < {parent}: {mark} {}s {how}", span.name, span.took as f64 / 1e6)
}

#[tokio::test(start_paused = true)]
async fn a_session_arrives_as_nested_spans() {
    let collector = Collector::start(StatusCode::OK);
    play(&telemetry(&collector, &[])).await;
    let spans = collector.spans();
    let mut rows: Vec<String> = spans.iter().map(|span| row(&spans, span)).collect();
    rows.sort();
    let mut expected = [
        "invoke_agent lead < -: ok 31s finished",
        "chat claude-x < invoke_agent lead: ok 1s tool_call",
        "execute_tool bash < invoke_agent lead: ok 30s completed",
        "chat claude-x < invoke_agent lead: ok 0s stop",
        "invoke_agent worker < invoke_agent lead: ok 6s stopped",
        "chat claude-x < invoke_agent worker: ok 1s tool_call",
        "execute_tool edit < invoke_agent worker: ok 2s completed",
        "chat claude-x < invoke_agent worker: error 0s overloaded",
        "chat claude-x < invoke_agent worker: error 2.5s user_cancelled",
    ];
    expected.sort();
    assert_eq!(rows, expected);
    assert!(spans.iter().all(|span| span.trace == spans[0].trace), "one trace");
}

#[tokio::test(start_paused = true)]
async fn spans_carry_the_names_of_the_conventions() {
    let collector = Collector::start(StatusCode::OK);
    play(&telemetry(&collector, &[])).await;
    let spans = collector.spans();
    let find = |name: &str, key: &str, value: &str| {
        let is = |span: &&Arrived| span.name == name && span.attributes.get(key).is_some_and(|v| v == value);
        spans.iter().find(is).unwrap_or_else(|| panic!("no {name} with {key} {value}")).attributes.clone()
    };
    for (attributes, expected) in [
        (
            find("chat claude-x", "gen_ai.response.finish_reasons", "tool_call"),
            vec![
                ("gen_ai.operation.name", "chat"),
                ("gen_ai.provider.name", "anthropic"),
                ("gen_ai.request.model", "claude-x"),
                ("gen_ai.conversation.id", "s1"),
                ("gen_ai.usage.input_tokens", "50"),
                ("gen_ai.usage.output_tokens", "5"),
                ("gen_ai.usage.cache_read.input_tokens", "20"),
            ],
        ),
        (
            find("execute_tool edit", "gen_ai.tool.call.id", "e1"),
            vec![
                ("gen_ai.operation.name", "execute_tool"),
                ("gen_ai.agent.name", "worker"),
                ("gen_ai.tool.name", "edit"),
                ("gen_ai.tool.type", "function"),
            ],
        ),
        (
            find("invoke_agent worker", "midturn.run", "1"),
            vec![
                ("gen_ai.operation.name", "invoke_agent"),
                ("gen_ai.request.model", "claude-x"),
                ("midturn.run.trigger", "prompt"),
                ("midturn.run.turns", "2"),
            ],
        ),
    ] {
        for (key, value) in expected {
            assert_eq!(attributes.get(key).map(String::as_str), Some(value), "{key} in {attributes:?}");
        }
    }
    let resource = collector.resource();
    assert_eq!(resource["service.version"], env!("CARGO_PKG_VERSION"));
    assert!(!resource["service.name"].starts_with("unknown"), "{resource:?}");
}

#[tokio::test(start_paused = true)]
async fn messages_stops_and_retries_are_events_of_the_run() {
    let collector = Collector::start(StatusCode::OK);
    play(&telemetry(&collector, &[])).await;
    let spans = collector.spans();
    let worker = spans.iter().find(|span| span.name == "invoke_agent worker").unwrap();
    let told: Vec<(&str, &str)> = [
        ("midturn.message.queued", "midturn.message.urgency"),
        ("midturn.call.skipped", "gen_ai.tool.call.id"),
        ("midturn.message.injected", "midturn.message.point"),
        ("midturn.model_retry", "error.type"),
        ("midturn.stop_requested", "midturn.stop.by"),
    ]
    .iter()
    .map(|(name, key)| {
        let event = worker.events.iter().find(|(what, _)| what == name);
        (*name, event.unwrap_or_else(|| panic!("no {name} in {:?}", worker.events)).1[*key].as_str())
    })
    .collect();
    let values: Vec<&str> = told.iter().map(|(_, value)| *value).collect();
    assert_eq!(values, ["next_boundary", "e2", "C", "overloaded", "user"]);
}

#[tokio::test(start_paused = true)]
async fn texts_go_out_only_when_asked_for() {
    for (more, told) in [
        (vec![], false),
        (vec![(super::genai::CAPTURE, "false")], false),
        (vec![(super::genai::CAPTURE, "true")], true),
    ] {
        let collector = Collector::start(StatusCode::OK);
        play(&telemetry(&collector, &more)).await;
        let bodies = collector.bodies();
        let found = bodies.iter().any(|body| body.windows(5).any(|bytes| bytes == b"zebra"));
        assert_eq!((bodies.is_empty(), found), (false, told), "{more:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_refuses_ends_nothing() {
    let collector = Collector::start(StatusCode::UNAUTHORIZED);
    let telemetry = telemetry(&collector, &[]);
    play(&telemetry).await;
    telemetry.shutdown(false);
    assert_eq!(collector.bodies().len(), 1, "what was refused for good is not sent again");
}

/// An event as the journal has it; version and number are put in, each higher than the last.
fn event(mut fields: Value) -> Event {
    static SEQ: AtomicU64 = AtomicU64::new(100);
    let object = fields.as_object_mut().unwrap();
    object.insert("v".into(), json!(1));
    object.insert("seq".into(), json!(SEQ.fetch_add(1, Relaxed)));
    serde_json::from_value(fields).unwrap()
}

/// Tells hand-made events and gives back what arrives.
fn arrive(events: &[Value]) -> Vec<Arrived> {
    let collector = Collector::start(StatusCode::OK);
    let telemetry = telemetry(&collector, &[]);
    let observer = telemetry.observer(&SessionId::new("s1"), View::default());
    for fields in events {
        let mut fields = fields.clone();
        fields.as_object_mut().unwrap().insert("agent".to_owned(), json!("w"));
        observer.event(&event(fields));
    }
    drop(observer);
    telemetry.shutdown(false);
    collector.spans()
}

#[test]
fn odd_orders_of_events_leave_no_span_open_and_none_invented() {
    let model = |run: u64| json!({"t": 1.0, "run": run, "turn": 1, "type": "model_started", "call": 7, "messages": 2});
    let usage = json!({"input": 1, "output": 1, "cached": 0});
    let replied = |run: u64| json!({"t": 2.0, "run": run, "turn": 1, "type": "model_finished", "stop_reason": "end_turn", "usage": usage, "text": "", "thinking": [], "tools": []});
    let ends = |run: u64| json!({"t": 3.0, "run": run, "turn": 1, "type": "run_finished", "outcome": "failed", "error": "connection: zebra", "turns": 1, "usage": usage});
    let tool = json!({"t": 1.0, "run": 2, "turn": 1, "type": "tool_started", "tool": "c1", "name": "bash", "input": {}, "batch": 1});
    let started = json!({"t": 0.5, "run": 2, "turn": 0, "type": "run_started", "trigger": ["m1"]});
    let mail = json!({"t": 0.5, "run": 2, "turn": 0, "type": "message_queued", "message": "m", "from": "user", "urgency": "urgent", "text": ""});
    for (what, events, expected) in [
        (
            "a run that goes on after a crash",
            vec![model(2), replied(2), ends(2)],
            vec!["chat < invoke_agent w: ok 1s stop", "invoke_agent w < -: error 2s connection"],
        ),
        (
            "a call that fails ends with its run",
            vec![started.clone(), model(2), ends(2)],
            vec!["chat < invoke_agent w: error 2s connection", "invoke_agent w < -: error 2.5s connection"],
        ),
        (
            "a tool whose end never comes",
            vec![started.clone(), tool, ends(2)],
            vec![
                "execute_tool bash < invoke_agent w: error 2s lost",
                "invoke_agent w < -: error 2.5s connection",
            ],
        ),
        (
            "what another run says changes nothing",
            vec![started.clone(), replied(1), ends(1), ends(2)],
            vec!["invoke_agent w < -: error 2.5s connection"],
        ),
        ("mail to who rests", vec![mail, replied(2), ends(2)], vec![]),
        (
            "two beginnings",
            vec![started.clone(), started, ends(2)],
            vec!["invoke_agent w < -: error 0s lost", "invoke_agent w < -: error 2.5s connection"],
        ),
    ] {
        let spans = arrive(&events);
        let mut rows: Vec<String> = spans.iter().map(|span| row(&spans, span)).collect();
        rows.sort();
        assert_eq!(rows, expected, "{what}");
    }
}
