//! The end of a run: what is kept and returned, whom it is told, and the run that follows (semantics.md sections 6 to 9).

use super::model::Urgency;
use super::process::Process;
use super::result::*;
use super::simulate::World;
use super::state::*;

impl World<'_> {
    /// Ends the run, sorts what is left in the mailbox, and starts the next run where one is asked for.
    pub fn end_run(&mut self, agent: usize, outcome: Outcome, error: Option<String>) {
        let time = self.now - self.agents[agent].run.as_ref().map_or(self.now, |r| r.began);
        let state = &mut self.agents[agent];
        let Some(run) = state.run.take() else { return };
        state.last = Some(outcome);
        state.spent.time += time;
        let kind = run.stop.as_ref().map(|s| s.kind);
        state.stopped = outcome == Outcome::Stopped;
        state.shut_down = kind == Some(StopKind::Shutdown) && state.stopped;
        if state.shut_down && self.process.is_up() {
            // A crash has cut the shutdown short: it goes on at the take-up all the same.
            state.shut_down = false;
            state.resume |= state.life == Life::Open;
        }
        let failed = matches!(outcome, Outcome::Failed | Outcome::Limit);
        if failed {
            // Kept mail waits for the next run; it doesn't start one.
            for mail in &mut state.mailbox {
                mail.wakes = false;
            }
        }
        let returns = failed && state.settings.return_on_error;
        let last_text = state.last_text.clone();
        let result = &mut self.found.runs[run.record];
        result.outcome = outcome;
        result.ended = Some(self.now);
        result.error = error;
        result.turns = run.turn;
        self.reach_used_up(agent);
        if returns {
            self.return_where(agent, "error", |m| m.record.is_some());
        }
        self.return_where(agent, "expired", |m| m.only_run.is_some_and(|n| n <= run.id));
        self.reconsider(agent);
        self.emit(agent, "run_finished", &run.id.to_string());
        // The run that a stop let somebody ask for begins with the end of the one before.
        self.wake(agent);
        let next = self.agents[agent].run.is_some();
        if !next && outcome == Outcome::Stopped && self.asked(agent) && self.limited(agent) {
            self.met("asked_for_at_a_limit");
        }
        self.report_end(agent, &run, outcome, next, &last_text);
        if next {
            self.start_at_once(agent);
        } else {
            self.put_off(agent);
        }
    }

    /// In a shutdown the next run of whoever was stopped before is there and waits for the next start.
    fn put_off(&mut self, agent: usize) {
        let state = &self.agents[agent];
        let drives = state.life == Life::Open && self.sc.agents[agent].model.is_some();
        let shuts = matches!(self.process, Process::ShuttingDown { .. });
        if shuts && drives && !state.shut_down && !self.limited(agent) && self.asked(agent) {
            self.begin_run(agent);
        }
    }

    /// A subagent's end is mail for its parent, unless the parent itself stopped it: then it is the result of that
    /// call, or mail after all if that call is cut before it has its result.
    fn report_end(&mut self, agent: usize, run: &Run, outcome: Outcome, next: bool, text: &str) {
        let Some(parent) = self.agents[agent].parent else {
            return;
        };
        let then = match (&run.stop, outcome == Outcome::Stopped && next) {
            (Some(stop), true) if stop.kind == StopKind::Supersede => Then::Superseded,
            (_, true) => Then::GoesOn,
            _ => Then::Rests,
        };
        let mail = Mail {
            uid: 0,
            id: format!("{}#{}", self.name(agent), run.id),
            from: Sender::Report { about: agent, run: run.id, outcome, then },
            urgency: Urgency::AfterTools,
            text: text.to_string(),
            expires_at: None,
            only_run: None,
            committed: false,
            cost: false,
            wakes: false,
            record: None,
        };
        match &run.stop {
            // No parent is told of a run that a shutdown stopped: it is resumed.
            Some(stop) if stop.kind == StopKind::Shutdown && outcome == Outcome::Stopped => return,
            Some(stop) if stop.ordered() && stop.by == Some(parent) => {
                let Some(call) = stop.call else { return };
                if let Some(Phase::Running { duty: Duty::Halt { reports, .. }, .. }) = self.phase_of(call) {
                    reports.push((parent, mail));
                    return;
                }
                self.met("cut_halt");
            }
            _ => {}
        }
        if then != Then::Rests {
            self.met("goes_on");
        }
        self.caused.push(Caused::Report { to: parent, mail });
    }
}
