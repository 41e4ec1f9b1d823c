//! Conversations as the Responses API wants them: items, among them a `function_call_output`
//! for each result, then one user message for the mail.

use bytes::Bytes;
use midturn_core::engine::ports::model::Request;
use midturn_core::engine::ports::tool::ToolSpec;
use midturn_core::rules::conversation::{Block, Entry, Opaque, Reply, ToolUse};
use serde::Serialize;
use serde_json::Value;

use crate::body::Chunks;
use crate::config::Endpoint;
use crate::dialect::{UNDER_A_BUDGET, at_most};
use crate::opaque::{Owner, owner};
use crate::transcript::{Out, Script, Transcript, sendable};

/// What is the same in every request of one agent.
pub(super) struct Options {
    model: String,
    max_tokens: Option<u32>,
    reasoning_effort: Option<String>,
}

#[derive(Serialize)]
struct HeadJson<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'a [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningJson<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolJson<'a>>,
    /// Absent: the model decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

#[derive(Serialize)]
struct ReasoningJson<'a> {
    effort: &'a str,
}

#[derive(Serialize)]
struct ToolJson<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// The API's default would refuse schemas with optional fields.
    strict: bool,
}

impl Options {
    pub(super) fn new(model: &str, endpoint: &Endpoint) -> Self {
        Self {
            model: model.to_owned(),
            max_tokens: endpoint.max_output_tokens,
            reasoning_effort: endpoint.reasoning_effort.clone(),
        }
    }

    /// The most tokens that a reply has unless a request says less.
    pub(super) fn max_output(&self) -> u64 {
        self.max_tokens.unwrap_or(UNDER_A_BUDGET).into()
    }

    /// Writes all that comes before the conversation, up to the bracket that opens it.
    pub(super) fn write_head(&self, request: &Request<'_>, bytes: &mut Vec<u8>) -> serde_json::Result<()> {
        let Request { system, tools, purpose, max_output, .. } = *request;
        let no_calls = !purpose.is_turn() && !tools.is_empty();
        let include: &[_] = if reasons(&self.model) { &["reasoning.encrypted_content"] } else { &[] };
        let head = HeadJson {
            model: &self.model,
            stream: true,
            store: false,
            include,
            max_output_tokens: at_most(self.max_tokens, max_output),
            reasoning: self.reasoning_effort.as_deref().map(|effort| ReasoningJson { effort }),
            instructions: system,
            tools: tools.iter().map(|tool| tool_json(tool)).collect(),
            tool_choice: no_calls.then_some("none"),
        };
        serde_json::to_writer(&mut *bytes, &head)?;
        bytes.pop();
        bytes.extend_from_slice(br#","input":["#);
        Ok(())
    }
}

/// Whether a model may reason. The API refuses a request for encrypted reasoning to the models
/// that are known not to.
fn reasons(model: &str) -> bool {
    let never = ["gpt-3", "gpt-4", "chatgpt-"];
    !never.iter().any(|start| model.starts_with(start)) && !model.contains("-chat")
}

fn tool_json(tool: &ToolSpec) -> ToolJson<'_> {
    ToolJson {
        r#type: "function",
        name: &tool.name,
        description: &tool.description,
        parameters: &tool.input_schema,
        strict: false,
    }
}

/// The request.
pub(super) fn body(head: Bytes, transcript: &Transcript<Items>) -> Chunks {
    let segments = transcript.segments();
    let mut chunks = Chunks::default();
    chunks.push(head);
    segments.lend(0, segments.len(), &mut chunks);
    chunks.push(Bytes::from_static(transcript.script().close()));
    chunks.push(Bytes::from_static(b"]}"));
    chunks
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Nothing,
    /// A user's message that can take further parts.
    OpenUser,
    Closed,
}

/// The items. A user's message stays open, so that a neighbour can join it.
#[derive(Default)]
pub(super) struct Items {
    last: Last,
}

#[derive(Serialize)]
struct TextJson<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ItemJson<'a> {
    Message { role: &'static str, content: [TextJson<'a>; 1] },
    FunctionCall { call_id: &'a str, name: &'a str, arguments: String },
    FunctionCallOutput { call_id: &'a str, output: &'a str },
}

impl Script for Items {
    fn entry(&mut self, entry: &Entry, out: &mut Out<'_>) -> serde_json::Result<()> {
        match entry {
            Entry::User(injected) => self.user(&injected.text, out),
            Entry::Assistant(reply) => self.reply(reply, out),
            Entry::Interrupted(_) => Ok(()),
            Entry::ToolResults { results, mail } => {
                for result in results {
                    let (call_id, output) = (result.id.as_str(), &*result.text);
                    self.item(&ItemJson::FunctionCallOutput { call_id, output }, out)?;
                }
                mail.iter().try_for_each(|injected| self.user(&injected.text, out))
            }
        }
    }

    fn close(&self) -> &'static [u8] {
        if self.last == Last::OpenUser { b"]}" } else { b"" }
    }
}

impl Items {
    fn user(&mut self, text: &str, out: &mut Out<'_>) -> serde_json::Result<()> {
        const OPEN: &str = r#"{"type":"message","role":"user","content":["#;
        match self.last {
            Last::OpenUser => out.raw(","),
            Last::Closed => {
                out.raw(",");
                out.raw(OPEN);
            }
            Last::Nothing => out.raw(OPEN),
        }
        self.last = Last::OpenUser;
        out.json(&TextJson { r#type: "input_text", text })
    }

    fn item(&mut self, item: &ItemJson<'_>, out: &mut Out<'_>) -> serde_json::Result<()> {
        self.begin(out);
        out.json(item)
    }

    fn begin(&mut self, out: &mut Out<'_>) {
        match self.last {
            Last::OpenUser => out.raw("]},"),
            Last::Closed => out.raw(","),
            Last::Nothing => {}
        }
        self.last = Last::Closed;
    }

    fn reply(&mut self, reply: &Reply, out: &mut Out<'_>) -> serde_json::Result<()> {
        // The API refuses reasoning that nothing follows.
        let end = reply.blocks.iter().rposition(|block| !matches!(block, Block::Thinking(_)));
        let blocks = &reply.blocks[..end.map_or(0, |last| last + 1)];
        blocks.iter().try_for_each(|block| self.block(block, out))
    }

    fn block(&mut self, block: &Block, out: &mut Out<'_>) -> serde_json::Result<()> {
        match block {
            Block::Text(text) if text.is_empty() => Ok(()),
            Block::Text(text) => {
                let content = [TextJson { r#type: "output_text", text }];
                self.item(&ItemJson::Message { role: "assistant", content }, out)
            }
            Block::ToolUse(call) => self.item(&call_json(call), out),
            Block::Thinking(thinking) => {
                thinking.replay.iter().for_each(|raw| self.verbatim(raw, out));
                Ok(())
            }
            Block::Provider(raw) => {
                self.verbatim(raw, out);
                Ok(())
            }
        }
    }

    fn verbatim(&mut self, raw: &Opaque, out: &mut Out<'_>) {
        if owner(raw) == Owner::OpenAi {
            self.begin(out);
            out.raw(&raw.0);
        }
    }
}

fn call_json(call: &ToolUse) -> ItemJson<'_> {
    ItemJson::FunctionCall {
        call_id: call.id.as_str(),
        name: &call.name,
        arguments: sendable(&call.input).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypted_reasoning_is_asked_of_models_that_may_reason() {
        for (model, asked) in [
            ("gpt-5", true),
            ("o3", true),
            ("some-local-model", true),
            ("gpt-4.1", false),
            ("gpt-4o-mini", false),
            ("gpt-5-chat-latest", false),
        ] {
            assert_eq!(reasons(model), asked, "{model}");
        }
    }
}
