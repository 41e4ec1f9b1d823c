//! Replies of the Responses API, put together from the events of a stream.
//!
//! Deltas are for showing; what counts is each item as it was when it was done, and that it
//! goes back as the very bytes that came.

use std::borrow::Cow;

use midturn_core::engine::ports::model::{ModelFailure, Progress};
use midturn_core::rules::conversation::{Block, Opaque, Reply, StopReason, Thinking, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dialect::{Assembler, Stage, stop_with_calls, tool_use, unreadable};
use crate::failure::stream_error;
use crate::text::{Piece, Text};

/// Any event, flat.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default)]
    kind: Kind,
    output_index: Option<u32>,
    #[serde(borrow)]
    delta: Option<Piece<'a>>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
enum Kind {
    #[serde(rename = "response.output_item.added")]
    ItemAdded,
    #[serde(rename = "response.output_item.done")]
    ItemDone,
    #[serde(rename = "response.output_text.delta", alias = "response.refusal.delta")]
    Text,
    #[serde(rename = "response.reasoning_summary_text.delta", alias = "response.reasoning_text.delta")]
    Reasoning,
    #[serde(rename = "response.reasoning_summary_part.added")]
    ReasoningPart,
    #[serde(rename = "response.function_call_arguments.delta")]
    Arguments,
    #[serde(rename = "response.completed", alias = "response.incomplete", alias = "response.failed")]
    Ended,
    #[serde(rename = "error")]
    Error,
    #[default]
    #[serde(other)]
    Other,
}

/// The response as a whole, at its end.
#[derive(Default, Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
    error: Option<serde_json::Value>,
    incomplete_details: Option<Incomplete>,
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
    usage: Option<Figures>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Figures {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<Piece<'a>>,
    #[serde(borrow)]
    content: Option<Vec<Part<'a>>>,
    #[serde(borrow)]
    summary: Option<Vec<Part<'a>>>,
    #[serde(borrow)]
    encrypted_content: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Piece<'a>>,
    #[serde(borrow)]
    refusal: Option<Piece<'a>>,
}

/// An item while it comes.
#[derive(Default)]
struct Building {
    index: u32,
    kind: String,
    id: String,
    name: String,
    /// Text, reasoning or arguments, as told by deltas.
    told: Text,
    /// The item as it was when it was done.
    done: Option<Option<Block>>,
}

/// A reply while it comes.
pub(crate) struct Reading {
    call: u64,
    items: Vec<Building>,
    usage: Usage,
    stop_reason: Option<StopReason>,
}

impl Reading {
    pub(crate) fn new(call: u64) -> Self {
        Self { call, items: Vec::new(), usage: Usage::default(), stop_reason: None }
    }

    fn item(&mut self, index: u32) -> &mut Building {
        let at = self.items.iter().rposition(|item| item.index == index).unwrap_or_else(|| {
            self.items.push(Building { index, ..Building::default() });
            self.items.len() - 1
        });
        &mut self.items[at]
    }

    fn added(&mut self, index: u32, raw: &RawValue) -> Result<(), ModelFailure> {
        let item: Item<'_> = serde_json::from_str(raw.get()).map_err(|error| unreadable(&error))?;
        let call = self.call;
        let building = self.item(index);
        building.id = item.call_id.or(item.id).unwrap_or_else(|| format!("call_{call}_{index}"));
        building.name = item.name.unwrap_or_default();
        building.kind = item.kind.into_owned();
        Ok(())
    }

    fn done(&mut self, index: u32, raw: &RawValue, progress: &dyn Progress) -> Result<(), ModelFailure> {
        self.added(index, raw)?;
        let item: Item<'_> = serde_json::from_str(raw.get()).map_err(|error| unreadable(&error))?;
        let building = self.item(index);
        let untold = building.told.is_empty();
        let block = match item.kind.as_ref() {
            "message" => {
                let text = joined(item.content, "");
                if untold && !text.is_empty() {
                    progress.text(&text);
                }
                (!text.is_empty()).then_some(Block::Text(text))
            }
            "reasoning" => {
                let thinking = thinking(item, raw);
                if untold && !thinking.text.is_empty() {
                    progress.thinking(&thinking.text);
                }
                progress.thinking_done();
                Some(Block::Thinking(thinking))
            }
            "function_call" => {
                let arguments = item.arguments.unwrap_or_default().to_text();
                tool_use(building.id.clone(), building.name.clone(), &arguments)
            }
            _ => Some(Block::Provider(Opaque(raw.get().into()))),
        };
        building.done = Some(block);
        Ok(())
    }

    fn delta(&mut self, event: &Event<'_>, tell: impl FnOnce(&str)) {
        if let Some(piece) = &event.delta {
            self.item(event.output_index.unwrap_or(0)).told.push(piece, tell);
        }
    }

    /// A further part of a summary is told with a blank line before it.
    fn part(&mut self, event: &Event<'_>, progress: &dyn Progress) {
        let item = self.item(event.output_index.unwrap_or(0));
        if !item.told.is_empty() {
            item.told.push(&Piece::from("\n\n"), |delta| progress.thinking(delta));
        }
    }

    fn ended(&mut self, response: &Response<'_>, progress: &dyn Progress) -> Result<Stage, ModelFailure> {
        if response.error.is_some() || response.status.as_deref() == Some("failed") {
            return Err(stream_error(response.error.as_ref().unwrap_or_default()));
        }
        if self.items.is_empty() {
            for (index, raw) in (0..).zip(response.output.iter().flatten()) {
                self.done(index, raw, progress)?;
            }
        }
        if let Some(figures) = &response.usage {
            self.usage = usage(figures);
            progress.tokens(self.usage.output);
        }
        self.stop_reason = Some(stop_reason(response));
        Ok(Stage::Done)
    }
}

impl Assembler for Reading {
    fn frame(&mut self, data: &str, progress: &dyn Progress) -> Result<Stage, ModelFailure> {
        let Some(event) = read(data)? else {
            return Ok(Stage::Partial);
        };
        match (event.kind, event.item, event.output_index) {
            (Kind::ItemAdded, Some(raw), Some(index)) => self.added(index, raw)?,
            (Kind::ItemDone, Some(raw), Some(index)) => self.done(index, raw, progress)?,
            (Kind::Text, ..) => self.delta(&event, |delta| progress.text(delta)),
            (Kind::Reasoning, ..) => self.delta(&event, |delta| progress.thinking(delta)),
            (Kind::ReasoningPart, ..) => self.part(&event, progress),
            (Kind::Arguments, ..) => self.delta(&event, |_| {}),
            (Kind::Ended, ..) => {
                let raw = event.response.map_or("{}", RawValue::get);
                let response = serde_json::from_str(raw).map_err(|error| unreadable(&error))?;
                return self.ended(&response, progress);
            }
            (Kind::Error, ..) => return Err(error_event(data)),
            _ => {}
        }
        Ok(Stage::Partial)
    }

    fn finish(mut self: Box<Self>) -> Reply {
        self.items.sort_by_key(|item| item.index);
        let blocks: Vec<_> = self.items.into_iter().filter_map(finished).collect();
        let stop_reason = stop_with_calls(self.stop_reason.unwrap_or_default(), &blocks);
        Reply { blocks, stop_reason, usage: self.usage }
    }
}

/// An event; `None` if it is of a kind that is not known and not of the usual form.
fn read(data: &str) -> Result<Option<Event<'_>>, ModelFailure> {
    #[derive(Deserialize)]
    struct Typed {
        #[serde(rename = "type", default)]
        kind: Kind,
    }
    if data.trim() == "[DONE]" {
        return Ok(None);
    }
    match serde_json::from_str(data) {
        Ok(event) => Ok(Some(event)),
        Err(error) => match serde_json::from_str(data) {
            Ok(Typed { kind: Kind::Other }) => Ok(None),
            _ => Err(unreadable(&error)),
        },
    }
}

/// The error is the event itself, or a field of it.
fn error_event(data: &str) -> ModelFailure {
    let mut event: serde_json::Value = serde_json::from_str(data).unwrap_or_default();
    if let Some(object) = event.as_object_mut() {
        object.remove("type");
    }
    let inner = event.get("error").filter(|inner| !inner.is_null()).cloned();
    stream_error(&inner.unwrap_or(event))
}

fn stop_reason(response: &Response<'_>) -> StopReason {
    if response.status.as_deref() != Some("incomplete") {
        return StopReason::EndTurn;
    }
    let reason = response.incomplete_details.as_ref().and_then(|details| details.reason.as_deref());
    match reason {
        Some("max_output_tokens") | None => StopReason::MaxTokens,
        Some(other) => StopReason::from_word(other),
    }
}

fn usage(figures: &Figures) -> Usage {
    let cached = figures.input_tokens_details.as_ref().and_then(|details| details.cached_tokens);
    Usage {
        input: figures.input_tokens.unwrap_or(0),
        output: figures.output_tokens.unwrap_or(0),
        cached: cached.unwrap_or(0),
    }
}

/// Reasoning goes back byte for byte, or not at all when it isn't there in encrypted form:
/// the server has stored nothing it could look up.
fn thinking(item: Item<'_>, raw: &RawValue) -> Thinking {
    let encrypted = item.encrypted_content.is_some_and(|content| !content.is_empty());
    let summary = joined(item.summary, "\n\n");
    let text = if summary.is_empty() { joined(item.content, "\n\n") } else { summary };
    Thinking { text, replay: encrypted.then(|| Opaque(raw.get().into())) }
}

fn joined(parts: Option<Vec<Part<'_>>>, between: &str) -> String {
    let texts = parts.into_iter().flatten().filter_map(|part| part.text.or(part.refusal));
    texts.map(|piece| piece.to_text()).collect::<Vec<_>>().join(between)
}

/// An item that was never done is what its deltas told.
fn finished(item: Building) -> Option<Block> {
    let Building { kind, id, name, told, done, .. } = item;
    match (done, kind.as_str()) {
        (Some(block), _) => block,
        (None, "message") => Some(told.finish()).filter(|text| !text.is_empty()).map(Block::Text),
        (None, "reasoning") => Some(Block::Thinking(Thinking { text: told.finish(), replay: None })),
        // Without arguments nobody can say whether they would have been empty.
        (None, "function_call") if !told.is_empty() => tool_use(id, name, &told.finish()),
        (None, _) => None,
    }
}
