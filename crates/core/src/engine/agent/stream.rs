//! What a model has said so far in the call that is under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::engine::ports::Progress;
use crate::engine::session::Session;
use crate::rules::conversation::{InterruptReason, Partial};
use crate::rules::event::{LiveKind, Place, ThinkingState};

/// Collects the reply while it comes, so that a cut loses nothing of it, and tells it live.
pub(super) struct Stream {
    session: Arc<Session>,
    place: Place,
    said: Mutex<Said>,
    handed_over: AtomicBool,
    pub(super) sent: Notify,
}

#[derive(Default)]
struct Said {
    text: String,
    thinking: String,
    /// One for each thinking block: whether it is whole.
    blocks: Vec<bool>,
    tokens: Option<u64>,
}

impl Stream {
    pub(super) fn new(session: Arc<Session>, place: Place) -> Self {
        Self {
            session,
            place,
            said: Mutex::default(),
            handed_over: AtomicBool::new(false),
            sent: Notify::new(),
        }
    }

    /// Whether the request was handed to the connection.
    pub(super) fn was_sent(&self) -> bool {
        self.handed_over.load(Ordering::Acquire)
    }

    /// Whether nothing was said yet.
    pub(super) fn is_empty(&self) -> bool {
        let said = self.said.lock();
        said.text.is_empty() && said.thinking.is_empty()
    }

    /// The partial reply, and the states of its thinking blocks.
    pub(super) fn partial(&self, reason: InterruptReason, run: u64) -> (Partial, Vec<ThinkingState>) {
        let said = self.said.lock();
        let words = |text: &str| text.split_whitespace().count() as u64;
        let partial = Partial {
            text: said.text.clone(),
            thinking: said.thinking.clone(),
            reason,
            stream_run_id: run,
            partial_tokens: said.tokens.unwrap_or_else(|| words(&said.text) + words(&said.thinking)),
            interrupted_at: self.session.clock.now(),
        };
        let cut = match reason {
            InterruptReason::Superseded => ThinkingState::Cancelled,
            InterruptReason::Error => ThinkingState::Error,
            InterruptReason::UserCancelled
            | InterruptReason::MessageInterrupt
            | InterruptReason::StoppedByParent
            | InterruptReason::Shutdown => ThinkingState::Interrupted,
        };
        let state = |whole: &bool| if *whole { ThinkingState::Completed } else { cut };
        (partial, said.blocks.iter().map(state).collect())
    }
}

impl Progress for Stream {
    fn sent(&self) {
        self.handed_over.store(true, Ordering::Release);
        self.sent.notify_one();
    }

    fn text(&self, delta: &str) {
        self.said.lock().text.push_str(delta);
        self.session.journal.live(self.place.clone(), LiveKind::TextDelta { text: delta.to_owned() });
    }

    fn thinking(&self, delta: &str) {
        let mut said = self.said.lock();
        if said.blocks.last().is_none_or(|whole| *whole) {
            said.blocks.push(false);
        }
        said.thinking.push_str(delta);
        drop(said);
        let kind = LiveKind::ThinkingDelta { text: delta.to_owned() };
        self.session.journal.live(self.place.clone(), kind);
    }

    fn thinking_done(&self) {
        if let Some(last) = self.said.lock().blocks.last_mut() {
            *last = true;
        }
    }

    fn tokens(&self, so_far: u64) {
        self.said.lock().tokens = Some(so_far);
    }
}
