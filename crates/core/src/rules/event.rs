//! The event vocabulary: one wire format for replay, run, the server's stream and the
//! journal (scenarios.md, section 4). This file is the only place that defines it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approval::Decision;
use super::compaction::Purpose;
pub use super::compaction::Sizes;
use super::conversation::{ToolStatus, Usage};
use super::ending::InterruptReason;
pub use super::ending::Outcome;
use super::id::{AgentName, CallId, MessageId, RunId, SessionId, TurnId};
use super::mail::{Point, ReturnReason, Role, Urgency};
use super::settings::LimitsPatch;
use super::time::{Micros, Span};
use super::words::words;

/// The version of the vocabulary.
pub const VERSION: u32 = 1;

/// A purpose as events have it: a turn's is not told.
fn told_purpose(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "enum": [Purpose::Summary]})
}

/// Something that happened, as it is recorded and told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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

/// The JSON Schema of what is told of a session, one object a line: what is recorded, and what is told only
/// while it happens, which has an `n` (scenarios.md, section 4).
pub fn schema() -> Value {
    #[derive(schemars::JsonSchema)]
    #[serde(untagged)]
    #[schemars(title = "Midturn event")]
    #[expect(dead_code, reason = "it is read as a type only")]
    enum Told {
        Recorded(Box<Event>),
        Live(Box<LiveEvent>),
    }
    schemars::schema_for!(Told).to_value()
}

/// What started a run: a word, or the ids of messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", expecting = "expected `prompt` or the ids of messages")]
#[schemars(inline)]
pub enum Trigger {
    /// The agent's prompt.
    Prompt,
    /// Messages; none when somebody resumed it.
    #[serde(untagged)]
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

words! {
    /// How far a stop reaches.
    #[derive(Default)]
    pub enum Scope {
        /// One agent; its children go on.
        #[default]
        Agent = "agent",
        /// The agent and all below it.
        Subtree = "subtree",
    }
}

words! {
    /// Why a run was asked to end (semantics.md, section 6).
    #[derive(Default)]
    pub enum Halt {
        /// Somebody stopped it. Events of earlier versions don't tell the four apart.
        #[default]
        Stop = "stop",
        /// A person stopped it and started anew.
        Supersede = "supersede",
        /// Its agent is closed.
        Close = "close",
        /// The process ends.
        Shutdown = "shutdown",
    }
}

/// What is only told while it happens and not recorded piece by piece: it carries the `seq`
/// of the event before it and a counter of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LiveEvent {
    /// The version of the vocabulary.
    pub v: u32,
    /// The `seq` of the event before it.
    pub seq: u64,
    /// Counts the live events.
    pub n: u64,
    /// When: since the session began.
    pub t: Micros,
    /// Whom it concerns.
    #[serde(flatten)]
    pub at: Place,
    /// What was said.
    #[serde(flatten)]
    pub kind: LiveKind,
}

/// The kinds of live event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are those of the table in scenarios.md, section 4")]
pub enum LiveKind {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        text: String,
    },
    CallDelta {
        tool: CallId,
        name: Arc<str>,
        bytes: u64,
    },
    ToolOutput {
        tool: CallId,
        text: String,
    },
    /// What makes the agent's folder ready prints, before the first call of its model.
    SetupOutput {
        text: String,
    },
}

impl LiveKind {
    /// The text that goes on; none of a call's arguments, which are only counted.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::TextDelta { text }
            | Self::ThinkingDelta { text }
            | Self::ToolOutput { text, .. }
            | Self::SetupOutput { text } => Some(text),
            Self::CallDelta { .. } => None,
        }
    }

    /// The same, to be changed.
    pub fn text_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::TextDelta { text }
            | Self::ThinkingDelta { text }
            | Self::ToolOutput { text, .. }
            | Self::SetupOutput { text } => Some(text),
            Self::CallDelta { .. } => None,
        }
    }

    /// The word in the field `type`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::TextDelta { .. } => "text_delta",
            Self::ThinkingDelta { .. } => "thinking_delta",
            Self::CallDelta { .. } => "call_delta",
            Self::ToolOutput { .. } => "tool_output",
            Self::SetupOutput { .. } => "setup_output",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_trigger_is_told_what_one_is() {
        let read = |json: &str| serde_json::from_str::<Trigger>(json);
        assert_eq!(read(r#""prompt""#).unwrap(), Trigger::Prompt);
        assert_eq!(read(r#"["m"]"#).unwrap(), Trigger::Mail(vec![MessageId::new("m")]));
        assert_eq!(serde_json::to_string(&Trigger::Mail(Vec::new())).unwrap(), "[]");
        let error = read(r#""mail""#).unwrap_err();
        assert!(error.to_string().starts_with("expected `prompt` or the ids of messages"), "{error}");
    }
}
