//! What ends a run, whatever else happens: a stop, a close, or a limit in time.

use tokio_util::sync::CancellationToken;

use super::{Mailbox, StopOrder, Stopped};
use crate::rules::mail::{Rest, Standing};
use crate::rules::wording::Cause;

impl Mailbox {
    /// What ends the run, whatever else happens: a stop, or else a limit in time.
    pub fn cause_for_good(&self) -> Option<Cause> {
        self.inner.lock().cause_for_good()
    }

    /// The limit in time that ends the run, if one does.
    pub fn timed_out(&self) -> Option<&'static str> {
        self.inner.lock().timed_out
    }

    /// The run's time is up: nothing of it starts any more.
    pub(crate) fn time_out(&self, limit: &'static str) {
        self.inner.lock().time_out(limit);
    }

    /// What has stopped the run and is not told yet. The run's end is told after it, and the
    /// next run begins after it.
    pub(crate) fn tellings(&self) -> Vec<CancellationToken> {
        self.inner.lock().tellings.clone()
    }

    /// Stops the run, and takes back the start of the next one. Agents' mail goes back, a
    /// person's stays (semantics.md, section 6).
    pub fn stop(&self, order: StopOrder) -> Stopped {
        let mut inner = self.inner.lock();
        let mut stopped = inner.stop(order, false);
        inner.is_being_told(&mut stopped);
        self.publish(&inner);
        stopped
    }

    /// Stops the run and has the next one start when it has ended.
    pub fn supersede(&self, order: StopOrder) -> Stopped {
        let mut inner = self.inner.lock();
        let mut stopped = inner.stop(order, true);
        inner.is_being_told(&mut stopped);
        self.publish(&inner);
        stopped
    }

    /// From now on every message is returned; what is pending goes back.
    pub fn close(&self, order: StopOrder) -> Stopped {
        let mut inner = self.inner.lock();
        let mut stopped = inner.stop(order, false);
        stopped.changed = !matches!(
            inner.standing,
            Standing::Resting(Rest::Closed) | Standing::Winding { then: Rest::Closed, .. }
        );
        inner.standing = match inner.standing {
            Standing::Resting(_) => Standing::Resting(Rest::Closed),
            Standing::Running | Standing::Winding { .. } => {
                Standing::Winding { then: Rest::Closed, restart: false }
            }
        };
        stopped.at_rest = matches!(inner.standing, Standing::Resting(_));
        stopped.still_queued.clear();
        stopped.returned.extend(inner.remove_where(|_| true));
        inner.is_being_told(&mut stopped);
        self.publish(&inner);
        stopped
    }
}
