//! What a parent is told of a run's end (semantics.md, section 9).

use std::sync::Arc;

use crate::rules::conversation::MessageKey;
use crate::rules::id::{AgentName, MessageId, RunId};
use crate::rules::mail::{End, Sender};

/// What a parent is told of a run's end.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) run: RunId,
    pub(crate) end: End,
    pub(crate) text: Arc<str>,
}

impl Report {
    /// What the message is known by that tells of it.
    pub(crate) fn key(&self, about: &AgentName) -> MessageKey {
        MessageKey { from: Sender::Coordinator(about.clone()), id: self.id(about) }
    }

    /// The id of the message that tells of it.
    pub(crate) fn id(&self, about: &AgentName) -> MessageId {
        MessageId::new(format!("{about}#{}", self.run))
    }
}
