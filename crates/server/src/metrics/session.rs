//! One session's part in the figures: an observer that counts what it is told.
//!
//! What a figure needs to know of the session it reads in core's fold, before an event and after
//! it; both are forgotten when the session is let go, and what it added to the gauges goes with it.
//! Instants are those of the events, so a virtual clock gives the same figures on every machine.

use std::collections::HashMap;

use midturn_core::engine::ports::{Observer, SessionJournal};
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::{InterruptReason, ToolStatus};
use midturn_core::rules::event::{Event, EventKind, Outcome};
use midturn_core::rules::id::{AgentName, MessageId, RunId};
use midturn_core::rules::mail::Point;
use midturn_core::rules::time::{Micros, Span};
use midturn_core::rules::view::{Agent, View};
use parking_lot::Mutex;

use super::figures::{Doing, Figures};
use super::words;

/// How long after a stop what comes is a follow-up.
const FOLLOW_UP: Span = Span::secs(60);

/// Counts the events of one session.
pub(super) struct SessionFigures {
    figures: Figures,
    known: Mutex<Known>,
}

/// What is remembered of the session.
#[derive(Default)]
struct Known {
    view: View,
    /// Of agents that were stopped.
    stopped: HashMap<AgentName, Stopped>,
}

/// What a stop did and what came of it.
#[derive(Default)]
struct Stopped {
    /// The last cut that a stop caused, and in which run.
    cut: Option<(RunId, Micros)>,
    /// Who stopped the agent last and when, until something follows.
    unfollowed: Option<(String, Micros)>,
}

impl SessionFigures {
    pub(super) fn new(figures: Figures) -> Self {
        Self::of(figures, View::default())
    }

    /// A session that goes on: its agents and its mail are there already. How long its mail
    /// had waited is not known.
    pub(super) fn resumed(figures: Figures, journal: &SessionJournal) -> Self {
        Self::of(figures, journal.view())
    }

    fn of(figures: Figures, view: View) -> Self {
        figures.sessions.inc();
        view.agents().for_each(|(_, agent)| figures.agent(Doing::Nothing, Doing::of(Some(agent))));
        figures.messages_waiting.inc_by(signed(view.waiting()));
        Self { figures, known: Mutex::new(Known { view, stopped: HashMap::new() }) }
    }
}

impl Observer for SessionFigures {
    fn event(&self, event: &Event) {
        let figures = &self.figures;
        count(figures, &event.kind);
        let known = &mut *self.known.lock();
        if let Some(name) = &event.at.agent {
            known.measure(name, event, figures);
        }
        let doing = |view: &View| Doing::of(event.at.agent.as_ref().and_then(|name| view.agent(name)));
        let gauges = |view: &View| [signed(view.waiting()), signed(view.open_asks().len())];
        let (was, [waited, asked]) = (doing(&known.view), gauges(&known.view));
        known.view.event(event);
        let [waits, asks] = gauges(&known.view);
        figures.agent(was, doing(&known.view));
        figures.messages_waiting.inc_by(waits - waited);
        figures.approvals_open.inc_by(asks - asked);
        if matches!(event.kind, EventKind::MessageQueued { .. }) && waits == waited {
            figures.messages_untracked.inc();
        }
    }

    fn stale(&self) {
        self.figures.stale_events.inc();
    }

    fn stored(&self, took: Span) {
        self.figures.store_commit_seconds.observe(seconds(took));
    }
}

impl Drop for SessionFigures {
    fn drop(&mut self) {
        let view = &self.known.get_mut().view;
        view.agents().for_each(|(_, agent)| self.figures.agent(Doing::of(Some(agent)), Doing::Nothing));
        self.figures.messages_waiting.dec_by(signed(view.waiting()));
        self.figures.approvals_open.dec_by(signed(view.open_asks().len()));
        self.figures.sessions.dec();
    }
}

/// Counts what needs no memory.
fn count(figures: &Figures, kind: &EventKind) {
    match kind {
        EventKind::RunStarted { trigger } => figures.run_started(trigger.as_str()),
        EventKind::RunFinished { outcome, .. } => figures.run_ended(outcome.as_str()),
        EventKind::ModelStarted { .. } => {
            figures.model_calls.inc();
        }
        EventKind::ModelFinished { usage, .. } => figures.tokens(usage.input, usage.output, usage.cached),
        EventKind::ModelInterrupted { reason, partial_tokens, .. } => {
            figures.partial(reason.as_str(), *partial_tokens);
        }
        EventKind::ModelRetry { .. } => {
            figures.model_retries.inc();
        }
        EventKind::ToolFinished { status, .. } => figures.tool_call(status.as_str()),
        EventKind::MessageQueued { urgency, .. } => figures.accepted(*urgency),
        EventKind::MessageRefused { reason, .. } => figures.refused(words::refusal(reason)),
        EventKind::MessageInjected { messages, point, skipped, interrupted, .. } => {
            figures.injected(*point, messages.len() as u64);
            figures.cut_by_mail(skipped.len(), interrupted.len());
        }
        EventKind::MessageReturned { reason, .. } => figures.returned(reason.as_str()),
        EventKind::StopRequested { by, .. } => figures.stop(words::stopper(by)),
        EventKind::ApprovalResolved { decision, .. } => figures.approval(decision.as_str()),
        EventKind::Compacted { .. } => {
            figures.compactions.inc();
        }
        // The rest is in no figure.
        _ => {}
    }
}

impl Known {
    /// Measures how long things took that end with this event, which the view has not seen yet.
    fn measure(&mut self, name: &AgentName, event: &Event, figures: &Figures) {
        let (run, t) = (event.at.run.unwrap_or_default(), event.t);
        if let EventKind::MessageQueued { from, .. } = &event.kind {
            let stopper = self.stopped.get(name).and_then(|stopped| stopped.unfollowed.as_ref());
            // From the person, or from who stopped the agent, it is a follow-up.
            if from == "user" || stopper.is_some_and(|(by, _)| by == from) {
                self.follows(name, t, figures);
            }
        }
        let Some(agent) = self.view.agent(name) else { return };
        let stop = agent.stop_of(run).map(|stop| stop.at);
        match &event.kind {
            EventKind::RunStarted { .. } => self.follows(name, t, figures),
            EventKind::ModelFinished { purpose: Purpose::Turn, .. } => {
                figures.messages_answered.inc_by(agent.unanswered() as u64);
            }
            EventKind::ModelInterrupted { reason, .. } if is_stop(*reason) => self.cut(name, run, t),
            EventKind::ToolFinished { status, .. } if cuts(*status, stop.is_some()) => {
                self.cut(name, run, t);
            }
            EventKind::MessageInjected { messages, point, .. } => {
                injected(agent, messages, *point, t, figures);
            }
            EventKind::StopRequested { by, .. } => {
                let is_late = agent.ended == run && agent.outcome == Some(Outcome::Stopped);
                let stopped = self.stopped.entry(name.clone()).or_default();
                stopped.unfollowed = Some((by.clone(), t));
                // They are recorded by two tasks, and either may be the first.
                if is_late && stop.is_none() {
                    stopped.ends(run, t, t, figures);
                }
            }
            EventKind::RunFinished { outcome: Outcome::Stopped, .. } => {
                if let Some(at) = stop {
                    self.stopped.entry(name.clone()).or_default().ends(run, at, t, figures);
                }
            }
            EventKind::AgentClosed {} => {
                self.stopped.remove(name);
            }
            _ => {}
        }
    }

    /// A reply or a call was cut by a stop.
    fn cut(&mut self, name: &AgentName, run: RunId, at: Micros) {
        self.stopped.entry(name.clone()).or_default().cut = Some((run, at));
    }

    fn follows(&mut self, name: &AgentName, at: Micros, figures: &Figures) {
        let stopped = self.stopped.get_mut(name).and_then(|stopped| stopped.unfollowed.take());
        if stopped.is_some_and(|(_, stopped)| at.since(stopped) <= FOLLOW_UP) {
            figures.stops_followed.inc();
        }
    }
}

impl Stopped {
    /// The run that was stopped has ended.
    fn ends(&mut self, run: RunId, stop: Micros, end: Micros, figures: &Figures) {
        let cut = self.cut.take().filter(|(cut, _)| *cut == run);
        figures.stopped(cut.map(|(_, at)| seconds(at.since(stop))), seconds(end.since(stop)));
    }
}

/// How long the messages waited, of those that were seen to come.
fn injected(agent: &Agent, messages: &[MessageId], point: Point, at: Micros, figures: &Figures) {
    for id in messages {
        let known = agent.queue.iter().find(|message| message.id == *id);
        if let Some((message, since)) = known.and_then(|message| Some((message, message.since?))) {
            figures.waited(message.urgency, point, seconds(at.since(since)));
        }
    }
}

/// Whether a stop cut this call. One that ignored its token is `unknown`, whoever cut it.
fn cuts(status: ToolStatus, is_stopping: bool) -> bool {
    match status {
        ToolStatus::Stopped => true,
        ToolStatus::Unknown => is_stopping,
        ToolStatus::Completed | ToolStatus::Failed | ToolStatus::Interrupted | ToolStatus::Skipped => false,
    }
}

fn is_stop(reason: InterruptReason) -> bool {
    match reason {
        InterruptReason::UserCancelled
        | InterruptReason::Superseded
        | InterruptReason::StoppedByParent
        | InterruptReason::Shutdown => true,
        InterruptReason::MessageInterrupt | InterruptReason::Limit | InterruptReason::Error => false,
    }
}

/// Seconds, as Prometheus has them.
fn seconds(span: Span) -> f64 {
    span.duration().as_secs_f64()
}

/// A count of what is in memory, as gauges have it.
fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
