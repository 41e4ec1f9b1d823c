//! Why a message is not accepted, in words for people and in one stable word each for the wire.

use crate::rules::id::{AgentName, MessageId, NameError, RunId};

/// Why a message was not accepted. Nothing was queued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nobody has that name.
    #[error("there is no agent `{0}`")]
    UnknownAgent(String),
    /// The receiver is the sender.
    #[error("an agent doesn't write to itself")]
    ToSelf,
    /// Nothing but white space.
    #[error("the message is empty")]
    Empty,
    /// More than the settings allow.
    #[error("the message has {bytes} bytes; at most {limit} are allowed")]
    TooLarge {
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        limit: usize,
    },
    /// The sender may not send `urgent` to this receiver.
    #[error("only a person or an ancestor may send an urgent message here; send it without urgent")]
    UrgentNotAllowed,
    /// Too many urgent ones from this sender to this receiver.
    #[error(
        "at most {0} urgent messages a minute from one agent to another; send it without urgent, or later"
    )]
    UrgentRate(u32),
    /// The mailbox has no room.
    #[error("the mailbox of `{0}` is full; wait until it has read its mail")]
    MailboxFull(AgentName),
    /// `only_run` names neither the current run nor, when idle, the next.
    #[error("the message is for run {asked} only, and the receiver is at run {current}")]
    StaleRun {
        /// The run asked for.
        asked: RunId,
        /// The run that a message would be injected in now.
        current: RunId,
    },
    /// The id stands for another message.
    #[error("the id `{0}` is already used for another message")]
    DuplicateId(MessageId),
    /// The id to withdraw or supersede is nobody's, or not the sender's own.
    #[error("there is no message `{0}` of yours to this receiver")]
    UnknownMessage(MessageId),
    /// The receiver needs a name that is none.
    #[error("{0}")]
    BadName(#[from] NameError),
    /// The sender has no parent.
    #[error("`{0}` has no parent")]
    NoParent(String),
    /// The message was to take the place of one that has acted or is in the conversation already.
    #[error("too late: the message `{0}` has acted, was injected, or was never sent to this receiver")]
    TooLate(MessageId),
    /// `if_queued` names no message that it could depend on.
    #[error("`if_queued` goes with `supersedes`: it says what happens when that is too late")]
    NothingToReplace,
    /// The receiver has reached a limit, and nobody wakes it before a person raises it.
    #[error("`{to}` has reached its limit {limit}; nothing wakes it until a person raises that")]
    Limit {
        /// The receiver.
        to: AgentName,
        /// The setting.
        limit: &'static str,
    },
    /// The process ends.
    #[error("Midturn is shutting down, nothing was accepted; send it again after the next start")]
    ShuttingDown,
    /// The store failed; nothing was accepted.
    #[error("the store failed, nothing was accepted: {0}")]
    Store(String),
}

impl Refusal {
    /// All words of the wire.
    pub const CODES: [&str; 17] = [
        "unknown_agent",
        "to_self",
        "empty",
        "too_large",
        "urgent_not_allowed",
        "urgent_rate",
        "mailbox_full",
        "stale_run",
        "duplicate_id",
        "unknown_message",
        "invalid_name",
        "no_parent",
        "too_late",
        "nothing_to_replace",
        "limit",
        "shutting_down",
        "store",
    ];

    /// The word of the wire, stable.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownAgent(_) => "unknown_agent",
            Self::ToSelf => "to_self",
            Self::Empty => "empty",
            Self::TooLarge { .. } => "too_large",
            Self::UrgentNotAllowed => "urgent_not_allowed",
            Self::UrgentRate(_) => "urgent_rate",
            Self::MailboxFull(_) => "mailbox_full",
            Self::StaleRun { .. } => "stale_run",
            Self::DuplicateId(_) => "duplicate_id",
            Self::UnknownMessage(_) => "unknown_message",
            Self::BadName(_) => "invalid_name",
            Self::NoParent(_) => "no_parent",
            Self::TooLate(_) => "too_late",
            Self::NothingToReplace => "nothing_to_replace",
            Self::Limit { .. } => "limit",
            Self::ShuttingDown => "shutting_down",
            Self::Store(_) => "store",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_its_word_and_every_word_a_refusal() {
        let (name, text) = (AgentName::new("a").unwrap(), || "a".to_owned());
        let all = [
            Refusal::UnknownAgent(text()),
            Refusal::ToSelf,
            Refusal::Empty,
            Refusal::TooLarge { bytes: 2, limit: 1 },
            Refusal::UrgentNotAllowed,
            Refusal::UrgentRate(1),
            Refusal::MailboxFull(name.clone()),
            Refusal::StaleRun { asked: 1, current: 2 },
            Refusal::DuplicateId(MessageId::new("m")),
            Refusal::UnknownMessage(MessageId::new("m")),
            Refusal::BadName(AgentName::new("").unwrap_err()),
            Refusal::NoParent(text()),
            Refusal::TooLate(MessageId::new("m")),
            Refusal::NothingToReplace,
            Refusal::Limit { to: name, limit: "max_turns" },
            Refusal::ShuttingDown,
            Refusal::Store(text()),
        ];
        assert_eq!(all.map(|refusal| refusal.code()), Refusal::CODES);
    }
}
