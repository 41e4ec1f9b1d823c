//! The mailbox of an agent whose session goes on.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::inner::Queued;
use super::{Mailbox, StopOrder};
use crate::rules::id::RunId;
use crate::rules::mail::{Mail, Standing};

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
    /// What is queued, and whether it asks for a run.
    pub(crate) mail: Vec<(Arc<Mail>, bool)>,
}

impl Mailbox {
    /// The mailbox of an agent whose session goes on: what was queued, in order of arrival,
    /// and whether each message asks for a run. With `left` there is a run to be gone on with.
    pub(crate) fn recovered(was: Recovered) -> Self {
        let mailbox = Self::default();
        let mut inner = mailbox.inner.lock();
        inner.drives = was.drives;
        inner.run = was.run;
        inner.standing = was.standing;
        for (mail, wakes) in was.mail {
            inner.add(Queued { mail, committed: false, wakes }, false);
        }
        if was.standing.is_in_a_run() {
            let token = CancellationToken::new();
            if was.stop.is_some() {
                token.cancel();
            }
            inner.run_token = Some(token);
            inner.stop = was.stop.map(Arc::new);
            // The run that was left is asked for as by `resume`.
            inner.resumed = true;
        }
        mailbox.publish(&inner);
        drop(inner);
        mailbox
    }

    /// Starts an agent whose session goes on, if something queued asks for it; `true`: its run
    /// is to be driven.
    pub(crate) fn wake_if_asked(&self) -> bool {
        let mut inner = self.inner.lock();
        inner.is_asked_for() && inner.wake()
    }

    /// What is pending, in order of arrival.
    pub(crate) fn queued(&self) -> Vec<Arc<Mail>> {
        self.inner.lock().queue.iter().map(|queued| queued.mail.clone()).collect()
    }
}
