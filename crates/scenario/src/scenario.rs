//! A scenario after all checks: what the player plays and the expectations ask for. Whoever
//! holds one knows that every name in it is known and every combination has a meaning.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use midturn_core::engine::Message;
pub use midturn_core::engine::scripted::Anchor;
use midturn_core::engine::scripted::ScriptedReply;
use midturn_core::rules::approval::{Policy, Rule};
use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{Outcome, Scope};
use midturn_core::rules::id::{AgentName, CallId, MessageId, RunId, TurnId};
use midturn_core::rules::mail::{Point, ReturnReason, Role, Sender};
use midturn_core::rules::settings::{LimitsPatch, SettingsPatch};
use midturn_core::rules::time::{Micros, Span};

use crate::error::{Place, Source};
use crate::values::{Absent, At, Texts};

/// What begins the refusal of a spawn whose agent the file doesn't have.
pub(crate) const ABSENT: &str = "the scenario has no agent";

/// A scenario (scenarios.md, section 1).
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The file it came from, for errors and failures.
    pub source: Source,
    /// The claim, in a few words; the path when the file gives none.
    pub name: String,
    /// Settings for all agents.
    pub settings: SettingsPatch,
    /// Simulated or real tools.
    pub tools: Tools,
    /// What is asked about, and whether anybody is there to answer.
    pub approvals: Approvals,
    /// The agents, parents before their children.
    pub agents: Vec<Agent>,
    /// Messages and other actions, in the file's order.
    pub items: Vec<Item>,
    /// What must come of it.
    pub expect: Vec<Expectation>,
}

/// Where tool calls run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tools {
    /// Nowhere; the script says what they give.
    Simulated,
    /// In worktrees of this repository, on the real clock.
    Real(Workspace),
}

/// What a scenario has of approvals.
#[derive(Clone, Debug, Default)]
pub struct Approvals {
    /// What runs unasked, what is asked about, what never runs.
    pub policy: Policy,
    /// Whether somebody is attached who could answer.
    pub attached: bool,
}

/// What a replay with real tools works on. Relative paths are relative to the file's folder.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", expecting = "expected a folder's path or {clone: PATH}")]
#[schemars(inline)]
pub enum Workspace {
    /// A git repository to clone.
    Clone(PathBuf),
    /// A folder beside the file, copied to a temporary git repository.
    #[serde(untagged)]
    Folder(PathBuf),
}

/// An agent of a scenario.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its name.
    pub name: AgentName,
    /// Lead or subagent.
    pub role: Role,
    /// Its parent.
    pub parent: Option<AgentName>,
    /// What starts its first run.
    pub prompt: Option<String>,
    /// When it begins.
    pub start: Start,
    /// Settings over the scenario's.
    pub settings: SettingsPatch,
    /// Its model's answers; `None`: it is a name only.
    pub model: Option<Arc<[ScriptedReply]>>,
    /// Where it stands in the file.
    pub place: Place,
}

/// When an agent begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// When the replay begins.
    #[default]
    AtOnce,
    /// When a `spawn_agent` call names it.
    Spawned,
}

/// A message or another action.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its id: the file's own, or a counter for messages (`m1`, `m2` …).
    pub id: Option<MessageId>,
    /// When it happens.
    pub when: When,
    /// What is done.
    pub act: Act,
    /// Where it stands in the file.
    pub place: Place,
}

/// When an item happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// So long after an event. An instant is so long after the session's beginning.
    After(Anchor, Span),
    /// With an event, and before anything else is recorded: the process ends then.
    Upon(Anchor),
}

impl When {
    /// At an instant.
    pub fn at(at: Micros) -> Self {
        Self::After(beginning(), Span(at.0))
    }
}

/// The event with which a session begins.
pub(crate) fn beginning() -> Anchor {
    Anchor { agent: None, event: "session_started", id: None }
}

/// What an item does.
#[derive(Clone, Debug)]
pub enum Act {
    /// Sends a message. Its id is the item's.
    Send(Message),
    /// Stops an agent's run.
    Stop {
        /// Whose.
        agent: AgentName,
        /// Who stops it.
        by: Sender,
        /// How far it reaches.
        scope: Scope,
    },
    /// Stops an agent's run and starts a new one with a text.
    Supersede {
        /// Whose.
        agent: AgentName,
        /// Who does it.
        by: Sender,
        /// The new run's message.
        text: String,
    },
    /// Starts an agent that rests with work unfinished.
    Resume {
        /// Which; `None` is all of them.
        agent: Option<AgentName>,
        /// Who wakes it.
        by: Sender,
    },
    /// Closes an agent and all below it.
    Close {
        /// Which.
        agent: AgentName,
        /// Who closes it.
        by: Sender,
    },
    /// Takes a message back.
    Withdraw {
        /// Which.
        message: MessageId,
        /// Who takes it back.
        by: Sender,
    },
    /// Answers a request for approval, as a person.
    Answer {
        /// Whose request.
        agent: AgentName,
        /// The call it is about.
        tool: CallId,
        /// The answer.
        says: Says,
    },
    /// Raises or lowers limits, as a person.
    Raise {
        /// Whose; `None` are the session's.
        whose: Option<AgentName>,
        /// What they are from then on.
        limits: LimitsPatch,
    },
    /// The process ends as it stands.
    Crash {
        /// The session is taken up so much later.
        back_after: Span,
    },
    /// The process ends in good order.
    ShutDown {
        /// The session is taken up so much later than all has ended.
        back_after: Span,
    },
}

impl Act {
    /// Whether it ends the process.
    pub fn ends_process(&self) -> bool {
        matches!(self, Self::Crash { .. } | Self::ShutDown { .. })
    }
}

/// A person's answer in a scenario.
#[derive(Clone, Debug)]
pub enum Says {
    /// The call may run.
    Once,
    /// It may, and all that the rule allows; `None`: the rule that the request offers.
    Session(Option<Rule>),
    /// It may not, for this reason.
    Denied(Option<String>),
}

/// What must come of a scenario, and where the file says so.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// Where it stands in the file.
    pub place: Place,
    /// What is claimed.
    pub claim: Claim,
}

/// A claim about a replay.
#[derive(Clone, Debug)]
pub enum Claim {
    /// About a run of an agent.
    Run(RunClaim),
    /// About a message.
    Message(MessageClaim),
    /// About what a model was given.
    Prompt(PromptClaim),
    /// An event with these fields happens at least once.
    Event(Pattern),
    /// An event with these fields never happens.
    Never(Pattern),
    /// About a file in an agent's worktree.
    File(FileClaim),
}

/// A claim about a run of an agent, and about the agent's calls.
#[derive(Clone, Debug)]
pub struct RunClaim {
    /// Whose.
    pub agent: AgentName,
    /// Which run; `None` is the last.
    pub run: Option<RunId>,
    /// How it ended.
    pub outcome: Option<Ended>,
    /// What its error contains.
    pub error: Option<String>,
    /// How many model calls it made.
    pub model_calls: Option<u64>,
    /// When it ended.
    pub ends_at: Option<Micros>,
    /// How many turns it had.
    pub turns: Option<TurnId>,
    /// What became of the agent's calls.
    pub tools: Vec<(CallId, ToolStatus)>,
}

impl RunClaim {
    /// Whether it says anything of the run itself, and not of its calls only.
    pub fn is_about_the_run(&self) -> bool {
        self.outcome.is_some()
            || self.error.is_some()
            || self.model_calls.is_some()
            || self.ends_at.is_some()
            || self.turns.is_some()
    }
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Outcome")]
pub enum Ended {
    /// Nothing more to do.
    Finished,
    /// Stopped.
    Stopped,
    /// An error.
    Failed,
    /// A limit.
    Limit,
    /// Not at all: the replay ended while it waited.
    Waiting,
}

impl From<Outcome> for Ended {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Finished => Self::Finished,
            Outcome::Stopped => Self::Stopped,
            Outcome::Failed => Self::Failed,
            Outcome::Limit => Self::Limit,
        }
    }
}

/// A claim about a message.
#[derive(Clone, Debug)]
pub struct MessageClaim {
    /// Which.
    pub message: MessageId,
    /// As this agent received it; `None` is every receiver.
    pub to: Option<AgentName>,
    /// It was injected there and then.
    pub injected: Option<InjectedClaim>,
    /// It was returned for this reason.
    pub returned: Option<ReturnReason>,
    /// It was refused for this reason.
    pub refused: Option<String>,
    /// Whether it is still queued at the end.
    pub queued: Option<bool>,
}

/// Where a message was injected.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Injected")]
pub struct InjectedClaim {
    /// The point.
    pub point: Option<Point>,
    /// The receiver's run.
    pub run: Option<RunId>,
    /// The turn it closed; 0 at `start`.
    pub turn: Option<TurnId>,
    /// When.
    pub at: Option<Span>,
}

/// A claim about what a model was given.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Prompt")]
pub struct PromptClaim {
    /// Whose model.
    pub agent: At<String>,
    /// Which call: 1, 2 … per agent; the last by default.
    pub call: Option<u64>,
    /// Texts that the last message contains.
    pub last_message_contains: Option<Texts>,
    /// How many messages it has.
    pub messages: Option<u64>,
}

/// Fields of an event.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The type.
    pub event: &'static str,
    /// The agent.
    pub agent: Option<AgentName>,
    /// Further fields, as in the event's JSON.
    pub fields: BTreeMap<String, Value>,
}

/// A claim about a file in an agent's worktree.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "File")]
pub struct FileClaim {
    /// Whose worktree.
    pub agent: At<String>,
    /// The path in it.
    pub path: At<String>,
    /// Texts that it contains.
    pub contains: Option<Texts>,
    /// `true`: it isn't there; texts: it doesn't contain them.
    pub absent: Option<Absent>,
}
