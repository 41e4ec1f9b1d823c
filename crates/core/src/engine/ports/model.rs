//! The `Model` port: one call, streamed, that can be cut.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::tool::ToolSpec;
use crate::rules::compaction::Purpose;
use crate::rules::conversation::{Entry, Reply};
use crate::rules::id::AgentName;
use crate::rules::limits::Prices;
use crate::rules::time::Span;
use crate::sse::TooLarge;

/// What one model call is given. Everything is borrowed: a long conversation costs no copy.
pub struct Request<'a> {
    /// The agent's place in the session's order, from 0.
    pub agent_index: u32,
    /// The number of this call: 1, 2 … per agent.
    pub call: u64,
    /// The system prompt.
    pub system: &'a str,
    /// The tools on offer, in a stable order.
    pub tools: &'a [Arc<ToolSpec>],
    /// What the call is for. For a summary no tool may be called: they are on offer so that
    /// the provider understands the calls in the conversation.
    pub purpose: Purpose,
    /// How often the conversation was compacted. The entries of a turn's request begin with
    /// those of the one before unless this has grown; those of a summary's are apart.
    pub compactions: u64,
    /// The conversation, oldest first. `Entry::Interrupted` is never among them.
    pub entries: &'a [Arc<Entry>],
    /// How many messages a provider sees of it, once neighbours of one role are merged.
    pub messages: u64,
    /// The most tokens that the reply may have, where a budget leaves no more.
    pub max_output: Option<u64>,
    /// Cancelled when the call is to be cut. The model then says what it has through
    /// `progress` and returns [`ErrorKind::Cancelled`] at once.
    pub cancel: &'a CancellationToken,
    /// Where the reply is told while it comes.
    pub progress: &'a dyn Progress,
}

/// Where a model tells its reply while it comes. What was told is the partial reply if the
/// call is cut or fails.
pub trait Progress: Send + Sync {
    /// The request was handed to the connection (receipt state `sent`).
    fn sent(&self);
    /// A piece of text.
    fn text(&self, delta: &str);
    /// A piece of thinking.
    fn thinking(&self, delta: &str);
    /// A thinking block is whole.
    fn thinking_done(&self);
    /// A tool call comes: so many bytes of its arguments have, as JSON. It may be told for every
    /// piece; how often that reaches anybody is the hearer's business.
    fn call(&self, _id: &str, _name: &str, _bytes: u64) {}
    /// How many tokens have come, where the provider says so.
    fn tokens(&self, so_far: u64);
}

/// One agent's model. It is called by one agent only, one call at a time, so it may keep
/// what it encoded for the next call.
#[async_trait]
pub trait Model: Send + Sync {
    /// Makes one attempt. Retries are the engine's business (semantics.md, section 7).
    async fn call(&mut self, request: Request<'_>) -> Result<Reply, ModelFailure>;

    /// The most tokens that a reply may have unless the request says less. `None`: nobody
    /// knows, and where a budget is limited such a request goes alone.
    fn max_output(&self) -> Option<u64> {
        None
    }

    /// Whether waits before retries are spread at random, because many call the same server.
    fn jitters(&self) -> bool {
        true
    }
}

/// Why a call gave no whole reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct ModelFailure {
    /// The kind decides whether the call is tried again.
    pub kind: ErrorKind,
    /// For people; never holds a key.
    pub message: String,
    /// How long the provider asks to wait.
    pub retry_after: Option<Span>,
}

impl ModelFailure {
    /// A failure without a `retry-after`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }
}

impl From<TooLarge> for ModelFailure {
    fn from(error: TooLarge) -> Self {
        Self::new(ErrorKind::InvalidRequest, error.to_string())
    }
}

/// The kinds of failure, by what the caller can do about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ModelError")]
pub enum ErrorKind {
    /// The call's token was cancelled.
    #[error("cancelled")]
    #[serde(skip)]
    Cancelled,
    /// 529.
    #[error("overloaded")]
    Overloaded,
    /// 429.
    #[error("rate_limited")]
    RateLimited,
    /// 5xx, or an error event in the stream.
    #[error("server")]
    Server,
    /// The connection broke, timed out, or the stream ended before the reply was whole.
    #[error("connection")]
    Connection,
    /// 4xx: the same request will fail again.
    #[error("invalid_request")]
    InvalidRequest,
    /// A scripted model has no entry left.
    #[error("script exhausted")]
    #[serde(skip)]
    ScriptExhausted,
}

impl ErrorKind {
    /// Whether the same request may do better next time.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Overloaded | Self::RateLimited | Self::Server | Self::Connection => true,
            Self::Cancelled | Self::InvalidRequest | Self::ScriptExhausted => false,
        }
    }
}

/// Makes the model of an agent from its configured name (`anthropic/NAME`, say).
#[async_trait]
pub trait ModelFactory: Send + Sync {
    /// A model for one agent; called when its first run starts. The error says what to do.
    async fn model(&self, agent: &AgentName, model: &str) -> Result<Box<dyn Model>, ModelFailure>;

    /// What a model's tokens cost; nothing where nobody has said.
    fn prices(&self, _model: &str) -> Prices {
        Prices::default()
    }

    /// The day that those prices are of, where they are out of a table and nobody's own word.
    fn priced_at(&self, _model: &str) -> Option<&'static str> {
        None
    }
}
