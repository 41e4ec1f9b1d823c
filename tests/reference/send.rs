//! One message to one receiver: what is refused, what is returned at once, what is accepted (semantics.md sections
//! 2, 3, 7 and 8).

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

    /// Every reason for which a send is refused.
    pub fn refusals(&mut self, send: &Send) -> Vec<&'static str> {
        let urgency = self.urgency(send);
        let to = &self.agents[send.to];
        let from_peer = match send.from {
            Sender::Agent(from) if urgency == Urgency::Urgent => Some(from),
            _ => None,
        };
        let not_allowed =
            from_peer.is_some() && !self.is_above(send.from, send.to) && !to.settings.urgent_from_peers;
        let too_many = from_peer.is_some_and(|from| {
            let recent = |(f, t, at): &&(usize, usize, Micros)| {
                *f == from && *t == send.to && at + RATE_WINDOW > self.now
            };
            self.urgent_log.iter().filter(recent).count() >= to.settings.urgent_per_minute
        });
        let at_once = self.returned_at_once(send).is_some();
        let too_late = send.message.if_queued && self.superseded(send).is_none();
        let limited = !at_once && self.limited(send.to);
        let reasons = [
            ("unknown", to.life == Life::Unspawned),
            ("shutting_down", !self.process.is_up()),
            ("self", send.from == Sender::Agent(send.to)),
            ("stale_run", send.message.only_run.is_some_and(|n| n != self.run_it_would_reach(send.to))),
            ("urgent_not_allowed", not_allowed),
            ("urgent_rate", too_many),
            ("too_late", too_late),
            ("limit", limited),
            ("mailbox_full", !at_once && self.full(send)),
        ];
        reasons.into_iter().filter(|(_, holds)| *holds).map(|(reason, _)| reason).collect()
    }

    /// The message in this mailbox that a message supersedes.
    fn superseded(&self, send: &Send) -> Option<&Mail> {
        let old = send.message.supersedes.as_ref()?;
        let mailbox = &self.agents[send.to].mailbox;
        mailbox.iter().find(|m| m.id == *old && m.from == send.from && !m.committed)
    }

    /// Whether the mailbox has no room for it: a person has as much as all agents together. What it supersedes leaves
    /// it its place.
    fn full(&mut self, send: &Send) -> bool {
        if self.superseded(send).is_some() {
            return false;
        }
        let to = &self.agents[send.to];
        let of = |person: bool| {
            let counts = |m: &&Mail| m.record.is_some() && (m.from == Sender::User) == person;
            to.mailbox.iter().filter(counts).count()
        };
        let room = to.settings.mailbox_messages;
        let persons = send.from == Sender::User;
        let full = of(persons) >= room;
        if !full && of(true) + of(false) >= room {
            self.met("room_of_ones_own");
        }
        full
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
    pub fn returned_at_once(&self, send: &Send) -> Option<&'static str> {
        let to = &self.agents[send.to];
        if to.life == Life::Closed {
            return Some("closed");
        }
        let stopped = match &to.run {
            Some(run) => run.stop.as_ref().is_some_and(Stop::ordered),
            None => to.stopped,
        };
        // Once somebody who may wake it asks for it, it is at work for everybody.
        (stopped && !self.is_above(send.from, send.to) && !self.asked(send.to)).then_some("stopped")
    }

    /// Sends one message to one receiver; whether it was accepted.
    pub fn send(&mut self, send: &Send) -> bool {
        let urgency = self.urgency(send);
        let record = self.found.messages.len();
        let reasons = self.refusals(send);
        let returned = self.returned_at_once(send);
        self.note_others_copies(send);
        let fate = match (reasons.first(), returned) {
            (Some(reason), _) => Fate::Refused { reason, at: self.now },
            (None, Some(reason)) => Fate::Returned { reason, at: self.now },
            (None, None) => Fate::Queued,
        };
        let refused = reasons.first().copied();
        if refused == Some("unknown") {
            // An error at the send: nobody is there whose mail it could be.
            return false;
        }
        self.found.messages.push(MessageResult {
            id: send.id.to_string(),
            to: send.to,
            text: send.message.text.clone(),
            urgency,
            sent: self.now,
            fate,
            reasons,
        });
        if let Some(reason) = refused {
            if ["too_late", "limit", "shutting_down"].contains(&reason) {
                self.met(reason);
            }
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
        self.accept(send, urgency, record);
        true
    }

    /// Notes that what a message supersedes is queued at others too, where it stays.
    fn note_others_copies(&mut self, send: &Send) {
        let Some(old) = &send.message.supersedes else {
            return;
        };
        let theirs = |m: &Mail| m.id == *old && m.from == send.from;
        let elsewhere = |(i, a): (usize, &AgentState)| i != send.to && a.mailbox.iter().any(theirs);
        if self.agents.iter().enumerate().any(elsewhere) {
            self.met("supersedes_here_only");
        }
    }

    /// Queues an accepted message, in one step with the return of what it supersedes.
    fn accept(&mut self, send: &Send, urgency: Urgency, record: usize) {
        let stopping = self.agents[send.to].run.as_ref().is_some_and(|r| r.stop.is_some());
        if stopping && !self.is_above(send.from, send.to) {
            self.met("waits_for_the_next_run");
        }
        if let Some(old) = &send.message.supersedes {
            self.return_where(send.to, "superseded", |m| m.id == *old && m.from == send.from && !m.committed);
        }
        self.queue(
            send.to,
            Mail {
                uid: 0,
                id: send.id.to_string(),
                from: send.from,
                urgency,
                text: send.message.text.clone(),
                expires_at: send.message.expires_after.map(|e| self.now + e),
                only_run: send.message.only_run,
                committed: false,
                cost: false,
                wakes: false,
                record: Some(record),
            },
        );
        self.reconsider(send.to);
    }
}
