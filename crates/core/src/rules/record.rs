//! The record of a conversation as it is kept: line by line, each as soon as it is true.
//!
//! A turn's results are recorded one by one as its calls end, so that a crash loses none of
//! them; [`Fold`] puts them back together, in call order, as the model has to see them. It
//! is the same for a session that goes on after a crash and for whoever reads the store.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::compaction::Compaction;
use super::conversation::{Entry, Injected, Partial, Reply, ToolResult, ToolUse, Usage};
use super::mail::Point;
use super::prompt::Prompt;

/// A line of the record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Line {
    /// A prompt: text that is nobody's message.
    Prompt(Arc<str>),
    /// Mail that was injected alone (points `start`, `stream` and `B`).
    Alone(Injected, Point),
    /// A whole reply.
    Reply(Arc<Reply>),
    /// A reply that was cut: never part of a prompt.
    Interrupted(Arc<Partial>),
    /// The result of one call of the reply before, when it ended.
    Result(ToolResult),
    /// Mail that was injected with the results (points `A`, `C` and `D`).
    Beside(Injected, Point),
    /// A summary took the place of the older part of the prompt.
    Compacted(Arc<Compaction>),
    /// A summary that made no room: never part of a prompt.
    Unused(Arc<Reply>),
}

impl Line {
    /// What the call cost that gave the line.
    pub fn usage(&self) -> Option<Usage> {
        match self {
            Self::Reply(reply) | Self::Unused(reply) => Some(reply.usage),
            Self::Compacted(compaction) => Some(compaction.usage),
            Self::Prompt(_) | Self::Alone(..) | Self::Interrupted(_) | Self::Result(_) | Self::Beside(..) => {
                None
            }
        }
    }

    /// The result that the line is, if it is one.
    pub fn result(&self) -> Option<&ToolResult> {
        if let Self::Result(result) = self { Some(result) } else { None }
    }
}

/// Lines made into the prompt that they are the record of.
#[derive(Debug, Default)]
pub struct Fold {
    prompt: Prompt,
    open: Option<Open>,
}

/// A reply whose results are not all in the prompt yet.
#[derive(Debug)]
pub struct Open {
    /// The reply.
    pub reply: Arc<Reply>,
    /// The results so far, as they came.
    pub results: Vec<ToolResult>,
}

impl Open {
    /// The result of a call, if it is there.
    pub fn result(&self, call: &ToolUse) -> Option<&ToolResult> {
        self.results.iter().find(|result| result.id == call.id)
    }

    fn in_call_order(&self) -> Vec<ToolResult> {
        self.reply.calls().filter_map(|call| self.result(call).cloned()).collect()
    }
}

impl Fold {
    /// The next line, in the order of the record.
    pub fn push(&mut self, line: &Line) {
        match line {
            Line::Result(result) => {
                if let Some(open) = &mut self.open {
                    open.results.push(result.clone());
                }
            }
            Line::Beside(mail, _) => self.close(Some(mail.clone())),
            Line::Interrupted(_) | Line::Unused(_) => self.close(None),
            Line::Compacted(compaction) => self.compacted(compaction),
            Line::Prompt(text) => self.user(Injected::prompt(text.clone())),
            Line::Alone(injected, _) => self.user(injected.clone()),
            Line::Reply(reply) => self.reply(reply.clone()),
        }
    }

    fn user(&mut self, injected: Injected) {
        self.close(None);
        self.prompt.push(Arc::new(Entry::User(injected)));
    }

    fn reply(&mut self, reply: Arc<Reply>) {
        self.close(None);
        self.prompt.push(Arc::new(Entry::Assistant(reply.clone())));
        if reply.calls().next().is_some() {
            self.open = Some(Open { reply, results: Vec::new() });
        }
    }

    fn compacted(&mut self, compaction: &Compaction) {
        self.close(None);
        let kept = usize::try_from(compaction.kept).unwrap_or(usize::MAX);
        self.prompt = self.prompt.compacted(compaction.summary.clone(), kept);
    }

    /// The results of the last reply are all there is of its turn.
    fn close(&mut self, mail: Option<Injected>) {
        if let Some(open) = self.open.take() {
            let results = open.in_call_order();
            self.prompt.push(Arc::new(Entry::ToolResults { results, mail }));
        }
    }

    /// The prompt, its last turn closed.
    pub fn closed(mut self) -> Prompt {
        self.close(None);
        self.prompt
    }

    /// The prompt, and the turn that is not in it yet.
    pub fn open(self) -> (Prompt, Option<Open>) {
        (self.prompt, self.open)
    }
}

impl<'a> FromIterator<&'a Line> for Fold {
    fn from_iter<T: IntoIterator<Item = &'a Line>>(lines: T) -> Self {
        let mut fold = Self::default();
        lines.into_iter().for_each(|line| fold.push(line));
        fold
    }
}
