//! The journal: every change of a session goes through here, is made durable as a whole by
//! the [`Store`], moves its receipts, and is only then told to the observers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Mutex;

use super::ports::store::{ReceiptMove, Row};
use super::ports::{Clock, Observer, Store, StoreError, Transaction};
use super::receipts::Receipts;
use crate::rules::conversation::Entry;
use crate::rules::event::{Event, EventKind, LiveEvent, LiveKind, Place, VERSION};
use crate::rules::id::{AgentName, RunId};
use crate::rules::mail::{Mail, ReceiptState, ReturnReason};

/// What is to be recorded together. Numbers and times are given when it is recorded.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    accepted: Vec<Arc<Mail>>,
    receipts: Vec<ReceiptMove>,
    rows: Vec<Row>,
    events: Vec<(Place, EventKind)>,
}

impl Draft {
    /// A draft with one event.
    pub(crate) fn event(place: Place, kind: EventKind) -> Self {
        Self { events: vec![(place, kind)], ..Self::default() }
    }

    /// Adds an event.
    pub(crate) fn tell(&mut self, place: Place, kind: EventKind) {
        self.events.push((place, kind));
    }

    /// Adds a row to an agent's conversation.
    pub(crate) fn row(&mut self, agent: &AgentName, run: RunId, entry: Arc<Entry>) {
        self.rows.push(Row { agent: agent.clone(), run, entry });
    }

    /// Moves the receipt of a message.
    pub(crate) fn moves(&mut self, mail: &Mail, state: ReceiptState) {
        let (from, id, to) = (mail.from.clone(), mail.id.clone(), mail.to.clone());
        self.receipts.push(ReceiptMove { from, id, to, state });
    }

    /// Accepts a message and tells of it.
    pub(crate) fn accepts(&mut self, mail: &Arc<Mail>, place: Place) {
        self.accepted.push(mail.clone());
        let kind = EventKind::MessageQueued {
            message: mail.id.clone(),
            from: mail.from.to_string(),
            urgency: mail.urgency,
            text: mail.text.clone(),
        };
        self.tell(place, kind);
    }

    /// Returns messages and tells of it.
    pub(crate) fn returns(&mut self, mail: &[Arc<Mail>], reason: ReturnReason, place: &Place) {
        for mail in mail {
            self.moves(mail, ReceiptState::Returned(reason));
            let kind = EventKind::MessageReturned { message: mail.id.clone(), reason };
            self.tell(place.clone(), kind);
        }
    }

    /// Whether there is nothing to record.
    pub(crate) fn is_empty(&self) -> bool {
        self.accepted.is_empty() && self.receipts.is_empty() && self.rows.is_empty() && self.events.is_empty()
    }
}

/// The one way in which anything is recorded.
pub(crate) struct Journal {
    clock: Arc<dyn Clock>,
    store: Arc<dyn Store>,
    observers: Vec<Arc<dyn Observer>>,
    pub(crate) receipts: Receipts,
    order: Mutex<()>,
    seq: AtomicU64,
    live: AtomicU64,
    /// The store's first error: from then on nothing is accepted and no request leaves.
    broken: OnceLock<StoreError>,
}

impl Journal {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        store: Arc<dyn Store>,
        observers: Vec<Arc<dyn Observer>>,
    ) -> Self {
        let receipts = Receipts::default();
        Self {
            clock,
            store,
            observers,
            receipts,
            order: Mutex::new(()),
            seq: AtomicU64::new(0),
            live: AtomicU64::new(0),
            broken: OnceLock::new(),
        }
    }

    /// Makes the draft durable, then moves the receipts, then tells. After an error nothing
    /// of it happened.
    pub(crate) async fn record(&self, draft: Draft) -> Result<(), StoreError> {
        if draft.is_empty() {
            return Ok(());
        }
        let _order = self.order.lock().await;
        let transaction = self.number(draft);
        self.commit(&transaction).await?;
        self.seq.fetch_add(transaction.events.len() as u64, Ordering::Relaxed);
        self.receipts.apply(&transaction.receipts);
        for event in &transaction.events {
            for observer in &self.observers {
                observer.event(event);
            }
        }
        Ok(())
    }

    async fn commit(&self, transaction: &Transaction) -> Result<(), StoreError> {
        if let Some(error) = self.broken.get() {
            return Err(error.clone());
        }
        let committed = self.store.commit(transaction).await;
        if let Err(error) = &committed {
            self.broken.get_or_init(|| error.clone());
        }
        committed
    }

    fn number(&self, draft: Draft) -> Transaction {
        let t = self.clock.now();
        let first = self.seq.load(Ordering::Relaxed) + 1;
        let numbered = |(seq, (at, kind))| Event { v: VERSION, seq, t, at, kind };
        Transaction {
            accepted: draft.accepted,
            receipts: draft.receipts,
            rows: draft.rows,
            events: (first..).zip(draft.events).map(numbered).collect(),
        }
    }

    /// Tells what is not recorded piece by piece.
    pub(crate) fn live(&self, at: Place, kind: LiveKind) {
        if self.observers.is_empty() {
            return;
        }
        let event = LiveEvent {
            v: VERSION,
            seq: self.seq.load(Ordering::Relaxed),
            n: self.live.fetch_add(1, Ordering::Relaxed) + 1,
            t: self.clock.now(),
            at,
            kind,
        };
        for observer in &self.observers {
            observer.live(&event);
        }
    }
}
