//! Receipts: where each message stands, for whoever sent it (semantics.md, section 8).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::ports::store::{Accepted, ReceiptMove};
use crate::rules::conversation::MessageKey;
use crate::rules::id::{AgentName, MessageId};
use crate::rules::mail::{ReceiptState, Refusal, Sender, Urgency};

/// How many receipts that can't change any more are remembered, the oldest forgotten first.
const REMEMBERED: usize = 16_384;

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
    states: Vec<(AgentName, watch::Sender<ReceiptState>)>,
}

/// All receipts of a session.
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    sent: HashMap<MessageKey, Sent>,
    settled: VecDeque<MessageKey>,
    counter: u64,
}

impl Receipts {
    /// An id for a message that came without one: a counter.
    pub(crate) fn next_id(&self) -> MessageId {
        let mut inner = self.inner.lock();
        inner.counter += 1;
        MessageId::new(format!("auto-{}", inner.counter))
    }

    /// The receipts of an earlier send with this id, if it asked for the same.
    pub(crate) fn earlier(&self, key: &MessageKey, asked: &Asked) -> Result<Option<Vec<Receipt>>, Refusal> {
        let inner = self.inner.lock();
        match inner.sent.get(key) {
            None => Ok(None),
            Some(sent) if sent.asked == *asked => Ok(Some(sent.receipts(&key.id))),
            Some(_) => Err(Refusal::DuplicateId(key.id.clone())),
        }
    }

    /// A receipt for a message that is accepted.
    pub(crate) fn open(&self, key: &MessageKey, to: &AgentName, asked: Asked) -> Receipt {
        let (sender, state) = watch::channel(ReceiptState::Queued);
        let mut inner = self.inner.lock();
        let sent = inner.sent.entry(key.clone()).or_insert_with(|| Sent { asked, states: Vec::new() });
        sent.states.push((to.clone(), sender));
        Receipt { id: key.id.clone(), to: to.clone(), state }
    }

    /// A receipt of a session that goes on.
    pub(crate) fn restore(&self, accepted: &Accepted, state: ReceiptState) {
        let mail = &accepted.mail;
        let key = MessageKey { from: mail.from.clone(), id: mail.id.clone() };
        let mut inner = self.inner.lock();
        let sent = inner
            .sent
            .entry(key.clone())
            .or_insert_with(|| Sent { asked: Asked::of(accepted), states: Vec::new() });
        sent.states.push((mail.to.clone(), watch::channel(state).0));
        if sent.is_settled() {
            inner.settled.push_back(key);
            inner.bound();
        }
    }

    /// Has ids go on after this number, so that none is given twice in a session.
    pub(crate) fn count_from(&self, number: u64) {
        self.inner.lock().counter = number;
    }

    /// Forgets a message that was not accepted after all.
    pub(crate) fn forget(&self, key: &MessageKey, to: &AgentName) {
        let mut inner = self.inner.lock();
        if let Some(sent) = inner.sent.get_mut(key) {
            sent.states.retain(|(name, _)| name != to);
            if sent.states.is_empty() {
                inner.sent.remove(key);
            }
        }
    }

    /// The receivers of a message, while it is remembered.
    pub(crate) fn receivers(&self, key: &MessageKey) -> Vec<AgentName> {
        let inner = self.inner.lock();
        let names = |sent: &Sent| sent.states.iter().map(|(name, _)| name.clone()).collect();
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
    fn receipts(&self, id: &MessageId) -> Vec<Receipt> {
        let one = |(to, state): &(AgentName, watch::Sender<ReceiptState>)| Receipt {
            id: id.clone(),
            to: to.clone(),
            state: state.subscribe(),
        };
        self.states.iter().map(one).collect()
    }

    fn is_settled(&self) -> bool {
        self.states.iter().all(|(_, state)| state.borrow().is_final())
    }
}

impl Inner {
    fn apply(&mut self, step: &ReceiptMove) {
        let key = MessageKey { from: step.from.clone(), id: step.id.clone() };
        let Some(sent) = self.sent.get(&key) else { return };
        for (_, state) in sent.states.iter().filter(|(to, _)| *to == step.to) {
            state.send_if_modified(|now| {
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
        while self.settled.len() > REMEMBERED {
            if let Some(key) = self.settled.pop_front() {
                self.sent.remove(&key);
            }
        }
    }
}
