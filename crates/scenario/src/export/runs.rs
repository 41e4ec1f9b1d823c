//! Runs and model calls: what started a run, what each call came to, how the run ended.

use midturn_core::engine::ports::ErrorKind;
use midturn_core::engine::tools::is_own;
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::{Block, InterruptReason, Reply, StopReason};
use midturn_core::rules::event::{Event, EventKind, Outcome, ThinkingState, Trigger};
use midturn_core::rules::id::MessageId;
use midturn_core::rules::mail::Urgency;
use midturn_core::rules::time::Span;

use super::ExportError;
use super::actor::{Actor, Ended, Live, Opening, Pending, Phase};
use super::moments::Moment;
use super::plan::{CallEnd, CallKind, CallPlan, Deed, DeedAct, EntryEnd, EntryPlan, LandmarkKind, SendPlan};
use super::read::Reader;

/// The kinds of failure that a scenario can say.
const KINDS: [ErrorKind; 5] = [
    ErrorKind::Overloaded,
    ErrorKind::RateLimited,
    ErrorKind::Server,
    ErrorKind::Connection,
    ErrorKind::InvalidRequest,
];

impl Reader<'_> {
    pub(super) fn run_started(&mut self, event: &Event, agent: usize, trigger: &Trigger) {
        let at = match trigger {
            Trigger::Prompt => self.prompted(event, agent),
            Trigger::Mail(ids) => self.woken(event, agent, ids),
        };
        let run = event.at.run.unwrap_or_default();
        let actor = &mut self.actors[agent];
        (actor.now, actor.run, actor.turn, actor.phase) = (at, run, 0, Phase::Start);
        actor.starved = 0;
        // A stop may have come before the run had begun that a message had woken.
        actor.stop = actor.stop.filter(|stop| stop.run == run);
        actor.landmark(event.seq, "run_started", Some(run.to_string()), at, LandmarkKind::Own);
    }

    fn prompted(&mut self, event: &Event, agent: usize) -> Moment {
        let actor = &self.actors[agent];
        if actor.opening != Opening::Late {
            return actor.now;
        }
        let record = &actor.journal.record;
        let at = self.moments.at(event.t);
        let send = SendPlan {
            from: "user".into(),
            to: record.name.to_string(),
            text: record.prompt.as_deref().unwrap_or_default().to_owned(),
            urgency: None,
            expires: None,
            supersedes: None,
            only_run: None,
        };
        let id = Some(format!("prompt-{}", record.name));
        self.deeds.push(Deed { seq: event.seq, at, agent, also: Vec::new(), id, act: DeedAct::Send(send) });
        at
    }

    /// The instant of what woke the agent, or of its last run's end if that came later.
    fn woken(&mut self, event: &Event, agent: usize, ids: &[MessageId]) -> Moment {
        let actor = &self.actors[agent];
        let waiting: Vec<Pending> =
            actor.pending.iter().filter(|mail| ids.contains(&mail.id)).cloned().collect();
        let Some(end) = actor.ended.last().cloned() else {
            let first = waiting.first().map(|mail| mail.at);
            return first.unwrap_or_else(|| self.resumed(event, agent, &waiting, None));
        };
        let stop = actor.stop.map_or(u64::MAX, |stop| stop.seq);
        let waker = match end.outcome {
            // A run that finishes leaves nothing: all that waits has come since.
            Outcome::Finished => waiting.first(),
            Outcome::Stopped => {
                waiting.iter().find(|mail| mail.seq > stop && self.wakes_stopped(&mail.from, agent))
            }
            Outcome::Failed | Outcome::Limit => {
                waiting.iter().find(|mail| mail.seq > end.seq).or(waiting.last())
            }
        };
        let Some(waker) = waker.cloned() else {
            return self.resumed(event, agent, &waiting, Some(end.at));
        };
        match end.outcome {
            Outcome::Failed | Outcome::Limit => {
                self.kept_waiting(&waiting, &waker, end.at);
                self.moments.apart(end.at, waker.at);
                waker.at
            }
            Outcome::Finished | Outcome::Stopped => self.moments.latest(end.at, waker.at),
        }
    }

    /// Mail that was there when the last run ended and did not start this one.
    fn kept_waiting(&mut self, waiting: &[Pending], waker: &Pending, end: Moment) {
        for mail in waiting.iter().filter(|mail| mail.seq < waker.seq) {
            self.moments.in_order(mail.at, end);
        }
    }

    /// Nobody who may wake a stopped agent has written: somebody resumed it.
    fn resumed(
        &mut self,
        event: &Event,
        agent: usize,
        waiting: &[Pending],
        before: Option<Moment>,
    ) -> Moment {
        let actor = &self.actors[agent];
        let since = actor.ended.last().map_or(0, |end| end.seq);
        // Another agent's message is returned by a stopped one: it was resumed before.
        let other = waiting.iter().find(|mail| mail.seq > since && mail.from != "coordinator").cloned();
        let at = match &other {
            Some(mail) => self.moments.at(self.events[self.event_of(mail.seq)].t),
            None => self.moments.at(event.t),
        };
        if let Some(before) = before {
            self.moments.in_order(before, at);
        }
        let seq = other.as_ref().map_or(event.seq, |mail| mail.seq);
        self.deeds.push(Deed { seq, at, agent, also: Vec::new(), id: None, act: DeedAct::Resume });
        match other {
            Some(mail) => {
                self.moments.in_order(at, mail.at);
                mail.at
            }
            None => at,
        }
    }

    /// The place of the event of this number.
    fn event_of(&self, seq: u64) -> usize {
        self.events.partition_point(|event| event.seq < seq).min(self.place)
    }

    /// Whether a message from there wakes a stopped agent (semantics.md, section 3).
    fn wakes_stopped(&self, from: &str, agent: usize) -> bool {
        from == "user" || self.is_above(from, agent)
    }

    /// Whether the one is an ancestor of the other.
    pub(super) fn is_above(&self, above: &str, agent: usize) -> bool {
        let parent = |agent: usize| self.actors[agent].journal.record.parent.as_ref();
        let mut next = parent(agent);
        // Nobody stands below himself; the bound is for a record that says otherwise.
        for _ in 0..self.actors.len() {
            match next {
                Some(name) if name.as_str() == above => return true,
                Some(name) => next = self.agent(name.as_str()).and_then(parent),
                None => return false,
            }
        }
        false
    }

    pub(super) fn model_started(&mut self, event: &Event, agent: usize) -> Result<(), ExportError> {
        let actor = &self.actors[agent];
        if matches!(actor.phase, Phase::Calling(_)) {
            return Err(ExportError::crashed(&actor.journal.record.name, event.t));
        }
        if actor.phase == Phase::Retrying {
            // The same turn's next call: no look at the mailbox comes before it.
        } else {
            self.turn_over(agent);
            let takes = match self.actors[agent].phase {
                Phase::Start | Phase::Replied => Urgency::FollowUp,
                _ => Urgency::AfterTools,
            };
            self.looked(agent, takes);
        }
        let actor = &mut self.actors[agent];
        actor.turn = event.at.turn.unwrap_or_default();
        actor.called = Some((actor.run, actor.turn));
        actor.entries.push(EntryPlan::new(actor.now));
        actor.began = Some(actor.now);
        actor.phase = Phase::Calling(actor.entries.len() - 1);
        let (call, now) = (actor.calls_made().to_string(), actor.now);
        actor.landmark(event.seq, "model_started", Some(call), now, LandmarkKind::Own);
        Ok(())
    }

    /// The agent looked at its mailbox: what would have acted and did not was not there yet,
    /// and what had been taken back was gone.
    pub(super) fn looked(&mut self, agent: usize, at_least: Urgency) {
        let now = self.actors[agent].now;
        let gone = std::mem::take(&mut self.actors[agent].gone);
        for at in gone {
            self.moments.in_order(at, now);
        }
        let missed = self.actors[agent].pending.iter().filter(|mail| mail.urgency >= at_least);
        let missed: Vec<Moment> = missed.map(|mail| mail.at).collect();
        for at in missed {
            self.moments.apart(now, at);
        }
    }

    pub(super) fn model_finished(&mut self, event: &Event, agent: usize) -> Result<(), ExportError> {
        let EventKind::ModelFinished { text, purpose, .. } = &event.kind else { return Ok(()) };
        let actor = &mut self.actors[agent];
        let (Phase::Calling(entry), Some(reply)) = (actor.phase, actor.next_reply()) else {
            return Err(ExportError::damaged(format!(
                "no record of the reply that event {} tells of",
                event.seq
            )));
        };
        let at = self.moments.at(event.t);
        self.ends_by_itself(agent, entry, at);
        let actor = &mut self.actors[agent];
        let run = actor.run;
        let calls = calls(actor, &reply, run);
        // What was asked for beside a summary is nobody's call.
        let live = reply.calls().filter(|_| purpose.is_turn()).map(|call| Live {
            call: call.id.clone(),
            started: None,
            ended: None,
            skipped_at: None,
        });
        actor.live = live.collect();
        let plan = &mut actor.entries[entry];
        plan.end = EntryEnd::Whole(at);
        plan.text = if purpose.is_turn() { reply.text() } else { text.clone() };
        plan.thinking = thinking(&reply);
        plan.calls = calls;
        plan.usage = reply.usage;
        plan.stop_reason = unnatural(&reply);
        actor.phase = match (purpose, actor.live.is_empty()) {
            (Purpose::Summary, _) => Phase::Retrying,
            (Purpose::Turn, true) => Phase::Replied,
            (Purpose::Turn, false) => Phase::Tools(entry),
        };
        actor.now = at;
        let call = actor.calls_made().to_string();
        actor.landmark(event.seq, "model_finished", Some(call), at, LandmarkKind::Own);
        Ok(())
    }

    /// A call that ended by itself although something that cuts was on its way had ended by then.
    fn ends_by_itself(&mut self, agent: usize, entry: usize, at: Moment) {
        let start = self.actors[agent].entries[entry].start;
        self.moments.apart(start, at);
        let actor = &self.actors[agent];
        let cuts = actor.journal.record.settings.urgent_cuts_stream;
        let urgent = actor.urgent().filter(|_| cuts).map(|mail| mail.at);
        let stop = actor.stop.map(|stop| stop.at);
        for cutter in [urgent, stop].into_iter().flatten() {
            self.moments.in_order(at, cutter);
        }
    }

    pub(super) fn model_interrupted(&mut self, event: &Event, agent: usize, reason: InterruptReason) {
        let by = match reason {
            InterruptReason::Error => None,
            InterruptReason::MessageInterrupt => self.actors[agent].urgent().map(|mail| mail.at),
            InterruptReason::UserCancelled
            | InterruptReason::Superseded
            | InterruptReason::StoppedByParent
            | InterruptReason::Limit
            | InterruptReason::Shutdown => self.stopping(agent).map(|stop| stop.at),
        };
        let actor = &mut self.actors[agent];
        let Phase::Calling(entry) = actor.phase else { return };
        let partial = actor.next_partial();
        let EventKind::ModelInterrupted { text, thinking, .. } = &event.kind else { return };
        let plan = &mut actor.entries[entry];
        plan.text = partial.as_ref().map_or_else(|| text.clone(), |partial| partial.text.clone());
        plan.thinking = partial.map(|partial| partial.thinking.clone()).unwrap_or_default();
        let call = actor.entries.len().to_string();
        let at = by.unwrap_or_else(|| self.moments.at(event.t));
        let actor = &mut self.actors[agent];
        actor.landmark(event.seq, "model_interrupted", Some(call), at, LandmarkKind::Own);
        let start = actor.entries[entry].start;
        actor.now = at;
        if reason == InterruptReason::Error {
            // What follows says what it failed of.
            actor.entries[entry].end =
                EntryEnd::Failed { at, kind: ErrorKind::Connection, retry_after: None };
        } else {
            let thought = thinking.iter().all(|state| *state == ThinkingState::Completed);
            actor.entries[entry].end = EntryEnd::Cut { at, thought };
            actor.phase = Phase::Cut;
        }
        self.moments.apart(start, at);
    }

    pub(super) fn model_retry(&mut self, event: &Event, agent: usize) {
        let EventKind::ModelRetry { attempt, error, wait } = &event.kind else { return };
        let Phase::Calling(entry) = self.actors[agent].phase else { return };
        let at = self.failed(event, agent, entry);
        let actor = &mut self.actors[agent];
        let natural = actor.journal.record.settings.retry.wait(*attempt, None);
        let retry_after = (*wait > natural).then_some(*wait);
        let kind = kind_of(error).unwrap_or(ErrorKind::Connection);
        actor.entries[entry].end = EntryEnd::Failed { at, kind, retry_after };
        actor.phase = Phase::Retrying;
        let call = actor.calls_made().to_string();
        actor.landmark(event.seq, "model_retry", Some(call), at, LandmarkKind::Own);
        self.actors[agent].now = self.moments.later(at, *wait);
    }

    /// The instant at which the call under way failed.
    fn failed(&mut self, event: &Event, agent: usize, entry: usize) -> Moment {
        if let EntryEnd::Failed { at, .. } = self.actors[agent].entries[entry].end {
            return at;
        }
        let at = self.moments.at(event.t);
        self.ends_by_itself(agent, entry, at);
        self.actors[agent].now = at;
        at
    }

    pub(super) fn run_finished(&mut self, event: &Event, agent: usize) -> Result<(), ExportError> {
        let EventKind::RunFinished { outcome, error, .. } = &event.kind else { return Ok(()) };
        let mut said = error.as_deref().map(str::to_owned);
        match (self.actors[agent].phase, outcome) {
            (Phase::Calling(entry), Outcome::Failed) => {
                said = self.gave_up(event, agent, entry, error.as_deref().unwrap_or_default());
            }
            (Phase::Calling(entry), _) => {
                let at = self.stopping(agent).map(|stop| stop.at);
                let at = at.unwrap_or_else(|| self.moments.at(event.t));
                self.actors[agent].entries[entry].end = EntryEnd::Cut { at, thought: true };
                self.actors[agent].now = at;
            }
            (Phase::Retrying, Outcome::Stopped) => {
                if let Some(stop) = self.stopping(agent) {
                    self.actors[agent].now = stop.at;
                }
            }
            _ => {}
        }
        self.turn_over(agent);
        if *outcome == Outcome::Stopped {
            self.stopped_at(agent);
        }
        if *outcome == Outcome::Finished {
            self.looked(agent, Urgency::FollowUp);
        }
        let actor = &mut self.actors[agent];
        let (run, at) = (event.at.run.unwrap_or_default(), actor.now);
        actor.phase = Phase::Resting;
        actor.began = Some(at);
        actor.ended.push(Ended { run, seq: event.seq, at, outcome: *outcome, error: said });
        actor.landmark(event.seq, "run_finished", Some(run.to_string()), at, LandmarkKind::Own);
        Ok(())
    }

    /// The model's last attempt failed: what the replay will say of it.
    fn gave_up(&mut self, event: &Event, agent: usize, entry: usize, error: &str) -> Option<String> {
        let at = self.failed(event, agent, entry);
        let exact = self.moments.is_exact();
        let settings = &self.actors[agent].journal.record.settings;
        let kind = kind_of(error);
        let end = match kind {
            // On virtual time it takes none; elsewhere something may have come meanwhile.
            None if exact && error == ErrorKind::ScriptExhausted.to_string() => EntryEnd::Exhausted,
            None => EntryEnd::Failed { at, kind: ErrorKind::InvalidRequest, retry_after: None },
            // Longer than all retries may take: it was not tried again, and is not this time.
            Some(kind) => {
                let forbids = kind.is_retryable().then_some(Span(settings.retry.time.0 + 1));
                EntryEnd::Failed { at, kind, retry_after: forbids }
            }
        };
        self.actors[agent].entries[entry].end = end;
        kind.map(|kind| kind.to_string())
    }
}

/// The kind that an error's text begins with.
fn kind_of(error: &str) -> Option<ErrorKind> {
    let word = error.split(':').next().unwrap_or_default();
    KINDS.into_iter().find(|kind| kind.to_string() == word)
}

fn thinking(reply: &Reply) -> String {
    let blocks = reply.blocks.iter().filter_map(|block| match block {
        Block::Thinking(thinking) => Some(thinking.text.as_str()),
        Block::Text(_) | Block::ToolUse(_) | Block::Provider(_) => None,
    });
    blocks.collect()
}

/// The stop reason, if it is not the one that a scripted reply has by itself.
fn unnatural(reply: &Reply) -> Option<String> {
    let natural = if reply.calls().next().is_some() { StopReason::ToolUse } else { StopReason::EndTurn };
    (reply.stop_reason != natural).then(|| reply.stop_reason.as_str().to_owned())
}

/// The reply's calls, the provider's own among them.
fn calls(actor: &mut Actor<'_>, reply: &Reply, run: u64) -> Vec<CallPlan> {
    let plan = |id: String, name: &str, input: serde_json::Value, kind, end| CallPlan {
        id,
        name: name.to_owned(),
        input,
        kind,
        start: None,
        continued: None,
        end,
        safe: None,
        abortable: true,
        status: None,
        run,
        sent_as: None,
    };
    let mut calls = Vec::new();
    for block in &reply.blocks {
        match block {
            Block::ToolUse(call) => {
                let own = is_own(&call.name);
                let kind = if own { CallKind::Own } else { CallKind::Simulated };
                let id = actor.file_id(call.id.as_str());
                calls.push(plan(id, &call.name, call.input.clone(), kind, CallEnd::None));
            }
            Block::Provider(raw) => {
                let raw: serde_json::Value = serde_json::from_str(&raw.0).unwrap_or_default();
                let text = |key: &str| raw.get(key).and_then(|value| value.as_str());
                let id = actor.file_id(text("id").unwrap_or("provider"));
                let name = text("name").or(text("type")).unwrap_or("provider").to_owned();
                let input = raw.get("input").cloned().unwrap_or_default();
                let end = CallEnd::Given(text("result").unwrap_or_default().to_owned());
                calls.push(plan(id, &name, input, CallKind::Provider, end));
            }
            Block::Text(_) | Block::Thinking(_) => {}
        }
    }
    calls
}
