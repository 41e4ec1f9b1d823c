//! The compaction of a conversation: a call of its own between injection and request
//! (semantics.md, section 7). When, what and whether it helped is `rules::compaction`'s.
//!
//! It takes no mail and moves no receipt: what it summarises was answered long ago.

use std::sync::Arc;

use super::Driver;
use super::model_phase::finished;
use crate::engine::journal::Draft;
use crate::rules::compaction::{self, Compaction, Need, Purpose};
use crate::rules::conversation::Reply;
use crate::rules::event::EventKind;
use crate::rules::mail::Point;
use crate::rules::prompt::Prompt;
use crate::rules::record::Line;

impl Driver {
    /// Sees to it that the model can hold the request that comes next. `false`: no request
    /// follows in this turn, and the run knows why.
    pub(super) async fn has_room(&mut self) -> bool {
        match compaction::need(&self.body.prompt, &self.cell.settings) {
            Need::Nothing => true,
            Need::Hopeless(why) => {
                self.is_crowded(&why);
                false
            }
            Need::Summary { cut } => self.compact(cut).await && self.hears_what_came().await,
        }
    }

    /// A summary takes its time: the mailbox is looked at once more, so that nobody waits for the
    /// next whole reply too. `false`: the store refused it, and the run knows.
    async fn hears_what_came(&mut self) -> bool {
        self.inject(self.run.free(Point::Stream)).await
    }

    async fn compact(&mut self, cut: usize) -> bool {
        // All of it, because this is the last look at what will be gone.
        if let Err(breach) = self.body.validator.check(self.body.prompt.entries()) {
            self.run.failed(&breach.to_string());
            return false;
        }
        let asked = compaction::request(&self.body.prompt, cut);
        let Some(reply) = self.hear(Some(&asked)).await else { return false };
        self.spends(&reply);
        let has_room = match compaction::compact(&self.body.prompt, cut, &reply, &self.cell.settings) {
            Ok((prompt, compaction)) => self.compacted(&reply, prompt, compaction).await,
            Err(why) => {
                self.not_compacted(reply, &why).await;
                false
            }
        };
        self.at_boundary().await;
        has_room
    }

    /// Records the summary, and goes on with it.
    async fn compacted(&mut self, reply: &Reply, prompt: Prompt, compaction: Compaction) -> bool {
        if let Err(breach) = self.body.validator.compacted(prompt.entries()) {
            self.run.failed(&breach.to_string());
            return false;
        }
        let mut draft = Draft::event(self.place(), finished(reply, Purpose::Summary));
        let (messages, tokens) = (compaction.messages, compaction.tokens);
        draft.tell(self.place(), EventKind::Compacted { messages, tokens });
        self.line(&mut draft, Line::Compacted(Arc::new(compaction)));
        self.body.prompt = prompt;
        self.cell.state.lock().context = tokens.after;
        self.record_or_end(draft).await
    }

    /// Records a summary that made no room: the run ends at that limit, and asks for no other.
    async fn not_compacted(&mut self, reply: Reply, why: &str) {
        self.is_crowded(why);
        let mut draft = Draft::event(self.place(), finished(&reply, Purpose::Summary));
        self.line(&mut draft, Line::Unused(Arc::new(reply)));
        self.record_or_end(draft).await;
    }
}
