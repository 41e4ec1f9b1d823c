//! Claims about transactions, epochs, receipts and lists.

use std::sync::Arc;
use std::time::Duration;

use midturn_core::engine::ports::archive::{Rows, SessionSize};
use midturn_core::engine::ports::store::IN_FLIGHT;
use midturn_core::engine::ports::{Archive, Commit, StoreError, Transaction};
use midturn_core::rules::conversation::InterruptReason;
use midturn_core::rules::event::EventKind;
use midturn_core::rules::id::SessionId;
use midturn_core::rules::mail::{ReceiptState, Sender};
use midturn_core::rules::time::Micros;

use super::Given;
use super::maker::*;

async fn contents(archive: &dyn Archive, session: &SessionId, agent: &str) -> Vec<String> {
    let page = archive.conversation(session, &name(agent), Rows::After(0), 10_000).await.unwrap();
    let numbers: Vec<u64> = page.iter().map(|row| row.seq).collect();
    assert_eq!(numbers, (1..=page.len() as u64).collect::<Vec<_>>(), "rows are numbered without gaps");
    page.into_iter().map(|row| row.content).collect()
}

/// A transaction that no store can take: its event has a number that is taken.
fn refused(taken: u64) -> Arc<Transaction> {
    Arc::new(Transaction {
        agents: vec![agent(7, "never")],
        accepted: vec![mail(Sender::User, "never", "lead", "never")],
        rows: vec![said("lead", "never")],
        ends: vec![ended("lead", 1, None)],
        events: vec![
            event(taken + 1, "lead", 1, 1, model_started(99)),
            event(taken, "lead", 1, 1, EventKind::AgentClosed {}),
        ],
        ..Transaction::default()
    })
}

pub(crate) async fn what_was_committed_is_there_for_the_next_process(given: Given<'_>) {
    let record = session("s\0");
    let store = given.archive.begin(record.clone()).await.unwrap();
    let words = mail(Sender::Agent(name("lead")), "m\0", "worker", "text\0 ␀ \u{1f980}");
    let whole = Transaction {
        agents: vec![agent(0, "lead"), agent(1, "worker")],
        accepted: vec![words.clone()],
        receipts: vec![moved(&words, ReceiptState::Injected(injection()))],
        rows: vec![said("lead", "one\0"), said("worker", "two"), said("lead", "three")],
        ends: vec![ended("lead", 1, None)],
        events: vec![
            event(1, "lead", 1, 0, run_started()),
            queued(2, 0, 0, &words),
            event(3, "lead", 1, 0, run_finished(0)),
        ],
        ..Transaction::default()
    };
    store.submit(Arc::new(whole.clone())).await.unwrap();
    let before = given.archive.journal(&record.id).await.unwrap().unwrap();
    drop(store);
    let given = given.reopened().await;
    let journal = given.archive.journal(&record.id).await.unwrap().unwrap();
    assert_eq!(journal, before);
    assert_eq!((&journal.record, journal.last_seq, journal.last_t), (&record, 3, Micros(3_000_009)));
    let records: Vec<_> = journal.agents.iter().map(|agent| agent.record.clone()).collect();
    assert_eq!(records, whole.agents);
    assert_eq!(journal.agents[0].rows, [whole.rows[0].clone(), whole.rows[2].clone()]);
    assert_eq!(journal.agents[0].last_end, Some((whole.ends[0].clone(), 3)));
    assert_eq!(journal.mail.len(), 1);
    assert_eq!(journal.mail[0].accepted, words);
    assert_eq!((journal.mail[0].seq, &journal.mail[0].state), (2, &ReceiptState::Injected(injection())));
    let taken = given.archive.take_up(&record.id).await.unwrap().unwrap();
    assert_eq!((taken.epoch, taken.journal), (2, journal));
    taken.store.submit(rows(vec![said("lead", "four")])).await.unwrap();
    assert_eq!(contents(&*given.archive, &record.id, "lead").await, ["one\0", "three", "four"]);
}

pub(crate) async fn a_transaction_counts_as_a_whole_or_not_at_all(given: Given<'_>) {
    let record = session("s");
    let store = given.archive.begin(record.clone()).await.unwrap();
    let first = Transaction { agents: vec![agent(0, "lead")], ..Transaction::default() };
    store.submit(Arc::new(first)).await.unwrap();
    store.submit(events(vec![event(1, "lead", 1, 0, run_started())])).await.unwrap();
    let before = given.archive.journal(&record.id).await.unwrap().unwrap();
    let error = store.submit(refused(1)).await.unwrap_err();
    assert!(matches!(error, StoreError::Failed(_)), "{error}");
    assert_eq!(given.archive.journal(&record.id).await.unwrap().unwrap(), before);
    let id = midturn_core::rules::id::MessageId::new("never");
    assert!(given.archive.receipts(&record.id, &Sender::User, &id).await.unwrap().is_empty());
}

pub(crate) async fn a_failing_transaction_does_no_harm_to_other_sessions(given: Given<'_>) {
    let (good, bad) = (session("good"), session("bad"));
    let good_store = given.archive.begin(good.clone()).await.unwrap();
    let bad_store = given.archive.begin(bad.clone()).await.unwrap();
    bad_store.submit(events(vec![event(1, "lead", 1, 0, run_started())])).await.unwrap();
    let mut goods: Vec<Commit> = Vec::new();
    let mut bads: Vec<Commit> = Vec::new();
    for n in 0..20 {
        goods.push(good_store.submit(rows(vec![said("lead", &n.to_string())])));
        let transaction = if n == 5 { refused(1) } else { rows(vec![said("lead", &n.to_string())]) };
        bads.push(bad_store.submit(transaction));
    }
    for commit in goods {
        commit.await.unwrap();
    }
    let mut counted = Vec::new();
    for commit in bads {
        counted.push(commit.await.is_ok());
    }
    let expected: Vec<bool> = (0..20).map(|n| n < 5).collect();
    assert_eq!(counted, expected);
    assert_eq!(contents(&*given.archive, &good.id, "lead").await.len(), 20);
    assert_eq!(contents(&*given.archive, &bad.id, "lead").await, ["0", "1", "2", "3", "4"]);
}

pub(crate) async fn nothing_counts_that_was_submitted_after_what_failed(given: Given<'_>) {
    let record = session("s");
    let store = given.archive.begin(record.clone()).await.unwrap();
    store.submit(events(vec![event(1, "lead", 1, 0, run_started())])).await.unwrap();
    let failed = store.submit(refused(1)).await.unwrap_err();
    let after = store.submit(rows(vec![said("lead", "after")])).await.unwrap_err();
    assert_eq!(after, failed, "the first reason stands");
    assert!(contents(&*given.archive, &record.id, "lead").await.is_empty());
    let taken = given.archive.take_up(&record.id).await.unwrap().unwrap();
    taken.store.submit(rows(vec![said("lead", "anew")])).await.unwrap();
    assert_eq!(contents(&*given.archive, &record.id, "lead").await, ["anew"]);
}

pub(crate) async fn transactions_count_in_the_order_of_submission(given: Given<'_>) {
    let (one, two) = (session("one"), session("two"));
    let stores =
        [given.archive.begin(one.clone()).await.unwrap(), given.archive.begin(two.clone()).await.unwrap()];
    let mut commits = Vec::new();
    for n in 0..IN_FLIGHT {
        for store in &stores {
            commits.push(store.submit(rows(vec![said("lead", &n.to_string())])));
        }
    }
    // The last one is durable only after all others are.
    commits.pop().unwrap().await.unwrap();
    let expected: Vec<String> = (0..IN_FLIGHT).map(|n| n.to_string()).collect();
    for session in [&one.id, &two.id] {
        assert_eq!(contents(&*given.archive, session, "lead").await, expected);
    }
    for commit in commits {
        commit.await.unwrap();
    }
}

/// A store may put off what nobody waits for ([`Commit::Unhurried`]), and no longer.
pub(crate) async fn what_nobody_waits_for_counts_with_what_follows_or_once_it_is_given_up(given: Given<'_>) {
    let record = session("s");
    let store = given.archive.begin(record.clone()).await.unwrap();
    let made = Transaction { agents: vec![agent(0, "lead")], ..Transaction::default() };
    store.submit(Arc::new(made)).await.unwrap();
    let first = store.submit(rows(vec![said("lead", "first")]));
    store.submit(rows(vec![said("lead", "second")])).await.unwrap();
    assert_eq!(contents(&*given.archive, &record.id, "lead").await, ["first", "second"]);
    first.await.unwrap();
    drop(store.submit(rows(vec![said("lead", "third")])));
    let mut again = tokio::time::interval(Duration::from_millis(2));
    let written = async {
        while contents(&*given.archive, &record.id, "lead").await.len() < 3 {
            again.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), written).await.expect("what is given up is written, too");
}

pub(crate) async fn there_is_room_for_all_that_may_be_in_flight(given: Given<'_>) {
    let mut commits = Vec::new();
    for n in 0..8 {
        let store = given.archive.begin(session(&format!("s{n}"))).await.unwrap();
        for m in 0..IN_FLIGHT {
            commits.push(store.submit(rows(vec![said("lead", &m.to_string())])));
        }
    }
    for commit in commits {
        commit.await.unwrap();
    }
}

pub(crate) async fn a_stale_epoch_writes_nothing_and_is_counted(given: Given<'_>) {
    let record = session("s");
    let old = given.archive.begin(record.clone()).await.unwrap();
    old.submit(rows(vec![said("lead", "old")])).await.unwrap();
    let taken = given.archive.take_up(&record.id).await.unwrap().unwrap();
    assert_eq!(taken.epoch, 2);
    let words = mail(Sender::User, "m", "lead", "stale");
    let mut stale = Vec::new();
    let mut fresh = Vec::new();
    for n in 0..10 {
        stale.push(old.submit(Arc::new(Transaction {
            agents: vec![agent(n, &format!("stale-{n}"))],
            accepted: vec![words.clone()],
            rows: vec![said("lead", "stale")],
            ends: vec![ended("lead", 1, None)],
            events: vec![event(u64::from(n) + 100, "lead", 9, 9, model_started(99))],
            ..Transaction::default()
        })));
        fresh.push(taken.store.submit(rows(vec![said("lead", &n.to_string())])));
    }
    for commit in stale {
        assert_eq!(commit.await, Err(StoreError::Stale));
    }
    for commit in fresh {
        commit.await.unwrap();
    }
    let refused = given.archive.stale_writes();
    assert!((1..=10).contains(&refused), "{refused}");
    let journal = given.archive.journal(&record.id).await.unwrap().unwrap();
    assert!(journal.agents.is_empty() && journal.mail.is_empty());
    assert_eq!(journal.last_seq, 0);
    let said = contents(&*given.archive, &record.id, "lead").await;
    assert_eq!(said, ["old", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
}

pub(crate) async fn receipts_only_move_forward(given: Given<'_>) {
    let record = session("s");
    let store = given.archive.begin(record.clone()).await.unwrap();
    let words = mail(Sender::Coordinator(name("worker")), "worker#1", "lead", "the end");
    let sent = || ReceiptState::Sent { injection: injection(), call: 4 };
    let answered = || ReceiptState::Answered { injection: injection(), call: 5 };
    let accept = Transaction { accepted: vec![words.clone()], ..Transaction::default() };
    store.submit(Arc::new(accept)).await.unwrap();
    let rows: [(Vec<ReceiptState>, ReceiptState); 4] = [
        (vec![sent(), ReceiptState::Injected(injection())], sent()),
        (vec![ReceiptState::Queued], sent()),
        (vec![answered()], answered()),
        (vec![ReceiptState::Injected(injection()), sent()], answered()),
    ];
    for (moves, expected) in rows {
        let receipts = moves.into_iter().map(|state| moved(&words, state)).collect();
        store.submit(Arc::new(Transaction { receipts, ..Transaction::default() })).await.unwrap();
        let found = given.archive.receipts(&record.id, &words.mail.from, &words.mail.id).await.unwrap();
        assert_eq!(found, [(name("lead"), expected)]);
    }
}

pub(crate) async fn an_id_stands_for_one_message_of_its_sender(given: Given<'_>) {
    let record = session("s");
    let store = given.archive.begin(record.clone()).await.unwrap();
    // Longer than what an index of PostgreSQL takes.
    let long = "m".repeat(20_000);
    let user = || Sender::User;
    let accepted = vec![
        mail(user(), &long, "a", "first"),
        mail(user(), &long, "b", "to another"),
        mail(Sender::Agent(name("b")), &long, "a", "of another"),
        mail(user(), &long, "a", "first"),
    ];
    let twice = Transaction { accepted: accepted.clone(), ..Transaction::default() };
    store.submit(Arc::new(twice)).await.unwrap();
    store
        .submit(Arc::new(Transaction { accepted: accepted[..1].into(), ..Transaction::default() }))
        .await
        .unwrap();
    let journal = given.archive.journal(&record.id).await.unwrap().unwrap();
    let kept: Vec<_> = journal.mail.into_iter().map(|kept| kept.accepted).collect();
    assert_eq!(kept, accepted[..3]);
    let id = &accepted[0].mail.id;
    let receivers = given.archive.receipts(&record.id, &user(), id).await.unwrap();
    assert_eq!(receivers, [(name("a"), ReceiptState::Queued), (name("b"), ReceiptState::Queued)]);
}

pub(crate) async fn events_come_in_pages_as_they_were_told(given: Given<'_>) {
    let record = session("s");
    let store = given.archive.begin(record.clone()).await.unwrap();
    let told: Vec<_> = (1..=300)
        .map(|seq| {
            let agent = if seq % 3 == 0 { "c" } else { "a" };
            let error = format!("\0 ␀ \\u0000 {seq}");
            let wait = midturn_core::rules::time::Span::millis(seq);
            event(seq, agent, 1, 1, EventKind::ModelRetry { attempt: 1, error, wait })
        })
        .collect();
    for part in told.chunks(7) {
        store.submit(events(part.to_vec())).await.unwrap();
    }
    let rows = [0, 17, 299, 300, u64::MAX].map(Rows::After).into_iter();
    let rows = rows.chain([0, 1, 2, 17, 301, u64::MAX].map(Rows::Before));
    let agents = [None, Some("c"), Some("nobody")];
    let wanted = rows.flat_map(|rows| agents.map(|agent| (agent, rows)));
    for ((agent, rows), limit) in wanted.flat_map(|wanted| [5, 1_000].map(|limit| (wanted, limit))) {
        let agent = agent.map(name);
        let page = given.archive.events(&record.id, agent.as_ref(), rows, limit).await.unwrap();
        let is_wanted = |seq: u64| match rows {
            Rows::After(after) => seq > after,
            Rows::Before(before) => seq < before,
        };
        let mut expected: Vec<_> = told
            .iter()
            .filter(|event| is_wanted(event.seq) && (agent.is_none() || event.at.agent == agent))
            .map(|event| (event.seq, event.at.agent.clone(), serde_json::to_string(event).unwrap()))
            .collect();
        let beyond = expected.len().saturating_sub(limit as usize);
        match rows {
            Rows::After(_) => expected.truncate(limit as usize),
            Rows::Before(_) => drop(expected.drain(..beyond)),
        }
        let page: Vec<_> =
            page.into_iter().map(|event| (event.seq, event.agent, event.json.to_string())).collect();
        assert_eq!(page, expected, "{agent:?} {rows:?} {limit}");
    }
}

pub(crate) async fn a_session_is_begun_once_and_an_unknown_one_is_nobody(given: Given<'_>) {
    let record = session("s");
    given.archive.begin(record.clone()).await.unwrap();
    let again = given.archive.begin(record.clone()).await.err().unwrap();
    assert!(again.to_string().contains("`s` already"), "{again}");
    let nobody = SessionId::new("nobody");
    assert!(given.archive.take_up(&nobody).await.unwrap().is_none());
    assert!(given.archive.journal(&nobody).await.unwrap().is_none());
    assert!(given.archive.events(&nobody, None, Rows::After(0), 9).await.unwrap().is_empty());
    assert!(given.archive.conversation(&nobody, &name("a"), Rows::After(0), 9).await.unwrap().is_empty());
    assert_eq!(given.archive.take_up(&record.id).await.unwrap().unwrap().epoch, 2);
    assert_eq!(given.archive.take_up(&record.id).await.unwrap().unwrap().epoch, 3);
}

/// docs/store.md: nothing of it is left, and who had it writes no more.
pub(crate) async fn a_session_that_is_removed_is_nobody_and_the_others_stay(given: Given<'_>) {
    let (gone, stays) = (session("gone\0"), session("stays"));
    let mut stores = Vec::new();
    for record in [&gone, &stays] {
        let store = given.archive.begin(record.clone()).await.unwrap();
        let words = mail(Sender::User, "m", "lead", "text");
        let whole = Transaction {
            agents: vec![agent(0, "lead")],
            accepted: vec![words.clone()],
            rows: vec![said("lead", "one")],
            ends: vec![ended("lead", 1, None)],
            events: vec![event(1, "lead", 1, 0, run_started()), queued(2, 0, 0, &words)],
            ..Transaction::default()
        };
        store.submit(Arc::new(whole)).await.unwrap();
        stores.push(store);
    }
    let before = given.archive.journal(&stays.id).await.unwrap().unwrap();
    let size = given.archive.size(&gone.id).await.unwrap();
    assert!(size.entries >= 2 && size.bytes > 100, "{size:?}");
    assert!(given.archive.remove(&gone.id).await.unwrap());
    assert!(!given.archive.remove(&gone.id).await.unwrap(), "there is none any more");
    let given = given.reopened().await;
    assert!(given.archive.journal(&gone.id).await.unwrap().is_none());
    assert!(given.archive.events(&gone.id, None, Rows::After(0), 9).await.unwrap().is_empty());
    assert!(contents(&*given.archive, &gone.id, "lead").await.is_empty());
    assert_eq!(given.archive.size(&gone.id).await.unwrap(), SessionSize::default());
    let id = midturn_core::rules::id::MessageId::new("m");
    assert!(given.archive.receipts(&gone.id, &Sender::User, &id).await.unwrap().is_empty());
    let listed = given.archive.sessions().await.unwrap();
    assert_eq!(listed.iter().map(|listed| &listed.record.id).collect::<Vec<_>>(), [&stays.id]);
    assert_eq!(given.archive.journal(&stays.id).await.unwrap().unwrap(), before);
    // Its id is free, and what it had is not the new one's.
    let store = given.archive.begin(gone.clone()).await.unwrap();
    let (agents, rows_of_it) = (vec![agent(0, "lead")], vec![said("lead", "anew")]);
    let anew = Transaction { agents, rows: rows_of_it, ..Transaction::default() };
    store.submit(Arc::new(anew)).await.unwrap();
    assert_eq!(contents(&*given.archive, &gone.id, "lead").await, ["anew"]);
    // While it is open, its removal fences it off, too.
    assert!(given.archive.remove(&gone.id).await.unwrap());
    let _ = store.submit(rows(vec![said("lead", "late")])).await;
    assert!(contents(&*given.archive, &gone.id, "lead").await.is_empty());
}

pub(crate) async fn sessions_are_listed_the_newest_first(given: Given<'_>) {
    for (n, id) in ["old", "new", "middle"].into_iter().enumerate() {
        let began_at = [1, 3, 2][n];
        let store =
            given.archive.begin(midturn_core::engine::ports::SessionRecord { began_at, ..session(id) });
        let store = store.await.unwrap();
        if id != "new" {
            continue;
        }
        let agents = vec![agent(0, "lead"), agent(1, "running"), agent(2, "shut"), agent(3, "idle")];
        let ends = vec![
            ended("shut", 1, None),
            ended("shut", 2, Some(InterruptReason::Shutdown)),
            ended("lead", 1, Some(InterruptReason::Shutdown)),
        ];
        let told = ["shut", "lead", "running"].into_iter().zip(1..);
        let mut told: Vec<_> = told.map(|(agent, seq)| event(seq, agent, 1, 0, run_started())).collect();
        told.push(event(4, "shut", 2, 0, run_started()));
        told.push(event(5, "lead", 2, 0, run_started()));
        store
            .submit(Arc::new(Transaction { agents, ends, events: told, ..Transaction::default() }))
            .await
            .unwrap();
    }
    let listed = given.archive.sessions().await.unwrap();
    let ids: Vec<&str> = listed.iter().map(|summary| summary.record.id.as_str()).collect();
    assert_eq!(ids, ["new", "middle", "old"]);
    let counted = |n: usize| {
        let of = &listed[n];
        (of.epoch, of.agents, of.running, of.shut_down, of.last_seq, of.last_t)
    };
    assert_eq!(counted(0), (1, 4, 2, 1, 5, Micros(5_000_015)));
    assert_eq!(counted(1), (1, 0, 0, 0, 0, Micros(0)));
}
