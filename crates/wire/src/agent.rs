//! Agents, their plans and their conversations.

use std::sync::Arc;

use midturn_core::engine::ports::archive::{AgentJournal, ChatMessage as Row};
use midturn_core::engine::ports::store::RunEnd;
use midturn_core::engine::{self, ActivityKind, AgentStatus};
use midturn_core::rules::conversation::{self, InterruptReason};
use midturn_core::rules::event::{self, Outcome as CoreOutcome};
use midturn_core::rules::id::{AgentName, CallId};
use midturn_core::rules::limits::Money;
use midturn_core::rules::mail::{Rest, Role as CoreRole, Standing};
use midturn_core::rules::time::Micros;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::text::{Number, Text};
use crate::work::Conflict;

/// An agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// Its name.
    #[schema(value_type = String)]
    pub name: AgentName,
    /// Lead or subagent.
    pub role: Role,
    /// Its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub parent: Option<AgentName>,
    /// Its model; without one it is a name only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub model: Option<String>,
    /// What it is doing.
    pub state: State,
    /// Its current run, or the last one; 0 before the first.
    pub run: u64,
    /// The turn of that run.
    pub turn: u32,
    /// The limit that it, or its session, has reached: nobody wakes it until a person raises it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "max_turns")]
    pub limit: Option<String>,
    /// How much of it is used, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "max_turns: 60 of 60 turns are used")]
    pub limit_used: Option<String>,
    /// How many messages wait in its mailbox.
    pub pending: u64,
    /// What is under way.
    pub activity: Vec<Activity>,
    /// Tokens read and written in all its runs.
    pub tokens: u64,
    /// The same, by kind.
    #[serde(default)]
    pub usage: Usage,
    /// What they have cost, in US dollars. Absent where nobody has said what its model costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false, example = "0.38")]
    pub cost: Option<Money>,
    /// The day whose prices `cost` is counted with, where they are out of Midturn's table; absent where a person has
    /// said what the model costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "2026-10-20")]
    pub priced_at: Option<String>,
    /// How full its model's context is.
    #[serde(default)]
    pub context: Context,
    /// The branch it works on, if it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub branch: Option<String>,
    /// The last merge of its branch, where that conflicted and none has gone through since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub conflict: Option<Conflict>,
    /// How its last run that ended did so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_end: Option<LastEnd>,
    /// Its plan.
    pub plan: Vec<Step>,
}

/// An agent that was just added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Spawned {
    /// The agent.
    #[serde(flatten)]
    pub agent: Agent,
    /// That it shares a folder with the others of its session, and why: where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub shared: Option<String>,
}

mirror! {
    /// Lead or subagent.
    pub enum Role of CoreRole {
        /// The agent a person talks to.
        Lead,
        /// An agent that was spawned.
        Subagent,
    }
}

/// What model calls have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Tokens read, those from the provider's cache among them.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from the provider's cache.
    pub cached: u64,
}

impl From<conversation::Usage> for Usage {
    fn from(usage: conversation::Usage) -> Self {
        let conversation::Usage { input, output, cached } = usage;
        Self { input, output, cached }
    }
}

/// How full a model's context is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Context {
    /// How many tokens the conversation holds, as the provider counted them last; 0 before that.
    pub used: u64,
    /// How many it may hold. Absent where nobody has said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub limit: Option<u64>,
}

impl Context {
    fn new(used: u64, limit: u64) -> Self {
        Self { used, limit: Some(limit).filter(|limit| *limit > 0) }
    }
}

/// What an agent is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A run is under way.
    Running,
    /// A run is ending: its last calls end.
    Ending,
    /// It waits for mail from anybody.
    Idle,
    /// It was stopped: a person, an ancestor or a resume wakes it.
    Stopped,
    /// It is closed: mail to it is returned.
    Closed,
    /// Its session is only stored, and its run was cut off: it goes on when the session is resumed.
    Suspended,
    /// A word of a newer version. It is read and never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// Something under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Activity {
    /// A model call, a tool call, or the wait for a person's word on one.
    pub what: What,
    /// The number of the model call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub call: Option<u64>,
    /// The id of the tool call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tool: Option<String>,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<String>,
    /// Since when: seconds since the session began.
    #[schema(value_type = f64)]
    pub since: Micros,
    /// Until when, where that is known: seconds since the session began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false)]
    pub until: Option<Micros>,
    /// Of a model call that is to be tried again: the number of that attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub attempt: Option<u32>,
}

/// What can be under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A model call.
    Model,
    /// A tool call.
    Tool,
    /// A tool call that a person is asked about.
    Approval,
    /// A slot for a tool call: as many commands run as may at once.
    Slot,
    /// What others hold of the session's budget.
    Budget,
    /// The time until a model call that failed is tried again.
    Retry,
    /// A word of a newer version. It is read and never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LastEnd {
    /// The run.
    pub run: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The answer, the error, or the report on a stopped run.
    pub text: String,
}

mirror! {
    /// How a run ended.
    pub enum Outcome of CoreOutcome {
        /// Nothing more to do.
        Finished,
        /// Stopped by a person, an ancestor or a shutdown.
        Stopped,
        /// An error.
        Failed,
        /// A limit.
        Limit,
    }
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Step {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub status: StepStatus,
}

mirror! {
    /// How far a step is.
    pub enum StepStatus of event::PlanStatus {
        /// Not begun.
        Pending,
        /// Under way.
        InProgress,
        /// Done.
        Completed,
        /// Its run was cut off before it was done.
        Skipped,
    }
}

impl From<AgentStatus> for Agent {
    fn from(status: AgentStatus) -> Self {
        Self {
            name: status.name,
            role: status.role.into(),
            parent: status.parent,
            model: status.model.map(|model| model.to_string()),
            state: status.standing.into(),
            run: status.run,
            turn: status.turn,
            limit: status.limit.map(str::to_owned),
            limit_used: status.limit_used,
            pending: status.pending as u64,
            activity: status.activity.into_iter().map(Activity::from).collect(),
            tokens: status.usage.total(),
            usage: status.usage.into(),
            cost: status.cost,
            priced_at: status.priced_at.map(str::to_owned),
            context: Context::new(status.context, status.context_tokens),
            branch: status.branch,
            conflict: status.conflict.map(Conflict::from),
            last_end: status.last_end.as_ref().map(LastEnd::from),
            plan: steps(&status.plan),
        }
    }
}

impl Agent {
    /// An agent of a session that is only stored; `pending` is how many messages wait for it.
    pub fn stored(journal: &AgentJournal, pending: u64) -> Self {
        let last = journal.last_end.as_ref().map(|(end, _)| end);
        let is_shut = last.is_some_and(|end| end.reason == Some(InterruptReason::Shutdown));
        let state = match last {
            _ if journal.stands.closed.is_asked() => State::Closed,
            _ if journal.is_open() || is_shut => State::Suspended,
            Some(end) if end.outcome == CoreOutcome::Stopped => State::Stopped,
            _ => State::Idle,
        };
        let turn =
            journal.rows.iter().rev().find(|row| row.run == journal.stands.run).map_or(0, |row| row.turn);
        let usage = journal.usage(|_| true);
        Self {
            name: journal.record.name.clone(),
            role: journal.record.role.into(),
            parent: journal.record.parent.clone(),
            model: journal.record.model.as_ref().map(ToString::to_string),
            state,
            run: journal.stands.run,
            turn,
            limit: None,
            limit_used: None,
            pending,
            activity: Vec::new(),
            tokens: usage.total(),
            usage: usage.into(),
            cost: None,
            priced_at: None,
            context: Context::new(journal.context(), journal.record.settings.context_tokens),
            branch: last.and_then(|end| end.changes.branch.clone()),
            conflict: None,
            last_end: last.map(LastEnd::from),
            plan: steps(&journal.stands.plan),
        }
    }
}

/// A plan as the wire has it.
pub fn steps(plan: &[event::PlanStep]) -> Vec<Step> {
    plan.iter().map(|step| Step { text: step.text.clone(), status: step.status.into() }).collect()
}

impl From<Standing> for State {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::Running => Self::Running,
            Standing::Winding { .. } => Self::Ending,
            Standing::Resting(Rest::Idle) => Self::Idle,
            Standing::Resting(Rest::Stopped) => Self::Stopped,
            Standing::Resting(Rest::Closed) => Self::Closed,
        }
    }
}

impl Activity {
    pub(crate) fn bare(what: What, since: Micros) -> Self {
        Self { what, call: None, tool: None, name: None, since, until: None, attempt: None }
    }
}

impl From<engine::Activity> for Activity {
    fn from(activity: engine::Activity) -> Self {
        let bare = |what| Self::bare(what, activity.since);
        let of_call = |what, id: CallId, name: Arc<str>| Self {
            tool: Some(id.to_string()),
            name: Some(name.to_string()),
            ..bare(what)
        };
        match activity.what {
            ActivityKind::Model(call) => Self { call: Some(call), ..bare(What::Model) },
            ActivityKind::Budget => bare(What::Budget),
            ActivityKind::Retry { until, attempt } => {
                Self { until: Some(until), attempt: Some(attempt), ..bare(What::Retry) }
            }
            ActivityKind::Tool { id, name } => of_call(What::Tool, id, name),
            ActivityKind::Slot { id, name } => of_call(What::Slot, id, name),
            ActivityKind::Approval { id, name } => of_call(What::Approval, id, name),
        }
    }
}

impl From<&RunEnd> for LastEnd {
    fn from(end: &RunEnd) -> Self {
        Self { run: end.run, outcome: end.outcome.into(), text: end.text.to_string() }
    }
}

/// The agents of a session, in its order.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Agents {
    /// The agents.
    pub agents: Vec<Agent>,
    /// The number of the last event that this knows of.
    #[serde(default)]
    pub as_of: u64,
}

/// An agent somebody asks for.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAgent {
    /// Its name: `[a-z0-9][a-z0-9_-]{0,63}`, and not `user`, `parent` or `all`.
    pub name: Text,
    /// What starts its first run; without one it is idle until mail comes.
    pub prompt: Option<Text>,
    /// The definition it is made of.
    pub agent: Option<Text>,
    /// Whose child it is; the lead's without it.
    pub parent: Option<Text>,
}

/// A plan.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Plan {
    /// Its steps.
    pub steps: Vec<Step>,
}

/// Which part of a conversation.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ConversationQuery {
    /// The rows after this number; 0, the beginning, without it.
    #[serde(default, deserialize_with = "crate::work::number")]
    #[param(value_type = Option<Number>, nullable = false)]
    pub after: Option<u64>,
    /// The last rows before this number; not beside `after`.
    #[serde(default, deserialize_with = "crate::work::number")]
    #[param(value_type = Option<Number>, nullable = false)]
    pub before: Option<u64>,
    /// How many at most: 1 to 1,000; 200 without it.
    #[serde(default, deserialize_with = "crate::work::number")]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000, nullable = false)]
    pub limit: Option<u64>,
}

/// A part of a conversation.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Conversation {
    /// Its rows, in order.
    pub messages: Vec<ChatMessage>,
    /// What to give as `after` for the part that follows; absent when nothing follows yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next: Option<u64>,
    /// What to give as `before` for the part that comes before; absent when none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub previous: Option<u64>,
    /// The number of the last event that this knows of.
    pub as_of: u64,
}

/// A row of a conversation (docs/store.md).
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChatMessage {
    /// Its place: 1, 2, 3 …
    pub seq: u64,
    /// In which run.
    pub run: u64,
    /// `user`, `assistant` or `tool`.
    pub role: String,
    /// `user`, `assistant`, `assistant_interrupted`, `summary`, `summary_unused`, `tool_result` or
    /// `tool_partial`.
    pub message_type: String,
    /// The text.
    pub content: String,
    /// The tool, in a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tool_name: Option<String>,
    /// The call, in a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tool_call_id: Option<String>,
    /// The result, structured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_result: Option<Value>,
    /// What else belongs to it (semantics.md, section 6).
    pub metadata: Value,
    /// When: seconds since 1970.
    #[schema(value_type = f64)]
    pub created_at: Micros,
}

impl From<Row> for ChatMessage {
    fn from(row: Row) -> Self {
        Self {
            seq: row.seq,
            run: row.run,
            role: row.role,
            message_type: row.message_type,
            content: row.content,
            tool_name: row.tool_name,
            tool_call_id: row.tool_call_id,
            tool_result: row.tool_result,
            metadata: row.metadata,
            created_at: Micros(row.created_at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The process that answers may be newer than whoever asks; and nobody writes such a word.
    #[test]
    fn words_of_a_newer_version_are_read_and_never_written() {
        assert_eq!(serde_json::from_str::<State>("\"dreaming\"").unwrap(), State::Unknown);
        assert_eq!(serde_json::from_str::<What>("\"dream\"").unwrap(), What::Unknown);
        assert!(serde_json::to_string(&State::Unknown).is_err());
        assert!(serde_json::to_string(&What::Unknown).is_err());
    }
}
