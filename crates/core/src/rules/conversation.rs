//! The record of one agent's conversation.
//!
//! `Entry::ToolResults` puts the results first and the mail second *in the type*: there is
//! no way to put a text between a call and its result (semantics.md, section 3). A partial
//! reply is an entry of its own kind, so that it can't be taken for a whole one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use super::ending::InterruptReason;
use super::id::CallId;
pub use super::mail::MessageKey;
use super::words::words;

/// One row of a conversation. Entries are only ever appended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Entry {
    /// A prompt, or mail that was injected alone (points `start`, `stream` and `B`).
    User(Injected),
    /// A reply that is whole.
    Assistant(Arc<Reply>),
    /// A reply that was cut: recorded, and part of no later prompt.
    Interrupted(Arc<Partial>),
    /// All results of a turn's calls in call order, then what was injected with them.
    ToolResults {
        /// One result for each call of the reply before.
        results: Vec<ToolResult>,
        /// What was injected with them, if anything.
        mail: Option<Injected>,
    },
}

/// A text that came into the conversation, and the messages it is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Injected {
    /// The text as the model sees it.
    pub text: Arc<str>,
    /// The messages, in order of arrival; none for a prompt.
    pub messages: Arc<[MessageKey]>,
}

impl Injected {
    /// A prompt: text that is nobody's message.
    pub fn prompt(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), messages: Arc::default() }
    }
}

/// A model's whole reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// What the model said, in its order.
    pub blocks: Vec<Block>,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// What it cost.
    pub usage: Usage,
}

impl Reply {
    /// The calls that are ours to run, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolUse> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolUse(call) => Some(call),
            Block::Text(_) | Block::Thinking(_) | Block::Provider(_) => None,
        })
    }

    /// Whether it ended because it might have no more tokens.
    pub fn is_cut_at_its_limit(&self) -> bool {
        self.stop_reason == StopReason::MaxTokens
    }

    /// The text blocks, joined.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            if let Block::Text(part) = block {
                text.push_str(part);
            }
        }
        text
    }
}

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Block {
    /// Text for people.
    Text(String),
    /// The model's thinking.
    Thinking(Thinking),
    /// A call that is ours to run.
    ToolUse(ToolUse),
    /// A block of the provider's own (a tool that it runs itself, say): goes back verbatim.
    Provider(Opaque),
}

/// Thinking, and what the provider wants back for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thinking {
    /// What can be shown.
    pub text: String,
    /// The block to send back, byte for byte; `None` when its signature never came, and
    /// then nothing is sent back.
    pub replay: Option<Opaque>,
}

/// JSON that only the provider that made it understands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opaque(pub Arc<str>);

/// A tool call as the model asked for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The model's id for the call.
    pub id: CallId,
    /// The tool.
    pub name: Arc<str>,
    /// The arguments; `Value::Null` is never sent, an empty object is.
    pub input: Value,
}

/// Why a reply ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model was done.
    #[default]
    EndTurn,
    /// It waits for tool results.
    ToolUse,
    /// It reached its token limit.
    MaxTokens,
    /// Anything else, in the provider's word.
    #[serde(untagged)]
    Other(String),
}

impl StopReason {
    /// The word used in events.
    pub fn as_str(&self) -> &str {
        match self {
            Self::EndTurn => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::Other(word) => word,
        }
    }

    /// The reason for a word.
    pub fn from_word(word: &str) -> Self {
        match word {
            "end_turn" => Self::EndTurn,
            "tool_use" => Self::ToolUse,
            "max_tokens" => Self::MaxTokens,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// Tokens of one or more model calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Tokens read, those from the cache included.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Of the tokens read, those that came from the provider's cache.
    pub cached: u64,
}

impl Usage {
    /// Adds the tokens of another call.
    pub fn add(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
    }

    /// All tokens, read and written.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// What there was of a reply when it was cut (semantics.md, section 6).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Partial {
    /// The text so far.
    pub text: String,
    /// The thinking so far.
    pub thinking: String,
    /// Why it was cut.
    pub reason: InterruptReason,
    /// The run it belonged to.
    pub stream_run_id: u64,
    /// How many tokens had come, as far as that is known (words otherwise).
    pub partial_tokens: u64,
    /// When it was cut.
    pub interrupted_at: super::time::Micros,
}

/// The result of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call it answers.
    pub id: CallId,
    /// The tool.
    pub name: Arc<str>,
    /// What became of the call.
    pub status: ToolStatus,
    /// Whether the model is told that it failed.
    pub is_error: bool,
    /// What the model reads.
    pub text: Arc<str>,
    /// The messages it carries (`wait_agents`).
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub messages: Arc<[MessageKey]>,
    /// The messages that skipped it or cut it short: they are committed (semantics.md, section 3).
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub cost: Arc<[MessageKey]>,
}

words! {
    /// What became of a call (semantics.md, section 4).
    #[derive(PartialOrd, Ord)]
    pub enum ToolStatus {
        /// Ran to its end, well.
        Completed = "completed",
        /// Ran to its end, and that was an error.
        Failed = "failed",
        /// Cut short by an urgent message.
        Interrupted = "interrupted",
        /// Never started.
        Skipped = "skipped",
        /// Cut short by a stop.
        Stopped = "stopped",
        /// Nobody can say.
        Unknown = "unknown",
    }
}

impl ToolStatus {
    /// Whether the result is a part of what the tool would have said (recorded as `tool_partial`).
    pub fn is_partial(self) -> bool {
        matches!(self, Self::Interrupted | Self::Stopped | Self::Unknown)
    }
}
