//! What was done from outside: messages, stops, closes, what a person took back or answered,
//! and ends of the process.

use midturn_core::rules::event::{Event, EventKind, Halt};
use midturn_core::rules::id::MessageId;
use midturn_core::rules::mail::ReturnReason;
use midturn_core::rules::time::{Micros, Span};

use super::order::{is_arrival, mark};
use super::plan::{Act, Entry, EntryEnd, Item, Send, When};
use super::read::{Letter, Reader, free};

impl Reader<'_> {
    /// Something was done: at that time, or in that very instant behind the last event of its agent.
    pub(super) fn done(&mut self, event: &Event, agent: Option<usize>, id: Option<String>, act: Act) {
        let when =
            agent.and_then(|agent| self.behind(event, agent)).map_or(When::At(event.t), |(when, _)| when);
        let agent = agent.map(|agent| self.plan.agents[agent].name.clone());
        self.plan.items.push(Item { when, at: event.t, seq: event.seq, behind: 0, agent, id, act });
    }

    /// In the instant of the agent's last event: behind that, whose number is given.
    fn behind(&self, event: &Event, agent: usize) -> Option<(When, u64)> {
        let (mark, at, seq) = self.hands[agent].last.clone()?;
        (at == event.t).then_some((When::After(mark), seq))
    }

    /// A message came. Who caused it sends it again, or else the file does.
    pub(super) fn queued(&mut self, event: &Event, agent: usize) -> MessageId {
        let EventKind::MessageQueued { message, from, text, .. } = &event.kind else {
            return MessageId::new("");
        };
        let mut item = None;
        let file_id = if self.is_caused(from, message, text) {
            message.as_str().to_owned()
        } else if self.consumed.contains(&event.seq) {
            self.plan.items.last().and_then(|item| item.id.clone()).unwrap_or_default()
        } else {
            let sent = self.sent_to_others(from, message).unwrap_or_else(|| self.sends(event, agent));
            // Of several receivers the one that was last in that very instant says in which round.
            let behind = self.behind(event, agent).filter(|_| self.plan.items[sent].at == event.t);
            if let Some((when, seq)) = behind.filter(|(_, seq)| *seq >= self.plan.items[sent].behind) {
                (self.plan.items[sent].when, self.plan.items[sent].behind) = (when, seq);
            }
            let replaced = self.replaced(event);
            if let (Act::Send(send), true) = (&mut self.plan.items[sent].act, replaced.is_some()) {
                send.supersedes = replaced;
            }
            item = Some(sent);
            self.plan.items[sent].id.clone().unwrap_or_default()
        };
        let letter = Letter { from: from.clone(), id: message.clone(), file_id: file_id.clone(), item };
        self.hands[agent].queued.push(letter);
        MessageId::new(file_id.as_str())
    }

    /// Whether the coordinator or a call that runs caused the message.
    fn is_caused(&mut self, from: &str, message: &MessageId, text: &str) -> bool {
        if from == "coordinator" {
            return true;
        }
        let Some(sender) = self.agent(from) else { return false };
        let caused = self.acts(sender, &["send_message"], |input| {
            let own = |key: &str| input.get(key).and_then(|value| value.as_str());
            own("text") == Some(text) && own("id").is_none_or(|id| id == message.as_str())
        });
        if caused {
            self.note_id(sender, text, message.as_str());
        }
        caused
    }

    /// The same message to another receiver: it was one to all.
    fn sent_to_others(&mut self, from: &str, message: &MessageId) -> Option<usize> {
        let index = self.sent.get(&(from.to_owned(), message.clone())).copied()?;
        let Act::Send(send) = &mut self.plan.items[index].act else { return None };
        send.to = "all".into();
        Some(index)
    }

    fn sends(&mut self, event: &Event, agent: usize) -> usize {
        let EventKind::MessageQueued { message, from, text, urgency } = &event.kind else { return 0 };
        let to = self.plan.agents[agent].name.clone();
        let kept = self.kept.get(&(from.clone(), message.clone(), to.clone())).copied();
        let send = Send {
            from: from.clone(),
            to: to.to_string(),
            text: text.to_string(),
            urgency: kept.map_or(Some(*urgency), |accepted| accepted.urgency),
            expires: kept.and_then(|accepted| accepted.mail.expires_at),
            supersedes: None,
            if_queued: false,
            only_run: kept.and_then(|accepted| accepted.mail.only_run),
        };
        let id = self.item_id(message.as_str());
        self.done(event, Some(agent), Some(id), Act::Send(send));
        let index = self.plan.items.len() - 1;
        self.sent.insert((from.clone(), message.clone()), index);
        index
    }

    fn item_id(&mut self, id: &str) -> String {
        free(id, "message", |id| !self.taken.insert(id.to_owned()))
    }

    /// The message that gave its place to this one: it was returned in the same step.
    fn replaced(&self, event: &Event) -> Option<String> {
        let before =
            self.told.last().filter(|before| before.t == event.t && before.at.agent == event.at.agent)?;
        let EventKind::MessageReturned { message, reason: ReturnReason::Superseded } = &before.kind else {
            return None;
        };
        // What a stop gave back is told right behind it.
        let mut row = self.told.iter().rev();
        let stopped = row.find(|told| !matches!(told.kind, EventKind::MessageReturned { .. }));
        let stopped = stopped.is_some_and(|told| matches!(told.kind, EventKind::StopRequested { .. }));
        (!stopped).then(|| message.to_string())
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
                let (by, message) = (letter.from.clone(), letter.file_id.clone());
                let known = self.plan.items.iter().any(
                    |item| matches!(&item.act, Act::Withdraw { message, .. } if *message == letter.file_id),
                );
                if !known {
                    self.done(event, Some(agent), None, Act::Withdraw { by, message });
                }
            }
            (ReturnReason::Expired, Some(index)) => {
                let with_its_run = self.expired_with_a_run(event);
                if let Act::Send(send) = &mut self.plan.items[index].act
                    && (send.expires, send.only_run) == (None, None)
                {
                    match with_its_run {
                        Some(run) => send.only_run = Some(run),
                        None => send.expires = Some(event.t),
                    }
                }
            }
            _ => {}
        }
        MessageId::new(letter.file_id.as_str())
    }

    fn expired_with_a_run(&self, event: &Event) -> Option<u64> {
        let ahead = self.events[self.place + 1..].iter().take_while(|next| next.t == event.t);
        let mut own = ahead.filter(|next| next.at.agent == event.at.agent);
        own.find(|next| matches!(next.kind, EventKind::RunFinished { .. }))?.at.run
    }

    pub(super) fn stop_requested(&mut self, event: &Event, agent: usize) {
        let EventKind::StopRequested { by, reason, .. } = &event.kind else { return };
        self.hands[agent].halt = Some((*reason, event.at.run.unwrap_or_default()));
        if *reason == Halt::Shutdown {
            if self.shutdown.is_none() {
                self.done(event, Some(agent), None, Act::ShutDown { back_after: Span::ZERO });
                self.shutdown = Some(self.plan.items.len() - 1);
            }
            return;
        }
        let caused = |caller| self.acts(caller, &["stop_agent", "close_agent"], |_| true);
        if self.agent(by).is_some_and(caused) {
            self.hands[agent].closing |= *reason == Halt::Close;
            return;
        }
        match reason {
            Halt::Supersede => self.superseded(event, agent, by),
            Halt::Close => self.closes(event, agent, by),
            Halt::Stop | Halt::Shutdown => {
                self.done(event, Some(agent), None, Act::Stop { by: by.clone() });
            }
        }
    }

    /// The message of a supersede comes with the stop, as one action.
    fn superseded(&mut self, event: &Event, agent: usize, by: &str) {
        let ahead = self.events[self.place + 1..].iter().filter(|next| next.at.agent == event.at.agent);
        let mut queued = ahead.filter_map(|next| match &next.kind {
            EventKind::MessageQueued { message, from, text, .. } if from == by => {
                Some((next.seq, message.clone(), text.to_string()))
            }
            _ => None,
        });
        let Some((seq, message, text)) = queued.next() else { return };
        self.consumed.insert(seq);
        let id = self.item_id(message.as_str());
        self.done(event, Some(agent), Some(id), Act::Supersede { by: by.to_owned(), text });
    }

    /// A close ends a whole subtree in one step, leaves first: the last one told is the one that was named.
    fn closes(&mut self, event: &Event, agent: usize, by: &str) {
        if self.hands[agent].closing {
            return;
        }
        let together = self.events[self.place..].iter().take_while(|next| {
            let kind = &next.kind;
            next.t == event.t
                && matches!(
                    kind,
                    EventKind::StopRequested { reason: Halt::Close, .. }
                        | EventKind::AgentClosed {}
                        | EventKind::MessageReturned { reason: ReturnReason::Closed, .. }
                )
        });
        let closed: Vec<usize> = together
            .filter(|next| !matches!(next.kind, EventKind::MessageReturned { .. }))
            .filter_map(|next| next.at.agent.as_ref().and_then(|name| self.agent(name.as_str())))
            .collect();
        closed.iter().for_each(|closed| self.hands[*closed].closing = true);
        let root = closed.into_iter().rev().find(|root| *root == agent || self.is_above(*root, agent));
        self.done(event, root.or(Some(agent)), None, Act::Close { by: by.to_owned() });
    }

    fn is_above(&self, above: usize, agent: usize) -> bool {
        let mut next = self.plan.agents[agent].parent.as_ref();
        // Nobody stands below himself; the bound is for a record that says otherwise.
        for _ in 0..self.plan.agents.len() {
            let Some(parent) = next.and_then(|name| self.agent(name.as_str())) else { return false };
            if parent == above {
                return true;
            }
            next = self.plan.agents[parent].parent.as_ref();
        }
        false
    }

    pub(super) fn closed(&mut self, event: &Event, agent: usize) {
        let called =
            |above: usize| self.is_above(above, agent) && self.acts(above, &["close_agent"], |_| true);
        if !(0..self.hands.len()).any(called) {
            self.closes(event, agent, "user");
        }
    }

    /// The process had ended, by itself or after a shutdown, and the next one took the session up.
    pub(super) fn taken_up(&mut self, event: &Event) {
        let last = self.told.last().map_or(Micros(0), |last| last.t);
        self.asked_too_soon();
        if let Some(index) = self.shutdown.take() {
            self.plan.items[index].act = Act::ShutDown { back_after: event.t.since(last) };
            return;
        }
        self.plan.items.push(Item {
            when: self.behind_all(),
            at: last,
            seq: event.seq,
            behind: 0,
            agent: None,
            id: None,
            act: Act::Crash { back: event.t },
        });
    }

    /// In a replay no time is between a look at the mailbox and the request behind it: who had looked
    /// and not asked yet loses a call with the process that was not made.
    fn asked_too_soon(&mut self) {
        for agent in 0..self.hands.len() {
            let asks = self.hands[agent]
                .last
                .as_ref()
                .is_some_and(|(mark, ..)| matches!(mark.event, "message_injected" | "run_started"));
            if asks && !self.exact && self.plan.agents[agent].works {
                self.plan.agents[agent].entries.push(Entry::silent(EntryEnd::Open));
            }
        }
    }

    /// Behind all that is told, and before what comes of it. What is told may have been a while
    /// before that in a replay, and never after it.
    fn behind_all(&self) -> When {
        let Some(last) = self.told.last() else { return When::At(Micros(0)) };
        let agent = last.at.agent.as_ref().and_then(|name| self.agent(name.as_str()));
        let calls = agent.map_or(0, |agent| self.plan.agents[agent].entries.len());
        let comes_of = |item: &&Item| {
            let since = self.told.iter().rev().take_while(|told| told.seq > item.seq);
            let returned = |told: &Event| matches!(told.kind, EventKind::MessageReturned { .. });
            last.seq >= item.seq && item.at == last.t && is_arrival(&last.kind) && since.clone().all(returned)
        };
        let item = self.plan.items.last().filter(comes_of);
        match (item, mark(last, calls as u64)) {
            (Some(item), _) => item.when.clone(),
            (None, Some(mark)) if self.exact => When::After(mark),
            (None, _) if self.exact => When::At(last.t),
            (None, _) => When::At(last.t.after(Span(1))),
        }
    }
}
