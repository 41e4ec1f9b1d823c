//! Figures from tables of events, from a played session, and the page that is scraped.

mod page;
mod played;

use std::sync::Arc;

use midturn_core::engine::ports::Observer;
use midturn_core::rules::event::Event;
use midturn_core::rules::time::Span;
use serde_json::{Value, json};

use super::Metrics;

/// An event as the journal has it; numbers and version are put in.
fn event(mut fields: Value) -> Event {
    let object = fields.as_object_mut().unwrap();
    object.insert("v".into(), json!(1));
    object.insert("seq".into(), json!(1));
    serde_json::from_value(fields).unwrap()
}

/// An event of the agent `w`'s first run.
fn of_w(t: f64, kind: &str, more: Value) -> Value {
    let mut fields = json!({"t": t, "agent": "w", "run": 1, "turn": 1, "type": kind});
    let object = fields.as_object_mut().unwrap();
    more.as_object().unwrap().iter().for_each(|(key, value)| {
        object.insert(key.clone(), value.clone());
    });
    fields
}

fn started(t: f64, run: u64) -> Value {
    of_w(t, "run_started", json!({"run": run, "trigger": "prompt"}))
}

fn ended(t: f64, run: u64, outcome: &str) -> Value {
    let usage = json!({"input": 0, "output": 0, "cached": 0});
    of_w(t, "run_finished", json!({"run": run, "outcome": outcome, "turns": 1, "usage": usage}))
}

fn stop(t: f64, run: u64, by: &str) -> Value {
    of_w(t, "stop_requested", json!({"run": run, "by": by, "scope": "agent", "still_queued": []}))
}

fn cut(t: f64, run: u64, reason: &str, tokens: u64) -> Value {
    let more =
        json!({"run": run, "reason": reason, "text": "zebra", "thinking": [], "partial_tokens": tokens});
    of_w(t, "model_interrupted", more)
}

fn queued(t: f64, id: &str, from: &str, urgency: &str) -> Value {
    of_w(t, "message_queued", json!({"message": id, "from": from, "urgency": urgency, "text": "zebra"}))
}

fn injected(t: f64, ids: &[&str], point: &str) -> Value {
    let more =
        json!({"messages": ids, "point": point, "text": "zebra", "skipped": ["c2"], "interrupted": []});
    of_w(t, "message_injected", more)
}

fn returned(t: f64, id: &str, reason: &str) -> Value {
    of_w(t, "message_returned", json!({"message": id, "reason": reason}))
}

fn replied(t: f64) -> Value {
    let usage = json!({"input": 100, "output": 10, "cached": 60});
    let more =
        json!({"stop_reason": "end_turn", "usage": usage, "text": "zebra", "thinking": [], "tools": []});
    of_w(t, "model_finished", more)
}

fn tool(t: f64, status: &str) -> Value {
    let more =
        json!({"tool": "c1", "name": "zebra", "status": status, "is_error": false, "bytes": 0, "output": ""});
    of_w(t, "tool_finished", more)
}

/// The figures after these events, and the session they came from.
fn after(events: impl IntoIterator<Item = Value>) -> (Metrics, Arc<dyn Observer>) {
    let metrics = Metrics::default();
    let session = metrics.for_session();
    events.into_iter().for_each(|fields| session.event(&event(fields)));
    (metrics, session)
}

/// A figure by its path in the JSON.
fn figure(metrics: &Metrics, path: &str) -> Value {
    let stats = metrics.stats();
    stats.pointer(path).unwrap_or_else(|| panic!("no {path} in {stats:#}")).clone()
}

#[test]
fn figures_follow_from_events() {
    let message = |id: &str| [queued(0.0, id, "user", "urgent"), injected(1.0, &[id], "C")];
    for (what, events, expected) in [
        (
            "an agent works",
            vec![started(0.0, 1)],
            vec![("/agents/live", json!(1)), ("/agents/working", json!(1))],
        ),
        (
            "and rests",
            vec![started(0.0, 1), ended(1.0, 1, "finished")],
            vec![
                ("/agents/live", json!(1)),
                ("/agents/working", json!(0)),
                ("/runs/ended/finished", json!(1)),
            ],
        ),
        (
            "and is closed",
            vec![started(0.0, 1), ended(1.0, 1, "limit"), of_w(1.0, "agent_closed", json!({}))],
            vec![("/agents/live", json!(0)), ("/runs/ended/limit", json!(1))],
        ),
        (
            "a run that goes on after a crash has no beginning",
            vec![of_w(0.0, "model_started", json!({"call": 7, "messages": 3}))],
            vec![("/agents/working", json!(1)), ("/runs/started", json!(0)), ("/model/calls", json!(1))],
        ),
        (
            "mail waits",
            vec![
                queued(0.0, "m1", "user", "urgent"),
                queued(0.0, "m2", "user", "urgent"),
                injected(1.0, &["m1"], "C"),
            ],
            vec![
                ("/messages/accepted", json!(2)),
                ("/messages/injected", json!(1)),
                ("/messages/waiting", json!(1)),
            ],
        ),
        (
            "each is measured from its own beginning",
            vec![
                queued(0.0, "m1", "user", "follow_up"),
                queued(9.0, "m2", "user", "urgent"),
                injected(9.0, &["m1", "m2"], "B"),
            ],
            vec![
                ("/messages/wait_seconds/follow_up/count", json!(1)),
                ("/messages/wait_seconds/urgent/count", json!(1)),
                ("/messages/wait_seconds_by_point/B/count", json!(2)),
                ("/calls/skipped_by_mail", json!(1)),
            ],
        ),
        (
            "a reply answers what was injected, once",
            message("m1").into_iter().chain(message("m2")).chain([replied(2.0), replied(3.0)]).collect(),
            vec![
                ("/messages/answered", json!(2)),
                ("/model/input_tokens", json!(200)),
                ("/model/cached_tokens", json!(120)),
            ],
        ),
        (
            "a cut reply answers nothing",
            message("m1").into_iter().chain([cut(2.0, 1, "error", 5)]).collect(),
            vec![("/messages/answered", json!(0)), ("/model/cut", json!(1))],
        ),
        (
            "returned mail waits no more and was not injected",
            vec![queued(0.0, "m1", "w2", "urgent"), returned(1.0, "m1", "stopped")],
            vec![
                ("/messages/waiting", json!(0)),
                ("/messages/returned", json!(1)),
                ("/messages/wait_seconds", json!({})),
            ],
        ),
        (
            "mail that nobody saw come is no negative figure",
            vec![injected(1.0, &["old"], "D"), returned(1.0, "older", "expired")],
            vec![
                ("/messages/waiting", json!(0)),
                ("/messages/injected", json!(1)),
                ("/messages/returned", json!(1)),
            ],
        ),
        (
            "calls by status",
            vec![
                tool(0.0, "completed"),
                tool(0.0, "skipped"),
                tool(0.0, "skipped"),
                tool(0.0, "interrupted"),
            ],
            vec![
                ("/calls/ended/skipped", json!(2)),
                ("/calls/ended/interrupted", json!(1)),
                ("/calls/ended/unknown", json!(0)),
            ],
        ),
    ] {
        let (metrics, _session) = after(events);
        for (path, value) in expected {
            assert_eq!(figure(&metrics, path), value, "{what}: {path}");
        }
    }
}

#[test]
fn a_stop_is_measured_whoever_is_recorded_first() {
    for (what, events, cuts, ends) in [
        (
            "in order",
            vec![
                started(0.0, 1),
                stop(1.0, 1, "user"),
                cut(1.5, 1, "user_cancelled", 3),
                ended(3.0, 1, "stopped"),
            ],
            1,
            1,
        ),
        (
            "the cut before the stop",
            vec![
                started(0.0, 1),
                cut(1.0, 1, "user_cancelled", 3),
                stop(1.0, 1, "user"),
                ended(3.0, 1, "stopped"),
            ],
            1,
            1,
        ),
        (
            "the end before the stop",
            vec![
                started(0.0, 1),
                cut(1.0, 1, "user_cancelled", 3),
                ended(1.0, 1, "stopped"),
                stop(1.0, 1, "user"),
            ],
            1,
            1,
        ),
        ("nothing to cut", vec![started(0.0, 1), stop(1.0, 1, "user"), ended(1.0, 1, "stopped")], 0, 1),
        (
            "a call",
            vec![started(0.0, 1), stop(1.0, 1, "user"), tool(1.5, "stopped"), ended(3.0, 1, "stopped")],
            1,
            1,
        ),
        (
            "a call that ignored it",
            vec![started(0.0, 1), stop(1.0, 1, "user"), tool(3.0, "unknown"), ended(3.0, 1, "stopped")],
            1,
            1,
        ),
        (
            "the run ended by itself",
            vec![started(0.0, 1), stop(1.0, 1, "user"), ended(1.0, 1, "finished")],
            0,
            0,
        ),
        (
            "twice is one end",
            vec![started(0.0, 1), stop(1.0, 1, "user"), stop(1.1, 1, "user"), ended(3.0, 1, "stopped")],
            0,
            1,
        ),
        (
            "another run's cut",
            vec![
                started(0.0, 1),
                cut(0.5, 1, "superseded", 3),
                started(1.0, 2),
                stop(1.0, 2, "user"),
                ended(3.0, 2, "stopped"),
            ],
            0,
            1,
        ),
        (
            "cut by mail",
            vec![
                started(0.0, 1),
                cut(0.5, 1, "message_interrupt", 3),
                stop(1.0, 1, "user"),
                ended(3.0, 1, "stopped"),
            ],
            0,
            1,
        ),
    ] {
        let (metrics, _session) = after(events);
        let stops = metrics.summary().stops;
        assert_eq!((stops.cut_seconds.count, stops.end_seconds.count), (cuts, ends), "{what}");
    }
    let (metrics, _session) = after([
        started(0.0, 1),
        stop(1.0, 1, "user"),
        cut(1.15, 1, "user_cancelled", 3),
        ended(2.5, 1, "stopped"),
    ]);
    let stops = metrics.summary().stops;
    // 0.15 s lies between the bounds 0.1 and 0.2, 1.5 s between 1 and 2.
    assert_eq!((stops.cut_seconds.p50, stops.end_seconds.p50), (Some(0.15000000000000002), Some(1.5)));
}

#[test]
fn a_stop_is_followed_by_who_stopped_within_a_minute() {
    let stopped = || vec![started(0.0, 1), stop(1.0, 1, "lead"), ended(2.0, 1, "stopped")];
    for (what, then, followed) in [
        ("nothing", vec![], 0),
        ("the person writes", vec![queued(61.0, "m", "user", "urgent")], 1),
        ("too late", vec![queued(61.1, "m", "user", "urgent")], 0),
        ("who stopped it writes", vec![queued(3.0, "m", "lead", "after_tools")], 1),
        ("somebody else writes", vec![queued(3.0, "m", "w2", "after_tools")], 0),
        ("a report comes", vec![queued(3.0, "m", "coordinator", "after_tools")], 0),
        ("the next run begins", vec![started(3.0, 2)], 1),
        (
            "once is once",
            vec![queued(3.0, "m", "user", "urgent"), started(3.0, 2), queued(4.0, "n", "user", "urgent")],
            1,
        ),
        ("the first one counts", vec![queued(70.0, "m", "user", "urgent"), started(70.0, 2)], 0),
    ] {
        let (metrics, _session) = after(stopped().into_iter().chain(then));
        let stops = metrics.summary().stops;
        assert_eq!((stops.requested, stops.follow_up_rate), (1, Some(f64::from(followed))), "{what}");
    }
}

#[test]
fn rates_are_none_of_nothing() {
    let (metrics, _session) = after([]);
    let stops = metrics.summary().stops;
    assert_eq!((stops.stop_rate, stops.follow_up_rate, stops.end_seconds.p99), (None, None, None));
    let runs = [("finished", 3), ("stopped", 1)];
    let events = runs.iter().flat_map(|(outcome, count)| vec![ended(1.0, 1, outcome); *count]);
    assert_eq!(after(events).0.summary().stops.stop_rate, Some(0.25));
}

#[test]
fn a_session_that_is_let_go_leaves_no_gauge_behind() {
    let (metrics, session) = after([started(0.0, 1), queued(0.0, "m1", "user", "urgent")]);
    let other = metrics.for_session();
    other.event(&event(started(0.0, 1)));
    assert_eq!((metrics.summary().sessions, metrics.summary().agents.working), (2, 2));
    drop(session);
    let stats = metrics.summary();
    assert_eq!((stats.sessions, stats.agents.working, stats.messages.waiting), (1, 1, 0));
    assert_eq!((stats.runs.started, stats.messages.accepted), (2, 1));
}

#[test]
fn refusals_with_words_of_nobody_share_one_label_and_leave_no_trace() {
    let refused = |agent: &str, reason: &str| {
        let fields = json!({"message": "m", "from": "user", "reason": reason, "agent": agent});
        of_w(0.0, "message_refused", fields)
    };
    let (metrics, _session) =
        after([refused("nobody", "unknown_agent"), refused("w", "zebra"), refused("w", "yak")]);
    let page = metrics.prometheus();
    assert!(page.contains("midturn_messages_refused_total{reason=\"unknown_agent\"} 1\n"), "{page}");
    assert!(page.contains("midturn_messages_refused_total{reason=\"other\"} 2\n"), "{page}");
    assert_eq!((metrics.summary().messages.refused, metrics.summary().agents.live), (3, 0));
}

#[test]
fn what_no_event_says_is_told() {
    let metrics = Metrics::default();
    assert_eq!(metrics.summary().store.stale_writes, 0);
    metrics.stale_writes_from(|| 7);
    metrics.sse_opened();
    metrics.sse_opened();
    metrics.sse_closed();
    metrics.for_session().stored(Span::millis(2));
    let stats = metrics.summary();
    assert_eq!((stats.store.stale_writes, stats.sse_clients, stats.store.commit_seconds.count), (7, 1, 1));
}
