//! What ends a run, whatever else happens: a stop, a close, or a limit in time.

use std::sync::Arc;

use tokio_util::sync::{CancellationToken, DropGuard};

use super::inner::Inner;
use super::{Mailbox, mail_of};
use crate::engine::until::until;
use crate::rules::conversation::InterruptReason;
use crate::rules::event::Halt;
use crate::rules::id::{MessageId, RunId};
use crate::rules::mail::{Mail, Rest, Sender, Standing};
use crate::rules::wording::Cause;

/// Who ended a run, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopOrder {
    /// Who.
    pub by: Sender,
    /// Why.
    pub halt: Halt,
    /// The run that is meant, if not whichever is current: another one is left alone.
    pub run: Option<RunId>,
}

impl StopOrder {
    /// What the model reads of a call that it cut.
    pub fn cause(&self) -> Cause {
        match self.halt {
            Halt::Shutdown => Cause::Shutdown,
            Halt::Stop | Halt::Supersede | Halt::Close => Cause::Stop(self.by.clone()),
        }
    }

    /// What is recorded of a reply that it cut, and of the run's end.
    pub fn reason(&self) -> InterruptReason {
        match (self.halt, &self.by) {
            (Halt::Shutdown, _) => InterruptReason::Shutdown,
            (Halt::Supersede, _) => InterruptReason::Superseded,
            (Halt::Stop | Halt::Close, Sender::Agent(_)) => InterruptReason::StoppedByParent,
            (Halt::Stop | Halt::Close, Sender::User | Sender::Coordinator(_)) => {
                InterruptReason::UserCancelled
            }
        }
    }
}

/// What a stop found and did.
#[derive(Debug, Default)]
pub struct Stopped {
    /// Whether there was anything to stop.
    pub changed: bool,
    /// The mail that goes back.
    pub returned: Vec<Arc<Mail>>,
    /// A person's mail that stays.
    pub still_queued: Vec<MessageId>,
    /// Whether no run was under way, so that the agent rests already.
    pub at_rest: bool,
    /// Whether the run that was asked for begins by this, to end as stopped: it is to be driven.
    pub begins: bool,
    /// The current run (or the last one), where another one was meant: nothing was changed.
    pub stale: Option<RunId>,
    /// Kept until it is told: until then the run that it ended doesn't end for others.
    pub(crate) telling: Option<DropGuard>,
}

impl Mailbox {
    /// What ends the run, whatever else happens: a stop, or else a limit in time.
    pub fn cause_for_good(&self) -> Option<Cause> {
        self.inner.lock().cause_for_good()
    }

    /// The limit in time that ends the run, if one does.
    pub fn timed_out(&self) -> Option<&'static str> {
        self.inner.lock().timed_out
    }

    /// The run's time is up: nothing of it starts any more. `false`: it ends already.
    pub(crate) fn time_out(&self, limit: &'static str) -> bool {
        self.inner.lock().time_out(limit)
    }

    /// A limit has begun to end the run, or has left nothing for another turn: nobody wakes the
    /// agent until it is raised.
    pub(crate) fn reaches(&self, limit: &'static str) {
        self.inner.lock().limited = Some(limit);
    }

    /// The session has reached this limit, or it was raised.
    pub(crate) fn session_reaches(&self, limit: Option<&'static str>) {
        self.inner.lock().session_limited = limit;
    }

    /// The limit that keeps the agent from being woken.
    pub fn limit(&self) -> Option<&'static str> {
        self.inner.lock().limit()
    }

    /// The limit of its own that keeps it from being woken.
    pub(crate) fn own_limit(&self) -> Option<&'static str> {
        self.inner.lock().limited
    }

    /// The agent's own limit is raised; which it was.
    pub(crate) fn lift(&self) -> Option<&'static str> {
        self.inner.lock().limited.take()
    }

    /// What has stopped the run and is not told yet. The run's end is told after it, and the
    /// next run begins after it.
    pub(crate) fn tellings(&self) -> Vec<CancellationToken> {
        self.inner.lock().tellings.clone()
    }

    /// Stops the run, and takes back the start of the next one. Agents' mail goes back, a
    /// person's stays (semantics.md, section 6).
    pub fn stop(&self, order: StopOrder) -> Stopped {
        self.halted(|inner| inner.stop(order, false))
    }

    fn halted(&self, halt: impl FnOnce(&mut Inner) -> Stopped) -> Stopped {
        let mut inner = self.inner.lock();
        let mut stopped = halt(&mut inner);
        inner.is_being_told(&mut stopped);
        self.publish(&inner);
        stopped
    }

    /// Stops the run and has the next one start when it has ended: it is asked for until
    /// [`Mailbox::replaced`] by the message that is on its way.
    pub(crate) fn supersede(&self, order: StopOrder) -> Stopped {
        self.halted(|inner| {
            let stopped = inner.stop(order, true);
            inner.replacing += u32::from(stopped.changed);
            stopped
        })
    }

    /// The message has arrived that a run waited for, or it never will.
    pub(crate) fn replaced(&self) {
        let mut inner = self.inner.lock();
        debug_assert!(inner.replacing > 0, "more arrived than were on their way");
        inner.replacing = inner.replacing.saturating_sub(1);
        drop(inner);
        self.arrived.notify_waiters();
    }

    /// Waits until nothing is on its way that asks for the run that is about to begin.
    pub(crate) async fn until_replaced(&self) {
        until(&self.arrived, || self.inner.lock().replacing == 0).await;
    }

    /// From now on every message is returned; what is pending goes back.
    pub fn close(&self, order: StopOrder) -> Stopped {
        self.halted(|inner| {
            let mut stopped = inner.stop(order, false);
            stopped.at_rest = matches!(inner.standing, Standing::Resting(_));
            let closed = match stopped.at_rest {
                true => Standing::Resting(Rest::Closed),
                false => Standing::Winding { then: Rest::Closed, restart: false },
            };
            stopped.changed = !inner.standing.is_closed();
            inner.standing = closed;
            stopped.still_queued.clear();
            stopped.returned.extend(mail_of(inner.remove_all()));
            stopped
        })
    }
}
