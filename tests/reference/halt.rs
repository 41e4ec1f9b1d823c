//! Stop, supersede, resume, close and withdraw as they arrive (semantics.md section 6).

use super::arrive::Send;
use super::model::*;
use super::result::*;
use super::simulate::World;
use super::state::*;

impl World<'_> {
    /// A stop of one agent or of a subtree.
    pub fn stop_arrives(&mut self, by: Option<usize>, agent: usize, subtree: bool) {
        let targets = if subtree { self.subtree(agent) } else { vec![agent] };
        for target in targets {
            self.stop_one(by, target, StopMode::Stopped);
        }
    }

    /// Cancels the run's token and sorts the pending mail; nothing on an idle agent.
    fn stop_one(&mut self, by: Option<usize>, agent: usize, mode: StopMode) {
        let name = by.map_or("the user".to_string(), |b| self.name(b).to_string());
        let state = &mut self.agents[agent];
        let Some(run) = state.run.as_mut() else {
            return;
        };
        match &mut run.stop {
            // During a stop a second one only takes back the start that was to come.
            Some(stop) => stop.mode = mode,
            None => run.stop = Some(Stop { by, name, mode }),
        }
        state.resume = false;
        for mail in &mut state.mailbox {
            mail.wakes = false;
        }
        let reason = match mode {
            StopMode::Stopped => "stopped",
            StopMode::Superseded => "superseded",
        };
        self.return_where(agent, reason, |m| matches!(m.from, Sender::Agent(_)));
        self.emit(agent, "stop_requested", "");
    }

    /// A person's stop and new message as one action.
    pub fn supersede_arrives(&mut self, agent: usize, id: &str, text: &str) {
        if self.agents[agent].life == Life::Open && self.agents[agent].run.is_some() {
            self.stop_one(None, agent, StopMode::Superseded);
        }
        let message = Message {
            from: None,
            to: To::Agent(agent),
            text: text.to_string(),
            wish: Wish::Default,
            expires_after: None,
            supersedes: None,
            only_run: None,
        };
        self.send(&Send { from: Sender::User, to: agent, id, message: &message });
    }

    /// Wakes a stopped agent, or one that is about to be.
    pub fn resume_arrives(&mut self, agent: usize) {
        let any = !self.reading.resume_only_stopped;
        let state = &mut self.agents[agent];
        let stopped = match &state.run {
            Some(run) => run.stop.is_some(),
            None => state.last == Some(Outcome::Stopped) || (any && state.last.is_some()),
        };
        if stopped && state.life == Life::Open {
            state.resume = true;
            self.changed = true;
            self.wake(agent, true);
        }
    }

    /// Closes a subtree, leaves first.
    pub fn close_arrives(&mut self, by: Option<usize>, agent: usize) {
        for target in self.subtree(agent) {
            if self.agents[target].life != Life::Open {
                continue;
            }
            self.agents[target].life = Life::Closed;
            self.agents[target].prompt = false;
            self.return_where(target, "closed", |_| true);
            self.stop_one(by, target, StopMode::Stopped);
            self.emit(target, "agent_closed", "");
        }
    }

    /// Takes back a message at every receiver where it is queued and not committed.
    pub fn withdraw_arrives(&mut self, message: &str, by: Option<usize>) {
        let from = by.map_or(Sender::User, Sender::Agent);
        for agent in 0..self.agents.len() {
            self.return_where(agent, "withdrawn", |m| m.id == message && m.from == from && !m.committed);
        }
    }

    /// Tells a `stop_agent` or `close_agent` call which runs it waits for.
    pub fn note_targets(&mut self, call: CallRef, targets: &[usize]) {
        let runs: Vec<(usize, u32)> =
            targets.iter().filter_map(|t| self.agents[*t].run.as_ref().map(|r| (*t, r.id))).collect();
        if let Some(Phase::Running { duty: Duty::Halt { targets }, .. }) = self.phase_of(call) {
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
    fn phase_of(&mut self, call: CallRef) -> Option<&mut Phase> {
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
