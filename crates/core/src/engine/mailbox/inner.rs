//! What the mailbox's lock guards: the queue, the agent's standing, and the work in hand.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{StopOrder, Stopped};
use crate::rules::id::RunId;
use crate::rules::mail::{Admission, Mail, Relation, Rest, Sender, Standing, Urgency, admission};
use crate::rules::wording::Cause;

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) queue: VecDeque<Queued>,
    pub(super) counts: [u32; 5],
    /// Messages and bytes that count against the bounds: the coordinator's own don't.
    pub(super) used_messages: u32,
    pub(super) used_bytes: u64,
    /// Of messages that are being accepted: they have their room already.
    pub(super) reserved_messages: u32,
    pub(super) reserved_bytes: u64,
    pub(super) standing: Standing,
    /// What the agent was before it was woken, and whether `resume` woke it.
    pub(super) woken_from: Rest,
    pub(super) resumed: bool,
    /// Whether the run has passed its first boundary.
    pub(super) begun: bool,
    pub(super) run: RunId,
    /// Whether there is a model to drive: a name only is never woken.
    pub(super) drives: bool,
    /// The run's token, while there is a run.
    pub(super) run_token: Option<CancellationToken>,
    pub(super) work: Option<Work>,
    pub(super) stop: Option<Arc<StopOrder>>,
    /// The limit in time that the run has reached.
    pub(super) timed_out: Option<&'static str>,
    /// The stops of the run that is ending whose events are not submitted yet.
    pub(super) tellings: Vec<CancellationToken>,
    /// How many wait for something to arrive; counted here so that a push to nobody's wait
    /// costs nothing more than the look.
    pub(super) watchers: u32,
}

#[derive(Debug)]
pub(super) struct Queued {
    pub(super) mail: Arc<Mail>,
    pub(super) committed: bool,
    /// It asks for the agent's next run.
    pub(super) wakes: bool,
}

/// The work that an urgent message cuts: a stream, or a turn's tools.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) token: CancellationToken,
    /// Whether an urgent message cuts it, or only a stop does.
    pub(super) urgent_cuts: bool,
    /// What cancelled it first.
    pub(super) cause: Option<Cause>,
}

impl Inner {
    pub(super) fn next_run(&self) -> RunId {
        match self.standing {
            Standing::Running => self.run,
            Standing::Winding { .. } | Standing::Resting(_) => self.run + 1,
        }
    }

    pub(super) fn add(&mut self, queued: Queued, front: bool) {
        self.counts[queued.mail.urgency as usize] += 1;
        if !queued.mail.is_coordinators() {
            self.used_messages += 1;
            self.used_bytes += queued.mail.text.len() as u64;
        }
        if front { self.queue.push_front(queued) } else { self.queue.push_back(queued) }
    }

    pub(super) fn remove_where(&mut self, wanted: impl Fn(&Queued) -> bool) -> Vec<Arc<Mail>> {
        let mut taken = Vec::new();
        let mut kept = VecDeque::with_capacity(self.queue.len());
        for queued in std::mem::take(&mut self.queue) {
            if wanted(&queued) {
                self.forget(&queued.mail);
                taken.push(queued.mail);
            } else {
                kept.push_back(queued);
            }
        }
        self.queue = kept;
        taken
    }

    /// Whether anything milder is there. The counts know: no message is looked at.
    pub(super) fn has_below(&self, urgency: Urgency) -> bool {
        self.counts[..urgency as usize].iter().any(|count| *count > 0)
    }

    pub(super) fn remove_all(&mut self) -> Vec<Arc<Mail>> {
        (self.counts, self.used_messages, self.used_bytes) = ([0; 5], 0, 0);
        let mut taken = Vec::with_capacity(self.queue.len());
        while let Some(queued) = self.queue.pop_front() {
            taken.push(queued.mail);
        }
        taken
    }

    pub(super) fn forget(&mut self, mail: &Mail) {
        self.counts[mail.urgency as usize] -= 1;
        if !mail.is_coordinators() {
            self.used_messages -= 1;
            self.used_bytes -= mail.text.len() as u64;
        }
    }

    pub(super) fn highest(&self) -> u8 {
        (1..=4u8).rev().find(|urgency| self.counts[usize::from(*urgency)] > 0).unwrap_or(0)
    }

    /// Cancels the work in hand for an urgent message; `false` if there is none to cut, or
    /// it was cut before.
    pub(super) fn cut_by(&mut self, from: &Sender) -> bool {
        match &mut self.work {
            Some(work) if work.urgent_cuts && work.cause.is_none() => {
                work.cause = Some(Cause::Mail(from.clone()));
                work.token.cancel();
                true
            }
            Some(_) | None => false,
        }
    }

    /// Whether a message asks for a run: an agent that was woken and has not begun may
    /// still be let sleep on, so mail that comes then asks as it would have before.
    pub(super) fn asks(&self, admitted: Admission, relation: Relation) -> bool {
        let admitted = match self.standing {
            Standing::Running if !self.begun => admission(Standing::Resting(self.woken_from), relation),
            Standing::Running | Standing::Winding { .. } | Standing::Resting(_) => admitted,
        };
        admitted == Admission::Wake
    }

    /// Whether somebody asks for the next run: a message that is still there, or `resume`.
    pub(super) fn is_asked_for(&self) -> bool {
        self.resumed || self.queue.iter().any(|queued| queued.wakes)
    }

    pub(super) fn wake(&mut self) -> bool {
        match &mut self.standing {
            _ if !self.drives => false,
            Standing::Resting(Rest::Closed) | Standing::Running => false,
            Standing::Winding { restart, .. } => {
                *restart = true;
                false
            }
            Standing::Resting(rest @ (Rest::Idle | Rest::Stopped)) => {
                self.woken_from = *rest;
                self.begun = false;
                self.standing = Standing::Running;
                self.run += 1;
                self.run_token = Some(CancellationToken::new());
                true
            }
        }
    }

    pub(super) fn wind_down(&mut self, then: Rest) {
        if self.standing == Standing::Running {
            self.standing = Standing::Winding { then, restart: false };
        }
    }

    pub(super) fn cause_for_good(&self) -> Option<Cause> {
        let stop = self.stop.as_ref().map(|stop| Cause::Stop(stop.by.clone()));
        stop.or_else(|| self.timed_out.map(Cause::Limit))
    }

    /// Cancels the run's token for a limit. Mail is accepted as before: the agent rests as one
    /// that anybody may wake.
    pub(super) fn time_out(&mut self, limit: &'static str) {
        if self.standing != Standing::Running {
            return;
        }
        self.timed_out = Some(limit);
        if let Some(work) = &mut self.work {
            work.cause.get_or_insert(Cause::Limit(limit));
        }
        if let Some(token) = &self.run_token {
            token.cancel();
        }
    }

    /// Holds the end of the run until the stop is told.
    pub(super) fn is_being_told(&mut self, stopped: &mut Stopped) {
        if stopped.changed && !stopped.at_rest {
            let told = CancellationToken::new();
            self.tellings.push(told.clone());
            stopped.telling = Some(told.drop_guard());
        }
    }

    pub(super) fn stop(&mut self, order: StopOrder, restart: bool) -> Stopped {
        if order.run.is_some_and(|run| run != self.run) {
            return Stopped { stale: Some(self.run), ..Stopped::default() };
        }
        // After a supersede mail is accepted as by a running agent, after a stop as by a stopped one.
        let rest = if restart { Rest::Idle } else { Rest::Stopped };
        match &mut self.standing {
            Standing::Resting(_) => return Stopped { at_rest: true, ..Stopped::default() },
            Standing::Winding { restart: false, .. } if !restart => return Stopped::default(),
            Standing::Winding { then: Rest::Closed, .. } => return Stopped::default(),
            Standing::Winding { then, restart: again } => {
                *then = rest;
                *again = restart;
            }
            Standing::Running => {
                self.standing = Standing::Winding { then: rest, restart };
                if let Some(work) = &mut self.work {
                    work.cause.get_or_insert_with(|| Cause::Stop(order.by.clone()));
                }
                self.stop = Some(Arc::new(order));
                if let Some(token) = &self.run_token {
                    token.cancel();
                }
            }
        }
        let returned = self.remove_where(|queued| matches!(queued.mail.from, Sender::Agent(_)));
        for queued in &mut self.queue {
            queued.wakes = false;
        }
        let from_person = |queued: &&Queued| queued.mail.from == Sender::User;
        let still_queued =
            self.queue.iter().filter(from_person).map(|queued| queued.mail.id.clone()).collect();
        Stopped { changed: true, returned, still_queued, ..Stopped::default() }
    }
}
