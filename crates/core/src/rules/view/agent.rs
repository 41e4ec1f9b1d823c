//! One agent as far as it was told: its run and what is under way in it, its mail, what it used
//! and said. The only place that decides what each kind of event does to it.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Said;
use crate::rules::compaction::Purpose;
use crate::rules::conversation::Usage;
use crate::rules::event::{Event, EventKind, Halt, Outcome, PlanStep};
use crate::rules::id::{AgentName, CallId, MessageId, RunId, TurnId};
use crate::rules::mail::{Injection, ReceiptState, Rest, Role, Standing, Urgency};
use crate::rules::time::Micros;

/// How many calls of one agent are followed at a time.
const CALLS_MAX: usize = 256;

/// How many messages of one mailbox are followed: more than it holds.
const QUEUE_MAX: usize = 4_096;

/// How many messages are kept that nothing more happens to; the newest.
const SETTLED_MAX: usize = 64;

/// An agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// Who spawned it.
    pub parent: Option<AgentName>,
    /// Lead or subagent; unknown of one whose beginning was not told.
    pub role: Option<Role>,
    /// Its model, as configured.
    pub model: Option<Arc<str>>,
    /// Its current run, or the last one; 0 before the first.
    pub run: RunId,
    /// The turn of that run.
    pub turn: TurnId,
    /// The last run that ended.
    pub ended: RunId,
    /// How that ended, unless another has begun.
    pub outcome: Option<Outcome>,
    /// When that was; unknown of a run that ended before the first event that was told.
    pub ended_at: Option<Micros>,
    /// What failed then, or the limit that was reached.
    pub error: Option<Arc<str>>,
    /// What was said in the run's last whole reply.
    pub text: Arc<str>,
    /// The first request to stop its current run, its last or its next one.
    pub stop: Option<Stop>,
    /// The model call that is under way.
    pub request: Option<Request>,
    /// When its model is asked again, after a call that failed.
    pub asks_again: Option<Micros>,
    /// The tool calls that are under way.
    pub calls: Vec<Call>,
    /// Its mailbox, in order of arrival.
    pub queue: VecDeque<Message>,
    /// The messages that have left it, in that order: all that are to be answered, and the newest of
    /// those that nothing more happens to.
    pub past: VecDeque<Message>,
    /// What its whole replies have used.
    pub usage: Usage,
    /// Its plan.
    pub plan: Vec<PlanStep>,
    /// What it says that is not recorded yet.
    pub said: Said,
    /// Nothing of it starts any more.
    pub is_closed: bool,
}

/// A request to stop a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The run.
    pub run: RunId,
    /// Who asked.
    pub by: String,
    /// Why.
    pub reason: Halt,
    /// When.
    pub at: Micros,
}

/// A model call that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its number.
    pub call: u64,
    /// How many messages it carries.
    pub messages: u64,
    /// What for.
    pub purpose: Purpose,
    /// Since when.
    pub since: Micros,
}

/// A tool call that is under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Its id.
    pub id: CallId,
    /// The tool.
    pub name: Arc<str>,
    /// Its arguments.
    pub input: Value,
    /// Since when.
    pub since: Micros,
}

/// A message, and where it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// Who sent it.
    pub from: String,
    /// How soon it acts.
    pub urgency: Urgency,
    /// As it was sent.
    pub text: Arc<str>,
    /// When it was accepted; unknown of one that was there before the first event that was told.
    pub since: Option<Micros>,
    /// Where it stands.
    pub state: ReceiptState,
}

impl Agent {
    /// Whether a run is under way.
    pub fn is_working(&self) -> bool {
        self.run > self.ended
    }

    /// Whether what belongs to this run changes nothing any more.
    pub(super) fn is_over(&self, run: RunId) -> bool {
        run < self.run || run <= self.ended
    }

    /// The request to stop this run, if there was one.
    pub fn stop_of(&self, run: RunId) -> Option<&Stop> {
        self.stop.as_ref().filter(|stop| stop.run == run)
    }

    /// What it is to its mail.
    pub fn standing(&self) -> Standing {
        let stop = self.stop_of(self.run).map(|stop| stop.reason);
        match (self.is_closed, self.is_working(), stop) {
            (true, ..) => Standing::Resting(Rest::Closed),
            (false, true, None) => Standing::Running,
            (false, true, Some(Halt::Close)) => Standing::Winding { then: Rest::Closed, restart: false },
            (false, true, Some(reason)) => {
                Standing::Winding { then: Rest::Stopped, restart: reason == Halt::Supersede }
            }
            (false, false, _) if self.outcome == Some(Outcome::Stopped) => Standing::Resting(Rest::Stopped),
            (false, false, _) => Standing::Resting(Rest::Idle),
        }
    }

    /// How many messages were injected and have no reply yet.
    pub fn unanswered(&self) -> usize {
        self.past.iter().filter(|message| !message.state.is_final()).count()
    }

    /// A message that was there before the first event that is told.
    pub fn has(&mut self, message: Message) {
        match message.state {
            ReceiptState::Queued => self.queue.push_back(message),
            ReceiptState::Injected(_)
            | ReceiptState::Sent { .. }
            | ReceiptState::Answered { .. }
            | ReceiptState::Returned(_) => self.leaves(message),
        }
    }

    /// Whether an event is of a run that is over, and changes nothing.
    pub fn is_stale(&self, event: &Event) -> bool {
        event.kind.is_of_run() && self.is_over(event.at.run.unwrap_or(self.run))
    }

    /// The next event. `false`: it is stale.
    pub fn event(&mut self, event: &Event) -> bool {
        if self.is_stale(event) {
            return false;
        }
        if event.kind.is_of_run() {
            let run = event.at.run.unwrap_or(self.run);
            // A run that the process before this one began has no beginning here.
            if run > self.run || matches!(event.kind, EventKind::RunStarted { .. }) {
                self.begins(run);
            }
            self.turn = event.at.turn.unwrap_or(self.turn);
        }
        match &event.kind {
            EventKind::AgentSpawned { parent, role, model, .. } => {
                (self.parent, self.role, self.model) = (parent.clone(), Some(*role), model.clone());
            }
            EventKind::ModelStarted { .. }
            | EventKind::ModelFinished { .. }
            | EventKind::ModelInterrupted { .. }
            | EventKind::ModelRetry { .. } => self.replies(event),
            EventKind::ToolStarted { .. } | EventKind::ToolFinished { .. } => self.calls(event),
            EventKind::MessageQueued { .. }
            | EventKind::MessageInjected { .. }
            | EventKind::MessageReturned { .. } => self.mail(event),
            EventKind::StopRequested { by, reason, .. } => {
                let (run, at) = (event.at.run.unwrap_or(self.run), event.t);
                if self.stop_of(run).is_none() {
                    self.stop = Some(Stop { run, by: by.clone(), reason: *reason, at });
                }
            }
            EventKind::PlanUpdated { steps } => self.plan.clone_from(steps),
            EventKind::RunFinished { outcome, error, .. } => {
                self.rests();
                (self.ended, self.outcome, self.error) = (self.run, Some(*outcome), error.clone());
                self.ended_at = Some(event.t);
            }
            EventKind::AgentClosed {} => {
                self.rests();
                (self.ended, self.is_closed) = (self.run, true);
                self.queue.clear();
            }
            EventKind::SessionStarted { .. }
            | EventKind::SessionResumed { .. }
            | EventKind::RunStarted { .. }
            | EventKind::MessageRefused { .. }
            | EventKind::ApprovalRequested { .. }
            | EventKind::ApprovalResolved { .. }
            | EventKind::LimitRaised { .. }
            | EventKind::Compacted { .. } => {}
        }
        true
    }

    fn begins(&mut self, run: RunId) {
        self.rests();
        (self.run, self.turn, self.outcome, self.error, self.text) = (run, 0, None, None, Arc::default());
        self.ended_at = None;
        // It may have been stopped before it began.
        self.stop = self.stop.take().filter(|stop| stop.run == run);
    }

    /// Nothing of it is under way any more.
    pub(super) fn rests(&mut self) {
        (self.request, self.asks_again) = (None, None);
        self.calls.clear();
        self.said = Said::default();
    }

    fn replies(&mut self, event: &Event) {
        let call = self.request.take().map_or(0, |request| request.call);
        self.asks_again = None;
        self.said.reply_ends();
        match &event.kind {
            EventKind::ModelStarted { call, messages, purpose } => {
                let (call, messages, purpose, since) = (*call, *messages, *purpose, event.t);
                self.request = Some(Request { call, messages, purpose, since });
                // Whose older part is summarised is not sent its mail.
                if purpose.is_turn() {
                    self.is_sent(call);
                }
            }
            EventKind::ModelFinished { usage, text, purpose, .. } => {
                self.usage.add(*usage);
                // A summary answers nobody.
                if *purpose == Purpose::Turn {
                    self.text = text.as_str().into();
                    self.is_answered(call);
                }
            }
            EventKind::ModelRetry { wait, .. } => self.asks_again = Some(event.t.after(*wait)),
            _ => {}
        }
    }

    fn calls(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ToolStarted { tool, name, input, .. } if self.calls.len() < CALLS_MAX => {
                let (id, name, input) = (tool.clone(), name.clone(), input.clone());
                self.calls.push(Call { id, name, input, since: event.t });
            }
            EventKind::ToolFinished { tool, .. } => {
                self.calls.retain(|call| call.id != *tool);
                self.said.call_ends(tool);
            }
            _ => {}
        }
    }

    fn mail(&mut self, event: &Event) {
        match &event.kind {
            EventKind::MessageQueued { message, from, urgency, text } => {
                let is_it = |known: &Message| known.id == *message && known.from == *from;
                if self.queue.len() < QUEUE_MAX && !self.queue.iter().any(is_it) {
                    self.queue.push_back(Message {
                        id: message.clone(),
                        from: from.clone(),
                        urgency: *urgency,
                        text: text.clone(),
                        since: Some(event.t),
                        state: ReceiptState::Queued,
                    });
                }
            }
            EventKind::MessageInjected { messages, point, skipped, interrupted, .. } => {
                let injection = Injection {
                    point: *point,
                    run: self.run,
                    turn: self.turn,
                    skipped: skipped.clone(),
                    interrupted: interrupted.clone(),
                };
                for id in messages {
                    self.moves(id, ReceiptState::Injected(injection.clone()));
                }
            }
            EventKind::MessageReturned { message, reason } => {
                self.moves(message, ReceiptState::Returned(*reason));
            }
            _ => {}
        }
    }

    fn moves(&mut self, id: &MessageId, state: ReceiptState) {
        let place = self.queue.iter().position(|message| message.id == *id);
        if let Some(message) = place.and_then(|place| self.queue.remove(place)) {
            self.leaves(Message { state, ..message });
        }
    }

    fn leaves(&mut self, message: Message) {
        self.past.push_back(message);
        let is_settled = |message: &Message| message.state.is_final();
        while self.past.len() > SETTLED_MAX && self.past.front().is_some_and(is_settled) {
            self.past.pop_front();
        }
    }

    fn is_sent(&mut self, call: u64) {
        for message in &mut self.past {
            if let ReceiptState::Injected(injection) = &message.state {
                message.state = ReceiptState::Sent { injection: injection.clone(), call };
            }
        }
    }

    fn is_answered(&mut self, call: u64) {
        for message in &mut self.past {
            if let ReceiptState::Injected(injection) | ReceiptState::Sent { injection, .. } = &message.state {
                message.state = ReceiptState::Answered { injection: injection.clone(), call };
            }
        }
    }
}
