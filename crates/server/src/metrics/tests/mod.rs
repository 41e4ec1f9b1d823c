//! Figures from tables of events, from a played session, and the page that is scraped.

mod page;
mod played;
mod resumed;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use midturn_core::engine::ports::Observer;
use midturn_core::rules::event::Event;
use midturn_core::rules::time::Span;
use serde_json::{Value, json};

use super::Metrics;

/// An event as the journal has it; version and number are put in, each higher than the last.
fn event(mut fields: Value) -> Event {
    static SEQ: AtomicU64 = AtomicU64::new(100);
    let object = fields.as_object_mut().unwrap();
    object.insert("v".into(), json!(1));
    object.insert("seq".into(), json!(SEQ.fetch_add(1, Relaxed)));
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

fn summary(t: f64) -> Value {
    let mut summary = replied(t);
    summary["purpose"] = json!("summary");
    summary
}

fn compacted(t: f64) -> Value {
    let sizes = json!({"before": 9, "after": 3});
    of_w(t, "compacted", json!({"messages": sizes, "tokens": sizes}))
}

fn tool(t: f64, status: &str) -> Value {
    let more =
        json!({"tool": "c1", "name": "zebra", "status": status, "is_error": false, "bytes": 0, "output": ""});
    of_w(t, "tool_finished", more)
}

fn asks(t: f64, tool: &str) -> Value {
    let input = json!({"command": "zebra"});
    of_w(
        t,
        "approval_requested",
        json!({"tool": tool, "name": "bash", "input": input, "always": "bash(zebra)"}),
    )
}

fn answered(t: f64, tool: &str, decision: &str) -> Value {
    of_w(t, "approval_resolved", json!({"tool": tool, "decision": decision, "by": "user", "reason": "zebra"}))
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
    let stats = serde_json::to_value(metrics.summary()).unwrap();
    stats.pointer(path).unwrap_or_else(|| panic!("no {path} in {stats:#}")).clone()
}

/// What is told, and figures by their paths that follow from it.
type Row<'a> = (&'a str, Vec<Value>, &'a [(&'a str, u64)]);

fn hold(rows: &[Row<'_>]) {
    for (what, events, expected) in rows {
        let (metrics, _session) = after(events.iter().cloned());
        for (path, value) in *expected {
            assert_eq!(figure(&metrics, path), json!(value), "{what}: {path}");
        }
    }
}

#[test]
fn agents_and_runs_are_counted_while_they_are_there() {
    let closed = || of_w(1.0, "agent_closed", json!({}));
    let asks = of_w(0.0, "model_started", json!({"call": 7, "messages": 3}));
    let (live, working) = ("/agents/live", "/agents/working");
    hold(&[
        ("an agent works", vec![started(0.0, 1)], &[(live, 1), (working, 1)]),
        (
            "and rests",
            vec![started(0.0, 1), ended(1.0, 1, "finished")],
            &[(live, 1), (working, 0), ("/runs/ended/finished", 1)],
        ),
        (
            "and is closed",
            vec![started(0.0, 1), ended(1.0, 1, "limit"), closed()],
            &[(live, 0), (working, 0), ("/runs/ended/limit", 1)],
        ),
        (
            "a run that goes on after a crash has no beginning",
            vec![asks],
            &[(working, 1), ("/runs/started", 0), ("/model/calls", 1)],
        ),
        (
            "mail of an agent that is closed waits no more",
            vec![queued(0.0, "m", "user", "urgent"), closed()],
            &[("/messages/waiting", 0), (live, 0)],
        ),
    ]);
}

#[test]
fn requests_for_a_persons_word_are_counted_until_they_end() {
    let (open, of) = ("/approvals/open", |word: &str| format!("/approvals/ended/{word}"));
    let both = || vec![started(0.0, 1), asks(1.0, "c1"), asks(1.0, "c2")];
    let with = |more: Vec<Value>| both().into_iter().chain(more).collect::<Vec<_>>();
    hold(&[
        ("two wait", both(), &[(open, 2)]),
        (
            "one is answered, one withdrawn",
            with(vec![answered(2.0, "c1", "session"), answered(2.0, "c2", "not_answered")]),
            &[(open, 0), (&of("session"), 1), (&of("not_answered"), 1), (&of("once"), 0)],
        ),
        ("the run ends without a word on them", with(vec![ended(2.0, 1, "stopped")]), &[(open, 0)]),
        ("the agent is closed", with(vec![of_w(2.0, "agent_closed", json!({}))]), &[(open, 0)]),
        (
            "one of the process before this one was never counted",
            vec![answered(0.0, "c1", "once"), asks(1.0, "c2")],
            &[(open, 1), (&of("once"), 1)],
        ),
    ]);
    let (metrics, session) = after(both());
    drop(session);
    assert_eq!(figure(&metrics, open), json!(0), "what a session adds goes with it");
}

#[test]
fn messages_are_counted_from_state_to_state() {
    let mail = |id: &str, urgency: &str| queued(0.0, id, "user", urgency);
    let (waiting, answered) = ("/messages/waiting", "/messages/answered");
    hold(&[
        (
            "some wait",
            vec![mail("m", "urgent"), mail("n", "urgent"), injected(1.0, &["m"], "C")],
            &[("/messages/accepted", 2), ("/messages/injected", 1), (waiting, 1)],
        ),
        (
            "each is measured by its own urgency",
            vec![mail("m", "follow_up"), mail("n", "urgent"), injected(9.0, &["m", "n"], "B")],
            &[
                ("/messages/wait_seconds/follow_up/count", 1),
                ("/messages/wait_seconds/urgent/count", 1),
                ("/messages/wait_seconds_by_point/B/count", 2),
            ],
        ),
        (
            "a reply answers what was injected, once",
            vec![mail("m", "urgent"), injected(1.0, &["m"], "C"), replied(2.0), replied(3.0)],
            &[(answered, 1), ("/model/input_tokens", 200), ("/model/cached_tokens", 120)],
        ),
        (
            "a summary answers nobody",
            vec![
                queued(0.0, "a", "user", "urgent"),
                injected(1.0, &["a"], "D"),
                summary(2.0),
                compacted(2.0),
            ],
            &[(answered, 0), ("/model/input_tokens", 100)],
        ),
        (
            "a cut reply answers nothing",
            vec![mail("m", "urgent"), injected(1.0, &["m"], "C"), cut(2.0, 1, "error", 5)],
            &[(answered, 0), ("/model/cut", 1)],
        ),
        (
            "what is returned was not injected",
            vec![mail("m", "urgent"), returned(1.0, "m", "stopped")],
            &[(waiting, 0), ("/messages/returned", 1), ("/messages/injected", 0)],
        ),
        (
            "what nobody saw come is not a negative figure",
            vec![injected(1.0, &["old"], "D"), returned(1.0, "older", "expired")],
            &[(waiting, 0), ("/messages/injected", 1), ("/messages/returned", 1)],
        ),
    ]);
}

#[test]
fn calls_are_counted_by_what_became_of_them() {
    let statuses = ["completed", "skipped", "skipped", "interrupted"];
    hold(&[
        (
            "by status",
            statuses.map(|status| tool(0.0, status)).into(),
            &[("/calls/ended/skipped", 2), ("/calls/ended/interrupted", 1), ("/calls/ended/unknown", 0)],
        ),
        (
            "those that a message cost, once for all that were injected together",
            vec![injected(1.0, &["m", "n"], "C")],
            &[("/calls/skipped_by_mail", 1), ("/calls/interrupted_by_mail", 0)],
        ),
    ]);
}

/// What happens in a run of 3 s that is stopped at 1 s, and how many cuts and ends are measured.
fn stops(rows: Vec<(&str, Vec<Value>, u64, u64)>) {
    for (what, events, cuts, ends) in rows {
        let (metrics, _session) = after([started(0.0, 1)].into_iter().chain(events));
        let stops = metrics.summary().stops;
        assert_eq!((stops.cut_seconds.count, stops.end_seconds.count), (cuts, ends), "{what}");
    }
}

#[test]
fn a_stop_is_measured_whoever_is_recorded_first() {
    let (stop, end) = (|| stop(1.0, 1, "user"), || ended(1.0, 1, "stopped"));
    let cut = || cut(1.0, 1, "user_cancelled", 3);
    stops(vec![
        ("in order", vec![stop(), cut(), end()], 1, 1),
        ("the cut before the stop", vec![cut(), stop(), end()], 1, 1),
        ("the end before the stop", vec![cut(), end(), stop()], 1, 1),
        ("twice is one end", vec![stop(), stop(), cut(), end()], 1, 1),
        ("nothing to cut", vec![stop(), end()], 0, 1),
    ]);
}

#[test]
fn only_what_a_stop_cut_and_ended_is_measured() {
    let (stop, end) = (|| stop(1.0, 1, "user"), || ended(3.0, 1, "stopped"));
    let other = cut(0.5, 1, "superseded", 3);
    let of_the_next = || self::stop(1.0, 2, "user");
    stops(vec![
        ("a call", vec![stop(), tool(1.5, "stopped"), end()], 1, 1),
        ("a call that ignored it", vec![stop(), tool(3.0, "unknown"), end()], 1, 1),
        ("a call that was finished", vec![stop(), tool(1.0, "completed"), end()], 0, 1),
        ("a reply cut by mail", vec![cut(0.5, 1, "message_interrupt", 3), stop(), end()], 0, 1),
        ("a run that ended by itself", vec![stop(), ended(1.0, 1, "finished")], 0, 0),
        ("another run's cut", vec![other, started(1.0, 2), of_the_next(), ended(3.0, 2, "stopped")], 0, 1),
    ]);
}

#[test]
fn a_stop_takes_until_its_last_cut_and_until_its_end() {
    let cuts = [1.1, 1.15].map(|t| cut(t, 1, "user_cancelled", 3));
    let events = [started(0.0, 1), stop(1.0, 1, "user")].into_iter().chain(cuts);
    let (metrics, _session) = after(events.chain([ended(2.5, 1, "stopped")]));
    let stops = metrics.summary().stops;
    // 0.15 s lies between the bounds 0.1 and 0.2, 1.5 s between 1 and 2.
    let close = |told: Option<f64>, expected: f64| told.is_some_and(|told| (told - expected).abs() < 1e-9);
    assert!(close(stops.cut_seconds.p50, 0.15) && close(stops.end_seconds.p50, 1.5), "{stops:?}");
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
    let _reads = metrics.sse_opened();
    drop(metrics.sse_opened());
    metrics.for_session().stored(Span::millis(2));
    let stats = metrics.summary();
    assert_eq!((stats.store.stale_writes, stats.sse_clients, stats.store.commit_seconds.count), (7, 1, 1));
}
