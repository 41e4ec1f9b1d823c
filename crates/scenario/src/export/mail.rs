//! Messages: which of them the file must send, which are caused in a replay as they were in
//! the session, and between which looks at the mailbox each must arrive.

use midturn_core::engine::ports::store::Accepted;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::MessageId;
use midturn_core::rules::mail::{Point, ReturnReason, Urgency};

use super::actor::{Pending, Phase, Stopping};
use super::moments::Moment;
use super::plan::{CallEnd, Deed, DeedAct, EntryEnd, EntryPlan, LandmarkKind, SendPlan};
use super::read::{Fate, Letter, Reader};

/// A message as it came.
struct Came<'e> {
    seq: u64,
    from: &'e str,
    id: &'e MessageId,
    urgency: Urgency,
    text: &'e str,
}

impl Reader<'_> {
    pub(super) fn queued(&mut self, event: &Event, agent: usize) {
        let EventKind::MessageQueued { message, from, urgency, text } = &event.kind else { return };
        let came = Came { seq: event.seq, from, id: message, urgency: *urgency, text };
        let caused = self.caused(&came);
        if let (Some(_), Some(sender)) = (caused, self.agent(from)) {
            self.note_id(sender, text, message);
        }
        let (at, file_id, item) = match caused {
            Some(at) => (at, message.as_str().to_owned(), false),
            None => self.sent_by_the_file(event, agent, &came),
        };
        let letter =
            Letter { file_id, from: from.clone(), id: message.clone(), to: agent, fate: Fate::Queued };
        let kind = if item { LandmarkKind::Item } else { LandmarkKind::Caused };
        let named = self.is_named_once(&letter).then(|| letter.file_id.clone());
        self.letters.push(letter);
        if let Some(stop) = self.actors[agent].stop.filter(|_| self.is_winding(agent)) {
            self.moments.apart(stop.at, at);
        }
        if let Some(began) = self.actors[agent].began {
            self.moments.apart(began, at);
        }
        let actor = &mut self.actors[agent];
        actor.landmark(event.seq, "message_queued", named, at, kind);
        let (from, id) = (from.clone(), message.clone());
        actor.pending.push(Pending { from, id, seq: event.seq, at, urgency: *urgency, item });
    }

    fn is_winding(&self, agent: usize) -> bool {
        self.actors[agent].phase != Phase::Resting
    }

    /// Whether the file's id stands for nobody else's message to this receiver.
    fn is_named_once(&self, letter: &Letter) -> bool {
        let same = |other: &&Letter| other.file_id == letter.file_id && other.to == letter.to;
        !self.letters.iter().any(|other| same(&other))
    }

    /// When the call or the end that caused a message did so; `None`: the file sends it.
    fn caused(&self, came: &Came<'_>) -> Option<Moment> {
        if came.from == "coordinator" {
            let (name, run) = came.id.as_str().split_once('#')?;
            let about = &self.actors[self.agent(name)?];
            let run: u64 = run.parse().ok()?;
            return about.ended.iter().find(|end| end.run == run).map(|end| end.at);
        }
        let sender = self.agent(came.from)?;
        self.acting(sender, &["send_message"], |input| {
            let own = |key: &str| input.get(key).and_then(|value| value.as_str());
            own("text") == Some(came.text) && own("id").is_none_or(|id| id == came.id.as_str())
        })
    }

    /// A message that the file has to send: when, under which id; always an item.
    fn sent_by_the_file(&mut self, event: &Event, agent: usize, came: &Came<'_>) -> (Moment, String, bool) {
        if let Some((at, id)) = self.superseding(agent, came) {
            return (at, id, true);
        }
        if let Some((at, id)) = self.sent_to_all(event, agent, came) {
            return (at, id, true);
        }
        let at = self.moments.at(event.t);
        let id = self.item_id(came.id.as_str());
        let send = self.send_plan(event, agent, came);
        let act = DeedAct::Send(send);
        self.deeds.push(Deed { seq: came.seq, at, agent, also: Vec::new(), id: Some(id.clone()), act });
        (at, id, true)
    }

    /// The message of a supersede comes with the stop, as one action.
    fn superseding(&mut self, agent: usize, came: &Came<'_>) -> Option<(Moment, String)> {
        let stop = self.actors[agent].stop.filter(|_| self.is_winding(agent))?;
        let index = stop.deed?;
        let DeedAct::Stop { by } = &self.deeds[index].act else { return None };
        if by != came.from || !self.is_superseded(agent, &stop) {
            return None;
        }
        let by = by.clone();
        let id = self.item_id(came.id.as_str());
        let deed = &mut self.deeds[index];
        deed.id = Some(id.clone());
        deed.act = DeedAct::Supersede { by, text: came.text.to_owned() };
        Some((stop.at, id))
    }

    /// The same message to another receiver, in the same instant, is one message to all.
    fn sent_to_all(&mut self, event: &Event, agent: usize, came: &Came<'_>) -> Option<(Moment, String)> {
        let letter =
            self.letters.iter().rev().find(|letter| letter.from == came.from && letter.id == *came.id)?;
        let id = letter.file_id.clone();
        let deed = self.deeds.iter_mut().find(|deed| deed.id.as_ref() == Some(&id))?;
        let same_instant = self.events.iter().any(|first| first.seq == deed.seq && first.t == event.t);
        let DeedAct::Send(send) = &mut deed.act else { return None };
        if !same_instant {
            return None;
        }
        send.to = "all".into();
        deed.also.push((agent, event.seq));
        Some((deed.at, id))
    }

    fn send_plan(&mut self, event: &Event, agent: usize, came: &Came<'_>) -> SendPlan {
        let to = self.actors[agent].journal.record.name.clone();
        let key = (came.from.to_owned(), came.id.clone(), to.clone());
        let kept: Option<&Accepted> = self.kept.get(&key).copied();
        let urgency = kept.map_or(Some(came.urgency), |accepted| accepted.urgency);
        let expires = kept.and_then(|accepted| accepted.mail.expires_at).map(|at| self.moments.at(at));
        SendPlan {
            from: came.from.to_owned(),
            to: to.to_string(),
            text: came.text.to_owned(),
            urgency,
            expires,
            supersedes: self.replaced(event),
            only_run: kept.and_then(|accepted| accepted.mail.only_run),
        }
    }

    /// The message that gave its place to this one: it was returned in the same step.
    fn replaced(&self, event: &Event) -> Option<String> {
        let before = self.events.get(self.place.checked_sub(1)?)?;
        let EventKind::MessageReturned { message, reason: ReturnReason::Superseded } = &before.kind else {
            return None;
        };
        let agent = before.at.agent.as_ref().and_then(|name| self.agent(name.as_str()))?;
        let by_stop = self.actors[agent].stop.is_some_and(|stop| self.is_returned_by(before.seq, &stop));
        let letter = self.letters.iter().rev().find(|letter| letter.to == agent && letter.id == *message)?;
        (before.t == event.t && !by_stop).then(|| letter.file_id.clone())
    }

    /// An id that can stand in the file, once among its items.
    fn item_id(&self, id: &str) -> String {
        let printable: String = id.chars().filter(|c| !c.is_control()).take(60).collect();
        let base = match printable.trim() {
            "" | "any" => "message".to_owned(),
            _ => printable,
        };
        let taken = |id: &str| self.deeds.iter().any(|deed| deed.id.as_deref() == Some(id));
        let mut n = 1;
        let mut free = base.clone();
        while taken(&free) {
            n += 1;
            free = format!("{base}.{n}");
        }
        free
    }

    pub(super) fn injected(&mut self, event: &Event, agent: usize) {
        let EventKind::MessageInjected { messages, point, .. } = &event.kind else { return };
        if matches!(point, Point::A | Point::C | Point::D) {
            self.turn_over(agent);
        }
        if *point == Point::Stream {
            self.cut_before_it_began(event, agent);
        }
        let now = self.actors[agent].now;
        self.actors[agent].landmark(event.seq, "message_injected", None, now, LandmarkKind::Own);
        let turn = event.at.turn.unwrap_or_default();
        let fate = Fate::Injected { point: *point, run: event.at.run.unwrap_or_default(), turn };
        for id in messages {
            let Some(mail) = self.leaves(agent, id, fate) else { continue };
            match point {
                Point::Stream | Point::Wait => self.moments.in_order(mail.at, now),
                Point::Start => self.started_with(agent, &mail, now),
                Point::A | Point::B | Point::C | Point::D => self.arrived_by(agent, &mail, now),
            }
        }
    }

    /// The message was there at this look.
    pub(super) fn arrived_by(&mut self, agent: usize, mail: &Pending, look: Moment) {
        if mail.item {
            self.moments.in_order(mail.at, look);
        } else {
            self.moments.apart(mail.at, look);
        }
        let exact = self.moments.is_exact();
        let calls = self.actors[agent].entries.last_mut().map(|entry| &mut entry.calls);
        for call in calls.into_iter().flatten().filter(|_| mail.urgency == Urgency::Urgent) {
            let ended = matches!(call.end, CallEnd::Natural { at, .. } if at == look);
            if !ended || !call.abortable {
                continue;
            }
            if mail.item {
                // Earlier it would have cut the call that ended here.
                self.moments.in_order(look, mail.at);
            } else if !exact {
                // It can't come in the very instant, so the call must not let itself be cut.
                call.abortable = false;
            }
        }
    }

    /// The message was there when the run started. Earlier it would have started it earlier,
    /// unless it was left from the run before.
    fn started_with(&mut self, agent: usize, mail: &Pending, start: Moment) {
        self.arrived_by(agent, mail, start);
        let is_new = self.actors[agent].ended.last().is_some_and(|end| end.seq < mail.seq);
        if mail.item && is_new {
            self.moments.in_order(start, mail.at);
        }
    }

    /// An urgent message that came after the look and before the call went out: in a replay
    /// there is no such gap, and it cuts a call that has said nothing.
    fn cut_before_it_began(&mut self, event: &Event, agent: usize) {
        let Some(at) = self.actors[agent].urgent().map(|mail| mail.at) else { return };
        let turn = event.at.turn.unwrap_or_default();
        let actor = &mut self.actors[agent];
        if actor.phase == Phase::Retrying {
            if let Some(EntryEnd::Failed { at: failed, .. }) = actor.entries.last().map(|entry| &entry.end) {
                let failed = *failed;
                self.moments.apart(failed, at);
            }
        } else if actor.called != Some((actor.run, turn)) {
            self.turn_over(agent);
            let start = self.actors[agent].now;
            self.moments.apart(start, at);
            let end = EntryEnd::Cut { at, thought: true };
            self.actors[agent].entries.push(EntryPlan { end, ..EntryPlan::new(start) });
        }
        let actor = &mut self.actors[agent];
        (actor.now, actor.phase) = (at, Phase::Cut);
    }

    /// Takes a message out of the mailbox.
    fn leaves(&mut self, agent: usize, id: &MessageId, fate: Fate) -> Option<Pending> {
        let actor = &mut self.actors[agent];
        let index = actor.pending.iter().position(|mail| mail.id == *id)?;
        let mail = actor.pending.remove(index);
        let is_it = |letter: &&mut Letter| letter.to == agent && letter.id == *id && letter.from == mail.from;
        if let Some(letter) = self.letters.iter_mut().rev().find(is_it) {
            letter.fate = fate;
        }
        Some(mail)
    }

    pub(super) fn returned(&mut self, event: &Event, agent: usize) {
        let EventKind::MessageReturned { message, reason } = &event.kind else { return };
        let stop = self.actors[agent].stop;
        let Some(mail) = self.leaves(agent, message, Fate::Returned(*reason)) else { return };
        match reason {
            ReturnReason::Withdrawn => self.withdrawn(event, agent, &mail),
            ReturnReason::Expired => self.expired(event, agent, &mail),
            ReturnReason::Closed => {
                self.given_back(event, &mail, stop);
                if let Some((_, closed)) = self.actors[agent].closed.filter(|(seq, _)| *seq < mail.seq) {
                    self.moments.in_order(closed, mail.at);
                }
            }
            ReturnReason::Stopped | ReturnReason::Superseded => self.given_back(event, &mail, stop),
            ReturnReason::Error => {}
        }
    }

    /// A stop gave back what was there, and what came afterwards came afterwards.
    fn given_back(&mut self, event: &Event, mail: &Pending, stop: Option<Stopping>) {
        let Some(stop) = stop.filter(|stop| mail.seq < stop.seq) else { return };
        match self.is_returned_by(event.seq, &stop) {
            true if mail.item && stop.item => self.moments.in_order(mail.at, stop.at),
            true => self.moments.apart(mail.at, stop.at),
            false => self.moments.apart(stop.at, mail.at),
        }
    }

    fn withdrawn(&mut self, event: &Event, agent: usize, mail: &Pending) {
        let at = self.moments.at(event.t);
        self.moments.in_order(mail.at, at);
        self.actors[agent].gone.push(at);
        let letter = self.letters.iter().find(|letter| letter.to == agent && letter.id == mail.id);
        let Some(message) = letter.map(|letter| letter.file_id.clone()) else { return };
        let same =
            |deed: &Deed| matches!(&deed.act, DeedAct::Withdraw { message: other, .. } if *other == message);
        if !self.deeds.iter().any(same) {
            let act = DeedAct::Withdraw { by: mail.from.clone(), message };
            self.deeds.push(Deed { seq: event.seq, at, agent, also: Vec::new(), id: None, act });
        }
    }

    /// It expired with its run, or at its time.
    fn expired(&mut self, event: &Event, agent: usize, mail: &Pending) {
        let with_its_run = self.expired_with_a_run(event);
        let at = self.moments.at(event.t);
        let Some(deed) = self.deeds.iter_mut().find(|deed| deed.seq == mail.seq) else { return };
        let DeedAct::Send(send) = &mut deed.act else { return };
        if send.only_run.is_some() && send.expires.is_none() {
            return;
        }
        match with_its_run {
            Some(run) if send.expires.is_none() => send.only_run = Some(run),
            _ => {
                send.expires = Some(at);
                self.moments.in_order(mail.at, at);
                self.actors[agent].gone.push(at);
            }
        }
    }

    fn expired_with_a_run(&self, event: &Event) -> Option<u64> {
        let own = self.ahead().iter().take_while(|next| next.t == event.t);
        let mut own = own.filter(|next| next.at.agent == event.at.agent);
        let end = own.find(|next| matches!(next.kind, EventKind::RunFinished { .. }))?;
        end.at.run
    }
}
