//! The `Store` port: one call makes a whole step of one session durable, or none of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::oneshot;

use super::archive::KeptMail;
use super::tool::Changes;
use crate::rules::conversation::InterruptReason;
use crate::rules::event::{Event, EventKind, Outcome};
use crate::rules::id::{AgentName, MessageId, RunId, TurnId};
use crate::rules::limits::named_in;
use crate::rules::mail::{Mail, ReceiptState, Role, Sender, Urgency};
use crate::rules::record::Line;
use crate::rules::settings::Settings;

/// What belongs together: agents made, mail taken, rows written, receipts moved, runs ended,
/// events told. A store applies all of it or nothing.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    /// Agents that come into the session.
    pub agents: Vec<AgentRecord>,
    /// Mail that is accepted into mailboxes, in the order of the events that tell of it.
    pub accepted: Vec<Accepted>,
    /// Receipts that move; a message injected or returned leaves its mailbox by this.
    pub receipts: Vec<ReceiptMove>,
    /// Lines that are appended to an agent's conversation.
    pub rows: Vec<Row>,
    /// Runs that end, in the order of the events that tell of it.
    pub ends: Vec<RunEnd>,
    /// Agents that were resumed, each with the run that this asks for.
    pub resumes: Vec<(AgentName, RunId)>,
    /// The events that tell of it, in order.
    pub events: Vec<Event>,
}

impl Transaction {
    /// The messages that it accepts, each with the number of the event that tells of it: they are in
    /// the order of these events. What no event tells of has the number of the last one.
    pub fn accepted(&self) -> impl Iterator<Item = (&Accepted, u64)> {
        self.accepted.iter().zip(self.told(|kind| matches!(kind, EventKind::MessageQueued { .. })))
    }

    /// The runs that it ends, each with the number of the event that tells of it, likewise.
    pub fn ends(&self) -> impl Iterator<Item = (&RunEnd, u64)> {
        self.ends.iter().zip(self.told(|kind| matches!(kind, EventKind::RunFinished { .. })))
    }

    fn told(&self, wanted: fn(&EventKind) -> bool) -> impl Iterator<Item = u64> {
        let last = self.events.last().map(|event| event.seq).unwrap_or_default();
        let told = self.events.iter().filter(move |event| wanted(&event.kind)).map(|event| event.seq);
        told.chain(std::iter::repeat(last))
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { agents, accepted, receipts, rows, ends, resumes, events } = self;
        let is_empty = agents.is_empty() && accepted.is_empty() && receipts.is_empty() && rows.is_empty();
        is_empty && ends.is_empty() && resumes.is_empty() && events.is_empty()
    }
}

/// An agent, as it was made.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRecord {
    /// Its place in the session's order, from 0.
    pub index: u32,
    /// Its name.
    pub name: AgentName,
    /// Lead or subagent.
    pub role: Role,
    /// Its parent.
    pub parent: Option<AgentName>,
    /// What starts its first run.
    pub prompt: Option<Arc<str>>,
    /// The model by name; without one the agent is a name only.
    pub model: Option<Arc<str>>,
    /// The system prompt.
    pub system: Arc<str>,
    /// Its settings.
    pub settings: Arc<Settings>,
    /// What whoever made it wants to find again ([`crate::engine::AgentSpec::memo`]).
    pub memo: Value,
}

/// A message that is accepted, and what its sender asked for: the same id must ask for the
/// same (semantics.md, section 8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The message.
    pub mail: Arc<Mail>,
    /// The address as it was given: a name, `parent` or `all`.
    pub address: Arc<str>,
    /// The urgency as it was given.
    pub urgency: Option<Urgency>,
}

/// A receipt that moves forward.
#[derive(Clone, Debug)]
pub struct ReceiptMove {
    /// Who sent the message.
    pub from: Sender,
    /// Its id.
    pub id: MessageId,
    /// Who it is for: a message to all has a receipt for each.
    pub to: AgentName,
    /// Where it stands now.
    pub state: ReceiptState,
}

/// A row of a conversation. A store numbers them per agent: 1, 2, 3 …
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Whose conversation.
    pub agent: AgentName,
    /// In which run.
    pub run: RunId,
    /// In which turn of it.
    pub turn: TurnId,
    /// What was said.
    pub line: Line,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// Whose.
    pub agent: AgentName,
    /// Which.
    pub run: RunId,
    /// How it ended.
    pub outcome: Outcome,
    /// What stopped it, if it was stopped.
    pub reason: Option<InterruptReason>,
    /// What was or will be told of it: the answer, the error, or the report.
    pub text: Arc<str>,
    /// What the run changed.
    pub changes: Changes,
    /// Whether the agent's next run starts at once: what asked for it is queued.
    pub restarts: bool,
    /// Whom the coordinator has still to tell of it, by mail of its own: the message
    /// `AGENT#RUN`. After a crash it is sent if it is not there.
    pub owed_to: Option<AgentName>,
}

impl RunEnd {
    /// The limit that ended it, if one did.
    pub(crate) fn limit(&self) -> Option<&'static str> {
        named_in(&self.text).filter(|_| self.outcome == Outcome::Limit)
    }
}

/// Why a store took nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It can't write or read; the text says what to do about it.
    #[error("the store failed: {0}")]
    Failed(String),
    /// Another process has taken the session over since (its epoch is higher): what this one
    /// would write is stale and changes nothing.
    #[error("the session was taken over by another process; this one's writes are refused")]
    Stale,
}

/// What becomes of a transaction that was submitted. Dropping it does not take the
/// transaction back.
#[must_use = "a transaction counts only once it is durable"]
#[derive(Debug)]
pub enum Commit {
    /// It is decided.
    Done(Result<(), StoreError>),
    /// The store tells when it is.
    Waits(oneshot::Receiver<Result<(), StoreError>>),
    /// The store tells, and is in no hurry before somebody waits.
    Unhurried(Unhurried),
}

/// A transaction that becomes durable with the next one that somebody waits for, by which both cost
/// one sync of the disk. To wait for it hurries, and so does to give it up: nothing is left undone
/// because nobody asks.
#[derive(Debug)]
pub struct Unhurried {
    told: oneshot::Receiver<Result<(), StoreError>>,
    /// None once somebody has waited.
    hurry: Option<Arc<dyn Hurry>>,
}

/// Who makes durable what was submitted.
pub trait Hurry: std::fmt::Debug + Send + Sync {
    /// Somebody waits for what was submitted up to now.
    fn hurry(&self);
}

impl Unhurried {
    /// What is `told` by whoever can be hurried.
    pub fn new(told: oneshot::Receiver<Result<(), StoreError>>, hurry: Arc<dyn Hurry>) -> Self {
        Self { told, hurry: Some(hurry) }
    }

    fn hurries(&mut self) {
        if let Some(hurry) = self.hurry.take() {
            hurry.hurry();
        }
    }
}

impl Drop for Unhurried {
    fn drop(&mut self) {
        self.hurries();
    }
}

impl Future for Commit {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Done(result) => Poll::Ready(result.clone()),
            Self::Waits(told) => Pin::new(told).poll(context).map(or_ended),
            Self::Unhurried(commit) => {
                let polled = Pin::new(&mut commit.told).poll(context);
                match polled {
                    // It is decided: nobody is to hurry for what came after it.
                    Poll::Ready(_) => drop(commit.hurry.take()),
                    Poll::Pending => commit.hurries(),
                }
                polled.map(or_ended)
            }
        }
    }
}

fn or_ended(told: Result<Result<(), StoreError>, oneshot::error::RecvError>) -> Result<(), StoreError> {
    told.unwrap_or_else(|_| Err(StoreError::Failed("its writer has ended".to_owned())))
}

/// How many transactions of one session may be on their way at once: a store has room for
/// so many of each.
pub const IN_FLIGHT: usize = 256;

/// Keeps what must not be lost of one session.
#[async_trait]
pub trait Store: Send + Sync {
    /// Queues the transaction, in the order of the calls, and returns at once; it is durable,
    /// as a whole, when the commit says so. After an error nothing of it counts, nor of any
    /// that was submitted after it.
    ///
    /// A store that fails may be waited for, with a bound: meanwhile the commit waits, and so do
    /// those behind it. A store to which a commit costs a sync gives [`Commit::Unhurried`].
    fn submit(&self, transaction: Arc<Transaction>) -> Commit;

    /// Why nothing becomes durable just now, while the store is waited for: no message is accepted
    /// meanwhile (semantics.md, section 7). Asked before every send, so it has to be cheap. The
    /// text says what people can do about it.
    fn trouble(&self) -> Option<Arc<str>> {
        None
    }

    /// What was accepted under this id of this sender, one for each receiver. Asked when the
    /// coordinator itself may have forgotten it: it remembers the newest
    /// [`REMEMBERED`](super::archive::REMEMBERED) settled messages. A store that keeps nothing knows nothing.
    async fn known(&self, from: &Sender, id: &MessageId) -> Result<Vec<KeptMail>, StoreError> {
        let _ = (from, id);
        Ok(Vec::new())
    }
}

/// The store that forgets at the end of the process: the state that lives is the
/// coordinator's own, so there is nothing for it to keep.
#[derive(Debug, Default)]
pub struct MemoryStore;

impl Store for MemoryStore {
    fn submit(&self, _: Arc<Transaction>) -> Commit {
        Commit::Done(Ok(()))
    }
}
