//! Replies of Anthropic's Messages API, put together from the events of a stream.

use std::borrow::Cow;

use midturn_core::engine::ports::model::{ModelFailure, Progress};
use midturn_core::rules::conversation::{Block, Opaque, Reply, StopReason, Thinking, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::dialect::{Assembler, Stage, tool_use, unreadable};
use crate::failure::stream_error;
use crate::opaque::Fields;
use crate::text::{Piece, Text};

/// Any event. One flat struct: a tagged enum would make serde buffer every field before the tag.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default)]
    kind: Kind,
    index: Option<u32>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
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

#[derive(Default, Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<Piece<'a>>,
    #[serde(borrow)]
    thinking: Option<Piece<'a>>,
    #[serde(borrow)]
    signature: Option<Piece<'a>>,
    #[serde(borrow)]
    partial_json: Option<Piece<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Start {
    usage: Option<Figures>,
}

/// Each event repeats some of the figures, counted from the start: the last one holds.
#[derive(Default, Deserialize)]
struct Figures {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl Figures {
    fn update(&mut self, newer: &Self) {
        for (old, new) in [
            (&mut self.input_tokens, newer.input_tokens),
            (&mut self.cache_creation_input_tokens, newer.cache_creation_input_tokens),
            (&mut self.cache_read_input_tokens, newer.cache_read_input_tokens),
            (&mut self.output_tokens, newer.output_tokens),
        ] {
            *old = new.or(*old);
        }
    }

    fn usage(&self) -> Usage {
        let cached = self.cache_read_input_tokens.unwrap_or(0);
        let parts = [self.input_tokens, self.cache_creation_input_tokens, Some(cached)];
        let input = parts.iter().flatten().fold(0, |sum: u64, part| sum.saturating_add(*part));
        Usage { input, output: self.output_tokens.unwrap_or(0), cached }
    }
}

/// The start of a block. The rest of it, where it matters, is kept raw.
#[derive(Deserialize)]
struct BlockStart<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    text: Option<Piece<'a>>,
    #[serde(borrow)]
    thinking: Option<Piece<'a>>,
    #[serde(borrow)]
    signature: Option<Piece<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// A block while it comes.
enum Building {
    Text(Text),
    Thinking { text: Text, signature: Text },
    Redacted(Opaque),
    Call { id: String, name: String, json: Text, at_start: String },
    Provider { fields: Fields, raw: Box<str>, json: Text, changed: bool },
}

/// A reply while it comes.
pub(crate) struct Reading {
    call: u64,
    blocks: Vec<(u32, Building)>,
    figures: Figures,
    stop_reason: Option<StopReason>,
}

impl Reading {
    pub(crate) fn new(call: u64) -> Self {
        Self { call, blocks: Vec::new(), figures: Figures::default(), stop_reason: None }
    }

    fn stage(&self) -> Stage {
        if self.stop_reason.is_some() { Stage::Whole } else { Stage::Partial }
    }

    fn figures(&mut self, newer: Option<&Figures>) {
        if let Some(newer) = newer {
            self.figures.update(newer);
        }
    }

    fn block(&mut self, index: u32) -> Option<&mut Building> {
        self.blocks.iter_mut().rev().find(|(at, _)| *at == index).map(|(_, block)| block)
    }

    fn start(&mut self, index: u32, raw: &RawValue, progress: &dyn Progress) -> Result<(), ModelFailure> {
        if self.block(index).is_some() {
            return Ok(());
        }
        let start: BlockStart<'_> = serde_json::from_str(raw.get()).map_err(|error| unreadable(&error))?;
        let block = self.begun(start, raw, progress)?;
        self.blocks.push((index, block));
        Ok(())
    }

    fn begun(
        &self,
        start: BlockStart<'_>,
        raw: &RawValue,
        progress: &dyn Progress,
    ) -> Result<Building, ModelFailure> {
        Ok(match start.kind.as_ref() {
            "text" => {
                let mut text = Text::default();
                text.push(&start.text.unwrap_or_default(), |delta| progress.text(delta));
                Building::Text(text)
            }
            "thinking" => {
                let (mut text, mut signature) = (Text::default(), Text::default());
                text.push(&start.thinking.unwrap_or_default(), |delta| progress.thinking(delta));
                signature.push(&start.signature.unwrap_or_default(), |_| {});
                Building::Thinking { text, signature }
            }
            "redacted_thinking" => Building::Redacted(Opaque(raw.get().into())),
            "tool_use" => {
                let id = start.id.unwrap_or_else(|| format!("call_{}_{}", self.call, self.blocks.len()));
                let name = start.name.unwrap_or_default();
                progress.call(&id, &name, 0);
                let at_start = start.input.map_or_else(String::new, |input| input.get().to_owned());
                Building::Call { id, name, json: Text::default(), at_start }
            }
            _ => Building::Provider {
                fields: serde_json::from_str(raw.get()).map_err(|error| unreadable(&error))?,
                raw: raw.get().into(),
                json: Text::default(),
                changed: false,
            },
        })
    }

    fn delta(&mut self, index: u32, delta: &Delta<'_>, data: &str, progress: &dyn Progress) {
        let Some(block) = self.block(index) else {
            return;
        };
        match block {
            Building::Text(text) => {
                if let Some(piece) = &delta.text {
                    text.push(piece, |delta| progress.text(delta));
                }
            }
            Building::Thinking { text, signature } => {
                if let Some(piece) = &delta.thinking {
                    text.push(piece, |delta| progress.thinking(delta));
                }
                if let Some(piece) = &delta.signature {
                    signature.push(piece, |_| {});
                }
            }
            Building::Redacted(_) => {}
            Building::Call { id, name, json, .. } => {
                if let Some(piece) = &delta.partial_json {
                    json.push(piece, |_| {});
                    progress.call(id, name, json.len());
                }
            }
            Building::Provider { fields, json, changed, .. } => {
                *changed = true;
                match &delta.partial_json {
                    Some(piece) => json.push(piece, |_| {}),
                    None => lay_over(fields, data),
                }
            }
        }
    }
}

/// A delta of a kind that is not known replaces fields of its block.
fn lay_over(fields: &mut Fields, data: &str) {
    #[derive(Deserialize)]
    struct Whole {
        delta: Fields,
    }
    if let Ok(whole) = serde_json::from_str::<Whole>(data) {
        fields.lay_over(whole.delta);
    }
}

impl Assembler for Reading {
    fn frame(&mut self, data: &str, progress: &dyn Progress) -> Result<Stage, ModelFailure> {
        let Some(event) = read(data)? else {
            return Ok(self.stage());
        };
        match (event.kind, event.index) {
            (Kind::MessageStart, _) => {
                // Its figure for the output is from before the reply: it is not told.
                self.figures(event.message.and_then(|start| start.usage).as_ref());
            }
            (Kind::ContentBlockStart, Some(index)) => {
                if let Some(raw) = event.content_block {
                    self.start(index, raw, progress)?;
                }
            }
            (Kind::ContentBlockDelta, Some(index)) => {
                self.delta(index, &event.delta.unwrap_or_default(), data, progress);
            }
            (Kind::ContentBlockStop, Some(index)) => {
                if let Some(Building::Thinking { .. }) = self.block(index) {
                    progress.thinking_done();
                }
            }
            (Kind::MessageDelta, _) => {
                self.figures(event.usage.as_ref());
                if let Some(tokens) = event.usage.and_then(|figures| figures.output_tokens) {
                    progress.tokens(tokens);
                }
                let reason = event.delta.and_then(|delta| delta.stop_reason);
                self.stop_reason = reason.map(|word| stop_reason(&word)).or(self.stop_reason.take());
            }
            (Kind::MessageStop, _) if self.stop_reason.is_some() => return Ok(Stage::Done),
            (Kind::Error, _) => return Err(stream_error(&event.error.unwrap_or_default())),
            _ => {}
        }
        Ok(self.stage())
    }

    fn finish(mut self: Box<Self>) -> Reply {
        self.blocks.sort_by_key(|(index, _)| *index);
        Reply {
            blocks: self.blocks.into_iter().filter_map(|(_, block)| finished(block)).collect(),
            stop_reason: self.stop_reason.unwrap_or_default(),
            usage: self.figures.usage(),
        }
    }
}

/// An event; `None` if it is of a kind that is not known and not of the usual form.
fn read(data: &str) -> Result<Option<Event<'_>>, ModelFailure> {
    #[derive(Deserialize)]
    struct Typed {
        #[serde(rename = "type", default)]
        kind: Kind,
    }
    match serde_json::from_str(data) {
        Ok(event) => Ok(Some(event)),
        Err(error) => match serde_json::from_str(data) {
            Ok(Typed { kind: Kind::Other }) => Ok(None),
            _ => Err(unreadable(&error)),
        },
    }
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
            tool_use(id, name, &json)
        }
        Building::Provider { raw, changed: false, .. } => Some(Block::Provider(Opaque(raw.into()))),
        Building::Provider { mut fields, json, .. } => {
            if let Ok(input) = RawValue::from_string(json.finish()) {
                fields.set("input", input);
            }
            let json = serde_json::to_string(&fields).ok()?;
            Some(Block::Provider(Opaque(json.into())))
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
