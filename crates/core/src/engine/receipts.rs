//! Receipts: where each message stands, for whoever sent it (semantics.md, section 8).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::ports::archive::REMEMBERED;
use super::ports::store::{Accepted, ReceiptMove};
use crate::rules::conversation::MessageKey;
use crate::rules::id::{AgentName, MessageId};
use crate::rules::mail::{ReceiptState, Refusal, Sender, Urgency};

/// What a sender holds of a message it sent.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// The message.
    pub id: MessageId,
    /// The receiver.
    pub to: AgentName,
    state: watch::Receiver<ReceiptState>,
}

impl Receipt {
    /// The receipt of a message of a session that goes on nowhere: it stands where it was left.
    pub fn left_at(state: ReceiptState, id: MessageId, to: AgentName) -> Self {
        Self { id, to, state: watch::channel(state).1 }
    }

    /// Where the message stands.
    pub fn state(&self) -> ReceiptState {
        self.state.borrow().clone()
    }

    /// Waits until the message has come as far as `wanted` says or can't get there any more.
    pub async fn reached(&mut self, wanted: impl Fn(&ReceiptState) -> bool) -> ReceiptState {
        let done = |state: &ReceiptState| wanted(state) || state.is_final();
        // An error means that the session is gone: what it said last holds.
        let reached = self.state.wait_for(done).await.map(|state| state.clone());
        reached.unwrap_or_else(|_| self.state())
    }
}

/// What a send asked for: the same id must ask for the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) to: Arc<str>,
    pub(crate) text: Arc<str>,
    pub(crate) urgency: Option<Urgency>,
}

impl Asked {
    /// What an accepted message asked for.
    pub(crate) fn of(accepted: &Accepted) -> Self {
        Self { to: accepted.address.clone(), text: accepted.mail.text.clone(), urgency: accepted.urgency }
    }
}

#[derive(Debug)]
struct Sent {
    asked: Asked,
    receivers: Vec<Receiver>,
}

/// What is known of a message at one receiver.
#[derive(Debug)]
struct Receiver {
    name: AgentName,
    state: watch::Sender<ReceiptState>,
    /// While it is not durable that the message is accepted. Until then nobody is told of it.
    accepting: Option<watch::Sender<()>>,
}

/// An id that was claimed for a receiver.
#[derive(Debug)]
pub(crate) enum Claim {
    /// It is new: whoever claimed it has the message accepted, or forgets it ([`Receipts::forget`]).
    New(Receipt),
    /// The same message is accepted already.
    Earlier(Receipt),
}

/// All receipts of a session.
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    sent: HashMap<MessageKey, Sent>,
    /// Those that can't change any more, at most [`REMEMBERED`], the oldest forgotten first.
    settled: VecDeque<MessageKey>,
    /// There may be more than are remembered.
    forgets: bool,
    counter: u64,
}

impl Receipts {
    /// An id for a message that came without one: a counter.
    pub(crate) fn next_id(&self) -> MessageId {
        let mut inner = self.inner.lock();
        inner.counter += 1;
        MessageId::new(format!("auto-{}", inner.counter))
    }

    /// Claims an id for a receiver. Of two who send the same at once one has the claim, and the
    /// other waits until it is decided whether that one is accepted: a receipt never claims more
    /// than is durable. The same id for something else is refused.
    pub(crate) async fn claim(
        &self,
        key: &MessageKey,
        to: &AgentName,
        asked: &Asked,
    ) -> Result<Claim, Refusal> {
        loop {
            let mut accepting = {
                let mut inner = self.inner.lock();
                match inner.known(key, to, asked)? {
                    None => return Ok(Claim::New(inner.open(key, to, asked.clone()))),
                    Some(Receiver { accepting: Some(accepting), .. }) => accepting.subscribe(),
                    Some(receiver) => return Ok(Claim::Earlier(receiver.receipt(&key.id))),
                }
            };
            // It never changes, it only goes: that is the news.
            while accepting.changed().await.is_ok() {}
        }
    }

    /// A receipt for a message of the coordinator's own that is about to be accepted.
    pub(crate) fn open(&self, key: &MessageKey, to: &AgentName, asked: Asked) -> Receipt {
        self.inner.lock().open(key, to, asked)
    }

    /// It is durable that these messages are accepted.
    pub(crate) fn accepted(&self, accepted: &[Accepted]) {
        let mut inner = self.inner.lock();
        for Accepted { mail, .. } in accepted {
            let Some(sent) = inner.sent.get_mut(&mail.key()) else { continue };
            for receiver in sent.receivers.iter_mut().filter(|receiver| receiver.name == mail.to) {
                receiver.accepting = None;
            }
        }
    }

    /// Whether nothing is known of a message because it may have been forgotten.
    pub(crate) fn may_have_forgotten(&self, key: &MessageKey) -> bool {
        let inner = self.inner.lock();
        inner.forgets && !inner.sent.contains_key(key)
    }

    /// A receipt of a session that goes on, or one that was forgotten.
    pub(crate) fn restore(&self, accepted: &Accepted, state: ReceiptState) {
        let (mail, key) = (&accepted.mail, accepted.mail.key());
        let receiver = Receiver { name: mail.to.clone(), state: watch::channel(state).0, accepting: None };
        let mut inner = self.inner.lock();
        let known = inner.sent.get(&key).is_some_and(|sent| sent.has(&mail.to));
        if known {
            return;
        }
        if inner.add(key.clone(), Asked::of(accepted), receiver) {
            inner.settled.push_back(key);
            inner.bound();
        }
    }

    /// Has ids go on after this number, so that none is given twice in a session.
    pub(crate) fn count_from(&self, number: u64) {
        self.inner.lock().counter = number;
    }

    /// Forgets a message that was not accepted after all. One that was stays.
    pub(crate) fn forget(&self, key: &MessageKey, to: &AgentName) {
        let mut inner = self.inner.lock();
        if let Some(sent) = inner.sent.get_mut(key) {
            sent.receivers.retain(|receiver| receiver.name != *to || receiver.accepting.is_none());
            if sent.receivers.is_empty() {
                inner.sent.remove(key);
            }
        }
    }

    /// The receivers of a message, while it is remembered.
    pub(crate) fn receivers(&self, key: &MessageKey) -> Vec<AgentName> {
        let inner = self.inner.lock();
        let names = |sent: &Sent| sent.told().map(|receiver| receiver.name.clone()).collect();
        inner.sent.get(key).map(names).unwrap_or_default()
    }

    /// The receipts of one message.
    pub(crate) fn of(&self, key: &MessageKey) -> Vec<Receipt> {
        let inner = self.inner.lock();
        inner.sent.get(key).map(|sent| sent.receipts(&key.id)).unwrap_or_default()
    }

    /// All that is remembered of one sender, by id.
    pub(crate) fn from(&self, sender: &Sender) -> Vec<Receipt> {
        let inner = self.inner.lock();
        let own = inner.sent.iter().filter(|(key, _)| key.from == *sender);
        let mut receipts: Vec<Receipt> = own.flat_map(|(key, sent)| sent.receipts(&key.id)).collect();
        receipts.sort_by(|a, b| (&a.id, &a.to).cmp(&(&b.id, &b.to)));
        receipts
    }

    /// Moves receipts forward, never back.
    pub(crate) fn apply(&self, moves: &[ReceiptMove]) {
        let mut inner = self.inner.lock();
        for step in moves {
            inner.apply(step);
        }
    }
}

impl Sent {
    /// The receivers of which somebody may be told.
    fn told(&self) -> impl Iterator<Item = &Receiver> {
        self.receivers.iter().filter(|receiver| receiver.accepting.is_none())
    }

    fn receipts(&self, id: &MessageId) -> Vec<Receipt> {
        self.told().map(|receiver| receiver.receipt(id)).collect()
    }

    fn has(&self, receiver: &AgentName) -> bool {
        self.receivers.iter().any(|known| known.name == *receiver)
    }

    fn is_settled(&self) -> bool {
        self.receivers.iter().all(|receiver| receiver.state.borrow().is_final())
    }
}

impl Receiver {
    fn receipt(&self, id: &MessageId) -> Receipt {
        Receipt { id: id.clone(), to: self.name.clone(), state: self.state.subscribe() }
    }
}

impl Inner {
    /// What is known at a receiver of the message with this id, if that asked for the same.
    fn known(&self, key: &MessageKey, to: &AgentName, asked: &Asked) -> Result<Option<&Receiver>, Refusal> {
        let Some(sent) = self.sent.get(key) else { return Ok(None) };
        if sent.asked != *asked {
            return Err(Refusal::DuplicateId(key.id.clone()));
        }
        Ok(sent.receivers.iter().find(|receiver| receiver.name == *to))
    }

    /// A receipt for a message that is about to be accepted. Nobody else sees it before it is.
    fn open(&mut self, key: &MessageKey, to: &AgentName, asked: Asked) -> Receipt {
        let (state, told) = watch::channel(ReceiptState::Queued);
        let receiver = Receiver { name: to.clone(), state, accepting: Some(watch::channel(()).0) };
        self.add(key.clone(), asked, receiver);
        Receipt { id: key.id.clone(), to: to.clone(), state: told }
    }

    /// Adds a receiver of a message; `true`: the message can't change any more.
    fn add(&mut self, key: MessageKey, asked: Asked, receiver: Receiver) -> bool {
        let sent = self.sent.entry(key).or_insert_with(|| Sent { asked, receivers: Vec::new() });
        sent.receivers.push(receiver);
        sent.is_settled()
    }

    fn apply(&mut self, step: &ReceiptMove) {
        let key = MessageKey { from: step.from.clone(), id: step.id.clone() };
        let Some(sent) = self.sent.get(&key) else { return };
        for receiver in sent.receivers.iter().filter(|receiver| receiver.name == step.to) {
            receiver.state.send_if_modified(|now| {
                let forward = step.state.rank() > now.rank() && !now.is_final();
                if forward {
                    *now = step.state.clone();
                }
                forward
            });
        }
        if sent.is_settled() {
            self.settled.push_back(key);
            self.bound();
        }
    }

    fn bound(&mut self) {
        // A session that goes on is given no more than so many.
        self.forgets |= self.settled.len() >= REMEMBERED;
        while self.settled.len() > REMEMBERED {
            if let Some(key) = self.settled.pop_front() {
                self.sent.remove(&key);
            }
        }
    }
}
