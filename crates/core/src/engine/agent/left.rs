//! A run that the process before this one left: what it takes to go on with it.

use super::Driver;
use crate::rules::conversation::{InterruptReason, Partial};
use crate::rules::recovery::Left;

/// What is to be recorded before a run goes on.
pub(super) enum GoesOn {
    /// Its begin: it was stopped before.
    NotBegun,
    /// A model call was lost: a partial reply of which nothing came.
    CallLost,
    /// Nothing; results of lost calls are recorded as any others.
    AsItWas,
}

impl From<&Left> for GoesOn {
    fn from(left: &Left) -> Self {
        match left {
            Left::NotBegun => Self::NotBegun,
            Left::Calling => Self::CallLost,
            Left::Start | Left::Between | Left::Replied(_) | Left::Tools { .. } => Self::AsItWas,
        }
    }
}

impl Driver {
    /// Records what the end of the process before has made of the turn.
    pub(super) async fn go_on(&mut self, how: GoesOn) {
        self.is_at(self.run.turn());
        match how {
            GoesOn::NotBegun => self.begin().await,
            GoesOn::AsItWas => {}
            GoesOn::CallLost => self.call_was_lost().await,
        }
    }

    pub(super) async fn call_was_lost(&mut self) {
        let partial = Partial {
            text: String::new(),
            thinking: String::new(),
            reason: InterruptReason::Error,
            stream_run_id: self.run_id(),
            partial_tokens: 0,
            interrupted_at: self.session.clock.now(),
        };
        self.interrupted(partial, Vec::new()).await;
    }
}
