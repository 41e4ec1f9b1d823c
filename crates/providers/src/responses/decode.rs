//! Replies of the Responses API, put together from the events of a stream.
//!
//! Deltas are for showing; what counts is each item as it was when it was done, and that it
//! goes back as the very bytes that came.

use std::borrow::Cow;

use midturn_core::engine::ports::model::{ModelFailure, Progress};
use midturn_core::rules::conversation::{Block, Opaque, StopReason, Thinking};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dialect::{Account, Assembler, Figures, cut_call, event, tool_use, unreadable};
use crate::failure::stream_error;
use crate::responses::items::{Building, ItemKeys, Items};
use crate::text::Piece;

/// Any event, flat.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default)]
    kind: Kind,
    output_index: Option<u32>,
    item_id: Option<String>,
    #[serde(borrow)]
    delta: Option<Piece<'a>>,
    item: Option<&'a RawValue>,
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

impl Event<'_> {
    /// Which item a delta means, whose kind tells the item's.
    fn keys(&self) -> ItemKeys<'_> {
        let kind = match self.kind {
            Kind::Reasoning | Kind::ReasoningPart => "reasoning",
            Kind::Arguments => "function_call",
            _ => "message",
        };
        ItemKeys { index: self.output_index, id: given(self.item_id.as_deref()), call_id: None, kind }
    }
}

/// The response as a whole, at its end.
#[derive(Default, Deserialize)]
struct Response<'a> {
    status: Option<String>,
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
struct Item<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    id: Option<String>,
    call_id: Option<String>,
    status: Option<String>,
    name: Option<String>,
    arguments: Option<Piece<'a>>,
    content: Option<Vec<Part<'a>>>,
    summary: Option<Vec<Part<'a>>>,
    encrypted_content: Option<String>,
}

impl<'a> Item<'a> {
    fn read(raw: &'a RawValue) -> Result<Self, ModelFailure> {
        serde_json::from_str(raw.get()).map_err(|error| unreadable(&error))
    }

    fn keys(&self, index: Option<u32>) -> ItemKeys<'_> {
        let (id, call_id) = (given(self.id.as_deref()), given(self.call_id.as_deref()));
        ItemKeys { index, id, call_id, kind: &self.kind }
    }
}

/// An empty id counts as absent.
fn given(id: Option<&str>) -> Option<&str> {
    id.filter(|id| !id.is_empty())
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Piece<'a>>,
    refusal: Option<Piece<'a>>,
}

/// A reply while it comes.
#[derive(Default)]
pub(crate) struct Reading {
    items: Items,
}

impl Reading {
    fn added(&mut self, index: Option<u32>, item: Item<'_>, account: &Account<'_>) {
        let building = self.items.begun(item.keys(index));
        building.name = item.name.unwrap_or_default();
        building.tell_call(account);
    }

    fn done(
        &mut self,
        index: Option<u32>,
        raw: &RawValue,
        account: &Account<'_>,
    ) -> Result<(), ModelFailure> {
        let item = Item::read(raw)?;
        let building = self.items.of(item.keys(index));
        building.done = Some(block(item, raw, building, account));
        Ok(())
    }

    fn delta(&mut self, event: &Event<'_>, tell: impl FnOnce(&str)) {
        if let Some(piece) = &event.delta {
            self.items.of(event.keys()).told.push(piece, tell);
        }
    }

    /// A further part of a summary is told with a blank line before it.
    fn part(&mut self, event: &Event<'_>, progress: &dyn Progress) {
        let item = self.items.of(event.keys());
        if !item.told.is_empty() {
            item.told.push(&Piece::from("\n\n"), |delta| progress.thinking(delta));
        }
    }

    /// Where no item was ever done, the response as a whole has them, if it has any.
    fn all_done(&mut self, output: &[&RawValue], account: &Account<'_>) -> Result<(), ModelFailure> {
        if self.items.any_done() || output.is_empty() {
            return Ok(());
        }
        for (index, raw) in (0..).zip(output) {
            self.done(Some(index), raw, account)?;
        }
        self.items.keep_done();
        Ok(())
    }

    fn ended(&mut self, response: &Response<'_>, account: &mut Account<'_>) -> Result<(), ModelFailure> {
        if response.error.is_some() || response.status.as_deref() == Some("failed") {
            return Err(stream_error(response.error.as_ref().unwrap_or_default()));
        }
        self.all_done(response.output.as_deref().unwrap_or_default(), account)?;
        response.usage.iter().for_each(|figures| account.costs(figures.openai()));
        account.stop_reason = Some(stop_reason(response));
        Ok(())
    }
}

impl Assembler for Reading {
    fn frame(&mut self, data: &str, account: &mut Account<'_>) -> Result<bool, ModelFailure> {
        let progress = account.progress;
        if data.trim() == "[DONE]" {
            return Ok(false);
        }
        let Some(event) = event::<Event<'_>, Kind>(data)? else {
            return Ok(false);
        };
        match (event.kind, event.item) {
            (Kind::ItemAdded, Some(raw)) => self.added(event.output_index, Item::read(raw)?, account),
            (Kind::ItemDone, Some(raw)) => self.done(event.output_index, raw, account)?,
            (Kind::Text, _) => self.delta(&event, |delta| progress.text(delta)),
            (Kind::Reasoning, _) => self.delta(&event, |delta| progress.thinking(delta)),
            (Kind::ReasoningPart, _) => self.part(&event, progress),
            (Kind::Arguments, _) => {
                self.delta(&event, |_| {});
                self.items.of(event.keys()).tell_call(account);
            }
            (Kind::Ended, _) => {
                let raw = event.response.map_or("{}", RawValue::get);
                let response = serde_json::from_str(raw).map_err(|error| unreadable(&error))?;
                return self.ended(&response, account).map(|()| true);
            }
            (Kind::Error, _) => return Err(error_event(data)),
            _ => {}
        }
        Ok(false)
    }

    fn finish(self: Box<Self>, call: u64) -> Vec<Block> {
        self.items.into_blocks(call)
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

/// What an item came to, and what was not yet told of it.
fn block(item: Item<'_>, raw: &RawValue, building: &Building, account: &Account<'_>) -> Option<Block> {
    let progress = account.progress;
    let untold = building.told.is_empty();
    match item.kind.as_ref() {
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
            let (id, name) = (building.call(account.call), item.name.unwrap_or_default());
            let cut = arguments.is_empty() && item.status.as_deref() == Some("incomplete");
            Some(if cut { cut_call(id, name) } else { tool_use(id, name, &arguments) })
        }
        _ => Some(Block::Provider(Opaque(raw.get().into()))),
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
