//! Faults of what is written: too late, in the wrong order, or not at all.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::archive::KeptMail;
use midturn_core::engine::ports::store::{Commit, Row, Transaction};
use midturn_core::engine::ports::{Store, StoreError};
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, CallId, MessageId};
use midturn_core::rules::mail::{ReceiptState, Sender};
use midturn_core::rules::record::Line;
use parking_lot::Mutex;

use super::Fault;

/// How many transactions wait for others when they are called durable too early.
const BEHIND: usize = 8;

/// The store of a session, with a fault.
pub(super) struct Writes {
    fault: Fault,
    store: Arc<dyn Store>,
    held: Mutex<Held>,
}

/// What is written later than it should be.
#[derive(Default)]
struct Held {
    transactions: VecDeque<Arc<Transaction>>,
    rows: Vec<Row>,
    events: Vec<Event>,
}

impl Writes {
    pub(super) fn new(fault: Fault, store: Arc<dyn Store>) -> Self {
        Self { fault, store, held: Mutex::default() }
    }
}

#[async_trait]
impl Store for Writes {
    fn trouble(&self) -> Option<Arc<str>> {
        self.store.trouble()
    }

    async fn known(&self, from: &Sender, id: &MessageId) -> Result<Vec<KeptMail>, StoreError> {
        self.store.known(from, id).await
    }

    fn submit(&self, transaction: Arc<Transaction>) -> Commit {
        let mut held = self.held.lock();
        if self.fault == Fault::AckBeforeDurable {
            held.transactions.push_back(transaction);
            while held.transactions.len() > BEHIND
                && let Some(first) = held.transactions.pop_front()
            {
                // Who asked was told long ago.
                drop(self.store.submit(first));
            }
            return Commit::Done(Ok::<(), StoreError>(()));
        }
        let mut changed = (*transaction).clone();
        self.change(&mut changed, &mut held);
        self.store.submit(Arc::new(changed))
    }
}

impl Writes {
    fn change(&self, transaction: &mut Transaction, held: &mut Held) {
        match self.fault {
            Fault::DrainBeforeSave => held.delay(transaction, is_mail),
            Fault::ReplyIsLate => held.delay(transaction, |line| matches!(line, Line::Reply(_))),
            Fault::WaitsTakeTooEarly => held.delay(transaction, is_of_a_wait),
            Fault::ToolStartedIsLate => held.delay_starts(transaction),
            Fault::InjectionsAreNotKept => transaction
                .receipts
                .retain(|moved| matches!(moved.state, ReceiptState::Queued | ReceiptState::Returned(_))),
            Fault::MailBesideResultsIsNotKept => {
                transaction.rows.retain(|row| !matches!(row.line, Line::Beside(..)));
            }
            Fault::CompactionsAreNotKept => {
                transaction.rows.retain(|row| !matches!(row.line, Line::Compacted(_)));
            }
            Fault::ReportsAreNotOwed => transaction.ends.iter_mut().for_each(|end| end.owed_to = None),
            // Faults of what is read.
            _ => {}
        }
    }
}

fn is_mail(line: &Line) -> bool {
    matches!(line, Line::Alone(..) | Line::Beside(..))
}

fn is_of_a_wait(line: &Line) -> bool {
    matches!(line, Line::Result(result) if &*result.name == "wait_agents")
}

impl Held {
    /// Holds such rows back until their agent has another one, or its run ends.
    fn delay(&mut self, transaction: &mut Transaction, is_late: impl Fn(&Line) -> bool) {
        let (late, rows): (Vec<Row>, Vec<Row>) =
            std::mem::take(&mut transaction.rows).into_iter().partition(|row| is_late(&row.line));
        let goes_on = |agent: &AgentName| {
            rows.iter().chain(&late).any(|row| row.agent == *agent)
                || transaction.ends.iter().any(|end| end.agent == *agent)
        };
        let (now, later) = std::mem::take(&mut self.rows).into_iter().partition(|row| goes_on(&row.agent));
        transaction.rows = now;
        transaction.rows.extend(rows);
        self.rows = later;
        self.rows.extend(late);
    }

    /// Holds the start of a call back until it has its result.
    fn delay_starts(&mut self, transaction: &mut Transaction) {
        let (late, events): (Vec<Event>, Vec<Event>) = std::mem::take(&mut transaction.events)
            .into_iter()
            .partition(|event| matches!(event.kind, EventKind::ToolStarted { .. }));
        let ended: Vec<&CallId> = events.iter().filter_map(finished).collect();
        let (now, later) = std::mem::take(&mut self.events)
            .into_iter()
            .partition(|event| started(event).is_some_and(|id| ended.contains(&id)));
        transaction.events = now;
        transaction.events.extend(events);
        self.events = later;
        self.events.extend(late);
    }
}

fn started(event: &Event) -> Option<&CallId> {
    match &event.kind {
        EventKind::ToolStarted { tool, .. } => Some(tool),
        _ => None,
    }
}

fn finished(event: &Event) -> Option<&CallId> {
    match &event.kind {
        EventKind::ToolFinished { tool, .. } => Some(tool),
        _ => None,
    }
}
