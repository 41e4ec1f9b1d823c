//! The `Tool` port, and the workplace where an agent's tools work.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::rules::approval::Effect;
use crate::rules::conversation::ToolUse;
use crate::rules::id::{AgentName, RunId, TurnId};
use crate::rules::secrets::Secrets;

/// What the model is told of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: Arc<str>,
    /// What it does and when to use it.
    pub description: Arc<str>,
    /// The JSON Schema of its input.
    pub input_schema: Value,
}

/// What holds for one call of a tool (semantics.md, section 5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTraits {
    /// Whether it may run beside other such calls.
    pub safe: bool,
    /// Whether its token reaches it. What can't be aborted is let finish.
    pub abortable: bool,
    /// The file it edits: edits of one file wait for each other under `concurrency = "all"`.
    pub edits: Option<Arc<str>>,
    /// What it does to the world: what may be done unasked depends on it.
    pub effect: Effect,
    /// What rules' patterns are held against: the command, or the path relative to the root.
    pub subject: Option<Arc<str>>,
    /// Whether it runs a command: as many as there are slots run at once in a process.
    pub command: bool,
}

impl CallTraits {
    /// A call that changes things and can be aborted.
    pub const SERIAL: Self = Self {
        safe: false,
        abortable: true,
        edits: None,
        effect: Effect::Runs,
        subject: None,
        command: false,
    };
    /// A call that only reads.
    pub const SAFE: Self = Self { safe: true, effect: Effect::Reads, ..Self::SERIAL };
    /// A call that runs a command.
    pub const COMMAND: Self = Self { command: true, ..Self::SERIAL };
    /// A call that talks to the coordinator and changes nothing in the world.
    pub const COORDINATES: Self = Self { effect: Effect::Coordinates, ..Self::SERIAL };

    /// About this command or path.
    #[must_use]
    pub fn about(self, subject: impl Into<Arc<str>>) -> Self {
        Self { subject: Some(subject.into()), ..self }
    }
}

/// What one call is given.
pub struct ToolCall {
    /// Whose call it is.
    pub agent: AgentName,
    /// The agent's place in the session's order, from 0.
    pub agent_index: u32,
    /// In which run.
    pub run: RunId,
    /// The id, the name and the arguments.
    pub call: ToolUse,
    /// The call's place in its turn, from 0.
    pub index: usize,
    /// Cancelled when the call is to end now. It then ends what it started, all of it, and
    /// returns; what it returns then is its partial output (if it is empty, what went to
    /// `output`).
    pub cancel: CancellationToken,
    /// Where output is told while it comes; it is kept if the call is cut short.
    pub output: Arc<dyn OutputSink>,
}

/// Where a call tells its output while it comes.
pub trait OutputSink: Send + Sync {
    /// A piece of output: it is told at once, and a head and a tail are kept, 32 KiB each. They are
    /// the result of a call that was cancelled and returns no text.
    fn write(&self, text: &str);

    /// A piece of output that the tool keeps itself: it is told at once and not kept here.
    fn tell(&self, text: &str);
}

/// What a call gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// What the model reads.
    pub text: String,
    /// Whether it failed.
    pub is_error: bool,
}

impl Output {
    /// A good result.
    pub fn ok(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: false }
    }

    /// A failure, with a text that says what to do.
    pub fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true }
    }
}

/// How a call returned.
pub enum Returned {
    /// With its result.
    Done(Output),
    /// With work it started and will answer for: the next serial call may start meanwhile.
    /// The work obeys the call's token.
    Continues(Pin<Box<dyn Future<Output = Output> + Send>>),
}

impl From<Output> for Returned {
    fn from(output: Output) -> Self {
        Self::Done(output)
    }
}

/// A tool. Errors and panics become `is_error` results, never a broken conversation.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What the model is told of it.
    fn spec(&self) -> Arc<ToolSpec>;

    /// What holds for a call with these arguments. Pure and quick.
    fn traits(&self, call: &ToolUse) -> CallTraits;

    /// Runs a call to its end, or until its token is cancelled.
    async fn call(&self, call: ToolCall) -> Returned;
}

/// The tools of one agent.
pub trait Toolbox: Send + Sync {
    /// What the model is offered, in a stable order.
    fn specs(&self) -> Vec<Arc<ToolSpec>>;

    /// The tool for a call. `None`: there is none of that name.
    fn find(&self, call: &ToolUse) -> Option<Arc<dyn Tool>>;

    /// The coordinator's own tool for a call, as it is to run here: a script may hold up its end.
    fn own(&self, _call: &ToolUse, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        tool
    }
}

/// Why a workplace could not be made or wound up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

/// What a run changed, for the report on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The branch the changes were committed to.
    pub branch: Option<String>,
    /// The files changed, relative to the root.
    pub files: Vec<String>,
    /// What a reader has to know besides (that the tree was dirty at the start, say).
    pub notes: Vec<String>,
}

impl Changes {
    /// Without secrets, in files' names too. The branch is ours to name.
    pub(crate) fn without(self, secrets: &Secrets) -> Self {
        let clean = |texts: Vec<String>| texts.into_iter().map(|text| secrets.redacted(text)).collect();
        Self { branch: self.branch, files: clean(self.files), notes: clean(self.notes) }
    }
}

/// Gives each agent the place it works in: worktree, root folder, tools.
#[async_trait]
pub trait Workplace: Send + Sync {
    /// Opens the agent's place; called when its first run starts.
    async fn open(&self, agent: &AgentName) -> Result<Arc<dyn Toolbox>, ToolError>;

    /// A turn is over: all its calls have their results. Quick, and asked after turns without calls too.
    fn turn_ended(&self, _agent: &AgentName, _run: RunId, _turn: TurnId) {}

    /// What an agent is told of its place: the end of its system prompt, the same in each of its requests.
    /// Asked once after `open`, before the first of them. It may take long, where the place is made ready
    /// first: what that prints goes to `output`, which only tells it. A stop cancels the token.
    async fn settle(
        &self,
        _agent: &AgentName,
        _cancel: &CancellationToken,
        _output: &dyn OutputSink,
    ) -> String {
        String::new()
    }

    /// What an agent said last in the run that ends now; told before `run_ended`. Quick.
    fn last_words(&self, _agent: &AgentName, _words: &str) {}

    /// A run has ended and none of its calls is alive: commits what it changed.
    async fn run_ended(&self, agent: &AgentName, run: RunId) -> Result<Changes, ToolError>;

    /// The branch that the agent works on, if it has one of its own. Quick.
    fn branch(&self, _agent: &AgentName) -> Option<String> {
        None
    }

    /// What the agent's branch changed since it began, what is not committed yet included.
    async fn diff(&self, agent: &AgentName) -> Result<Diff, ToolError> {
        Err(ToolError(format!("`{agent}` has no branch of its own")))
    }

    /// Merges the agent's branch into what the project folder has checked out. Nothing is
    /// forced: with conflicts, or with changes in the way, the project folder stays as it was.
    async fn merge(&self, agent: &AgentName) -> Result<Merge, ToolError> {
        Err(ToolError(format!("`{agent}` has no branch of its own")))
    }
}

/// What a branch changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// The branch.
    pub branch: String,
    /// The commit it began at.
    pub start: String,
    /// As `git diff` has it, bounded.
    pub patch: String,
    /// Whether the patch was too long to be given whole.
    pub truncated: bool,
}

/// What became of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The branch is in; the commit that HEAD is now.
    Merged(String),
    /// It was in already.
    UpToDate,
    /// These files conflict; nothing was changed.
    Conflicts(Vec<String>),
    /// Something in the project folder is in the way; nothing was changed. The text says what.
    Refused(String),
}
