//! A model's reply and a person's answer without secrets: what is recorded, shown, run and sent back with the next
//! request is the redacted reply.

use std::borrow::Cow;

use super::Secrets;
use crate::rules::approval::Answer;
use crate::rules::conversation::{Block, Reply, StopReason, ToolUse};

impl Secrets {
    /// The reply with the secrets in its texts and in its calls' arguments replaced; a call
    /// then runs with what stands in their place.
    ///
    /// What goes back to the provider byte for byte does: thinking is shown redacted, but the block
    /// with its signature stays as it is (a changed one is refused), and so do blocks of tools
    /// that the provider runs itself. They come from it and hold what it knows already.
    pub fn reply(&self, mut reply: Reply) -> Reply {
        if self.0.is_none() {
            return reply;
        }
        for block in &mut reply.blocks {
            match block {
                Block::Text(text) => *text = self.redacted(std::mem::take(text)),
                Block::Thinking(thinking) => {
                    thinking.text = self.redacted(std::mem::take(&mut thinking.text))
                }
                Block::ToolUse(call) => self.redact_call(call),
                Block::Provider(_) => {}
            }
        }
        if let StopReason::Other(word) = &mut reply.stop_reason {
            *word = self.redacted(std::mem::take(word));
        }
        self.join_texts(&mut reply);
        reply
    }

    fn redact_call(&self, call: &mut ToolUse) {
        self.redact_value(&mut call.input);
        call.name = self.tool_name(&call.name).into();
    }

    /// The name of a tool, without secrets: there is no tool of such a name, and providers take
    /// no brackets in one.
    pub(crate) fn tool_name<'a>(&self, name: &'a str) -> &'a str {
        match self.redact(name) {
            Cow::Borrowed(_) => name,
            Cow::Owned(_) => "redacted",
        }
    }

    /// Texts that make a secret together which is in neither become one.
    fn join_texts(&self, reply: &mut Reply) {
        let whole = reply.text();
        let Cow::Owned(mut redacted) = self.redact(&whole) else { return };
        reply.blocks.retain_mut(|block| match block {
            Block::Text(text) => {
                *text = std::mem::take(&mut redacted);
                !text.is_empty()
            }
            Block::Thinking(_) | Block::ToolUse(_) | Block::Provider(_) => true,
        });
    }
}

impl Answer {
    /// Without secrets in the reason, which the model reads. A rule is held against calls
    /// whose arguments are redacted, and is recorded nowhere unless it fits one.
    pub(crate) fn without(self, secrets: &Secrets) -> Self {
        match self {
            Self::No(reason) => Self::No(reason.map(|reason| secrets.redacted(reason))),
            Self::Once | Self::Session(_) => self,
        }
    }
}
