//! Conversations as Chat Completions wants them: a `tool` message for each result, then one
//! user message for the mail.
//!
//! Content is a plain string, which every compatible server takes, and neighbours of the user's
//! role are joined in one string by a blank line: many chat templates insist on alternation.

use midturn_core::engine::ports::model::Request;
use midturn_core::engine::ports::tool::ToolSpec;
use midturn_core::rules::conversation::{Reply, ToolResult, ToolUse};
use serde_json::{Value, json};

use crate::config::Endpoint;
use crate::transcript::{Frame, Out, Script, offer, sendable, up_to_list};

/// A user's message, whose string stays open.
static USER: Frame = Frame { open: r#"{"role":"user","content":""#, between: r"\n\n", close: r#""}"# };

/// The messages.
#[derive(Default)]
pub(crate) struct Messages;

impl Script for Messages {
    /// The system message included. A conversation has at least one message, so the comma behind
    /// it is right.
    fn head(model: &str, endpoint: &Endpoint, most: Option<u32>, request: &Request<'_>) -> String {
        let mut head = json!({
            "model": model,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        if let Some(most) = most {
            head["max_completion_tokens"] = most.into();
        }
        if let Some(effort) = &endpoint.reasoning_effort {
            head["reasoning_effort"] = json!(effort);
        }
        offer(&mut head, request, tool, json!("none"));
        let mut head = up_to_list(&head, "messages");
        if !request.system.trim().is_empty() {
            head += &json!({"role": "system", "content": request.system}).to_string();
            head.push(',');
        }
        head
    }

    fn user(&mut self, text: &str, out: &mut Out<'_>) {
        let quoted = json!(text).to_string();
        out.part(&USER, quoted.get(1..quoted.len() - 1).unwrap_or_default());
    }

    fn result(&mut self, result: &ToolResult, out: &mut Out<'_>) {
        out.item(json!({"role": "tool", "tool_call_id": result.id.as_str(), "content": &*result.text}));
    }

    /// Thinking is shown to people and not sent back: the API has no field for it.
    fn reply(&mut self, reply: &Reply, out: &mut Out<'_>) {
        let (text, calls) = (reply.text(), reply.calls().map(call).collect::<Vec<_>>());
        if text.is_empty() && calls.is_empty() {
            return;
        }
        let content = (!text.is_empty()).then_some(text);
        let mut message = json!({"role": "assistant", "content": content});
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        out.item(message);
    }
}

fn tool(spec: &ToolSpec) -> Value {
    let ToolSpec { name, description, input_schema } = spec;
    json!({
        "type": "function",
        "function": {"name": name, "description": description, "parameters": input_schema},
    })
}

fn call(call: &ToolUse) -> Value {
    let arguments = sendable(&call.input).to_string();
    json!({
        "id": call.id.as_str(),
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    })
}
