//! What a model has said so far in the call that is under way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::engine::ports::{ModelFailure, Progress};
use crate::engine::session::Session;
use crate::rules::compaction::Purpose;
use crate::rules::conversation::{InterruptReason, Partial, Reply};
use crate::rules::event::{LiveKind, Place, ThinkingState};
use crate::rules::id::CallId;
use crate::rules::secrets::{Redactor, Secrets};

/// Collects the reply while it comes, so that a cut loses nothing of it, and tells it live.
pub(super) struct Stream {
    session: Arc<Session>,
    place: Place,
    purpose: Purpose,
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
    /// The calls that come: how many bytes of their arguments were told.
    calls: BTreeMap<Box<str>, u64>,
    /// What the text and the thinking pass before anybody hears them.
    clean: [Redactor; 2],
}

/// A call's arguments are told of when it begins and then once for so many bytes: often enough
/// to see it grow, and no event for every few bytes of a long file. By bytes and not by time, so
/// that the same reply tells the same.
const CALL_STEP: u64 = 1_024;

/// What was heard of a call, without secrets: a server may repeat a key in its error.
pub(super) fn without_secrets(
    heard: Result<Reply, ModelFailure>,
    secrets: &Secrets,
) -> Result<Reply, ModelFailure> {
    match heard {
        Ok(reply) => Ok(secrets.reply(reply)),
        Err(failure) => Err(ModelFailure { message: secrets.redacted(failure.message), ..failure }),
    }
}

impl Said {
    fn tokens(&self) -> u64 {
        let words = |text: &str| text.split_whitespace().count() as u64;
        self.tokens.unwrap_or_else(|| words(&self.text) + words(&self.thinking))
    }
}

impl Stream {
    pub(super) fn new(session: Arc<Session>, place: Place, purpose: Purpose) -> Self {
        let clean = [(); 2].map(|()| Redactor::new(session.secrets.clone()));
        Self {
            session,
            place,
            purpose,
            said: Mutex::new(Said { clean, ..Said::default() }),
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

    /// No more comes: tells what was held back because it might have begun a secret.
    pub(super) fn ends(&self) {
        let [text, thinking] = {
            let mut said = self.said.lock();
            let held = said.clean.each_mut().map(Redactor::finish);
            said.text.push_str(&held[0]);
            said.thinking.push_str(&held[1]);
            held
        };
        if !text.is_empty() {
            self.tell(LiveKind::TextDelta { text });
        }
        if !thinking.is_empty() {
            self.tell(LiveKind::ThinkingDelta { text: thinking });
        }
    }

    /// Tells what is said while it is; a summary is said to nobody.
    fn tell(&self, kind: LiveKind) {
        if self.purpose.is_turn() {
            self.session.journal.live(self.place.clone(), kind);
        }
    }

    /// How many tokens have come, as far as that is known (words otherwise).
    pub(super) fn tokens_so_far(&self) -> u64 {
        self.said.lock().tokens()
    }

    /// The partial reply, and the states of its thinking blocks.
    pub(super) fn partial(&self, reason: InterruptReason, run: u64) -> (Partial, Vec<ThinkingState>) {
        let said = self.said.lock();
        let partial = Partial {
            text: said.text.clone(),
            thinking: said.thinking.clone(),
            reason,
            stream_run_id: run,
            partial_tokens: said.tokens(),
            interrupted_at: self.session.clock.now(),
        };
        let cut = match reason {
            InterruptReason::Superseded => ThinkingState::Cancelled,
            InterruptReason::Error => ThinkingState::Error,
            InterruptReason::UserCancelled
            | InterruptReason::MessageInterrupt
            | InterruptReason::StoppedByParent
            | InterruptReason::Limit
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
        let mut said = self.said.lock();
        let delta = said.clean[0].push(delta);
        said.text.push_str(&delta);
        drop(said);
        if !delta.is_empty() {
            self.tell(LiveKind::TextDelta { text: delta.into_owned() });
        }
    }

    fn thinking(&self, delta: &str) {
        let mut said = self.said.lock();
        if said.blocks.last().is_none_or(|whole| *whole) {
            said.blocks.push(false);
        }
        let delta = said.clean[1].push(delta);
        said.thinking.push_str(&delta);
        drop(said);
        if !delta.is_empty() {
            self.tell(LiveKind::ThinkingDelta { text: delta.into_owned() });
        }
    }

    fn thinking_done(&self) {
        if let Some(last) = self.said.lock().blocks.last_mut() {
            *last = true;
        }
    }

    fn call(&self, id: &str, name: &str, bytes: u64) {
        {
            let mut said = self.said.lock();
            match said.calls.get_mut(id) {
                Some(told) if bytes / CALL_STEP <= *told / CALL_STEP => return,
                Some(told) => *told = bytes,
                None => drop(said.calls.insert(id.into(), bytes)),
            }
        }
        let name = self.session.secrets.tool_name(name).into();
        self.tell(LiveKind::CallDelta { tool: CallId::new(id), name, bytes });
    }

    fn tokens(&self, so_far: u64) {
        self.said.lock().tokens = Some(so_far);
    }
}
