//! Conversations as Anthropic's Messages API wants them: roles alternate, results come first.
//!
//! At most three cache markers of the four allowed: at the end of tools and system, and at the
//! end of the last two user messages, so that the next request finds the one before. Markers
//! are put between the kept bytes when a request is made: they are no part of what was sent.

use bytes::Bytes;
use midturn_core::engine::ports::model::Request;
use midturn_core::rules::conversation::{Block, Entry, Injected, Opaque, Reply, ToolResult};
use serde::Serialize;
use serde_json::Value;

use crate::body::Chunks;
use crate::config::Endpoint;
use crate::dialect::within;
use crate::opaque::{Owner, owner};
use crate::transcript::{Out, Script, Transcript, sendable};

/// The most tokens of a reply when nothing is configured: Anthropic's API wants a limit.
pub const ANTHROPIC_MAX_TOKENS: u32 = 32_000;

/// What must at least be left for the answer beside the thinking.
const BESIDE_THINKING: u32 = 4_096;

/// The marker, as it follows a block's last field.
const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

/// What is the same in every request of one agent.
pub(super) struct Options {
    model: String,
    max_tokens: u32,
    thinking_budget: Option<u32>,
}

#[derive(Serialize)]
struct HeadJson<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[SystemJson<'a>; 1]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoiceJson>,
}

/// Said where no tool may be called: those of the calls in a conversation are named all the same.
#[derive(Serialize)]
struct ToolChoiceJson {
    r#type: &'static str,
}

#[derive(Serialize)]
struct ThinkingJson {
    r#type: &'static str,
    budget_tokens: u32,
}

#[derive(Serialize)]
struct SystemJson<'a> {
    r#type: &'static str,
    text: &'a str,
    cache_control: CacheJson,
}

#[derive(Serialize)]
struct ToolJson<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheJson>,
}

#[derive(Serialize)]
struct CacheJson {
    r#type: &'static str,
}

const CACHED: CacheJson = CacheJson { r#type: "ephemeral" };

impl Options {
    pub(super) fn new(model: &str, endpoint: &Endpoint) -> Self {
        let asked = endpoint.max_output_tokens.unwrap_or(ANTHROPIC_MAX_TOKENS);
        let floor = endpoint.thinking_budget.map_or(0, |budget| budget.saturating_add(BESIDE_THINKING));
        Self {
            model: model.to_owned(),
            max_tokens: asked.max(floor),
            thinking_budget: endpoint.thinking_budget,
        }
    }

    /// The most tokens that a reply has unless a request says less.
    pub(super) fn max_output(&self) -> u64 {
        self.max_tokens.into()
    }

    /// Writes all that comes before the messages, up to the bracket that opens them.
    pub(super) fn write_head(&self, request: &Request<'_>, bytes: &mut Vec<u8>) -> serde_json::Result<()> {
        let Request { system, tools, purpose, max_output, .. } = *request;
        let no_calls = !purpose.is_turn() && !tools.is_empty();
        let has_system = !system.trim().is_empty();
        let last = tools.len().saturating_sub(1);
        let tools = tools.iter().enumerate().map(|(n, tool)| ToolJson {
            name: &tool.name,
            description: &tool.description,
            input_schema: &tool.input_schema,
            cache_control: (n == last && !has_system).then_some(CACHED),
        });
        let max_tokens = within(self.max_tokens, max_output);
        // The API wants the thinking to fit into the reply: where a budget leaves no room for
        // both, the answer comes first.
        let fits = |budget: &u32| budget.saturating_add(BESIDE_THINKING) <= max_tokens;
        let thinking = self.thinking_budget.filter(fits);
        let head = HeadJson {
            model: &self.model,
            max_tokens,
            stream: true,
            thinking: thinking.map(|budget_tokens| ThinkingJson { r#type: "enabled", budget_tokens }),
            system: has_system.then_some([SystemJson {
                r#type: "text",
                text: system,
                cache_control: CACHED,
            }]),
            tools: tools.collect(),
            tool_choice: no_calls.then_some(ToolChoiceJson { r#type: "none" }),
        };
        serde_json::to_writer(&mut *bytes, &head)?;
        bytes.pop();
        bytes.extend_from_slice(br#","messages":["#);
        Ok(())
    }
}

/// The request: what is kept, with the markers in between.
pub(super) fn body(head: Bytes, transcript: &Transcript<Messages>) -> Chunks {
    let (segments, script) = (transcript.segments(), transcript.script());
    let mut chunks = Chunks::default();
    chunks.push(head);
    let mut from = 0;
    for place in script.marks.iter().flatten() {
        segments.lend(from, *place, &mut chunks);
        chunks.push(Bytes::from_static(MARK));
        from = *place;
    }
    segments.lend(from, segments.len(), &mut chunks);
    chunks.push(Bytes::from_static(script.close()));
    chunks.push(Bytes::from_static(b"]}"));
    chunks
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

/// The messages. The last one stays open, so that a neighbour of its role can join it.
#[derive(Default)]
pub(super) struct Messages {
    open: Option<Role>,
    /// Where a marker fits: before the brace that ends the last block of each of the last two
    /// user messages, the older first.
    marks: [Option<usize>; 2],
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockJson<'a> {
    Text {
        text: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

impl Script for Messages {
    fn entry(&mut self, entry: &Entry, out: &mut Out<'_>) -> serde_json::Result<()> {
        match entry {
            Entry::User(injected) => self.text(injected, out),
            Entry::Assistant(reply) => self.reply(reply, out),
            Entry::Interrupted(_) => Ok(()),
            Entry::ToolResults { results, mail } => {
                results.iter().try_for_each(|result| self.user(&result_json(result), out))?;
                mail.iter().try_for_each(|injected| self.text(injected, out))
            }
        }
    }

    fn close(&self) -> &'static [u8] {
        if self.open.is_some() { b"]}" } else { b"" }
    }
}

impl Messages {
    fn text(&mut self, injected: &Injected, out: &mut Out<'_>) -> serde_json::Result<()> {
        self.user(&BlockJson::Text { text: &injected.text }, out)
    }

    fn user(&mut self, block: &BlockJson<'_>, out: &mut Out<'_>) -> serde_json::Result<()> {
        if self.open != Some(Role::User) {
            self.marks = [self.marks[1], None];
        }
        self.begin(Role::User, out);
        out.json(block)?;
        self.marks[1] = Some(out.position() - 1);
        Ok(())
    }

    fn reply(&mut self, reply: &Reply, out: &mut Out<'_>) -> serde_json::Result<()> {
        // The API refuses a message that ends in thinking.
        let end = reply.blocks.iter().rposition(|block| !matches!(block, Block::Thinking(_)));
        let blocks = &reply.blocks[..end.map_or(0, |last| last + 1)];
        blocks.iter().try_for_each(|block| self.assistant(block, out))
    }

    fn assistant(&mut self, block: &Block, out: &mut Out<'_>) -> serde_json::Result<()> {
        match block {
            // The API refuses a blank text.
            Block::Text(text) if text.trim().is_empty() => {}
            Block::Text(text) => {
                self.begin(Role::Assistant, out);
                out.json(&BlockJson::Text { text })?;
            }
            Block::ToolUse(call) => {
                self.begin(Role::Assistant, out);
                let (id, input) = (call.id.as_str(), sendable(&call.input));
                out.json(&BlockJson::ToolUse { id, name: &call.name, input: &input })?;
            }
            Block::Thinking(thinking) => thinking.replay.iter().for_each(|raw| self.verbatim(raw, out)),
            Block::Provider(raw) => self.verbatim(raw, out),
        }
        Ok(())
    }

    fn verbatim(&mut self, raw: &Opaque, out: &mut Out<'_>) {
        if owner(raw) == Owner::Anthropic {
            self.begin(Role::Assistant, out);
            out.raw(&raw.0);
        }
    }

    /// Opens a block in a message of this role.
    fn begin(&mut self, role: Role, out: &mut Out<'_>) {
        match self.open {
            Some(open) if open == role => out.raw(","),
            Some(_) => out.raw("]},"),
            None => {}
        }
        if self.open != Some(role) {
            self.open = Some(role);
            out.raw(match role {
                Role::User => r#"{"role":"user","content":["#,
                Role::Assistant => r#"{"role":"assistant","content":["#,
            });
        }
    }
}

fn result_json(result: &ToolResult) -> BlockJson<'_> {
    BlockJson::ToolResult {
        tool_use_id: result.id.as_str(),
        content: &result.text,
        is_error: result.is_error,
    }
}
