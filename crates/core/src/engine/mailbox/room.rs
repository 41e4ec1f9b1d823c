//! Room for messages that are being accepted: between the look at a mailbox's bounds and the
//! message's arrival lies a commit, and others may look meanwhile.

use super::Mailbox;
use crate::rules::id::AgentName;
use crate::rules::mail::Refusal;
use crate::rules::settings::Settings;

impl Mailbox {
    /// Keeps room for a message of so many bytes until [`Mailbox::release`].
    pub(crate) fn reserve(&self, to: &AgentName, bytes: usize, settings: &Settings) -> Result<(), Refusal> {
        let mut inner = self.inner.lock();
        self.has_room(to, bytes, settings)?;
        inner.reserved_messages += 1;
        inner.reserved_bytes += bytes as u64;
        self.publish(&inner);
        Ok(())
    }

    /// Gives room back that was kept for a message of so many bytes.
    pub(crate) fn release(&self, bytes: usize) {
        let mut inner = self.inner.lock();
        inner.reserved_messages -= 1;
        inner.reserved_bytes -= bytes as u64;
        self.publish(&inner);
    }
}
