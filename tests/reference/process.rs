//! The end of the process and the take-up of its session (scenarios.md section 2, semantics.md sections 3, 4 and 9).

use super::model::*;
use super::simulate::World;
use super::state::*;

/// Whether there is a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    Up,
    /// A shutdown waits for what ends; then there is none for `down`.
    ShuttingDown {
        since: Micros,
        down: Micros,
    },
    Down {
        until: Micros,
    },
}

impl Process {
    pub fn is_up(self) -> bool {
        self == Process::Up
    }

    pub fn is_down(self) -> bool {
        matches!(self, Process::Down { .. })
    }
}

impl World<'_> {
    /// The process ends at this place of (1): what was recorded is there, nothing else.
    pub fn crash_arrives(&mut self, down: Micros) {
        self.changed = true;
        if !self.process.is_up() {
            self.met("crash_in_shutdown");
        }
        self.process = Process::Down { until: self.now + down };
        self.forget();
        for agent in 0..self.agents.len() {
            self.lose(agent);
        }
    }

    /// What no process remembers. What was on its way is lost with the calls that caused it, but for the ends of
    /// runs: those are recorded, and a parent that has not been told is told at the take-up.
    fn forget(&mut self) {
        self.caused.retain(|c| matches!(c, Caused::Report { .. }));
        for mail in self.agents.iter_mut().flat_map(|agent| &mut agent.mailbox) {
            mail.committed = mail.cost;
        }
        self.urgent_log.clear();
        let timed = self.session.limits.time.is_some()
            || self.agents.iter().any(|a| a.settings.limits.time.is_some());
        if timed {
            self.found.undetermined = Some("time that a process did not record".to_string());
        }
    }

    /// Nothing of a call that was under way goes on.
    fn lose(&mut self, agent: usize) {
        let parent = self.agents[agent].parent;
        let Some(run) = self.agents[agent].run.as_mut() else {
            return;
        };
        run.starved = 0;
        let by_parent = |stop: &Stop| {
            stop.ordered() && stop.call.is_none() && stop.by.is_some_and(|by| Some(by) == parent)
        };
        if run.stop.as_ref().is_some_and(by_parent) {
            // Only in files: an agent stops by calls, and whose call a crash takes is told by mail.
            self.found.undetermined = Some("a parent's stop without a call, and a crash".to_string());
        }
        let mut reports = Vec::new();
        match &mut run.step {
            Step::Start | Step::LostModel(_) => {}
            Step::Model { record, .. } => {
                let record = *record;
                run.step = Step::LostModel(Some(record));
                self.agents[agent].spent.unsure = true;
            }
            Step::Pause { .. } => run.step = Step::LostModel(None),
            Step::Tools(turn) => {
                turn.cut = None;
                for job in &mut turn.jobs {
                    let started = match &mut job.phase {
                        Phase::Running { started, duty, .. } => {
                            if let Duty::Halt { reports: held, .. } = duty {
                                reports.append(held);
                            }
                            Some(*started)
                        }
                        Phase::Waiting => None,
                        Phase::Lost(_) | Phase::Done(..) => continue,
                    };
                    job.phase = Phase::Lost(started);
                }
            }
        }
        for (to, mail) in reports {
            self.met("cut_halt");
            self.caused.push(Caused::Report { to, mail });
        }
    }

    /// A shutdown: a fence, and a stop of all that costs no more than a crash.
    pub fn shutdown_arrives(&mut self, down: Micros) {
        if !self.process.is_up() {
            return;
        }
        self.changed = true;
        self.process = Process::ShuttingDown { since: self.now, down };
        for agent in self.order.clone() {
            let Some(run) = self.agents[agent].run.as_mut() else {
                continue;
            };
            // A start that was asked for stays asked for.
            if run.stop.is_some() || matches!(run.step, Step::Start) {
                continue;
            }
            run.stop = Some(Stop {
                by: None,
                name: "a shutdown".to_string(),
                kind: StopKind::Shutdown,
                call: None,
                reason: Some("shutdown"),
            });
            self.note_stop(agent, "shutdown", None);
        }
    }

    /// When a shutdown gives up the calls of an agent that have not ended, also what can't be aborted.
    pub fn shutdown_deadline(&self, agent: usize) -> Option<Micros> {
        match self.process {
            Process::ShuttingDown { since, .. } => Some(since + self.agents[agent].settings.abort_deadline),
            _ => None,
        }
    }

    /// Once all has ended, the process has.
    pub fn end_shutdown(&mut self) {
        let Process::ShuttingDown { down, .. } = self.process else {
            return;
        };
        let goes_on = |run: &Run| !matches!(run.step, Step::Start) || run.stop.is_some();
        if self.agents.iter().any(|a| a.run.as_ref().is_some_and(goes_on)) || !self.caused.is_empty() {
            return;
        }
        self.changed = true;
        self.process = Process::Down { until: self.now + down };
        self.forget();
    }

    /// The session is taken up: before all else what expired meanwhile is returned.
    pub fn take_session_up(&mut self) {
        let Process::Down { until } = self.process else {
            return;
        };
        if until > self.now {
            return;
        }
        self.changed = true;
        self.process = Process::Up;
        self.found.resumed.push(self.now);
        self.expire();
        if !self.reading.owed_reports_come_later {
            for what in std::mem::take(&mut self.caused) {
                if let Caused::Report { to, mail } = what {
                    self.report_arrives(to, mail);
                }
            }
        }
        for agent in self.order.clone() {
            let state = &mut self.agents[agent];
            if std::mem::take(&mut state.shut_down) {
                state.resume |= state.life == Life::Open;
            }
            self.wake(agent);
        }
    }
}
