//! Reads the engine's events (scenarios.md section 4) into the shape of the reference's findings.

use super::model::{Micros, Scenario};
use super::result::Findings;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A tool call as the events tell it.
#[derive(Clone, Debug, Default)]
pub struct SeenTool {
    pub run: u64,
    pub turn: u64,
    pub started: Option<Micros>,
    pub ended: Option<Micros>,
    pub status: String,
    pub is_error: Option<bool>,
    pub output: Option<String>,
    /// How many `tool_finished` events it had.
    pub results: u32,
}

/// An injection as the events tell it.
#[derive(Clone, Debug, Default)]
pub struct SeenInjection {
    pub agent: String,
    pub run: u64,
    pub turn: u64,
    pub point: String,
    pub at: Micros,
    pub messages: Vec<String>,
    pub reports: usize,
    pub text: String,
    pub skipped: Vec<String>,
    pub interrupted: Vec<String>,
}

/// A message for one receiver as the events tell it.
#[derive(Clone, Debug, Default)]
pub struct SeenMessage {
    pub sent: Micros,
    pub urgency: Option<String>,
    /// `injected`, `returned: REASON`, `refused: REASON` or `queued`, with its instant.
    pub fate: String,
    pub at: Micros,
}

/// A run as the events tell it.
#[derive(Clone, Debug, Default)]
pub struct SeenRun {
    pub started: Option<Micros>,
    pub ended: Option<Micros>,
    pub outcome: Option<String>,
    pub error: Option<String>,
    pub turns: Option<u64>,
}

/// A model call as the events tell it.
#[derive(Clone, Debug, Default)]
pub struct SeenCall {
    pub run: u64,
    pub turn: u64,
    pub started: Micros,
    pub cut: Option<SeenCut>,
    /// The calls of a whole reply that nobody else runs, with their inputs where the event has them.
    pub inputs: Option<Vec<(String, Value)>>,
}

/// A cut reply as the events tell it.
#[derive(Clone, Debug, Default)]
pub struct SeenCut {
    pub at: Micros,
    pub words: Option<u64>,
    pub text: Option<String>,
    pub reason: String,
}

/// The first request to stop a run as the events tell it.
#[derive(Clone, Debug, Default)]
pub struct SeenStop {
    pub at: Micros,
    pub reason: Option<String>,
    pub by: String,
    pub still_queued: Vec<String>,
}

/// Everything the comparer looks at.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub tools: BTreeMap<(String, String), SeenTool>,
    pub injections: Vec<SeenInjection>,
    pub messages: BTreeMap<(String, String), SeenMessage>,
    pub runs: BTreeMap<(String, u64), SeenRun>,
    pub calls: BTreeMap<(String, u64), SeenCall>,
    pub stops: BTreeMap<(String, u64), SeenStop>,
    pub resumed: Vec<Micros>,
    pub raised: Vec<(Micros, String)>,
    /// The prompts in `agent_spawned`, where they are.
    pub prompts: BTreeMap<String, String>,
    /// The call of each agent that streams now.
    current: BTreeMap<String, u64>,
    /// The engine's id of a message to the reference's, by receiver.
    names: BTreeMap<(String, String), String>,
    known: BTreeSet<(String, String)>,
}

/// The instant of an event in microseconds.
pub fn instant(event: &Value) -> Micros {
    (event.get("t").and_then(Value::as_f64).unwrap_or(0.0) * 1e6).round() as Micros
}

fn text(event: &Value, key: &str) -> String {
    event.get(key).and_then(Value::as_str).unwrap_or("").to_string()
}

fn number(event: &Value, key: &str) -> u64 {
    event.get(key).and_then(Value::as_u64).unwrap_or(0)
}

fn list(event: &Value, key: &str) -> Vec<String> {
    let empty = Vec::new();
    let items = event.get(key).and_then(Value::as_array).unwrap_or(&empty);
    items.iter().filter_map(Value::as_str).map(str::to_string).collect()
}

/// The calls of a `model_finished`, with their inputs.
fn inputs(event: &Value) -> Vec<(String, Value)> {
    let empty = Vec::new();
    let calls = event.get("tools").and_then(Value::as_array).unwrap_or(&empty);
    let input = |call: &Value| call.get("input").cloned().unwrap_or(Value::Null);
    calls.iter().map(|call| (text(call, "id"), input(call))).collect()
}

/// Reads the events. The findings are needed only to know which messages are people's and agents'.
pub fn read(sc: &Scenario, found: &Findings, events: &[Value]) -> Seen {
    let mut seen = Seen::default();
    let name = |i: usize| sc.agents[i].name.clone();
    let by_text: BTreeMap<(String, String), String> =
        found.messages.iter().map(|m| ((name(m.to), m.text.clone()), m.id.clone())).collect();
    seen.known = found.messages.iter().map(|m| (name(m.to), m.id.clone())).collect();
    for event in events {
        match text(event, "type").as_str() {
            "run_started" | "run_finished" => seen.run(event),
            "model_started" | "model_interrupted" | "model_finished" => seen.model(event),
            "stop_requested" => seen.stop(event),
            "session_resumed" => seen.resumed.push(instant(event)),
            "limit_raised" => seen.raised.push((instant(event), text(event, "agent"))),
            "agent_spawned" => {
                if let Some(prompt) = event.get("prompt").and_then(Value::as_str) {
                    seen.prompts.insert(text(event, "agent"), prompt.to_string());
                }
            }
            "tool_started" | "tool_finished" => seen.tool(event),
            "message_queued" => {
                let key = (text(event, "agent"), text(event, "text"));
                if let Some(id) = by_text.get(&key) {
                    seen.names.insert((key.0, text(event, "message")), id.clone());
                }
                seen.message(event);
            }
            // The reference knows nothing of a name that nobody has yet.
            "message_refused" if text(event, "reason") == "unknown_agent" => {}
            "message_refused" | "message_returned" => seen.message(event),
            "message_injected" => seen.injection(event),
            _ => {}
        }
    }
    seen
}

impl Seen {
    fn run(&mut self, event: &Value) {
        let run = self.runs.entry((text(event, "agent"), number(event, "run"))).or_default();
        if text(event, "type") == "run_started" {
            run.started = Some(instant(event));
        } else {
            run.ended = Some(instant(event));
            run.outcome = Some(text(event, "outcome"));
            run.error = event.get("error").filter(|e| !e.is_null()).map(|e| match e.as_str() {
                Some(word) => word.to_string(),
                None => e.to_string(),
            });
            run.turns = event.get("turns").and_then(Value::as_u64);
        }
    }

    fn model(&mut self, event: &Value) {
        let agent = text(event, "agent");
        if text(event, "type") == "model_started" {
            let call = number(event, "call");
            self.current.insert(agent.clone(), call);
            self.calls.insert(
                (agent, call),
                SeenCall {
                    run: number(event, "run"),
                    turn: number(event, "turn"),
                    started: instant(event),
                    cut: None,
                    inputs: None,
                },
            );
            return;
        }
        let Some(call) = self.current.get(&agent) else {
            return;
        };
        let Some(seen) = self.calls.get_mut(&(agent, *call)) else {
            return;
        };
        if text(event, "type") == "model_finished" {
            seen.inputs = Some(inputs(event));
        } else {
            seen.cut = Some(SeenCut {
                at: instant(event),
                words: event.get("partial_tokens").and_then(Value::as_u64),
                text: event.get("text").and_then(Value::as_str).map(str::to_string),
                reason: text(event, "reason"),
            });
        }
    }

    fn stop(&mut self, event: &Value) {
        let key = (text(event, "agent"), number(event, "run"));
        let queued = list(event, "still_queued");
        let still_queued = queued.iter().filter_map(|id| self.id_of(&key.0, id)).collect();
        self.stops.entry(key).or_insert(SeenStop {
            at: instant(event),
            reason: event.get("reason").and_then(Value::as_str).map(str::to_string),
            by: text(event, "by"),
            still_queued,
        });
    }

    fn tool(&mut self, event: &Value) {
        let tool = self.tools.entry((text(event, "agent"), text(event, "tool"))).or_default();
        tool.run = number(event, "run");
        tool.turn = number(event, "turn");
        if text(event, "type") == "tool_started" {
            tool.started = Some(instant(event));
            return;
        }
        tool.results += 1;
        tool.ended = Some(instant(event));
        tool.status = text(event, "status");
        tool.is_error = event.get("is_error").and_then(Value::as_bool);
        tool.output = event.get("output").and_then(Value::as_str).map(str::to_string);
    }

    /// The reference's name of a message, if it is one of a person or an agent.
    fn id_of(&self, agent: &str, id: &str) -> Option<String> {
        let key = (agent.to_string(), id.to_string());
        if let Some(name) = self.names.get(&key) {
            return Some(name.clone());
        }
        self.known.contains(&key).then(|| id.to_string())
    }

    fn message(&mut self, event: &Value) {
        let agent = text(event, "agent");
        let raw = text(event, "message");
        // Mail that the reference doesn't know and that isn't the coordinator's is shown under its raw id.
        let from_coordinator = !self.known.contains(&(agent.clone(), raw.clone()))
            && !self.names.contains_key(&(agent.clone(), raw.clone()));
        let kind = text(event, "type");
        let sender = text(event, "from");
        if from_coordinator && (kind == "message_returned" || sender == "coordinator" || sender.is_empty()) {
            return;
        }
        let Some(id) = self.id_of(&agent, &raw).or(Some(raw)) else {
            return;
        };
        let message = self.messages.entry((agent, id)).or_default();
        message.at = instant(event);
        match kind.as_str() {
            "message_queued" => {
                message.sent = instant(event);
                message.urgency = Some(text(event, "urgency"));
                message.fate = "queued".to_string();
            }
            "message_refused" => {
                message.sent = instant(event);
                message.fate = format!("refused: {}", text(event, "reason"));
            }
            _ => message.fate = format!("returned: {}", text(event, "reason")),
        }
    }

    fn injection(&mut self, event: &Value) {
        let agent = text(event, "agent");
        let raw = list(event, "messages");
        let messages: Vec<String> = raw.iter().filter_map(|id| self.id_of(&agent, id)).collect();
        for id in &messages {
            let message = self.messages.entry((agent.clone(), id.clone())).or_default();
            message.at = instant(event);
            message.fate = if message.fate == "injected" { "injected twice" } else { "injected" }.to_string();
        }
        self.injections.push(SeenInjection {
            run: number(event, "run"),
            turn: number(event, "turn"),
            point: text(event, "point"),
            at: instant(event),
            reports: raw.len() - messages.len(),
            messages,
            text: text(event, "text"),
            skipped: list(event, "skipped"),
            interrupted: list(event, "interrupted"),
            agent,
        });
    }
}
