//! What the writer knows of a session under one epoch: where its conversations and runs
//! stand, and whether its writes still count.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use midturn_core::engine::ports::StoreError;
use midturn_core::rules::event::{Event, EventKind, PlanStep};
use midturn_core::rules::id::{AgentName, RunId, SessionId, TurnId};
use parking_lot::Mutex;

use crate::nul::hide;

/// A session under one epoch.
#[derive(Debug)]
pub(crate) struct Lane {
    /// The session's id as the tables have it.
    pub(crate) session: Arc<str>,
    pub(crate) epoch: u64,
    /// How many transactions are on their way.
    pub(crate) in_flight: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    broken: Option<StoreError>,
    agents: HashMap<AgentName, Progress>,
}

/// Where an agent stands. It is kept beside the events so that nobody has to read them all.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Progress {
    /// How many lines its conversation has.
    pub(crate) lines: u64,
    /// Its last run, and the last turn of it.
    pub(crate) run: RunId,
    pub(crate) turn: TurnId,
    /// The number of the first event of that turn.
    pub(crate) turn_seq: u64,
    /// The number of the first request to stop that run; 0 if there was none.
    pub(crate) stop_seq: u64,
    /// How many turns it has taken in all its runs.
    pub(crate) turns: u64,
    /// The number of its last model call.
    pub(crate) calls: u64,
    pub(crate) closed: bool,
    pub(crate) plan: Vec<PlanStep>,
}

impl Lane {
    pub(crate) fn new(session: &SessionId, epoch: u64, agents: HashMap<AgentName, Progress>) -> Self {
        Self {
            session: hide(session.as_str()).into(),
            epoch,
            in_flight: AtomicUsize::new(0),
            state: Mutex::new(State { broken: None, agents }),
        }
    }

    /// Why nothing of it counts any more, if that is so.
    pub(crate) fn broken(&self) -> Option<StoreError> {
        self.state.lock().broken.clone()
    }

    /// Nothing that was submitted after what failed counts. The first reason stands.
    pub(crate) fn break_off(&self, error: &StoreError) {
        self.state.lock().broken.get_or_insert_with(|| error.clone());
    }

    pub(crate) fn progress(&self, agent: &AgentName) -> Progress {
        self.state.lock().agents.get(agent).cloned().unwrap_or_default()
    }

    /// What was written is where the next group begins.
    pub(crate) fn advance(&self, agent: AgentName, progress: Progress) {
        self.state.lock().agents.insert(agent, progress);
    }
}

impl Progress {
    /// Takes note of an event of the agent. Whether anything but `lines` changed.
    pub(crate) fn note(&mut self, event: &Event) -> bool {
        let moved = self.moves_to(event);
        let noted = match &event.kind {
            EventKind::ModelStarted { call, .. } => {
                self.calls = *call;
                true
            }
            EventKind::StopRequested { .. } if self.stop_seq == 0 => {
                self.stop_seq = event.seq;
                true
            }
            EventKind::PlanUpdated { steps } => {
                self.plan.clone_from(steps);
                true
            }
            EventKind::AgentClosed {} => {
                self.closed = true;
                true
            }
            _ => false,
        };
        moved || noted
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
}

#[cfg(test)]
mod tests {
    use midturn_core::rules::compaction::Purpose;
    use midturn_core::rules::event::{Place, Scope, Trigger, VERSION};
    use midturn_core::rules::time::Micros;

    use super::*;

    fn event(seq: u64, run: u64, turn: u32, kind: EventKind) -> Event {
        let agent = AgentName::new("a").unwrap();
        Event { v: VERSION, seq, t: Micros(seq), at: Place::of(&agent, run, turn), kind }
    }

    #[test]
    fn turns_calls_and_stops_are_counted_from_the_events() {
        let model = |call| EventKind::ModelStarted { call, messages: 1, purpose: Purpose::Turn };
        let stop =
            || EventKind::StopRequested { by: "user".into(), scope: Scope::Agent, still_queued: vec![] };
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
}
