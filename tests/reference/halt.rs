//! Stop, supersede, resume, close and withdraw as they arrive (semantics.md section 6).

use super::model::*;
use super::result::*;
use super::send::Send;
use super::simulate::World;
use super::state::*;

impl World<'_> {
    /// A stop of one agent or of a subtree.
    pub fn stop_arrives(&mut self, by: Option<usize>, agent: usize, subtree: bool, call: Option<CallRef>) {
        let targets = if subtree { self.subtree(agent) } else { vec![agent] };
        for target in targets {
            self.stop_one(by, target, StopKind::Stop, call);
        }
    }

    /// Cancels the run's token and sorts the pending mail; nothing on an idle agent.
    fn stop_one(&mut self, by: Option<usize>, agent: usize, kind: StopKind, call: Option<CallRef>) {
        let name = by.map_or("the user".to_string(), |b| self.name(b).to_string());
        let Some(run) = self.agents[agent].run.as_ref() else {
            return;
        };
        let (begun, stop) = (!matches!(run.step, Step::Start), run.stop.clone());
        if !begun && self.agents[agent].prompt {
            // The prompt is in the conversation and asks for nothing more.
            self.met("stop_of_a_prompt");
            self.agents[agent].prompt = false;
            self.agents[agent].unanswered = true;
        }
        let reason = match (kind, by) {
            (StopKind::Supersede, _) => Some("superseded"),
            (StopKind::Stop, None) => Some("user_cancelled"),
            (StopKind::Stop, Some(_)) => Some("stopped_by_parent"),
            _ => None,
        };
        // During a stop a second one only takes back the start that was to come.
        let again = stop.as_ref().is_some_and(Stop::ordered);
        if !again {
            // What a limit or a shutdown has begun to end is stopped all the same; a call keeps its first cause.
            let reason = if stop.is_some() { None } else { reason };
            if let Some(run) = self.agents[agent].run.as_mut() {
                run.stop = Some(Stop { by, name, kind, call, reason });
            }
        }
        self.agents[agent].resume = false;
        for mail in &mut self.agents[agent].mailbox {
            mail.wakes = false;
        }
        let returned = if kind == StopKind::Supersede { "superseded" } else { "stopped" };
        self.return_where(agent, returned, |m| matches!(m.from, Sender::Agent(_)));
        if !again {
            let word = match kind {
                StopKind::Supersede => "supersede",
                StopKind::Close => "close",
                _ => "stop",
            };
            self.note_stop(agent, word, by);
        }
        self.emit(agent, "stop_requested", "");
    }

    /// Notes the first request to stop a run.
    pub fn note_stop(&mut self, agent: usize, reason: &'static str, by: Option<usize>) {
        let state = &self.agents[agent];
        let Some(run) = &state.run else { return };
        let queued = state.mailbox.iter().filter(|m| m.from == Sender::User);
        let stop = StopRequest {
            agent,
            run: run.id,
            at: self.now,
            reason,
            by: by.map_or("user".to_string(), |b| self.name(b).to_string()),
            still_queued: queued.map(|m| m.id.clone()).collect(),
        };
        self.found.stops.push(stop);
    }

    /// A person's stop and new message as one action; one that would be refused stops nothing.
    pub fn supersede_arrives(&mut self, agent: usize, id: &str, text: &str) {
        let message = Message::new(None, To::Agent(agent), text, Wish::Default);
        let send = Send { from: Sender::User, to: agent, id, message: &message };
        let refused = !self.refusals(&send).is_empty();
        let works = self.agents[agent].life == Life::Open && self.agents[agent].run.is_some();
        if works && refused {
            self.met("refused_supersede");
        } else if works {
            self.stop_one(None, agent, StopKind::Supersede, None);
        }
        self.send(&send);
    }

    /// Starts an agent that rests with work unfinished, or one that is about to.
    pub fn resume_arrives(&mut self, agent: usize) {
        if !self.process.is_up() || self.limited(agent) {
            return;
        }
        let state = &mut self.agents[agent];
        let failed = state.run.is_none() && state.last == Some(Outcome::Failed);
        let stopped = match &state.run {
            Some(run) => run.stop.as_ref().is_some_and(Stop::ordered),
            None => state.stopped,
        };
        if (stopped || failed) && state.life == Life::Open {
            state.resume = true;
            self.changed = true;
            if failed {
                self.met("resume_of_a_failed_run");
            }
            self.wake(agent);
        }
    }

    /// All of them, but for a failed one whose end its parent has read.
    pub fn resume_all(&mut self) {
        self.met("resume_all");
        for agent in self.order.clone() {
            let state = &self.agents[agent];
            let read = state.run.is_none() && state.last == Some(Outcome::Failed) && state.end_read;
            if !read {
                self.resume_arrives(agent);
            }
        }
    }

    /// Closes a subtree, leaves first.
    pub fn close_arrives(&mut self, by: Option<usize>, agent: usize, call: Option<CallRef>) {
        for target in self.subtree(agent) {
            if self.agents[target].life != Life::Open {
                continue;
            }
            self.agents[target].life = Life::Closed;
            self.return_where(target, "closed", |_| true);
            self.stop_one(by, target, StopKind::Close, call);
            self.emit(target, "agent_closed", "");
        }
    }

    /// Takes back a message at every receiver where it is queued and not committed.
    pub fn withdraw_arrives(&mut self, message: &str, by: Option<usize>) {
        let from = by.map_or(Sender::User, Sender::Agent);
        for agent in 0..self.agents.len() {
            self.return_where(agent, "withdrawn", |m| m.id == message && m.from == from && !m.committed);
            self.reconsider(agent);
        }
    }

    /// Tells a `stop_agent` or `close_agent` call which runs it waits for.
    pub fn note_targets(&mut self, call: CallRef, targets: &[usize]) {
        let stopping = |t: &usize| self.agents[*t].run.as_ref().is_some_and(|r| r.stop.is_some());
        if targets.iter().any(stopping) {
            self.met("halt_of_a_stopping_run");
        }
        let runs: Vec<(usize, u32)> =
            targets.iter().filter_map(|t| self.agents[*t].run.as_ref().map(|r| (*t, r.id))).collect();
        if let Some(Phase::Running { duty: Duty::Halt { targets, .. }, .. }) = self.phase_of(call) {
            *targets = runs;
        }
    }

    /// Makes a call of the coordinator's tools end as failed.
    pub fn fail_call(&mut self, call: CallRef) {
        if let Some(Phase::Running { failed, .. }) = self.phase_of(call) {
            *failed = true;
        }
    }

    /// The phase of a call, if its turn is still the current one.
    pub fn phase_of(&mut self, call: CallRef) -> Option<&mut Phase> {
        let run = self.agents[call.agent].run.as_mut()?;
        if run.id != call.run || run.turn != call.turn {
            return None;
        }
        match &mut run.step {
            Step::Tools(turn) => turn.jobs.get_mut(call.job).map(|j| &mut j.phase),
            _ => None,
        }
    }
}
