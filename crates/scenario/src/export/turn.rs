//! A turn's calls: when each started and ended, which were cut, which tools must have been
//! safe or have returned a continuation.

use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::mail::Urgency;
use midturn_core::rules::settings::Concurrency;
use midturn_core::rules::time::Span;
use midturn_core::rules::wording;

use super::ExportError;
use super::actor::{Actor, Live, Phase};
use super::moments::Moment;
use super::plan::{CallEnd, CallKind, LandmarkKind};
use super::read::Reader;
use midturn_core::engine::tools::is_safe;

/// A call that ended by itself so long after something that cuts had come could not be
/// aborted; one that ended sooner had ended when it came.
const UNABORTABLE: Span = Span::secs(1);

/// What stands before the output of a call that was cut.
const SO_FAR: &str = "\nOutput so far:\n";

impl Reader<'_> {
    pub(super) fn tool_started(&mut self, event: &Event, agent: usize) -> Result<(), ExportError> {
        let EventKind::ToolStarted { tool, batch, .. } = &event.kind else { return Ok(()) };
        let Some((index, _)) = self.actors[agent].call(tool) else {
            return Err(unknown_call(event));
        };
        let beside = self.starts_beside(event, agent, *batch);
        match beside {
            Beside::Nothing => self.looked_at_boundary(agent),
            Beside::Slot => {}
            Beside::Continuation(running) => {
                self.continues(event, agent, running);
                self.looked_at_boundary(agent);
            }
        }
        let actor = &mut self.actors[agent];
        let now = actor.now;
        actor.live[index].started = Some((event.seq, *batch));
        actor.began = Some(now);
        if let Some(plan) = actor.plan(index) {
            plan.start = Some(now);
            let id = plan.id.clone();
            actor.landmark(event.seq, "tool_started", Some(id), now, LandmarkKind::Own);
        }
        Ok(())
    }

    /// Beside what a call starts: that tells whether a boundary was passed before it.
    fn starts_beside(&self, event: &Event, agent: usize, batch: u32) -> Beside {
        let actor = &self.actors[agent];
        let running = |live: &Live| live.is_running() && !self.has_continued(agent, live);
        let Some(last) = actor.live.iter().rposition(running) else { return Beside::Nothing };
        let together = self.place > 0 && {
            let before = &self.events[self.place - 1];
            before.t == event.t
                && before.at.agent == event.at.agent
                && matches!(before.kind, EventKind::ToolStarted { .. })
        };
        let in_batch = |live: &Live| live.started.is_some_and(|(_, number)| number == batch);
        let all = actor.journal.record.settings.concurrency == Concurrency::All;
        let one_of_them = all || in_batch(&actor.live[last]);
        if together || (one_of_them && self.something_ended(agent)) {
            Beside::Slot
        } else {
            Beside::Continuation(last)
        }
    }

    /// Whether a call of the agent's has ended since its last one started.
    fn something_ended(&self, agent: usize) -> bool {
        let name = &self.actors[agent].journal.record.name;
        let own =
            self.events[..self.place].iter().rev().filter(|event| event.at.agent.as_ref() == Some(name));
        let mut own = own.take_while(|event| !matches!(event.kind, EventKind::ToolStarted { .. }));
        own.any(|event| matches!(event.kind, EventKind::ToolFinished { .. }))
    }

    fn has_continued(&self, agent: usize, live: &Live) -> bool {
        let actor = &self.actors[agent];
        let Phase::Tools(entry) = actor.phase else { return false };
        let index = actor.live.iter().position(|other| other.call == live.call);
        let own = actor.entries[entry].calls.iter().filter(|call| call.kind != CallKind::Provider);
        index.and_then(|index| own.clone().nth(index)).is_some_and(|call| call.continued.is_some())
    }

    /// Mail that aborts nothing skips calls at a boundary only, so what still runs then must
    /// have returned a continuation.
    fn goes_on_beside(&mut self, event: &Event, agent: usize) {
        let actor = &self.actors[agent];
        let running =
            actor.live.iter().position(|live| live.is_running() && !self.has_continued(agent, live));
        if let (Some(running), None, None) = (running, actor.urgent(), actor.stop) {
            self.continues(event, agent, running);
        }
    }

    fn continues(&mut self, event: &Event, agent: usize, running: usize) {
        let at = self.moments.at(event.t);
        let now = self.actors[agent].now;
        self.moments.in_order(now, at);
        let actor = &mut self.actors[agent];
        actor.now = at;
        if let Some(plan) = actor.plan(running) {
            plan.continued = Some(at);
        }
    }

    /// The agent passed a boundary between its calls, or before the first.
    fn looked_at_boundary(&mut self, agent: usize) {
        let guarded = self.actors[agent].is_guarded();
        self.looked(agent, if guarded { Urgency::Urgent } else { Urgency::NextBoundary });
    }

    pub(super) fn tool_finished(&mut self, event: &Event, agent: usize) -> Result<(), ExportError> {
        let EventKind::ToolFinished { tool, status, .. } = &event.kind else { return Ok(()) };
        let Some((index, plan)) = self.actors[agent].call(tool) else {
            return Err(unknown_call(event));
        };
        plan.status = Some(*status);
        let (own, id) = (plan.kind == CallKind::Own, plan.id.clone());
        let text = self.text_of(event, agent)?;
        if text == wording::LOST || text == wording::NEVER_RAN {
            let name = &self.actors[agent].journal.record.name;
            return Err(ExportError::crashed(name, event.t));
        }
        match status {
            ToolStatus::Skipped => {
                self.goes_on_beside(event, agent);
                let actor = &mut self.actors[agent];
                let beside = actor.live.iter().any(Live::is_running);
                actor.live[index].skipped_at = Some((actor.now, beside));
            }
            ToolStatus::Failed if self.actors[agent].live[index].started.is_none() => {
                return Err(ExportError::NotThereYet("calls were denied"));
            }
            ToolStatus::Completed | ToolStatus::Failed if own => self.own_ended(event, agent, index, &text),
            ToolStatus::Completed | ToolStatus::Failed => {
                self.ended(event, agent, index, text, *status == ToolStatus::Failed);
            }
            ToolStatus::Interrupted | ToolStatus::Stopped | ToolStatus::Unknown => {
                self.cut(event, agent, index, *status, &text);
            }
        }
        let actor = &mut self.actors[agent];
        actor.live[index].ended = Some(event.seq);
        // What was skipped beside others was skipped when they were cut, wherever that is.
        if !matches!(actor.live[index].skipped_at, Some((_, true))) {
            let now = actor.now;
            actor.landmark(event.seq, "tool_finished", Some(id), now, LandmarkKind::Own);
        }
        Ok(())
    }

    /// The result in full: an event has only so much of it.
    fn text_of(&mut self, event: &Event, agent: usize) -> Result<String, ExportError> {
        let EventKind::ToolFinished { tool, output, bytes, .. } = &event.kind else {
            return Ok(String::new());
        };
        match self.actors[agent].next_result(tool) {
            Some(result) => Ok(result.text.to_string()),
            None if output.len() as u64 == *bytes => Ok(output.clone()),
            None => Err(ExportError::damaged(format!("no record of the result of event {}", event.seq))),
        }
    }

    /// A simulated call that ended by itself.
    fn ended(&mut self, event: &Event, agent: usize, index: usize, text: String, is_error: bool) {
        let at = self.moments.at(event.t);
        let stays = self.outlives_a_cut(event, agent, at);
        let actor = &mut self.actors[agent];
        let now = actor.now;
        let Some(plan) = actor.plan(index) else { return };
        plan.abortable = plan.abortable && stays.is_empty();
        plan.end = CallEnd::Natural { at, text, is_error };
        let start = plan.start;
        for (start, cutter) in start.into_iter().flat_map(|start| stays.iter().map(move |by| (start, *by))) {
            self.moments.apart(start, cutter);
        }
        self.actors[agent].now = at;
        if let Some(start) = start {
            self.moments.apart(start, at);
        }
        self.moments.in_order(now, at);
    }

    /// What a call outlived that ended here by itself, because it could not be aborted. If it
    /// could, it had ended when what cuts came.
    fn outlives_a_cut(&mut self, event: &Event, agent: usize, at: Moment) -> Vec<Moment> {
        let actor = &self.actors[agent];
        let urgent = actor.urgent().filter(|mail| mail.seq < event.seq).map(|mail| (mail.at, mail.item));
        let stop = actor.stop.filter(|stop| stop.seq < event.seq).map(|stop| (stop.at, stop.item));
        let mut outlived = Vec::new();
        for (cutter, item) in [urgent, stop].into_iter().flatten() {
            let since = self.moments.live(at).since(self.moments.live(cutter));
            let stays =
                if self.moments.is_exact() { since > Span::ZERO } else { since >= UNABORTABLE || !item };
            if stays {
                outlived.push(cutter);
            } else {
                self.moments.in_order(at, cutter);
            }
        }
        outlived
    }

    /// A call that was cut: by a stop, or by the earliest urgent message that waits.
    fn cut(&mut self, event: &Event, agent: usize, index: usize, status: ToolStatus, text: &str) {
        let stop = match status {
            ToolStatus::Interrupted => None,
            ToolStatus::Unknown if self.actors[agent].urgent().is_some() => None,
            _ => self.stopping(agent).map(|stop| stop.at),
        };
        let by = stop.or_else(|| self.actors[agent].urgent().map(|mail| mail.at));
        let by = by.unwrap_or_else(|| self.moments.at(event.t));
        let deadline = self.actors[agent].journal.record.settings.abort_deadline;
        let own = self.actors[agent].plan(index).is_some_and(|plan| plan.kind == CallKind::Own);
        let at = match status {
            ToolStatus::Unknown => self.moments.later(by, deadline),
            _ if own => by,
            _ => self.moments.at(event.t),
        };
        self.moments.in_order(by, at);
        let output = text.split_once(SO_FAR).map(|(_, output)| output.to_owned()).unwrap_or_default();
        let Some(plan) = self.actors[agent].plan(index) else { return };
        plan.end = match status {
            ToolStatus::Unknown => CallEnd::Stuck { by },
            _ => CallEnd::Cut { by, at, output },
        };
        let start = plan.start;
        if let Some(start) = start {
            self.moments.apart(start, by);
        }
        let now = self.actors[agent].now;
        self.actors[agent].now = self.moments.latest(now, at);
    }

    /// All calls of the turn have their results: what they say together.
    pub(super) fn turn_over(&mut self, agent: usize) {
        if !matches!(self.actors[agent].phase, Phase::Tools(_)) || self.actors[agent].live.is_empty() {
            return;
        }
        self.infer_safe(agent);
        self.infer_skips(agent);
        let actor = &mut self.actors[agent];
        let started = actor.live.iter().any(|live| live.started.is_some());
        let urgent = actor.urgent().is_some();
        match started {
            true => actor.starved = 0,
            false if !urgent && !actor.live.is_empty() => actor.starved += 1,
            false => {}
        }
        actor.live.clear();
    }

    /// What skipped calls without cutting any was there at that boundary, and cut nothing
    /// because nothing ran any more.
    fn infer_skips(&mut self, agent: usize) {
        let actor = &self.actors[agent];
        let Phase::Tools(entry) = actor.phase else { return };
        let cut = |status: Option<ToolStatus>| {
            matches!(status, Some(ToolStatus::Interrupted | ToolStatus::Stopped | ToolStatus::Unknown))
        };
        let was_cut = actor.entries[entry].calls.iter().any(|call| cut(call.status));
        let skipped = actor.live.iter().find_map(|live| live.skipped_at);
        // What was skipped while others ran was skipped by what cut them, or would have.
        let (false, Some((look, false))) = (was_cut, skipped) else { return };
        if let Some(stop) = actor.stop {
            self.moments.in_order(stop.at, look);
            return;
        }
        let acted = actor.pending.iter().find(|mail| mail.urgency >= Urgency::NextBoundary).cloned();
        if let Some(mail) = acted {
            self.arrived_by(agent, &mail, look);
        }
    }

    /// What may run beside others, from how the calls ran.
    fn infer_safe(&mut self, agent: usize) {
        let actor = &mut self.actors[agent];
        let settings = &actor.journal.record.settings;
        if settings.concurrency == Concurrency::All {
            return;
        }
        let slots = settings.max_parallel_tools > 1;
        let live = actor.live.clone();
        let continued: Vec<bool> = (0..live.len())
            .map(|index| actor.plan(index).is_some_and(|plan| plan.continued.is_some()))
            .collect();
        let found = live.iter().map(|call| if slots { of_batch(call, &live, &continued) } else { None });
        let mut found: Vec<Option<bool>> = found.collect();
        for index in 1..live.len() {
            let class = |actor: &mut Actor<'_>, of: usize, found: &[Option<bool>]| {
                found[of].or(actor.plan(of).map(|plan| is_safe(&plan.name)))
            };
            let (one, other) = (class(actor, index - 1, &found), class(actor, index, &found));
            // Neighbours of different batches are not of one kind, whatever they are called.
            if are_apart(&live[index - 1], &live[index]) && one == other {
                let odd = if found[index - 1].is_none() { index - 1 } else { index };
                found[odd] = one.map(|safe| !safe);
            }
        }
        for (index, safe) in found.into_iter().enumerate() {
            let waited = index > 0 && live[index].skipped_at.is_some() && live[index - 1].started.is_some();
            let Some(plan) = actor.plan(index) else { continue };
            let by_name = is_safe(&plan.name);
            // A safe call beside one that ran would have started with it.
            let safe = safe.or((by_name && waited).then_some(false));
            if plan.kind == CallKind::Simulated {
                plan.safe = safe.filter(|safe| *safe != by_name);
            }
        }
    }
}

/// Whether the call's batch was a concurrent one: some of its calls ran at once. `None`:
/// nothing says so.
fn of_batch(call: &Live, live: &[Live], continued: &[bool]) -> Option<bool> {
    let (_, batch) = call.started?;
    let own = live.iter().zip(continued).filter(|(live, _)| live.started.is_some_and(|(_, of)| of == batch));
    let mut known = None;
    let mut before: Option<(&Live, bool)> = None;
    for (live, continued) in own {
        if let Some((one, goes_on)) = before.replace((live, *continued)) {
            let start = live.started.map_or(0, |(seq, _)| seq);
            let beside = !goes_on && one.ended.is_none_or(|end| start < end);
            known = Some(known.unwrap_or(false) || beside);
        }
    }
    known
}

/// Whether two neighbours ran, and in different batches.
fn are_apart(one: &Live, other: &Live) -> bool {
    let batches = one.started.zip(other.started);
    batches.is_some_and(|((_, batch), (_, number))| batch != number)
}

/// Beside what a call starts.
enum Beside {
    /// Nothing of the turn runs, so a boundary was passed.
    Nothing,
    /// Others of its batch: it started with them, or when a slot was free.
    Slot,
    /// A call that must have returned a continuation.
    Continuation(usize),
}

fn unknown_call(event: &Event) -> ExportError {
    ExportError::damaged(format!("event {} is about a call that no reply asked for", event.seq))
}
