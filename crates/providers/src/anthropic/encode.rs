//! Conversations as Anthropic's Messages API wants them: roles alternate, results come first.
//!
//! At most three cache markers of the four allowed: at the end of tools and system, and at the
//! end of the last two user messages, so that the next request finds the one before. Markers
//! are put between the kept bytes when a request is made: they are no part of what was sent.

use midturn_core::engine::ports::model::Request;
use midturn_core::engine::ports::tool::ToolSpec;
use midturn_core::rules::conversation::{Block, Reply, ToolResult};
use serde_json::{Value, json};

use crate::config::Endpoint;
use crate::opaque::Owner;
use crate::transcript::{Frame, Out, Script, followed, offer, sendable, up_to_list};

/// The most tokens of a reply when nothing is configured: Anthropic's API wants a limit.
pub const ANTHROPIC_MAX_TOKENS: u32 = 32_000;

/// What must at least be left for the answer beside the thinking.
const BESIDE_THINKING: u32 = 4_096;

static USER: Frame = Frame { open: r#"{"role":"user","content":["#, between: ",", close: "]}" };
static ASSISTANT: Frame = Frame { open: r#"{"role":"assistant","content":["#, between: ",", close: "]}" };

/// The messages. The last one stays open, so that a neighbour of its role can join it.
#[derive(Default)]
pub(crate) struct Messages {
    /// Where a marker fits: before the brace that ends the last block of each of the last two
    /// user messages, the older first.
    marks: [Option<usize>; 2],
}

impl Script for Messages {
    /// The marker, as it follows a block's last field.
    const MARK: &'static str = r#","cache_control":{"type":"ephemeral"}"#;

    fn max_tokens(endpoint: &Endpoint) -> Option<u32> {
        let asked = endpoint.max_output_tokens.unwrap_or(ANTHROPIC_MAX_TOKENS);
        let floor = endpoint.thinking_budget.map_or(0, |budget| budget.saturating_add(BESIDE_THINKING));
        Some(asked.max(floor))
    }

    fn head(model: &str, endpoint: &Endpoint, most: Option<u32>, request: &Request<'_>) -> String {
        let mut head = json!({"model": model, "max_tokens": most, "stream": true});
        // The API wants the thinking to fit into the reply: where a budget leaves no room for
        // both, the answer comes first.
        let fits = |budget: &u32| most.is_none_or(|most| budget.saturating_add(BESIDE_THINKING) <= most);
        if let Some(budget) = endpoint.thinking_budget.filter(fits) {
            head["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
        }
        offer(&mut head, request, tool, json!({"type": "none"}));
        let cached = json!({"type": "ephemeral"});
        if !request.system.trim().is_empty() {
            head["system"] = json!([{"type": "text", "text": request.system, "cache_control": cached}]);
        } else if let Some(last) = request.tools.len().checked_sub(1) {
            head["tools"][last]["cache_control"] = cached;
        }
        up_to_list(&head, "messages")
    }

    fn user(&mut self, text: &str, out: &mut Out<'_>) {
        self.user_block(&json!({"type": "text", "text": text}), out);
    }

    fn result(&mut self, result: &ToolResult, out: &mut Out<'_>) {
        let mut block = json!({"type": "tool_result", "tool_use_id": result.id.as_str()});
        if !result.text.is_empty() {
            block["content"] = json!(&*result.text);
        }
        if result.is_error {
            block["is_error"] = json!(true);
        }
        self.user_block(&block, out);
    }

    fn reply(&mut self, reply: &Reply, out: &mut Out<'_>) {
        for block in followed(reply) {
            match block {
                // The API refuses a blank text.
                Block::Text(text) if text.trim().is_empty() => {}
                Block::Text(text) => {
                    out.part(&ASSISTANT, json!({"type": "text", "text": text}));
                }
                Block::ToolUse(call) => {
                    let (id, input) = (call.id.as_str(), sendable(&call.input));
                    out.part(
                        &ASSISTANT,
                        json!({"type": "tool_use", "id": id, "name": call.name, "input": input}),
                    );
                }
                Block::Thinking(_) | Block::Provider(_) => {
                    if let Some(raw) = Owner::Anthropic.part_of(block) {
                        out.part(&ASSISTANT, raw);
                    }
                }
            }
        }
    }

    fn marks(&self) -> [Option<usize>; 2] {
        self.marks
    }
}

impl Messages {
    fn user_block(&mut self, block: &Value, out: &mut Out<'_>) {
        if out.part(&USER, block) {
            self.marks[0] = self.marks[1];
        }
        self.marks[1] = Some(out.position() - 1);
    }
}

fn tool(spec: &ToolSpec) -> Value {
    let ToolSpec { name, description, input_schema } = spec;
    json!({"name": name, "description": description, "input_schema": input_schema})
}
