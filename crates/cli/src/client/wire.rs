//! What a running Midturn answers, as far as the commands use it (docs/protocol.md,
//! "Routes"). Fields that are not known here are ignored: the other process may be newer.

use std::sync::Arc;

use midturn_core::rules::event::Outcome;
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::{Point, ReturnReason, Role};
use midturn_core::rules::time::Micros;
use serde::Deserialize;
use serde_json::Value;

use super::http::Problem;

/// `Session`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Session {
    /// Its id.
    pub session: String,
    /// Its task.
    #[serde(default)]
    pub title: String,
    /// When it began, in seconds since 1970.
    #[serde(default)]
    pub began_at: f64,
    /// Whether it lives in the process that answers.
    #[serde(default)]
    pub live: bool,
    /// The agent a person talks to.
    #[serde(default)]
    pub lead: Option<AgentName>,
    /// How many of its agents have a run that has not ended.
    #[serde(default)]
    pub running: u64,
    /// Whether anything is at work.
    #[serde(default)]
    pub busy: bool,
    /// The number of its last event.
    #[serde(default)]
    pub last_seq: u64,
}

/// `{sessions}`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Sessions {
    /// Those that live and those that are only stored.
    pub sessions: Vec<Session>,
}

/// `{agents}`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Agents {
    /// In the session's order.
    pub agents: Vec<Agent>,
}

/// `Agent`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Agent {
    /// Its name.
    pub name: AgentName,
    /// Lead or subagent.
    pub role: Role,
    /// Its parent.
    #[serde(default)]
    pub parent: Option<AgentName>,
    /// Its model.
    #[serde(default)]
    pub model: Option<String>,
    /// What it does.
    pub state: AgentState,
    /// Its current or last run.
    #[serde(default)]
    pub run: u64,
    /// The turn of it.
    #[serde(default)]
    pub turn: u32,
    /// The limit that keeps it from being woken.
    #[serde(default)]
    pub limit: Option<String>,
    /// How many messages wait for it.
    #[serde(default)]
    pub pending: u64,
    /// What is under way.
    #[serde(default)]
    pub activity: Vec<Activity>,
    /// Tokens read and written.
    #[serde(default)]
    pub tokens: u64,
    /// The branch it works on.
    #[serde(default)]
    pub branch: Option<String>,
    /// How its last run ended.
    #[serde(default)]
    pub last_end: Option<LastEnd>,
}

/// What an agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// A run is under way.
    Running,
    /// A run is ending.
    Ending,
    /// It waits for mail.
    Idle,
    /// It was stopped.
    Stopped,
    /// It is closed.
    Closed,
    /// Its session is only stored, and its run has not ended.
    Suspended,
    /// What a newer version says.
    #[serde(other)]
    Unknown,
}

impl AgentState {
    /// The word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ending => "ending",
            Self::Idle => "idle",
            Self::Stopped => "stopped",
            Self::Closed => "closed",
            Self::Suspended => "suspended",
            Self::Unknown => "?",
        }
    }
}

/// Something that an agent waits for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Activity {
    /// `model`, `tool` or `approval`.
    pub what: String,
    /// The number of the model's call.
    #[serde(default)]
    pub call: Option<u64>,
    /// The tool's call.
    #[serde(default)]
    pub tool: Option<String>,
    /// The tool.
    #[serde(default)]
    pub name: Option<String>,
    /// Since when: seconds since the session began.
    #[serde(default)]
    pub since: f64,
}

impl Activity {
    /// Whether a person's word is waited for.
    pub fn is_approval(&self) -> bool {
        self.what == "approval"
    }
}

/// `{approvals}`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Approvals {
    /// The oldest first.
    pub approvals: Vec<Approval>,
}

/// `Approval`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Approval {
    /// Who asks.
    pub agent: AgentName,
    /// The call.
    pub tool: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub input: Value,
    /// Whether they are not given whole.
    #[serde(default)]
    pub truncated: bool,
    /// The rule that "always" stands for.
    #[serde(default)]
    pub always: String,
    /// Since when: in the session's time.
    #[serde(default)]
    pub since: Micros,
}

/// The process's health.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Health {
    /// What agents may do unasked, and what holds their commands.
    #[serde(default)]
    pub safety: String,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct LastEnd {
    /// How it ended.
    pub outcome: Outcome,
}

/// `Receipt`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Receipt {
    /// The message.
    pub id: String,
    /// The receiver.
    pub to: String,
    /// Where it stands.
    pub state: State,
    /// Where it came into the conversation.
    #[serde(default)]
    pub point: Option<Point>,
    /// The receiver's run then.
    #[serde(default)]
    pub run: u64,
    /// The turn of it.
    #[serde(default)]
    pub turn: u32,
    /// The model call that it was sent with, or that was answered.
    #[serde(default)]
    pub call: Option<u64>,
    /// The calls that were skipped for it.
    #[serde(default)]
    pub skipped: Vec<Arc<str>>,
    /// The calls that were interrupted for it.
    #[serde(default)]
    pub interrupted: Vec<Arc<str>>,
    /// Why it was returned.
    #[serde(default)]
    pub reason: Option<ReturnReason>,
    /// The message that it was to replace had been read, or had acted, before.
    #[serde(default)]
    pub too_late_to_supersede: bool,
}

/// The states of a receipt (semantics.md, section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// In the mailbox.
    Queued,
    /// In the conversation.
    Injected,
    /// With the model.
    Sent,
    /// The model has replied after it.
    Answered,
    /// It will never be injected.
    Returned,
}

/// A receipt or a refusal.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Delivery {
    /// It was accepted.
    Accepted(Receipt),
    /// It was not.
    Refused(Problem),
}

/// The answer of a wait.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Waited {
    /// Whether the state was reached.
    pub reached: bool,
    /// Where the message stands.
    pub receipt: Receipt,
}

/// `Stopped`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Stopped {
    /// The agents whose run was stopped.
    #[serde(default)]
    pub stopped: Vec<String>,
    /// A person's mail that waits for the next run.
    #[serde(default)]
    pub still_queued: Vec<String>,
    /// What there is to say besides.
    #[serde(default)]
    pub note: Option<String>,
}

/// The answer of a withdraw.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Withdrawn {
    /// From how many mailboxes it came back.
    pub returned: u64,
}

/// What a branch changed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Diff {
    /// The branch.
    pub branch: String,
    /// As `git diff` has it.
    pub patch: String,
    /// Whether the patch was too long to be given whole.
    #[serde(default)]
    pub truncated: bool,
}

/// What became of a merge.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Merged {
    /// How it went.
    pub result: MergeResult,
    /// The commit that HEAD is now.
    #[serde(default)]
    pub commit: Option<String>,
    /// The files that conflict.
    #[serde(default)]
    pub files: Vec<String>,
    /// What is in the way.
    #[serde(default)]
    pub reason: Option<String>,
}

/// How a merge went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeResult {
    /// The branch is in.
    Merged,
    /// It was in already.
    UpToDate,
    /// Files conflict; nothing was changed.
    Conflicts,
    /// Something is in the way; nothing was changed.
    Refused,
}

/// The answer of a resume.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Resumed {
    /// The agents that work now.
    pub resumed: Vec<String>,
}

/// The answer of an agent's resume.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Started {
    /// Whether a run starts.
    pub started: bool,
    /// Why none does.
    #[serde(default)]
    pub note: Option<String>,
}
