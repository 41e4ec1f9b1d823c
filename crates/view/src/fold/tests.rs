//! What a conversation is after tables of events, and after random ones.

mod random;

use std::sync::Arc;

use midturn_core::rules::approval::Decision;
use midturn_core::rules::compaction::{Purpose, Sizes};
use midturn_core::rules::conversation::{InterruptReason, ToolStatus, Usage};
use midturn_core::rules::event::{CallRef, EventKind, Halt, Outcome, Place, Scope, Trigger, VERSION};
use midturn_core::rules::id::{CallId, MessageId};
use midturn_core::rules::mail::{Point, ReturnReason, Role, Urgency};
use midturn_core::rules::settings::LimitsPatch;
use midturn_core::rules::time::{Micros, Span};
use serde_json::{Value, json};

use super::*;

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

/// An event of the agent `w`, which happens so many seconds after the beginning.
fn event(seq: u64, (run, turn): (u64, u32), kind: EventKind) -> Event {
    Event { v: VERSION, seq, t: Micros(seq * 1_000_000), at: Place::of(&name("w"), run, turn), kind }
}

fn spawned(prompt: Option<&str>) -> EventKind {
    EventKind::AgentSpawned { parent: None, role: Role::Lead, model: None, prompt: prompt.map(Into::into) }
}

fn started() -> EventKind {
    EventKind::RunStarted { trigger: Trigger::Prompt }
}

fn replies(text: &str, calls: &[&str], purpose: Purpose) -> EventKind {
    let call = |id: &&str| CallRef { id: CallId::new(*id), name: "bash".into(), input: json!("asked") };
    EventKind::ModelFinished {
        stop_reason: "end_turn".into(),
        usage: Usage::default(),
        text: text.to_owned(),
        thinking: vec![],
        tools: calls.iter().map(call).collect(),
        purpose,
    }
}

fn says(text: &str, calls: &[&str]) -> EventKind {
    replies(text, calls, Purpose::Turn)
}

fn cut(text: &str) -> EventKind {
    let (reason, text) = (InterruptReason::MessageInterrupt, text.to_owned());
    EventKind::ModelInterrupted { reason, text, thinking: vec![], partial_tokens: 1 }
}

fn retry(attempt: u32) -> EventKind {
    EventKind::ModelRetry { attempt, error: "overloaded".into(), wait: Span::secs(2) }
}

fn begins(id: &str) -> EventKind {
    EventKind::ToolStarted { tool: CallId::new(id), name: "bash".into(), input: json!("begun"), batch: 1 }
}

fn ends(id: &str, status: ToolStatus, output: &str) -> EventKind {
    let (tool, name, output) = (CallId::new(id), "bash".into(), output.to_owned());
    EventKind::ToolFinished { tool, name, status, is_error: false, bytes: 9, output }
}

fn queued(id: &str, from: &str) -> EventKind {
    let (message, from, text) = (MessageId::new(id), from.to_owned(), format!("{from}'s").into());
    EventKind::MessageQueued { message, from, urgency: Urgency::AfterTools, text }
}

fn injected(ids: &[&str], point: Point, skipped: &[&str]) -> EventKind {
    EventKind::MessageInjected {
        messages: ids.iter().copied().map(MessageId::new).collect(),
        point,
        text: "all of it".into(),
        skipped: skipped.iter().copied().map(CallId::new).collect(),
        interrupted: Arc::default(),
    }
}

fn returned(id: &str) -> EventKind {
    EventKind::MessageReturned { message: MessageId::new(id), reason: ReturnReason::Withdrawn }
}

fn word(id: &str, decision: Decision) -> EventKind {
    EventKind::ApprovalResolved {
        tool: CallId::new(id),
        decision,
        by: "user".into(),
        reason: Some("why".into()),
    }
}

fn ended(outcome: Outcome) -> EventKind {
    EventKind::RunFinished { outcome, error: Some("e".into()), turns: 2, usage: Usage::default() }
}

fn call(id: &str, input: Value, state: CallState) -> EntryKind {
    EntryKind::Call(Call { id: CallId::new(id), name: "bash".into(), input, state, word: None })
}

fn done(status: ToolStatus, took: Option<u64>, output: &str) -> CallState {
    CallState::Ended { status, took: took.map(Span::secs), bytes: 9, output: output.into() }
}

fn letter(id: &str, from: &str, waited: u64) -> Letter {
    Letter {
        id: MessageId::new(id),
        from: from.into(),
        urgency: Some(Urgency::AfterTools),
        text: format!("{from}'s").into(),
        waited: Some(Span::secs(waited)),
    }
}

fn unknown(id: &str, text: &str) -> Letter {
    Letter { id: MessageId::new(id), from: "".into(), urgency: None, text: text.into(), waited: None }
}

fn mail(letters: Vec<Letter>, point: Point) -> Injected {
    Injected { letters, point, after: None, skipped: 0, interrupted: 0, answered: false }
}

/// A session after these kinds of event of `w` in the first turn of its first run, from the number 1 on.
fn after(kinds: &[EventKind]) -> Session {
    let mut session = Session::default();
    for (seq, kind) in (1..).zip(kinds) {
        assert!(session.event(&event(seq, (1, 1), kind.clone())), "{seq} changes nothing");
    }
    session
}

fn w(session: &Session) -> &Conversation {
    session.conversation(&name("w")).unwrap()
}

fn entries(session: &Session) -> Vec<EntryKind> {
    w(session).entries().map(|(_, entry)| entry.kind.clone()).collect()
}

#[test]
fn each_kind_of_entry_comes_of_its_events() {
    let reply = |text: &str, cut| EntryKind::Reply { text: text.into(), cut };
    let by: Arc<str> = "user".into();
    let limits = LimitsPatch::default();
    let sizes = Sizes { before: 9, after: 3 };
    let stop = |reason| EventKind::StopRequested {
        by: "user".into(),
        scope: Scope::Agent,
        reason,
        still_queued: vec![],
    };
    let resolved = Call {
        id: CallId::new("a"),
        name: "bash".into(),
        input: json!("asked"),
        state: CallState::Waiting,
        word: Some((Decision::Denied, by.clone(), Some("why".into()))),
    };
    for (events, expected) in [
        (vec![spawned(Some("Do it."))], vec![EntryKind::Prompt { text: "Do it.".into() }]),
        (vec![spawned(None)], vec![]),
        (vec![started(), says("Done.", &[])], vec![reply("Done.", None)]),
        (vec![says(" \n", &[])], vec![]),
        (vec![replies("So far.", &[], Purpose::Summary)], vec![]),
        (vec![cut("So f")], vec![reply("So f", Some(InterruptReason::MessageInterrupt))]),
        (vec![cut("")], vec![]),
        (vec![says("", &["a"])], vec![call("a", json!("asked"), CallState::Waiting)]),
        (vec![says("", &["a"]), word("a", Decision::Denied)], vec![EntryKind::Call(resolved)]),
        (
            vec![queued("m", "user"), returned("m")],
            vec![EntryKind::Returned { letter: letter("m", "user", 1), reason: ReturnReason::Withdrawn }],
        ),
        (vec![returned("m")], vec![]),
        (
            vec![retry(1), retry(2)],
            vec![EntryKind::Retry { attempt: 2, error: "overloaded".into(), wait: Span::secs(2) }],
        ),
        (vec![stop(Halt::Supersede)], vec![EntryKind::Stop { by: by.clone(), reason: Halt::Supersede }]),
        (
            vec![EventKind::LimitRaised { by: "user".into(), limits: limits.clone() }],
            vec![EntryKind::Limit { by, limits }],
        ),
        (
            vec![EventKind::Compacted { messages: sizes, tokens: sizes }],
            vec![EntryKind::Compacted { messages: sizes, tokens: sizes }],
        ),
        (
            vec![started(), ended(Outcome::Limit)],
            vec![EntryKind::End { outcome: Outcome::Limit, error: Some("e".into()), turns: 2 }],
        ),
        (vec![EventKind::AgentClosed {}], vec![EntryKind::Closed]),
        (vec![EventKind::PlanUpdated { steps: vec![] }, queued("m", "user")], vec![]),
    ] {
        assert_eq!(entries(&after(&events)), expected, "{events:?}");
    }
}

#[test]
fn a_call_waits_runs_and_ends_and_tells_how_long_it_ran() {
    let asked = || says("", &["a"]);
    for (events, expected) in [
        (
            vec![asked(), begins("a")],
            call("a", json!("begun"), CallState::Running { since: Micros(2_000_000) }),
        ),
        (
            vec![asked(), begins("a"), beside(), ends("a", ToolStatus::Completed, "ok")],
            call("a", json!("begun"), done(ToolStatus::Completed, Some(2), "ok")),
        ),
        // It never began: it has only an end.
        (
            vec![asked(), ends("a", ToolStatus::Skipped, "[Skipped]")],
            call("a", json!("asked"), done(ToolStatus::Skipped, None, "[Skipped]")),
        ),
        // What comes before it was not told.
        (vec![begins("a")], call("a", json!("begun"), CallState::Running { since: Micros(1_000_000) })),
        (
            vec![ends("a", ToolStatus::Unknown, "")],
            call("a", Value::Null, done(ToolStatus::Unknown, None, "")),
        ),
    ] {
        assert_eq!(entries(&after(&events)), [expected], "{events:?}");
    }
}

/// Something that is no entry.
fn beside() -> EventKind {
    EventKind::PlanUpdated { steps: vec![] }
}

#[test]
fn a_call_whose_id_is_used_again_is_another_one() {
    let mut session = after(&[says("", &["a"]), begins("a"), ends("a", ToolStatus::Completed, "1")]);
    let again = [says("", &["a"]), begins("a"), ends("a", ToolStatus::Failed, "2")];
    for (seq, kind) in (4..).zip(again) {
        session.event(&event(seq, (1, 2), kind));
    }
    let expected = [(ToolStatus::Completed, "1"), (ToolStatus::Failed, "2")]
        .map(|(status, output)| call("a", json!("begun"), done(status, Some(1), output)));
    assert_eq!(entries(&session), expected);
    // One that was left open in a run that is over is not the one of the next run.
    let mut session = after(&[started(), says("", &["a"]), ended(Outcome::Failed)]);
    for (seq, kind) in (4..).zip([started(), begins("a")]) {
        session.event(&event(seq, (2, 1), kind));
    }
    assert_eq!(entries(&session)[0], call("a", json!("asked"), CallState::Waiting));
    assert_eq!(entries(&session).len(), 3);
}

#[test]
fn a_stop_of_the_run_before_that_is_told_late_hides_no_call_of_this_one() {
    let mut session = after(&[started(), ended(Outcome::Finished)]);
    let late = EventKind::StopRequested {
        by: "user".into(),
        scope: Scope::Agent,
        reason: Halt::Stop,
        still_queued: vec![],
    };
    for (seq, run, kind) in [
        (3, 2, started()),
        (4, 2, says("", &["a"])),
        (5, 1, late),
        (6, 2, begins("a")),
        (7, 2, ends("a", ToolStatus::Completed, "")),
        (8, 2, queued("m", "user")),
        (9, 2, injected(&["m"], Point::D, &[])),
    ] {
        session.event(&event(seq, (run, 1), kind));
    }
    let calls = entries(&session).iter().filter(|kind| matches!(kind, EntryKind::Call(_))).count();
    assert_eq!(calls, 1);
    let after: Option<Arc<str>> = Some("bash".into());
    let expected = Injected { after, ..mail(vec![letter("m", "user", 1)], Point::D) };
    assert_eq!(entries(&session).last(), Some(&EntryKind::Injected(expected)));
}

#[test]
fn what_was_injected_tells_its_letters_its_place_and_its_cost() {
    use ToolStatus::{Completed, Skipped};
    let [one, two] = [queued("m", "user"), queued("n", "worker")];
    let ran = [says("", &["a", "b"]), begins("a"), ends("a", Completed, ""), ends("b", Skipped, "")];
    let both = mail(vec![letter("m", "user", 2), letter("n", "worker", 1)], Point::Start);
    let twins = mail(vec![letter("m", "user", 2), letter("m", "worker", 1)], Point::B);
    let after_bash = mail(vec![letter("m", "user", 5)], Point::C);
    let after_bash = Injected { after: Some("bash".into()), skipped: 1, ..after_bash };
    for (events, expected) in [
        (vec![one.clone(), two, injected(&["m", "n"], Point::Start, &[])], both),
        // Ids are unique per sender.
        (vec![one.clone(), queued("m", "worker"), injected(&["m", "m"], Point::B, &[])], twins),
        ([vec![one.clone()], ran.to_vec(), vec![injected(&["m"], Point::C, &["b"])]].concat(), after_bash),
        // A call that never began is none that anything came after.
        (
            vec![one.clone(), says("", &["a"]), ends("a", Skipped, ""), injected(&["m"], Point::A, &["a"])],
            Injected { skipped: 1, ..mail(vec![letter("m", "user", 3)], Point::A) },
        ),
        // Of what was there before the first event that was told there is only the text of all together.
        (vec![injected(&["m"], Point::D, &[])], mail(vec![unknown("m", "all of it")], Point::D)),
        (
            vec![injected(&["m", "n"], Point::D, &[])],
            mail(vec![unknown("m", "all of it"), unknown("n", "")], Point::D),
        ),
        (
            vec![one, injected(&["m", "n"], Point::D, &[])],
            mail(vec![letter("m", "user", 1), unknown("n", "")], Point::D),
        ),
    ] {
        assert_eq!(entries(&after(&events)).last(), Some(&EntryKind::Injected(expected)), "{events:?}");
    }
}

#[test]
fn a_wait_that_takes_mail_shows_it_before_its_own_end() {
    let events = [
        says("", &["w"]),
        begins("w"),
        queued("m", "worker"),
        injected(&["m"], Point::Wait, &[]),
        ends("w", ToolStatus::Completed, "worker finished"),
    ];
    let expected = [
        call("w", json!("begun"), done(ToolStatus::Completed, Some(3), "worker finished")),
        EntryKind::Injected(mail(vec![letter("m", "worker", 1)], Point::Wait)),
    ];
    assert_eq!(entries(&after(&events)), expected);
}

#[test]
fn only_a_whole_reply_answers_what_was_injected() {
    let mut session = after(&[queued("m", "user"), injected(&["m"], Point::Start, &[])]);
    let answered = |session: &Session| match &entries(session)[0] {
        EntryKind::Injected(injected) => injected.answered,
        other => panic!("{other:?}"),
    };
    for (seq, kind, expected) in [
        (3, cut("Well"), false),
        (4, retry(1), false),
        (5, replies("So far.", &[], Purpose::Summary), false),
        (6, says("Yes.", &[]), true),
    ] {
        session.event(&event(seq, (1, 1), kind));
        assert_eq!(answered(&session), expected, "{seq}");
    }
    assert_eq!(w(&session).entry(0).unwrap().changed, 6);
}

#[test]
fn what_is_told_twice_or_of_a_run_that_is_over_changes_nothing() {
    let told = [started(), says("", &["a"]), begins("a"), queued("m", "user"), ended(Outcome::Finished)];
    let session = after(&told);
    let mut again = session.clone();
    for (seq, kind) in (1..).zip(told) {
        assert!(!again.event(&event(seq, (1, 1), kind)));
    }
    assert_eq!(again, session);
    for (seq, kind) in (6..).zip([says("Late.", &["b"]), ends("a", ToolStatus::Completed, ""), retry(1)]) {
        assert!(!again.event(&event(seq, (1, 1), kind)), "{seq}");
    }
    assert_eq!(entries(&again), entries(&session));
}

#[test]
fn only_the_newest_entries_are_kept_and_keep_their_numbers() {
    let mut session = after(&[]);
    for seq in 1..=2_500 {
        session.event(&event(seq, (1, 1), says(&seq.to_string(), &[])));
    }
    assert_eq!((w(&session).entries().len(), w(&session).dropped()), (2_000, 500));
    let numbers: Vec<_> = w(&session).entries().map(|(number, entry)| (number + 1, entry.seq)).collect();
    assert!(numbers.iter().all(|(number, seq)| number == seq));
    assert_eq!((w(&session).entry(499), w(&session).entry(500).unwrap().seq), (None, 501));
    assert_eq!(w(&session).entry(2_500), None);
}

#[test]
fn only_so_many_bytes_are_kept_and_of_what_is_too_much_by_itself_the_newest() {
    let large = "x".repeat(900 << 10);
    let mut session = after(&[says(&large, &[]), says(&large, &[]), says("", &["a"]), begins("a")]);
    assert_eq!((w(&session).entries().len(), w(&session).dropped()), (3, 0));
    // A call that ends with much makes room for that.
    session.event(&event(5, (1, 1), ends("a", ToolStatus::Completed, &large)));
    assert_eq!((w(&session).entries().len(), w(&session).dropped()), (2, 1));
    session.event(&event(6, (1, 1), says(&"x".repeat(3 << 20), &[])));
    assert_eq!((w(&session).entries().len(), w(&session).dropped()), (1, 3));
    assert_eq!(w(&session).entry(3).unwrap().seq, 6);
}

#[test]
fn many_small_parts_of_a_calls_arguments_weigh_something() {
    let mut session = after(&[says("Look.", &[])]);
    let input = Value::Array(vec![json!([]); 100_000]);
    let started = EventKind::ToolStarted { tool: CallId::new("a"), name: "a".into(), input, batch: 1 };
    session.event(&event(2, (1, 1), started));
    assert_eq!((w(&session).entries().len(), w(&session).dropped()), (1, 1));
}
