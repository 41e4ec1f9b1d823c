//! What was done from outside: messages, stops, closes, what a sender took back, and ends of the
//! process.

use midturn_core::engine::Message;
use midturn_core::rules::event::{Event, EventKind, Halt, Scope};
use midturn_core::rules::id::{AgentName, MessageId, RunId};
use midturn_core::rules::mail::{ReturnReason, Sender};
use midturn_core::rules::time::{Micros, Span};

use super::order::unique;
use super::plan::{Done, behind};
use super::read::{Letter, Reader, free};
use crate::error::Place;
use crate::scenario::{Act, Item, When};

impl Reader<'_> {
    /// Something was done: at that time, or in that very instant behind the last event of its agent.
    pub(super) fn done(&mut self, event: &Event, agent: Option<usize>, id: Option<MessageId>, act: Act) {
        let when = agent.and_then(|agent| self.behind(event, agent));
        let when = when.map_or(When::at(event.t), |(when, _)| when);
        let item = Item { id, when, act, place: Place::START };
        let agent = agent.map(|agent| self.name(agent));
        self.items.push(Done { item, agent, at: event.t, seq: event.seq, behind: 0 });
    }

    /// In the instant of the agent's last event: behind that, whose number is given.
    fn behind(&self, event: &Event, agent: usize) -> Option<(When, u64)> {
        let (last, at, seq) = self.hands[agent].last.clone()?;
        (at == event.t).then(|| (behind(last), seq))
    }

    /// A message came. Who caused it sends it again, or else the file does.
    pub(super) fn queued(&mut self, event: &Event, agent: usize) -> MessageId {
        let EventKind::MessageQueued { message, from, text, .. } = &event.kind else {
            return MessageId::new("");
        };
        let mut item = None;
        let file_id = if self.is_caused(from, message, text) {
            message.clone()
        } else if self.consumed.contains(&event.seq) {
            self.items.last().and_then(|done| done.item.id.clone()).unwrap_or_else(|| message.clone())
        } else {
            let sent = self.sent_to_others(from, message).unwrap_or_else(|| self.sends(event, agent));
            item = Some(sent);
            self.also_to(event, agent, sent);
            self.items[sent].item.id.clone().unwrap_or_else(|| message.clone())
        };
        let letter = Letter { from: from.clone(), id: message.clone(), file_id: file_id.clone(), item };
        self.hands[agent].queued.push(letter);
        file_id
    }

    /// Whether the coordinator or a call that runs caused the message.
    fn is_caused(&mut self, from: &str, message: &MessageId, text: &str) -> bool {
        if from == "coordinator" {
            return true;
        }
        let Some(sender) = self.agent(from) else { return false };
        let says = |key: &str, input: &serde_json::Value| {
            input.get(key).and_then(|value| value.as_str()).map(str::to_owned)
        };
        let call = self.acts(sender, &["send_message"], |input| {
            let id = says("id", input);
            says("text", input).as_deref() == Some(text) && id.is_none_or(|id| id == message.as_str())
        });
        if let Some((entry, place)) = call {
            self.hands[sender].sent_as.push((entry, place, message.to_string()));
        }
        call.is_some()
    }

    /// The same message to another receiver: it was one to all.
    fn sent_to_others(&mut self, from: &str, message: &MessageId) -> Option<usize> {
        let index = self.sent.get(&(from.to_owned(), message.clone())).copied()?;
        let Act::Send(send) = &mut self.items[index].item.act else { return None };
        send.to = "all".into();
        Some(index)
    }

    /// What a receiver tells of a message: what it superseded there, and, of several receivers, which
    /// was last in that very instant: that says in which round the message came.
    fn also_to(&mut self, event: &Event, agent: usize, sent: usize) {
        let replaced = self.replaced(event);
        let behind = self.behind(event, agent);
        let done = &mut self.items[sent];
        if let Some((when, seq)) = behind.filter(|(_, seq)| done.at == event.t && *seq >= done.behind) {
            (done.item.when, done.behind) = (when, seq);
        }
        if let (Act::Send(send), true) = (&mut done.item.act, replaced.is_some()) {
            send.supersedes = replaced;
        }
    }

    fn sends(&mut self, event: &Event, agent: usize) -> usize {
        let EventKind::MessageQueued { message: id, from, text, urgency } = &event.kind else { return 0 };
        let to = self.name(agent);
        let kept = self.kept.get(&(from.clone(), id.clone(), to.clone())).copied();
        let expires_at = kept.and_then(|accepted| accepted.mail.expires_at);
        let message = Message {
            urgency: kept.map_or(Some(*urgency), |accepted| accepted.urgency),
            expires_after: expires_at.map(|at| at.since(event.t)),
            only_run: kept.and_then(|accepted| accepted.mail.only_run),
            if_queued: self.was_too_late(event),
            ..Message::new(self.sender(from), to.as_str(), &**text)
        };
        let file_id = self.item_id(id);
        self.done(event, Some(agent), Some(file_id), Act::Send(message));
        self.sent.insert((from.clone(), id.clone()), self.items.len() - 1);
        self.items.len() - 1
    }

    fn item_id(&mut self, id: &MessageId) -> MessageId {
        MessageId::new(free(id.as_str(), "message", &mut self.taken).as_str())
    }

    fn sender(&self, name: &str) -> Sender {
        self.agent(name).map_or(Sender::User, |agent| Sender::Agent(self.name(agent)))
    }

    /// The message that gave its place to this one: it was returned in the same step.
    fn replaced(&self, event: &Event) -> Option<MessageId> {
        let last = self.told.last().filter(|last| last.t == event.t && last.at.agent == event.at.agent)?;
        let EventKind::MessageReturned { message, reason: ReturnReason::Superseded } = &last.kind else {
            return None;
        };
        // What a stop gave back is told right behind it.
        let mut row = self.told.iter().rev();
        let before = row.find(|told| !matches!(told.kind, EventKind::MessageReturned { .. }));
        let by_stop = before.is_some_and(|told| {
            matches!(told.kind, EventKind::StopRequested { reason: Halt::Supersede, .. })
        });
        (!by_stop).then(|| message.clone())
    }

    /// Whether a receiver refused it, since what it supersedes was gone: it was sent so.
    fn was_too_late(&self, event: &Event) -> bool {
        let EventKind::MessageQueued { message, from, .. } = &event.kind else { return false };
        let refused = |other: &Event| match &other.kind {
            EventKind::MessageRefused { message: id, from: by, reason } => {
                id == message && by == from && &**reason == "too_late"
            }
            _ => false,
        };
        self.events.iter().any(refused)
    }

    /// Takes a message out of the mailbox.
    pub(super) fn leaves(&mut self, agent: usize, id: &MessageId) -> Option<Letter> {
        let queued = &mut self.hands[agent].queued;
        let index = queued.iter().position(|letter| letter.id == *id)?;
        Some(queued.remove(index))
    }

    /// A message went back: the sender took it back, or its time or its run was over.
    pub(super) fn returned(
        &mut self,
        event: &Event,
        agent: usize,
        id: &MessageId,
        reason: ReturnReason,
    ) -> MessageId {
        let Some(letter) = self.leaves(agent, id) else { return id.clone() };
        match (reason, letter.item) {
            (ReturnReason::Withdrawn, _) => {
                let message = letter.file_id.clone();
                let same = |done: &Done| matches!(&done.item.act, Act::Withdraw { message: of, .. } if *of == message);
                if !self.items.iter().any(same) {
                    let by = self.sender(&letter.from);
                    self.done(event, Some(agent), None, Act::Withdraw { message, by });
                }
            }
            (ReturnReason::Expired, Some(index)) => {
                let run = self.expired_with_a_run(event);
                let done = &mut self.items[index];
                if let Act::Send(send) = &mut done.item.act
                    && send.expires_after.is_none()
                    && send.only_run.is_none()
                {
                    send.only_run = run;
                    send.expires_after = run.is_none().then(|| event.t.since(done.at));
                }
            }
            _ => {}
        }
        letter.file_id
    }

    fn expired_with_a_run(&self, event: &Event) -> Option<RunId> {
        let ahead = self.events[self.place + 1..].iter().take_while(|next| next.t == event.t);
        let mut own = ahead.filter(|next| next.at.agent == event.at.agent);
        own.find(|next| matches!(next.kind, EventKind::RunFinished { .. }))?.at.run
    }

    pub(super) fn stop_requested(&mut self, event: &Event, agent: usize) {
        let EventKind::StopRequested { by, reason, .. } = &event.kind else { return };
        self.hands[agent].halt = Some((*reason, event.at.run.unwrap_or_default()));
        let caller = self.agent(by);
        if caller.and_then(|caller| self.acts(caller, &["stop_agent", "close_agent"], |_| true)).is_some() {
            self.hands[agent].closing |= *reason == Halt::Close;
            return;
        }
        let (name, by) = (self.name(agent), self.sender(by));
        match reason {
            Halt::Shutdown if self.shutdown.is_none() => {
                self.done(event, Some(agent), None, Act::ShutDown { back_after: Span::ZERO });
                self.shutdown = Some(self.items.len() - 1);
            }
            Halt::Shutdown => {}
            Halt::Supersede => self.superseded(event, agent, name, by),
            Halt::Close => self.closes(event, agent),
            Halt::Stop => {
                // Whoever else was stopped with it has an event, and an item, of its own.
                let stop = Act::Stop { agent: name, by, scope: Scope::Agent };
                self.done(event, Some(agent), None, stop);
            }
        }
    }

    /// The message of a supersede comes with the stop, as one action.
    fn superseded(&mut self, event: &Event, agent: usize, name: AgentName, by: Sender) {
        let ahead = self.events[self.place + 1..].iter().filter(|next| next.at.agent == event.at.agent);
        let mut queued = ahead.filter_map(|next| match &next.kind {
            EventKind::MessageQueued { message, from, text, .. } if *from == by.to_string() => {
                Some((next.seq, message.clone(), text.to_string()))
            }
            _ => None,
        });
        let Some((seq, message, text)) = queued.next() else { return };
        self.consumed.insert(seq);
        let id = self.item_id(&message);
        self.done(event, Some(agent), Some(id), Act::Supersede { agent: name, by, text });
    }

    /// A close ends a whole subtree in one step, leaves first: the last one told is the one that was named.
    fn closes(&mut self, event: &Event, agent: usize) {
        if self.hands[agent].closing {
            return;
        }
        let closes = |kind: &EventKind| {
            matches!(kind, EventKind::StopRequested { reason: Halt::Close, .. } | EventKind::AgentClosed {})
        };
        let returns = |kind: &EventKind| {
            matches!(kind, EventKind::MessageReturned { reason: ReturnReason::Closed, .. })
        };
        let together = self.events[self.place..]
            .iter()
            .take_while(|next| next.t == event.t && (closes(&next.kind) || returns(&next.kind)));
        let name = |next: &Event| next.at.agent.as_ref().and_then(|name| self.agent(name.as_str()));
        let closed = || together.clone().filter(|next| closes(&next.kind)).filter_map(name);
        let is_within = |below: usize, root: usize| below == root || self.is_above(root, below);
        let root = closed().filter(|root| is_within(agent, *root)).last().unwrap_or(agent);
        let subtree: Vec<usize> = closed().filter(|closed| is_within(*closed, root)).collect();
        // Of who rests only the close is told, and not by whom.
        let mut of_subtree = together.filter(|next| name(next).is_some_and(|name| subtree.contains(&name)));
        let by = of_subtree.find_map(|next| match &next.kind {
            EventKind::StopRequested { by, .. } => Some(self.sender(by)),
            _ => None,
        });
        let by = by.unwrap_or(Sender::User);
        subtree.into_iter().for_each(|closed| self.hands[closed].closing = true);
        self.done(event, Some(root), None, Act::Close { agent: self.name(root), by });
    }

    fn is_above(&self, above: usize, agent: usize) -> bool {
        let parent = |agent: &usize| {
            self.hands[*agent].record.parent.as_ref().and_then(|name| self.agent(name.as_str()))
        };
        // Nobody stands below itself; the bound is for a record that says otherwise.
        std::iter::successors(parent(&agent), parent).take(self.hands.len()).any(|parent| parent == above)
    }

    pub(super) fn closed(&mut self, event: &Event, agent: usize) {
        let called = |above: usize| {
            self.is_above(above, agent) && self.acts(above, &["close_agent"], |_| true).is_some()
        };
        if !(0..self.hands.len()).any(called) {
            self.closes(event, agent);
        }
    }

    /// The process had ended, by itself or after a shutdown, and the next one took the session up.
    pub(super) fn taken_up(&mut self, event: &Event) {
        let last = self.told.last().map_or(Micros(0), |last| last.t);
        if let Some(index) = self.shutdown.take() {
            self.items[index].item.act = Act::ShutDown { back_after: event.t.since(last) };
            return;
        }
        // Nothing was recorded behind the last event. One without a name of its own was some time before.
        let named = self.told.last().and_then(|last| unique(&self.told, last));
        let when = named.map_or(When::at(last.after(Span(u64::from(!self.exact)))), When::Upon);
        let act = Act::Crash { back_after: event.t.since(last) };
        let item = Item { id: None, when, act, place: Place::START };
        self.items.push(Done { item, agent: None, at: last, seq: event.seq, behind: 0 });
    }
}
