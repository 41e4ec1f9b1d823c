//! The simulator: instants played in rounds of three steps (scenarios.md section 2), one after the other.
//!
//! Plain and slow on purpose. Step (1) is in `arrive.rs` and `halt.rs`, step (2) in `ends.rs`, step (3) in
//! `boundary.rs` and `tools.rs`; the coordinator's own tools are in `coordinator.rs`.

use super::model::*;
use super::reading::Reading;
use super::result::*;
use super::state::*;

/// Rounds in one instant after which the scenario fails.
const MAX_ROUNDS: u32 = 10_000;
/// Instants after which the simulation gives up: a scenario that never ends is a mistake of the generator.
const MAX_INSTANTS: u32 = 100_000;

/// One item of the file while the scenario plays.
#[derive(Clone, Debug)]
pub struct ItemState {
    pub due: Option<Micros>,
    pub sent: bool,
}

/// Everything that changes while a scenario plays.
pub struct World<'a> {
    pub sc: &'a Scenario,
    pub reading: Reading,
    pub now: Micros,
    /// Counts all rounds of the session.
    pub round: u64,
    pub agents: Vec<AgentState>,
    /// The order of step (3): file, then spawn.
    pub order: Vec<usize>,
    pub items: Vec<ItemState>,
    pub caused: Vec<Caused>,
    /// Accepted urgent messages from one agent to another: from, to, when.
    pub urgent_log: Vec<(usize, usize, Micros)>,
    pub found: Findings,
    /// Whether this round changed anything.
    pub changed: bool,
}

/// Plays a scenario to its end.
pub fn simulate(sc: &Scenario, reading: &Reading) -> Findings {
    let mut world = World::new(sc, reading.clone());
    for _ in 0..MAX_INSTANTS {
        let mut rounds = 0;
        loop {
            world.changed = false;
            world.round += 1;
            world.step_arrivals();
            world.step_ends();
            world.step_boundaries();
            if !world.changed {
                break;
            }
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
    /// What was found, without the runs that never began.
    fn settled(mut self) -> Findings {
        self.found.runs.retain(|run| run.run != 0);
        self.found
    }

    fn new(sc: &'a Scenario, reading: Reading) -> World<'a> {
        let mut depths: Vec<u32> = Vec::new();
        let mut agents = Vec::new();
        for agent in &sc.agents {
            let depth = agent.parent.map_or(0, |p| depths.get(p).map_or(0, |d| d + 1));
            depths.push(depth);
            agents.push(AgentState {
                life: if agent.spawned { Life::Unspawned } else { Life::Open },
                parent: agent.parent,
                depth,
                mailbox: Vec::new(),
                last: None,
                run: None,
                runs: 0,
                prompt: !agent.spawned && agent.prompt.is_some() && agent.model.is_some(),
                resume: false,
                resumed: false,
                next_entry: 0,
                calls: 0,
                turns: 0,
                last_text: String::new(),
                settings: Effective::new(&sc.settings, &agent.settings),
            });
        }
        let order = (0..sc.agents.len()).filter(|i| !sc.agents[*i].spawned).collect();
        let items = sc
            .items
            .iter()
            .map(|item| ItemState {
                due: match item.when {
                    When::At(at) => Some(at),
                    When::After { .. } => None,
                },
                sent: false,
            })
            .collect();
        World {
            sc,
            reading,
            now: 0,
            round: 0,
            agents,
            order,
            items,
            caused: Vec::new(),
            urgent_log: Vec::new(),
            found: Findings::default(),
            changed: false,
        }
    }

    /// Notes an event, which changes the round and may be what an `after` waits for.
    pub fn emit(&mut self, agent: usize, event: &str, id: &str) {
        self.changed = true;
        for (item, state) in self.sc.items.iter().zip(self.items.iter_mut()) {
            let When::After { agent: a, event: e, of, plus } = &item.when else {
                continue;
            };
            if state.due.is_none() && *a == agent && e == event && (of == "any" || of == id) {
                state.due = Some(self.now + plus.unwrap_or(0));
            }
        }
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
        for i in 0..self.agents.len() {
            if self.agents[i].parent == Some(root) && self.agents[i].life != Life::Unspawned {
                out.extend(self.subtree(i));
            }
        }
        out.push(root);
        out
    }

    /// The next instant at which anything can happen.
    fn next_time(&self) -> Option<Micros> {
        let mut times: Vec<Micros> = Vec::new();
        for item in self.items.iter().filter(|i| !i.sent) {
            times.extend(item.due);
        }
        for agent in &self.agents {
            times.extend(agent.mailbox.iter().filter(|m| !m.committed).filter_map(|m| m.expires_at));
            match agent.run.as_ref().map(|r| &r.step) {
                Some(Step::Model { entry, started, .. }) => {
                    times.push(started + entry.as_ref().map_or(0, |e| e.takes));
                }
                Some(Step::Pause { until }) => times.push(*until),
                Some(Step::Start) => {}
                Some(Step::Tools(turn)) => times.extend(turn.jobs.iter().flat_map(job_times)),
                None => {}
            }
        }
        times.into_iter().filter(|t| *t > self.now).min()
    }
}

/// The instants at which a call by itself does something.
fn job_times(job: &Job) -> Vec<Micros> {
    let Phase::Running { started, duty, abort, .. } = &job.phase else {
        return Vec::new();
    };
    if let Some(abort) = abort {
        return vec![abort.ends];
    }
    match duty {
        Duty::Timed => {
            let returns = started + job.call.takes;
            vec![returns, returns + job.call.continues.unwrap_or(0)]
        }
        Duty::Wait { until, .. } => vec![*until],
        Duty::Instant | Duty::Halt { .. } => Vec::new(),
    }
}
