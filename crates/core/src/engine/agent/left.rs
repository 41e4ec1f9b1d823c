//! A run that the process before this one left: what it takes to go on with it.

use super::Driver;
use crate::rules::conversation::{InterruptReason, Partial};
use crate::rules::recovery::Left;

impl Driver {
    /// Records what the end of the process before has made of the turn. `false`: as [`Driver::begin`].
    pub(super) async fn go_on(&mut self, left: Left) -> bool {
        self.is_at(self.run.turn());
        match left {
            Left::NotBegun => return self.begin().await,
            Left::Calling => self.call_was_lost().await,
            // Results of lost calls are recorded as any others.
            Left::Start | Left::Between | Left::Replied(_) | Left::Tools { .. } => {}
        }
        true
    }

    /// A model call was lost: a partial reply of which nothing came.
    pub(super) async fn call_was_lost(&mut self) {
        let partial = Partial {
            text: String::new(),
            thinking: String::new(),
            reason: InterruptReason::Error,
            stream_run_id: self.run.id(),
            partial_tokens: 0,
            interrupted_at: self.session.clock.now(),
        };
        self.interrupted(partial, Vec::new()).await;
    }
}
