//! The journal: every change of a session goes through here, is made durable as a whole by
//! the [`Store`], moves its receipts, and is only then told to the observers.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ports::store::{Accepted, AgentRecord, Commit, IN_FLIGHT, ReceiptMove, Row, RunEnd};
use super::ports::{Clock, Observer, Store, StoreError, Transaction};
use super::receipts::Receipts;
use crate::fail;
use crate::rules::conversation::MessageKey;
use crate::rules::event::{Event, EventKind, LiveEvent, LiveKind, Place, VERSION};
use crate::rules::id::{AgentName, RunId, TurnId};
use crate::rules::mail::{Mail, ReceiptState, ReturnReason};
use crate::rules::record::Line;
use crate::rules::time::Micros;

/// What is to be recorded together. Numbers and times are given when it is recorded.
#[derive(Default)]
pub(crate) struct Draft {
    /// What is recorded, but for its events.
    made: Transaction,
    events: Vec<(Place, EventKind)>,
    then: Option<Then>,
}

/// What happens when a draft is told, in the order in which drafts are.
type Then = Box<dyn FnOnce() + Send>;

impl Draft {
    /// A draft with one event.
    pub(crate) fn event(place: Place, kind: EventKind) -> Self {
        Self { events: vec![(place, kind)], ..Self::default() }
    }

    /// Adds an event.
    pub(crate) fn tell(&mut self, place: Place, kind: EventKind) {
        self.events.push((place, kind));
    }

    /// Adds an agent.
    pub(crate) fn agent(&mut self, record: AgentRecord) {
        self.made.agents.push(record);
    }

    /// Adds a line to an agent's conversation.
    pub(crate) fn line(&mut self, agent: &AgentName, run: RunId, turn: TurnId, line: Line) {
        self.made.rows.push(Row { agent: agent.clone(), run, turn, line });
    }

    /// Ends a run.
    pub(crate) fn ends(&mut self, end: RunEnd) {
        self.made.ends.push(end);
    }

    /// Asks for an agent's next run.
    pub(crate) fn resumes(&mut self, agent: &AgentName, run: RunId) {
        self.made.resumes.push((agent.clone(), run));
    }

    /// Moves the receipt of a message.
    pub(crate) fn moves(&mut self, mail: &Mail, state: ReceiptState) {
        let (from, id, to) = (mail.from.clone(), mail.id.clone(), mail.to.clone());
        self.made.receipts.push(ReceiptMove { from, id, to, state });
    }

    /// Accepts a message and tells of it.
    pub(crate) fn accepts(&mut self, accepted: Accepted, place: Place) {
        let mail = accepted.mail.clone();
        self.made.accepted.push(accepted);
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

    /// Has something happen, in place of what was to happen before, as soon as the draft is durable and
    /// before it is told: mail arrives in the order of its events, and a request can be answered when a
    /// crash no longer takes it back. It must be quick.
    pub(crate) fn then(&mut self, happens: impl FnOnce() + Send + 'static) {
        self.then = Some(Box::new(happens));
    }

    /// Whether there is nothing to record.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.made.is_empty()
    }
}

/// The one way in which anything is recorded.
///
/// Transactions are numbered and submitted in one order, become durable in that order, and
/// are told in that order; while one is on its way the next ones are already submitted, so
/// that a store can make many of them durable at once.
pub(crate) struct Journal {
    clock: Arc<dyn Clock>,
    store: Arc<dyn Store>,
    observers: Vec<Watched>,
    pub(crate) receipts: Receipts,
    /// A store has room for so many transactions of a session at once.
    room: Semaphore,
    /// So many more may be put off. Room of its own: if what is put off stood in the way of what
    /// it waits for, neither would ever be durable.
    late: Arc<Semaphore>,
    queue: Mutex<Queue>,
    /// Held while what is durable is told, so that it is told in order.
    telling: Mutex<()>,
    /// The number of the last event that was told.
    seq: AtomicU64,
    live: AtomicU64,
    /// The store's first error: from then on nothing is accepted and no request leaves.
    broken: OnceLock<StoreError>,
}

/// What was submitted and is not told yet, in order.
struct Queue {
    next_seq: u64,
    tickets: u64,
    waiting: VecDeque<Submitted>,
}

/// A transaction that was submitted: what becomes of it.
struct Submission {
    ticket: u64,
    commit: Commit,
}

/// What was submitted and nobody waits for yet, in order. Who has some waits for nothing but the
/// store before it is durable: it would be told too late.
#[derive(Default)]
pub(crate) struct PutOff(Vec<Late>);

struct Late {
    submitted: Submission,
    _place: OwnedSemaphorePermit,
}

impl PutOff {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A transaction on its way.
struct Submitted {
    ticket: u64,
    transaction: Arc<Transaction>,
    then: Option<Then>,
}

impl Journal {
    /// A journal that goes on after the event of this number; 0 is a new one.
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        store: Arc<dyn Store>,
        observers: Vec<Arc<dyn Observer>>,
        last_seq: u64,
    ) -> Self {
        Self {
            clock,
            store,
            observers: observers.into_iter().map(Watched::new).collect(),
            receipts: Receipts::default(),
            room: Semaphore::new(IN_FLIGHT),
            late: Arc::new(Semaphore::new(IN_FLIGHT)),
            queue: Mutex::new(Queue { next_seq: last_seq + 1, tickets: 0, waiting: VecDeque::new() }),
            telling: Mutex::default(),
            seq: AtomicU64::new(last_seq),
            live: AtomicU64::new(0),
            broken: OnceLock::new(),
        }
    }

    /// Why nothing is accepted just now: the store is being waited for.
    pub(crate) fn trouble(&self) -> Option<Arc<str>> {
        self.store.trouble()
    }

    /// The store's first error: nothing more is recorded under this epoch.
    pub(crate) fn broken(&self) -> Option<&StoreError> {
        self.broken.get()
    }

    /// Has the receipts know again what they may have forgotten of a message.
    pub(crate) async fn recall(&self, key: &MessageKey) -> Result<(), StoreError> {
        if !self.receipts.may_have_forgotten(key) {
            return Ok(());
        }
        if let Some(trouble) = self.trouble() {
            return Err(StoreError::Failed(trouble.to_string()));
        }
        for kept in self.store.known(&key.from, &key.id).await? {
            self.receipts.restore(&kept.accepted, kept.state);
        }
        Ok(())
    }

    /// Makes the draft durable, then moves the receipts, then tells. After an error nothing
    /// of it happened. If who records goes away meanwhile, it is told with what follows.
    pub(crate) async fn record(&self, draft: Draft) -> Result<(), StoreError> {
        self.record_after(&mut PutOff::default(), draft, || true).await.map(drop)
    }

    /// The same, together with what was put off before it: all of it is durable when this returns. But
    /// only if the draft is still `wanted` when its turn has come. `false`: it was not, and what was put
    /// off stays so.
    pub(crate) async fn record_after(
        &self,
        before: &mut PutOff,
        draft: Draft,
        wanted: impl Fn() -> bool,
    ) -> Result<bool, StoreError> {
        if draft.is_empty() {
            self.sync(before).await?;
            return Ok(wanted());
        }
        let closed = |_| StoreError::Failed("the session has ended".to_owned());
        let _room = self.room.acquire().await.map_err(closed)?;
        let Some(submitted) = self.submit(draft, wanted)? else { return Ok(false) };
        // Only now: who waits for what was put off before this is there has it written alone, and each
        // step of a turn is a sync of its own.
        self.sync(before).await?;
        self.decided(submitted).await?;
        Ok(true)
    }

    /// Records a draft that nobody waits for yet: it has its place in the order from now on, and
    /// becomes durable, and is told, with what follows. Where a transaction costs nothing that is at once.
    pub(crate) async fn put_off(&self, draft: Draft, before: &mut PutOff) -> Result<(), StoreError> {
        let Ok(place) = self.late.clone().try_acquire_owned() else {
            // So many are put off that this one waits like any other.
            return self.record_after(before, draft, || true).await.map(drop);
        };
        if draft.is_empty() {
            return Ok(());
        }
        let Some(submitted) = self.submit(draft, || true)? else { return Ok(()) };
        match &submitted.commit {
            Commit::Done(_) => self.decided(submitted).await,
            Commit::Waits(_) | Commit::Unhurried(_) => {
                before.0.push(Late { submitted, _place: place });
                Ok(())
            }
        }
    }

    /// Waits until all that was put off is durable.
    pub(crate) async fn sync(&self, before: &mut PutOff) -> Result<(), StoreError> {
        for late in before.0.drain(..) {
            self.decided(late.submitted).await?;
        }
        Ok(())
    }

    /// Waits for what becomes of a transaction, and tells it.
    async fn decided(&self, submitted: Submission) -> Result<(), StoreError> {
        let Submission { ticket, commit } = submitted;
        let began = self.clock.now();
        if let Err(error) = commit.await {
            self.broken.get_or_init(|| error.clone());
            self.give_up(ticket);
            return Err(error);
        }
        // Only now: what was told could be lost, and whoever was told has acted on it.
        fail::point("durable");
        self.tell(ticket);
        fail::point("told");
        let took = self.clock.now().since(began);
        self.tell_all(|observer| observer.stored(took));
        Ok(())
    }

    /// `None`: it is not wanted any more. Asked under the lock, so that what is submitted later
    /// is wanted, or not, by what was submitted before.
    fn submit(&self, mut draft: Draft, wanted: impl Fn() -> bool) -> Result<Option<Submission>, StoreError> {
        let mut queue = self.queue.lock();
        if let Some(error) = self.broken.get() {
            return Err(error.clone());
        }
        if !wanted() {
            return Ok(None);
        }
        let then = draft.then.take();
        let transaction = Arc::new(queue.number(draft, self.clock.now()));
        queue.tickets += 1;
        let ticket = queue.tickets;
        queue.waiting.push_back(Submitted { ticket, transaction: transaction.clone(), then });
        let commit = self.store.submit(transaction);
        drop(queue);
        fail::point("submitted");
        Ok(Some(Submission { ticket, commit }))
    }

    /// Nothing from this ticket on counts, nor happens; what was before it may still be told.
    fn give_up(&self, ticket: u64) {
        let given_up: Vec<Submitted> = {
            let mut queue = self.queue.lock();
            let first = queue.waiting.partition_point(|submitted| submitted.ticket < ticket);
            queue.waiting.drain(first..).collect()
        };
        // What they hold (room in mailboxes, say) goes without the lock.
        drop(given_up);
    }

    /// Tells everything up to this ticket that is not told yet: it is durable, because
    /// transactions become durable in order.
    fn tell(&self, ticket: u64) {
        let _telling = self.telling.lock();
        while let Some(Submitted { transaction, then, .. }) = self.next_until(ticket) {
            self.seq.fetch_add(transaction.events.len() as u64, Ordering::Release);
            // Before the events: who reads that a message is there asks for its receipt.
            self.receipts.accepted(&transaction.accepted);
            self.receipts.apply(&transaction.receipts);
            // And this: who is told of a request may answer it at once.
            if let Some(happens) = then {
                happens();
            }
            for event in &transaction.events {
                self.tell_all(|observer| observer.event(event));
            }
        }
    }

    fn next_until(&self, ticket: u64) -> Option<Submitted> {
        let mut queue = self.queue.lock();
        let is_due = queue.waiting.front()?.ticket <= ticket;
        if is_due { queue.waiting.pop_front() } else { None }
    }

    /// Tells that something came too late and was dropped.
    pub(crate) fn stale(&self) {
        self.tell_all(|observer| observer.stale());
    }

    fn tell_all(&self, tell: impl Fn(&dyn Observer)) {
        self.observers.iter().for_each(|watched| watched.told(&tell));
    }

    /// Tells what is not recorded piece by piece.
    pub(crate) fn live(&self, at: Place, kind: LiveKind) {
        if self.observers.is_empty() {
            return;
        }
        let event = LiveEvent {
            v: VERSION,
            seq: self.seq.load(Ordering::Acquire),
            n: self.live.fetch_add(1, Ordering::Relaxed) + 1,
            t: self.clock.now(),
            at,
            kind,
        };
        self.tell_all(|observer| observer.live(&event));
    }
}

/// An observer, until it panics: what is recorded goes on being told to the others.
struct Watched {
    observer: Arc<dyn Observer>,
    has_panicked: AtomicBool,
}

impl Watched {
    fn new(observer: Arc<dyn Observer>) -> Self {
        Self { observer, has_panicked: AtomicBool::new(false) }
    }

    fn told(&self, tell: impl Fn(&dyn Observer)) {
        if self.has_panicked.load(Ordering::Relaxed) {
            return;
        }
        let told = std::panic::catch_unwind(AssertUnwindSafe(|| tell(&*self.observer)));
        if told.is_err() {
            self.has_panicked.store(true, Ordering::Relaxed);
            tracing::error!("an observer panicked and is told nothing any more");
        }
    }
}

impl Queue {
    fn number(&mut self, draft: Draft, t: Micros) -> Transaction {
        let first = self.next_seq;
        self.next_seq += draft.events.len() as u64;
        let numbered = |(seq, (at, kind))| Event { v: VERSION, seq, t, at, kind };
        Transaction { events: (first..).zip(draft.events).map(numbered).collect(), ..draft.made }
    }
}
