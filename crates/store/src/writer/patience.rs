//! How long the writer waits for a store that fails. Meanwhile its group keeps its place, what
//! is submitted waits behind it, and whoever could hear a refusal hears one.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Queue;
use super::group::refuse;
use crate::error::Problem;
use midturn_core::engine::ports::StoreError;

/// How long a server may take for an answer before it is asked anew.
pub(super) const ANSWER: Duration = Duration::from_secs(60);

/// How long a database may be silent before nobody is kept waiting for it who could hear a refusal.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

/// Between two attempts, the first time; it doubles.
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// The longest pause between two attempts.
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The patience with one group.
#[derive(Debug)]
pub(super) struct Patience {
    bound: Duration,
    /// When it ends, from the first failure on.
    until: Option<Instant>,
    pause: Duration,
}

impl Patience {
    pub(super) fn new(bound: Duration) -> Self {
        Self { bound, until: None, pause: PAUSE_MIN }
    }

    /// An attempt failed. Waits for the next one; `false`: there is none.
    pub(super) async fn goes_on(&mut self, problem: &Problem, queue: &Queue) -> bool {
        let now = Instant::now();
        let until = *self.until.get_or_insert(now + self.bound);
        let trouble: Arc<str> = problem.waited_for().into();
        if queue.say_trouble(Some(trouble.clone())) {
            tracing::warn!(why = %problem, "the store fails and is waited for");
        }
        // A session can be begun or taken up later as well as now, and somebody waits for it.
        refuse(queue.give_up(false), &StoreError::Failed(trouble.to_string()));
        let left = until.saturating_duration_since(now);
        // Who closes the store doesn't wait for it.
        if left.is_zero() || queue.is_closed() {
            return false;
        }
        tokio::select! {
            () = tokio::time::sleep(self.pause.min(left)) => {}
            () = queue.hurried() => {}
        }
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        true
    }
}
