//! Stops, supersedes and closes: who did it, and what it found.

use midturn_core::rules::conversation::InterruptReason;
use midturn_core::rules::event::{Event, EventKind, Scope};
use midturn_core::rules::mail::ReturnReason;
use midturn_core::rules::time::Span;

use super::actor::Stopping;
use super::moments::Moment;
use super::plan::{Deed, DeedAct, LandmarkKind};
use super::read::Reader;

/// How soon after the end of its run an agent that was closed while it worked is told closed.
const AT_ONCE: Span = Span::millis(100);

impl Reader<'_> {
    pub(super) fn stop_requested(&mut self, event: &Event, agent: usize) {
        let EventKind::StopRequested { still_queued, .. } = &event.kind else { return };
        let stop = match self.actors[agent].stop {
            // What it cut told of it first.
            Some(stop) if stop.seq == event.seq => stop,
            first => {
                let stop = self.note_stop(event, agent);
                let first = first.filter(|first| first.run == stop.run);
                self.actors[agent].stop = first.or(Some(stop));
                stop
            }
        };
        let kind = if stop.item { LandmarkKind::Item } else { LandmarkKind::Caused };
        self.actors[agent].landmark(event.seq, "stop_requested", None, stop.at, kind);
        let persons = self.actors[agent].pending.iter().filter(|mail| mail.from == "user");
        let persons: Vec<_> = persons.map(|mail| (still_queued.contains(&mail.id), mail.at)).collect();
        for (stays, at) in persons {
            if stays {
                self.moments.in_order(at, stop.at);
            } else {
                self.moments.apart(stop.at, at);
            }
        }
    }

    /// The stop that ended the current run, though its event may be still to come.
    pub(super) fn stopping(&mut self, agent: usize) -> Option<Stopping> {
        let run = self.actors[agent].run;
        if let Some(stop) = self.actors[agent].stop.filter(|stop| stop.run == run) {
            return Some(stop);
        }
        let name = &self.actors[agent].journal.record.name;
        let events = self.events;
        let mut ahead = events[self.place + 1..].iter().filter(|event| event.at.agent.as_ref() == Some(name));
        let ahead = ahead.find(|event| {
            matches!(event.kind, EventKind::StopRequested { .. } | EventKind::RunFinished { .. })
        });
        let event = ahead.filter(|event| matches!(event.kind, EventKind::StopRequested { .. }))?;
        let stop = self.note_stop(event, agent);
        self.actors[agent].stop = Some(stop);
        Some(stop)
    }

    fn note_stop(&mut self, event: &Event, agent: usize) -> Stopping {
        let run = event.at.run.unwrap_or_default();
        let EventKind::StopRequested { by, .. } = &event.kind else {
            return Stopping { seq: event.seq, run, at: self.moments.at(event.t), item: true, deed: None };
        };
        let caller = self.agent(by);
        let call = caller.and_then(|caller| self.acting(caller, &["stop_agent", "close_agent"], |_| true));
        if let Some(at) = call {
            return Stopping { seq: event.seq, run, at, item: false, deed: None };
        }
        let at = self.moments.at(event.t);
        // Whoever else was stopped with it has an event, and an item, of his own.
        let act = DeedAct::Stop { by: by.clone() };
        self.deeds.push(Deed { seq: event.seq, at, agent, also: Vec::new(), id: None, act });
        Stopping { seq: event.seq, run, at, item: true, deed: Some(self.deeds.len() - 1) }
    }

    /// The run ended as stopped: the stop was there by then, or had cut what ran.
    pub(super) fn stopped_at(&mut self, agent: usize) {
        let Some(stop) = self.stopping(agent) else { return };
        let now = self.actors[agent].now;
        self.moments.in_order(stop.at, now);
    }

    /// Whether the stop was one with a new message: only then is it told so.
    pub(super) fn is_superseded(&self, agent: usize, stop: &Stopping) -> bool {
        let name = &self.actors[agent].journal.record.name;
        let from = self.events.partition_point(|event| event.seq < stop.seq);
        let own = self.events[from..].iter().filter(|event| event.at.agent.as_ref() == Some(name));
        for event in own.skip(1) {
            match &event.kind {
                EventKind::ModelInterrupted { reason: InterruptReason::Superseded, .. } => return true,
                EventKind::MessageReturned { reason: ReturnReason::Superseded, .. } => {
                    return self.is_returned_by(event.seq, stop);
                }
                EventKind::RunFinished { .. } => return false,
                _ => {}
            }
        }
        false
    }

    /// Whether an event belongs to the row of returns that a stop begins with.
    pub(super) fn is_returned_by(&self, seq: u64, stop: &Stopping) -> bool {
        let from = self.events.partition_point(|event| event.seq <= stop.seq);
        let row = self.events[from..]
            .iter()
            .take_while(|event| matches!(event.kind, EventKind::MessageReturned { .. }));
        row.take_while(|event| event.seq <= seq).any(|event| event.seq == seq)
    }

    pub(super) fn closed(&mut self, event: &Event, agent: usize) {
        if self.actors[agent].closed.is_some() {
            return;
        }
        let at = match self.closing_stop(event, agent) {
            Some(stop) => self.closes(stop).or(self.actors[agent].stop.map(|stop| stop.at)),
            None => self.closing_call(agent),
        };
        let at = at.unwrap_or_else(|| {
            let at = self.moments.at(event.t);
            let act = DeedAct::Close { by: "user".into() };
            self.deeds.push(Deed { seq: event.seq, at, agent, also: Vec::new(), id: None, act });
            at
        });
        self.actors[agent].closed = Some((event.seq, at));
    }

    /// When an ancestor's call closed it, if one did.
    fn closing_call(&self, agent: usize) -> Option<Moment> {
        (0..self.actors.len()).find_map(|above| {
            let name = self.actors[above].journal.record.name.as_str();
            let is_above = self.is_above(name, agent);
            is_above.then(|| self.acting(above, &["close_agent"], |_| true)).flatten()
        })
    }

    /// The number of the stop that closed a working agent: it is told closed as soon as its
    /// run has ended.
    fn closing_stop(&self, event: &Event, agent: usize) -> Option<u64> {
        let name = &self.actors[agent].journal.record.name;
        let own = self.events[..self.place].iter().rev();
        let mut own = own.filter(|event| event.at.agent.as_ref() == Some(name));
        let end = own.find(|event| matches!(event.kind, EventKind::RunFinished { .. }))?;
        let at_once = if self.moments.is_exact() { Span::ZERO } else { AT_ONCE };
        if event.t.since(end.t) > at_once {
            return None;
        }
        let mut own = own.take_while(|event| event.at.run >= end.at.run);
        let stop = own.find(|event| matches!(event.kind, EventKind::StopRequested { .. }))?;
        matches!(stop.kind, EventKind::StopRequested { scope: Scope::Subtree, .. }).then_some(stop.seq)
    }

    /// A stop that closed the agent is written as what it was.
    fn closes(&mut self, seq: u64) -> Option<Moment> {
        let deed = self.deeds.iter_mut().find(|deed| deed.seq == seq)?;
        if let DeedAct::Stop { by } = &deed.act {
            deed.act = DeedAct::Close { by: by.clone() };
        }
        Some(deed.at)
    }
}
