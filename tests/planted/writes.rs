//! Faults of what is written: too late, in the wrong order, or not at all.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::archive::KeptMail;
use midturn_core::engine::ports::store::{Commit, Row, Transaction};
use midturn_core::engine::ports::{Store, StoreError};
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{CallId, MessageId};
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
    delayed: Mutex<Delayed>,
}

/// What is written later than it should be.
#[derive(Default)]
struct Delayed {
    transactions: VecDeque<Arc<Transaction>>,
    rows: Vec<Row>,
    events: Vec<Event>,
}

impl Writes {
    pub(super) fn new(fault: Fault, store: Arc<dyn Store>) -> Self {
        Self { fault, store, delayed: Mutex::default() }
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
        let mut delayed = self.delayed.lock();
        if self.fault == Fault::AckBeforeDurable {
            delayed.transactions.push_back(transaction);
            while delayed.transactions.len() > BEHIND
                && let Some(first) = delayed.transactions.pop_front()
            {
                // Who asked was told long ago.
                drop(self.store.submit(first));
            }
            return Commit::Done(Ok::<(), StoreError>(()));
        }
        let mut changed = (*transaction).clone();
        self.change(&mut changed, &mut delayed);
        self.store.submit(Arc::new(changed))
    }
}

impl Writes {
    fn change(&self, transaction: &mut Transaction, delayed: &mut Delayed) {
        match self.fault {
            Fault::DrainBeforeSave => delayed.delay(transaction, is_mail),
            Fault::ReplyIsLate => delayed.delay(transaction, |line| matches!(line, Line::Reply(_))),
            Fault::WaitsTakeTooEarly => delayed.delay(transaction, is_of_a_wait),
            Fault::ToolStartedIsLate => delayed.delay_starts(transaction),
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

impl Delayed {
    /// Holds such rows back until their agent has another one, or its run ends.
    fn delay(&mut self, transaction: &mut Transaction, is_late: impl Fn(&Line) -> bool) {
        let Transaction { rows, ends, .. } = transaction;
        let goes_on = |held: &Row, rest: &[Row], late: &[Row]| {
            rest.iter().chain(late).any(|row| row.agent == held.agent)
                || ends.iter().any(|end| end.agent == held.agent)
        };
        delay(rows, &mut self.rows, |row| is_late(&row.line), goes_on);
    }

    /// Holds the start of a call back until it has its result.
    fn delay_starts(&mut self, transaction: &mut Transaction) {
        let has_ended = |held: &Event, rest: &[Event], _: &[Event]| {
            rest.iter().filter_map(finished).any(|ended| started(held) == Some(ended))
        };
        delay(&mut transaction.events, &mut self.events, |event| started(event).is_some(), has_ended);
    }
}

/// Holds back what is late, and lets go before the rest what was held and is due: given what comes
/// now and what is held back of it.
fn delay<T: Clone>(
    coming: &mut Vec<T>,
    held: &mut Vec<T>,
    is_late: impl Fn(&T) -> bool,
    is_due: impl Fn(&T, &[T], &[T]) -> bool,
) {
    let (late, rest): (Vec<T>, Vec<T>) = std::mem::take(coming).into_iter().partition(is_late);
    let (due, later): (Vec<T>, Vec<T>) =
        std::mem::take(held).into_iter().partition(|one| is_due(one, &rest, &late));
    *coming = [due, rest].concat();
    *held = [later, late].concat();
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
