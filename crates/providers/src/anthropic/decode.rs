//! Replies of Anthropic's Messages API, put together from the events of a stream.

use indexmap::IndexMap;
use midturn_core::engine::ports::model::{ModelFailure, Progress};
use midturn_core::rules::conversation::{Block, Opaque, StopReason, Thinking, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::dialect::{Account, Assembler, Figures, event, tool_use, unreadable};
use crate::failure::stream_error;
use crate::text::{Piece, Text};

/// A JSON object whose fields keep their order and their bytes.
type Fields = IndexMap<String, Box<RawValue>>;

/// Any event. One flat struct: a tagged enum would make serde buffer every field before the tag.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default)]
    kind: Kind,
    index: Option<u32>,
    #[serde(borrow)]
    delta: Option<Part<'a>>,
    content_block: Option<&'a RawValue>,
    message: Option<Start>,
    usage: Option<Figures>,
    error: Option<serde_json::Value>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    MessageStart,
    ContentBlockStart,
    ContentBlockDelta,
    ContentBlockStop,
    MessageDelta,
    MessageStop,
    Error,
    #[default]
    #[serde(other)]
    Other,
}

/// A block's start, or a delta of one. The rest of a start, where it matters, is kept raw.
#[derive(Default, Deserialize)]
struct Part<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    text: Option<Piece<'a>>,
    thinking: Option<Piece<'a>>,
    signature: Option<Piece<'a>>,
    partial_json: Option<Piece<'a>>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Start {
    usage: Option<Figures>,
}

/// A block while it comes.
enum Building {
    Text(Text),
    Thinking { text: Text, signature: Text },
    Redacted(Opaque),
    Call { id: String, name: String, json: Text, at_start: String },
    Provider { raw: Box<RawValue>, over: Fields, json: Text },
}

/// A reply while it comes.
#[derive(Default)]
pub(crate) struct Reading {
    blocks: Vec<(u32, Building)>,
    /// Each event repeats some of them, counted from the start: the last one holds.
    figures: Figures,
}

impl Reading {
    fn block(&mut self, index: u32) -> Option<&mut Building> {
        self.blocks.iter_mut().rev().find(|(at, _)| *at == index).map(|(_, block)| block)
    }

    fn start(&mut self, index: u32, raw: &RawValue, account: &Account<'_>) -> Result<(), ModelFailure> {
        if self.block(index).is_some() {
            return Ok(());
        }
        let mut start: Part<'_> = serde_json::from_str(raw.get()).map_err(|error| unreadable(&error))?;
        let mut block = match start.kind.as_str() {
            "text" => Building::Text(Text::default()),
            "thinking" => Building::Thinking { text: Text::default(), signature: Text::default() },
            "redacted_thinking" => Building::Redacted(Opaque(raw.get().into())),
            "tool_use" => {
                let id =
                    start.id.take().unwrap_or_else(|| format!("call_{}_{}", account.call, self.blocks.len()));
                let name = start.name.take().unwrap_or_default();
                account.progress.call(&id, &name, 0);
                let at_start = start.input.map_or_else(String::new, |input| input.get().to_owned());
                Building::Call { id, name, json: Text::default(), at_start }
            }
            _ => Building::Provider { raw: raw.to_owned(), over: Fields::new(), json: Text::default() },
        };
        block.told(&start, account.progress);
        self.blocks.push((index, block));
        Ok(())
    }
}

impl Building {
    /// Takes what a start or a delta has of text, and tells it.
    fn told(&mut self, part: &Part<'_>, progress: &dyn Progress) {
        let push = |to: &mut Text, piece: &Option<Piece<'_>>, tell: &dyn Fn(&str)| {
            piece.iter().for_each(|piece| to.push(piece, tell));
        };
        match self {
            Self::Text(text) => push(text, &part.text, &|delta| progress.text(delta)),
            Self::Thinking { text, signature } => {
                push(text, &part.thinking, &|delta| progress.thinking(delta));
                push(signature, &part.signature, &|_| {});
            }
            Self::Redacted(_) => {}
            Self::Call { id, name, json, .. } => {
                if let Some(piece) = &part.partial_json {
                    json.push(piece, |_| {});
                    progress.call(id, name, json.len());
                }
            }
            Self::Provider { json, .. } => push(json, &part.partial_json, &|_| {}),
        }
    }

    /// Takes a delta whose event is `data`.
    fn delta(&mut self, delta: &Part<'_>, data: &str, progress: &dyn Progress) {
        self.told(delta, progress);
        if let (Self::Provider { over, .. }, None) = (self, &delta.partial_json) {
            lay_over(over, data);
        }
    }
}

/// A delta of a kind that is not known replaces fields of its block.
fn lay_over(fields: &mut Fields, data: &str) {
    #[derive(Deserialize)]
    struct Whole {
        delta: Fields,
    }
    if let Ok(Whole { delta }) = serde_json::from_str(data) {
        fields.extend(delta.into_iter().filter(|(name, _)| name != "type"));
    }
}

impl Assembler for Reading {
    fn frame(&mut self, data: &str, account: &mut Account<'_>) -> Result<bool, ModelFailure> {
        let progress = account.progress;
        let Some(event) = event::<Event<'_>, Kind>(data)? else {
            return Ok(false);
        };
        match (event.kind, event.index) {
            (Kind::MessageStart, _) => {
                // Its figure for the output is from before the reply: it is not told.
                self.figures.update(event.message.and_then(|start| start.usage).unwrap_or_default());
            }
            (Kind::ContentBlockStart, Some(index)) => {
                event.content_block.map_or(Ok(()), |raw| self.start(index, raw, account))?;
            }
            (Kind::ContentBlockDelta, Some(index)) => {
                if let Some(block) = self.block(index) {
                    block.delta(&event.delta.unwrap_or_default(), data, progress);
                }
            }
            (Kind::ContentBlockStop, Some(index)) => {
                if let Some(Building::Thinking { .. }) = self.block(index) {
                    progress.thinking_done();
                }
            }
            (Kind::MessageDelta, _) => {
                let figures = event.usage.unwrap_or_default();
                figures.number("output_tokens").into_iter().for_each(|tokens| progress.tokens(tokens));
                self.figures.update(figures);
                let reason = event.delta.and_then(|delta| delta.stop_reason);
                account.stop_reason = reason.map(|word| stop_reason(&word)).or(account.stop_reason.take());
                account.usage = usage(&self.figures);
            }
            (Kind::MessageStop, _) => return Ok(account.stop_reason.is_some()),
            (Kind::Error, _) => return Err(stream_error(&event.error.unwrap_or_default())),
            _ => {}
        }
        Ok(false)
    }

    fn finish(mut self: Box<Self>, _: u64) -> Vec<Block> {
        self.blocks.sort_by_key(|(index, _)| *index);
        self.blocks.into_iter().filter_map(|(_, block)| finished(block)).collect()
    }
}

fn usage(figures: &Figures) -> Usage {
    let [fresh, written, cached, output] =
        ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"]
            .map(|name| figures.number(name).unwrap_or(0));
    Usage { input: fresh.saturating_add(written).saturating_add(cached), output, cached }
}

fn stop_reason(word: &str) -> StopReason {
    match word {
        "model_context_window_exceeded" => StopReason::MaxTokens,
        word => StopReason::from_word(word),
    }
}

fn finished(block: Building) -> Option<Block> {
    match block {
        Building::Text(text) => Some(text.finish()).filter(|text| !text.is_empty()).map(Block::Text),
        Building::Thinking { text, signature } => {
            Some(Block::Thinking(thinking(text.finish(), &signature.finish())))
        }
        Building::Redacted(raw) => Some(Block::Thinking(Thinking { text: String::new(), replay: Some(raw) })),
        Building::Call { id, name, json, at_start } => {
            let json = if json.is_empty() { at_start } else { json.finish() };
            Some(tool_use(id, name, &json))
        }
        Building::Provider { raw, mut over, json } => {
            if let Ok(input) = RawValue::from_string(json.finish()) {
                over.insert("input".to_owned(), input);
            }
            if over.is_empty() {
                return Some(Block::Provider(Opaque(raw.get().into())));
            }
            let mut fields: Fields = serde_json::from_str(raw.get()).ok()?;
            fields.extend(over);
            Some(Block::Provider(Opaque(serde_json::to_string(&fields).ok()?.into())))
        }
    }
}

/// Thinking goes back byte for byte, or not at all when its signature never came.
fn thinking(text: String, signature: &str) -> Thinking {
    #[derive(Serialize)]
    struct Replay<'a> {
        r#type: &'static str,
        thinking: &'a str,
        signature: &'a str,
    }
    let replay = Replay { r#type: "thinking", thinking: &text, signature };
    let replay = (!signature.is_empty()).then(|| serde_json::to_string(&replay).ok()).flatten();
    Thinking { replay: replay.map(|json| Opaque(json.into())), text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_replaced_keeps_its_bytes_and_its_place() {
        let mut fields: Fields =
            serde_json::from_str(r#"{"type":"x","z":1.50,"input":{},"a":"\u00e9"}"#).unwrap();
        lay_over(&mut fields, r#"{"delta":{"type":"y","input":{"q": 1}}}"#);
        let json = serde_json::to_string(&fields).unwrap();
        assert_eq!(json, r#"{"type":"x","z":1.50,"input":{"q": 1},"a":"\u00e9"}"#);
    }
}
