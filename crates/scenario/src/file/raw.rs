//! A scenario file as it is written: plain structs, every key optional where the format has a
//! default. What can't be said by a type is checked afterwards, in [`super::check`].

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use midturn_core::engine::ports::ErrorKind;
use midturn_core::rules::approval::Mode;
use midturn_core::rules::conversation::{ToolStatus, Usage};
use midturn_core::rules::event::Scope;
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::{ReturnReason, Role, Urgency};
use midturn_core::rules::settings::{LimitsPatch, SettingsPatch};
use midturn_core::rules::time::Span;

use super::after::RawAfter;
use crate::scenario::{Ended, FileClaim, InjectedClaim, PromptClaim, Start, Workspace};
use crate::values::{At, Pairs, Texts};

/// A scenario of Midturn: scripted models, timed messages and what must come of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Midturn scenario")]
pub(crate) struct RawFile {
    /// The format's version.
    #[schemars(range(min = 1, max = 1))]
    pub(crate) midturn: At<u32>,
    /// The claim, in a few words.
    pub(crate) name: Option<String>,
    /// What it stands for; for readers only.
    #[expect(dead_code, reason = "a key of the format that nothing acts on")]
    pub(crate) description: Option<String>,
    /// Settings for all agents.
    pub(crate) settings: Option<At<SettingsPatch>>,
    /// Whether the tools are simulated (the default) or real.
    pub(crate) tools: Option<At<RawTools>>,
    /// With `tools: real`: the folder or repository that the agents work on.
    pub(crate) workspace: Option<At<Workspace>>,
    /// What runs unasked, what a person is asked about, and what never runs.
    pub(crate) approvals: Option<At<RawApprovals>>,
    /// The agents, parents before their children.
    pub(crate) agents: At<Vec<RawAgent>>,
    /// Messages and other actions.
    pub(crate) messages: Option<Vec<At<RawItem>>>,
    /// What must come of it.
    pub(crate) expect: Option<Vec<At<RawExpect>>>,
}

/// Where tool calls run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Tools")]
pub(crate) enum RawTools {
    /// Nowhere: they take the time and give the result that the script says.
    Simulated,
    /// In worktrees, on the real clock.
    Real,
}

/// What runs unasked, what a person is asked about, and what never runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Approvals")]
pub(crate) struct RawApprovals {
    /// `auto` (the default), `accept-edits`, `ask` or `plan`.
    pub(crate) mode: Option<Mode>,
    /// Rules for what is not asked about: `bash(cargo test *)`, `edit(src/**)`.
    pub(crate) allow: Option<Vec<At<String>>>,
    /// Rules for what is never done; they win.
    pub(crate) deny: Option<Vec<At<String>>>,
    /// How long an answer is waited for: 10 minutes by default.
    pub(crate) patience: Option<Span>,
    /// Whether somebody is there who could answer; by default exactly if the file answers.
    pub(crate) attached: Option<At<bool>>,
}

/// A person's answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Decision")]
pub(crate) enum RawDecision {
    /// The call may run.
    Once,
    /// It may, and so may all that the `rule` allows, in the whole session.
    Session,
    /// It may not; `text` says why.
    Denied,
}

/// An agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Agent")]
pub(crate) struct RawAgent {
    /// Its name.
    pub(crate) name: At<AgentName>,
    /// `subagent` (the default) or `lead`.
    pub(crate) role: Option<Role>,
    /// An earlier agent; a subagent without it is the first lead's child, if there is a lead.
    pub(crate) parent: Option<At<String>>,
    /// Starts its first run; without it the agent is idle until mail comes.
    pub(crate) prompt: Option<At<String>>,
    /// `at_once` (the default), or `spawned`: when a `spawn_agent` call names it.
    pub(crate) start: Option<Start>,
    /// Settings over the file's.
    pub(crate) settings: Option<At<SettingsPatch>>,
    /// One entry per model call, in order. Without it the agent is a name only.
    pub(crate) model: Option<Vec<RawReply>>,
}

/// The answer to one model call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ModelEntry")]
pub(crate) struct RawReply {
    /// The text.
    pub(crate) text: Option<String>,
    /// The thinking before it.
    pub(crate) thinking: Option<String>,
    /// How long the call takes: 0 by default.
    pub(crate) takes: Option<Span>,
    /// Or the event after which it ends.
    pub(crate) ends_after: Option<At<RawAfter>>,
    /// The tool calls it asks for, in order.
    pub(crate) tools: Option<Vec<RawCall>>,
    /// The call fails so, at its end.
    pub(crate) error: Option<ErrorKind>,
    /// How long the failed call asks to wait.
    pub(crate) retry_after: Option<Span>,
    /// Why the reply ended; by default `tool_use` with calls and `end_turn` without.
    pub(crate) stop_reason: Option<String>,
    /// What the call cost.
    pub(crate) usage: Option<Usage>,
    /// The entry answers only when this holds.
    pub(crate) when: Option<RawWhen>,
}

impl RawAgent {
    /// All calls that it scripts.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &RawCall> {
        self.model.iter().flatten().flat_map(|entry| entry.tools.iter().flatten())
    }
}

/// When an entry answers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "When")]
pub(crate) struct RawWhen {
    /// The prompt's last message contains each of these.
    pub(crate) last_message_contains: Texts,
}

/// A tool call, and what the simulated tool does.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ToolCall")]
pub(crate) struct RawCall {
    /// The call's id, unique in the agent.
    pub(crate) id: At<String>,
    /// The tool.
    pub(crate) name: At<String>,
    /// The arguments.
    pub(crate) input: Option<Value>,
    /// How long it runs: 0 by default.
    pub(crate) takes: Option<Span>,
    /// Or the event after which it ends.
    pub(crate) ends_after: Option<At<RawAfter>>,
    /// What it gives.
    pub(crate) result: Option<String>,
    /// It fails with this text.
    pub(crate) error: Option<String>,
    /// What it says while it runs, and when: `[[200ms, "line"], …]`; kept when it is cut short.
    pub(crate) output: Option<Vec<(Span, String)>>,
    /// Whether it may run beside others; by the tool's name when absent.
    pub(crate) safe: Option<bool>,
    /// Whether it can be aborted; by default it can.
    pub(crate) abortable: Option<bool>,
    /// How long an abort takes.
    #[serde(default)]
    pub(crate) abort_takes: Span,
    /// It returns a continuation that ends so much later.
    pub(crate) continues: Option<Span>,
    /// The provider runs it itself.
    #[serde(default)]
    pub(crate) provider: bool,
}

/// A message or another action: `to` and `text`, or one of `stop`, `supersede`, `resume`,
/// `close`, `withdraw`, `answer`, `raise`, `crash` and `shutdown`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Message")]
pub(crate) struct RawItem {
    /// Its id; a message without one gets m1, m2 …
    pub(crate) id: Option<At<String>>,
    /// When, since the begin.
    pub(crate) at: Option<At<Span>>,
    /// Or after which event.
    pub(crate) after: Option<At<RawAfter>>,
    /// Crash: or with which event; it is the last that is recorded.
    pub(crate) upon: Option<At<RawAfter>>,
    /// Message: an agent or `user`.
    pub(crate) from: Option<At<String>>,
    /// Message: an agent, `parent` or `all`.
    pub(crate) to: Option<At<String>>,
    /// What the message, or the superseding one, says; why a call is denied.
    pub(crate) text: Option<At<String>>,
    /// Message: whether it is urgent; `false` is the receiver's default.
    pub(crate) urgent: Option<At<bool>>,
    /// Message: or how urgent it is, by name.
    pub(crate) urgency: Option<At<Urgency>>,
    /// Message: when it is returned if it is not injected by then.
    pub(crate) expires_after: Option<At<Span>>,
    /// Message: the sender's own earlier message that it replaces.
    pub(crate) supersedes: Option<At<String>>,
    /// Message: with `supersedes`: it is refused if that one is not queued any more.
    pub(crate) if_queued: Option<At<bool>>,
    /// Message: the only run it may be injected in.
    pub(crate) only_run: Option<At<u64>>,
    /// Action: who does it, `user` by default.
    pub(crate) by: Option<At<String>>,
    /// Action: stops an agent's run.
    pub(crate) stop: Option<At<String>>,
    /// How far the stop reaches.
    pub(crate) scope: Option<At<Scope>>,
    /// Action: stops an agent's run and starts a new one with `text`.
    pub(crate) supersede: Option<At<String>>,
    /// Action: starts an agent that rests with work unfinished, or `all` of them.
    pub(crate) resume: Option<At<String>>,
    /// Action: closes an agent and all below it.
    pub(crate) close: Option<At<String>>,
    /// Action: takes a message back.
    pub(crate) withdraw: Option<At<String>>,
    /// Action: answers this agent's request for approval.
    pub(crate) answer: Option<At<String>>,
    /// The call that the request is about.
    pub(crate) tool: Option<At<String>>,
    /// What the answer is.
    pub(crate) decision: Option<At<RawDecision>>,
    /// With `decision: session`: the rule, instead of the one that the request offers.
    pub(crate) rule: Option<At<String>>,
    /// Action: raises or lowers limits of an agent, or of the `session`.
    pub(crate) raise: Option<At<String>>,
    /// Which limits, and what they are from then on; 0 is none.
    pub(crate) limits: Option<At<LimitsPatch>>,
    /// Action: the process ends, and its session is taken up so much later.
    pub(crate) crash: Option<At<Span>>,
    /// Action: the same after a shutdown, once all has ended.
    pub(crate) shutdown: Option<At<Span>>,
}

/// An expectation: exactly one of `agent`, `message`, `prompt`, `never`, `event` and `file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Expectation")]
pub(crate) struct RawExpect {
    /// A run of this agent.
    pub(crate) agent: Option<At<String>>,
    /// Which run; the last by default.
    pub(crate) run: Option<At<u64>>,
    /// How the run ended.
    pub(crate) outcome: Option<At<Ended>>,
    /// What the run's error contains.
    pub(crate) error: Option<At<String>>,
    /// How many model calls the run made, retries included.
    pub(crate) model_calls: Option<At<u64>>,
    /// When the run ended.
    pub(crate) ends_at: Option<At<Span>>,
    /// How many turns the run had.
    pub(crate) turns: Option<At<u32>>,
    /// What became of the agent's calls, by id.
    pub(crate) tools: Option<At<Pairs<ToolStatus>>>,
    /// This message.
    pub(crate) message: Option<At<String>>,
    /// Of a message to all: as this agent received it.
    pub(crate) to: Option<At<String>>,
    /// It was injected, there and then.
    pub(crate) injected: Option<At<InjectedClaim>>,
    /// It was returned, for this reason.
    pub(crate) returned: Option<At<ReturnReason>>,
    /// It was refused, for this reason.
    pub(crate) refused: Option<At<String>>,
    /// Whether it is still queued at the end.
    pub(crate) queued: Option<At<bool>>,
    /// What a model was given.
    pub(crate) prompt: Option<At<PromptClaim>>,
    /// An event with these fields never happens.
    pub(crate) never: Option<At<Pairs<At<Value>>>>,
    /// An event with these fields happens at least once.
    pub(crate) event: Option<At<Pairs<At<Value>>>>,
    /// A file in an agent's worktree (`tools: real`).
    pub(crate) file: Option<At<FileClaim>>,
}
