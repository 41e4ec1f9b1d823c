//! Level 4: a scenario of level 3 with more of one or two kinds (`kinds.rs`).

use super::generate::{GRID, Gen};
use super::model::*;
use serde_json::json;

impl Gen {
    /// Adds what a kind is about.
    pub fn add_kind(&mut self, kind: &str) {
        match kind {
            "supersedes" => self.more_supersedes(false),
            "if_queued" => self.more_supersedes(true),
            "asks" => self.asks(),
            "prompts" => self.at_the_prompt(),
            "resume" => self.resumes(),
            "room" => self.full_mailbox(),
            "turns" => self.turn_limits(),
            "raise" => self.raises(),
            "time" => self.time_limits(),
            "tokens" => self.token_limits(),
            "crash" | "shutdown" => self.process_ends(kind == "crash"),
            "ends_after" => self.anchored(),
            "words" => self.white_space(),
            "agents" => self.few_agents(),
            _ => self.halts(),
        }
    }

    fn put(&mut self, prefix: &str, at: Micros, act: Act) -> String {
        let id = format!("{prefix}{}", self.sc.items.len());
        let place = self.rng.below(self.sc.items.len() as u64 + 1) as usize;
        self.sc.items.insert(place, Item { id: id.clone(), when: When::At(at), act });
        id
    }

    /// Like `put`, behind all others: what refers to earlier items stands behind them.
    fn push(&mut self, prefix: &str, at: Micros, act: Act) -> String {
        let id = format!("{prefix}{}", self.sc.items.len());
        self.sc.items.push(Item { id: id.clone(), when: When::At(at), act });
        id
    }

    fn send(&mut self, at: Micros, from: Option<usize>, to: usize, urgency: Urgency) -> String {
        let text = format!("kind {}", self.sc.items.len());
        self.push("k", at, Act::Message(Message::new(from, To::Agent(to), &text, Wish::Full(urgency))))
    }

    fn writers(&mut self, to: usize) -> Option<usize> {
        let there: Vec<usize> =
            (0..self.sc.agents.len()).filter(|i| *i != to && !self.sc.agents[*i].spawned).collect();
        if there.is_empty() || self.rng.chance(40) { None } else { Some(self.rng.pick(&there)) }
    }

    fn any_urgency(&mut self) -> Urgency {
        let all = [
            Urgency::FollowUp,
            Urgency::AfterTools,
            Urgency::NextBoundary,
            Urgency::NextBoundary,
            Urgency::Urgent,
        ];
        self.rng.pick(&all)
    }

    /// One that works and is there from the start.
    fn worker(&mut self) -> usize {
        let working: Vec<usize> = (0..self.sc.agents.len())
            .filter(|i| self.sc.agents[*i].model.is_some() && !self.sc.agents[*i].spawned)
            .collect();
        self.rng.pick(&working)
    }

    fn more_supersedes(&mut self, if_queued: bool) {
        let to = self.worker();
        let from = self.writers(to);
        let mut last: Option<String> = None;
        let mut at = self.grid(8);
        for _ in 0..2 + self.rng.below(4) {
            let urgency = self.any_urgency();
            let id = self.send(at, from, to, urgency);
            let all = self.rng.chance(35);
            let (replaces, queued) = (self.rng.chance(80), if_queued && self.rng.chance(70));
            if let Some(Item { act: Act::Message(m), .. }) = self.sc.items.last_mut() {
                m.supersedes = last.take().filter(|_| replaces);
                m.if_queued = queued && m.supersedes.is_some();
                if all {
                    m.to = To::All;
                }
            }
            if self.rng.chance(20) {
                self.push("w", at + GRID, Act::Withdraw { message: id.clone(), by: from });
            }
            last = Some(id);
            at += GRID * self.rng.below(4);
        }
    }

    /// Calls that are slow to abort, so that there is time while a run ends.
    fn slow_aborts(&mut self, agent: usize) {
        let takes: Vec<Micros> = (0..8).map(|_| self.rng.pick(&[GRID, 2 * GRID, 4 * GRID])).collect();
        let calls = self.sc.agents[agent].model.iter_mut().flatten().flat_map(|e| &mut e.tools);
        for (call, takes) in calls.filter(|c| !c.is_coordinators()).zip(takes) {
            call.abort_takes = takes;
            call.takes += 2 * GRID;
        }
    }

    fn asks(&mut self) {
        let to = self.worker();
        self.slow_aborts(to);
        let mut at = self.grid(8) + GRID;
        for _ in 0..1 + self.rng.below(2) {
            if self.rng.chance(50) {
                let n = self.sc.items.len();
                self.push("a", at, Act::Supersede { agent: to, text: format!("instead {n}") });
            } else {
                self.push("a", at, Act::Stop { agent: to, by: None, subtree: self.rng.clone().chance(20) });
            }
            let mut ids: Vec<(String, Option<usize>)> =
                self.sc.items.last().map(|i| (i.id.clone(), None)).into_iter().collect();
            for _ in 0..1 + self.rng.below(5) {
                at += GRID * self.rng.pick(&[0, 0, 1, 1, 2]);
                self.one_ask(to, at, &mut ids);
            }
            at += GRID * self.rng.below(6);
        }
    }

    fn one_ask(&mut self, to: usize, at: Micros, ids: &mut Vec<(String, Option<usize>)>) {
        match self.rng.below(10) {
            0..=5 => {
                let (from, urgency) = (self.writers(to), self.any_urgency());
                let id = self.send(at, from, to, urgency);
                let expires = self.rng.chance(25).then(|| GRID * (1 + self.rng.below(4)));
                if let Some(Item { act: Act::Message(m), .. }) = self.sc.items.last_mut() {
                    m.expires_after = expires;
                }
                ids.push((id, from));
            }
            6 | 7 => {
                let n = self.rng.below(ids.len() as u64) as usize;
                let (message, by) = ids[n].clone();
                if self.sc.items.iter().any(|i| i.id == message && !matches!(i.act, Act::Stop { .. })) {
                    self.push("w", at, Act::Withdraw { message, by });
                }
            }
            8 => drop(self.push("r", at, Act::Resume { agent: Some(to) })),
            _ => drop(self.push("a", at, Act::Stop { agent: to, by: None, subtree: false })),
        }
    }

    fn at_the_prompt(&mut self) {
        for _ in 0..1 + self.rng.below(3) {
            let to = self.worker();
            let act = match self.rng.below(5) {
                0 => Act::Close { agent: to, by: None },
                1 => Act::Supersede { agent: to, text: format!("instead {}", self.sc.items.len()) },
                _ => Act::Stop { agent: to, by: None, subtree: self.rng.chance(30) },
            };
            self.put("p", 0, act);
            if self.rng.chance(50) {
                let (from, urgency) = (self.writers(to), self.any_urgency());
                self.send(0, from, to, urgency);
            }
            if self.rng.chance(50) {
                let at = self.grid(4);
                self.push("r", at, Act::Resume { agent: Some(to) });
            }
        }
    }

    fn resumes(&mut self) {
        for agent in 0..self.sc.agents.len() {
            let entries = self.sc.agents[agent].model.as_ref().map_or(0, Vec::len);
            if entries > 0 && self.rng.chance(50) {
                let at = self.rng.below(entries as u64) as usize;
                let takes = self.grid(4);
                let failed = Entry { takes, error: Some(ModelError::InvalidRequest), ..Entry::default() };
                // A call that others speak of stays.
                if let Some(model) = self.sc.agents[agent].model.as_mut() {
                    model.insert(at, failed);
                }
            }
        }
        for _ in 0..2 + self.rng.below(3) {
            let at = self.grid(24);
            let agent = if self.rng.chance(60) { Some(self.worker()) } else { None };
            if self.rng.chance(40) {
                let stopped = self.worker();
                self.push("a", at, Act::Stop { agent: stopped, by: None, subtree: false });
            }
            let later = GRID * self.rng.below(4);
            self.push("r", at + later, Act::Resume { agent });
        }
    }

    fn full_mailbox(&mut self) {
        self.sc.settings.mailbox_messages = Some(1 + self.rng.below(2) as usize);
        let to = self.worker();
        let mut at = self.grid(6);
        for _ in 0..3 + self.rng.below(5) {
            let (from, urgency) = (self.writers(to), self.any_urgency());
            let earlier = self.messages_by(from, Some(to)).last().map(|(id, _)| id.clone());
            self.send(at, from, to, urgency);
            let replaces = self.rng.chance(25);
            if let Some(Item { act: Act::Message(m), .. }) = self.sc.items.last_mut() {
                m.supersedes = earlier.filter(|_| replaces);
            }
            at += GRID * self.rng.pick(&[0, 0, 1]);
            if self.rng.chance(12) {
                let n = self.sc.items.len();
                self.push("a", at, Act::Supersede { agent: to, text: format!("instead {n}") });
            }
        }
    }

    fn turn_limits(&mut self) {
        if self.rng.chance(60) {
            self.sc.settings.limits.turns = Some(1 + self.rng.below(4));
        } else {
            self.sc.settings.session.turns = Some(1 + self.rng.below(8));
        }
        for _ in 0..self.rng.below(4) {
            let (to, at) = (self.worker(), self.grid(24));
            let (from, urgency) = (self.writers(to), self.any_urgency());
            self.send(at, from, to, urgency);
        }
    }

    fn raises(&mut self) {
        self.turn_limits();
        for _ in 0..1 + self.rng.below(2) {
            let at = self.grid(24);
            let session = self.sc.settings.session.turns.is_some() && self.rng.chance(80);
            let agent = if session { None } else { Some(self.worker()) };
            let turns = Some(3 + self.rng.below(10));
            self.put("l", at, Act::Raise { agent, limits: Limits { turns, ..Limits::default() } });
            if self.rng.chance(40) {
                let to = self.worker();
                self.push("a", at + GRID, Act::Stop { agent: to, by: None, subtree: false });
            }
        }
    }

    fn time_limits(&mut self) {
        let time = Some(GRID * (2 + self.rng.below(16)));
        if self.rng.chance(60) {
            self.sc.settings.limits.time = time;
        } else {
            self.sc.settings.session.time = time;
        }
        for _ in 0..self.rng.below(3) {
            let (to, at) = (self.worker(), self.grid(24));
            let (from, urgency) = (self.writers(to), self.any_urgency());
            self.send(at, from, to, urgency);
        }
    }

    fn token_limits(&mut self) {
        self.sc.settings.limits.tokens = Some(50 + 50 * self.rng.below(6));
        for agent in 0..self.sc.agents.len() {
            for entry in self.sc.agents[agent].model.iter_mut().flatten() {
                entry.error = None;
                entry.retry_after = None;
                entry.usage = Some((10 * self.rng.below(6), 5 + self.rng.below(60)));
                if entry.text.is_none() && entry.tools.is_empty() {
                    entry.text = Some("Once more.".to_string());
                }
            }
        }
    }

    fn process_ends(&mut self, crash: bool) {
        for _ in 0..1 + self.rng.below(2) {
            let at = self.grid(20);
            let down = GRID * (1 + self.rng.below(12));
            let act = if crash { Act::Crash { down } } else { Act::Shutdown { down } };
            let id = self.put("c", at, act);
            if self.rng.chance(30) {
                let agent = self.target();
                let (event, of) = self.event(agent);
                if let Some(item) = self.sc.items.iter_mut().find(|i| i.id == id) {
                    item.when = When::After { agent, event, of, plus: None };
                }
            }
            let to = self.worker();
            for _ in 0..self.rng.below(3) {
                let (from, urgency) = (self.writers(to), self.any_urgency());
                let when = at + GRID * self.rng.below(6);
                self.send(when, from, to, urgency);
                let expires = self.rng.chance(40).then(|| GRID * (1 + self.rng.below(8)));
                if let Some(Item { act: Act::Message(m), .. }) = self.sc.items.last_mut() {
                    m.expires_after = expires;
                }
            }
        }
    }

    fn anchored(&mut self) {
        for _ in 0..1 + self.rng.below(3) {
            let agent = self.worker();
            let entries = self.sc.agents[agent].model.as_ref().map_or(0, Vec::len);
            let at = self.rng.below((entries as u64).min(3)) as usize;
            let anchor = self.anchor();
            let pick = self.rng.below(8) as usize;
            let Some(entry) = self.sc.agents[agent].model.as_mut().and_then(|m| m.get_mut(at)) else {
                continue;
            };
            let simulated = |c: &&mut Call| !c.is_coordinators();
            match entry.tools.iter_mut().filter(simulated).nth(pick % 4) {
                Some(call) if pick < 6 => {
                    call.ends_after = Some(anchor);
                    (call.takes, call.continues) = (0, None);
                }
                _ => {
                    entry.ends_after = Some(anchor);
                    entry.takes = 0;
                }
            }
        }
    }

    /// An event that comes: mostly the arrival of a message that is sent for it.
    fn anchor(&mut self) -> Anchor {
        let plus = if self.rng.chance(40) { GRID * self.rng.below(4) } else { 0 };
        if self.rng.chance(20) {
            let agent = self.worker();
            return Anchor { agent, event: "run_started".into(), of: "any".into(), plus };
        }
        let (to, at) = (self.worker(), self.grid(12));
        let urgency = self.any_urgency();
        let of = self.send(at, None, to, urgency);
        Anchor { agent: to, event: "message_queued".into(), of, plus }
    }

    fn white_space(&mut self) {
        let texts =
            ["  one\n\ntwo  three", "a\tb \n c", "word", " x  y  z \n", "one two three four five\n\nsix"];
        for agent in 0..self.sc.agents.len() {
            for entry in self.sc.agents[agent].model.iter_mut().flatten() {
                if entry.error.is_none() && entry.text.is_some() {
                    entry.text = Some(self.rng.pick(&texts).to_string());
                    entry.thinking = self.rng.chance(40).then(|| self.rng.pick(&texts).to_string());
                    entry.takes += GRID;
                }
            }
        }
        for _ in 0..2 + self.rng.below(3) {
            let (to, at) = (self.worker(), self.grid(16));
            if self.rng.chance(25) {
                self.push("a", at, Act::Stop { agent: to, by: None, subtree: false });
            } else {
                self.send(at, None, to, Urgency::Urgent);
            }
        }
    }

    fn few_agents(&mut self) {
        self.sc.settings.max_agents = Some(2 + self.rng.below(3) as usize);
        for _ in 0..self.rng.below(3) {
            let (agent, at) = (self.worker(), self.grid(12));
            self.put("c", at, Act::Close { agent, by: None });
        }
    }

    fn halts(&mut self) {
        for child in 1..self.sc.agents.len() {
            let Some(parent) = self.sc.agents[child].parent else { continue };
            if self.sc.agents[child].spawned || self.sc.agents[parent].model.is_none() {
                continue;
            }
            self.slow_aborts(child);
            let name = self.sc.agents[child].name.clone();
            let (tool, input) = match self.rng.below(4) {
                0 => ("stop_agent", json!({"name": name})),
                1 => ("stop_agent", json!({"name": name, "scope": "subtree"})),
                2 => ("close_agent", json!({"name": name})),
                _ => ("wait_agents", json!({"names": [name]})),
            };
            self.calls += 1;
            let mut call = Call::new(&format!("t{}", self.calls), tool, 0);
            call.input = Some(input);
            let first = self.sc.agents[parent].model.as_mut().and_then(|m| m.first_mut());
            if let Some(entry) = first.filter(|entry| entry.error.is_none()) {
                entry.tools.insert(0, call);
                entry.takes += GRID;
            }
            let at = self.grid(8);
            match self.rng.below(3) {
                0 => drop(self.send(at, None, parent, Urgency::Urgent)),
                1 => {
                    let n = self.sc.items.len();
                    drop(self.put("a", at, Act::Supersede { agent: child, text: format!("instead {n}") }));
                }
                _ => drop(self.send(at, None, child, Urgency::AfterTools)),
            }
        }
    }
}
