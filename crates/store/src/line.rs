//! A line of the record as a row of `chat_messages`, and back, byte for byte.
//!
//! What a reader looks for has columns of its own (semantics.md, section 6); what is needed
//! besides to restore the line is in `metadata`. The text of a reply is in `content` only:
//! its text blocks are named in `metadata` by their lengths.

use std::borrow::Cow;
use std::sync::Arc;

use midturn_core::rules::compaction::Compaction;
use midturn_core::rules::conversation::{
    Block, Injected, InterruptReason, MessageKey, Opaque, Partial, Reply, StopReason, Thinking, ToolResult,
    ToolStatus, ToolUse, Usage,
};
use midturn_core::rules::event::Sizes;
use midturn_core::rules::id::{CallId, MessageId, RunId};
use midturn_core::rules::mail::Point;
use midturn_core::rules::record::Line;
use midturn_core::rules::time::Micros;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cell::Cell;
use crate::error::Unreadable;
use crate::words;

/// The columns that a line fills.
#[derive(Default)]
pub(crate) struct Filled {
    pub(crate) role: &'static str,
    pub(crate) message_type: &'static str,
    pub(crate) content: Cell,
    pub(crate) tool_name: Cell,
    pub(crate) tool_call_id: Cell,
    pub(crate) tool_result: Cell,
    pub(crate) metadata: Cell,
}

/// The columns that a line is restored from.
pub(crate) struct StoredLine {
    pub(crate) message_type: String,
    pub(crate) content: String,
    pub(crate) tool_name: Option<String>,
    pub(crate) tool_call_id: Option<String>,
    pub(crate) metadata: String,
}

#[derive(Serialize, Deserialize)]
struct Key<'a> {
    from: Arc<str>,
    id: Cow<'a, str>,
}

/// `metadata` of `user`.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum UserMeta<'a> {
    Prompt,
    Mail { point: Point, beside_results: bool, messages: Vec<Key<'a>> },
}

/// `metadata` of `assistant`.
#[derive(Serialize, Deserialize)]
struct ReplyMeta<'a> {
    stop_reason: Cow<'a, StopReason>,
    usage: Usage,
    blocks: Vec<BlockMeta<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BlockMeta<'a> {
    /// So many bytes of `content`.
    Text(usize),
    Thinking(Cow<'a, Thinking>),
    ToolUse(Cow<'a, ToolUse>),
    Provider(Cow<'a, Opaque>),
}

/// `metadata` of `assistant_interrupted`.
#[derive(Serialize, Deserialize)]
struct PartialMeta<'a> {
    interrupted: bool,
    interrupted_reason: InterruptReason,
    stream_run_id: RunId,
    partial_tokens: u64,
    interrupted_at: Micros,
    thinking: Cow<'a, str>,
}

/// `metadata` of `summary`.
#[derive(Serialize, Deserialize)]
struct SummaryMeta {
    kept: u64,
    messages: Sizes,
    tokens: Sizes,
    usage: Usage,
}

/// `metadata` of `tool_result` and `tool_partial`.
#[derive(Serialize, Deserialize)]
struct ResultMeta<'a> {
    status: ToolStatus,
    is_error: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Key<'a>>,
    #[serde(default, borrow, skip_serializing_if = "Vec::is_empty")]
    cost: Vec<Key<'a>>,
    #[serde(flatten, skip_serializing_if = "Option::is_none", skip_deserializing)]
    cut: Option<CutMeta>,
}

/// What is said besides of a result that is not whole.
#[derive(Serialize)]
struct CutMeta {
    partial: bool,
    interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupted_reason: Option<InterruptReason>,
    stream_run_id: RunId,
}

/// The column `tool_result`.
#[derive(Serialize)]
struct Structured {
    status: ToolStatus,
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
}

/// The columns of a line of this run.
pub(crate) fn fill(line: &Line, run: RunId) -> Result<Filled, serde_json::Error> {
    match line {
        Line::Prompt(text) => user(text, &UserMeta::Prompt),
        Line::Alone(injected, point) => mail(injected, *point, false),
        Line::Beside(injected, point) => mail(injected, *point, true),
        Line::Reply(reply) => whole(reply, "assistant"),
        Line::Unused(reply) => whole(reply, "summary_unused"),
        Line::Compacted(compaction) => summary(compaction),
        Line::Interrupted(partial) => cut(partial),
        Line::Result(result) => result_of(result, run),
    }
}

fn spoken(role: &'static str, message_type: &'static str, content: Cell, metadata: Cell) -> Filled {
    Filled { role, message_type, content, metadata, ..Filled::default() }
}

fn user(text: &Arc<str>, metadata: &UserMeta<'_>) -> Result<Filled, serde_json::Error> {
    Ok(spoken("user", "user", Cell::shared(text), Cell::json(metadata)?))
}

fn mail(injected: &Injected, point: Point, beside_results: bool) -> Result<Filled, serde_json::Error> {
    let messages = keys(&injected.messages);
    user(&injected.text, &UserMeta::Mail { point, beside_results, messages })
}

fn keys(messages: &[MessageKey]) -> Vec<Key<'_>> {
    messages.iter().map(|key| Key { from: words::sender(&key.from), id: key.id.as_str().into() }).collect()
}

fn whole(reply: &Reply, message_type: &'static str) -> Result<Filled, serde_json::Error> {
    let metadata = ReplyMeta {
        stop_reason: Cow::Borrowed(&reply.stop_reason),
        usage: reply.usage,
        blocks: reply.blocks.iter().map(block).collect(),
    };
    Ok(spoken("assistant", message_type, Cell::text(&reply.text()), Cell::json(&metadata)?))
}

fn summary(compaction: &Compaction) -> Result<Filled, serde_json::Error> {
    let Compaction { summary, usage, kept, messages, tokens } = compaction;
    let metadata = SummaryMeta { kept: *kept, messages: *messages, tokens: *tokens, usage: *usage };
    Ok(spoken("user", "summary", Cell::shared(summary), Cell::json(&metadata)?))
}

fn block(block: &Block) -> BlockMeta<'_> {
    match block {
        Block::Text(text) => BlockMeta::Text(text.len()),
        Block::Thinking(thinking) => BlockMeta::Thinking(Cow::Borrowed(thinking)),
        Block::ToolUse(call) => BlockMeta::ToolUse(Cow::Borrowed(call)),
        Block::Provider(opaque) => BlockMeta::Provider(Cow::Borrowed(opaque)),
    }
}

fn cut(partial: &Partial) -> Result<Filled, serde_json::Error> {
    let metadata = PartialMeta {
        interrupted: true,
        interrupted_reason: partial.reason,
        stream_run_id: partial.stream_run_id,
        partial_tokens: partial.partial_tokens,
        interrupted_at: partial.interrupted_at,
        thinking: partial.thinking.as_str().into(),
    };
    let content = Cell::text(&partial.text);
    Ok(spoken("assistant", "assistant_interrupted", content, Cell::json(&metadata)?))
}

fn result_of(result: &ToolResult, run: RunId) -> Result<Filled, serde_json::Error> {
    let partial = result.status.is_partial();
    let metadata = ResultMeta {
        status: result.status,
        is_error: result.is_error,
        messages: keys(&result.messages),
        cost: keys(&result.cost),
        cut: partial.then(|| CutMeta {
            partial: true,
            interrupted: true,
            interrupted_reason: (result.status == ToolStatus::Interrupted)
                .then_some(InterruptReason::MessageInterrupt),
            stream_run_id: run,
        }),
    };
    let structured =
        Structured { status: result.status, is_error: result.is_error, output: structure(&result.text) };
    Ok(Filled {
        role: "tool",
        message_type: if partial { "tool_partial" } else { "tool_result" },
        content: Cell::shared(&result.text),
        tool_name: Cell::shared(&result.name),
        tool_call_id: Cell::text(result.id.as_str()),
        tool_result: Cell::json(&structured)?,
        metadata: Cell::json(&metadata)?,
    })
}

/// The text as JSON, if that is what it is: an object or a list.
fn structure(text: &str) -> Option<Value> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// The line of a row.
pub(crate) fn restore(stored: StoredLine) -> Result<Line, Unreadable> {
    match stored.message_type.as_str() {
        "user" => restore_user(stored),
        "assistant" => restore_reply(&stored).map(Line::Reply),
        "summary_unused" => restore_reply(&stored).map(Line::Unused),
        "summary" => restore_summary(stored),
        "assistant_interrupted" => restore_cut(stored),
        "tool_result" | "tool_partial" => restore_result(stored),
        other => Err(Unreadable(format!("`{other}` is not a message_type"))),
    }
}

fn parse<'a, T: Deserialize<'a>>(metadata: &'a str) -> Result<T, Unreadable> {
    serde_json::from_str(metadata).map_err(|error| Unreadable(format!("metadata of a message: {error}")))
}

fn restore_user(stored: StoredLine) -> Result<Line, Unreadable> {
    let text: Arc<str> = stored.content.into();
    Ok(match parse(&stored.metadata)? {
        UserMeta::Prompt => Line::Prompt(text),
        UserMeta::Mail { point, beside_results, messages } => {
            let injected = Injected { text, messages: restore_keys(messages)? };
            if beside_results { Line::Beside(injected, point) } else { Line::Alone(injected, point) }
        }
    })
}

fn restore_keys(keys: Vec<Key<'_>>) -> Result<Arc<[MessageKey]>, Unreadable> {
    let key =
        |key: Key<'_>| Ok(MessageKey { from: words::to_sender(&key.from)?, id: MessageId::new(&*key.id) });
    keys.into_iter().map(key).collect()
}

fn restore_reply(stored: &StoredLine) -> Result<Arc<Reply>, Unreadable> {
    let metadata: ReplyMeta<'_> = parse(&stored.metadata)?;
    let mut rest = stored.content.as_str();
    let blocks = metadata.blocks.into_iter().map(|block| restore_block(block, &mut rest));
    Ok(Arc::new(Reply {
        blocks: blocks.collect::<Result<_, _>>()?,
        stop_reason: metadata.stop_reason.into_owned(),
        usage: metadata.usage,
    }))
}

fn restore_summary(stored: StoredLine) -> Result<Line, Unreadable> {
    let SummaryMeta { kept, messages, tokens, usage } = parse(&stored.metadata)?;
    let summary = stored.content.into();
    Ok(Line::Compacted(Arc::new(Compaction { summary, usage, kept, messages, tokens })))
}

/// Takes the text of a text block from what is left of the content.
fn restore_block(block: BlockMeta<'_>, rest: &mut &str) -> Result<Block, Unreadable> {
    Ok(match block {
        BlockMeta::Text(bytes) => {
            let split = rest.split_at_checked(bytes);
            let (text, after) = split.ok_or_else(|| {
                Unreadable("the content of a reply is not as long as its metadata says".to_owned())
            })?;
            *rest = after;
            Block::Text(text.to_owned())
        }
        BlockMeta::Thinking(thinking) => Block::Thinking(thinking.into_owned()),
        BlockMeta::ToolUse(call) => Block::ToolUse(call.into_owned()),
        BlockMeta::Provider(opaque) => Block::Provider(opaque.into_owned()),
    })
}

fn restore_cut(stored: StoredLine) -> Result<Line, Unreadable> {
    let metadata: PartialMeta<'_> = parse(&stored.metadata)?;
    Ok(Line::Interrupted(Arc::new(Partial {
        text: stored.content,
        thinking: metadata.thinking.into_owned(),
        reason: metadata.interrupted_reason,
        stream_run_id: metadata.stream_run_id,
        partial_tokens: metadata.partial_tokens,
        interrupted_at: metadata.interrupted_at,
    })))
}

fn restore_result(stored: StoredLine) -> Result<Line, Unreadable> {
    let metadata: ResultMeta<'_> = parse(&stored.metadata)?;
    let missing = || Unreadable("a result has no tool_name or no tool_call_id".to_owned());
    Ok(Line::Result(ToolResult {
        id: CallId::new(stored.tool_call_id.ok_or_else(missing)?),
        name: stored.tool_name.ok_or_else(missing)?.into(),
        status: metadata.status,
        is_error: metadata.is_error,
        text: stored.content.into(),
        messages: restore_keys(metadata.messages)?,
        cost: restore_keys(metadata.cost)?,
    }))
}
