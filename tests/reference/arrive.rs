//! Step (1) of a round: expiries, then the items of the file, then what agents caused; and the rules of a send.

use super::model::*;
use super::result::*;
use super::simulate::World;
use super::state::*;

/// A send, resolved to one receiver.
pub struct Send<'m> {
    pub from: Sender,
    pub to: usize,
    pub id: &'m str,
    pub message: &'m Message,
}

/// The window of the limit on urgent messages between two agents.
const RATE_WINDOW: Micros = 60_000_000;

impl World<'_> {
    /// Expiries, then arrivals in file order, then in the order they were caused.
    pub fn step_arrivals(&mut self) {
        self.expire();
        // What is due is settled before anything arrives: an `after` that this very step triggers waits a round.
        let due: Vec<usize> = (0..self.items.len())
            .filter(|i| !self.items[*i].sent && self.items[*i].due.is_some_and(|d| d <= self.now))
            .collect();
        let caused = std::mem::take(&mut self.caused);
        for i in due {
            self.items[i].sent = true;
            self.changed = true;
            self.item_arrives(i);
        }
        for what in caused {
            self.changed = true;
            self.caused_arrives(what);
        }
    }

    fn expire(&mut self) {
        for agent in 0..self.agents.len() {
            let now = self.now;
            self.return_where(agent, "expired", |m| !m.committed && m.expires_at.is_some_and(|e| e <= now));
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
            Act::Stop { agent, by, subtree } => self.stop_arrives(*by, *agent, *subtree),
            Act::Supersede { agent, text } => self.supersede_arrives(*agent, &item.id, text),
            Act::Resume { agent } => self.resume_arrives(*agent),
            Act::Close { agent, by } => self.close_arrives(*by, *agent),
            Act::Withdraw { message, by } => self.withdraw_arrives(message, *by),
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
            Caused::Spawn { by, agent } => self.spawn_arrives(by, agent),
            Caused::Stop { by, target, subtree, call } => {
                let targets = if subtree { self.subtree(target) } else { vec![target] };
                self.note_targets(call, &targets);
                self.stop_arrives(Some(by), target, subtree);
            }
            Caused::Close { by, target, call } => {
                let targets = self.subtree(target);
                self.note_targets(call, &targets);
                self.close_arrives(Some(by), target);
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

    /// The urgency a message has at its receiver.
    fn urgency(&self, send: &Send) -> Urgency {
        let settings = &self.agents[send.to].settings;
        match send.message.wish {
            Wish::Full(u) => u,
            Wish::Plain(true) => Urgency::Urgent,
            Wish::Plain(false) | Wish::Default => {
                if self.sc.agents[send.to].lead {
                    settings.to_lead
                } else if self.is_above(send.from, send.to) {
                    settings.from_above
                } else {
                    settings.from_others
                }
            }
        }
    }

    /// Why a send is refused, if it is.
    fn refusal(&self, send: &Send, urgency: Urgency) -> Option<&'static str> {
        let to = &self.agents[send.to];
        if to.life == Life::Unspawned {
            return Some("unknown");
        }
        if send.from == Sender::Agent(send.to) {
            return Some("self");
        }
        if send.message.only_run.is_some_and(|n| n != self.run_it_would_reach(send.to)) {
            return Some("stale_run");
        }
        if let (Urgency::Urgent, Sender::Agent(from)) = (urgency, send.from) {
            if !self.is_above(send.from, send.to) && !to.settings.urgent_from_peers {
                return Some("urgent_not_allowed");
            }
            let recent = self
                .urgent_log
                .iter()
                .filter(|(f, t, at)| *f == from && *t == send.to && at + RATE_WINDOW > self.now)
                .count();
            if recent >= to.settings.urgent_per_minute {
                return Some("urgent_rate");
            }
        }
        let queued = to.mailbox.iter().filter(|m| m.record.is_some()).count();
        let returned_at_once = self.returned_at_once(send).is_some();
        // What it supersedes makes room for it.
        let frees = send.message.supersedes.as_ref().is_some_and(|old| {
            to.mailbox.iter().any(|m| m.id == *old && m.from == send.from && !m.committed)
        });
        if !returned_at_once && !frees && queued >= to.settings.mailbox_messages {
            return Some("mailbox_full");
        }
        None
    }

    /// The run that mail accepted now would reach: the current one, or the next when idle or when it is stopping.
    fn run_it_would_reach(&self, to: usize) -> u32 {
        let agent = &self.agents[to];
        match &agent.run {
            Some(run) if run.stop.is_none() => run.id,
            _ => agent.runs + 1,
        }
    }

    /// Why accepted mail is returned at once, if it is.
    fn returned_at_once(&self, send: &Send) -> Option<&'static str> {
        let to = &self.agents[send.to];
        if to.life == Life::Closed {
            return Some("closed");
        }
        let stopped = match &to.run {
            Some(run) => run.stop.as_ref().is_some_and(|s| s.mode == StopMode::Stopped),
            None => to.last == Some(Outcome::Stopped),
        };
        (stopped && !self.is_above(send.from, send.to)).then_some("stopped")
    }

    /// Sends one message to one receiver; whether it was accepted.
    pub fn send(&mut self, send: &Send) -> bool {
        let urgency = self.urgency(send);
        let record = self.found.messages.len();
        let refused = self.refusal(send, urgency);
        let returned = self.returned_at_once(send);
        let fate = match (refused, returned) {
            (Some(reason), _) => Fate::Refused { reason, at: self.now },
            (None, Some(reason)) => Fate::Returned { reason, at: self.now },
            (None, None) => Fate::Queued,
        };
        self.found.messages.push(MessageResult {
            id: send.id.to_string(),
            to: send.to,
            text: send.message.text.clone(),
            urgency,
            sent: self.now,
            fate,
        });
        if refused.is_some() {
            self.emit(send.to, "message_refused", send.id);
            return false;
        }
        if let (Urgency::Urgent, Sender::Agent(from)) = (urgency, send.from) {
            self.urgent_log.push((from, send.to, self.now));
        }
        self.emit(send.to, "message_queued", send.id);
        if returned.is_some() {
            self.emit(send.to, "message_returned", send.id);
            return true;
        }
        if let Some(old) = &send.message.supersedes {
            self.return_where(send.to, "superseded", |m| m.id == *old && m.from == send.from && !m.committed);
        }
        self.queue(
            send.to,
            Mail {
                id: send.id.to_string(),
                from: send.from,
                urgency,
                text: send.message.text.clone(),
                expires_at: send.message.expires_after.map(|e| self.now + e),
                only_run: send.message.only_run,
                committed: false,
                wakes: false,
                record: Some(record),
            },
        );
        true
    }

    /// Puts accepted mail into the mailbox, with what its arrival does at once.
    pub fn queue(&mut self, to: usize, mut mail: Mail) {
        self.changed = true;
        let coordinators = mail.record.is_none();
        let agent = &self.agents[to];
        mail.wakes = match &agent.run {
            // A running agent looks by itself; mail that a failed run leaves behind wakes nobody.
            Some(run) if run.stop.is_none() => false,
            Some(run) => !coordinators || run.stop.as_ref().is_some_and(|s| s.mode == StopMode::Superseded),
            None => !(coordinators && agent.last == Some(Outcome::Stopped)),
        };
        if mail.urgency == Urgency::Urgent && self.cancel_token(to, mail.from) {
            mail.committed = true;
        }
        let wakes = mail.wakes;
        self.agents[to].mailbox.push(mail);
        self.wake(to, wakes);
    }

    /// Begins the run of an idle agent that was woken.
    pub fn wake(&mut self, agent: usize, wakes: bool) {
        let state = &self.agents[agent];
        let drives = state.life == Life::Open && self.sc.agents[agent].model.is_some();
        if wakes && drives && state.run.is_none() {
            self.begin_run(agent);
        }
    }

    /// An urgent message cancels the token of what runs now; whether it did.
    fn cancel_token(&mut self, to: usize, from: Sender) -> bool {
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
            Step::Model { .. } => false,
            // The wait's end is looked at in step (3), where the pending message ends it.
            Step::Pause { .. } => cuts || always,
            Step::Tools(turn) if turn.cut.is_none() => {
                turn.cut = Some(name);
                true
            }
            Step::Tools(_) | Step::Start => false,
        }
    }

    fn report_arrives(&mut self, to: usize, mail: Mail) {
        if self.agents[to].life == Life::Open {
            self.queue(to, mail);
        }
    }

    fn spawn_arrives(&mut self, by: usize, agent: usize) {
        if self.agents[by].life != Life::Open || self.agents[agent].life != Life::Unspawned {
            return;
        }
        let depth = self.agents[by].depth + 1;
        let state = &mut self.agents[agent];
        state.life = Life::Open;
        state.parent = Some(by);
        state.depth = depth;
        state.prompt = true;
        self.order.push(agent);
        self.emit(agent, "agent_spawned", "");
    }

    /// Takes the mail that `which` picks out of a mailbox and returns it to its senders.
    pub fn return_where(&mut self, agent: usize, reason: &'static str, which: impl Fn(&Mail) -> bool) {
        let mailbox = std::mem::take(&mut self.agents[agent].mailbox);
        let (gone, kept): (Vec<Mail>, Vec<Mail>) = mailbox.into_iter().partition(|m| which(m));
        self.agents[agent].mailbox = kept;
        for mail in gone {
            if let Some(record) = mail.record {
                self.found.messages[record].fate = Fate::Returned { reason, at: self.now };
            }
            self.emit(agent, "message_returned", &mail.id);
        }
    }
}
