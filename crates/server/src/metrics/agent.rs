//! What has to be remembered of one agent to know how long things took: its mail that waits,
//! and the stop that is under way. Instants are those of the events, so a virtual clock gives
//! the same figures on every machine.

use std::collections::VecDeque;

use midturn_core::rules::event::Outcome;
use midturn_core::rules::id::{MessageId, RunId};
use midturn_core::rules::mail::{Point, Urgency};
use midturn_core::rules::time::{Micros, Span};

use super::figures::{Doing, Figures};

/// How long after a stop what comes is a follow-up.
const FOLLOW_UP: Span = Span::secs(60);

/// What is remembered of an agent.
#[derive(Debug, Default)]
pub(super) struct Agent {
    doing: Doing,
    /// Mail that waits, in order of arrival, so that what is looked for stands far in front.
    waiting: VecDeque<Waiting>,
    /// How many injected messages no whole reply has come after.
    unanswered: u64,
    /// How many of its calls wait for a person's word.
    asking: i64,
    stop: Option<Stop>,
    /// The last cut that a stop caused, and in which run.
    cut: Option<(RunId, Micros)>,
    /// The run that ended as stopped before its stop was told of: they are recorded by two
    /// tasks, and either may be the first.
    ended: Option<RunId>,
    /// Who stopped it and when, until something follows.
    stopped: Option<(String, Micros)>,
}

#[derive(Debug)]
struct Waiting {
    id: MessageId,
    urgency: Urgency,
    /// When it was accepted; unknown for mail of the process before this one.
    since: Option<Micros>,
}

#[derive(Debug)]
struct Stop {
    run: RunId,
    at: Micros,
}

impl Agent {
    /// It does something else now.
    pub(super) fn does(&mut self, doing: Doing, figures: &Figures) {
        figures.agent(self.doing, doing);
        self.doing = doing;
    }

    /// A message waits for it.
    pub(super) fn waits_for(&mut self, id: &MessageId, urgency: Urgency, since: Option<Micros>) {
        self.waiting.push_back(Waiting { id: id.clone(), urgency, since });
    }

    /// An injected message whose reply is still to come.
    pub(super) fn unanswered(&mut self, count: u64) {
        self.unanswered = self.unanswered.saturating_add(count);
    }

    /// A whole reply came: how many messages it answers.
    pub(super) fn answered(&mut self) -> u64 {
        std::mem::take(&mut self.unanswered)
    }

    /// A message waits no more. `false`: it was not known to.
    pub(super) fn leaves(&mut self, id: &MessageId) -> bool {
        self.take(id).is_some()
    }

    /// A message was injected: how long it waited. `false`: it was not known to wait.
    pub(super) fn injected(&mut self, id: &MessageId, point: Point, at: Micros, figures: &Figures) -> bool {
        let Some(waited) = self.take(id) else { return false };
        if let Some(since) = waited.since {
            figures.waited(waited.urgency, point, seconds(at.since(since)));
        }
        true
    }

    fn take(&mut self, id: &MessageId) -> Option<Waiting> {
        let at = self.waiting.iter().position(|waiting| waiting.id == *id)?;
        self.waiting.remove(at)
    }

    /// How many messages wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A person is asked about one of its calls.
    pub(super) fn asks(&mut self, figures: &Figures) {
        self.asking += 1;
        figures.approvals_open.inc();
    }

    /// A request ended. One of the process before this one was not counted.
    pub(super) fn asks_less(&mut self, figures: &Figures) {
        if self.asking > 0 {
            self.asking -= 1;
            figures.approvals_open.dec();
        }
    }

    /// What a run that is over asked ends with it.
    pub(super) fn asks_nothing(&mut self, figures: &Figures) {
        figures.approvals_open.dec_by(std::mem::take(&mut self.asking));
    }

    /// A run begins: no earlier stop is still to come to an end.
    pub(super) fn begins(&mut self, at: Micros, figures: &Figures) {
        self.follows(at, figures);
        (self.stop, self.cut, self.ended) = (None, None, None);
    }

    /// Somebody stops the run.
    pub(super) fn stopping(&mut self, run: RunId, by: &str, at: Micros, figures: &Figures) {
        self.stopped = Some((by.to_owned(), at));
        let stop = Stop { run, at };
        if self.ended == Some(run) {
            self.ended = None;
            self.tell(&stop, at, figures);
        } else if self.stop.as_ref().is_none_or(|earlier| earlier.run != run) {
            self.stop = Some(stop);
        }
    }

    /// A reply or a call was cut by a stop.
    pub(super) fn cut(&mut self, run: RunId, at: Micros) {
        self.cut = Some((run, at));
    }

    /// Whether a stop of this run has still to come to its end.
    pub(super) fn is_stopping(&self, run: RunId) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.run == run)
    }

    /// The run ends.
    pub(super) fn ends(&mut self, run: RunId, outcome: Outcome, at: Micros, figures: &Figures) {
        let stop = self.stop.take().filter(|stop| stop.run == run);
        match (outcome, stop) {
            (Outcome::Stopped, Some(stop)) => self.tell(&stop, at, figures),
            (Outcome::Stopped, None) => self.ended = Some(run),
            (Outcome::Finished | Outcome::Failed | Outcome::Limit, _) => {}
        }
    }

    fn tell(&mut self, stop: &Stop, end: Micros, figures: &Figures) {
        let cut = self.cut.take().filter(|(run, _)| *run == stop.run);
        let cut = cut.map(|(_, at)| seconds(at.since(stop.at)));
        figures.stopped(cut, seconds(end.since(stop.at)));
    }

    /// A message came: from the person, or from who stopped the agent, it is a follow-up.
    pub(super) fn written_to(&mut self, from: &str, at: Micros, figures: &Figures) {
        let stopper = self.stopped.as_ref().is_some_and(|(by, _)| by == from);
        if from == "user" || stopper {
            self.follows(at, figures);
        }
    }

    fn follows(&mut self, at: Micros, figures: &Figures) {
        let Some((_, stopped)) = self.stopped.take() else { return };
        if at.since(stopped) <= FOLLOW_UP {
            figures.stops_followed.inc();
        }
    }
}

/// Seconds, as Prometheus has them.
pub(super) fn seconds(span: Span) -> f64 {
    span.duration().as_secs_f64()
}
