//! The nastiest races known from other projects, each as a claim (semantics.md, sections 3 to 8).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use midturn_core::engine::ports::{Observer, RealClock};
use midturn_core::engine::scripted::{ScriptedCall, ScriptedModels, ScriptedReply, Scripts, SimulatedTools};
use midturn_core::engine::{AgentSpec, Coordinator, Mailbox, Message, Pushed, Resume, StopOrder};
use midturn_core::rules::batch::PlannedCall;
use midturn_core::rules::boundary::{Committed, Inbox};
use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::Halt;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, CallId, MessageId};
use midturn_core::rules::mail::{
    Mail, MailKind, Point, ReceiptState, Relation, Rest, Sender, Standing, Urgency,
};
use midturn_core::rules::settings::Settings;
use midturn_core::rules::time::{Micros, Span};
use midturn_core::rules::turn::{Given, Turn};
use midturn_core::rules::wording::Cause;
use tokio_util::sync::CancellationToken;

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

fn mail(id: &str, from: &str, urgency: Urgency) -> Arc<Mail> {
    Arc::new(Mail {
        id: MessageId::new(id),
        from: Sender::Agent(name(from)),
        to: name("worker"),
        text: id.into(),
        urgency,
        kind: MailKind::Words,
        only_run: None,
        expires_at: None,
    })
}

fn running() -> Mailbox {
    let mailbox = Mailbox::default();
    assert!(mailbox.prompt());
    mailbox
}

#[test]
fn a_new_token_does_not_erase_a_newer_cancel() {
    let mailbox = running();
    let (first, second) = (CancellationToken::new(), CancellationToken::new());
    mailbox.arm(first.clone(), true);
    mailbox.push(mail("a", "lead", Urgency::Urgent), Relation::Ancestor);
    assert!(first.is_cancelled());
    mailbox.arm(second.clone(), true);
    assert!(!second.is_cancelled(), "a token is never cancelled for what was before it");
    assert_eq!(mailbox.pending(), Some(Urgency::Urgent), "the look after the arming finds it");
}

#[test]
fn a_stop_wins_over_a_token_that_is_armed_after_it() {
    let mailbox = running();
    let run = mailbox.run_token();
    mailbox.stop(StopOrder { by: Sender::User, halt: Halt::Stop, run: None });
    let work = run.child_token();
    mailbox.arm(work.clone(), true);
    assert!(work.is_cancelled());
    assert_eq!(mailbox.cause(), Some(Cause::Stop(Sender::User)));
}

#[test]
fn a_message_after_the_last_look_is_not_lost_and_sits_on_no_idle_agent() {
    let mailbox = running();
    mailbox.push(mail("a", "lead", Urgency::FollowUp), Relation::Ancestor);
    assert!(!mailbox.wind_down_if_empty(), "looking and ending are one step");
    assert_eq!(mailbox.take(Urgency::FollowUp).len(), 1);
    assert!(mailbox.wind_down_if_empty());
    let pushed = mailbox.push(mail("b", "lead", Urgency::FollowUp), Relation::Ancestor);
    assert_eq!(pushed, Pushed::Queued, "the ending run is not disturbed");
    assert_eq!(mailbox.settle(true), Standing::Running, "and the next one starts for it");
    assert_eq!(mailbox.run(), 2);
}

#[test]
fn mail_sits_on_no_idle_agent_when_what_woke_it_is_taken_back() {
    let mailbox = Mailbox::default();
    let from = Sender::Agent(name("lead"));
    assert_eq!(mailbox.push(mail("a", "lead", Urgency::FollowUp), Relation::Ancestor), Pushed::Wake);
    assert!(mailbox.take_back(&from, &MessageId::new("a")).is_some());
    assert!(!mailbox.begins(), "nothing is left to start for");
    assert_eq!((mailbox.standing(), mailbox.run()), (Standing::Resting(Rest::Idle), 0));
    assert_eq!(mailbox.push(mail("b", "lead", Urgency::FollowUp), Relation::Ancestor), Pushed::Wake);
    mailbox.push(mail("c", "lead", Urgency::FollowUp), Relation::Ancestor);
    assert!(mailbox.take_back(&from, &MessageId::new("b")).is_some());
    assert!(mailbox.begins(), "the second one asks for the run as the first did");
    assert_eq!(mailbox.run(), 1);
}

fn shutdown() -> StopOrder {
    StopOrder { by: Sender::User, halt: Halt::Shutdown, run: None }
}

/// The shutdown comes between the run's first boundary and its place in the record.
#[test]
fn a_run_that_nothing_is_recorded_of_never_begins_behind_a_shutdown() {
    let mailbox = running();
    assert!(mailbox.begins());
    let stopped = mailbox.stop(shutdown());
    assert!(!stopped.changed, "what has not begun is not stopped: it stays asked for");
    assert!(!mailbox.starts(), "there is no place for it behind the shutdown's");
    assert_eq!((mailbox.standing(), mailbox.run()), (Standing::Resting(Rest::Idle), 0));
    let person = mailbox.stop(StopOrder { by: Sender::User, halt: Halt::Stop, run: None });
    assert!(person.begins, "whoever stops it now means the run that would begin at the next start");
}

#[test]
fn a_run_that_is_recorded_is_one_that_a_shutdown_stops() {
    let mailbox = running();
    assert!(mailbox.begins() && mailbox.starts());
    assert!(mailbox.stop(shutdown()).changed);
    assert!(matches!(mailbox.standing(), Standing::Winding { then: Rest::Stopped, restart: false }));
}

#[test]
fn a_finished_result_is_never_overwritten() {
    let call = |id: &str| PlannedCall {
        id: CallId::new(id),
        name: "bash".into(),
        safe: true,
        abortable: true,
        edits: None,
    };
    let settings = Settings::default();
    let mut turn = Turn::new(vec![call("a"), call("b")], &settings, false);
    for call in turn.step(&running(), &settings) {
        turn.started(call, Micros(0));
    }
    turn.ended(0, Given { text: "done".into(), ..Given::default() });
    assert_eq!(turn.cut(&Cause::Stop(Sender::User), Micros(5)), [1]);
    turn.ended(0, Given { text: "again".into(), ..Given::default() });
    turn.ended(1, Given::default());
    let results = turn.results();
    assert_eq!((results[0].status, &*results[0].text), (ToolStatus::Completed, "done"));
    assert_eq!(results[1].status, ToolStatus::Stopped);
}

/// A peek that says there is mail, which is gone at the second look.
struct Withdrawn;

impl Inbox for Withdrawn {
    fn pending(&self) -> Option<Urgency> {
        Some(Urgency::Urgent)
    }
    fn commit(&self, _: Urgency) -> Option<Committed> {
        None
    }
}

#[test]
fn a_peek_that_finds_nothing_to_act_on_cancels_nothing() {
    let settings = Settings::default();
    let call =
        PlannedCall { id: CallId::new("a"), name: "edit".into(), safe: false, abortable: true, edits: None };
    let mut turn = Turn::new(vec![call], &settings, false);
    assert_eq!(turn.step(&Withdrawn, &settings), [0]);
}

#[test]
fn the_skip_is_blamed_on_the_earliest_sender_that_acts() {
    let mailbox = running();
    for (id, from, urgency) in [
        ("a", "first", Urgency::AfterTools),
        ("b", "second", Urgency::NextBoundary),
        ("c", "third", Urgency::Urgent),
    ] {
        mailbox.push(mail(id, from, urgency), Relation::Ancestor);
    }
    let committed = mailbox.commit(Urgency::NextBoundary).unwrap();
    assert_eq!(committed.sender, Sender::Agent(name("second")));
    let committed = mailbox.commit(Urgency::Urgent).unwrap();
    assert_eq!(committed.sender, Sender::Agent(name("third")));
    let back = |id, from: &str| mailbox.take_back(&Sender::Agent(name(from)), &MessageId::new(id)).is_some();
    assert!(!back("b", "second") && !back("c", "third"), "what acted can't be taken back");
    assert!(back("a", "first"));
}

#[test]
fn a_stopped_agents_mail_goes_back_and_a_persons_stays() {
    let mailbox = running();
    mailbox.push(mail("a", "peer", Urgency::FollowUp), Relation::Other);
    let mut person = (*mail("p", "peer", Urgency::FollowUp)).clone();
    person.from = Sender::User;
    mailbox.push(Arc::new(person), Relation::Person);
    let order = StopOrder { by: Sender::User, halt: Halt::Stop, run: None };
    let stopped = mailbox.stop(order.clone());
    assert_eq!((stopped.returned.len(), stopped.still_queued), (1, vec![MessageId::new("p")]));
    assert!(!mailbox.stop(order).changed, "stopping twice changes nothing");
    assert_eq!(mailbox.settle(true), Standing::Resting(Rest::Stopped));
}

#[test]
fn a_resume_of_a_run_that_ends_asks_for_the_next_only_where_something_is_unanswered() {
    let order = StopOrder { by: Sender::User, halt: Halt::Stop, run: None };
    for (awaits, has_mail, then) in [
        (true, false, Standing::Running),
        (false, true, Standing::Running),
        (false, false, Standing::Resting(Rest::Idle)),
    ] {
        let mailbox = running();
        mailbox.stop(order.clone());
        mailbox.resume(Resume::Anyway);
        if has_mail {
            mailbox.push(mail("a", "lead", Urgency::FollowUp), Relation::Ancestor);
        }
        assert_eq!(mailbox.settle(awaits), then, "unanswered: {awaits}, mail: {has_mail}");
    }
}

/// Invariant 1: no request ends with what the model itself has said.
#[test]
fn a_resume_is_over_with_the_only_mail_that_its_run_could_begin_with() {
    for (how, then) in
        [(Resume::WithMail, Standing::Resting(Rest::Idle)), (Resume::Anyway, Standing::Running)]
    {
        let mailbox = running();
        let mut person = (*mail("p", "lead", Urgency::FollowUp)).clone();
        person.from = Sender::User;
        mailbox.push(Arc::new(person), Relation::Person);
        mailbox.stop(StopOrder { by: Sender::User, halt: Halt::Stop, run: None });
        mailbox.settle(true);
        assert!(mailbox.resume(how), "{how:?}");
        mailbox.take_back(&Sender::User, &MessageId::new("p")).unwrap();
        assert_eq!(mailbox.standing(), then, "{how:?}");
    }
}

// ---- the whole engine, on real threads ----

#[derive(Default)]
struct Log(parking_lot::Mutex<Vec<Event>>);

impl Observer for Log {
    fn event(&self, event: &Event) {
        self.0.lock().push(event.clone());
    }
}

fn call(id: String, micros: u64) -> Arc<ScriptedCall> {
    let call = ScriptedCall::new(&id, "bash", serde_json::json!({}));
    Arc::new(ScriptedCall { takes: Span(micros), result: "ok".into(), ..call })
}

/// A worker that makes `turns` turns of three short calls each and then only answers.
fn script(turns: usize, answers: usize) -> Scripts {
    let turn = |t: usize| ScriptedReply {
        text: "working".into(),
        takes: Span(200),
        tools: (0..3).map(|c| call(format!("t{t}c{c}"), 300)).collect(),
        ..ScriptedReply::default()
    };
    let answer = ScriptedReply::says("done");
    let replies = (0..turns).map(turn).chain(std::iter::repeat_n(answer, answers)).collect();
    HashMap::from([(name("worker"), replies)])
}

async fn team(scripts: Scripts) -> (Coordinator, Arc<Log>) {
    let clock = Arc::new(RealClock::start());
    let log = Arc::new(Log::default());
    let models = Arc::new(ScriptedModels::new(clock.clone(), scripts.clone()));
    let tools = Arc::new(SimulatedTools::new(clock.clone(), scripts));
    let coordinator =
        Coordinator::builder(models, tools).clock(clock).observer(log.clone()).start().await.unwrap();
    (coordinator, log)
}

fn worker(prompt: Option<&str>) -> AgentSpec {
    AgentSpec { prompt: prompt.map(str::to_owned), ..AgentSpec::new(name("worker"), "scripted") }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_messages_from_many_threads_none_is_lost_or_doubled_invariants_2_3_and_5() {
    let (coordinator, log) = team(script(60, 400)).await;
    coordinator.spawn_agent(worker(Some("go"))).await.unwrap();
    let senders = (0..4u64).map(|sender| {
        let coordinator = coordinator.clone();
        tokio::spawn(async move {
            let mut receipts = Vec::new();
            for n in 0..40u64 {
                let mut message = Message::new(Sender::User, "worker", format!("s{sender} n{n}"));
                message.urgency = Some(Urgency::ALL[((sender + n) % 4) as usize]);
                receipts.push(coordinator.send(message).await.unwrap());
                tokio::task::yield_now().await;
            }
            receipts
        })
    });
    let mut receipts = Vec::new();
    for sender in senders.collect::<Vec<_>>() {
        receipts.extend(sender.await.unwrap());
    }
    coordinator.quiet().await;
    for receipt in &mut receipts {
        let state = receipt.reached(|state| matches!(state, ReceiptState::Answered { .. })).await;
        assert!(matches!(state, ReceiptState::Answered { .. }), "{}: {state:?}", receipt.id);
    }
    let mut injected = Vec::new();
    for event in log.0.lock().iter() {
        if let EventKind::MessageInjected { messages, .. } = &event.kind {
            injected.extend(messages.iter().cloned());
        }
    }
    let once: std::collections::HashSet<_> = injected.iter().collect();
    assert_eq!((injected.len(), once.len()), (160, 160));
}

#[tokio::test]
async fn the_same_id_again_is_the_same_message_so_a_timeout_is_no_reason_to_send_twice() {
    let (coordinator, log) = team(script(0, 4)).await;
    coordinator.spawn_agent(worker(None)).await.unwrap();
    let message = || {
        let mut message = Message::new(Sender::User, "worker", "once");
        message.id = Some(MessageId::new("fix"));
        message
    };
    coordinator.send(message()).await.unwrap();
    coordinator.send(message()).await.unwrap();
    coordinator.quiet().await;
    coordinator.send(message()).await.unwrap();
    coordinator.quiet().await;
    let mut other = message();
    other.text = "another".into();
    assert_eq!(coordinator.send(other).await.unwrap_err().code(), "duplicate_id");
    let queued = log.0.lock().iter().filter(|e| matches!(e.kind, EventKind::MessageQueued { .. })).count();
    assert_eq!(queued, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_results_of_a_cut_turn_stand_in_one_message_with_the_mail_after_them() {
    let scripts: Scripts = HashMap::from([(
        name("worker"),
        vec![
            ScriptedReply {
                tools: vec![call("a".into(), 60_000_000), call("b".into(), 0)],
                ..ScriptedReply::default()
            },
            ScriptedReply::says("ok"),
        ]
        .into(),
    )]);
    let (coordinator, log) = team(scripts).await;
    coordinator.spawn_agent(worker(Some("go"))).await.unwrap();
    let begun = async {
        while !log.0.lock().iter().any(|e| matches!(e.kind, EventKind::ToolStarted { .. })) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), begun).await.unwrap();
    let mut receipt = coordinator.send_message("worker", "stop that", true).await.unwrap();
    let state = receipt.reached(|state| matches!(state, ReceiptState::Answered { .. })).await;
    let injection = state.injection().unwrap().clone();
    assert_eq!(injection.point, Point::C);
    assert_eq!(&*injection.interrupted, [CallId::new("a")]);
    assert_eq!(&*injection.skipped, [CallId::new("b")]);
    coordinator.quiet().await;
    assert_eq!(coordinator.agent("worker").unwrap().standing, Standing::Resting(Rest::Idle));
}
