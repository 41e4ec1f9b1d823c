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
        let Some(run) = self.agents[agent].run.as_mut() else {
            self.start_run_if_due(agent);
            return;
        };
        match &mut run.step {
            Step::Start => self.start_run(agent),
            Step::Model { end: None, .. } => {}
            Step::Model { end: Some(end), entry, .. } => {
                let (end, entry) = (end.clone(), entry.clone());
                self.after_model(agent, end, entry);
            }
            Step::Pause { until } => {
                let until = *until;
                self.after_pause(agent, until);
            }
            Step::Tools(_) => self.pass_tools(agent),
        }
    }

    /// Starts an idle agent's run when its prompt, or mail that was still queued, is due.
    fn start_run_if_due(&mut self, agent: usize) {
        let state = &mut self.agents[agent];
        if state.life != Life::Open || self.sc.agents[agent].model.is_none() {
            return;
        }
        if !state.prompt && !state.resume && !state.mailbox.iter().any(|m| m.wakes) {
            return;
        }
        self.begin_run(agent);
        self.start_run(agent);
    }

    /// A run is "from the message that starts an idle agent working": it is there once that message has arrived.
    pub fn begin_run(&mut self, agent: usize) {
        let found_run = self.found.runs.len();
        let now = self.now;
        let state = &mut self.agents[agent];
        state.resumed = state.resume;
        state.resume = false;
        state.runs += 1;
        state.run = Some(Run {
            id: state.runs,
            turn: 0,
            starved: 0,
            attempt: 0,
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

    /// A run passes its first boundary; a stop that came before ends it there.
    fn start_run(&mut self, agent: usize) {
        let state = &mut self.agents[agent];
        let stopped = state.run.as_ref().is_some_and(|run| run.stop.is_some());
        if !stopped && state.mailbox.is_empty() && !state.prompt && !state.resumed {
            // What woke it was taken back before it began: there is no run.
            let record = state.run.take().map(|run| run.record);
            state.runs -= 1;
            if let Some(record) = record {
                self.found.runs[record].run = 0;
            }
            return;
        }
        state.prompt = false;
        state.resumed = false;
        self.emit(agent, "run_started", "");
        if self.agents[agent].run.as_ref().is_some_and(|run| run.stop.is_some()) {
            self.end_run(agent, Outcome::Stopped, None);
            return;
        }
        self.inject(agent, Point::Start, &[], &[]);
        self.next_turn(agent);
    }

    /// Begins the next turn, or ends the run at the limit.
    pub fn next_turn(&mut self, agent: usize) {
        if self.at_turn_limit(agent) {
            self.end_run(agent, Outcome::Limit, Some("max_turns".to_string()));
            return;
        }
        let now = self.now;
        let state = &mut self.agents[agent];
        state.turns += 1;
        if let Some(run) = state.run.as_mut() {
            run.turn += 1;
            run.attempt = 0;
            run.turn_began = now;
        }
        self.start_model(agent);
    }

    /// Whether no further turn may begin.
    pub fn at_turn_limit(&self, agent: usize) -> bool {
        let state = &self.agents[agent];
        let in_run = state.run.as_ref().map_or(0, |r| r.turn);
        let turns = if self.reading.max_turns_per_run { in_run } else { state.turns };
        turns >= state.settings.max_turns
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
        self.found.calls.push(ModelCall { agent, call, run: id, turn, started: now, cut: None });
        self.emit(agent, "model_started", &call.to_string());
    }

    fn stop_requested(&self, agent: usize) -> bool {
        self.agents[agent].run.as_ref().is_some_and(|r| r.stop.is_some())
    }

    fn after_model(&mut self, agent: usize, end: ModelEnd, entry: Option<Entry>) {
        let entry = entry.unwrap_or_default();
        match end {
            ModelEnd::Reply => {
                if let Some(text) = &entry.text {
                    self.agents[agent].last_text.clone_from(text);
                }
                self.after_reply(agent, &entry);
            }
            _ if self.stop_requested(agent) => self.end_run(agent, Outcome::Stopped, None),
            ModelEnd::Cut => self.inject_and_go_on(agent, Point::Stream),
            ModelEnd::Exhausted => self.end_run(agent, Outcome::Failed, Some("script exhausted".to_string())),
            ModelEnd::Error(error) => self.after_error(agent, error, entry.retry_after),
        }
    }

    fn after_error(&mut self, agent: usize, error: ModelError, retry_after: Option<Micros>) {
        let now = self.now;
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
            run.step = Step::Pause { until: now + wait };
        }
        // The wait has a token of its own, and the mailbox is looked at again once that is armed.
        self.after_pause(agent, now + wait);
    }

    fn after_pause(&mut self, agent: usize, until: Micros) {
        if self.stop_requested(agent) {
            self.end_run(agent, Outcome::Stopped, None);
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
        if !(self.reading.limit_before_injection && self.at_turn_limit(agent)) {
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
        if self.stop_requested(agent) {
            self.end_run(agent, Outcome::Stopped, None);
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
        let blocks: Option<Vec<String>> = taken.iter().map(|m| self.injected_text(m, point)).collect();
        let text = blocks.filter(|_| point != Point::Wait).map(|b| b.join("\n\n"));
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

    fn injected_text(&self, mail: &Mail, point: Point) -> Option<String> {
        match mail.from {
            Sender::User => Some(texts::persons(&mail.text, point)),
            Sender::Agent(i) => {
                Some(texts::agents(self.name(i), &mail.text, mail.urgency == Urgency::Urgent))
            }
            Sender::Report { about, outcome } => texts::report(self.name(about), outcome, &mail.text),
        }
    }

    /// Ends the run, sorts what is left in the mailbox, and starts the next run where one is waiting.
    pub fn end_run(&mut self, agent: usize, outcome: Outcome, error: Option<String>) {
        let state = &mut self.agents[agent];
        let Some(run) = state.run.take() else { return };
        state.last = Some(outcome);
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
        if returns {
            self.return_where(agent, "error", |m| m.record.is_some());
        }
        self.return_where(agent, "expired", |m| m.only_run.is_some_and(|n| n <= run.id));
        self.emit(agent, "run_finished", "");
        self.report_end(agent, outcome, run.stop.as_ref(), &last_text);
        if outcome == Outcome::Stopped {
            self.start_run_if_due(agent);
        }
    }

    /// A subagent's end is mail for its parent, unless the parent itself stopped it.
    fn report_end(&mut self, agent: usize, outcome: Outcome, stop: Option<&Stop>, text: &str) {
        let Some(parent) = self.agents[agent].parent else {
            return;
        };
        if let Some(stop) = stop {
            let superseded = stop.mode == StopMode::Superseded && !self.reading.superseded_run_reports;
            if stop.by == Some(parent) || superseded {
                return;
            }
        }
        let mail = Mail {
            id: String::new(),
            from: Sender::Report { about: agent, outcome },
            urgency: Urgency::AfterTools,
            text: text.to_string(),
            expires_at: None,
            only_run: None,
            committed: false,
            wakes: false,
            record: None,
        };
        self.caused.push(Caused::Report { to: parent, mail });
    }
}
