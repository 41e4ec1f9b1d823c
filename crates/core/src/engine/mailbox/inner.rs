//! What the mailbox's lock guards: the queue, the agent's standing, and the work in hand.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::halts::{StopOrder, Stopped};
use super::mail_of;
use super::room::Rooms;
use crate::rules::event::Halt;
use crate::rules::id::{MessageId, RunId};
use crate::rules::mail::{Admission, Mail, Relation, Rest, Sender, Standing, Urgency, admission};
use crate::rules::wording::Cause;

#[derive(Debug, Default)]
pub(super) struct Inner {
    /// In order of arrival.
    pub(super) queue: VecDeque<Queued>,
    /// How many of each urgency.
    pub(super) counts: [u32; 4],
    pub(super) used: Rooms,
    /// For messages that are being accepted: they have their room already.
    pub(super) reserved: Rooms,
    /// How many have arrived, so that what is put back finds its place.
    pub(super) arrivals: u64,
    pub(super) standing: Standing,
    /// What the agent was before it was woken, and what asks for its run besides mail: `resume`,
    /// its prompt, and messages that are just being replaced by others.
    pub(super) woken_from: Rest,
    pub(super) resumed: Resume,
    pub(super) prompted: bool,
    pub(super) replacing: u32,
    /// How far the run has come, and whether it came there in the process before this one, so that
    /// nobody drives it yet.
    pub(super) begun: Begun,
    pub(super) left: bool,
    /// The run that was asked for when the process was to end, and begins at the next start.
    pub(super) put_off: bool,
    pub(super) run: RunId,
    /// Whether there is no model to drive: a name only is never woken.
    pub(super) is_a_name: bool,
    /// The limit that the agent has reached, or its session: nobody wakes it until that is raised.
    pub(super) limited: Option<&'static str>,
    pub(super) session_limited: Option<&'static str>,
    /// The process ends: nobody is woken any more.
    pub(super) shut: bool,
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

/// How a `resume` asks for the next run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resume {
    /// Nobody resumed the agent.
    #[default]
    No,
    /// Something is unanswered, or what the conversation will end with is not known yet.
    Anyway,
    /// All is answered, so it is mail alone that a run could begin with.
    WithMail,
}

/// How far the agent's run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Begun {
    /// Nobody drives it, and it may still be taken back.
    #[default]
    No,
    /// It has passed its first boundary, and its start has no place in the record yet.
    Driven(Asked),
    /// Its start has its place in the record.
    Recorded,
}

/// What asked for a run besides mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) resumed: Resume,
    pub(super) prompted: bool,
}

/// A message in a mailbox, or one that was taken out and may have to go back.
#[derive(Clone, Debug)]
pub struct Queued {
    /// The message.
    pub mail: Arc<Mail>,
    /// It has cancelled a token or caused a skip.
    pub(super) committed: bool,
    /// It asks for the agent's next run.
    pub(super) wakes: bool,
    /// Its place in the order of arrival.
    pub(super) arrival: u64,
}

impl Queued {
    /// Whether it is this one, and can still be taken back.
    pub(super) fn is_loose(&self, from: &Sender, id: &MessageId) -> bool {
        !self.committed && self.mail.id == *id && self.mail.from == *from
    }
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
            Standing::Running if self.timed_out.is_none() => self.run,
            Standing::Running | Standing::Winding { .. } | Standing::Resting(_) => self.run + 1,
        }
    }

    /// The limit that has to be raised before the agent is woken. A session's is every resting
    /// agent's, and whose run it ends. What somebody has stopped is a stopped one until it rests.
    pub(super) fn limit(&self) -> Option<&'static str> {
        match self.standing {
            Standing::Resting(_) => self.limited.or(self.session_limited),
            Standing::Winding { .. } if self.stop.is_some() => None,
            Standing::Running | Standing::Winding { .. } => self.limited.or(self.timed_out),
        }
    }

    /// Whoever was stopped and is asked for again is no stopped one, though a limit puts that off.
    pub(super) fn admits(&self, relation: Relation) -> Admission {
        let standing = match self.standing {
            Standing::Resting(Rest::Stopped) if self.is_asked_for() => Standing::Resting(Rest::Idle),
            standing => standing,
        };
        admission(standing, self.limit(), relation)
    }

    pub(super) fn arrives(&mut self, mail: Arc<Mail>, committed: bool, wakes: bool) {
        self.arrivals += 1;
        let arrival = self.arrivals;
        self.enters(&mail);
        self.queue.push_back(Queued { mail, committed, wakes, arrival });
    }

    fn enters(&mut self, mail: &Mail) {
        self.counts[mail.urgency as usize] += 1;
        self.used.enters(mail);
    }

    /// Puts back what was taken, where it was in the order of arrival.
    pub(super) fn put_back(&mut self, queued: Queued) {
        self.enters(&queued.mail);
        let at = self.queue.partition_point(|other| other.arrival < queued.arrival);
        self.queue.insert(at, queued);
    }

    pub(super) fn remove_at(&mut self, at: usize) -> Option<Queued> {
        let queued = self.queue.remove(at)?;
        self.forget(&queued.mail);
        Some(queued)
    }

    pub(super) fn remove_where(&mut self, wanted: impl Fn(&Queued) -> bool) -> Vec<Queued> {
        let (taken, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.queue).into_iter().partition(wanted);
        self.queue = kept.into();
        taken.iter().for_each(|queued| self.forget(&queued.mail));
        taken
    }

    /// Whether anything milder is there. The counts know: no message is looked at.
    pub(super) fn has_below(&self, urgency: Urgency) -> bool {
        self.counts[..urgency as usize].iter().any(|count| *count > 0)
    }

    pub(super) fn remove_all(&mut self) -> Vec<Queued> {
        (self.counts, self.used) = ([0; 4], Rooms::default());
        // The room of the queue stays: the next message needs it.
        self.queue.drain(..).collect()
    }

    fn forget(&mut self, mail: &Mail) {
        let count = &mut self.counts[mail.urgency as usize];
        debug_assert!(*count > 0, "more mail left than came");
        // Never wrapped round: a count that has gone astray would say for ever that there is mail.
        *count = count.saturating_sub(1);
        self.used.leaves(mail);
    }

    /// Whether the counts are what is in the queue, and who rests has no run to be cut.
    pub(super) fn is_sound(&self) -> bool {
        let mut counts = [0; 4];
        self.queue.iter().for_each(|queued| counts[queued.mail.urgency as usize] += 1);
        let rests = matches!(self.standing, Standing::Resting(_));
        counts == self.counts && !(rests && self.run_token.is_some())
    }

    /// The highest urgency that is there, counted from 1; 0 is none.
    pub(super) fn highest(&self) -> u8 {
        (1..=4u8).rev().find(|urgency| self.counts[usize::from(*urgency) - 1] > 0).unwrap_or(0)
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
    /// still be let sleep on, so mail that comes then asks as it would have before. A limit only
    /// puts off what is asked for.
    pub(super) fn asks(&self, relation: Relation) -> bool {
        let standing = match self.standing {
            Standing::Running if self.begun == Begun::No => Standing::Resting(self.woken_from),
            standing => standing,
        };
        admission(standing, None, relation) == Admission::Wake
    }

    /// Whether somebody asks for the next run: a message that is still there, the prompt, or `resume`.
    pub(super) fn is_asked_for(&self) -> bool {
        let resumes = match self.resumed {
            Resume::No => false,
            Resume::Anyway => true,
            Resume::WithMail => !self.queue.is_empty(),
        };
        resumes || self.prompted || self.replacing > 0 || self.queue.iter().any(|queued| queued.wakes)
    }

    /// A resume that has nothing to go on with leaves an agent that anybody may wake.
    fn resumed_for_nothing(&mut self) -> bool {
        self.queue.is_empty() && std::mem::replace(&mut self.resumed, Resume::No) != Resume::No
    }

    /// All is answered in the conversation of the run that ends: who was resumed meanwhile has mail
    /// to go on with, or nothing.
    pub(super) fn settle_resume(&mut self) {
        if self.resumed == Resume::Anyway {
            self.resumed = Resume::WithMail;
        }
        if let Standing::Winding { then, restart } = self.standing
            && !self.is_asked_for()
        {
            let for_nothing = self.resumed_for_nothing();
            let then = if for_nothing && then == Rest::Stopped { Rest::Idle } else { then };
            self.standing = Standing::Winding { then, restart: restart && !for_nothing };
        }
    }

    /// Starts the next run, now or when the one that is ending has ended; `true`: now, and it is
    /// to be driven. At a limit, and when the process ends, what is asked for waits.
    pub(super) fn wake(&mut self) -> bool {
        match &mut self.standing {
            _ if self.is_a_name => false,
            Standing::Resting(Rest::Closed) | Standing::Running => false,
            Standing::Winding { restart, .. } => {
                *restart = true;
                false
            }
            Standing::Resting(_) if self.shut || self.limited.or(self.session_limited).is_some() => false,
            Standing::Resting(rest @ (Rest::Idle | Rest::Stopped)) => {
                self.woken_from = *rest;
                self.begun = Begun::No;
                self.standing = Standing::Running;
                self.run += 1;
                self.run_token = Some(CancellationToken::new());
                true
            }
        }
    }

    /// When the process ends, a run of which nothing is recorded begins at the next start, and what asked
    /// for it goes on asking. `true`: so it is.
    pub(super) fn puts_off(&mut self) -> bool {
        let asked = match self.begun {
            Begun::Driven(asked) if self.shut && self.standing == Standing::Running => asked,
            Begun::No | Begun::Driven(_) | Begun::Recorded => return false,
        };
        self.standing = Standing::Resting(self.woken_from);
        (self.run, self.run_token, self.begun, self.put_off) = (self.run - 1, None, Begun::No, true);
        (self.resumed, self.prompted) = (asked.resumed, asked.prompted);
        true
    }

    /// If nobody asks any more for a run that has not begun, there is none, and the agent is what
    /// it was. One that was stopped sends agents' mail back that waited for that run.
    pub(super) fn unless_asked(&mut self) -> Vec<Queued> {
        if self.is_asked_for() {
            return Vec::new();
        }
        // What a shutdown has stopped goes on at the next start, and so does its mail.
        let by_shutdown = self.is_stopped_by_shutdown();
        let rest = match &mut self.standing {
            Standing::Running if self.begun == Begun::No => {
                let rest = if self.resumed_for_nothing() { Rest::Idle } else { self.woken_from };
                self.standing = Standing::Resting(rest);
                debug_assert!(self.run > 0, "a run that was woken has a number");
                self.run -= 1;
                self.run_token = None;
                rest
            }
            Standing::Winding { then, restart: restart @ true } => {
                *restart = false;
                *then
            }
            Standing::Resting(_) if self.shut && !self.put_off => return Vec::new(),
            // A limit, or the end of the process, had put it off.
            Standing::Resting(rest) => {
                self.put_off = false;
                *rest
            }
            Standing::Running | Standing::Winding { .. } => return Vec::new(),
        };
        match rest {
            Rest::Stopped if !by_shutdown => self.remove_where(is_agents),
            Rest::Stopped | Rest::Idle | Rest::Closed => Vec::new(),
        }
    }

    /// Ends the run. A limit in time that ends it may have been raised meanwhile.
    pub(super) fn wind_down(&mut self, then: Rest) {
        if self.standing == Standing::Running {
            self.standing = Standing::Winding { then, restart: self.resumed != Resume::No };
        }
    }

    /// Whether it is a shutdown that ends the run.
    pub(super) fn is_stopped_by_shutdown(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.halt == Halt::Shutdown)
    }

    pub(super) fn cause_for_good(&self) -> Option<Cause> {
        let stop = self.stop.as_ref().map(|stop| stop.cause());
        stop.or_else(|| self.timed_out.map(Cause::Limit))
    }

    /// Cancels the run's token for a limit: it has begun to end the run, so mail is refused.
    /// `false`: the run ends already.
    pub(super) fn time_out(&mut self, limit: &'static str) -> bool {
        if self.standing != Standing::Running {
            return false;
        }
        self.timed_out = Some(limit);
        if let Some(work) = &mut self.work {
            work.cause.get_or_insert(Cause::Limit(limit));
        }
        if let Some(token) = &self.run_token {
            token.cancel();
        }
        true
    }

    /// Holds the end of the run until the stop is told.
    pub(super) fn is_being_told(&mut self, stopped: &mut Stopped) {
        if stopped.changed && !stopped.at_rest {
            let told = CancellationToken::new();
            self.tellings.push(told.clone());
            stopped.telling = Some(told.drop_guard());
        }
    }

    /// Ends the run. With `again` the next one is asked for in the same step.
    pub(super) fn stop(&mut self, order: StopOrder, again: bool) -> Stopped {
        if order.run.is_some_and(|run| run != self.run) {
            return Stopped { stale: Some(self.run), ..Stopped::default() };
        }
        let shuts = order.halt == Halt::Shutdown;
        self.shut |= shuts;
        let by_shutdown = self.is_stopped_by_shutdown();
        if !shuts && self.is_put_off() {
            self.begins_to_end(order, again);
            return Stopped { begins: true, ..self.gives_back(shuts) };
        }
        match &mut self.standing {
            Standing::Resting(_) => return Stopped { at_rest: true, ..Stopped::default() },
            // What is asked for stays asked for: it begins at the next start.
            Standing::Running if shuts && self.begun != Begun::Recorded => return Stopped::default(),
            Standing::Winding { .. } if shuts => return Stopped::default(),
            // Somebody means it: what a shutdown has stopped doesn't go on at the next start.
            Standing::Winding { then: rest @ (Rest::Idle | Rest::Stopped), restart } if by_shutdown => {
                (*rest, *restart) = (Rest::Stopped, again);
                self.stop = Some(Arc::new(order));
            }
            Standing::Winding { restart: false, .. } if !again => return Stopped::default(),
            Standing::Winding { then: Rest::Closed, .. } => return Stopped::default(),
            Standing::Winding { then, restart } => {
                *then = Rest::Stopped;
                *restart = again;
            }
            Standing::Running => {
                self.standing = Standing::Winding { then: Rest::Stopped, restart: again };
                if let Some(work) = &mut self.work {
                    work.cause.get_or_insert_with(|| order.cause());
                }
                self.stop = Some(Arc::new(order));
                if let Some(token) = &self.run_token {
                    token.cancel();
                }
            }
        }
        self.gives_back(shuts)
    }

    /// Whether only the end of the process puts off the run that is asked for.
    fn is_put_off(&self) -> bool {
        let waits = self.limited.or(self.session_limited).is_some();
        let rests = matches!(self.standing, Standing::Resting(Rest::Idle | Rest::Stopped));
        self.put_off && rests && !waits && self.is_asked_for()
    }

    /// The run that is asked for is there: it begins, and ends as one that was stopped.
    fn begins_to_end(&mut self, order: StopOrder, again: bool) {
        let token = CancellationToken::new();
        token.cancel();
        (self.run, self.begun, self.run_token) = (self.run + 1, Begun::No, Some(token));
        self.standing = Standing::Winding { then: Rest::Stopped, restart: again };
        self.stop = Some(Arc::new(order));
    }

    /// What a stop makes of the mail that is there. A shutdown returns none, and what asks for a
    /// run goes on asking.
    fn gives_back(&mut self, shuts: bool) -> Stopped {
        let returned = if shuts { Vec::new() } else { self.remove_where(is_agents) };
        if !shuts {
            (self.resumed, self.prompted) = (Resume::No, false);
            self.queue.iter_mut().for_each(|queued| queued.wakes = false);
        }
        let from_person = |queued: &&Queued| queued.mail.from == Sender::User;
        let still_queued =
            self.queue.iter().filter(from_person).map(|queued| queued.mail.id.clone()).collect();
        Stopped { changed: true, returned: mail_of(returned), still_queued, ..Stopped::default() }
    }
}

pub(super) fn is_agents(queued: &Queued) -> bool {
    matches!(queued.mail.from, Sender::Agent(_))
}
