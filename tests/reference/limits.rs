//! Limits over an agent's life and a session's (semantics.md sections 3 and 7), as far as the pages determine them.

use super::model::*;
use super::result::*;
use super::simulate::World;
use super::state::*;
use std::collections::BTreeSet;

/// What the session as a whole has used and may use.
#[derive(Clone, Debug)]
pub struct Session {
    pub limits: Limits,
    pub turns: u64,
    pub reached: BTreeSet<&'static str>,
}

impl Session {
    pub fn new(limits: Limits) -> Session {
        Session { limits, turns: 0, reached: BTreeSet::new() }
    }
}

const SESSION: [&str; 2] = ["session.max_turns", "session.max_time"];

impl World<'_> {
    /// The time of an agent's runs so far.
    fn time_spent(&self, agent: usize) -> Micros {
        let state = &self.agents[agent];
        state.spent.time + state.run.as_ref().map_or(0, |r| self.now - r.began)
    }

    /// Every limit that leaves an agent nothing for another turn.
    fn used_up(&mut self, agent: usize) -> Vec<&'static str> {
        let time = self.time_spent(agent);
        let (limits, spent) = (self.agents[agent].settings.limits, self.agents[agent].spent);
        let reaches = |limit: Option<u64>, spent: u64| limit.is_some_and(|l| spent >= l);
        if limits.tokens.is_some_and(|l| spent.unsure && spent.tokens < l) {
            self.found.undetermined = Some("tokens of a call that was cut or failed".to_string());
        }
        let session = &self.session;
        [
            ("max_turns", reaches(limits.turns, spent.turns)),
            ("max_tokens", reaches(limits.tokens, spent.tokens)),
            ("max_time", reaches(limits.time, time)),
            (SESSION[0], reaches(session.limits.turns, session.turns)),
            (SESSION[1], reaches(session.limits.time, self.now)),
        ]
        .into_iter()
        .filter(|(_, used)| *used)
        .map(|(name, _)| name)
        .collect()
    }

    /// The limit at which no further turn may begin.
    pub fn at_limit(&mut self, agent: usize) -> Option<&'static str> {
        self.used_up(agent).first().copied()
    }

    /// "Reached once it has begun to end a run, or a run has ended with nothing left for another turn."
    pub fn reach(&mut self, agent: usize, limit: &'static str) {
        if SESSION.contains(&limit) {
            self.session.reached.insert(limit);
        } else {
            self.agents[agent].reached.insert(limit);
        }
    }

    /// What a run's end leaves nothing of.
    pub fn reach_used_up(&mut self, agent: usize) {
        for limit in self.used_up(agent) {
            self.reach(agent, limit);
        }
    }

    /// Whether an agent has reached a limit: its own, or the session's while it rests.
    pub fn limited(&self, agent: usize) -> bool {
        let state = &self.agents[agent];
        let ending = self.ending_at(agent).is_some();
        match &state.run {
            Some(_) if !ending => false,
            _ => !state.reached.is_empty() || !self.session.reached.is_empty(),
        }
    }

    /// When a limit in time ends an agent's run, and which.
    pub fn time_limit_of(&self, agent: usize) -> Option<(Micros, &'static str)> {
        let state = &self.agents[agent];
        let run = state.run.as_ref().filter(|r| r.stop.is_none())?;
        let own = state.settings.limits.time;
        let own = own.map(|l| (run.began + l.saturating_sub(state.spent.time), "max_time"));
        let all = self.session.limits.time.map(|l| (l, SESSION[1]));
        own.into_iter().chain(all).min()
    }

    /// Limits in time cancel the run's token.
    pub fn time_limits(&mut self) {
        for agent in self.order.clone() {
            let begun = self.agents[agent].run.as_ref().is_some_and(|r| !matches!(r.step, Step::Start));
            let Some((_, limit)) = self.time_limit_of(agent).filter(|(at, _)| *at <= self.now && begun)
            else {
                continue;
            };
            self.reach(agent, limit);
            // The page names the agent's own limit only.
            let word = if limit == "max_time" { limit.to_string() } else { format!("{UNSAID}max_time") };
            if let Some(run) = self.agents[agent].run.as_mut() {
                run.stop = Some(Stop {
                    by: None,
                    name: format!("the limit {word}"),
                    kind: StopKind::Limit(limit),
                    call: None,
                    reason: Some("limit"),
                });
            }
            self.changed = true;
        }
    }

    /// A person raises or lowers limits of an agent or of the session.
    pub fn raise_arrives(&mut self, agent: Option<usize>, limits: Limits) {
        if !self.process.is_up() {
            return;
        }
        if self.below_spent(agent, limits) {
            self.found.invalid = Some("a raise below what is spent".to_string());
            return;
        }
        self.changed = true;
        self.found.raised.push((self.now, agent));
        let scope: Vec<usize> = match agent {
            Some(a) => {
                let own = &mut self.agents[a].settings.limits;
                *own = limits.or(*own);
                self.agents[a].reached.clear();
                vec![a]
            }
            None => {
                self.session.limits = limits.or(self.session.limits);
                self.session.reached.clear();
                self.order.clone()
            }
        };
        for a in &scope {
            // What has begun to end a run stays reached, unless it is that which is raised.
            let ending = self.ending_at(*a).filter(|limit| !raises(agent, limits, limit));
            if let Some(limit) = ending {
                self.reach(*a, limit);
            }
            let resting = self.agents[*a].run.is_none() && self.agents[*a].last.is_some();
            if resting {
                self.reach_used_up(*a);
            }
        }
        for a in scope {
            self.start_again(a);
        }
    }

    /// The limit that ends an agent's run.
    fn ending_at(&self, agent: usize) -> Option<&'static str> {
        match self.agents[agent].run.as_ref()?.stop.as_ref()?.kind {
            StopKind::Limit(limit) => Some(limit),
            _ => None,
        }
    }

    /// Whether a limit would be below what is spent of it.
    fn below_spent(&self, agent: Option<usize>, limits: Limits) -> bool {
        let (turns, tokens, time) = match agent {
            Some(a) => {
                let spent = &self.agents[a].spent;
                (spent.turns, spent.tokens, self.time_spent(a))
            }
            None => (self.session.turns, 0, self.now),
        };
        let below = |limit: Option<u64>, spent: u64| limit.is_some_and(|l| l < spent);
        below(limits.turns, turns) || below(limits.tokens, tokens) || below(limits.time, time)
    }

    /// Raised, a limit lets waiting mail wake its agent and starts again whoever's run it had ended.
    fn start_again(&mut self, agent: usize) {
        let state = &self.agents[agent];
        if state.life != Life::Open {
            return;
        }
        let ending = self.ending_at(agent).is_some() && !self.limited(agent);
        let ended = state.run.is_none() && state.last == Some(Outcome::Limit);
        if ending || (ended && !self.limited(agent)) {
            self.agents[agent].resume = true;
        }
        self.wake(agent);
    }
}

/// Whether a raise of an agent's limits, or of the session's, is one of this limit in time.
fn raises(agent: Option<usize>, limits: Limits, limit: &str) -> bool {
    limits.time.is_some() && agent.is_none() == limit.starts_with("session.")
}
