//! What may happen, written from semantics.md without the engine's rules: who is above whom,
//! what a mode lets run, who may hurry, stop, close and spawn. The events and the world are
//! held against it.

use std::collections::{BTreeMap, HashMap, VecDeque};

use midturn_core::rules::approval::{Decision, Mode};
use midturn_core::rules::audit::Auditor;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::mail::Urgency;
use midturn_core::rules::time::{Micros, Span};
use midturn_core::rules::validate::Breach;
use serde_json::Value;

use crate::session::{AGENTS, DEPTH, Plan, Played, SPAWNS, TURNS};
use crate::world::Done;

/// What no mode lets run.
pub(crate) const DENIED: [&str; 4] = ["bash(rm *)", "bash(curl *)", "write(.git/**)", "read(token)"];

/// What stands in the file that nobody may read.
pub(crate) const TOKEN: &str = "canary-of-the-token";

type Held = Result<(), String>;

/// Holds a session against the rules.
pub(crate) fn hold(plan: &Plan, played: &Played) -> Held {
    for done in &played.done {
        may_run(plan.mode, done)?;
    }
    if let Some(text) = played.read.iter().find(|text| text.contains(TOKEN)) {
        return Err(format!("somebody read the token: {text}"));
    }
    let (mut auditor, mut watcher) = (Auditor::default(), Watcher::default());
    for event in &played.events {
        keeps(&auditor.event(event))
            .and_then(|()| watcher.see(event))
            .map_err(|breach| format!("{breach}: {event:?}"))?;
    }
    auditor.ends().map_err(|breach| breach.to_string())?;
    watcher.ends(plan)
}

/// The invariants of semantics.md, section 10, are held by the auditor of core's rules.
fn keeps(breaches: &[Breach]) -> Held {
    breaches.first().map_or(Ok(()), |breach| Err(breach.to_string()))
}

/// Nobody ever says yes here, so only what needs no yes may run.
fn may_run(mode: Mode, done: &Done) -> Held {
    let subject = done.subject.as_str();
    let parts = || subject.split([';', '&', '|', '\n']).map(str::trim);
    let denied = match done.tool.as_str() {
        "bash" => parts().any(|part| part.starts_with("rm ") || part.starts_with("curl ")),
        "write" => subject.starts_with(".git/"),
        "read" => subject == "token",
        _ => true,
    };
    let unasked = match mode {
        Mode::Auto => true,
        Mode::AcceptEdits => done.tool != "bash",
        Mode::Ask | Mode::Plan => done.tool == "read",
    };
    if denied || !unasked { Err(format!("{done:?} in mode {}", mode.as_str())) } else { Ok(()) }
}

/// Reads the events.
#[derive(Default)]
struct Watcher {
    parents: BTreeMap<String, Option<String>>,
    open: u32,
    turns: u64,
    /// Calls that were made, by agent and id: the tool and its input. What one began goes on
    /// when the call itself is cut.
    calls: HashMap<(String, String), (String, Value)>,
    /// Urgent messages, by who sent them to whom.
    urgent: HashMap<(String, String), VecDeque<Micros>>,
    asked: usize,
    began: usize,
}

impl Watcher {
    fn see(&mut self, event: &Event) -> Held {
        let Some(agent) = event.at.agent.as_ref().map(ToString::to_string) else { return Ok(()) };
        match &event.kind {
            EventKind::AgentSpawned { parent, .. } => {
                self.spawned(&agent, parent.as_ref().map(ToString::to_string))
            }
            EventKind::AgentClosed {} => self.closed(&agent),
            EventKind::RunStarted { .. } => {
                self.began += 1;
                Ok(())
            }
            EventKind::RunFinished { turns, .. } => {
                self.turns += u64::from(*turns);
                Ok(())
            }
            EventKind::ToolStarted { tool, name, input, .. } => {
                self.calls.insert((agent, tool.to_string()), (name.to_string(), input.clone()));
                Ok(())
            }
            EventKind::MessageQueued { from, urgency, text, .. } => {
                self.queued(&agent, from, *urgency, text, event.t)
            }
            EventKind::StopRequested { by, .. } => self.stopped(&agent, by),
            EventKind::ApprovalRequested { .. } => {
                self.asked += 1;
                Ok(())
            }
            EventKind::ApprovalResolved { decision, .. } => {
                if *decision == Decision::NotAnswered {
                    Ok(())
                } else {
                    Err("somebody answered".into())
                }
            }
            _ => Ok(()),
        }
    }

    fn above(&self, agent: &str) -> Vec<String> {
        let parent = |name: &String| self.parents.get(name).cloned().flatten();
        std::iter::successors(self.parents.get(agent).cloned().flatten(), parent).collect()
    }

    fn is_above(&self, above: &str, agent: &str) -> bool {
        self.above(agent).iter().any(|name| name == above)
    }

    fn spawned(&mut self, agent: &str, parent: Option<String>) -> Held {
        self.open += 1;
        if let Some(parent) = parent.as_ref().filter(|_| self.began > 0 && agent.contains(['x', 'y'])) {
            let asks = |(tool, input): &(String, Value)| tool == "spawn_agent" && input["name"] == agent;
            let asked = self.calls.iter().any(|((who, _), call)| who == parent && asks(call));
            if !asked {
                return Err(format!("{parent} did not ask for {agent}"));
            }
        }
        self.parents.insert(agent.to_owned(), parent);
        let above = self.above(agent);
        if above.len() as u32 > DEPTH {
            return Err(format!("{agent} is {} deep", above.len()));
        }
        let below =
            |name: &String| self.parents.keys().filter(|other| self.is_above(name, other)).count() as u32;
        if above.iter().any(|name| below(name) > SPAWNS) {
            return Err("too many below one agent".into());
        }
        if self.open > AGENTS { Err(format!("{} are open", self.open)) } else { Ok(()) }
    }

    /// Somebody above asked for it by a call, and nobody else.
    fn closed(&mut self, agent: &str) -> Held {
        self.open -= 1;
        let closes = |((who, _), (tool, input)): (&(String, String), &(String, Value))| {
            let named = input["name"].as_str().unwrap_or_default();
            tool == "close_agent"
                && self.is_above(who, named)
                && (named == agent || self.is_above(named, agent))
        };
        if self.calls.iter().any(closes) { Ok(()) } else { Err("nobody above closed it".into()) }
    }

    fn stopped(&self, agent: &str, by: &str) -> Held {
        let asks = |((who, _), (tool, _)): (&(String, String), &(String, Value))| {
            who == by && matches!(tool.as_str(), "stop_agent" | "close_agent")
        };
        if !self.is_above(by, agent) {
            return Err(format!("{by} is not above it"));
        }
        if self.calls.iter().any(asks) { Ok(()) } else { Err(format!("{by} asked for nothing")) }
    }

    /// The sender is who called, and only somebody above hurries.
    fn queued(&mut self, agent: &str, from: &str, urgency: Urgency, text: &str, at: Micros) -> Held {
        if from == "coordinator" || from == "user" {
            return Ok(());
        }
        let says = |((who, _), (tool, input)): (&(String, String), &(String, Value))| {
            who == from && tool == "send_message" && input["text"] == text
        };
        if !self.calls.iter().any(says) {
            return Err(format!("{from} did not write that"));
        }
        if urgency < Urgency::Urgent {
            return Ok(());
        }
        if !self.is_above(from, agent) {
            return Err(format!("{from} hurries {agent}"));
        }
        let recent = self.urgent.entry((from.to_owned(), agent.to_owned())).or_default();
        recent.retain(|sent| at.since(*sent) < Span::secs(60));
        recent.push_back(at);
        if recent.len() > 6 { Err(format!("{from} hurries {agent} too often")) } else { Ok(()) }
    }

    fn ends(&self, plan: &Plan) -> Held {
        if self.turns > TURNS {
            return Err(format!("{} turns", self.turns));
        }
        let asks = plan.attached && matches!(plan.mode, Mode::Ask | Mode::AcceptEdits);
        if self.asked > 0 && !asks { Err("somebody was asked who isn't there".into()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_run_depends_on_the_mode_and_on_what_is_denied() {
        for (mode, tool, subject, expected) in [
            (Mode::Auto, "bash", "make", true),
            (Mode::Auto, "bash", "true; rm x", false),
            (Mode::Auto, "write", ".git/hooks/a", false),
            (Mode::Auto, "read", "token", false),
            (Mode::AcceptEdits, "write", "src.rs", true),
            (Mode::AcceptEdits, "bash", "make", false),
            (Mode::Ask, "write", "src.rs", false),
            (Mode::Plan, "read", "f0", true),
        ] {
            let done = Done { agent: "a".into(), tool: tool.into(), subject: subject.into() };
            assert_eq!(may_run(mode, &done).is_ok(), expected, "{done:?} {}", mode.as_str());
        }
    }
}
