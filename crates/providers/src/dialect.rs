//! What the three wire formats have in common: a request is written, and a reply is put
//! together from the frames of a stream.

use midturn_core::engine::ports::model::{ErrorKind, ModelFailure, Progress};
use midturn_core::rules::conversation::{Block, StopReason, ToolUse, Usage};
use midturn_core::rules::id::CallId;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Who is told of a reply as it comes, and what is known of it besides its blocks.
pub(crate) struct Account<'a> {
    pub(crate) progress: &'a dyn Progress,
    /// The number of the agent's model call, for the ids of tool calls that have none.
    pub(crate) call: u64,
    /// Without it what there is, is a part of a reply; behind it figures may follow.
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) usage: Usage,
}

impl Account<'_> {
    /// Notes what the reply cost, and tells it.
    pub(crate) fn costs(&mut self, usage: Usage) {
        self.progress.tokens(usage.output);
        self.usage = usage;
    }
}

/// Puts the blocks of a reply together.
pub(crate) trait Assembler: Send {
    /// Takes one frame's data. True: nothing more will come of a reply that is whole.
    fn frame(&mut self, data: &str, account: &mut Account<'_>) -> Result<bool, ModelFailure>;

    /// The blocks, in order, of the reply to the agent's `call`-th call.
    fn finish(self: Box<Self>, call: u64) -> Vec<Block>;
}

/// A frame that is not JSON, or not of the documented form.
pub(crate) fn unreadable(error: &serde_json::Error) -> ModelFailure {
    ModelFailure::new(ErrorKind::Server, format!("the provider sent an event that can't be read: {error}"))
}

/// An event; `None` if it is of a kind that is not known, which is `K`'s default, and not of the
/// usual form.
pub(crate) fn event<'a, E, K>(data: &'a str) -> Result<Option<E>, ModelFailure>
where
    E: Deserialize<'a>,
    K: Deserialize<'a> + Default + PartialEq,
{
    #[derive(Deserialize)]
    struct Typed<K> {
        #[serde(rename = "type", default)]
        kind: K,
    }
    match serde_json::from_str(data) {
        Ok(event) => Ok(Some(event)),
        Err(error) => match serde_json::from_str::<Typed<K>>(data) {
            Ok(Typed { kind }) if kind == K::default() => Ok(None),
            _ => Err(unreadable(&error)),
        },
    }
}

/// The stream ended too early.
pub(crate) fn ended_early() -> ModelFailure {
    ModelFailure::new(ErrorKind::Connection, "the stream ended before the reply was whole")
}

/// A call from what the model wrote. One whose JSON is cut or wrong has a text for arguments: it
/// never runs, and its result tells the model.
pub(crate) fn tool_use(id: String, name: String, json: &str) -> Block {
    let input = match serde_json::from_str(json) {
        Ok(Value::Null) => empty_object(),
        Ok(input) => input,
        Err(_) if json.trim().is_empty() => empty_object(),
        Err(_) => Value::String(json.to_owned()),
    };
    Block::ToolUse(ToolUse { id: CallId::new(id), name: name.into(), input })
}

/// A call that was cut before its arguments: nobody can say whether they would have been empty.
pub(crate) fn cut_call(id: String, name: String) -> Block {
    Block::ToolUse(ToolUse { id: CallId::new(id), name: name.into(), input: Value::String(String::new()) })
}

fn empty_object() -> Value {
    Value::Object(Map::new())
}

/// The reason to stop, for servers that say `stop` although there are calls.
pub(crate) fn stop_with_calls(reason: StopReason, blocks: &[Block]) -> StopReason {
    let has_calls = blocks.iter().any(|block| matches!(block, Block::ToolUse(_)));
    match reason {
        StopReason::EndTurn if has_calls => StopReason::ToolUse,
        other => other,
    }
}

/// What a reply cost, as the provider said it: each dialect knows its own names.
#[derive(Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Figures(Map<String, Value>);

impl Figures {
    /// Takes over what a later event says; what it doesn't say stays.
    pub(crate) fn update(&mut self, newer: Self) {
        self.0.extend(newer.0.into_iter().filter(|(_, figure)| !figure.is_null()));
    }

    /// A number that is directly among them.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    /// In the words of Responses, and in those of Chat Completions. Some servers send both.
    pub(crate) fn openai(&self) -> Usage {
        let details = ["input_tokens_details", "prompt_tokens_details"];
        let cached = details.iter().find_map(|name| self.0.get(*name)?.get("cached_tokens")?.as_u64());
        Usage {
            input: self.number("input_tokens").or(self.number("prompt_tokens")).unwrap_or(0),
            output: self.number("output_tokens").or(self.number("completion_tokens")).unwrap_or(0),
            // The last one is DeepSeek's name for the tokens from the cache.
            cached: cached.or(self.number("prompt_cache_hit_tokens")).unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C17.
    #[test]
    fn arguments_that_are_cut_or_wrong_are_a_text() {
        for (json, input) in [
            (r#"{"a":1}"#, serde_json::json!({"a": 1})),
            ("", serde_json::json!({})),
            (" ", serde_json::json!({})),
            ("null", serde_json::json!({})),
            ("[1]", serde_json::json!([1])),
            (r#"{"a": celsius}"#, serde_json::json!(r#"{"a": celsius}"#)),
            (r#"{"a":1"#, serde_json::json!(r#"{"a":1"#)),
            (r#"{"a":"b"#, serde_json::json!(r#"{"a":"b"#)),
            ("{", serde_json::json!("{")),
        ] {
            let Block::ToolUse(call) = tool_use("c".to_owned(), "t".to_owned(), json) else {
                panic!("{json}")
            };
            assert_eq!(call.input, input, "{json}");
        }
    }
}
