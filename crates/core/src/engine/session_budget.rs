//! The budget that all agents of a session share: requests hold their part of it, and wait
//! for what others hold. How much is held, and who waits, is decided in `rules::limits`.

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::rules::limits::{BelowSpent, Bound, Budget, Grant, Hold, Money, Prices, Spent, Whose};
use crate::rules::settings::{Limits, LimitsPatch};
use crate::rules::time::{Micros, Span};

/// The session's budget.
pub(crate) struct SessionBudget {
    budget: Mutex<Budget>,
    /// The limit that has ended a run, or left nothing for another turn.
    reached: Mutex<Option<&'static str>>,
    /// How long the session had lived before this process.
    before: Span,
    /// When this process began or took it up, in the session's time.
    began: Micros,
    /// Told when a request has ended, or a limit was set.
    changed: Notify,
    /// Told when a limit was set, and then only: who waits for a time must not be woken in its instant.
    set: Notify,
}

impl SessionBudget {
    pub(crate) fn new(caps: Limits, before: Span, began: Micros) -> Self {
        Self {
            budget: Mutex::new(Budget::new(Whose::Session, caps, Spent::default())),
            reached: Mutex::default(),
            before,
            began,
            changed: Notify::new(),
            set: Notify::new(),
        }
    }

    /// What was used before the session went on.
    pub(crate) fn restore(&self, spent: Spent) {
        self.budget.lock().restore(Spent { time: Span::ZERO, ..spent });
    }

    /// When the session's time is up, in its own time, and the setting that says so.
    pub(crate) fn ends_at(&self) -> Option<(Micros, &'static str)> {
        let (most, limit) = self.budget.lock().time()?;
        Some((self.began.after(Span(most.0.saturating_sub(self.before.0))), limit))
    }

    pub(crate) fn begin_turn(&self, now: Micros) -> Result<(), &'static str> {
        self.lives(now).begin_turn()
    }

    /// The limit that leaves nothing for another turn.
    pub(crate) fn is_used_up(&self, now: Micros) -> Option<&'static str> {
        self.lives(now).reached()
    }

    /// How much is used of what a setting limits.
    pub(crate) fn used_of(&self, setting: &str, now: Micros) -> Option<String> {
        self.lives(now).used_of(setting)
    }

    fn lives(&self, now: Micros) -> parking_lot::MutexGuard<'_, Budget> {
        let lived = Span(self.before.0.saturating_add(now.since(self.began).0));
        let mut budget = self.budget.lock();
        budget.worked(lived);
        budget
    }

    pub(crate) fn hold(&self, bound: Bound, prices: Prices) -> Grant {
        self.budget.lock().hold(bound, prices)
    }

    pub(crate) fn settle(&self, hold: Hold, tokens: u64, cost: Money) {
        self.budget.lock().settle(hold, tokens, cost);
        self.changed.notify_waiters();
    }

    /// Sets limits.
    pub(crate) fn set(&self, limits: &LimitsPatch, now: Micros) -> Result<(), BelowSpent> {
        self.lives(now).set(limits)?;
        self.look_again();
        Ok(())
    }

    /// Told when a request has ended, or a limit was set, after this call.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// A limit was set: whoever waits because of one looks again.
    pub(crate) fn look_again(&self) {
        self.changed.notify_waiters();
        self.set.notify_waiters();
    }

    /// Told when a limit was set after this call.
    pub(crate) fn limits_set(&self) -> Notified<'_> {
        self.set.notified()
    }

    /// The limit of the session that is reached.
    pub(crate) fn reached(&self) -> Option<&'static str> {
        *self.reached.lock()
    }

    /// Remembers a limit of the session that is reached, or that none is any more.
    pub(crate) fn reaches(&self, limit: Option<&'static str>) {
        *self.reached.lock() = limit;
    }

    pub(crate) fn spent(&self) -> Spent {
        self.budget.lock().spent()
    }
}
