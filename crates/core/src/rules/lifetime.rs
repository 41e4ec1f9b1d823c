//! How long a session has lived and its agents have worked, and the limits that a person has set
//! meanwhile, as far as the events tell. Time counts while a process lives, so what lies between
//! the last event of one and the take-up by the next counts for nothing (semantics.md, section 7).

use std::collections::HashMap;

use super::event::{Event, EventKind};
use super::id::AgentName;
use super::settings::LimitsPatch;
use super::time::{Micros, Span};

/// Limits that were set, and the number of the last event that set any; 0: none did.
pub type SetLimits = (LimitsPatch, u64);

/// Reads a session's events, all of them or those of [`Lifetime::TYPES`], in order.
#[derive(Clone, Debug, Default)]
pub struct Lifetime {
    /// Since when this process has it, and when its last event was.
    since: Micros,
    last: Micros,
    /// How long earlier processes had it.
    before: Span,
    limits: SetLimits,
    agents: HashMap<AgentName, Work>,
}

#[derive(Clone, Debug, Default)]
struct Work {
    done: Span,
    /// Since when the run that is open is being counted.
    since: Option<Micros>,
    limits: SetLimits,
}

impl Lifetime {
    /// The types of the events that it has to note; of others only the times count.
    pub const TYPES: [&str; 4] = ["session_resumed", "run_started", "run_finished", "limit_raised"];

    /// So far the session's last event has come.
    pub fn reaches(&mut self, t: Micros) {
        self.last = self.last.max(t);
    }

    /// Takes note of the next event.
    pub fn note(&mut self, event: &Event) {
        let work = event.at.agent.clone().map(|agent| self.agents.entry(agent).or_default());
        match (&event.kind, work) {
            (EventKind::SessionResumed { .. }, _) => self.goes_on(event.t),
            (EventKind::RunStarted { .. }, Some(work)) => work.since = Some(event.t),
            (EventKind::RunFinished { .. }, Some(work)) => work.until(event.t),
            (EventKind::LimitRaised { limits, .. }, Some(work)) => set(&mut work.limits, limits, event.seq),
            (EventKind::LimitRaised { limits, .. }, None) => set(&mut self.limits, limits, event.seq),
            (_, _) => {}
        }
        self.reaches(event.t);
    }

    /// Another process has taken the session up; what its runs did since the last event is lost.
    fn goes_on(&mut self, t: Micros) {
        self.before = self.lived();
        self.since = t;
        for work in self.agents.values_mut().filter(|work| work.since.is_some()) {
            work.until(self.last);
            work.since = Some(t);
        }
    }

    /// How long processes have had the session.
    pub fn lived(&self) -> Span {
        Span(self.before.0.saturating_add(self.last.since(self.since).0))
    }

    /// The session's limits that were set.
    pub fn limits(&self) -> SetLimits {
        self.limits.clone()
    }

    /// How long an agent was at work, and its limits that were set.
    pub fn of(&self, agent: &AgentName) -> (Span, SetLimits) {
        let Some(work) = self.agents.get(agent) else { return Default::default() };
        let open = work.since.map_or(Span::ZERO, |since| self.last.since(since));
        (Span(work.done.0.saturating_add(open.0)), work.limits.clone())
    }
}

impl Work {
    fn until(&mut self, t: Micros) {
        if let Some(since) = self.since.take() {
            self.done = Span(self.done.0.saturating_add(t.since(since).0));
        }
    }
}

/// Lays limits over those that were set before.
fn set(limits: &mut SetLimits, patch: &LimitsPatch, seq: u64) {
    let (all, at) = limits;
    all.max_turns = patch.max_turns.or(all.max_turns);
    all.max_tokens = patch.max_tokens.or(all.max_tokens);
    all.max_cost = patch.max_cost.or(all.max_cost);
    all.max_time = patch.max_time.or(all.max_time);
    *at = seq;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::event::{Outcome, Place, Trigger, VERSION};

    #[test]
    fn time_counts_while_a_process_lives_and_limits_add_up() {
        let worker = AgentName::new("worker").unwrap();
        let of = |run| Place::of(&worker, run, 0);
        let starts = || EventKind::RunStarted { trigger: Trigger::Prompt };
        let ends = || EventKind::RunFinished {
            outcome: Outcome::Finished,
            error: None,
            turns: 1,
            usage: Default::default(),
        };
        let raised = |turns, time| EventKind::LimitRaised {
            by: "user".into(),
            limits: LimitsPatch { max_turns: turns, max_time: time, ..LimitsPatch::default() },
        };
        let told = [
            (of(1), 1, starts()),
            (of(1), 4, ends()),
            (of(1), 9, raised(Some(7), None)),
            (of(2), 10, starts()),
            (of(2), 12, raised(None, Some(Span(5)))),
            (Place::default(), 100, EventKind::SessionResumed { version: "1".into() }),
            (of(2), 103, ends()),
            (Place::default(), 110, raised(Some(1), None)),
        ];
        let mut lifetime = Lifetime::default();
        for (seq, (at, t, kind)) in (1..).zip(told) {
            assert!(Lifetime::TYPES.contains(&kind.type_name()), "{kind:?}");
            lifetime.note(&Event { v: VERSION, seq, t: Micros(t), at, kind });
        }
        assert_eq!(lifetime.lived(), Span(12 + 10));
        let (worked, limits) = lifetime.of(&worker);
        assert_eq!(worked, Span(3 + 2 + 3));
        let expected = LimitsPatch { max_turns: Some(7), max_time: Some(Span(5)), ..LimitsPatch::default() };
        assert_eq!(limits, (expected, 5));
        assert_eq!(lifetime.limits().1, 8);
    }
}
