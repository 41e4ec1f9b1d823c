//! What the reference finds: every tool's end, every message's fate, every run's outcome.

use super::model::Micros;

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
    /// `None` where a report's text is not given by the pages.
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

/// One message for one receiver.
#[derive(Clone, Debug)]
pub struct MessageResult {
    pub id: String,
    pub to: usize,
    pub text: String,
    pub urgency: super::model::Urgency,
    pub sent: Micros,
    pub fate: Fate,
}

/// One model call, a retry's attempts each for itself.
#[derive(Clone, Debug)]
pub struct ModelCall {
    pub agent: usize,
    pub call: u32,
    pub run: u32,
    pub turn: u32,
    pub started: Micros,
    /// When it was cut and how many words were out; a cut is by mail or by a stop.
    pub cut: Option<(Micros, u64)>,
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
