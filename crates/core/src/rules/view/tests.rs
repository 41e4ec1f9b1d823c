//! What the fold says after tables of events, and after random ones.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::rules::compaction::Purpose;
use crate::rules::conversation::ToolStatus;
use crate::rules::event::{Halt, LiveKind, Outcome, Place, Scope, Trigger, VERSION};
use crate::rules::id::MessageId;
use crate::rules::mail::{Point, ReceiptState, Rest, ReturnReason, Standing, Urgency};

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

/// An event of the agent `w`, which happens so many seconds after the beginning.
fn event(seq: u64, run: u64, kind: EventKind) -> Event {
    Event { v: VERSION, seq, t: Micros(seq * 1_000_000), at: Place::of(&name("w"), run, 1), kind }
}

fn started() -> EventKind {
    EventKind::RunStarted { trigger: Trigger::Prompt }
}

fn asks_model(call: u64, purpose: Purpose) -> EventKind {
    EventKind::ModelStarted { call, messages: 1, purpose }
}

fn replies(text: &str, purpose: Purpose) -> EventKind {
    EventKind::ModelFinished {
        stop_reason: "end_turn".into(),
        usage: Usage { input: 10, output: 1, cached: 0 },
        text: text.to_owned(),
        thinking: vec![],
        tools: vec![],
        purpose,
    }
}

fn calls(id: &str) -> EventKind {
    EventKind::ToolStarted { tool: CallId::new(id), name: "bash".into(), input: json!({}), batch: 1 }
}

fn returns(id: &str) -> EventKind {
    let (tool, name, status) = (CallId::new(id), "bash".into(), ToolStatus::Completed);
    EventKind::ToolFinished { tool, name, status, is_error: false, bytes: 0, output: String::new() }
}

fn queued(id: &str) -> EventKind {
    let (message, from, urgency) = (MessageId::new(id), "user".to_owned(), Urgency::Urgent);
    EventKind::MessageQueued { message, from, urgency, text: "x".into() }
}

fn injected(ids: &[&str]) -> EventKind {
    EventKind::MessageInjected {
        messages: ids.iter().copied().map(MessageId::new).collect(),
        point: Point::C,
        text: "x".into(),
        skipped: Arc::default(),
        interrupted: Arc::default(),
    }
}

fn withdrawn(id: &str) -> EventKind {
    EventKind::MessageReturned { message: MessageId::new(id), reason: ReturnReason::Withdrawn }
}

fn stopped(reason: Halt) -> EventKind {
    EventKind::StopRequested { by: "user".into(), scope: Scope::Agent, reason, still_queued: vec![] }
}

fn asks(id: &str) -> EventKind {
    let (tool, name, input) = (CallId::new(id), "bash".into(), json!({}));
    EventKind::ApprovalRequested { tool, name, input, always: "bash".into() }
}

fn ended(outcome: Outcome) -> EventKind {
    EventKind::RunFinished { outcome, error: None, turns: 1, usage: Usage::default() }
}

/// The view after these kinds of event of `w` in its run 1, from the number 1 on.
fn after(kinds: Vec<EventKind>) -> View {
    let mut view = View::default();
    for (seq, kind) in (1..).zip(kinds) {
        assert!(view.event(&event(seq, 1, kind)), "{seq} changes nothing");
    }
    view
}

fn w(view: &View) -> &Agent {
    view.agent(&name("w")).unwrap()
}

#[test]
fn what_is_under_way_is_known_with_its_beginning() {
    let mut view = after(vec![started(), asks_model(7, Purpose::Turn)]);
    let request = w(&view).request.clone().unwrap();
    assert_eq!((request.call, request.since), (7, Micros(2_000_000)));
    let retry = EventKind::ModelRetry {
        attempt: 1,
        error: "overloaded".into(),
        wait: crate::rules::time::Span::secs(2),
    };
    view.event(&event(3, 1, retry));
    assert_eq!((&w(&view).request, w(&view).asks_again), (&None, Some(Micros(5_000_000))));
    view.event(&event(4, 1, asks_model(8, Purpose::Turn)));
    view.event(&event(5, 1, replies("I look.", Purpose::Turn)));
    for (seq, kind) in (6..).zip([calls("a"), calls("b"), returns("a")]) {
        view.event(&event(seq, 1, kind));
    }
    let open: Vec<_> = w(&view).calls.iter().map(|call| (call.id.as_str(), call.since)).collect();
    assert_eq!(open, [("b", Micros(7_000_000))]);
    assert_eq!((w(&view).usage.total(), &*w(&view).text, w(&view).asks_again), (11, "I look.", None));
    let prices = Prices { input: "0.01".parse().unwrap(), ..Prices::default() };
    assert_eq!(view.cost(|_| prices), "0.10".parse().unwrap());
    // What was under way in a process that is gone is not any more; its run goes on.
    let resumed = EventKind::SessionResumed { version: "1".into() };
    view.event(&Event { at: Place::default(), ..event(9, 1, resumed) });
    assert_eq!((w(&view).calls.len(), w(&view).is_working()), (0, true));
}

#[test]
fn an_agent_stands_as_its_run_and_what_was_asked_of_it_say() {
    use Standing::{Resting, Running, Winding};
    let winds = |then, restart| Winding { then, restart };
    for (more, expected) in [
        (vec![], Running),
        (vec![stopped(Halt::Stop)], winds(Rest::Stopped, false)),
        (vec![stopped(Halt::Supersede)], winds(Rest::Stopped, true)),
        (vec![stopped(Halt::Close)], winds(Rest::Closed, false)),
        (vec![ended(Outcome::Finished)], Resting(Rest::Idle)),
        (vec![stopped(Halt::Stop), ended(Outcome::Stopped)], Resting(Rest::Stopped)),
        (vec![ended(Outcome::Stopped), EventKind::AgentClosed {}], Resting(Rest::Closed)),
    ] {
        let view = after([vec![started()], more].concat());
        assert_eq!(w(&view).standing(), expected);
    }
}

#[test]
fn why_a_run_ended_is_known_until_the_next_one_begins() {
    let (outcome, error) = (Outcome::Limit, Some("max_turns".into()));
    let ends = EventKind::RunFinished { outcome, error, turns: 1, usage: Usage::default() };
    let mut view = after(vec![started(), ends]);
    assert_eq!((w(&view).outcome, w(&view).error.as_deref()), (Some(Outcome::Limit), Some("max_turns")));
    view.event(&event(3, 2, started()));
    assert_eq!((w(&view).outcome, w(&view).error.as_deref()), (None, None));
}

#[test]
fn a_stop_may_come_before_its_run_and_behind_it_and_the_first_one_counts() {
    let mut view = View::default();
    view.event(&event(1, 1, stopped(Halt::Stop)));
    assert!(!w(&view).is_working(), "it has not begun");
    view.event(&event(2, 1, started()));
    view.event(&event(3, 1, stopped(Halt::Shutdown)));
    let stop = w(&view).stop_of(1).unwrap();
    assert_eq!((stop.at, stop.reason), (Micros(1_000_000), Halt::Stop));
    view.event(&event(4, 1, ended(Outcome::Stopped)));
    view.event(&event(5, 2, started()));
    assert_eq!(w(&view).stop, None);
    view.event(&event(6, 2, ended(Outcome::Stopped)));
    assert!(view.event(&event(7, 2, stopped(Halt::Stop))), "two tasks record them");
    assert!(w(&view).stop_of(2).is_some() && w(&view).standing() == Standing::Resting(Rest::Stopped));
}

#[test]
fn mail_is_sent_with_the_next_request_and_answered_by_the_next_whole_reply() {
    let state = |view: &View, id: &str| {
        let agent = w(view);
        let mut all = agent.queue.iter().chain(&agent.past);
        all.find(|message| message.id == MessageId::new(id)).map(|message| message.state.as_str())
    };
    let cut = EventKind::ModelInterrupted {
        reason: crate::rules::conversation::InterruptReason::Error,
        text: String::new(),
        thinking: vec![],
        partial_tokens: 0,
    };
    let mut view = View::default();
    for (seq, (kind, m, n)) in (1..).zip([
        (started(), None, None),
        (queued("m"), Some("queued"), None),
        (queued("n"), Some("queued"), Some("queued")),
        (injected(&["m"]), Some("injected"), Some("queued")),
        (asks_model(1, Purpose::Summary), Some("injected"), Some("queued")),
        (replies("So far.", Purpose::Summary), Some("injected"), Some("queued")),
        (asks_model(2, Purpose::Turn), Some("sent"), Some("queued")),
        (cut, Some("sent"), Some("queued")),
        (withdrawn("n"), Some("sent"), Some("returned")),
        (asks_model(3, Purpose::Turn), Some("sent"), Some("returned")),
        (replies("Done.", Purpose::Turn), Some("answered"), Some("returned")),
    ]) {
        view.event(&event(seq, 1, kind));
        assert_eq!((state(&view, "m"), state(&view, "n")), (m, n), "{seq}");
        assert_eq!(view.waiting(), w(&view).queue.len());
    }
    let ReceiptState::Answered { injection, call } = &w(&view).past[0].state else { panic!() };
    assert_eq!((*call, injection.point, injection.run), (3, Point::C, 1));
}

#[test]
fn what_is_told_twice_or_out_of_order_changes_nothing() {
    let told =
        [started(), queued("m"), injected(&["m"]), asks_model(1, Purpose::Turn), calls("a"), asks("b")];
    let view = after(told.to_vec());
    for (seq, kind) in (1..).zip(told) {
        let mut again = view.clone();
        assert!(!again.event(&event(seq, 1, kind)));
        assert_eq!(again, view, "{seq}");
    }
    // The same message under another number is no second one.
    let mut again = after(vec![queued("m")]);
    again.event(&event(2, 1, queued("m")));
    assert_eq!(again.waiting(), 1);
}

#[test]
fn what_belongs_to_a_run_that_is_over_changes_nothing() {
    let rows = [
        started(),
        asks_model(1, Purpose::Turn),
        replies("Late.", Purpose::Turn),
        calls("a"),
        returns("b"),
        injected(&["m"]),
        asks("b"),
        ended(Outcome::Failed),
    ];
    let mut view = after(vec![started(), queued("m"), ended(Outcome::Finished)]);
    for run in [1, 2] {
        for kind in &rows {
            let mut later = view.clone();
            assert!(!later.event(&event(20, 1, kind.clone())), "{kind:?} after run {run}");
            assert_eq!(later.agent(&name("w")), view.agent(&name("w")));
            assert_eq!(later.open_asks(), view.open_asks());
        }
        // Nor while the next run is under way.
        view.event(&event(10, 2, started()));
        view.event(&event(11, 2, calls("b")));
    }
}

#[test]
fn asks_are_open_until_they_are_answered_or_their_run_is_over() {
    let resolved = |id: &str| EventKind::ApprovalResolved {
        tool: CallId::new(id),
        decision: crate::rules::approval::Decision::Once,
        by: "user".into(),
        reason: None,
    };
    let open = |kinds: Vec<EventKind>| -> Vec<String> {
        let view = after([vec![started()], kinds].concat());
        view.open_asks().iter().map(|ask| ask.tool.to_string()).collect()
    };
    assert_eq!(open(vec![asks("a"), asks("b")]), ["a", "b"]);
    assert_eq!(open(vec![asks("a"), asks("b"), resolved("a")]), ["b"]);
    assert!(open(vec![asks("a"), ended(Outcome::Stopped)]).is_empty());
    let mut view = after(vec![started(), asks("a")]);
    let shown = view.open_asks()[0].clone();
    view.asked(Ask { since: Micros(9), ..shown });
    assert_eq!((view.open_asks().len(), view.open_asks()[0].since), (1, Micros(9)));
}

#[test]
fn a_snapshot_is_read_again_as_it_was_written() {
    let mut view = after(vec![started(), queued("m"), calls("a"), asks("b")]);
    view.live(&delta(1, LiveKind::TextDelta { text: "é".into() }));
    let json = serde_json::to_string(&view).unwrap();
    assert_eq!(serde_json::from_str::<View>(&json).unwrap(), view);
}

fn delta(n: u64, kind: LiveKind) -> LiveEvent {
    LiveEvent { v: VERSION, seq: 1, n, t: Micros(n), at: Place::of(&name("w"), 1, 1), kind }
}

fn text(n: u64, text: &str) -> LiveEvent {
    delta(n, LiveKind::TextDelta { text: text.into() })
}

fn said(view: &View) -> Vec<String> {
    w(view).said.pieces().filter_map(|piece| piece.kind.text().map(str::to_owned)).collect()
}

#[test]
fn after_a_break_only_what_is_new_is_told() {
    let mut view = View::default();
    for (n, words, rejoined, expected) in [
        (1, "a ", false, Some("a ")),
        (2, "a ", false, Some("a ")),
        (2, "a a ", true, None),
        (4, "a a b ", true, Some("b ")),
        (5, "a a b c", false, Some("a a b c")),
        (9, "something else", true, Some("something else")),
        (10, "something elsewhere", true, Some("where")),
        (10, "where", false, None),
    ] {
        if rejoined {
            view.rejoined();
        }
        let rest = view.rest(text(n, words));
        assert_eq!(rest.as_ref().and_then(|rest| rest.kind.text()), expected, "{n}");
    }
}

#[test]
fn what_is_said_goes_when_it_is_recorded_as_a_whole() {
    let prints = |n, id: &str| delta(n, LiveKind::ToolOutput { tool: CallId::new(id), text: "x".into() });
    let thinks = delta(1, LiveKind::ThinkingDelta { text: "Hm.".into() });
    let counts =
        |n, bytes| delta(n, LiveKind::CallDelta { tool: CallId::new("a"), name: "write".into(), bytes });
    let mut view = after(vec![started(), asks_model(1, Purpose::Turn)]);
    for event in [thinks, text(2, "I"), text(3, " look"), counts(4, 10), counts(5, 20), prints(6, "a")] {
        assert_eq!(view.live(&event), Some(0));
    }
    assert_eq!(said(&view), ["Hm.", "I look", "x"]);
    let call = w(&view).said.pieces().find_map(|piece| match piece.kind {
        LiveKind::CallDelta { bytes, .. } => Some(bytes),
        _ => None,
    });
    assert_eq!(call, Some(20));
    view.event(&event(3, 1, replies("I look", Purpose::Turn)));
    assert_eq!(said(&view), ["x"]);
    view.event(&event(4, 1, returns("a")));
    assert!(said(&view).is_empty());
    view.live(&prints(7, "b"));
    view.event(&event(5, 1, ended(Outcome::Finished)));
    assert_eq!((said(&view).len(), view.live(&prints(8, "b"))), (0, None));
}

#[test]
fn what_a_setup_prints_goes_when_the_model_is_asked_or_the_run_ends() {
    let prints = |n, text: &str| delta(n, LiveKind::SetupOutput { text: text.into() });
    for ends in [asks_model(1, Purpose::Turn), ended(Outcome::Stopped)] {
        let mut view = after(vec![started()]);
        view.live(&prints(1, "one\n"));
        view.live(&prints(2, "two\n"));
        assert_eq!(said(&view), ["one\ntwo\n"]);
        view.rejoined();
        assert_eq!(view.live(&prints(3, "one\ntwo\nthree\n")), Some(8));
        view.event(&event(2, 1, ends));
        assert!(said(&view).is_empty());
    }
    let mut view = after(vec![started()]);
    view.live(&prints(1, &("a".to_owned() + &"x".repeat(64 << 10))));
    assert_eq!(said(&view), ["x".repeat(64 << 10)]);
}

#[test]
fn what_is_too_much_loses_its_oldest_characters_whole() {
    let mut view = View::default();
    let prints = |n, text: String| delta(n, LiveKind::ToolOutput { tool: CallId::new("a"), text });
    view.live(&prints(1, "é".to_owned() + &"x".repeat(64 * 1024 - 2)));
    assert_eq!(said(&view)[0].len(), 64 * 1024);
    // A byte too many, which takes a character of two with it.
    view.live(&prints(2, "y".to_owned()));
    assert_eq!(said(&view)[0].len(), 64 * 1024 - 1);
    // Of what is not known from its beginning all is told again.
    view.rejoined();
    assert_eq!(view.live(&prints(3, said(&view)[0].clone() + "z")), Some(0));
}

/// A session of three agents as these choices have it: what belongs to a run happens in it.
fn session(choices: &[(u8, u8)]) -> Vec<Event> {
    let mut runs = [(0, false); 3];
    let mut told = Vec::new();
    for (seq, (who, what)) in (1..).step_by(4).zip(choices) {
        let who = usize::from(who % 3);
        let (run, is_open) = &mut runs[who];
        let id = ["a", "b", "c"][usize::from(what / 16 % 3)];
        let kind = match (*is_open, what % 16) {
            (_, 0 | 1) => queued(id),
            (_, 2) => withdrawn(id),
            (_, 3) => stopped(Halt::Stop),
            (false, _) => {
                (*run, *is_open) = (*run + 1, true);
                started()
            }
            (true, 4 | 5) => asks_model(seq, Purpose::Turn),
            (true, 6) => asks_model(seq, Purpose::Summary),
            (true, 7 | 8) => replies(id, Purpose::Turn),
            (true, 9) => replies(id, Purpose::Summary),
            (true, 10 | 11) => calls(id),
            (true, 12) => returns(id),
            (true, 13) => injected(&[id]),
            (true, 14) => asks(id),
            (true, _) => {
                *is_open = false;
                ended(Outcome::Finished)
            }
        };
        let at = Place::of(&name(["u", "v", "w"][who]), *run, 1);
        told.push(Event { v: VERSION, seq, t: Micros(seq), at, kind });
    }
    told
}

/// The same, with what was told before told again, and what belongs to runs that are over told late.
fn disturbed(clean: &[Event], disturbances: &[(usize, usize, bool)]) -> Vec<Event> {
    let mut told = clean.to_vec();
    for (n, (early, late, is_stale)) in (1..4).cycle().zip(disturbances) {
        let (early, late) = (early % clean.len(), late % clean.len());
        let again = &clean[early.min(late)];
        let behind = &clean[early.max(late)];
        let over = clean.iter().any(|event| {
            let is_end = matches!(event.kind, EventKind::RunFinished { .. });
            is_end && event.at == again.at && event.seq <= behind.seq
        });
        let seq = if *is_stale && over && again.kind.is_of_run() { behind.seq + n } else { again.seq };
        let at = told.iter().rposition(|event| event.seq == behind.seq).unwrap();
        told.insert(at + 1, Event { seq, t: behind.t, ..again.clone() });
    }
    told
}

/// What is seen of the agents, wherever the list ends.
fn fold(told: &[Event]) -> (BTreeMap<AgentName, Box<Agent>>, Vec<Ask>, usize) {
    let mut view = View::default();
    told.iter().for_each(|event| {
        view.event(event);
    });
    (view.agents, view.asks, view.waiting)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn events_told_twice_and_stale_ones_give_the_view_of_the_clean_list(
        choices in prop::collection::vec(any::<(u8, u8)>(), 1..80),
        disturbances in prop::collection::vec(any::<(usize, usize, bool)>(), 0..20),
    ) {
        let clean = session(&choices);
        prop_assert_eq!(fold(&clean), fold(&disturbed(&clean, &disturbances)));
    }
}
