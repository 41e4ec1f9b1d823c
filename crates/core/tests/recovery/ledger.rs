//! A store in memory that can end like a process: after so many transactions it takes no
//! more. What it took is made into the journal that a session goes on from, straight from the
//! definition of `SessionJournal`, so that it says what every store has to say.

use std::collections::BTreeSet;
use std::sync::Arc;

use midturn_core::engine::ports::archive::{AgentJournal, KeptMail, SessionRecord};
use midturn_core::engine::ports::store::{AgentRecord, RunEnd};
use midturn_core::engine::ports::{Commit, SessionJournal, Store, StoreError, Transaction};
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_core::rules::mail::{ReceiptState, Sender};
use midturn_core::rules::time::Micros;
use parking_lot::Mutex;

#[derive(Default)]
pub(crate) struct Ledger {
    taken: Mutex<Vec<Arc<Transaction>>>,
    room: Mutex<usize>,
}

impl Store for Ledger {
    fn submit(&self, transaction: Arc<Transaction>) -> Commit {
        let mut taken = self.taken.lock();
        if taken.len() >= *self.room.lock() {
            return Commit::Done(Err(StoreError::Failed("the process has ended".to_owned())));
        }
        taken.push(transaction);
        Commit::Done(Ok(()))
    }
}

impl Ledger {
    /// Lets the process live for so many transactions more.
    pub(crate) fn live(&self, transactions: usize) {
        *self.room.lock() = self.taken.lock().len().saturating_add(transactions);
    }

    pub(crate) fn len(&self) -> usize {
        self.taken.lock().len()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.taken.lock().iter().flat_map(|transaction| transaction.events.clone()).collect()
    }

    pub(crate) fn journal(&self) -> SessionJournal {
        let taken = self.taken.lock();
        let events: Vec<&Event> = taken.iter().flat_map(|transaction| &transaction.events).collect();
        let agents = taken.iter().flat_map(|transaction| &transaction.agents);
        SessionJournal {
            record: SessionRecord {
                id: SessionId::new("s1"),
                began_at: 0,
                folder: "/".to_owned(),
                title: String::new(),
                memo: serde_json::Value::Null,
            },
            last_seq: events.last().map_or(0, |event| event.seq),
            last_t: events.last().map_or(Micros(0), |event| event.t),
            agents: agents.map(|record| agent(record, &taken, &events)).collect(),
            mail: mail(&taken),
        }
    }
}

fn agent(record: &AgentRecord, taken: &[Arc<Transaction>], events: &[&Event]) -> AgentJournal {
    let own: Vec<&Event> =
        events.iter().copied().filter(|event| event.at.agent.as_ref() == Some(&record.name)).collect();
    let is_definite =
        |kind: &EventKind| matches!(kind, EventKind::RunStarted { .. } | EventKind::StopRequested { .. });
    let started = own.iter().filter(|event| is_definite(&event.kind));
    let run = started.filter_map(|event| event.at.run).max().unwrap_or(0);
    let calls = own.iter().filter_map(|event| match event.kind {
        EventKind::ModelStarted { call, .. } => Some((call, (event.at.run, event.at.turn))),
        _ => None,
    });
    let turns: BTreeSet<_> = calls.clone().map(|(_, turn)| turn).collect();
    let last_end = last_end(&record.name, taken);
    let is_open = last_end.as_ref().is_none_or(|(end, _)| end.run < run) && run > 0;
    let plan = own.iter().rev().find_map(|event| match &event.kind {
        EventKind::PlanUpdated { steps } => Some(steps.clone()),
        _ => None,
    });
    AgentJournal {
        record: record.clone(),
        rows: taken
            .iter()
            .flat_map(|transaction| &transaction.rows)
            .filter(|row| row.agent == record.name)
            .cloned()
            .collect(),
        run,
        last_end,
        closed: own.iter().any(|event| matches!(event.kind, EventKind::AgentClosed {})),
        turns: turns.len() as u64,
        calls: calls.map(|(call, _)| call).max().unwrap_or(0),
        plan: plan.unwrap_or_default(),
        tail: if is_open { tail(&own, run) } else { Vec::new() },
    }
}

/// The events of the run's last turn, and what stopped the run.
fn tail(own: &[&Event], run: u64) -> Vec<Event> {
    let of_run = || own.iter().filter(|event| event.at.run == Some(run));
    let turn = of_run().filter_map(|event| event.at.turn).max();
    let wanted =
        |event: &&&Event| event.at.turn == turn || matches!(event.kind, EventKind::StopRequested { .. });
    of_run().filter(wanted).map(|event| (*event).clone()).collect()
}

fn last_end(name: &AgentName, taken: &[Arc<Transaction>]) -> Option<(RunEnd, u64)> {
    let ends = taken.iter().rev().flat_map(|transaction| {
        let seq = transaction.events.last().map_or(0, |event| event.seq);
        transaction.ends.iter().map(move |end| (end.clone(), seq))
    });
    ends.into_iter().find(|(end, _)| end.agent == *name)
}

fn mail(taken: &[Arc<Transaction>]) -> Vec<KeptMail> {
    let mut kept: Vec<KeptMail> = Vec::new();
    for transaction in taken {
        let queued = transaction.events.iter().filter(|e| matches!(e.kind, EventKind::MessageQueued { .. }));
        for (accepted, event) in transaction.accepted.iter().zip(queued) {
            let (accepted, state) = (accepted.clone(), ReceiptState::Queued);
            kept.push(KeptMail { accepted, seq: event.seq, state });
        }
        for step in &transaction.receipts {
            let is_it = |from: &Sender, kept: &KeptMail| {
                let mail = &kept.accepted.mail;
                mail.from == *from && mail.id == step.id && mail.to == step.to
            };
            for kept in kept.iter_mut().filter(|kept| is_it(&step.from, kept)) {
                assert!(step.state.rank() > kept.state.rank(), "a receipt goes back: {kept:?} {step:?}");
                kept.state = step.state.clone();
            }
        }
    }
    kept
}
