//! One thing in a conversation, as people read it.

use std::sync::Arc;

use midturn_core::rules::approval::Decision;
use midturn_core::rules::compaction::Sizes;
use midturn_core::rules::conversation::{InterruptReason, ToolStatus};
use midturn_core::rules::event::{Halt, Outcome};
use midturn_core::rules::id::{CallId, MessageId, RunId, TurnId};
use midturn_core::rules::mail::{Point, ReturnReason, Urgency};
use midturn_core::rules::settings::LimitsPatch;
use midturn_core::rules::time::{Micros, Span};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing in a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The number of the event that it began with.
    pub seq: u64,
    /// The number of the last event that changed it: whoever laid it out knows whether that still holds.
    pub changed: u64,
    /// When it began.
    pub t: Micros,
    /// In which run.
    pub run: RunId,
    /// In which turn of it.
    pub turn: TurnId,
    /// What it is.
    pub kind: EntryKind,
}

/// What there is in a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EntryKind {
    /// What the agent was spawned to do.
    Prompt {
        /// The prompt.
        text: Arc<str>,
    },
    /// What the agent said.
    Reply {
        /// The text.
        text: Arc<str>,
        /// Why it is only a part, if it is.
        cut: Option<InterruptReason>,
    },
    /// A call of a tool.
    Call(Call),
    /// Mail that came in, together.
    Injected(Injected),
    /// A message that will never come in.
    Returned {
        /// It.
        letter: Letter,
        /// Why.
        reason: ReturnReason,
    },
    /// A model call that failed and is tried again; of several in a row the last.
    Retry {
        /// How many have failed.
        attempt: u32,
        /// What went wrong.
        error: Arc<str>,
        /// How long it is until the next.
        wait: Span,
    },
    /// Somebody asked for the end of its run.
    Stop {
        /// Who.
        by: Arc<str>,
        /// What for.
        reason: Halt,
    },
    /// Somebody set what it may use.
    Limit {
        /// Who.
        by: Arc<str>,
        /// What.
        limits: LimitsPatch,
    },
    /// The older part was summarised.
    Compacted {
        /// How many messages there were and are.
        messages: Sizes,
        /// How many tokens.
        tokens: Sizes,
    },
    /// The end of a run.
    End {
        /// How.
        outcome: Outcome,
        /// Why, of one that failed or came to a limit.
        error: Option<Arc<str>>,
        /// After how many turns.
        turns: TurnId,
    },
    /// Nothing of the agent starts any more.
    Closed,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Its id.
    pub id: CallId,
    /// The tool.
    pub name: Arc<str>,
    /// Its arguments.
    pub input: Value,
    /// How far it is.
    pub state: CallState,
    /// What a person said to it, by whom and why.
    pub word: Option<(Decision, Arc<str>, Option<Arc<str>>)>,
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CallState {
    /// It was asked for.
    Waiting,
    /// It runs.
    Running {
        /// Since when.
        since: Micros,
    },
    /// It has ended, or never began.
    Ended {
        /// How.
        status: ToolStatus,
        /// How long it ran.
        took: Option<Span>,
        /// How much it said, in bytes.
        bytes: u64,
        /// Head and tail of that.
        output: Arc<str>,
    },
}

/// Mail that came in, together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Injected {
    /// The messages, in their order.
    pub letters: Vec<Letter>,
    /// Where.
    pub point: Point,
    /// The tool of the last call that had ended before, in the same turn.
    pub after: Option<Arc<str>>,
    /// How many calls were skipped for it.
    pub skipped: usize,
    /// How many were interrupted.
    pub interrupted: usize,
    /// Whether the model has replied to it.
    pub answered: bool,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Letter {
    /// Its id.
    pub id: MessageId,
    /// Who sent it; nobody is known of one that was there before the first event that was told.
    pub from: Arc<str>,
    /// How soon it was to act.
    pub urgency: Option<Urgency>,
    /// What it says.
    pub text: Arc<str>,
    /// How long it waited.
    pub waited: Option<Span>,
}

impl EntryKind {
    /// How many bytes of text it holds, about: what a conversation's bound counts.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Prompt { text } | Self::Reply { text, .. } => text.len(),
            Self::Call(call) => call.weight(),
            Self::Injected(injected) => injected.letters.iter().map(|letter| letter.text.len()).sum(),
            Self::Returned { letter, .. } => letter.text.len(),
            Self::Retry { error, .. } => error.len(),
            Self::End { error, .. } => error.as_ref().map_or(0, |error| error.len()),
            Self::Stop { .. } | Self::Limit { .. } | Self::Compacted { .. } | Self::Closed => 0,
        }
    }
}

impl Call {
    fn weight(&self) -> usize {
        let output = match &self.state {
            CallState::Ended { output, .. } => output.len(),
            CallState::Waiting | CallState::Running { .. } => 0,
        };
        let reason = self.word.as_ref().and_then(|(_, _, reason)| reason.as_ref()).map_or(0, |it| it.len());
        self.name.len() + size(&self.input) + output + reason
    }
}

/// What a value weighs that holds nothing, about.
const VALUE: usize = 32;

/// How many bytes a value has, about.
fn size(value: &Value) -> usize {
    let held = match value {
        Value::String(text) => text.len(),
        Value::Array(all) => all.iter().map(size).sum(),
        Value::Object(all) => all.iter().map(|(name, value)| name.len() + size(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    VALUE + held
}
