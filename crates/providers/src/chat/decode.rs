//! Replies of Chat Completions, put together from the chunks of a stream.
//!
//! Compatible servers differ: ids may be missing, several calls may share an index, reasoning
//! comes in one of two fields, and `[DONE]` may never come.

use std::borrow::Cow;

use midturn_core::engine::ports::model::{ModelFailure, Progress};
use midturn_core::rules::conversation::{Block, StopReason, Thinking};
use serde::Deserialize;

use crate::dialect::{Account, Assembler, Figures, ended_early, tool_use, unreadable};
use crate::failure::stream_error;
use crate::text::{Piece, Text};

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<Figures>,
    error: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: u32,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Piece<'a>>,
    refusal: Option<Piece<'a>>,
    reasoning_content: Option<Piece<'a>>,
    reasoning: Option<Piece<'a>>,
    tool_calls: Option<Vec<CallDelta<'a>>>,
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    index: Option<u32>,
    id: Option<String>,
    #[serde(borrow)]
    function: Option<FunctionDelta<'a>>,
}

#[derive(Default, Deserialize)]
struct FunctionDelta<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<Piece<'a>>,
}

#[derive(Default)]
struct Call {
    index: Option<u32>,
    id: String,
    name: String,
    arguments: Text,
}

impl Call {
    /// Its id; one is made where none came. `at` is its place among the reply's calls.
    fn id(&self, call: u64, at: usize) -> Cow<'_, str> {
        if self.id.is_empty() { format!("call_{call}_{at}").into() } else { self.id.as_str().into() }
    }
}

/// A reply while it comes.
#[derive(Default)]
pub(crate) struct Reading {
    thinking: Text,
    thinking_is_open: bool,
    text: Text,
    calls: Vec<Call>,
}

impl Reading {
    /// What a choice has of the reply, and the reason to stop, if that has come.
    fn choice(&mut self, choice: Choice<'_>, account: &Account<'_>) -> Option<StopReason> {
        if let Some(delta) = choice.delta {
            self.delta(delta, account);
        }
        let word = choice.finish_reason.filter(|word| !word.is_empty())?;
        end_thinking(&mut self.thinking_is_open, account.progress);
        Some(stop_reason(&word))
    }

    fn delta(&mut self, delta: Delta<'_>, account: &Account<'_>) {
        let progress = account.progress;
        if let Some(piece) = delta.reasoning_content.or(delta.reasoning) {
            let open = &mut self.thinking_is_open;
            self.thinking.push(&piece, |delta| {
                *open = true;
                progress.thinking(delta);
            });
        }
        for piece in [delta.content, delta.refusal].into_iter().flatten() {
            let open = &mut self.thinking_is_open;
            self.text.push(&piece, |delta| {
                end_thinking(open, progress);
                progress.text(delta);
            });
        }
        for call in delta.tool_calls.into_iter().flatten() {
            end_thinking(&mut self.thinking_is_open, progress);
            self.call_delta(call, account);
        }
    }

    fn call_delta(&mut self, delta: CallDelta<'_>, account: &Account<'_>) {
        let id = delta.id.unwrap_or_default();
        let function = delta.function.unwrap_or_default();
        let at = self.call(delta.index, &id);
        let Some(call) = self.calls.get_mut(at) else {
            return;
        };
        if call.id.is_empty() {
            call.id = id;
        }
        if call.name.is_empty() {
            call.name = function.name.unwrap_or_default();
        }
        call.arguments.push(&function.arguments.unwrap_or_default(), |_| {});
        if !call.name.is_empty() {
            account.progress.call(&call.id(account.call, at), &call.name, call.arguments.len());
        }
    }

    /// Where the call is that a delta belongs to: the last one of its index, unless the delta brings another
    /// id, which begins a call of its own.
    fn call(&mut self, index: Option<u32>, id: &str) -> usize {
        let same_index = |call: &Call| index.is_none() || call.index == index;
        let same_id = |call: &Call| id.is_empty() || call.id.is_empty() || call.id == id;
        let known = match self.calls.iter().rposition(same_index) {
            Some(at) if same_id(&self.calls[at]) => Some(at),
            _ => self.calls.iter().rposition(|call| !id.is_empty() && call.id == id),
        };
        let at = known.unwrap_or(self.calls.len());
        if known.is_none() {
            self.calls.push(Call { index, ..Call::default() });
        }
        at
    }
}

impl Assembler for Reading {
    fn frame(&mut self, data: &str, account: &mut Account<'_>) -> Result<bool, ModelFailure> {
        if data.trim() == "[DONE]" {
            return if account.stop_reason.is_some() { Ok(true) } else { Err(ended_early()) };
        }
        let chunk: Chunk<'_> = serde_json::from_str(data).map_err(|error| unreadable(&error))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(stream_error(&error));
        }
        for choice in chunk.choices.into_iter().flatten().filter(|choice| choice.index == 0) {
            account.stop_reason = self.choice(choice, account).or(account.stop_reason.take());
        }
        chunk.usage.iter().for_each(|figures| account.costs(figures.openai()));
        Ok(false)
    }

    fn finish(self: Box<Self>, model_call: u64) -> Vec<Block> {
        let mut blocks = Vec::new();
        if !self.thinking.is_empty() {
            blocks.push(Block::Thinking(Thinking { text: self.thinking.finish(), replay: None }));
        }
        if !self.text.is_empty() {
            blocks.push(Block::Text(self.text.finish()));
        }
        for (n, call) in self.calls.into_iter().enumerate() {
            let id = call.id(model_call, n).into_owned();
            blocks.push(tool_use(id, call.name, &call.arguments.finish()));
        }
        blocks
    }
}

fn end_thinking(is_open: &mut bool, progress: &dyn Progress) {
    if std::mem::take(is_open) {
        progress.thinking_done();
    }
}

fn stop_reason(word: &str) -> StopReason {
    match word {
        "stop" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "length" => StopReason::MaxTokens,
        other => StopReason::from_word(other),
    }
}
