//! Messages: what they are, who they are from and how urgent. Who may send one stands in
//! `standing`, what became of it in `receipt`, why it was refused in `refusal`.

mod receipt;
mod refusal;
mod standing;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ending::{InterruptReason, Outcome};
use super::id::{AgentName, MessageId, RunId};
use super::time::Micros;
use super::words::words;

pub use self::receipt::{Injection, Point, ReceiptState, ReturnReason};
pub use self::refusal::Refusal;
pub use self::standing::{
    Admission, Relation, Rest, Role, Standing, admission, default_urgency, may_be_urgent,
};
pub use super::urgency::Urgency;

/// Who a message is from. Stamped by the coordinator, never taken from a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Sender {
    /// A person.
    User,
    /// An agent.
    Agent(AgentName),
    /// The coordinator itself, about the agent named.
    Coordinator(AgentName),
}

impl Sender {
    /// The name that results use: `the user` for a person (semantics.md, section 4).
    pub fn spoken(&self) -> &str {
        match self {
            Self::User => "the user",
            Self::Agent(name) | Self::Coordinator(name) => name.as_str(),
        }
    }
}

impl Sender {
    /// The sender that a word of the wire means; for records of our own. Who the coordinator
    /// wrote about is not in its word.
    pub fn of_word(word: &str) -> Self {
        AgentName::new(word).map_or(Self::User, Self::Agent)
    }
}

impl fmt::Display for Sender {
    /// The word of the wire: `user`, an agent's name, `coordinator`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("user"),
            Self::Agent(name) => f.write_str(name.as_str()),
            Self::Coordinator(_) => f.write_str("coordinator"),
        }
    }
}

/// What a message is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MailKind {
    /// Words of a person or an agent.
    Words,
    /// The end of a subagent's run, told by the coordinator.
    End(End),
}

words! {
    /// How a subagent's run ended, for the mail to its parent.
    pub enum End {
        /// It had nothing more to do.
        Finished = "finished",
        /// It failed.
        Failed = "failed",
        /// It reached a limit.
        Limit = "limit",
        /// It was stopped.
        Stopped = "stopped",
        /// It was stopped, and the next run follows at once.
        StoppedGoesOn = "stopped_goes_on",
        /// A person superseded it: the next run follows at once.
        Superseded = "superseded",
    }
}

impl End {
    /// What is told of a run with this outcome that no other one follows at once.
    pub fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Finished => Self::Finished,
            Outcome::Failed => Self::Failed,
            Outcome::Limit => Self::Limit,
            Outcome::Stopped => Self::Stopped,
        }
    }

    /// What is told of a run that the next one follows at once, stopped for this reason.
    pub fn followed(outcome: Outcome, reason: Option<InterruptReason>) -> Self {
        match (outcome, reason) {
            (Outcome::Stopped, Some(InterruptReason::Superseded)) => Self::Superseded,
            (Outcome::Stopped, _) => Self::StoppedGoesOn,
            (Outcome::Finished | Outcome::Failed | Outcome::Limit, _) => Self::of(outcome),
        }
    }

    /// Whether the agent works on: then it is nobody's answer, and ends no wait.
    pub fn goes_on(self) -> bool {
        match self {
            Self::StoppedGoesOn | Self::Superseded => true,
            Self::Finished | Self::Failed | Self::Limit | Self::Stopped => false,
        }
    }
}

/// What tells one message from all others: ids are unique per sender.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MessageKey {
    /// The sender.
    pub from: Sender,
    /// The sender's id for it.
    pub id: MessageId,
}

/// A message, once it is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// Its id, unique per sender.
    pub id: MessageId,
    /// Who sent it.
    pub from: Sender,
    /// Who it is for.
    pub to: AgentName,
    /// What it says, as sent.
    pub text: Arc<str>,
    /// How soon it acts.
    pub urgency: Urgency,
    /// Words, or the end of a subagent.
    pub kind: MailKind,
    /// The only run it may be injected in.
    pub only_run: Option<RunId>,
    /// When it is returned as `expired`, if it is still queued and not committed.
    pub expires_at: Option<Micros>,
}

impl Mail {
    /// What it is known by.
    pub fn key(&self) -> MessageKey {
        MessageKey { from: self.from.clone(), id: self.id.clone() }
    }

    /// Whether the coordinator wrote it: such mail is never returned at a stop, and has room of its own.
    pub fn is_coordinators(&self) -> bool {
        matches!(self.from, Sender::Coordinator(_))
    }
}
