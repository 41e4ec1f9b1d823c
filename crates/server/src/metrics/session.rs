//! One session's part in the figures: an observer that counts what it is told.
//!
//! It remembers agents and waiting mail up to a bound, and forgets both when the session is
//! let go: what it added to the gauges goes with it.

use std::collections::HashMap;

use midturn_core::engine::ports::{Observer, SessionJournal};
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::{InterruptReason, ToolStatus};
use midturn_core::rules::event::{Event, EventKind, Place};
use midturn_core::rules::id::{AgentName, MessageId, RunId};
use midturn_core::rules::mail::{Point, ReceiptState, Urgency};
use midturn_core::rules::progress::Closed;
use midturn_core::rules::time::{Micros, Span};
use parking_lot::Mutex;

use super::agent::{Agent, seconds};
use super::figures::{Doing, Figures};
use super::words;

/// How many agents of a session are followed, closed ones included.
const AGENTS_MAX: usize = 16_384;

/// How many waiting messages of a session are followed: 64 full mailboxes.
const WAITING_MAX: usize = 65_536;

/// Counts the events of one session.
pub(super) struct SessionFigures {
    figures: Figures,
    known: Mutex<Known>,
}

/// What is remembered of the session.
#[derive(Default)]
struct Known {
    agents: HashMap<AgentName, Agent>,
    waiting: usize,
}

impl SessionFigures {
    pub(super) fn new(figures: Figures) -> Self {
        figures.sessions.inc();
        Self { figures, known: Mutex::default() }
    }

    /// A session that goes on: its agents and its mail are there already. How long its mail
    /// had waited is not known.
    pub(super) fn resumed(figures: Figures, journal: &SessionJournal) -> Self {
        let session = Self::new(figures);
        let mut known = session.known.lock();
        for agent in &journal.agents {
            let is_open = agent.run > agent.last_end.as_ref().map_or(0, |(end, _)| end.run);
            let doing = match (agent.closed, is_open) {
                (Closed::No | Closed::Asked, true) => Doing::Working,
                (Closed::No, false) => Doing::Resting,
                (Closed::Asked, false) | (Closed::Told, _) => Doing::Nothing,
            };
            known.with(&agent.record.name, |agent| agent.does(doing, &session.figures));
        }
        for kept in &journal.mail {
            let mail = &kept.accepted.mail;
            match &kept.state {
                ReceiptState::Queued => {
                    known.queued(&mail.to, &mail.id, mail.urgency, None, &session.figures);
                }
                ReceiptState::Injected(_) | ReceiptState::Sent { .. } => {
                    known.with(&mail.to, |agent| agent.unanswered(1));
                }
                ReceiptState::Answered { .. } | ReceiptState::Returned(_) => {}
            }
        }
        drop(known);
        session
    }
}

impl Observer for SessionFigures {
    fn event(&self, event: &Event) {
        count(&self.figures, &event.kind);
        let Some(name) = &event.at.agent else { return };
        if matches!(event.kind, EventKind::MessageRefused { .. }) {
            // It may be for anybody, also for names that nobody has.
            return;
        }
        let mut known = self.known.lock();
        if let EventKind::MessageQueued { message, urgency, .. } = &event.kind {
            known.queued(name, message, *urgency, Some(event.t), &self.figures);
        }
        let now = Now { at: &event.at, t: event.t, figures: &self.figures };
        let left = known.with(name, |agent| now.follow(agent, &event.kind)).unwrap_or(0);
        known.leave(left, &self.figures);
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
        let known = self.known.get_mut();
        for agent in known.agents.values_mut() {
            agent.does(Doing::Nothing, &self.figures);
            agent.asks_nothing(&self.figures);
        }
        known.leave(known.waiting, &self.figures);
        self.figures.sessions.dec();
    }
}

impl Known {
    /// Does something with what is remembered of an agent, unless there are too many.
    fn with<T>(&mut self, name: &AgentName, then: impl FnOnce(&mut Agent) -> T) -> Option<T> {
        if let Some(agent) = self.agents.get_mut(name) {
            return Some(then(agent));
        }
        let has_room = self.agents.len() < AGENTS_MAX;
        has_room.then(|| then(self.agents.entry(name.clone()).or_default()))
    }

    fn queued(
        &mut self,
        to: &AgentName,
        id: &MessageId,
        urgency: Urgency,
        since: Option<Micros>,
        figures: &Figures,
    ) {
        let has_room = self.waiting < WAITING_MAX;
        if has_room && self.with(to, |agent| agent.waits_for(id, urgency, since)).is_some() {
            self.waiting += 1;
            figures.messages_waiting.inc();
        } else {
            figures.messages_untracked.inc();
        }
    }

    fn leave(&mut self, count: usize, figures: &Figures) {
        self.waiting = self.waiting.saturating_sub(count);
        figures.messages_waiting.dec_by(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

/// Counts what needs no memory.
fn count(figures: &Figures, kind: &EventKind) {
    match kind {
        EventKind::RunStarted { trigger } => figures.run_started(words::trigger(trigger)),
        EventKind::RunFinished { outcome, .. } => figures.run_ended(words::outcome(*outcome)),
        EventKind::ModelStarted { .. } => {
            figures.model_calls.inc();
        }
        EventKind::ModelFinished { usage, .. } => figures.tokens(usage.input, usage.output, usage.cached),
        EventKind::ModelInterrupted { reason, partial_tokens, .. } => {
            figures.partial(words::cut(*reason), *partial_tokens);
        }
        EventKind::ModelRetry { .. } => {
            figures.model_retries.inc();
        }
        EventKind::ToolFinished { status, .. } => figures.tool_call(words::status(*status)),
        EventKind::MessageQueued { urgency, .. } => figures.accepted(*urgency),
        EventKind::MessageRefused { reason, .. } => figures.refused(words::refusal(reason)),
        EventKind::MessageInjected { messages, point, skipped, interrupted, .. } => {
            figures.injected(*point, messages.len() as u64);
            figures.cut_by_mail(skipped.len(), interrupted.len());
        }
        EventKind::MessageReturned { reason, .. } => figures.returned(words::returned(*reason)),
        EventKind::StopRequested { by, .. } => figures.stop(words::stopper(by)),
        EventKind::ApprovalResolved { decision, .. } => figures.approval(words::decision(*decision)),
        EventKind::Compacted { .. } => {
            figures.compactions.inc();
        }
        EventKind::SessionStarted { .. }
        | EventKind::SessionResumed { .. }
        | EventKind::LimitRaised { .. }
        | EventKind::ApprovalRequested { .. }
        | EventKind::AgentSpawned { .. }
        | EventKind::ToolStarted { .. }
        | EventKind::PlanUpdated { .. }
        | EventKind::AgentClosed {} => {}
    }
}

/// Where and when something happened.
struct Now<'a> {
    at: &'a Place,
    t: Micros,
    figures: &'a Figures,
}

impl Now<'_> {
    fn run(&self) -> RunId {
        self.at.run.unwrap_or_default()
    }

    /// Moves what is remembered of the agent on. Returns how many messages wait no more.
    fn follow(&self, agent: &mut Agent, kind: &EventKind) -> usize {
        match kind {
            EventKind::AgentSpawned { .. } => agent.does(Doing::Resting, self.figures),
            EventKind::RunStarted { .. } => {
                agent.begins(self.t, self.figures);
                agent.does(Doing::Working, self.figures);
            }
            // A run that goes on after a crash has no beginning here.
            EventKind::ModelStarted { .. } | EventKind::ToolStarted { .. } => {
                agent.does(Doing::Working, self.figures);
            }
            EventKind::ModelFinished { purpose: Purpose::Turn, .. } => {
                self.figures.messages_answered.inc_by(agent.answered());
            }
            EventKind::ModelInterrupted { reason, .. } if is_stop(*reason) => agent.cut(self.run(), self.t),
            EventKind::ToolFinished { status, .. } if self.cuts(agent, *status) => {
                agent.cut(self.run(), self.t);
            }
            EventKind::MessageQueued { from, .. } => agent.written_to(from, self.t, self.figures),
            EventKind::MessageInjected { messages, point, .. } => {
                return self.injected(agent, messages, *point);
            }
            EventKind::MessageReturned { message, .. } => return usize::from(agent.leaves(message)),
            EventKind::StopRequested { by, .. } => agent.stopping(self.run(), by, self.t, self.figures),
            EventKind::ApprovalRequested { .. } => agent.asks(self.figures),
            EventKind::ApprovalResolved { .. } => agent.asks_less(self.figures),
            EventKind::RunFinished { outcome, .. } => {
                agent.asks_nothing(self.figures);
                agent.ends(self.run(), *outcome, self.t, self.figures);
                agent.does(Doing::Resting, self.figures);
            }
            EventKind::AgentClosed {} => {
                agent.does(Doing::Nothing, self.figures);
                agent.asks_nothing(self.figures);
                // What was known of it but its name is of no use any more.
                return std::mem::take(agent).waiting();
            }
            // A summary answers nobody.
            EventKind::ModelFinished { purpose: Purpose::Summary, .. }
            | EventKind::ModelInterrupted { .. }
            | EventKind::ModelRetry { .. }
            | EventKind::ToolFinished { .. }
            | EventKind::MessageRefused { .. }
            | EventKind::PlanUpdated { .. }
            | EventKind::LimitRaised { .. }
            | EventKind::Compacted { .. }
            | EventKind::SessionResumed { .. }
            | EventKind::SessionStarted { .. } => {}
        }
        0
    }

    fn injected(&self, agent: &mut Agent, messages: &[MessageId], point: Point) -> usize {
        agent.unanswered(messages.len() as u64);
        let known = messages.iter().filter(|id| agent.injected(id, point, self.t, self.figures));
        known.count()
    }

    /// Whether a stop cut this call. One that ignored its token is `unknown`, whoever cut it.
    fn cuts(&self, agent: &Agent, status: ToolStatus) -> bool {
        match status {
            ToolStatus::Stopped => true,
            ToolStatus::Unknown => agent.is_stopping(self.run()),
            ToolStatus::Completed | ToolStatus::Failed | ToolStatus::Interrupted | ToolStatus::Skipped => {
                false
            }
        }
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
