//! Claims about what a session goes on from.

use std::sync::Arc;

use midturn_core::engine::ports::Transaction;
use midturn_core::rules::conversation::{InterruptReason, ToolStatus};
use midturn_core::rules::event::{EventKind, Halt, PlanStatus, PlanStep, Scope};
use midturn_core::rules::id::{CallId, MessageId};
use midturn_core::rules::mail::{End, MailKind, ReceiptState, ReturnReason, Sender, Urgency};
use midturn_core::rules::progress::Closed;
use midturn_core::rules::time::Micros;

use super::Given;
use super::maker::*;

fn plan(text: &str, status: PlanStatus) -> Vec<PlanStep> {
    vec![PlanStep { text: text.to_owned(), status }]
}

fn tool(id: &str) -> EventKind {
    EventKind::ToolFinished {
        tool: CallId::new(id),
        name: "bash".into(),
        status: ToolStatus::Completed,
        is_error: false,
        bytes: 3,
        output: "a\0b".into(),
    }
}

fn stop() -> EventKind {
    EventKind::StopRequested {
        by: "user".into(),
        scope: Scope::Agent,
        reason: Halt::Stop,
        still_queued: vec![],
    }
}

pub(crate) async fn the_journal_knows_where_every_agent_was(given: Given<'_>) {
    let record = session("s");
    let store = given.archive.begin(record.clone()).await.unwrap();
    let agents = vec![agent(0, "lead"), agent(1, "worker"), agent(2, "idle")];
    store.submit(Arc::new(Transaction { agents, ..Transaction::default() })).await.unwrap();
    let first = Transaction {
        ends: vec![ended("worker", 1, Some(InterruptReason::StoppedByParent))],
        events: vec![
            event(1, "worker", 1, 0, run_started()),
            event(2, "worker", 1, 1, model_started(1)),
            event(3, "worker", 1, 1, model_started(2)),
            event(4, "worker", 1, 1, EventKind::PlanUpdated { steps: plan("a\0", PlanStatus::InProgress) }),
            event(5, "worker", 1, 2, model_started(3)),
            event(6, "worker", 1, 2, run_finished(2)),
        ],
        ..Transaction::default()
    };
    store.submit(Arc::new(first)).await.unwrap();
    let taken = given.archive.take_up(&record.id).await.unwrap().unwrap();
    let second = vec![
        event(7, "worker", 2, 0, run_started()),
        event(8, "worker", 2, 1, model_started(4)),
        event(9, "worker", 2, 1, EventKind::PlanUpdated { steps: plan("b␀", PlanStatus::Skipped) }),
        event(10, "idle", 0, 0, EventKind::AgentClosed {}),
    ];
    taken.store.submit(events(second)).await.unwrap();
    drop((store, taken));
    let given = given.reopened().await;
    let journal = given.archive.journal(&record.id).await.unwrap().unwrap();
    let [lead, worker, idle] = &journal.agents[..] else { panic!("{:?}", journal.agents) };
    assert_eq!(
        (lead.stands.run, lead.stands.turns, lead.stands.calls, lead.stands.closed, &lead.last_end),
        (0, 0, 0, Closed::No, &None)
    );
    assert_eq!(
        (worker.stands.run, worker.stands.turns, worker.stands.calls, worker.stands.closed),
        (2, 3, 4, Closed::No)
    );
    assert_eq!(worker.stands.plan, plan("b␀", PlanStatus::Skipped));
    let end = ended("worker", 1, Some(InterruptReason::StoppedByParent));
    assert_eq!(worker.last_end, Some((end, 6)), "owed_to, restarts, changes and all");
    assert_eq!((idle.stands.run, idle.stands.closed), (0, Closed::Told));
    assert_eq!(journal.last_seq, 10);
}

pub(crate) async fn only_an_open_run_has_a_tail(given: Given<'_>) {
    let record = session("s");
    let store = given.archive.begin(record.clone()).await.unwrap();
    let agents = vec![agent(0, "lead"), agent(1, "worker")];
    store.submit(Arc::new(Transaction { agents, ..Transaction::default() })).await.unwrap();
    let words = mail(Sender::User, "m", "lead", "hello");
    let told = vec![
        event(1, "lead", 1, 0, run_started()),
        event(2, "lead", 1, 1, model_started(1)),
        event(3, "worker", 1, 0, run_started()),
        event(4, "lead", 1, 1, tool("a")),
        event(5, "lead", 1, 2, model_started(2)),
        event(6, "worker", 1, 1, model_started(1)),
        queued(7, 1, 2, &words),
        event(8, "lead", 1, 2, tool("b")),
    ];
    store.submit(events(told.clone())).await.unwrap();
    let journal = given.archive.journal(&record.id).await.unwrap().unwrap();
    assert_eq!(journal.agents[0].tail, [told[4].clone(), told[6].clone(), told[7].clone()]);
    assert_eq!(journal.agents[1].tail, [told[5].clone()]);
    let end = Transaction {
        ends: vec![ended("lead", 1, None)],
        events: vec![event(9, "lead", 1, 2, run_finished(2))],
        ..Transaction::default()
    };
    store.submit(Arc::new(end)).await.unwrap();
    let journal = given.archive.journal(&record.id).await.unwrap().unwrap();
    assert!(journal.agents[0].tail.is_empty());
    assert_eq!(journal.agents[1].tail.len(), 1);
    let next = vec![event(10, "lead", 2, 0, run_started())];
    store.submit(events(next.clone())).await.unwrap();
    let journal = given.archive.journal(&record.id).await.unwrap().unwrap();
    assert_eq!(journal.agents[0].tail, next, "before the first turn");
}

pub(crate) async fn a_stop_is_in_the_tail_whatever_its_turn(given: Given<'_>) {
    let record = session("s");
    let store = given.archive.begin(record.clone()).await.unwrap();
    let agents = vec![agent(0, "lead")];
    store.submit(Arc::new(Transaction { agents, ..Transaction::default() })).await.unwrap();
    let told = vec![
        event(1, "lead", 1, 0, run_started()),
        event(2, "lead", 1, 1, model_started(1)),
        event(3, "lead", 1, 1, stop()),
        event(4, "lead", 1, 1, tool("a")),
        event(5, "lead", 1, 2, model_started(2)),
        event(6, "lead", 1, 2, stop()),
    ];
    store.submit(events(told.clone())).await.unwrap();
    let journal = given.archive.journal(&record.id).await.unwrap().unwrap();
    assert_eq!(journal.agents[0].tail, [told[2].clone(), told[4].clone(), told[5].clone()]);
}

/// semantics.md, section 6: a resume is durable when it is answered.
pub(crate) async fn a_resume_is_kept_until_its_run_begins_or_a_stop_takes_it_back(given: Given<'_>) {
    let record = session("s");
    let store = given.archive.begin(record.clone()).await.unwrap();
    let agents = vec![agent(0, "lead")];
    store.submit(Arc::new(Transaction { agents, ..Transaction::default() })).await.unwrap();
    let resumed = async |run| {
        let resumes = vec![(name("lead"), run)];
        store.submit(Arc::new(Transaction { resumes, ..Transaction::default() })).await.unwrap();
    };
    let is_kept =
        async || given.archive.journal(&record.id).await.unwrap().unwrap().agents[0].stands.is_resumed();
    store
        .submit(events(vec![event(1, "lead", 1, 0, run_started()), event(2, "lead", 1, 0, stop())]))
        .await
        .unwrap();
    assert!(!is_kept().await, "nobody has resumed it");
    resumed(2).await;
    assert!(is_kept().await);
    store.submit(events(vec![event(3, "lead", 1, 0, stop())])).await.unwrap();
    assert!(!is_kept().await, "a stop has taken it back");
    resumed(2).await;
    let taken = given.archive.take_up(&record.id).await.unwrap().unwrap();
    assert!(taken.journal.agents[0].stands.is_resumed(), "another process reads it");
    taken.store.submit(events(vec![event(4, "lead", 2, 0, run_started())])).await.unwrap();
    assert!(!is_kept().await, "the run has begun");
}

pub(crate) async fn mail_is_given_back_in_the_order_of_acceptance(given: Given<'_>) {
    let record = session("s");
    let store = given.archive.begin(record.clone()).await.unwrap();
    let mut whole = mail(Sender::Coordinator(name("worker")), "worker#3", "lead", "it ended");
    let of = Arc::get_mut(&mut whole.mail).unwrap();
    of.kind = MailKind::End(End::Limit);
    of.only_run = Some(7);
    of.expires_at = Some(Micros(u64::MAX));
    of.urgency = Urgency::FollowUp;
    whole.address = "parent".into();
    whole.urgency = Some(Urgency::Urgent);
    let mut accepted = vec![whole.clone()];
    accepted.extend((0..5).map(|n| mail(Sender::User, &format!("m{}", 9 - n), "lead", "x")));
    let told = accepted.iter().zip(1..).map(|(accepted, seq)| queued(seq, 0, 0, accepted)).collect();
    let all = Transaction { accepted: accepted.clone(), events: told, ..Transaction::default() };
    store.submit(Arc::new(all)).await.unwrap();
    let settled = ReceiptState::Returned(ReturnReason::Withdrawn);
    let receipts = vec![moved(&accepted[2], settled.clone())];
    store.submit(Arc::new(Transaction { receipts, ..Transaction::default() })).await.unwrap();
    let journal = given.archive.journal(&record.id).await.unwrap().unwrap();
    let kept: Vec<_> = journal.mail.iter().map(|kept| kept.accepted.clone()).collect();
    assert_eq!(kept, accepted);
    let seqs: Vec<u64> = journal.mail.iter().map(|kept| kept.seq).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5, 6]);
    assert_eq!(journal.mail[2].state, settled);
    assert_eq!(journal.mail[1].state, ReceiptState::Queued);
}

pub(crate) async fn old_settled_mail_is_left_out_and_the_rest_is_not(given: Given<'_>) {
    const KEPT: usize = 16_384;
    let record = session("s");
    let store = given.archive.begin(record.clone()).await.unwrap();
    let accepted: Vec<_> =
        (0..KEPT + 10).map(|n| mail(Sender::User, &format!("m{n}"), "lead", "x")).collect();
    let settled = ReceiptState::Returned(ReturnReason::Expired);
    // All but one of the first ten and one of the last.
    let open = [3, KEPT + 5];
    let moves = accepted.iter().enumerate().filter(|(n, _)| !open.contains(n));
    let receipts = moves.map(|(_, accepted)| moved(accepted, settled.clone())).collect();
    let all = Transaction { accepted: accepted.clone(), receipts, ..Transaction::default() };
    store.submit(Arc::new(all)).await.unwrap();
    let journal = given.archive.journal(&record.id).await.unwrap().unwrap();
    let kept: Vec<_> = journal.mail.iter().map(|kept| kept.accepted.mail.id.clone()).collect();
    let expected = accepted.iter().enumerate().filter(|(n, _)| *n == 3 || *n > 8);
    let expected: Vec<_> = expected.map(|(_, accepted)| accepted.mail.id.clone()).collect();
    assert_eq!(kept.len(), expected.len());
    assert_eq!(kept, expected);
    let old = given.archive.receipts(&record.id, &Sender::User, &accepted[0].mail.id).await.unwrap();
    assert_eq!(old, [(name("lead"), settled.clone())], "an old one is asked for by its id");
    // A18: whoever goes on from the journal can tell an old message from a new one.
    let known = store.known(&Sender::User, &accepted[0].mail.id).await.unwrap();
    let known: Vec<_> = known.into_iter().map(|kept| (kept.accepted, kept.state)).collect();
    assert_eq!(known, [(accepted[0].clone(), settled)]);
    for (from, id) in [(Sender::User, "m"), (Sender::Agent(name("lead")), "m0")] {
        assert!(store.known(&from, &MessageId::new(id)).await.unwrap().is_empty());
    }
}
