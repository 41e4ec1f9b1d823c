//! The messages of this terminal: which of those that wait are ours, and what the next one is called.

use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::mail::Urgency;
use midturn_core::rules::view::Message;

use super::{SENDING_MAX, State};
use crate::effect::Outgoing;

/// How many of our messages are remembered: more than a mailbox holds.
const SENT_MAX: usize = 512;

/// How many messages are remembered of which nobody knows whether they arrived: as many as were on their way.
const UNSURE_MAX: usize = SENDING_MAX;

/// A message of ours that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ours {
    /// To whom.
    pub to: AgentName,
    /// Its id.
    pub id: MessageId,
    /// It is being taken back or replaced: what came of that is not known yet.
    pub on_its_way: bool,
}

impl State {
    /// The last message of this terminal that waits in that mailbox; or of those that nothing is done with yet.
    pub fn last_queued(&self, agent: &AgentName, at_rest: bool) -> Option<&Message> {
        let queue = &self.session.view().agent(agent)?.queue;
        let is_it = |ours: &Ours, id: &MessageId| {
            ours.to == *agent && ours.id == *id && !(at_rest && ours.on_its_way)
        };
        queue.iter().rev().find(|message| self.ours.iter().any(|ours| is_it(ours, &message.id)))
    }

    /// Something is done with a message of ours, or no longer.
    pub(crate) fn is_on_its_way(&mut self, id: &MessageId, is: bool) {
        self.ours.iter_mut().filter(|ours| ours.id == *id).for_each(|ours| ours.on_its_way = is);
    }

    /// The message of this number in a mailbox, from 1, if this terminal sent it.
    pub fn queued_at(&self, agent: &AgentName, number: Option<usize>) -> Option<&Message> {
        let queue = &self.session.view().agent(agent)?.queue;
        queue.get(number?.checked_sub(1)?).filter(|message| self.is_ours(agent, &message.id))
    }

    /// Whether this terminal sent it.
    pub fn is_ours(&self, to: &AgentName, id: &MessageId) -> bool {
        self.ours.iter().any(|ours| ours.to == *to && ours.id == *id)
    }

    /// Remembers a message of ours.
    pub fn remember(&mut self, to: &AgentName, id: &MessageId) {
        if !self.is_ours(to, id) {
            self.ours.push(Ours { to: to.clone(), id: id.clone(), on_its_way: false });
        }
        let forgotten = self.ours.len().saturating_sub(SENT_MAX);
        self.ours.drain(..forgotten);
        self.last.insert(to.clone(), id.clone());
    }

    /// The id of what is sent: one that no other message has, or its own if it may have arrived already.
    pub fn id_for(&mut self, to: &AgentName, text: &str, urgency: Option<Urgency>) -> MessageId {
        let is_it = |sent: &Outgoing| sent.to == *to && sent.text == text && sent.urgency == urgency;
        if let Some(at) = self.unsure.iter().position(is_it) {
            return self.unsure.remove(at).id;
        }
        // Who writes something else has done with those: the same words later are a new message.
        self.unsure.retain(|sent| sent.to != *to);
        self.next_id()
    }

    /// Remembers a message that may have arrived.
    pub fn is_unsure(&mut self, message: Outgoing) {
        if self.unsure.len() >= UNSURE_MAX {
            self.unsure.remove(0);
        }
        self.unsure.push(message);
    }

    /// An id that no other message has.
    pub fn next_id(&mut self) -> MessageId {
        self.sent += 1;
        MessageId::new(format!("{}-{}", self.opening.seed, self.sent))
    }
}
