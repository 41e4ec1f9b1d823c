//! What an export is made of, before it is written: who is there, what models and tools answer
//! and when that ends, what is done from outside, and when.

use std::sync::Arc;

use midturn_core::engine::ports::ErrorKind;
use midturn_core::rules::approval::Decision;
use midturn_core::rules::conversation::Usage;
use midturn_core::rules::id::{AgentName, CallId, RunId};
use midturn_core::rules::mail::{Role, Urgency};
use midturn_core::rules::settings::{LimitsPatch, Settings};
use midturn_core::rules::time::{Micros, Span};
use serde_json::Value;

/// A session, as a scenario has to play it.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub(super) agents: Vec<Agent>,
    /// In the order in which they came.
    pub(super) items: Vec<Item>,
}

/// An event that something follows, by what a file can call it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mark {
    pub(super) agent: AgentName,
    /// Its type.
    pub(super) event: &'static str,
    pub(super) id: String,
}

/// When something ends or comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// At that time, as it was measured.
    At(Micros),
    /// In the round behind that event, or in its own where the round is not that far: a recorded order.
    After(Mark),
}

#[derive(Clone, Debug)]
pub(super) struct Agent {
    pub(super) name: AgentName,
    pub(super) role: Role,
    pub(super) parent: Option<AgentName>,
    pub(super) prompt: Option<Arc<str>>,
    pub(super) opening: Opening,
    pub(super) settings: Arc<Settings>,
    /// Whether it has a model: without one it is a name only.
    pub(super) works: bool,
    pub(super) entries: Vec<Entry>,
}

/// How an agent came into the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// It was there from the start.
    AtOnce,
    /// A `spawn_agent` call made it.
    Spawned,
    /// Somebody added it later: it is there from the start, and its prompt is a message.
    Late,
}

/// A model call, as the script will answer it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) end: EntryEnd,
    pub(super) text: String,
    pub(super) thinking: String,
    pub(super) calls: Vec<Call>,
    pub(super) stop_reason: Option<String>,
    pub(super) usage: Usage,
}

impl Entry {
    /// A call that ends so, and says nothing.
    pub(super) fn silent(end: EntryEnd) -> Self {
        Self {
            end,
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
    /// It did not: it was cut before its first word, or lost with its process.
    Open,
    /// Whole.
    Whole(When),
    /// It failed, and asked to wait so long.
    Failed { when: When, kind: ErrorKind, retry_after: Option<Span> },
    /// It was cut; the flag says whether its thinking was whole.
    Cut { thought: bool },
    /// There was no entry for it.
    Exhausted,
}

/// A tool call, as the simulated tool will answer it.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The id that the model gave it.
    pub(super) by_model: CallId,
    /// The id in the file: the same, unless it can't stand there or is used a second time.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Value,
    pub(super) kind: CallKind,
    pub(super) started: Option<Started>,
    /// The event of its end.
    pub(super) ended: Option<u64>,
    /// When it returned a continuation.
    pub(super) continued: Option<Micros>,
    pub(super) end: CallEnd,
    pub(super) safe: Option<bool>,
    pub(super) abortable: bool,
    /// The id that the coordinator gave to the message of this call, which named none.
    pub(super) sent_as: Option<String>,
}

impl Call {
    pub(super) fn is_running(&self) -> bool {
        self.started.is_some() && self.ended.is_none()
    }
}

/// The start of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Started {
    pub(super) seq: u64,
    pub(super) batch: u32,
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
    /// It never started, or that is not read yet.
    None,
    /// By itself, with this result.
    Natural { when: When, text: String, is_error: bool },
    /// It was cut, and its abort took so long; this is what it had said.
    Cut { abort_takes: Span, output: String },
    /// The provider's own result.
    Given(String),
}

/// Something that was done from outside.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) when: When,
    /// When it was done, and the event that tells of it.
    pub(super) at: Micros,
    pub(super) seq: u64,
    /// Of a message: the last event of its receivers before it in its instant.
    pub(super) behind: u64,
    /// Whose events it follows.
    pub(super) agent: Option<AgentName>,
    pub(super) id: Option<String>,
    pub(super) act: Act,
}

/// What was done.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Send(Send),
    Stop { by: String },
    Supersede { by: String, text: String },
    Resume,
    Close { by: String },
    Withdraw { by: String, message: String },
    Answer { tool: String, decision: Decision, reason: Option<String> },
    Raise { limits: LimitsPatch },
    Crash { back: Micros },
    ShutDown { back_after: Span },
}

/// A message that was sent from outside.
#[derive(Clone, Debug)]
pub(super) struct Send {
    pub(super) from: String,
    /// An agent, or `all`.
    pub(super) to: String,
    pub(super) text: String,
    pub(super) urgency: Option<Urgency>,
    /// When it expires, if it does.
    pub(super) expires: Option<Micros>,
    pub(super) supersedes: Option<String>,
    pub(super) if_queued: bool,
    pub(super) only_run: Option<RunId>,
}
