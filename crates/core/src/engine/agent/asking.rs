//! Calls that a person is asked about: the request, the answer, and what withdraws it.
//!
//! Whether a call is asked about is decided in `rules::approval`; what a message does to one
//! that waits for its answer is decided in `rules::turn`.

use serde_json::Value;

use super::Driver;
use crate::engine::approvals::Approval;
use crate::engine::journal::Draft;
use crate::engine::ports::{CallTraits, Clock, Phase};
use crate::engine::session::{Activity, ActivityKind, AgentCell};
use crate::rules::approval::{self, Answer, Asked, Decision, Effect, Rule, Verdict};
use crate::rules::conversation::ToolUse;
use crate::rules::event::EventKind;
use crate::rules::id::CallId;
use crate::rules::mail::Sender;
use crate::rules::time::Micros;
use crate::rules::wording::{self, COORDINATOR};

/// The requests of a turn that wait for their answers.
#[derive(Default)]
pub(super) struct Requests {
    open: Vec<Awaited>,
    /// What became of requests, still to be told.
    resolved: Vec<EventKind>,
}

struct Awaited {
    index: usize,
    tool: CallId,
    since: Micros,
    until: Micros,
}

impl Requests {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// When the first of them is given up.
    pub(super) fn deadline(&self) -> Option<Micros> {
        self.open.iter().map(|request| request.until).min()
    }

    /// What became of requests since the last question.
    pub(super) fn take_resolved(&mut self) -> Vec<EventKind> {
        std::mem::take(&mut self.resolved)
    }

    fn resolve(&mut self, tool: CallId, decision: Decision, by: &str, reason: Option<String>) {
        self.resolved.push(EventKind::ApprovalResolved { tool, decision, by: by.to_owned(), reason });
    }

    /// Takes out those that are wanted.
    fn take(&mut self, wanted: impl Fn(&Awaited) -> bool) -> Vec<Awaited> {
        self.open.extract_if(.., |request| wanted(request)).collect()
    }
}

/// Waits until a request of the agent has its answer, or the time of the first one is up.
pub(super) async fn answered(cell: &AgentCell, clock: &dyn Clock, until: Option<Micros>) {
    let Some(until) = until else { return std::future::pending().await };
    tokio::select! {
        biased;
        () = cell.answered.notified() => {}
        () = clock.until(until, Phase::Deadline(cell.index)) => {}
    }
}

impl Driver {
    /// Keeps the calls that may start; the others are denied, or a person is asked.
    pub(super) fn admit(&mut self, draft: &mut Draft, calls: Vec<(usize, ToolUse)>) -> Vec<(usize, ToolUse)> {
        calls.into_iter().filter(|(index, call)| self.admits(draft, *index, call)).collect()
    }

    fn admits(&mut self, draft: &mut Draft, index: usize, call: &ToolUse) -> bool {
        if self.run.tools().is_some_and(|turn| turn.is_approved(index)) {
            return true;
        }
        // What a model meant by arguments that are cut can't be judged, and no tool takes them.
        if let Value::String(text) = &call.input {
            return self.denies(index, wording::unreadable(&call.name, text));
        }
        // A tool that doesn't exist does nothing but say so.
        let traits = self.tool(call).map_or(CallTraits::COORDINATES, |tool| tool.traits(call));
        let asked = Asked { name: &call.name, subject: traits.subject.as_deref(), effect: traits.effect };
        let approvals = &self.session.approvals;
        let lost =
            (asked.effect == Effect::Edits).then(|| self.session.secrets.mark_in(&call.input)).flatten();
        let why = match (approvals.judge(&asked), lost) {
            (Verdict::Denied(why), _) => why,
            // Before a person is asked: it would do what nobody can have meant.
            (_, Some(mark)) => approval::would_lose(mark),
            (Verdict::Allowed, None) => return true,
            (Verdict::Ask, None) if approvals.is_attended() => {
                self.ask(draft, index, call, &asked);
                return false;
            }
            (Verdict::Ask, None) => approval::nobody(approvals.policy().mode),
        };
        self.denies(index, approval::denied(&why))
    }

    /// The call ends with this result and doesn't run.
    fn denies(&mut self, index: usize, text: String) -> bool {
        if let Some(turn) = self.run.tools() {
            turn.denied(index, text);
        }
        self.bench.news = true;
        false
    }

    fn ask(&mut self, draft: &mut Draft, index: usize, call: &ToolUse, asked: &Asked<'_>) {
        let Some(turn) = self.run.tools() else { return };
        turn.asks(index);
        let since = self.session.clock.now();
        let (tool, name, input) = (call.id.clone(), call.name.clone(), call.input.clone());
        let always = Rule::always(asked);
        let requested = EventKind::ApprovalRequested {
            tool: tool.clone(),
            name: name.clone(),
            input: input.clone(),
            always: always.text().into(),
        };
        draft.tell(self.place(), requested);
        let (approvals, agent) = (self.session.approvals.clone(), self.cell.name.clone());
        // For all that the agent asks in this draft.
        draft.then(move || approvals.durable(&agent));
        let until = since.after(self.session.approvals.policy().patience);
        self.begins(ActivityKind::Approval { id: tool.clone(), name: name.clone() });
        let agent = self.cell.name.clone();
        let approval = Approval { agent, tool: tool.clone(), name, input, always, since };
        let since = self.session.approvals.ask(approval, asked);
        self.bench.requests.open.push(Awaited { index, tool, since, until });
    }

    /// Does what the answers say. What is approved starts when the rules are asked next.
    pub(super) fn take_answers(&mut self) {
        let (approvals, name) = (self.session.approvals.clone(), self.cell.name.clone());
        let now = self.session.clock.now();
        let due = |request: &Awaited| {
            approvals.is_answered(&name, &request.tool, request.since) || request.until <= now
        };
        for request in self.bench.requests.take(due) {
            self.bench.news = true;
            self.answered_by(&request);
        }
    }

    fn answered_by(&mut self, request: &Awaited) {
        let answer = self.close(request);
        let patience = self.session.approvals.policy().patience;
        let Some(turn) = self.run.tools() else { return };
        let by = if answer.is_some() { Sender::User.to_string() } else { COORDINATOR.to_owned() };
        let (decision, reason) = match answer {
            Some(Answer::Once) => (Decision::Once, None),
            Some(Answer::Session(rule)) => (Decision::Session, Some(rule.text().to_owned())),
            Some(Answer::No(reason)) => (Decision::Denied, reason),
            None => (Decision::NotAnswered, None),
        };
        match decision {
            Decision::Once | Decision::Session => turn.approved(request.index),
            Decision::Denied => {
                turn.denied(request.index, approval::refused(Sender::User.spoken(), reason.as_deref()));
            }
            Decision::NotAnswered => turn.unanswered(request.index, patience),
        }
        self.bench.requests.resolve(request.tool.clone(), decision, &by, reason);
    }

    /// Withdraws the requests whose calls something has cut: nobody needs to answer any more.
    pub(super) fn withdraw_requests(&mut self, by: &str) {
        let Some(turn) = self.run.tools() else { return };
        for request in self.bench.requests.take(|request| !turn.is_asking(request.index)) {
            // An answer that came in the same instant came too late.
            self.close(&request);
            self.bench.requests.resolve(request.tool, Decision::NotAnswered, by, None);
        }
    }

    /// The run is over: nothing of it is asked about any more.
    pub(super) fn forget_requests(&mut self) {
        for request in self.bench.requests.take(|_| true) {
            self.close(&request);
        }
    }

    fn close(&self, request: &Awaited) -> Option<Answer> {
        let tool = &request.tool;
        let is_it =
            |activity: &Activity| matches!(&activity.what, ActivityKind::Approval { id, .. } if id == tool);
        self.cell.state.lock().activity.retain(|activity| !is_it(activity));
        self.session.approvals.close(&self.cell.name, tool, request.since)
    }
}
