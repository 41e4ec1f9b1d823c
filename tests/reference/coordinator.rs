//! The coordinator's own tools called by a scripted call (semantics.md section 9): they act, and take no time.

use super::model::*;
use super::result::*;
use super::simulate::World;
use super::state::*;
use serde_json::Value;

/// The default timeout of `wait_agents`.
const WAIT_DEFAULT: Micros = 600_000_000;

/// Reads a duration of the file.
pub fn parse_duration(text: &str) -> Option<Micros> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" => 60e6,
        "h" => 3600e6,
        "" if number == "0" => 0.0,
        _ => return None,
    };
    number.parse::<f64>().ok().map(|n| (n * scale).round() as Micros)
}

fn text<'v>(input: &'v Value, key: &str) -> Option<&'v str> {
    input.get(key).and_then(Value::as_str)
}

impl World<'_> {
    /// Starts one: what it then waits for, and whether it already failed.
    pub fn take_up(&mut self, at: CallRef, call: &Call) -> (Duty, bool) {
        let input = call.input.clone().unwrap_or(Value::Null);
        match call.name.as_str() {
            "spawn_agent" => (Duty::Instant, !self.spawn(at, &input)),
            "send_message" => (Duty::Instant, !self.send_by_tool(at, call, &input)),
            "wait_agents" => self.wait(at, &input),
            "stop_agent" | "close_agent" => self.halt(at, call, &input),
            _ => (Duty::Instant, false),
        }
    }

    fn named(&self, name: &str) -> Option<usize> {
        self.sc.agent(name).filter(|i| self.agents[*i].life != Life::Unspawned)
    }

    fn spawn(&mut self, at: CallRef, input: &Value) -> bool {
        let wanted = text(input, "name").and_then(|n| self.sc.agent(n));
        let Some(agent) = wanted.filter(|i| self.agents[*i].life == Life::Unspawned) else {
            return false;
        };
        // A name is taken from the call on, not from the arrival: two calls of one instant can't both have it.
        let taken = self.caused.iter().any(|c| matches!(c, Caused::Spawn { agent: a, .. } if *a == agent));
        let caller = &self.agents[at.agent];
        if taken || caller.depth + 1 > caller.settings.max_depth || !self.session.reached.is_empty() {
            return false;
        }
        let prompt = text(input, "prompt").unwrap_or("").to_string();
        self.caused.push(Caused::Spawn { by: at.agent, agent, prompt, call: at });
        true
    }

    fn send_by_tool(&mut self, at: CallRef, call: &Call, input: &Value) -> bool {
        let to = match text(input, "to") {
            Some("all") => To::All,
            Some("parent") if self.agents[at.agent].parent.is_some() => To::Parent,
            // Whether somebody is there under that name is looked at when the message arrives.
            Some(name) => match self.sc.agent(name) {
                Some(i) if i != at.agent => To::Agent(i),
                _ => return false,
            },
            None => return false,
        };
        let wish = match (text(input, "urgency").and_then(Urgency::parse), input.get("urgent")) {
            (Some(u), _) => Wish::Full(u),
            (None, Some(Value::Bool(urgent))) => Wish::Plain(*urgent),
            _ => Wish::Default,
        };
        let mut message = Message::new(Some(at.agent), to, text(input, "text").unwrap_or(""), wish);
        message.expires_after = text(input, "expires_after").and_then(parse_duration);
        message.supersedes = text(input, "supersedes").map(str::to_string);
        let id = text(input, "id").unwrap_or(&call.id).to_string();
        self.caused.push(Caused::Message { from: at.agent, call: at, id, message });
        true
    }

    fn halt(&mut self, at: CallRef, call: &Call, input: &Value) -> (Duty, bool) {
        let target = text(input, "name").and_then(|n| self.sc.agent(n));
        // Only a person or an ancestor may stop an agent.
        let Some(target) = target.filter(|t| self.is_ancestor(at.agent, *t)) else {
            return (Duty::Instant, true);
        };
        let (by, subtree) = (at.agent, text(input, "scope") == Some("subtree"));
        self.caused.push(if call.name == "stop_agent" {
            Caused::Stop { by, target, subtree, call: at }
        } else {
            Caused::Close { by, target, call: at }
        });
        (Duty::Halt { targets: Vec::new(), reports: Vec::new() }, false)
    }

    fn wait(&mut self, at: CallRef, input: &Value) -> (Duty, bool) {
        let empty = Vec::new();
        let list = input.get("names").and_then(Value::as_array).unwrap_or(&empty);
        let names: Vec<Option<usize>> = list.iter().map(|n| n.as_str().and_then(|n| self.named(n))).collect();
        let Some(names) = names.into_iter().collect::<Option<Vec<usize>>>() else {
            return (Duty::Instant, true);
        };
        let all = text(input, "mode") != Some("any");
        if names.is_empty() || self.closes_cycle(at.agent, &names, all) {
            return (Duty::Instant, true);
        }
        let timeout = text(input, "timeout").and_then(parse_duration).unwrap_or(WAIT_DEFAULT);
        (Duty::Wait { names, all, until: self.now + timeout }, false)
    }

    /// Whether a wait would close a cycle: the largest set of waiting agents in which every `all` names a member
    /// and every `any` names only members, found by throwing out those that don't, holds the new waiter.
    fn closes_cycle(&self, agent: usize, names: &[usize], all: bool) -> bool {
        let mut set: Vec<(usize, Vec<usize>, bool)> = vec![(agent, names.to_vec(), all)];
        for other in (0..self.agents.len()).filter(|o| *o != agent) {
            let Some(Step::Tools(turn)) = self.agents[other].run.as_ref().map(|r| &r.step) else {
                continue;
            };
            for job in &turn.jobs {
                if let Phase::Running { duty: Duty::Wait { names, all, .. }, abort, .. } = &job.phase {
                    let cut = abort.is_some() && self.reading.cut_wait_closes_no_cycle;
                    if !cut {
                        set.push((other, names.clone(), *all));
                    }
                }
            }
        }
        loop {
            let members: Vec<usize> = set.iter().map(|(a, _, _)| *a).collect();
            let before = set.len();
            set.retain(|(_, names, all)| {
                if *all {
                    names.iter().any(|n| members.contains(n))
                } else {
                    names.iter().all(|n| members.contains(n))
                }
            });
            if set.len() == before {
                return members.contains(&agent);
            }
        }
    }

    /// Whether a wait ends in this step; when it does, takes the answers it returns out of the mailbox.
    pub fn wait_is_over(
        &mut self,
        agent: usize,
        names: &[usize],
        all: bool,
        until: Micros,
        cancelled: bool,
    ) -> bool {
        let about = |m: &Mail| match m.from {
            Sender::Report { about, then: Then::Rests, .. } => Some(about),
            _ => None,
        };
        // The report on a run that the next one follows ends no wait.
        let ends_none = |m: &Mail| matches!(m.from, Sender::Report { then, .. } if then != Then::Rests);
        let mailbox = &self.agents[agent].mailbox;
        let answered: Vec<usize> = names
            .iter()
            .copied()
            .filter(|n| self.agents[*n].run.is_none() || mailbox.iter().any(|m| about(m) == Some(*n)))
            .collect();
        let complete = if all { answered.len() == names.len() } else { !answered.is_empty() };
        let other_mail = mailbox
            .iter()
            .filter(|m| m.urgency >= Urgency::AfterTools && !ends_none(m))
            .any(|m| !about(m).is_some_and(|a| names.contains(&a)));
        let own_end = complete || until <= self.now;
        // A cancelled wait ends only by itself; the mail that cancelled it isn't a reason to return early.
        if !own_end && (cancelled || !other_mail) {
            return false;
        }
        if own_end || self.reading.early_wait_takes_answers {
            self.inject_where(agent, Point::Wait, &[], &[], |m| {
                about(m).is_some_and(|a| answered.contains(&a))
            });
        }
        true
    }
}
