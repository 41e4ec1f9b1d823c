//! The event vocabulary: one wire format for replay, run, the server's stream and the
//! journal (scenarios.md, section 4). This file and `event/live.rs` are the only place that
//! defines it.

mod live;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approval::Decision;
use super::compaction::Purpose;
use super::conversation::{InterruptReason, ToolStatus, Usage};
use super::id::{AgentName, CallId, MessageId, RunId, SessionId, TurnId};
use super::mail::{Point, ReturnReason, Role, Urgency};
use super::settings::LimitsPatch;
use super::time::{Micros, Span};

pub use self::live::{LiveEvent, LiveKind};

/// The version of the vocabulary.
pub const VERSION: u32 = 1;

/// A purpose as events have it: a turn's is not told.
fn told_purpose(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "enum": [Purpose::Summary]})
}

/// Something that happened, as it is recorded and told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The version of the vocabulary.
    pub v: u32,
    /// Counts the session's events without gaps, from 1.
    pub seq: u64,
    /// When: since the session began.
    pub t: Micros,
    /// Whom it concerns; the receiver in message events.
    #[serde(flatten)]
    pub at: Place,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Whom an event concerns and in which run and turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Place {
    /// The agent; none for events of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// Its current run, or its last one when it is idle; 0 before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The turn within the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
}

impl Place {
    /// A place in an agent's run.
    pub fn of(agent: &AgentName, run: RunId, turn: TurnId) -> Self {
        Self { agent: Some(agent.clone()), run: Some(run), turn: Some(turn) }
    }
}

/// What started a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The agent's prompt.
    Prompt,
    /// Messages; none when somebody resumed it.
    Mail(Vec<MessageId>),
}

impl Trigger {
    /// What kind of thing it is.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Mail(ids) if ids.is_empty() => "resume",
            Self::Mail(_) => "message",
        }
    }
}

impl Serialize for Trigger {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Prompt => serializer.serialize_str("prompt"),
            Self::Mail(ids) => ids.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Trigger {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Word(String),
            Ids(Vec<MessageId>),
        }
        match Form::deserialize(deserializer)? {
            Form::Word(word) if word == "prompt" => Ok(Self::Prompt),
            Form::Word(word) => Err(serde::de::Error::custom(format!("`{word}` is not a trigger"))),
            Form::Ids(ids) => Ok(Self::Mail(ids)),
        }
    }
}

impl schemars::JsonSchema for Trigger {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Trigger".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let ids = generator.subschema_for::<Vec<MessageId>>();
        schemars::json_schema!({"anyOf": [{"const": "prompt"}, ids]})
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing more to do.
    Finished,
    /// Stopped by a person, an ancestor or a shutdown.
    Stopped,
    /// An error.
    Failed,
    /// A limit.
    Limit,
}

impl Outcome {
    /// The word of the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Limit => "limit",
        }
    }
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanStep {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub status: PlanStatus,
}

/// How far a step of a plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not begun.
    Pending,
    /// Under way.
    InProgress,
    /// Done.
    Completed,
    /// Its run was cut off before it was done.
    Skipped,
}

/// How a thinking block ended (semantics.md, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingState {
    /// Whole.
    Completed,
    /// Cut.
    Interrupted,
    /// Cut by a supersede.
    Cancelled,
    /// Cut by an error.
    Error,
}

/// A call as `model_finished` names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CallRef {
    /// The call.
    pub id: CallId,
    /// The tool.
    pub name: Arc<str>,
    /// Its arguments; events of earlier versions have none.
    #[serde(default)]
    pub input: Value,
}

/// How large a prompt was before a compaction and is after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sizes {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

/// The kinds of event, each with its fields (scenarios.md, section 4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are those of the table in scenarios.md, section 4")]
pub enum EventKind {
    SessionStarted {
        session: SessionId,
        version: Arc<str>,
        virtual_time: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scenario: Option<Arc<str>>,
    },
    SessionResumed {
        version: Arc<str>,
    },
    AgentSpawned {
        parent: Option<AgentName>,
        role: Role,
        model: Option<Arc<str>>,
        #[serde(default)]
        prompt: Option<Arc<str>>,
    },
    RunStarted {
        trigger: Trigger,
    },
    ModelStarted {
        call: u64,
        messages: u64,
        #[serde(default, skip_serializing_if = "Purpose::is_turn")]
        #[schemars(schema_with = "told_purpose")]
        purpose: Purpose,
    },
    ModelFinished {
        stop_reason: Arc<str>,
        usage: Usage,
        text: String,
        thinking: Vec<ThinkingState>,
        tools: Vec<CallRef>,
        #[serde(default, skip_serializing_if = "Purpose::is_turn")]
        #[schemars(schema_with = "told_purpose")]
        purpose: Purpose,
    },
    ModelInterrupted {
        reason: InterruptReason,
        text: String,
        thinking: Vec<ThinkingState>,
        partial_tokens: u64,
    },
    ModelRetry {
        attempt: u32,
        error: String,
        wait: Span,
    },
    ToolStarted {
        tool: CallId,
        name: Arc<str>,
        input: Value,
        batch: u32,
    },
    ToolFinished {
        tool: CallId,
        name: Arc<str>,
        status: ToolStatus,
        is_error: bool,
        bytes: u64,
        output: String,
    },
    MessageQueued {
        message: MessageId,
        from: String,
        urgency: Urgency,
        text: Arc<str>,
    },
    MessageRefused {
        message: MessageId,
        from: String,
        reason: Arc<str>,
    },
    MessageInjected {
        messages: Vec<MessageId>,
        point: Point,
        text: Arc<str>,
        skipped: Arc<[CallId]>,
        interrupted: Arc<[CallId]>,
    },
    MessageReturned {
        message: MessageId,
        reason: ReturnReason,
    },
    StopRequested {
        by: String,
        scope: Scope,
        #[serde(default)]
        reason: Halt,
        still_queued: Vec<MessageId>,
    },
    PlanUpdated {
        steps: Vec<PlanStep>,
    },
    ApprovalRequested {
        tool: CallId,
        name: Arc<str>,
        input: Value,
        /// The rule that "always" would stand for.
        always: Arc<str>,
    },
    ApprovalResolved {
        tool: CallId,
        decision: Decision,
        by: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    LimitRaised {
        by: String,
        limits: LimitsPatch,
    },
    Compacted {
        messages: Sizes,
        tokens: Sizes,
    },
    RunFinished {
        outcome: Outcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Arc<str>>,
        turns: TurnId,
        usage: Usage,
    },
    AgentClosed {},
}

impl EventKind {
    /// Whether it happens only in a run that is under way: of one that is over it changes
    /// nothing. What somebody else does to an agent (mail, a stop, a close) has no run.
    pub fn is_of_run(&self) -> bool {
        match self {
            Self::RunStarted { .. }
            | Self::ModelStarted { .. }
            | Self::ModelFinished { .. }
            | Self::ModelInterrupted { .. }
            | Self::ModelRetry { .. }
            | Self::ToolStarted { .. }
            | Self::ToolFinished { .. }
            | Self::MessageInjected { .. }
            | Self::ApprovalRequested { .. }
            | Self::ApprovalResolved { .. }
            | Self::Compacted { .. }
            | Self::RunFinished { .. } => true,
            Self::SessionStarted { .. }
            | Self::SessionResumed { .. }
            | Self::AgentSpawned { .. }
            | Self::MessageQueued { .. }
            | Self::MessageRefused { .. }
            | Self::MessageReturned { .. }
            | Self::StopRequested { .. }
            | Self::PlanUpdated { .. }
            | Self::LimitRaised { .. }
            | Self::AgentClosed {} => false,
        }
    }

    /// The word in the field `type`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::SessionStarted { .. } => "session_started",
            Self::SessionResumed { .. } => "session_resumed",
            Self::AgentSpawned { .. } => "agent_spawned",
            Self::RunStarted { .. } => "run_started",
            Self::ModelStarted { .. } => "model_started",
            Self::ModelFinished { .. } => "model_finished",
            Self::ModelInterrupted { .. } => "model_interrupted",
            Self::ModelRetry { .. } => "model_retry",
            Self::ToolStarted { .. } => "tool_started",
            Self::ToolFinished { .. } => "tool_finished",
            Self::MessageQueued { .. } => "message_queued",
            Self::MessageRefused { .. } => "message_refused",
            Self::MessageInjected { .. } => "message_injected",
            Self::MessageReturned { .. } => "message_returned",
            Self::StopRequested { .. } => "stop_requested",
            Self::PlanUpdated { .. } => "plan_updated",
            Self::ApprovalRequested { .. } => "approval_requested",
            Self::ApprovalResolved { .. } => "approval_resolved",
            Self::LimitRaised { .. } => "limit_raised",
            Self::Compacted { .. } => "compacted",
            Self::RunFinished { .. } => "run_finished",
            Self::AgentClosed {} => "agent_closed",
        }
    }
}

/// How far a stop reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// One agent; its children go on.
    #[default]
    Agent,
    /// The agent and all below it.
    Subtree,
}

impl Scope {
    /// The word of the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Subtree => "subtree",
        }
    }
}

/// Why a run was asked to end (semantics.md, section 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Halt {
    /// Somebody stopped it. Events of earlier versions don't tell the four apart.
    #[default]
    Stop,
    /// A person stopped it and started anew.
    Supersede,
    /// Its agent is closed.
    Close,
    /// The process ends.
    Shutdown,
}

impl Halt {
    /// The word of the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Supersede => "supersede",
            Self::Close => "close",
            Self::Shutdown => "shutdown",
        }
    }
}
