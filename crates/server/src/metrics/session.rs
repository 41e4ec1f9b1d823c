//! One session's part in the figures: an observer that counts what it is told.
//!
//! What a figure needs to know of the session it reads in core's fold, before an event and after
//! it; both are forgotten when the session is let go, and what it added to the gauges goes with it.
//! Instants are those of the events, so a virtual clock gives the same figures on every machine.

use std::collections::HashMap;
use std::sync::Arc;

use midturn_core::engine::ports::Observer;
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::{InterruptReason, ToolStatus};
use midturn_core::rules::event::{Event, EventKind, Outcome};
use midturn_core::rules::id::{AgentName, MessageId, RunId};
use midturn_core::rules::mail::Point;
use midturn_core::rules::time::{Micros, Span};
use midturn_core::rules::view::{Agent, View};
use parking_lot::Mutex;

use super::figures::{self as figure, Figures, doing};

/// How long after a stop what comes is a follow-up.
const FOLLOW_UP: Span = Span::secs(60);

/// Counts the events of one session.
pub(super) struct SessionFigures {
    figures: Arc<Figures>,
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
    /// A session of which this is there already, and nothing of it counted. How long its mail had
    /// waited is not known.
    pub(super) fn of(figures: Arc<Figures>, view: View) -> Self {
        figures.count(figure::SESSIONS, 1);
        view.agents().for_each(|(_, agent)| figures.agent(None, doing(Some(agent))));
        figures.count(figure::MESSAGES_WAITING, signed(view.waiting()));
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
        let doing = |view: &View| doing(event.at.agent.as_ref().and_then(|name| view.agent(name)));
        let gauges = |view: &View| [signed(view.waiting()), signed(view.open_asks().len())];
        let (was, [waited, asked]) = (doing(&known.view), gauges(&known.view));
        known.view.event(event);
        let [waits, asks] = gauges(&known.view);
        figures.agent(was, doing(&known.view));
        figures.count(figure::MESSAGES_WAITING, waits - waited);
        figures.count(figure::APPROVALS_OPEN, asks - asked);
        if matches!(event.kind, EventKind::MessageQueued { .. }) && waits == waited {
            figures.count(figure::MESSAGES_UNTRACKED, 1);
        }
    }

    fn stale(&self) {
        self.figures.count(figure::STALE_EVENTS, 1);
    }

    fn stored(&self, took: Span) {
        self.figures.observe(&figure::STORE_COMMIT, ["", ""], seconds(took));
    }
}

impl Drop for SessionFigures {
    fn drop(&mut self) {
        let view = &self.known.get_mut().view;
        view.agents().for_each(|(_, agent)| self.figures.agent(doing(Some(agent)), None));
        self.figures.count(figure::MESSAGES_WAITING, -signed(view.waiting()));
        self.figures.count(figure::APPROVALS_OPEN, -signed(view.open_asks().len()));
        self.figures.count(figure::SESSIONS, -1);
    }
}

/// Counts what needs no memory.
fn count(figures: &Figures, kind: &EventKind) {
    let (counted, word) = match kind {
        EventKind::RunStarted { trigger } => (figure::RUNS_STARTED, trigger.as_str()),
        EventKind::RunFinished { outcome, .. } => (figure::RUNS_ENDED, outcome.as_str()),
        EventKind::ModelStarted { .. } => (figure::MODEL_CALLS, ""),
        EventKind::ModelRetry { .. } => (figure::MODEL_RETRIES, ""),
        EventKind::ToolFinished { status, .. } => (figure::TOOL_CALLS, status.as_str()),
        EventKind::MessageQueued { urgency, .. } => (figure::MESSAGES_ACCEPTED, urgency.as_str()),
        EventKind::MessageRefused { reason, .. } => (figure::MESSAGES_REFUSED, figure::refusal(reason)),
        EventKind::MessageReturned { reason, .. } => (figure::MESSAGES_RETURNED, reason.as_str()),
        EventKind::StopRequested { by, .. } => (figure::STOPS, figure::stopper(by)),
        EventKind::ApprovalResolved { decision, .. } => (figure::APPROVALS, decision.as_str()),
        EventKind::Compacted { .. } => (figure::COMPACTIONS, ""),
        several => return count_several(figures, several),
    };
    figures.add(counted, word, 1);
}

fn count_several(figures: &Figures, kind: &EventKind) {
    match kind {
        EventKind::ModelFinished { usage, .. } => {
            figures.add(figure::TOKENS, figure::INPUT, usage.input.cast_signed());
            figures.add(figure::TOKENS, figure::OUTPUT, usage.output.cast_signed());
            figures.count(figure::CACHED_TOKENS, usage.cached.cast_signed());
        }
        EventKind::ModelInterrupted { reason, partial_tokens, .. } => {
            figures.observe(&figure::PARTIAL_REPLY, [reason.as_str(), ""], *partial_tokens as f64);
        }
        EventKind::MessageInjected { messages, point, skipped, interrupted, .. } => {
            figures.add(figure::MESSAGES_INJECTED, point.as_str(), signed(messages.len()));
            figures.add(figure::CALLS_CUT_BY_MAIL, figure::SKIPPED, signed(skipped.len()));
            figures.add(figure::CALLS_CUT_BY_MAIL, figure::INTERRUPTED, signed(interrupted.len()));
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
                figures.count(figure::MESSAGES_ANSWERED, signed(agent.unanswered()));
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
            figures.count(figure::STOPS_FOLLOWED, 1);
        }
    }
}

impl Stopped {
    /// The run that was stopped has ended.
    fn ends(&mut self, run: RunId, stop: Micros, end: Micros, figures: &Figures) {
        let cut = self.cut.take().filter(|(cut, _)| *cut == run);
        if let Some((_, at)) = cut {
            figures.observe(&figure::STOP, [figure::UNTIL_CUT, ""], seconds(at.since(stop)));
        }
        figures.observe(&figure::STOP, [figure::UNTIL_END, ""], seconds(end.since(stop)));
    }
}

/// How long the messages waited, of those that were seen to come.
fn injected(agent: &Agent, messages: &[MessageId], point: Point, at: Micros, figures: &Figures) {
    for id in messages {
        let known = agent.queue.iter().find(|message| message.id == *id);
        if let Some((message, since)) = known.and_then(|message| Some((message, message.since?))) {
            let words = [message.urgency.as_str(), point.as_str()];
            figures.observe(&figure::MESSAGE_WAIT, words, seconds(at.since(since)));
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
