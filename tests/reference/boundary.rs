//! Step (3) of a round: each agent passes its boundary and starts what is next (semantics.md section 3).

use super::model::*;
use super::result::*;
use super::simulate::World;
use super::state::*;
use super::texts;

impl World<'_> {
    /// Every agent once, in order.
    pub fn step_boundaries(&mut self) {
        for agent in self.order.clone() {
            self.pass(agent);
        }
    }

    fn pass(&mut self, agent: usize) {
        let up = self.process.is_up();
        let Some(run) = self.agents[agent].run.as_mut() else {
            return;
        };
        match &mut run.step {
            // Nobody is woken behind the fence of a shutdown.
            Step::Start if up || run.stop.is_some() => self.start_run(agent),
            Step::Start | Step::Model { end: None, .. } => {}
            Step::Model { end: Some(end), entry, .. } => {
                let (end, entry) = (end.clone(), entry.clone());
                self.after_model(agent, end, entry);
            }
            Step::Pause { until, .. } => {
                let until = *until;
                self.after_pause(agent, until);
            }
            Step::Tools(_) => self.pass_tools(agent),
            Step::LostModel(record) => {
                let record = *record;
                self.after_lost_model(agent, record);
            }
        }
    }

    /// A run is "from the message that starts an idle agent working": it is there once that message has arrived.
    pub fn begin_run(&mut self, agent: usize) {
        let found_run = self.found.runs.len();
        let now = self.now;
        let state = &mut self.agents[agent];
        state.runs += 1;
        state.run = Some(Run {
            id: state.runs,
            turn: 0,
            starved: 0,
            attempt: 0,
            began: now,
            turn_began: now,
            stop: None,
            step: Step::Start,
            record: found_run,
        });
        self.found.runs.push(RunResult {
            agent,
            run: self.agents[agent].runs,
            started: now,
            ended: None,
            outcome: Outcome::Waiting,
            error: None,
            turns: 0,
            model_calls: 0,
        });
    }

    /// A run passes its first boundary; a stop that came before ends it there, with its prompt in the conversation.
    fn start_run(&mut self, agent: usize) {
        let now = self.now;
        let state = &mut self.agents[agent];
        state.unanswered |= state.prompt;
        state.prompt = false;
        state.stopped = false;
        state.end_read = false;
        let Some(run) = state.run.as_mut() else { return };
        run.began = now;
        if run.stop.is_none() {
            // Who asked has what they asked for; what is asked for behind a stop is the next run.
            state.resume = false;
            state.mailbox.iter_mut().for_each(|mail| mail.wakes = false);
        }
        let (id, stopped) = (run.id, run.stop.is_some());
        self.found.runs[run.record].started = now;
        self.emit(agent, "run_started", &id.to_string());
        if stopped {
            self.end_stopped(agent);
            return;
        }
        self.inject(agent, Point::Start, &[], &[]);
        self.next_turn(agent);
    }

    /// The next run of one whose run has just ended passes its first boundary in the same step.
    pub fn start_at_once(&mut self, agent: usize) {
        self.start_run(agent);
    }

    /// Ends a run that a stop, a limit in time or a shutdown has cut.
    pub fn end_stopped(&mut self, agent: usize) {
        let stop = self.agents[agent].run.as_ref().and_then(|r| r.stop.as_ref());
        match stop.map(|s| s.kind) {
            Some(StopKind::Limit(limit)) => self.end_run(agent, Outcome::Limit, Some(limit.to_string())),
            _ => self.end_run(agent, Outcome::Stopped, None),
        }
    }

    /// Begins the next turn, or ends the run at the limit.
    pub fn next_turn(&mut self, agent: usize) {
        if let Some(limit) = self.at_limit(agent) {
            self.reach(agent, limit);
            self.end_run(agent, Outcome::Limit, Some(limit.to_string()));
            return;
        }
        let now = self.now;
        self.session.turns += 1;
        let state = &mut self.agents[agent];
        state.spent.turns += 1;
        if let Some(run) = state.run.as_mut() {
            run.turn += 1;
            run.attempt = 0;
            run.turn_began = now;
        }
        self.start_model(agent);
    }

    /// "Nothing of a lost call goes on; a wait for a retry is over as if cut."
    fn after_lost_model(&mut self, agent: usize, record: Option<usize>) {
        let stopped = self.stop_requested(agent);
        if let Some(record) = record {
            let reason = if stopped { None } else { Some("error") };
            self.found.calls[record].cut = Some(Cut { at: self.now, said: None, reason });
            let call = self.found.calls[record].call;
            self.emit(agent, "model_interrupted", &call.to_string());
        }
        self.changed = true;
        if stopped {
            self.end_stopped(agent);
        } else {
            self.inject_and_go_on(agent, Point::Stream);
        }
    }

    fn start_model(&mut self, agent: usize) {
        let now = self.now;
        let record = self.found.calls.len();
        let state = &mut self.agents[agent];
        let entry = self.sc.agents[agent].model.as_ref().and_then(|m| m.get(state.next_entry)).cloned();
        state.next_entry += 1;
        state.calls += 1;
        let call = state.calls;
        let Some(run) = state.run.as_mut() else {
            return;
        };
        run.attempt += 1;
        run.step = Step::Model { entry, started: now, cut: false, cut_round: None, end: None, record };
        let (id, turn) = (run.id, run.turn);
        let result = &mut self.found.runs[run.record];
        result.turns = turn;
        result.model_calls += 1;
        self.found.calls.push(ModelCall {
            agent,
            call,
            run: id,
            turn,
            started: now,
            cut: None,
            inputs: None,
        });
        self.emit(agent, "model_started", &call.to_string());
    }

    fn stop_requested(&self, agent: usize) -> bool {
        self.agents[agent].run.as_ref().is_some_and(|r| r.stop.is_some())
    }

    fn after_model(&mut self, agent: usize, end: ModelEnd, entry: Option<Entry>) {
        let entry = entry.unwrap_or_default();
        match end {
            ModelEnd::Reply => {
                let state = &mut self.agents[agent];
                if let Some(text) = &entry.text {
                    state.last_text.clone_from(text);
                }
                match entry.usage {
                    Some((input, output)) => state.spent.tokens += input + output,
                    None => state.spent.unsure = true,
                }
                self.after_reply(agent, &entry);
            }
            _ if self.stop_requested(agent) => {
                self.agents[agent].spent.unsure = true;
                self.end_stopped(agent);
            }
            ModelEnd::Cut => {
                self.agents[agent].spent.unsure = true;
                self.inject_and_go_on(agent, Point::Stream);
            }
            ModelEnd::Exhausted => self.end_run(agent, Outcome::Failed, Some("script exhausted".to_string())),
            ModelEnd::Error(error) => self.after_error(agent, error, entry.retry_after),
        }
    }

    fn after_error(&mut self, agent: usize, error: ModelError, retry_after: Option<Micros>) {
        let now = self.now;
        self.agents[agent].spent.unsure = true;
        let s = self.agents[agent].settings.clone();
        let (attempt, began) = match &self.agents[agent].run {
            Some(run) => (run.attempt, run.turn_began),
            None => return,
        };
        let backoff = s.retry_base.saturating_mul(1u64 << (attempt - 1).min(32)).min(s.retry_cap);
        let wait = backoff.max(retry_after.unwrap_or(0));
        let spent = attempt >= s.retry_attempts || now + wait > began + s.retry_time;
        if !error.retryable() || spent {
            self.end_run(agent, Outcome::Failed, Some(error.word().to_string()));
            return;
        }
        self.emit(agent, "model_retry", "");
        if let Some(run) = self.agents[agent].run.as_mut() {
            run.step = Step::Pause { until: now + wait, cut: false };
        }
        // The wait has a token of its own, and the mailbox is looked at again once that is armed.
        self.after_pause(agent, now + wait);
    }

    fn after_pause(&mut self, agent: usize, until: Micros) {
        if self.stop_requested(agent) {
            self.end_stopped(agent);
            return;
        }
        let s = &self.agents[agent].settings;
        let urgent_acts = s.urgent_cuts_stream || self.reading.urgent_ends_wait_always;
        if urgent_acts && !self.acting(agent, true).is_empty() {
            self.inject_and_go_on(agent, Point::Stream);
        } else if until <= self.now {
            self.start_model(agent);
        }
    }

    fn inject_and_go_on(&mut self, agent: usize, point: Point) {
        if !(self.reading.limit_before_injection && self.at_limit(agent).is_some()) {
            self.inject(agent, point, &[], &[]);
        }
        self.next_turn(agent);
    }

    /// A complete reply: point B when it has no calls, else its tools.
    fn after_reply(&mut self, agent: usize, entry: &Entry) {
        if entry.tools.iter().any(|c| !c.provider) {
            self.begin_tools(agent, &entry.tools);
            return;
        }
        let mail = !self.agents[agent].mailbox.is_empty();
        let empty = entry.text.as_deref().unwrap_or("").is_empty();
        let at_limit = entry.stop_reason.as_deref() == Some("max_tokens");
        let bad = match (empty, at_limit) {
            (_, true) => Some("max_tokens"),
            (true, false) => Some("empty reply"),
            _ => None,
        };
        if bad.is_none() || self.reading.bad_reply_answers {
            self.agents[agent].unanswered = false;
        }
        if self.stop_requested(agent) {
            self.end_stopped(agent);
            return;
        }
        match bad {
            Some(reason) if self.reading.empty_reply_beats_mail || !mail => {
                self.end_run(agent, Outcome::Failed, Some(reason.to_string()));
            }
            _ if mail => self.inject_and_go_on(agent, Point::B),
            _ => self.end_run(agent, Outcome::Finished, None),
        }
    }

    /// Takes mail out of the mailbox into the conversation: all at B and start, else what is after_tools or above.
    pub fn inject(&mut self, agent: usize, point: Point, skipped: &[String], interrupted: &[String]) {
        let all = matches!(point, Point::Start | Point::B);
        self.inject_where(agent, point, skipped, interrupted, |m| all || m.urgency >= Urgency::AfterTools);
    }

    /// The same for the mail that `which` picks.
    pub fn inject_where(
        &mut self,
        agent: usize,
        point: Point,
        skipped: &[String],
        interrupted: &[String],
        which: impl Fn(&Mail) -> bool,
    ) {
        let mailbox = std::mem::take(&mut self.agents[agent].mailbox);
        let (taken, kept): (Vec<Mail>, Vec<Mail>) = mailbox.into_iter().partition(|m| which(m));
        self.agents[agent].mailbox = kept;
        if taken.is_empty() {
            return;
        }
        self.agents[agent].unanswered = true;
        for mail in &taken {
            self.note_read(mail);
        }
        let blocks: Vec<String> = taken.iter().map(|m| self.injected_text(m, point)).collect();
        let text = (point != Point::Wait).then(|| blocks.join("\n\n"));
        let Some(run) = &self.agents[agent].run else {
            return;
        };
        let (run_id, turn) = (run.id, run.turn);
        let index = self.found.injections.len();
        for mail in &taken {
            if let Some(record) = mail.record {
                self.found.messages[record].fate = Fate::Injected(index);
            }
        }
        self.found.injections.push(Injection {
            agent,
            run: run_id,
            turn,
            point,
            at: self.now,
            messages: taken.iter().filter(|m| m.record.is_some()).map(|m| m.id.clone()).collect(),
            reports: taken.iter().filter(|m| m.record.is_none()).count(),
            text,
            skipped: skipped.to_vec(),
            interrupted: interrupted.to_vec(),
        });
        for mail in &taken {
            self.emit(agent, "message_injected", &mail.id);
        }
    }

    /// A parent that has the end of a child's last run in its conversation has read it.
    fn note_read(&mut self, mail: &Mail) {
        if let Sender::Report { about, run, .. } = mail.from {
            let state = &mut self.agents[about];
            state.end_read |= state.runs == run;
        }
    }

    fn injected_text(&self, mail: &Mail, point: Point) -> String {
        match mail.from {
            Sender::User => texts::persons(&mail.text, point),
            Sender::Agent(i) => texts::agents(self.name(i), &mail.text, mail.urgency == Urgency::Urgent),
            Sender::Report { about, outcome, then, .. } => {
                texts::report(self.name(about), outcome, then, &mail.text)
            }
        }
    }
}
