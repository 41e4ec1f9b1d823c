//! Conversations as Chat Completions wants them: a `tool` message for each result, then one
//! user message for the mail.
//!
//! Content is a plain string, which every compatible server takes, and neighbours of the user's
//! role are joined in one string by a blank line: many chat templates insist on alternation.

use bytes::Bytes;
use midturn_core::engine::ports::model::Request;
use midturn_core::engine::ports::tool::ToolSpec;
use midturn_core::rules::conversation::{Entry, Reply, ToolUse};
use serde::Serialize;
use serde_json::Value;

use crate::body::Chunks;
use crate::config::Endpoint;
use crate::dialect::{UNDER_A_BUDGET, at_most};
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
    stream_options: StreamOptionsJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolJson<'a>>,
    /// Absent: the model decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

#[derive(Serialize)]
struct StreamOptionsJson {
    include_usage: bool,
}

#[derive(Serialize)]
struct ToolJson<'a> {
    r#type: &'static str,
    function: FunctionJson<'a>,
}

#[derive(Serialize)]
struct FunctionJson<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
struct SystemJson<'a> {
    role: &'static str,
    content: &'a str,
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

    /// Writes all that comes before the conversation, the system message included.
    pub(super) fn write_head(&self, request: &Request<'_>, bytes: &mut Vec<u8>) -> serde_json::Result<()> {
        let Request { system, tools, purpose, max_output, .. } = *request;
        let no_calls = !purpose.is_turn() && !tools.is_empty();
        let head = HeadJson {
            model: &self.model,
            stream: true,
            stream_options: StreamOptionsJson { include_usage: true },
            max_completion_tokens: at_most(self.max_tokens, max_output),
            reasoning_effort: self.reasoning_effort.as_deref(),
            tools: tools.iter().map(|tool| tool_json(tool)).collect(),
            tool_choice: no_calls.then_some("none"),
        };
        serde_json::to_writer(&mut *bytes, &head)?;
        bytes.pop();
        bytes.extend_from_slice(br#","messages":["#);
        if !system.trim().is_empty() {
            serde_json::to_writer(&mut *bytes, &SystemJson { role: "system", content: system })?;
            bytes.push(b',');
        }
        Ok(())
    }
}

fn tool_json(tool: &ToolSpec) -> ToolJson<'_> {
    let function =
        FunctionJson { name: &tool.name, description: &tool.description, parameters: &tool.input_schema };
    ToolJson { r#type: "function", function }
}

/// The request. A conversation has at least one message, so the head's comma is right.
pub(super) fn body(head: Bytes, transcript: &Transcript<Messages>) -> Chunks {
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
    /// A user's message whose string is still open.
    OpenUser,
    Closed,
}

/// The messages. A user's message stays open, so that a neighbour can join it.
#[derive(Default)]
pub(super) struct Messages {
    last: Last,
}

#[derive(Serialize)]
struct AssistantJson<'a> {
    role: &'static str,
    content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallJson<'a>>,
}

#[derive(Serialize)]
struct CallJson<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CalledJson<'a>,
}

#[derive(Serialize)]
struct CalledJson<'a> {
    name: &'a str,
    arguments: String,
}

#[derive(Serialize)]
struct ToolMessageJson<'a> {
    role: &'static str,
    tool_call_id: &'a str,
    content: &'a str,
}

impl Script for Messages {
    fn entry(&mut self, entry: &Entry, out: &mut Out<'_>) -> serde_json::Result<()> {
        match entry {
            Entry::User(injected) => self.user(&injected.text, out),
            Entry::Assistant(reply) => self.reply(reply, out),
            Entry::Interrupted(_) => Ok(()),
            Entry::ToolResults { results, mail } => {
                for result in results {
                    let (tool_call_id, content) = (result.id.as_str(), &*result.text);
                    self.message(&ToolMessageJson { role: "tool", tool_call_id, content }, out)?;
                }
                mail.iter().try_for_each(|injected| self.user(&injected.text, out))
            }
        }
    }

    fn close(&self) -> &'static [u8] {
        if self.last == Last::OpenUser { br#""}"# } else { b"" }
    }
}

impl Messages {
    fn user(&mut self, text: &str, out: &mut Out<'_>) -> serde_json::Result<()> {
        match self.last {
            Last::OpenUser => out.raw(r"\n\n"),
            Last::Closed => out.raw(r#",{"role":"user","content":""#),
            Last::Nothing => out.raw(r#"{"role":"user","content":""#),
        }
        self.last = Last::OpenUser;
        out.string_inside(text)
    }

    fn message<T: Serialize>(&mut self, message: &T, out: &mut Out<'_>) -> serde_json::Result<()> {
        match self.last {
            Last::OpenUser => out.raw(r#""},"#),
            Last::Closed => out.raw(","),
            Last::Nothing => {}
        }
        self.last = Last::Closed;
        out.json(message)
    }

    /// Thinking is shown to people and not sent back: the API has no field for it.
    fn reply(&mut self, reply: &Reply, out: &mut Out<'_>) -> serde_json::Result<()> {
        let text = reply.text();
        let tool_calls: Vec<_> = reply.calls().map(call_json).collect();
        if text.is_empty() && tool_calls.is_empty() {
            return Ok(());
        }
        let content = (!text.is_empty()).then_some(text);
        self.message(&AssistantJson { role: "assistant", content, tool_calls }, out)
    }
}

fn call_json(call: &ToolUse) -> CallJson<'_> {
    let function = CalledJson { name: &call.name, arguments: sendable(&call.input).to_string() };
    CallJson { id: call.id.as_str(), r#type: "function", function }
}
