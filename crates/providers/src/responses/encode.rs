//! Conversations as the Responses API wants them: items, among them a `function_call_output`
//! for each result, then one user message for the mail.

use midturn_core::engine::ports::model::Request;
use midturn_core::engine::ports::tool::ToolSpec;
use midturn_core::rules::conversation::{Block, Reply, ToolResult};
use serde_json::{Value, json};

use crate::config::Endpoint;
use crate::opaque::Owner;
use crate::transcript::{Frame, Out, Script, followed, offer, sendable, up_to_list};

/// A user's message, which stays open, so that a neighbour can join it.
static USER: Frame =
    Frame { open: r#"{"type":"message","role":"user","content":["#, between: ",", close: "]}" };

/// The items.
#[derive(Default)]
pub(crate) struct Items;

impl Script for Items {
    fn head(model: &str, endpoint: &Endpoint, most: Option<u32>, request: &Request<'_>) -> String {
        let mut head = json!({"model": model, "stream": true, "store": false});
        if reasons(model) {
            head["include"] = json!(["reasoning.encrypted_content"]);
        }
        if let Some(most) = most {
            head["max_output_tokens"] = most.into();
        }
        if let Some(effort) = &endpoint.reasoning_effort {
            head["reasoning"] = json!({"effort": effort});
        }
        if !request.system.is_empty() {
            head["instructions"] = json!(request.system);
        }
        offer(&mut head, request, tool, json!("none"));
        up_to_list(&head, "input")
    }

    fn user(&mut self, text: &str, out: &mut Out<'_>) {
        out.part(&USER, json!({"type": "input_text", "text": text}));
    }

    fn result(&mut self, result: &ToolResult, out: &mut Out<'_>) {
        let (id, output) = (result.id.as_str(), &*result.text);
        out.item(json!({"type": "function_call_output", "call_id": id, "output": output}));
    }

    fn reply(&mut self, reply: &Reply, out: &mut Out<'_>) {
        for block in followed(reply) {
            match block {
                Block::Text(text) if text.is_empty() => {}
                Block::Text(text) => {
                    let content = json!([{"type": "output_text", "text": text}]);
                    out.item(json!({"type": "message", "role": "assistant", "content": content}));
                }
                Block::ToolUse(call) => {
                    let (id, arguments) = (call.id.as_str(), sendable(&call.input).to_string());
                    out.item(json!({
                        "type": "function_call", "call_id": id, "name": call.name, "arguments": arguments,
                    }));
                }
                Block::Thinking(_) | Block::Provider(_) => {
                    Owner::OpenAi.part_of(block).into_iter().for_each(|raw| out.item(raw));
                }
            }
        }
    }
}

/// Whether a model may reason. The API refuses a request for encrypted reasoning to the models
/// that are known not to.
fn reasons(model: &str) -> bool {
    let never = ["gpt-3", "gpt-4", "chatgpt-"];
    !never.iter().any(|start| model.starts_with(start)) && !model.contains("-chat")
}

fn tool(spec: &ToolSpec) -> Value {
    let ToolSpec { name, description, input_schema } = spec;
    json!({
        "type": "function",
        "name": name,
        "description": description,
        "parameters": input_schema,
        // The API's default would refuse schemas with optional fields.
        "strict": false,
    })
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
