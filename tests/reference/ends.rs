//! Step (2) of a round: tools end by agent and call order, then model calls by agent order.

use super::model::*;
use super::result::*;
use super::simulate::World;
use super::state::*;
use super::texts;

/// What a running call does in this step.
enum Next {
    Nothing,
    /// It returned a continuation: its segment is over, its result is not there.
    Returns,
    Ends(Status, Cause),
    Abort(Status, Cause, String),
}

impl World<'_> {
    /// Tools, then model calls.
    pub fn step_ends(&mut self) {
        for agent in self.order.clone() {
            let jobs = match self.turn(agent) {
                Some(turn) => turn.jobs.len(),
                None => 0,
            };
            for job in 0..jobs {
                self.end_job(agent, job);
            }
        }
        for agent in self.order.clone() {
            self.end_model(agent);
        }
    }

    /// The current turn's tools.
    pub fn turn(&mut self, agent: usize) -> Option<&mut Turn> {
        match self.agents[agent].run.as_mut().map(|r| &mut r.step) {
            Some(Step::Tools(turn)) => Some(turn),
            _ => None,
        }
    }

    fn end_job(&mut self, agent: usize, job: usize) {
        match self.next_of(agent, job) {
            Next::Nothing => {}
            Next::Returns => self.note_returned(agent, job),
            Next::Ends(status, cause) => self.finish_job(agent, job, status, cause, None),
            Next::Abort(status, cause, by) => self.begin_abort(agent, job, status, cause, by),
        }
    }

    fn note_returned(&mut self, agent: usize, job: usize) {
        self.changed = true;
        let turn = self.turn(agent);
        if let Some(Phase::Running { returned, .. }) = turn.map(|t| &mut t.jobs[job].phase) {
            *returned = true;
        }
    }

    fn next_of(&mut self, agent: usize, job: usize) -> Next {
        let Some(run) = self.agents[agent].run.as_ref() else {
            return Next::Nothing;
        };
        let Step::Tools(turn) = &run.step else {
            return Next::Nothing;
        };
        let cut = turn.cut.clone();
        let stop = run.stop.as_ref().map(|s| s.name.clone());
        let Job { call, phase } = turn.jobs[job].clone();
        let Phase::Running { failed, abort, .. } = &phase else {
            return Next::Nothing;
        };
        if let Some(abort) = abort {
            let over = abort.ends <= self.now && (abort.ends > abort.begun || self.round > abort.round);
            return if over { Next::Ends(abort.status, abort.cause) } else { Next::Nothing };
        }
        // What ends in the instant of an urgent message or a stop has ended: its own end is looked at first.
        if self.reached_own_end(agent, &call, &phase, cut.is_some() || stop.is_some()) {
            let failed = *failed || call.error.is_some();
            return Next::Ends(if failed { Status::Failed } else { Status::Completed }, Cause::Own);
        }
        if self.shutdown_deadline(agent).is_some_and(|at| at <= self.now) {
            // Nothing holds a shutdown up, also what can't be aborted.
            return Next::Ends(Status::Unknown, Cause::Stop);
        }
        let returns = self.has_returned(&call, &phase);
        if returns && cut.is_some() {
            // What returns a continuation in the instant of an urgent message has returned it: that is cut.
            self.note_returned(agent, job);
        }
        match (cut, stop) {
            (Some((by, _)), _) if call.abortable => Next::Abort(Status::Interrupted, Cause::Mail, by),
            (None, Some(by)) if call.abortable => Next::Abort(Status::Stopped, Cause::Stop, by),
            _ if returns => Next::Returns,
            _ => Next::Nothing,
        }
    }

    /// Whether a call that nobody aborts has its result in this step.
    fn reached_own_end(&mut self, agent: usize, call: &Call, phase: &Phase, cancelled: bool) -> bool {
        let Phase::Running { started, round, duty, .. } = phase else {
            return false;
        };
        let later_round = self.round > *round;
        match duty {
            Duty::Timed => self
                .own_end(*started, call.takes, &call.ends_after)
                .is_some_and(|end| end + call.continues.unwrap_or(0) <= self.now),
            Duty::Instant => later_round,
            Duty::Wait { names, all, until } => {
                later_round && self.wait_is_over(agent, names, *all, *until, cancelled)
            }
            Duty::Halt { targets, .. } => {
                later_round && targets.iter().all(|(a, r)| self.run_is_over(*a, *r))
            }
        }
    }

    /// Whether a call returns its continuation in this step.
    fn has_returned(&self, call: &Call, phase: &Phase) -> bool {
        match phase {
            Phase::Running { started, duty: Duty::Timed, returned: false, .. } => {
                let end = self.own_end(*started, call.takes, &call.ends_after);
                call.continues.is_some() && end.is_some_and(|end| end <= self.now)
            }
            _ => false,
        }
    }

    fn run_is_over(&self, agent: usize, run: u32) -> bool {
        self.agents[agent].run.as_ref().is_none_or(|r| r.id != run)
    }

    fn begin_abort(&mut self, agent: usize, job: usize, status: Status, cause: Cause, by: String) {
        self.changed = true;
        if self.reading.cut_halt_tells_at_once {
            self.tell_held_reports(agent, job);
        }
        let (now, round) = (self.now, self.round);
        let deadline = self.agents[agent].settings.abort_deadline;
        let capped = self.reading.abort_capped_by_own_end;
        let Some(turn) = self.turn(agent) else { return };
        let it = &mut turn.jobs[job];
        let Phase::Running { started, abort, .. } = &mut it.phase else {
            return;
        };
        let mut takes = it.call.abort_takes;
        if capped {
            let own_end = *started + it.call.takes + it.call.continues.unwrap_or(0);
            takes = takes.min(own_end.saturating_sub(now));
        }
        let gives_up = takes > deadline;
        *abort = Some(Abort {
            status: if gives_up { Status::Unknown } else { status },
            cause,
            by,
            begun: now,
            ends: now + takes.min(deadline),
            round,
        });
        if self.reading.abort_ends_same_round && takes == 0 {
            let status = if gives_up { Status::Unknown } else { status };
            self.finish_job(agent, job, status, cause, None);
        }
    }

    /// The reports that a cut `stop_agent` or `close_agent` held are mail after all.
    fn tell_held_reports(&mut self, agent: usize, job: usize) {
        let Some(turn) = self.turn(agent) else { return };
        let Phase::Running { duty: Duty::Halt { reports, .. }, .. } = &mut turn.jobs[job].phase else {
            return;
        };
        for (to, mail) in std::mem::take(reports) {
            self.met("cut_halt");
            self.caused.push(Caused::Report { to, mail });
        }
    }

    /// Gives a call its result. `by` names who skipped it, for a call that never started.
    pub fn finish_job(&mut self, agent: usize, job: usize, status: Status, cause: Cause, by: Option<&str>) {
        if !matches!(status, Status::Completed | Status::Failed) {
            self.tell_held_reports(agent, job);
        }
        if let (Cause::Mail, Some((_, uid))) = (cause, self.turn(agent).and_then(|t| t.cut.clone())) {
            self.note_cost(agent, |m| m.uid == uid);
        }
        let now = self.now;
        let to_begin = self.reading.elapsed_to_abort_begin;
        let deadline = self.agents[agent].settings.abort_deadline;
        let Some(run) = self.agents[agent].run.as_mut() else {
            return;
        };
        let (run_id, turn_id) = (run.id, run.turn);
        let Step::Tools(turn) = &mut run.step else {
            return;
        };
        let it = &mut turn.jobs[job];
        let (started, abort) = match &it.phase {
            Phase::Running { started, abort, .. } => (Some(*started), abort.clone()),
            Phase::Lost(started) => (*started, None),
            _ => (None, None),
        };
        it.phase = Phase::Done(status, cause);
        let elapsed = match (started, &abort) {
            (Some(s), Some(a)) if to_begin => a.begun - s,
            (Some(s), _) => now - s,
            _ => 0,
        };
        let by = abort.as_ref().map(|a| a.by.as_str()).or(by).unwrap_or("");
        let text = match cause {
            Cause::Crash => Some(texts::lost(started.is_some())),
            _ => texts::tool_result(&it.call, status, by, elapsed, deadline),
        };
        let result = ToolResult {
            agent,
            run: run_id,
            turn: turn_id,
            id: it.call.id.clone(),
            name: it.call.name.clone(),
            status,
            started,
            ended: now,
            text,
        };
        let id = result.id.clone();
        self.found.tools.push(result);
        self.emit(agent, "tool_finished", &id);
    }

    /// Skips every call that has not started, for a stop (`stopped`) or for mail.
    pub fn skip_waiting(&mut self, agent: usize, which: &[usize], by: &str, stopped: bool) {
        for job in which {
            let waiting = self.turn(agent).is_some_and(|t| t.jobs[*job].waiting());
            if waiting {
                let words = if stopped { texts::skipped_by_stop(by) } else { texts::skipped_by_mail(by) };
                let cause = if stopped { Cause::Stop } else { Cause::Mail };
                self.finish_job(agent, *job, Status::Skipped, cause, Some(&words));
            }
        }
    }

    fn end_model(&mut self, agent: usize) {
        let (round, beats) = (self.round, self.reading.stream_end_beats_urgent);
        let Some(run) = self.agents[agent].run.as_ref() else {
            return;
        };
        let stopped = run.stop.is_some();
        let Step::Model { entry, started, cut, cut_round, end: None, record } = &run.step else {
            return;
        };
        let (cut, asked, record) = (*cut, *cut_round, *record);
        let own_end = match entry {
            Some(e) => self.own_end(*started, e.takes, &e.ends_after),
            None => Some(*started),
        };
        let due = own_end.is_some_and(|at| at <= self.now) && asked.is_none() && (beats || !cut);
        if due {
            let reached = match entry {
                None => ModelEnd::Exhausted,
                Some(e) => e.error.map_or(ModelEnd::Reply, ModelEnd::Error),
            };
            self.set_model_end(agent, reached, record);
        } else if cut || stopped {
            let asked = asked.unwrap_or(round);
            if let Some(Step::Model { cut_round, .. }) = self.agents[agent].run.as_mut().map(|r| &mut r.step)
            {
                *cut_round = Some(asked);
            }
            self.changed = true;
            if round > asked || self.reading.abort_ends_same_round {
                self.set_model_end(agent, ModelEnd::Cut, record);
            }
        }
    }

    fn set_model_end(&mut self, agent: usize, reached: ModelEnd, record: usize) {
        let now = self.now;
        let Some(run) = self.agents[agent].run.as_mut() else {
            return;
        };
        let Step::Model { entry, started, cut, end, .. } = &mut run.step else {
            return;
        };
        *end = Some(reached.clone());
        let call = self.found.calls[record].call.to_string();
        match (&reached, entry) {
            (ModelEnd::Cut, entry) => {
                let empty = Entry::default();
                let e = entry.as_ref().unwrap_or(&empty);
                let (thinking, text) = (e.thinking.as_deref().unwrap_or(""), e.text.as_deref().unwrap_or(""));
                // Until its event has come none of its words is out.
                let takes = if e.ends_after.is_some() { Micros::MAX / 1_000 } else { e.takes };
                let said = texts::said(thinking, text, now - *started, takes);
                if said.1 != said.1.split_whitespace().collect::<Vec<_>>().join(" ") {
                    self.found.met.insert("white_space");
                }
                let stop = run.stop.as_ref().map(|s| s.reason);
                let reason = if *cut { Some("message_interrupt") } else { stop.flatten() };
                self.found.calls[record].cut = Some(Cut { at: now, said: Some(said), reason });
                self.emit(agent, "model_interrupted", &call);
            }
            (ModelEnd::Reply, Some(e)) => {
                let input = |c: &Call| c.input.clone().unwrap_or_else(|| serde_json::json!({}));
                let calls = e.tools.iter().filter(|c| !c.provider);
                self.found.calls[record].inputs = Some(calls.map(|c| (c.id.clone(), input(c))).collect());
                self.emit(agent, "model_finished", &call);
            }
            _ => self.changed = true,
        }
    }

    /// The mailbox's messages that act at a boundary.
    pub fn acting(&self, agent: usize, only_urgent: bool) -> Vec<usize> {
        let least = if only_urgent { Urgency::Urgent } else { Urgency::NextBoundary };
        let mailbox = &self.agents[agent].mailbox;
        (0..mailbox.len()).filter(|i| mailbox[*i].urgency >= least).collect()
    }
}
