//! Room in a mailbox: what counts against its bounds, and what is kept for messages that are
//! being accepted. Between the look at the bounds and a message's arrival lies a commit, and
//! others may look meanwhile.
//!
//! Agents share one room and a person has another, as large: no agent can shut a person out.
//! The coordinator's own mail counts nowhere.

use super::inner::Inner;
use super::{Mailbox, Queued};
use crate::rules::id::{AgentName, MessageId};
use crate::rules::mail::{Mail, Refusal, Sender};
use crate::rules::settings::Settings;

/// So much of one room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fill {
    messages: u32,
    bytes: u64,
}

/// What counts against the bounds: agents' mail, and a person's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rooms {
    agents: Fill,
    person: Fill,
}

impl Fill {
    fn of(mail: &Mail) -> Self {
        Self { messages: 1, bytes: mail.text.len() as u64 }
    }

    fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
    }

    /// More is never taken out than was put in: that would be a count that has gone astray.
    fn remove(&mut self, other: Self) {
        debug_assert!(self.messages >= other.messages && self.bytes >= other.bytes, "{self:?} - {other:?}");
        self.messages = self.messages.saturating_sub(other.messages);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}

impl Rooms {
    /// The room of a sender's mail; the coordinator's needs none.
    fn of(&mut self, from: &Sender) -> Option<&mut Fill> {
        match from {
            Sender::Agent(_) => Some(&mut self.agents),
            Sender::User => Some(&mut self.person),
            Sender::Coordinator(_) => None,
        }
    }

    pub(super) fn enters(&mut self, mail: &Mail) {
        if let Some(fill) = self.of(&mail.from) {
            fill.add(Fill::of(mail));
        }
    }

    pub(super) fn leaves(&mut self, mail: &Mail) {
        if let Some(fill) = self.of(&mail.from) {
            fill.remove(Fill::of(mail));
        }
    }
}

impl Inner {
    /// Whether a message of so many bytes fits, once `leaving` is gone. What it replaces leaves
    /// it its own place and bytes, however full the mailbox is.
    fn fits(&self, from: &Sender, bytes: u64, leaving: Option<&Mail>, settings: &Settings) -> bool {
        let (mut used, mut kept) = (self.used, self.reserved);
        let (Some(used), Some(kept)) = (used.of(from), kept.of(from)) else { return true };
        if leaving.is_some_and(|old| bytes <= old.text.len() as u64) {
            return true;
        }
        used.add(*kept);
        if let Some(old) = leaving {
            used.remove(Fill::of(old));
        }
        used.messages < settings.mailbox_messages && used.bytes + bytes <= settings.mailbox_bytes
    }
}

impl Mailbox {
    /// Whether there is room for a message of so many bytes from this sender.
    ///
    /// # Errors
    /// [`Refusal::MailboxFull`].
    pub fn has_room(
        &self,
        from: &Sender,
        to: &AgentName,
        bytes: usize,
        settings: &Settings,
    ) -> Result<(), Refusal> {
        let fits = self.inner.lock().fits(from, bytes as u64, None, settings);
        if fits { Ok(()) } else { Err(Refusal::MailboxFull(to.clone())) }
    }

    /// Keeps room for a message of so many bytes until [`Mailbox::release`]. With `replaces` it
    /// takes the sender's message of that id out, if it is queued and has not acted: of the two
    /// only one is ever there, and the run that the old one asked for stays asked for until
    /// [`Mailbox::replaced`].
    pub(crate) fn reserve(
        &self,
        from: &Sender,
        to: &AgentName,
        bytes: usize,
        replaces: Option<&MessageId>,
        settings: &Settings,
    ) -> Result<Option<Queued>, Refusal> {
        let mut inner = self.inner.lock();
        let at = replaces.and_then(|id| inner.queue.iter().position(|queued| queued.is_loose(from, id)));
        let leaving = at.map(|at| inner.queue[at].mail.clone());
        if !inner.fits(from, bytes as u64, leaving.as_deref(), settings) {
            return Err(Refusal::MailboxFull(to.clone()));
        }
        let replaced = at.and_then(|at| inner.remove_at(at));
        inner.replacing += u32::from(replaced.is_some());
        if let Some(reserved) = inner.reserved.of(from) {
            reserved.add(Fill { messages: 1, bytes: bytes as u64 });
        }
        self.publish(&inner);
        Ok(replaced)
    }

    /// Gives room back that was kept for a message of so many bytes.
    pub(crate) fn release(&self, from: &Sender, bytes: usize) {
        if let Some(reserved) = self.inner.lock().reserved.of(from) {
            reserved.remove(Fill { messages: 1, bytes: bytes as u64 });
        }
    }
}
