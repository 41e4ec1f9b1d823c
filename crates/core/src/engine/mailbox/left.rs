//! The mailbox of an agent whose session goes on.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::inner::{Begun, Resume, is_agents};
use super::{Mailbox, StopOrder, mail_of};
use crate::rules::id::RunId;
use crate::rules::mail::{Mail, Rest, ReturnReason, Standing};

/// What a mailbox is made of when its session goes on.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// Whether there is a model to drive.
    pub(crate) drives: bool,
    /// The current run, or the last one.
    pub(crate) run: RunId,
    pub(crate) standing: Standing,
    /// What had stopped the current run.
    pub(crate) stop: Option<StopOrder>,
    /// What is queued, in order of arrival.
    pub(crate) mail: Vec<Kept>,
    /// Whether the next run is asked for by what is no message: a prompt that has not begun, or
    /// a shutdown that stopped the run.
    pub(crate) resumed: bool,
}

/// A message that was queued.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) mail: Arc<Mail>,
    /// Whether it asks for a run.
    pub(crate) wakes: bool,
    /// Whether a recorded result says that it cost a call.
    pub(crate) committed: bool,
}

impl Mailbox {
    /// The mailbox of an agent whose session goes on: what was queued, in order of arrival,
    /// and whether each message asks for a run. With `left` there is a run to be gone on with.
    pub(crate) fn recovered(was: Recovered) -> Self {
        let mailbox = Self::default();
        let mut inner = mailbox.inner.lock();
        inner.is_a_name = !was.drives;
        inner.run = was.run;
        inner.standing = was.standing;
        for Kept { mail, wakes, committed } in was.mail {
            inner.arrives(mail, committed, wakes);
        }
        if was.standing.is_in_a_run() {
            let token = CancellationToken::new();
            if was.stop.is_some() {
                token.cancel();
            }
            inner.run_token = Some(token);
            inner.stop = was.stop.map(Arc::new);
            (inner.begun, inner.left) = (Begun::Recorded, true);
        }
        if was.resumed {
            inner.resumed = Resume::Anyway;
        }
        mailbox.publish(&inner);
        drop(inner);
        mailbox
    }

    /// The next run is asked for by what is no message, and begins when the session goes on.
    pub(crate) fn ask_again(&self) {
        self.inner.lock().resumed = Resume::Anyway;
    }

    /// Starts an agent whose session goes on, if something queued asks for it; `true`: its run
    /// is to be driven.
    pub(crate) fn wake_if_asked(&self) -> bool {
        let mut inner = self.inner.lock();
        inner.is_asked_for() && inner.wake()
    }

    /// What is here and would not be accepted now: it was on its way back when the process ended.
    pub(crate) fn take_strays(&self) -> Option<(Vec<Arc<Mail>>, ReturnReason)> {
        let mut inner = self.inner.lock();
        let (rest, is_asked_for) = match inner.standing {
            Standing::Running => return None,
            Standing::Winding { then, restart } => (then, restart),
            Standing::Resting(rest) => (rest, inner.is_asked_for()),
        };
        let (taken, reason) = match rest {
            Rest::Closed => (inner.remove_all(), ReturnReason::Closed),
            Rest::Stopped if !is_asked_for => (inner.remove_where(is_agents), ReturnReason::Stopped),
            Rest::Idle | Rest::Stopped => return None,
        };
        self.publish(&inner);
        Some((mail_of(taken), reason))
    }

    /// What is pending, in order of arrival.
    pub(crate) fn queued(&self) -> Vec<Arc<Mail>> {
        self.inner.lock().queue.iter().map(|queued| queued.mail.clone()).collect()
    }
}
