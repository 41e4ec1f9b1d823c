//! The simulator: instants played in rounds of three steps (scenarios.md section 2), one after the other.
//!
//! Plain and slow on purpose. Step (1) is in `arrive.rs`, `halt.rs` and `process.rs`, step (2) in `ends.rs`, step (3)
//! in `boundary.rs` and `tools.rs`; limits are in `limits.rs`, the coordinator's own tools in `coordinator.rs`.

use super::limits::Session;
use super::model::*;
use super::process::Process;
use super::reading::Reading;
use super::result::*;
use super::state::*;
use std::collections::BTreeSet;

/// Rounds in one instant after which the scenario fails.
const MAX_ROUNDS: u32 = 10_000;
/// Instants after which the simulation gives up: a scenario that never ends is a mistake of the generator.
const MAX_INSTANTS: u32 = 100_000;

/// One item of the file while the scenario plays.
#[derive(Clone, Debug)]
pub struct ItemState {
    pub due: Option<Micros>,
    /// The round in which it fell due, for the order of what waits for a take-up.
    pub round: u64,
    pub sent: bool,
}

/// Everything that changes while a scenario plays.
pub struct World<'a> {
    pub sc: &'a Scenario,
    pub reading: Reading,
    pub now: Micros,
    /// Counts all rounds of the session.
    pub round: u64,
    /// Which step of the round is played.
    pub step: u8,
    pub agents: Vec<AgentState>,
    /// The order of step (3): file, then spawn.
    pub order: Vec<usize>,
    pub items: Vec<ItemState>,
    /// What an `ends_after` waits for, and when it came: its instant and the first round in which it counts.
    pub anchors: Vec<(Anchor, Option<(Micros, u64)>)>,
    pub caused: Vec<Caused>,
    /// Accepted urgent messages from one agent to another: from, to, when.
    pub urgent_log: Vec<(usize, usize, Micros)>,
    pub session: Session,
    pub process: Process,
    /// How many mails there were.
    pub uids: u64,
    pub found: Findings,
    /// Whether this round changed anything.
    pub changed: bool,
}

/// Plays a scenario to its end.
pub fn simulate(sc: &Scenario, reading: &Reading) -> Findings {
    let mut world = World::new(sc, reading.clone());
    for _ in 0..MAX_INSTANTS {
        let mut rounds = 0;
        while world.play_round() {
            rounds += 1;
            if rounds > MAX_ROUNDS {
                world.found.broken = Some(format!("more than {MAX_ROUNDS} rounds at {} us", world.now));
                return world.found;
            }
        }
        match world.next_time() {
            Some(next) => world.now = next,
            None => return world.settled(),
        }
    }
    world.found.broken = Some("it never ends".to_string());
    world.found
}

impl<'a> World<'a> {
    /// One round; whether it changed anything.
    fn play_round(&mut self) -> bool {
        self.changed = false;
        self.round += 1;
        self.step = 1;
        self.step_arrivals();
        if !self.process.is_down() {
            self.step = 2;
            self.step_ends();
            self.step = 3;
            self.step_boundaries();
            self.end_shutdown();
        }
        self.changed
    }

    /// What was found, without the runs that never began.
    fn settled(mut self) -> Findings {
        self.found.runs.retain(|run| run.run != 0);
        let waits = |anchor: &Option<Anchor>| anchor.as_ref().is_some_and(|a| self.fired(a).is_none());
        let never = self.agents.iter().any(|agent| match agent.run.as_ref().map(|r| &r.step) {
            Some(Step::Model { entry: Some(entry), .. }) => waits(&entry.ends_after),
            Some(Step::Tools(turn)) => turn.jobs.iter().any(|j| !j.done() && waits(&j.call.ends_after)),
            _ => false,
        });
        if never {
            self.found.invalid = Some("an ends_after never comes".to_string());
        }
        self.found
    }

    fn new(sc: &'a Scenario, reading: Reading) -> World<'a> {
        let mut depths: Vec<u32> = Vec::new();
        let mut agents = Vec::new();
        for agent in &sc.agents {
            let depth = agent.parent.map_or(0, |p| depths.get(p).map_or(0, |d| d + 1));
            depths.push(depth);
            agents.push(AgentState::new(agent, depth, Effective::new(&sc.settings, &agent.settings)));
        }
        let due = |item: &Item| match item.when {
            When::At(at) => Some(at),
            When::After { .. } => None,
        };
        let mut world = World {
            sc,
            reading,
            now: 0,
            round: 0,
            step: 0,
            agents,
            order: (0..sc.agents.len()).filter(|i| !sc.agents[*i].spawned).collect(),
            items: sc.items.iter().map(|i| ItemState { due: due(i), round: 0, sent: false }).collect(),
            anchors: anchors(sc),
            caused: Vec::new(),
            urgent_log: Vec::new(),
            session: Session::new(sc.settings.session),
            process: Process::Up,
            uids: 0,
            found: Findings::default(),
            changed: false,
        };
        for agent in world.order.clone() {
            if let Some(prompt) = sc.agents[agent].prompt.clone() {
                world.prompt(agent, prompt);
            }
        }
        world
    }

    /// A prompt's run is there from the spawn on.
    pub fn prompt(&mut self, agent: usize, prompt: String) {
        self.found.prompts.push((agent, prompt));
        self.agents[agent].prompt = self.sc.agents[agent].model.is_some();
        self.wake(agent);
    }

    /// Notes an event, which changes the round and may be what an `after` or an `ends_after` waits for.
    pub fn emit(&mut self, agent: usize, event: &str, id: &str) {
        self.changed = true;
        for (item, state) in self.sc.items.iter().zip(self.items.iter_mut()) {
            let When::After { agent: a, event: e, of, plus } = &item.when else {
                continue;
            };
            if state.due.is_none() && *a == agent && e == event && (of == "any" || of == id) {
                state.due = Some(self.now + plus.unwrap_or(0));
                state.round = if plus.unwrap_or(0) == 0 { self.round } else { 0 };
            }
        }
        // "In the next (2): of the same round, when the event came in (1)."
        let counts_from = if self.step <= 1 { self.round } else { self.round + 1 };
        for (anchor, came) in &mut self.anchors {
            let it =
                anchor.agent == agent && anchor.event == event && (anchor.of == "any" || anchor.of == id);
            if it && came.is_none() {
                *came = Some((self.now, counts_from));
            }
        }
    }

    /// When the event of an `ends_after` came.
    fn fired(&self, anchor: &Anchor) -> Option<(Micros, u64)> {
        self.anchors.iter().find(|(a, _)| a == anchor).and_then(|(_, came)| *came)
    }

    /// When what began at `started` ends by itself: after `takes`, or with its event; none while that hasn't come.
    pub fn own_end(&self, started: Micros, takes: Micros, after: &Option<Anchor>) -> Option<Micros> {
        let Some(anchor) = after else {
            return Some(started + takes);
        };
        let (came, round) = self.fired(anchor)?;
        // An event of (2) or (3) counts from the next round on; one with `plus` at its instant.
        (round <= self.round || anchor.plus > 0).then(|| (came + anchor.plus).max(started))
    }

    /// The name that texts use.
    pub fn name(&self, agent: usize) -> &str {
        &self.sc.agents[agent].name
    }

    /// A sender's name in texts.
    pub fn sender_name(&self, from: Sender) -> String {
        match from {
            Sender::User => "the user".to_string(),
            Sender::Agent(i) => self.name(i).to_string(),
            Sender::Report { about, .. } => self.name(about).to_string(),
        }
    }

    /// Whether `above` is an ancestor of `agent`.
    pub fn is_ancestor(&self, above: usize, agent: usize) -> bool {
        let mut at = self.agents[agent].parent;
        while let Some(p) = at {
            if p == above {
                return true;
            }
            at = self.agents[p].parent;
        }
        false
    }

    /// Whether a sender is a person or an ancestor of the receiver.
    pub fn is_above(&self, from: Sender, to: usize) -> bool {
        match from {
            Sender::User => true,
            Sender::Agent(i) => self.is_ancestor(i, to),
            Sender::Report { .. } => false,
        }
    }

    /// An agent and all spawned agents below it, leaves first.
    pub fn subtree(&self, root: usize) -> Vec<usize> {
        let mut out = Vec::new();
        for i in (0..self.agents.len()).filter(|i| self.agents[*i].parent == Some(root)) {
            out.extend(self.subtree(i));
        }
        if self.agents[root].life != Life::Unspawned {
            out.push(root);
        }
        out
    }

    /// Notes that the scenario came upon a rule.
    pub fn met(&mut self, rule: &'static str) {
        self.found.met.insert(rule);
    }

    /// The next instant at which anything can happen.
    fn next_time(&self) -> Option<Micros> {
        if let Process::Down { until } = self.process {
            return Some(until).filter(|t| *t > self.now);
        }
        let mut times: Vec<Micros> = Vec::new();
        for item in self.items.iter().filter(|i| !i.sent) {
            times.extend(item.due);
        }
        for (index, agent) in self.agents.iter().enumerate() {
            times.extend(agent.mailbox.iter().filter(|m| !m.committed).filter_map(|m| m.expires_at));
            times.extend(self.time_limit_of(index).map(|(at, _)| at));
            match agent.run.as_ref().map(|r| &r.step) {
                Some(Step::Model { entry: Some(e), started, .. }) => {
                    times.extend(self.own_end(*started, e.takes, &e.ends_after));
                }
                Some(Step::Pause { until, .. }) => times.push(*until),
                Some(Step::Tools(turn)) => {
                    times.extend(turn.jobs.iter().flat_map(|job| self.job_times(job)));
                    times.extend(self.shutdown_deadline(index));
                }
                _ => {}
            }
        }
        times.into_iter().filter(|t| *t > self.now).min()
    }

    /// The instants at which a call by itself does something.
    fn job_times(&self, job: &Job) -> Vec<Micros> {
        let Phase::Running { started, duty, abort, .. } = &job.phase else {
            return Vec::new();
        };
        if let Some(abort) = abort {
            return vec![abort.ends];
        }
        match duty {
            Duty::Timed => match self.own_end(*started, job.call.takes, &job.call.ends_after) {
                Some(returns) => vec![returns, returns + job.call.continues.unwrap_or(0)],
                None => Vec::new(),
            },
            Duty::Wait { until, .. } => vec![*until],
            Duty::Instant | Duty::Halt { .. } => Vec::new(),
        }
    }
}

/// Every event that an `ends_after` of the file names.
fn anchors(sc: &Scenario) -> Vec<(Anchor, Option<(Micros, u64)>)> {
    let mut out: Vec<Anchor> = Vec::new();
    for entry in sc.agents.iter().flat_map(|a| a.model.iter().flatten()) {
        let own = entry.ends_after.iter().chain(entry.tools.iter().flat_map(|c| &c.ends_after));
        for anchor in own {
            if !out.contains(anchor) {
                out.push(anchor.clone());
            }
        }
    }
    out.into_iter().map(|a| (a, None)).collect()
}

impl AgentState {
    fn new(agent: &Agent, depth: u32, settings: Effective) -> AgentState {
        AgentState {
            life: if agent.spawned { Life::Unspawned } else { Life::Open },
            parent: agent.parent,
            depth,
            mailbox: Vec::new(),
            last: None,
            run: None,
            runs: 0,
            prompt: false,
            resume: false,
            stopped: false,
            shut_down: false,
            unanswered: false,
            end_read: false,
            next_entry: 0,
            calls: 0,
            spent: Spent::default(),
            reached: BTreeSet::new(),
            last_text: String::new(),
            settings,
        }
    }
}
