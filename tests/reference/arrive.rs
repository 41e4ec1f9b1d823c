//! Step (1) of a round: the take-up, expiries and limits in time, then the items of the file, then what agents caused.

use super::model::*;
use super::result::*;
use super::send::Send;
use super::simulate::World;
use super::state::*;

impl World<'_> {
    /// Expiries, then arrivals in file order, then in the order they were caused.
    pub fn step_arrivals(&mut self) {
        self.take_session_up();
        if self.process.is_down() {
            return;
        }
        self.expire();
        if !self.reading.time_limit_after_arrivals {
            self.time_limits();
        }
        // What is due is settled before anything arrives: an `after` that this very step triggers waits a round.
        let mut due: Vec<usize> = (0..self.items.len())
            .filter(|i| !self.items[*i].sent && self.items[*i].due.is_some_and(|d| d <= self.now))
            .collect();
        // Behind a take-up what would have arrived meanwhile comes first, in order.
        due.sort_by_key(|i| (self.items[*i].due, self.items[*i].round));
        let caused = std::mem::take(&mut self.caused);
        for (n, i) in due.iter().enumerate() {
            self.items[*i].sent = true;
            self.changed = true;
            self.item_arrives(*i);
            if self.process.is_down() {
                self.hold(&due[n + 1..]);
                let ends = caused.into_iter().filter(|c| matches!(c, Caused::Report { .. }));
                let lost_with_calls = std::mem::take(&mut self.caused);
                self.caused = ends.chain(lost_with_calls).collect();
                return;
            }
        }
        for what in caused {
            self.changed = true;
            self.caused_arrives(what);
        }
        if self.reading.time_limit_after_arrivals {
            self.time_limits();
        }
    }

    /// What stood behind a crash waits for the take-up, before what falls due later.
    fn hold(&mut self, behind: &[usize]) {
        for i in behind {
            self.items[*i].round = 0;
        }
    }

    /// Returns what expires in this instant.
    pub fn expire(&mut self) {
        for agent in 0..self.agents.len() {
            let now = self.now;
            self.return_where(agent, "expired", |m| !m.committed && m.expires_at.is_some_and(|e| e <= now));
            self.reconsider(agent);
        }
    }

    fn item_arrives(&mut self, index: usize) {
        let item = &self.sc.items[index];
        match &item.act {
            Act::Message(m) => {
                let from = m.from.map_or(Sender::User, Sender::Agent);
                for to in self.receivers(m.from, m.to) {
                    self.send(&Send { from, to, id: &item.id, message: m });
                }
            }
            Act::Stop { agent, by, subtree } => self.stop_arrives(*by, *agent, *subtree, None),
            Act::Supersede { agent, text } => self.supersede_arrives(*agent, &item.id, text),
            Act::Resume { agent: Some(agent) } => self.resume_arrives(*agent),
            Act::Resume { agent: None } => self.resume_all(),
            Act::Close { agent, by } => self.close_arrives(*by, *agent, None),
            Act::Withdraw { message, by } => self.withdraw_arrives(message, *by),
            Act::Raise { agent, limits } => self.raise_arrives(*agent, *limits),
            Act::Crash { down } => self.crash_arrives(*down),
            Act::Shutdown { down } => self.shutdown_arrives(*down),
        }
    }

    fn caused_arrives(&mut self, what: Caused) {
        match what {
            Caused::Message { from, call, id, message } => {
                let receivers = self.receivers(Some(from), message.to);
                let mut accepted = receivers.is_empty();
                for to in receivers {
                    accepted |=
                        self.send(&Send { from: Sender::Agent(from), to, id: &id, message: &message });
                }
                if !accepted {
                    self.fail_call(call);
                }
            }
            Caused::Spawn { by, agent, prompt, call } => self.spawn_arrives(by, agent, prompt, call),
            Caused::Stop { target, call, .. } | Caused::Close { target, call, .. }
                if self.agents[target].life == Life::Unspawned =>
            {
                self.fail_call(call);
            }
            Caused::Stop { by, target, subtree, call } => {
                let targets = if subtree { self.subtree(target) } else { vec![target] };
                self.note_targets(call, &targets);
                self.stop_arrives(Some(by), target, subtree, Some(call));
            }
            Caused::Close { by, target, call } => {
                let targets = self.subtree(target);
                self.note_targets(call, &targets);
                self.close_arrives(Some(by), target, Some(call));
            }
            Caused::Report { to, mail } => self.report_arrives(to, mail),
        }
    }

    /// Who an address means, at the arrival.
    fn receivers(&self, from: Option<usize>, to: To) -> Vec<usize> {
        match to {
            To::Agent(i) => vec![i],
            To::Parent => from.and_then(|f| self.agents[f].parent).into_iter().collect(),
            To::All => self
                .order
                .iter()
                .copied()
                .filter(|i| self.agents[*i].life == Life::Open && Some(*i) != from)
                .collect(),
        }
    }

    /// Puts accepted mail into the mailbox, with what its arrival does at once.
    pub fn queue(&mut self, to: usize, mut mail: Mail) {
        self.changed = true;
        self.uids += 1;
        mail.uid = self.uids;
        let above = self.is_above(mail.from, to);
        let state = &self.agents[to];
        mail.wakes = match &state.run {
            // A running agent looks by itself.
            Some(run) if run.stop.is_none() && !matches!(run.step, Step::Start) => false,
            Some(run) if run.stop.is_some() => above,
            // "Woken by any message"; one that was stopped by a person or an ancestor.
            _ => !state.stopped || above,
        };
        if mail.urgency == Urgency::Urgent && self.cancel_token(to, mail.from, mail.uid) {
            mail.committed = true;
        }
        self.agents[to].mailbox.push(mail);
        self.wake(to);
    }

    /// Whether somebody asks for the run that is to begin.
    pub fn asked(&self, agent: usize) -> bool {
        let state = &self.agents[agent];
        state.prompt || state.resume || state.mailbox.iter().any(|m| m.wakes)
    }

    /// Begins the run of a resting agent that somebody asks for, unless something forbids it.
    pub fn wake(&mut self, agent: usize) {
        let state = &self.agents[agent];
        let drives = state.life == Life::Open && self.sc.agents[agent].model.is_some();
        if !drives || state.run.is_some() || !self.process.is_up() {
            return;
        }
        if self.limited(agent) {
            self.met("limit");
            return;
        }
        self.unless_resumed_for_nothing(agent);
        if self.asked(agent) {
            self.begin_run(agent);
        }
    }

    /// A resume with nothing to go on with: the agent only becomes one that anybody may wake.
    fn unless_resumed_for_nothing(&mut self, agent: usize) {
        let state = &mut self.agents[agent];
        if state.resume && !state.unanswered && state.mailbox.is_empty() && !state.prompt {
            state.resume = false;
            state.stopped = false;
            self.changed = true;
            self.met("resume_without_work");
        }
    }

    /// After mail has gone: a run that nobody asks for any more does not begin, and mail that waited for a stopped
    /// agent's next run is returned.
    pub fn reconsider(&mut self, agent: usize) {
        let waiting = |run: &Run| matches!(run.step, Step::Start) && run.stop.is_none();
        if self.agents[agent].run.as_ref().is_some_and(waiting) {
            self.unless_resumed_for_nothing(agent);
        }
        if self.asked(agent) {
            return;
        }
        let state = &mut self.agents[agent];
        if state.run.as_ref().is_some_and(waiting) {
            let record = state.run.take().map(|run| run.record);
            state.runs -= 1;
            if let Some(record) = record {
                self.found.runs[record].run = 0;
            }
        }
        let state = &self.agents[agent];
        let stopped = match &state.run {
            Some(run) => run.stop.as_ref().is_some_and(Stop::ordered),
            None => state.stopped && !state.shut_down,
        };
        let theirs = |m: &Mail| matches!(m.from, Sender::Agent(_));
        if stopped && state.mailbox.iter().any(theirs) {
            self.return_where(agent, "stopped", theirs);
        }
    }

    /// An urgent message cancels the token of what runs now; whether it did.
    fn cancel_token(&mut self, to: usize, from: Sender, uid: u64) -> bool {
        let name = self.sender_name(from);
        let always = self.reading.urgent_ends_wait_always;
        let agent = &mut self.agents[to];
        let cuts = agent.settings.urgent_cuts_stream;
        let Some(run) = agent.run.as_mut().filter(|r| r.stop.is_none()) else {
            return false;
        };
        match &mut run.step {
            Step::Model { cut, .. } if cuts && !*cut => {
                *cut = true;
                true
            }
            // The wait's end is looked at in step (3), where the pending message ends it.
            Step::Pause { cut, .. } if (cuts || always) && !*cut => {
                *cut = true;
                true
            }
            Step::Tools(turn) if turn.cut.is_none() && !turn.lost() => {
                turn.cut = Some((name, uid));
                true
            }
            Step::Model { .. } | Step::Pause { .. } | Step::Tools(_) | Step::Start | Step::LostModel(_) => {
                false
            }
        }
    }

    /// The coordinator's own mail has room of its own and is returned by a close alone.
    pub fn report_arrives(&mut self, to: usize, mail: Mail) {
        if self.agents[to].life == Life::Open {
            let id = mail.id.clone();
            self.queue(to, mail);
            self.emit(to, "message_queued", &id);
        }
    }

    fn spawn_arrives(&mut self, by: usize, agent: usize, prompt: String, call: CallRef) {
        // A stop is a fence: one whose run was stopped spawns no more (decision 0021).
        let stopped = self.agents[by].run.as_ref().is_none_or(|r| r.stop.is_some());
        // What is closed in the same instant, before it, has made room.
        let open = self.agents.iter().filter(|a| a.life == Life::Open).count();
        let full = open >= self.agents[by].settings.max_agents;
        if !self.process.is_up() || stopped || full || !self.session.reached.is_empty() {
            self.fail_call(call);
            return;
        }
        if self.agents[by].life != Life::Open || self.agents[agent].life != Life::Unspawned {
            return;
        }
        let depth = self.agents[by].depth + 1;
        let state = &mut self.agents[agent];
        state.life = Life::Open;
        state.parent = Some(by);
        state.depth = depth;
        self.order.push(agent);
        self.emit(agent, "agent_spawned", "");
        self.prompt(agent, prompt);
    }

    /// Takes the mail that `which` picks out of a mailbox and returns it to its senders.
    pub fn return_where(&mut self, agent: usize, reason: &'static str, which: impl Fn(&Mail) -> bool) {
        let mailbox = std::mem::take(&mut self.agents[agent].mailbox);
        let (gone, kept): (Vec<Mail>, Vec<Mail>) = mailbox.into_iter().partition(|m| which(m));
        self.agents[agent].mailbox = kept;
        let back = matches!(reason, "withdrawn" | "expired");
        for mail in gone {
            if back && mail.wakes {
                self.met("taken_back");
            }
            if let Some(record) = mail.record {
                self.found.messages[record].fate = Fate::Returned { reason, at: self.now };
            }
            self.emit(agent, "message_returned", &mail.id);
        }
    }
}
