//! What the reference finds: every tool's end, every message's fate, every run's outcome.

use super::model::Micros;
use serde_json::Value;
use std::collections::BTreeSet;

/// A tool call's outcome (semantics.md section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Completed,
    Failed,
    Interrupted,
    Skipped,
    Stopped,
    Unknown,
}

impl Status {
    /// The word of the events.
    pub fn word(self) -> &'static str {
        match self {
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Interrupted => "interrupted",
            Status::Skipped => "skipped",
            Status::Stopped => "stopped",
            Status::Unknown => "unknown",
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Finished,
    Stopped,
    Failed,
    Limit,
    Waiting,
}

impl Outcome {
    /// The word of the events.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Finished => "finished",
            Outcome::Stopped => "stopped",
            Outcome::Failed => "failed",
            Outcome::Limit => "limit",
            Outcome::Waiting => "waiting",
        }
    }
}

/// Where mail was injected (semantics.md section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    Start,
    Stream,
    A,
    B,
    C,
    D,
    Wait,
}

impl Point {
    /// The word of the events.
    pub fn word(self) -> &'static str {
        match self {
            Point::Start => "start",
            Point::Stream => "stream",
            Point::A => "A",
            Point::B => "B",
            Point::C => "C",
            Point::D => "D",
            Point::Wait => "wait",
        }
    }
}

/// One tool call's end.
#[derive(Clone, Debug)]
pub struct ToolResult {
    pub agent: usize,
    pub run: u32,
    pub turn: u32,
    pub id: String,
    pub name: String,
    pub status: Status,
    pub started: Option<Micros>,
    pub ended: Micros,
    /// The text of the tool result; `None` where the pages don't give it (the coordinator's own tools).
    pub text: Option<String>,
}

/// One injection of mail.
#[derive(Clone, Debug)]
pub struct Injection {
    pub agent: usize,
    pub run: u32,
    pub turn: u32,
    pub point: Point,
    pub at: Micros,
    /// The ids of people's and agents' messages, in order.
    pub messages: Vec<String>,
    /// How many of the coordinator's own messages went with them.
    pub reports: usize,
    /// The text, with `UNSAID` in the places that the pages leave open.
    pub text: Option<String>,
    pub skipped: Vec<String>,
    pub interrupted: Vec<String>,
}

/// What became of a message for one receiver.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    Queued,
    /// Index of the injection.
    Injected(usize),
    Returned {
        reason: &'static str,
        at: Micros,
    },
    Refused {
        reason: &'static str,
        at: Micros,
    },
}

/// Stands for words that the pages don't give, in a text that is compared.
pub const UNSAID: char = '\u{1}';

/// One message for one receiver.
#[derive(Clone, Debug)]
pub struct MessageResult {
    pub id: String,
    pub to: usize,
    pub text: String,
    pub urgency: super::model::Urgency,
    pub sent: Micros,
    pub fate: Fate,
    /// All reasons for which it could be refused: their order is not said.
    pub reasons: Vec<&'static str>,
}

/// One model call, a retry's attempts each for itself.
#[derive(Clone, Debug)]
pub struct ModelCall {
    pub agent: usize,
    pub call: u32,
    pub run: u32,
    pub turn: u32,
    pub started: Micros,
    pub cut: Option<Cut>,
    /// Inputs of the calls that a whole reply asked for, in order.
    pub inputs: Option<Vec<(String, Value)>>,
}

/// How a model call was cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    pub at: Micros,
    /// How many words were out and the text up to there; `None` after a crash.
    pub said: Option<(u64, String)>,
    /// `None` where the pages give none.
    pub reason: Option<&'static str>,
}

/// The first request to stop a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRequest {
    pub agent: usize,
    pub run: u32,
    pub at: Micros,
    pub reason: &'static str,
    pub by: String,
    /// The person's messages that stay.
    pub still_queued: Vec<String>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct RunResult {
    pub agent: usize,
    pub run: u32,
    pub started: Micros,
    pub ended: Option<Micros>,
    pub outcome: Outcome,
    pub error: Option<String>,
    pub turns: u32,
    pub model_calls: u32,
}

/// All that the reference found.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    pub runs: Vec<RunResult>,
    pub calls: Vec<ModelCall>,
    pub tools: Vec<ToolResult>,
    pub injections: Vec<Injection>,
    pub messages: Vec<MessageResult>,
    pub stops: Vec<StopRequest>,
    /// When the session was taken up again.
    pub resumed: Vec<Micros>,
    /// Raised limits that were taken: when, and of whom.
    pub raised: Vec<(Micros, Option<usize>)>,
    /// The prompts of agents that were spawned.
    pub prompts: Vec<(usize, String)>,
    /// Rules that the scenario came upon (`kinds.rs`).
    pub met: BTreeSet<&'static str>,
    /// Why the file is an error: an `ends_after` that never comes, a `raise` below what is spent.
    pub invalid: Option<String>,
    /// Why the pages don't determine what happens.
    pub undetermined: Option<String>,
    /// Why the simulation itself gave up, if it did.
    pub broken: Option<String>,
}

impl Findings {
    /// A tool call's end.
    pub fn tool(&self, agent: usize, id: &str) -> Option<&ToolResult> {
        self.tools.iter().find(|t| t.agent == agent && t.id == id)
    }

    /// A message's fate at one receiver.
    pub fn message(&self, id: &str, to: usize) -> Option<&MessageResult> {
        self.messages.iter().find(|m| m.id == id && m.to == to)
    }

    /// The injection that took a message to a receiver.
    pub fn injection(&self, id: &str, to: usize) -> Option<&Injection> {
        match self.message(id, to)?.fate {
            Fate::Injected(i) => self.injections.get(i),
            _ => None,
        }
    }

    /// One run of an agent.
    pub fn run(&self, agent: usize, run: u32) -> Option<&RunResult> {
        self.runs.iter().find(|r| r.agent == agent && r.run == run)
    }
}
