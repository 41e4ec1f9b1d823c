//! Where an agent stands, as far as the events tell: what a store keeps beside them so that a
//! session can be taken up without reading them all.

use super::event::{Event, EventKind, Halt, PlanStep};
use super::id::{RunId, TurnId};

/// Where an agent stands. It is kept beside the events so that nobody has to read them all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// How many lines its conversation has.
    pub lines: u64,
    /// Its last run, which has begun or was stopped before it did (an event `stop_requested` of a
    /// run that has no `run_started`); 0 before the first.
    pub run: RunId,
    /// The last turn of that run; 0 before its first.
    pub turn: TurnId,
    /// The number of the first event of that turn.
    pub turn_seq: u64,
    /// The number of the first request to stop that run; 0 if there was none.
    pub stop_seq: u64,
    /// How many turns it has taken in all its runs.
    pub turns: u64,
    /// The number of its last model call.
    pub calls: u64,
    /// Whether it was closed.
    pub closed: Closed,
    /// The run that it was last resumed for, unless a stop has taken that back; 0: none.
    pub resumed: RunId,
    /// Its plan.
    pub plan: Vec<PlanStep>,
}

/// How far a close has come. Once it is asked for the agent is closed for good, whatever a crash
/// leaves of the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Closed {
    /// Nobody has closed it.
    #[default]
    No,
    /// It was asked for in a run, and `agent_closed` follows that run's end.
    Asked,
    /// `agent_closed` is told.
    Told,
}

impl Closed {
    /// Whether somebody has closed it: nothing of it starts any more.
    pub fn is_asked(self) -> bool {
        self != Self::No
    }
}

impl Progress {
    /// Somebody has resumed it, and asks for this run.
    pub fn note_resume(&mut self, run: RunId) {
        self.resumed = run;
    }

    /// Its conversation has one more line: the number of that, 1, 2, 3 …
    pub fn note_line(&mut self) -> u64 {
        self.lines += 1;
        self.lines
    }

    /// Takes note of an event of the agent. Whether anything but `lines` changed.
    pub fn note(&mut self, event: &Event) -> bool {
        let moved = self.moves_to(event);
        let noted = match &event.kind {
            EventKind::ModelStarted { call, .. } => {
                self.calls = *call;
                true
            }
            EventKind::StopRequested { reason, .. } => self.is_stopped(event.seq, *reason),
            EventKind::PlanUpdated { steps } => {
                self.plan.clone_from(steps);
                true
            }
            EventKind::AgentClosed {} => {
                self.closed = Closed::Told;
                true
            }
            _ => false,
        };
        moved || noted
    }

    fn is_stopped(&mut self, seq: u64, reason: Halt) -> bool {
        let (is_first, closes) = (self.stop_seq == 0, reason == Halt::Close);
        if is_first {
            self.stop_seq = seq;
        }
        // A shutdown takes no start back.
        let takes_back = self.resumed != 0 && reason != Halt::Shutdown;
        if takes_back {
            self.resumed = 0;
        }
        if closes && self.closed == Closed::No {
            self.closed = Closed::Asked;
        }
        is_first || closes || takes_back
    }

    /// Whether the event is the first of a run or of a turn.
    fn moves_to(&mut self, event: &Event) -> bool {
        let run = event.at.run.unwrap_or(self.run);
        let turn = event.at.turn.unwrap_or_default();
        // An agent that was woken may still be let sleep on, and then the run's number is given
        // again: only its begin, or a stop before that, is definite.
        let definite = matches!(event.kind, EventKind::RunStarted { .. } | EventKind::StopRequested { .. });
        if (run, turn) <= (self.run, self.turn) || (run > self.run && !definite) {
            return false;
        }
        if run > self.run {
            self.stop_seq = 0;
        }
        if turn > 0 {
            self.turns += 1;
        }
        (self.run, self.turn, self.turn_seq) = (run, turn, event.seq);
        true
    }

    /// Whether somebody has resumed it, and that run has not begun.
    pub fn is_resumed(&self) -> bool {
        self.resumed > self.run
    }

    /// Whether its last run has not ended, when `ended` is the last that has; 0: none has.
    pub fn is_open(&self, ended: RunId) -> bool {
        self.run > ended
    }

    /// The number of the first event that [`Progress::is_in_tail`].
    pub fn tail_begins(&self) -> u64 {
        match self.stop_seq {
            0 => self.turn_seq,
            stop => stop.min(self.turn_seq),
        }
    }

    /// Whether an event belongs to what a session needs of an open run to go on with it: those
    /// of its last turn, and what stopped it. Asked after the event was noted.
    pub fn is_in_tail(&self, event: &Event) -> bool {
        let of_turn = event.at.turn == Some(self.turn);
        event.at.run == Some(self.run) && (of_turn || matches!(event.kind, EventKind::StopRequested { .. }))
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::compaction::Purpose;
    use crate::rules::event::{Place, Scope, Trigger, VERSION};
    use crate::rules::id::AgentName;
    use crate::rules::time::Micros;

    use super::*;

    fn event(seq: u64, run: u64, turn: u32, kind: EventKind) -> Event {
        let agent = AgentName::new("a").unwrap();
        Event { v: VERSION, seq, t: Micros(seq), at: Place::of(&agent, run, turn), kind }
    }

    #[test]
    fn turns_calls_and_stops_are_counted_from_the_events() {
        let model = |call| EventKind::ModelStarted { call, messages: 1, purpose: Purpose::Turn };
        let stop = || EventKind::StopRequested {
            by: "user".into(),
            scope: Scope::Agent,
            reason: Halt::Stop,
            still_queued: vec![],
        };
        let mut progress = Progress::default();
        let told = [
            event(1, 1, 0, EventKind::RunStarted { trigger: Trigger::Prompt }),
            event(2, 1, 1, model(1)),
            event(3, 1, 1, model(2)),
            event(4, 1, 2, model(3)),
            event(5, 1, 2, stop()),
            event(6, 1, 2, stop()),
            event(7, 2, 0, EventKind::RunStarted { trigger: Trigger::Mail(vec![]) }),
            event(8, 2, 1, model(4)),
        ];
        let stood: Vec<_> = told
            .iter()
            .map(|event| {
                progress.note(event);
                (progress.run, progress.turn, progress.turn_seq, progress.stop_seq, progress.turns)
            })
            .collect();
        assert_eq!(stood[3], (1, 2, 4, 0, 2));
        assert_eq!(stood[5], (1, 2, 4, 5, 2));
        assert_eq!(stood[6], (2, 0, 7, 0, 2));
        assert_eq!(stood[7], (2, 1, 8, 0, 3));
        assert_eq!(progress.calls, 4);
    }

    #[test]
    fn the_tail_begins_where_its_first_event_is() {
        let started = event(1, 1, 0, EventKind::RunStarted { trigger: Trigger::Prompt });
        let model = |seq, turn| {
            let kind = EventKind::ModelStarted { call: seq, messages: 1, purpose: Purpose::Turn };
            event(seq, 1, turn, kind)
        };
        let stop = |seq, turn| {
            let (by, still_queued) = ("user".into(), vec![]);
            let kind = EventKind::StopRequested { by, scope: Scope::Agent, reason: Halt::Stop, still_queued };
            event(seq, 1, turn, kind)
        };
        let rows = [
            vec![started.clone()],
            vec![started.clone(), model(2, 1), model(3, 2)],
            vec![started.clone(), model(2, 1), stop(3, 1), model(4, 2)],
            vec![started, model(2, 1), model(3, 2), stop(4, 2), stop(5, 2)],
        ];
        for told in rows {
            let mut progress = Progress::default();
            for event in &told {
                progress.note(event);
            }
            let first = told.iter().find(|event| progress.is_in_tail(event)).map(|event| event.seq);
            assert_eq!(first, Some(progress.tail_begins()), "{told:?}");
            assert!(progress.is_open(0) && !progress.is_open(1));
        }
    }
}
