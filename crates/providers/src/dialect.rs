//! What the three wire formats have in common: a request is written, and a reply is put
//! together from the frames of a stream.

use midturn_core::engine::ports::model::{ErrorKind, ModelFailure, Progress, Request};
use midturn_core::rules::conversation::{Block, Reply, StopReason, ToolUse};
use midturn_core::rules::id::CallId;
use midturn_core::sse::TooLarge;
use serde_json::Value;

use crate::body::Chunks;

/// One agent's conversation in one wire format.
pub(crate) trait Conversation: Send + Sync {
    /// The request body. What was encoded for earlier requests is used again.
    fn body(&mut self, request: &Request<'_>) -> serde_json::Result<Chunks>;

    /// The most tokens that a reply has where a budget is limited and leaves enough.
    fn max_output(&self) -> u64;

    /// What puts together the reply to the agent's `call`-th call.
    fn assembler(&self, call: u64) -> Box<dyn Assembler>;
}

/// How long a reply may be where a budget is limited and nothing was configured.
pub(crate) const UNDER_A_BUDGET: u32 = 32_000;

/// What was configured, and no more than the request leaves.
pub(crate) fn within(configured: u32, request: Option<u64>) -> u32 {
    request.map_or(configured, |most| configured.min(u32::try_from(most).unwrap_or(u32::MAX)))
}

/// The same, where perhaps nothing was configured.
pub(crate) fn at_most(configured: Option<u32>, request: Option<u64>) -> Option<u32> {
    match (configured, request) {
        (None, None) => None,
        (configured, request) => Some(within(configured.unwrap_or(u32::MAX), request)),
    }
}

/// How far a reply has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The stop reason hasn't come: what there is, is a part.
    Partial,
    /// The stop reason has come; figures may follow.
    Whole,
    /// Nothing more will come.
    Done,
}

/// Puts a reply together.
pub(crate) trait Assembler: Send {
    /// Takes one frame's data and says how far the reply has come.
    fn frame(&mut self, data: &str, progress: &dyn Progress) -> Result<Stage, ModelFailure>;

    /// The reply, once it is whole.
    fn finish(self: Box<Self>) -> Reply;
}

impl From<TooLarge> for Broken {
    fn from(error: TooLarge) -> Self {
        Self(ModelFailure::new(ErrorKind::InvalidRequest, error.to_string()))
    }
}

/// A stream that can't be read on.
#[derive(Debug)]
pub(crate) struct Broken(pub(crate) ModelFailure);

impl From<ModelFailure> for Broken {
    fn from(failure: ModelFailure) -> Self {
        Self(failure)
    }
}

/// A frame that is no JSON, or not of the documented form.
pub(crate) fn unreadable(error: &serde_json::Error) -> ModelFailure {
    ModelFailure::new(ErrorKind::Server, format!("the provider sent an event that can't be read: {error}"))
}

/// The stream ended too early.
pub(crate) fn ended_early() -> ModelFailure {
    ModelFailure::new(ErrorKind::Connection, "the stream ended before the reply was whole")
}

/// A call from what the model wrote. JSON that never closed is no call; JSON that is wrong is
/// one with a text for arguments, which fits no tool's schema, so that the model is told.
pub(crate) fn tool_use(id: String, name: String, json: &str) -> Option<Block> {
    let input = match serde_json::from_str(json) {
        Ok(Value::Null) => empty_object(),
        Ok(input) => input,
        Err(_) if json.trim().is_empty() => empty_object(),
        Err(error) if error.is_eof() => return None,
        Err(_) => Value::String(json.to_owned()),
    };
    Some(Block::ToolUse(ToolUse { id: CallId::new(id), name: name.into(), input }))
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}

/// The reason to stop, for servers that say `stop` although there are calls.
pub(crate) fn stop_with_calls(reason: StopReason, blocks: &[Block]) -> StopReason {
    let has_calls = blocks.iter().any(|block| matches!(block, Block::ToolUse(_)));
    match reason {
        StopReason::EndTurn if has_calls => StopReason::ToolUse,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_never_closed_are_no_call() {
        for (json, input) in [
            (r#"{"a":1}"#, Some(serde_json::json!({"a": 1}))),
            ("", Some(serde_json::json!({}))),
            (" ", Some(serde_json::json!({}))),
            ("null", Some(serde_json::json!({}))),
            ("[1]", Some(serde_json::json!([1]))),
            (r#"{"a": celsius}"#, Some(serde_json::json!(r#"{"a": celsius}"#))),
            (r#"{"a":1"#, None),
            (r#"{"a":"b"#, None),
            ("{", None),
        ] {
            let block = tool_use("c".to_owned(), "t".to_owned(), json);
            let got = block.map(|block| match block {
                Block::ToolUse(call) => call.input,
                other => panic!("{other:?}"),
            });
            assert_eq!(got, input, "{json}");
        }
    }
}
