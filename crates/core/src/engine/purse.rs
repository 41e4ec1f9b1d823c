//! The budget that all agents of a session share: requests hold their part of it, and wait
//! for what others hold. How much is held, and who waits, is decided in `rules::limits`.

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::rules::limits::{Bound, Budget, Caps, Grant, Hold, Limit, Money, Prices, Spent};

/// The session's budget.
pub(crate) struct Purse {
    budget: Mutex<Budget>,
    settled: Notify,
}

impl Purse {
    pub(crate) fn new(caps: Caps) -> Self {
        Self { budget: Mutex::new(Budget::new(caps, Spent::default())), settled: Notify::new() }
    }

    /// What was used before the session went on.
    pub(crate) fn restore(&self, spent: Spent) {
        self.budget.lock().restore(spent);
    }

    pub(crate) fn begin_turn(&self) -> Result<(), Limit> {
        self.budget.lock().begin_turn()
    }

    pub(crate) fn hold(&self, bound: Bound, prices: Prices) -> Grant {
        self.budget.lock().hold(bound, prices)
    }

    pub(crate) fn settle(&self, hold: Hold, tokens: u64, cost: Money) {
        self.budget.lock().settle(hold, tokens, cost);
        self.settled.notify_waiters();
    }

    /// Told when a request has ended after this call.
    pub(crate) fn settled(&self) -> Notified<'_> {
        self.settled.notified()
    }

    pub(crate) fn spent(&self) -> Spent {
        self.budget.lock().spent()
    }
}
