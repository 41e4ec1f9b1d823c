//! A seeded generator of valid scenarios that are likely to hit races: a coarse grid of times, so that many things
//! fall on one instant, few agents and much mail.
//!
//! The same level and seed give the same scenario for ever as long as this file is not changed; a scenario that found
//! something is kept as YAML, not as a seed.

use super::kinds::Kinds;
use super::model::*;

/// A small generator of numbers (SplitMix64): the scenarios must not change with a dependency.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator for a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is at least 1.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of a list, which is not empty.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

/// The step of the grid of times.
pub const GRID: Micros = 250_000;

/// What a scenario has more of than others, so that rare rules are met often enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// A bit of everything.
    Mixed,
    /// Mail in every step of the grid, against which only the progress guard helps.
    Starve,
    /// Model calls that fail.
    Retry,
    /// Agents that wait for each other.
    Wait,
}

/// A scenario in the making.
pub struct Gen {
    pub theme: Theme,
    pub rng: Rng,
    pub sc: Scenario,
    pub level: u32,
    /// Counts the calls, for their ids.
    pub calls: u32,
    /// Counts the messages of `send_message` calls, for theirs.
    pub sends: u32,
}

/// The scenario of a level (1 to 3) and a seed; of level 4 with all kinds that are on by default.
pub fn generate(level: u32, seed: u64) -> Scenario {
    generate_with(level, seed, &Kinds::new("").made)
}

/// The same, with these kinds in level 4.
pub fn generate_with(level: u32, seed: u64, kinds: &[&'static str]) -> Scenario {
    let mut rng = Rng::new(seed.wrapping_mul(8).wrapping_add(u64::from(level)));
    let theme = match rng.below(20) {
        0..=2 => Theme::Starve,
        3 | 4 if level >= 3 => Theme::Retry,
        5 | 6 if level >= 3 => Theme::Wait,
        _ => Theme::Mixed,
    };
    let mut g = Gen { theme, rng, sc: Scenario::default(), level, calls: 0, sends: 0 };
    g.sc.name = format!("level {level} seed {seed}");
    if level >= 2 {
        g.settings();
    }
    g.agents();
    g.models();
    g.items();
    if level >= 4 && !kinds.is_empty() {
        for _ in 0..1 + g.rng.below(2) {
            let kind = g.rng.pick(kinds);
            g.add_kind(kind);
        }
        g.check_references();
    }
    g.sc
}

impl Gen {
    /// A multiple of the grid, below `steps` of them; now and then a microsecond beside it.
    pub fn grid(&mut self, steps: u64) -> Micros {
        let at = self.rng.below(steps) * GRID;
        if at > 0 && self.rng.chance(3) { at + 1 - 2 * self.rng.below(2) } else { at }
    }

    /// A `supersedes` or a `withdraw` names what stands before it in the file; what lost that is without.
    fn check_references(&mut self) {
        let mut seen: Vec<String> = Vec::new();
        let mut items = std::mem::take(&mut self.sc.items);
        items.retain_mut(|item| {
            let known = |id: &String| seen.contains(id);
            let keep = match &mut item.act {
                Act::Withdraw { message, .. } => known(message),
                Act::Message(m) => {
                    m.supersedes = m.supersedes.take().filter(known);
                    m.if_queued &= m.supersedes.is_some();
                    true
                }
                _ => true,
            };
            seen.push(item.id.clone());
            keep
        });
        self.sc.items = items;
    }

    fn settings(&mut self) {
        let rng = &mut self.rng;
        let s = &mut self.sc.settings;
        if rng.chance(if self.theme == Theme::Mixed { 15 } else { 40 }) {
            s.urgent_cuts_stream = Some(false);
        }
        if rng.chance(20) {
            s.keep_edits_together = Some(true);
        }
        match rng.below(10) {
            0 | 1 => s.max_parallel_tools = Some(1 + rng.below(3) as usize),
            2 => s.concurrency_all = Some(true),
            _ => {}
        }
        if rng.chance(10) {
            s.abort_deadline = Some(rng.pick(&[GRID, 2 * GRID, 4 * GRID]));
        }
        if rng.chance(10) {
            s.mailbox_messages = Some(1 + rng.below(3) as usize);
        }
        let urgencies = [Urgency::FollowUp, Urgency::AfterTools, Urgency::NextBoundary, Urgency::Urgent];
        if rng.chance(10) {
            s.from_above = Some(rng.pick(&urgencies));
        }
        // `urgent` as the default of those who may not send it is left out: the pages don't say what it means.
        if rng.chance(10) {
            s.from_others = Some(rng.pick(&urgencies[..3]));
        }
        if rng.chance(10) {
            s.to_lead = Some(rng.pick(&urgencies[..3]));
        }
        if rng.chance(20) {
            s.urgent_from_peers = Some(true);
        }
        if rng.chance(15) {
            s.urgent_per_minute = Some(1 + rng.below(3) as usize);
        }
        if self.level >= 3 {
            self.settings_of_failures();
        }
    }

    fn settings_of_failures(&mut self) {
        let rng = &mut self.rng;
        let s = &mut self.sc.settings;
        if rng.chance(15) {
            s.return_on_error = Some(true);
        }
        if rng.chance(6) {
            s.limits.turns = Some(1 + rng.below(4));
        }
        if rng.chance(10) {
            s.retry_attempts = Some(1 + rng.below(3) as u32);
        }
        if rng.chance(10) {
            s.retry_base = Some(GRID);
        }
        if rng.chance(5) {
            s.retry_cap = Some(2 * GRID);
        }
        if rng.chance(5) {
            s.max_depth = Some(1);
        }
    }

    fn add(&mut self, name: &str, parent: Option<usize>, model: bool) {
        let prompted = model && self.rng.chance(85);
        self.sc.agents.push(Agent {
            name: name.to_string(),
            parent,
            prompt: prompted.then(|| format!("Begin, {name}.")),
            model: model.then(Vec::new),
            ..Agent::default()
        });
    }

    fn agents(&mut self) {
        let lead_works = self.level >= 3 && self.rng.chance(70);
        self.add("lead", None, lead_works);
        self.sc.agents[0].lead = true;
        self.add("worker", Some(0), true);
        if self.level == 1 || !self.rng.chance(if self.level == 2 { 60 } else { 80 }) {
            return;
        }
        let parent = self.rng.below(2) as usize;
        let works = self.level >= 3 && self.rng.chance(85);
        self.add("second", Some(parent), works);
        if self.level >= 3 && self.rng.chance(40) {
            let parent = self.rng.below(3) as usize;
            let works = self.rng.chance(70);
            self.add("third", Some(parent), works);
        }
        for i in 2..self.sc.agents.len() {
            let parent_works = self.sc.agents[i].parent.is_some_and(|p| self.sc.agents[p].model.is_some());
            let has_children = self.sc.agents.iter().any(|a| a.parent == Some(i));
            let parent_there = self.sc.agents[i].parent.is_some_and(|p| !self.sc.agents[p].spawned);
            let agent = &mut self.sc.agents[i];
            if agent.model.is_some() && !has_children && parent_works && parent_there && self.rng.chance(30) {
                agent.spawned = true;
                agent.prompt = None;
            }
        }
        if self.level >= 3 && self.rng.chance(15) {
            let i = self.rng.below(self.sc.agents.len() as u64) as usize;
            self.sc.agents[i].settings.urgent_cuts_stream = Some(self.rng.chance(50));
            self.sc.agents[i].settings.keep_edits_together = Some(self.rng.chance(50));
        }
    }

    fn models(&mut self) {
        for i in 0..self.sc.agents.len() {
            if self.sc.agents[i].model.is_some() {
                let entries = self.entries(i);
                self.sc.agents[i].model = Some(entries);
            }
        }
    }

    fn entries(&mut self, agent: usize) -> Vec<Entry> {
        let mut out = Vec::new();
        let busy = 1 + self.rng.below(5);
        for n in 0..busy {
            out.push(self.entry(agent, n, 85));
        }
        // Mail makes further turns: a script that never runs out shows more than one that does.
        let spare = if self.rng.chance(90) { 4 + self.rng.below(6) } else { 0 };
        for n in 0..spare {
            out.push(self.entry(agent, busy + n, 15));
        }
        let spawns: Vec<usize> = (0..self.sc.agents.len())
            .filter(|c| self.sc.agents[*c].spawned && self.sc.agents[*c].parent == Some(agent))
            .collect();
        for child in spawns {
            let call = self.spawn_call(child);
            let at = self.rng.below(busy) as usize;
            if out[at].error.is_none() {
                let place = self.rng.below(out[at].tools.len() as u64 + 1) as usize;
                out[at].tools.insert(place, call);
            }
        }
        out
    }

    fn entry(&mut self, agent: usize, n: u64, tools_percent: u64) -> Entry {
        let starving = self.theme == Theme::Starve;
        let takes = if starving { GRID * (1 + self.rng.below(2)) } else { self.grid(6) };
        let errors = if self.theme == Theme::Retry { 35 } else { 8 };
        if self.level >= 3 && self.rng.chance(errors) {
            let kinds = [
                ModelError::Overloaded,
                ModelError::RateLimited,
                ModelError::Server,
                ModelError::Connection,
                ModelError::Overloaded,
                ModelError::InvalidRequest,
            ];
            let retry_after = self.rng.chance(30).then(|| self.grid(8));
            return Entry { takes, error: Some(self.rng.pick(&kinds)), retry_after, ..Entry::default() };
        }
        let words = 1 + self.rng.below(8);
        let mut text = format!("Reply{n}");
        for w in 1..words {
            text.push_str(&format!(" w{w}"));
        }
        if self.rng.chance(5) {
            text.push_str("\nand a second line");
        }
        let mut tools = Vec::new();
        if starving || self.rng.chance(tools_percent) {
            for _ in 0..1 + self.rng.below(5) {
                let call = self.call(agent);
                tools.push(call);
            }
        }
        let mut entry = Entry { text: Some(text), takes, tools, ..Entry::default() };
        if self.level >= 3 && self.rng.chance(3) {
            entry.stop_reason = Some("max_tokens".to_string());
        }
        if self.level >= 3 && self.rng.chance(2) {
            entry.text = None;
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::Reading;
    use super::super::simulate::simulate;
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_scenario() {
        for level in 1..=4 {
            assert_eq!(generate(level, 7), generate(level, 7));
            assert_ne!(generate(level, 7), generate(level, 8));
        }
    }

    #[test]
    fn every_scenario_comes_to_an_end() {
        let all = Kinds::new("all").made;
        for level in 1..=4 {
            for seed in 0..500 {
                let found = simulate(&generate_with(level, seed, &all), &Reading::default());
                assert_eq!(found.broken, None, "level {level} seed {seed}");
            }
        }
    }
}
