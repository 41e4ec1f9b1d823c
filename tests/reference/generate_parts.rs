//! The parts of a random scenario: tool calls, messages and actions.

use super::generate::{GRID, Gen, Theme};
use super::model::*;
use serde_json::{Value, json};

/// Simulated tools; the safe ones twice so that concurrent batches are common.
const TOOLS: [&str; 9] = ["read", "grep", "glob", "read", "edit", "write", "edit", "bash", "fetch"];

impl Gen {
    fn call_id(&mut self) -> String {
        self.calls += 1;
        format!("t{}", self.calls)
    }

    /// One call of a reply of this agent.
    pub fn call(&mut self, agent: usize) -> Call {
        let own = if self.theme == Theme::Wait { 50 } else { 25 };
        if self.level >= 3 && self.rng.chance(own) {
            return self.coordinators_call(agent);
        }
        let name = self.rng.pick(&TOOLS);
        let takes = self.grid(9);
        let mut call = Call::new(&self.call_id(), name, takes);
        if self.rng.chance(30) {
            call.result = format!("result of {}", call.id);
        }
        if self.rng.chance(8) {
            call.error = Some(format!("{} broke", call.id));
        }
        if self.rng.chance(20) {
            let lines = 1 + self.rng.below(3);
            call.output =
                (1..=lines).map(|n| (n * GRID, format!("line {n}"))).filter(|(at, _)| *at <= takes).collect();
        }
        if call.is_edit() && self.sc.settings.concurrency_all == Some(true) {
            let path = format!("f{}.txt", self.rng.below(2));
            call.input = Some(json!({ "path": path }));
        }
        if self.level >= 2 {
            self.oddities(&mut call);
        }
        call
    }

    fn oddities(&mut self, call: &mut Call) {
        if self.rng.chance(8) {
            call.abortable = false;
        }
        if self.rng.chance(20) {
            call.abort_takes = self.rng.pick(&[GRID, 2 * GRID, 4 * GRID, 8 * GRID, 10 * GRID]);
        }
        if self.rng.chance(5) {
            call.safe = Some(self.rng.chance(50));
        }
        if self.level >= 3 && call.error.is_none() && self.rng.chance(12) {
            call.continues = Some(GRID * (1 + self.rng.below(8)));
        }
    }

    fn agent_name(&mut self, but: usize) -> String {
        let others: Vec<usize> = (0..self.sc.agents.len()).filter(|i| *i != but).collect();
        let i = self.rng.pick(&others);
        self.sc.agents[i].name.clone()
    }

    /// A call that spawns a child.
    pub fn spawn_call(&mut self, child: usize) -> Call {
        let name = self.sc.agents[child].name.clone();
        let mut call = Call::new(&self.call_id(), "spawn_agent", 0);
        call.input = Some(json!({"name": name, "prompt": format!("Spawned: {name}.")}));
        call
    }

    fn coordinators_call(&mut self, agent: usize) -> Call {
        let kind = match self.theme {
            Theme::Wait if self.rng.chance(50) => 8,
            _ => self.rng.below(20),
        };
        let (name, input) = match kind {
            0..=7 => ("send_message", self.send_input(agent)),
            8..=14 => ("wait_agents", self.wait_input(agent)),
            15 => ("stop_agent", json!({"name": self.agent_name(agent)})),
            16 => ("stop_agent", json!({"name": self.agent_name(agent), "scope": "subtree"})),
            17 => ("close_agent", json!({"name": self.agent_name(agent)})),
            18 => (if self.rng.chance(50) { "list_agents" } else { "receipts" }, json!({})),
            _ => ("update_plan", json!({"steps": [{"text": "look", "status": "completed"}]})),
        };
        let mut call = Call::new(&self.call_id(), name, 0);
        call.input = Some(input);
        call
    }

    fn send_input(&mut self, agent: usize) -> Value {
        self.sends += 1;
        let id = format!("s{}", self.sends);
        let has_parent = self.sc.agents[agent].parent.is_some();
        let to = match self.rng.below(10) {
            0 => "all".to_string(),
            1 if has_parent => "parent".to_string(),
            _ => self.agent_name(agent),
        };
        let mut input = json!({"to": to, "text": format!("sent as {id}"), "id": id});
        match self.rng.below(6) {
            0 => input["urgent"] = json!(true),
            1 => input["urgent"] = json!(false),
            2 => input["urgency"] = json!(self.urgency().word()),
            _ => {}
        }
        if self.rng.chance(8) {
            input["expires_after"] = json!("750ms");
        }
        input
    }

    fn wait_input(&mut self, agent: usize) -> Value {
        let mut names = vec![self.agent_name(agent)];
        if self.rng.chance(50) {
            let more = self.agent_name(agent);
            if !names.contains(&more) {
                names.push(more);
            }
        }
        let mut input = json!({ "names": names });
        match self.rng.below(3) {
            0 => input["mode"] = json!("any"),
            1 => input["mode"] = json!("all"),
            _ => {}
        }
        if self.rng.chance(50) {
            input["timeout"] = json!(self.rng.pick(&["500ms", "1s", "2s", "5s"]));
        }
        input
    }

    fn urgency(&mut self) -> Urgency {
        self.rng.pick(&[Urgency::FollowUp, Urgency::AfterTools, Urgency::NextBoundary, Urgency::Urgent])
    }

    fn wish(&mut self) -> Wish {
        match self.rng.below(10) {
            0 | 1 => Wish::Default,
            2 => Wish::Plain(false),
            3 => Wish::Plain(true),
            _ => Wish::Full(self.urgency()),
        }
    }

    /// The messages and actions of the file.
    pub fn items(&mut self) {
        if self.theme == Theme::Starve {
            self.flood();
            return;
        }
        let count = self.rng.below(9);
        let burst = self.rng.chance(15);
        for n in 0..count {
            let act = if self.level >= 2 && self.rng.chance(30) { self.action() } else { None };
            let act = match act {
                Some(act) => act,
                None => self.message(n, burst),
            };
            let id = if matches!(act, Act::Message(_)) { format!("m{n}") } else { format!("a{n}") };
            let when = self.when(&act);
            self.sc.items.push(Item { id, when, act });
        }
    }

    /// Mail for the worker in nearly every step of the grid.
    fn flood(&mut self) {
        let mut at = 0;
        for n in 0..5 + self.rng.below(6) {
            at += GRID * self.rng.pick(&[0, 1, 1, 1, 2]);
            let urgency = if self.rng.chance(75) { Urgency::NextBoundary } else { Urgency::Urgent };
            let from = if self.rng.chance(50) { None } else { Some(0) };
            let text = format!("note m{n}");
            let message = Message::new(from, To::Agent(1), &text, Wish::Full(urgency));
            let act = match self.rng.chance(10) {
                true if self.level >= 2 => Act::Stop { agent: 1, by: None, subtree: false },
                _ => Act::Message(message),
            };
            let id = if matches!(act, Act::Message(_)) { format!("m{n}") } else { format!("a{n}") };
            self.sc.items.push(Item { id, when: When::At(at), act });
        }
    }

    fn there(&self, agent: usize) -> bool {
        !self.sc.agents[agent].spawned
    }

    /// Someone to act on: mostly one that works.
    pub fn target(&mut self) -> usize {
        let working: Vec<usize> =
            (0..self.sc.agents.len()).filter(|i| self.sc.agents[*i].model.is_some()).collect();
        if self.rng.chance(90) {
            self.rng.pick(&working)
        } else {
            self.rng.below(self.sc.agents.len() as u64) as usize
        }
    }

    fn message(&mut self, n: u64, burst: bool) -> Act {
        let to = self.target();
        let senders: Vec<usize> = (0..self.sc.agents.len()).filter(|i| *i != to && self.there(*i)).collect();
        let from =
            if senders.is_empty() || self.rng.chance(40) { None } else { Some(self.rng.pick(&senders)) };
        let mut text = format!("note m{n}");
        match self.rng.below(8) {
            0 => text.push_str("\nand \"more\": [of] # it"),
            1 => text.push_str("\n\n[User feedback: not really]"),
            _ => {}
        }
        let wish = if burst { Wish::Full(Urgency::NextBoundary) } else { self.wish() };
        let mut message = Message::new(from, To::Agent(to), &text, wish);
        if self.level >= 2 {
            self.message_extras(&mut message, to);
        }
        Act::Message(message)
    }

    fn message_extras(&mut self, message: &mut Message, to: usize) {
        if self.rng.chance(15) {
            message.expires_after = Some(GRID * (1 + self.rng.below(6)));
        }
        if self.rng.chance(10) {
            message.only_run = Some(1 + self.rng.below(2) as u32);
        }
        if self.rng.chance(15) {
            let from = message.from;
            let earlier: Vec<String> =
                self.messages_by(from, Some(to)).into_iter().map(|(id, _)| id).collect();
            if let Some(id) = earlier.last() {
                message.supersedes = Some(id.clone());
            }
        }
        let plain = message.only_run.is_none() && message.supersedes.is_none();
        if plain && self.sc.agents.len() > 2 && self.rng.chance(10) {
            message.to = To::All;
        }
    }

    /// The messages so far of a sender, with their receivers.
    pub fn messages_by(&self, from: Option<usize>, to: Option<usize>) -> Vec<(String, To)> {
        let of_item = |item: &Item| match &item.act {
            Act::Message(m) if m.from == from && to.is_none_or(|t| m.to == To::Agent(t)) => {
                Some((item.id.clone(), m.to))
            }
            _ => None,
        };
        self.sc.items.iter().filter_map(of_item).collect()
    }

    fn by(&mut self, agent: usize) -> Option<usize> {
        let parent = self.sc.agents[agent].parent.filter(|p| self.there(*p));
        if self.rng.chance(25) { parent } else { None }
    }

    fn action(&mut self) -> Option<Act> {
        let agent = self.target();
        let has_model = self.sc.agents[agent].model.is_some();
        Some(match self.rng.below(20) {
            0..=5 => Act::Stop { agent, by: self.by(agent), subtree: self.rng.chance(30) },
            6..=9 if has_model && self.sc.settings.mailbox_messages.is_none() => {
                let n = self.sc.items.len();
                Act::Supersede { agent, text: format!("instead a{n}") }
            }
            10..=12 => Act::Resume { agent: Some(agent) },
            13..=14 => Act::Close { agent, by: self.by(agent) },
            15..=18 => {
                let senders: Vec<Option<usize>> =
                    std::iter::once(None).chain((0..self.sc.agents.len()).map(Some)).collect();
                let by = self.rng.pick(&senders);
                let mine = self.messages_by(by, None);
                let (message, _) = mine.last()?.clone();
                Act::Withdraw { message, by }
            }
            _ => return None,
        })
    }

    fn when(&mut self, act: &Act) -> When {
        let agent = match act {
            Act::Message(Message { to: To::Agent(a), .. })
            | Act::Stop { agent: a, .. }
            | Act::Supersede { agent: a, .. }
            | Act::Resume { agent: Some(a) }
            | Act::Close { agent: a, .. } => Some(*a),
            _ => None,
        };
        let plus = match self.rng.below(4) {
            0 | 1 => None,
            _ => Some(self.grid(6)),
        };
        if let Some(agent) = agent.filter(|a| !self.there(*a)) {
            // Nobody can write to a name that is not there yet.
            return When::After { agent, event: "run_started".into(), of: "any".into(), plus };
        }
        if !self.rng.chance(25) {
            return When::At(self.grid(28));
        }
        let agent = match agent.filter(|_| self.rng.chance(70)) {
            Some(agent) => agent,
            None => self.target(),
        };
        let (event, of) = self.event(agent);
        When::After { agent, event, of, plus }
    }

    /// An event of an agent that may happen.
    pub fn event(&mut self, agent: usize) -> (String, String) {
        let ids: Vec<String> = self.sc.agents[agent]
            .model
            .iter()
            .flatten()
            .flat_map(|e| e.tools.iter().filter(|c| !c.provider).map(|c| c.id.clone()))
            .collect();
        let mail: Vec<String> = self
            .sc
            .items
            .iter()
            .filter(|i| matches!(&i.act, Act::Message(m) if m.to == To::Agent(agent)))
            .map(|i| i.id.clone())
            .collect();
        let (event, of) = match self.rng.below(10) {
            0..=2 if !ids.is_empty() => {
                ("tool_started", ids[self.rng.below(ids.len() as u64) as usize].clone())
            }
            3 | 4 if !ids.is_empty() => {
                ("tool_finished", ids[self.rng.below(ids.len() as u64) as usize].clone())
            }
            5 => ("model_started", (1 + self.rng.below(4)).to_string()),
            6 | 7 if !mail.is_empty() => {
                ("message_injected", mail[self.rng.below(mail.len() as u64) as usize].clone())
            }
            8 => ("run_finished", "any".to_string()),
            9 => ("model_finished", "any".to_string()),
            _ => ("run_started", "any".to_string()),
        };
        (event.to_string(), of)
    }
}
