//! What an export is made of before its instants are known: model entries, calls, and what
//! was done to the session from outside.

use midturn_core::engine::ports::ErrorKind;
use midturn_core::rules::conversation::{ToolStatus, Usage};
use midturn_core::rules::id::RunId;
use midturn_core::rules::time::Span;
use serde_json::Value;

use super::moments::Moment;

/// A model call, as the script will answer it.
#[derive(Clone, Debug)]
pub(super) struct EntryPlan {
    pub(super) start: Moment,
    pub(super) end: EntryEnd,
    pub(super) text: String,
    pub(super) thinking: String,
    pub(super) calls: Vec<CallPlan>,
    pub(super) stop_reason: Option<String>,
    pub(super) usage: Usage,
}

impl EntryPlan {
    /// A call that says nothing yet.
    pub(super) fn new(start: Moment) -> Self {
        Self {
            start,
            end: EntryEnd::Open,
            text: String::new(),
            thinking: String::new(),
            calls: Vec::new(),
            stop_reason: None,
            usage: Usage::default(),
        }
    }
}

/// How a model call ended.
#[derive(Clone, Debug)]
pub(super) enum EntryEnd {
    /// It has not, as far as the events are read.
    Open,
    /// Whole.
    Whole(Moment),
    /// It failed, and asked to wait so long.
    Failed { at: Moment, kind: ErrorKind, retry_after: Option<Span> },
    /// It was cut there; the flag says whether its thinking was whole.
    Cut { at: Moment, thought: bool },
    /// There was no entry for it.
    Exhausted,
}

/// A tool call, as the simulated tool will answer it.
#[derive(Clone, Debug)]
pub(super) struct CallPlan {
    /// The id in the file: the model's own, or one like it where that can't stand there.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Value,
    pub(super) kind: CallKind,
    pub(super) start: Option<Moment>,
    /// When it returned a continuation.
    pub(super) continued: Option<Moment>,
    pub(super) end: CallEnd,
    pub(super) safe: Option<bool>,
    pub(super) abortable: bool,
    pub(super) status: Option<ToolStatus>,
    pub(super) run: RunId,
    /// The id that the coordinator gave to the message of this call, which named none.
    pub(super) sent_as: Option<String>,
}

/// Who runs a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    /// A simulated tool.
    Simulated,
    /// The coordinator: it acts, and takes no time.
    Own,
    /// The provider.
    Provider,
}

/// How a call ended.
#[derive(Clone, Debug)]
pub(super) enum CallEnd {
    /// It never started, or its end is not read yet.
    None,
    /// By itself, with this result.
    Natural { at: Moment, text: String, is_error: bool },
    /// It was cut, and its abort ended so much later; this is what it had said.
    Cut { by: Moment, at: Moment, output: String },
    /// It was cut and never ended.
    Stuck { by: Moment },
    /// The provider's own result.
    Given(String),
}

/// Something that was done to an agent from outside.
#[derive(Clone, Debug)]
pub(super) struct Deed {
    /// The event that tells of it.
    pub(super) seq: u64,
    pub(super) at: Moment,
    /// The agent whose events it follows, by its place in the session.
    pub(super) agent: usize,
    /// Of a message to all: the other receivers, and the events that tell of it there.
    pub(super) also: Vec<(usize, u64)>,
    pub(super) id: Option<String>,
    pub(super) act: DeedAct,
}

/// What was done.
#[derive(Clone, Debug)]
pub(super) enum DeedAct {
    Send(SendPlan),
    Stop { by: String },
    Supersede { by: String, text: String },
    Resume,
    Close { by: String },
    Withdraw { by: String, message: String },
}

/// A message that was sent from outside.
#[derive(Clone, Debug)]
pub(super) struct SendPlan {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) text: String,
    pub(super) urgency: Option<midturn_core::rules::mail::Urgency>,
    /// When it expires, if it does.
    pub(super) expires: Option<Moment>,
    pub(super) supersedes: Option<String>,
    pub(super) only_run: Option<RunId>,
}

/// An event that an item can follow.
#[derive(Clone, Debug)]
pub(super) struct Landmark {
    pub(super) seq: u64,
    pub(super) at: Moment,
    /// The event's type.
    pub(super) event: &'static str,
    /// Its id, or `any`; `None`: nothing in the file can name it.
    pub(super) id: Option<String>,
    /// Whether it arrived at the agent, and if so, who sent it there.
    pub(super) kind: LandmarkKind,
}

/// How an event came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LandmarkKind {
    /// Something of the agent's own began or ended.
    Own,
    /// An item of the file arrived.
    Item,
    /// Something arrived that an agent caused.
    Caused,
}
