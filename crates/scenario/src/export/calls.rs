//! Tool calls: when each started and ended, which were cut, which tools must have been safe or
//! have returned a continuation.

use midturn_core::engine::tools::is_safe;
use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::CallId;
use midturn_core::rules::mail::Urgency;
use midturn_core::rules::settings::Concurrency;
use midturn_core::rules::time::Span;
use serde_json::Value;

use super::ExportError;
use super::plan::{Call, CallEnd, CallKind, Started, When};
use super::read::Reader;

/// What stands before the output of a call that was cut.
const SO_FAR: &str = "\nOutput so far:\n";

/// What a call says that mail skipped.
const BY_MAIL: &str = "[Skipped: message received from ";

impl Reader<'_> {
    /// The calls of the agent's turn.
    fn turn(&mut self, agent: usize) -> &mut [Call] {
        let last = self.plan.agents[agent].entries.iter_mut().rev().find(|entry| !entry.calls.is_empty());
        last.map_or(&mut [], |entry| &mut entry.calls)
    }

    /// The place of a call in the turn.
    fn call(&mut self, event: &Event, agent: usize, id: &CallId) -> Result<usize, ExportError> {
        let is_it =
            |call: &Call| call.by_model == *id && call.ended.is_none() && call.kind != CallKind::Provider;
        self.turn(agent).iter().position(is_it).ok_or_else(|| {
            ExportError::damaged(format!("event {} is about a call that no reply asked for", event.seq))
        })
    }

    /// The file's id of a call that is asked about.
    pub(super) fn asked_about(
        &mut self,
        event: &Event,
        agent: usize,
        id: &CallId,
    ) -> Result<CallId, ExportError> {
        let index = self.call(event, agent, id)?;
        Ok(CallId::new(self.turn(agent)[index].id.as_str()))
    }

    /// The file's id of a call of the turn.
    pub(super) fn named(&mut self, agent: usize, id: &CallId) -> CallId {
        let call = self.turn(agent).iter().find(|call| call.by_model == *id);
        call.map_or_else(|| id.clone(), |call| CallId::new(call.id.as_str()))
    }

    /// Whether a call of the coordinator's tools runs that did something.
    pub(super) fn acts(&self, agent: usize, names: &[&str], wanted: impl Fn(&Value) -> bool) -> bool {
        let calls = self.plan.agents[agent].entries.last().map(|entry| &*entry.calls).unwrap_or_default();
        let is_it = |call: &&Call| names.contains(&call.name.as_str()) && wanted(&call.input);
        calls.iter().filter(|call| call.kind == CallKind::Own && call.is_running()).any(|call| is_it(&call))
    }

    /// Notes which id a running call's message was given, if it named none itself.
    pub(super) fn note_id(&mut self, agent: usize, text: &str, id: &str) {
        for call in self.turn(agent).iter_mut().filter(|call| call.is_running()) {
            let says = |key: &str| call.input.get(key).and_then(Value::as_str);
            if call.name == "send_message" && says("text") == Some(text) && says("id").is_none() {
                call.sent_as = Some(id.to_owned());
            }
        }
    }

    pub(super) fn tool_started(
        &mut self,
        event: &Event,
        agent: usize,
        tool: &mut CallId,
        batch: u32,
    ) -> Result<(), ExportError> {
        let index = self.call(event, agent, tool)?;
        if let Some(running) = self.returned_before(event, agent, index, batch) {
            self.turn(agent)[running].continued = Some(event.t);
        }
        let call = &mut self.turn(agent)[index];
        call.started = Some(Started { seq: event.seq, batch });
        *tool = CallId::new(call.id.as_str());
        Ok(())
    }

    /// The call beside which another starts that does not run beside others: it must have
    /// returned a continuation.
    fn returned_before(&mut self, event: &Event, agent: usize, index: usize, batch: u32) -> Option<usize> {
        let all = self.plan.agents[agent].settings.concurrency == Concurrency::All;
        let (mut ended, mut together, mut asked) = (false, false, false);
        for (before, told) in self.told.iter().rev().enumerate() {
            if told.at.agent != event.at.agent {
                continue;
            }
            match &told.kind {
                EventKind::ToolStarted { .. } => {
                    together = before == 0 && told.t == event.t;
                    break;
                }
                EventKind::ToolFinished { .. } => ended = true,
                EventKind::ApprovalResolved { .. } => asked = true,
                EventKind::ModelFinished { .. } => break,
                _ => {}
            }
        }
        let calls = &self.turn(agent)[..index];
        let last = calls.iter().rposition(|call| call.is_running() && call.continued.is_none())?;
        let beside = all || calls[last].started.is_some_and(|started| started.batch == batch);
        (!asked && !(beside && (together || ended))).then_some(last)
    }

    pub(super) fn tool_finished(
        &mut self,
        event: &Event,
        agent: usize,
        tool: &mut CallId,
        status: ToolStatus,
    ) -> Result<(), ExportError> {
        let index = self.call(event, agent, tool)?;
        let text = self.text_of(event, agent, tool)?;
        let started = self.turn(agent)[index].started;
        let end = match (status, started) {
            (ToolStatus::Skipped, _) => {
                if text.starts_with(BY_MAIL) {
                    self.goes_on_beside(event, agent);
                }
                CallEnd::None
            }
            // It was denied, or never ran.
            (_, None) => CallEnd::None,
            (ToolStatus::Completed | ToolStatus::Failed, _) => {
                CallEnd::Natural { when: When::At(event.t), text, is_error: status == ToolStatus::Failed }
            }
            (ToolStatus::Interrupted | ToolStatus::Stopped, Some(started)) => {
                let output = text.split_once(SO_FAR).map(|(_, output)| output.to_owned());
                let abort_takes = self.since_the_cut(event, started, status).unwrap_or_default();
                CallEnd::Cut { abort_takes, output: output.unwrap_or_default() }
            }
            (ToolStatus::Unknown, _) => {
                let limit = self.plan.agents[agent].settings.abort_deadline;
                let beyond = Span(limit.0.saturating_add(Span::secs(1).0));
                CallEnd::Cut { abort_takes: beyond, output: String::new() }
            }
        };
        let call = &mut self.turn(agent)[index];
        (call.end, call.ended) = (end, Some(event.seq));
        *tool = CallId::new(call.id.as_str());
        let settings = &self.plan.agents[agent].settings;
        if settings.concurrency != Concurrency::All {
            infer_safe(settings.max_parallel_tools > 1, self.turn(agent));
        }
        Ok(())
    }

    /// How long ago came what cut the call: the first that does after its start.
    fn since_the_cut(&self, event: &Event, started: Started, status: ToolStatus) -> Option<Span> {
        let cuts = |kind: &EventKind| match kind {
            EventKind::MessageQueued { urgency, .. } => {
                status == ToolStatus::Interrupted && *urgency == Urgency::Urgent
            }
            EventKind::StopRequested { .. } => status == ToolStatus::Stopped,
            _ => false,
        };
        let own = self.told.iter().filter(|told| told.at.agent == event.at.agent);
        let cut = own.filter(|told| told.seq > started.seq).find(|told| cuts(&told.kind));
        cut.map(|cut| event.t.since(cut.t))
    }

    /// The result in full: an event has only so much of it.
    fn text_of(&mut self, event: &Event, agent: usize, tool: &CallId) -> Result<String, ExportError> {
        let EventKind::ToolFinished { output, bytes, .. } = &event.kind else { return Ok(String::new()) };
        let kept = self.hands[agent].results.get_mut(tool).and_then(std::collections::VecDeque::pop_front);
        match kept {
            Some(result) => Ok(result.text.to_string()),
            None if output.len() as u64 == *bytes => Ok(output.clone()),
            None => Err(ExportError::damaged(format!("no record of the result of event {}", event.seq))),
        }
    }

    /// Mail that aborts nothing skips calls at a boundary only, so what still runs then must
    /// have returned a continuation.
    fn goes_on_beside(&mut self, event: &Event, agent: usize) {
        let own = self.told.iter().rev().filter(|told| told.at.agent == event.at.agent);
        let mut turn = own.take_while(|told| !matches!(told.kind, EventKind::ModelFinished { .. }));
        let cut = turn.any(|told| {
            matches!(
                told.kind,
                EventKind::StopRequested { .. } | EventKind::MessageQueued { urgency: Urgency::Urgent, .. }
            )
        });
        let running = self.turn(agent).iter_mut().find(|call| call.is_running() && call.continued.is_none());
        if let (Some(running), false) = (running, cut) {
            running.continued = Some(event.t);
        }
    }
}

/// What may run beside others, from how the calls of a turn ran.
fn infer_safe(slots: bool, calls: &mut [Call]) {
    let of_batch = |call: &Call, calls: &[Call]| -> Option<bool> {
        let batch = call.started?.batch;
        let own: Vec<&Call> =
            calls.iter().filter(|call| call.started.is_some_and(|started| started.batch == batch)).collect();
        let beside = |pair: &[&Call]| {
            let start = pair[1].started.map_or(0, |started| started.seq);
            pair[0].continued.is_none() && pair[0].ended.is_none_or(|end| start < end)
        };
        (own.len() > 1).then(|| own.windows(2).any(beside))
    };
    let mut found: Vec<Option<bool>> =
        calls.iter().map(|call| if slots { of_batch(call, calls) } else { None }).collect();
    for index in 1..calls.len() {
        let (one, other) = (&calls[index - 1], &calls[index]);
        let class = |of: usize| found[of].unwrap_or(is_safe(&calls[of].name));
        let apart = one.started.zip(other.started).is_some_and(|(one, other)| one.batch != other.batch);
        // Neighbours of different batches are not of one kind, whatever they are called.
        if apart && class(index - 1) == class(index) {
            let odd = if found[index - 1].is_none() { index - 1 } else { index };
            found[odd] = Some(!class(index));
        }
    }
    for index in 0..calls.len() {
        let by_name = is_safe(&calls[index].name);
        // A safe call beside one that ran would have started with it.
        let waited = index > 0
            && calls[index].started.is_none()
            && calls[index].ended.is_some()
            && calls[index - 1].started.is_some();
        let safe = found[index].or((by_name && waited).then_some(false));
        if calls[index].kind == CallKind::Simulated {
            calls[index].safe = safe.filter(|safe| *safe != by_name);
        }
    }
}
