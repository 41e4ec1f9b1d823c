//! A scenario as plain structs, in integer microseconds, and nothing of the engine's own types.
//!
//! The reference shares no type with the engine on purpose: a scenario reaches the engine only as YAML text
//! (`yaml.rs`), so a mistake in the engine's own data model can't hide in both.

use serde_json::Value;

/// Microseconds since the session began, or a duration in microseconds.
pub type Micros = u64;

/// The four urgencies (semantics.md section 2), in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    FollowUp,
    AfterTools,
    NextBoundary,
    Urgent,
}

impl Urgency {
    /// The word of the file.
    pub fn word(self) -> &'static str {
        match self {
            Urgency::FollowUp => "follow_up",
            Urgency::AfterTools => "after_tools",
            Urgency::NextBoundary => "next_boundary",
            Urgency::Urgent => "urgent",
        }
    }

    /// The urgency that a word of the file names.
    pub fn parse(word: &str) -> Option<Urgency> {
        [Urgency::FollowUp, Urgency::AfterTools, Urgency::NextBoundary, Urgency::Urgent]
            .into_iter()
            .find(|u| u.word() == word)
    }
}

/// How a message names its urgency: not at all, as the plain form, or in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Default,
    Plain(bool),
    Full(Urgency),
}

/// Limits over a life (semantics.md section 7); `None` is "not written".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub turns: Option<u64>,
    pub tokens: Option<u64>,
    pub time: Option<Micros>,
}

impl Limits {
    /// These where they are written, else the others.
    pub fn or(self, other: Limits) -> Limits {
        Limits {
            turns: self.turns.or(other.turns),
            tokens: self.tokens.or(other.tokens),
            time: self.time.or(other.time),
        }
    }
}

/// An event that something waits for: `{agent, EVENT: ID, plus}`; the first such event counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    pub agent: usize,
    pub event: String,
    pub of: String,
    pub plus: Micros,
}

/// Settings of the file or of one agent; `None` is "not written".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub to_lead: Option<Urgency>,
    pub from_above: Option<Urgency>,
    pub from_others: Option<Urgency>,
    pub urgent_cuts_stream: Option<bool>,
    pub keep_edits_together: Option<bool>,
    pub concurrency_all: Option<bool>,
    pub max_parallel_tools: Option<usize>,
    pub return_on_error: Option<bool>,
    pub mailbox_messages: Option<usize>,
    pub abort_deadline: Option<Micros>,
    pub urgent_from_peers: Option<bool>,
    pub urgent_per_minute: Option<usize>,
    pub max_depth: Option<u32>,
    pub max_agents: Option<usize>,
    /// The agent's own limits; the file's are every agent's.
    pub limits: Limits,
    /// The session's limits; only the file's count.
    pub session: Limits,
    pub retry_attempts: Option<u32>,
    pub retry_time: Option<Micros>,
    pub retry_base: Option<Micros>,
    pub retry_cap: Option<Micros>,
}

/// Why a scripted model call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelError {
    Overloaded,
    RateLimited,
    Server,
    Connection,
    InvalidRequest,
}

impl ModelError {
    /// The word of the file.
    pub fn word(self) -> &'static str {
        match self {
            ModelError::Overloaded => "overloaded",
            ModelError::RateLimited => "rate_limited",
            ModelError::Server => "server",
            ModelError::Connection => "connection",
            ModelError::InvalidRequest => "invalid_request",
        }
    }

    /// Whether semantics.md section 7 retries it.
    pub fn retryable(self) -> bool {
        self != ModelError::InvalidRequest
    }
}

/// One tool call of a scripted reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub id: String,
    pub name: String,
    pub input: Option<Value>,
    pub takes: Micros,
    /// It runs until this event instead of for `takes`.
    pub ends_after: Option<Anchor>,
    pub result: String,
    pub error: Option<String>,
    pub output: Vec<(Micros, String)>,
    pub safe: Option<bool>,
    pub abortable: bool,
    pub abort_takes: Micros,
    pub continues: Option<Micros>,
    pub provider: bool,
}

impl Call {
    /// A call with the file's defaults.
    pub fn new(id: &str, name: &str, takes: Micros) -> Call {
        Call {
            id: id.to_string(),
            name: name.to_string(),
            input: None,
            takes,
            ends_after: None,
            result: String::new(),
            error: None,
            output: Vec::new(),
            safe: None,
            abortable: true,
            abort_takes: 0,
            continues: None,
            provider: false,
        }
    }

    /// Whether the call is concurrency-safe (semantics.md section 5).
    pub fn is_safe(&self) -> bool {
        let by_name = matches!(self.name.as_str(), "read" | "grep" | "glob" | "list_agents" | "receipts");
        self.safe.unwrap_or(by_name)
    }

    /// Whether the call edits a file, for `keep_edits_together`.
    pub fn is_edit(&self) -> bool {
        matches!(self.name.as_str(), "edit" | "write")
    }

    /// The file an edit names, for `concurrency = "all"`.
    pub fn edited_path(&self) -> Option<&str> {
        if !self.is_edit() {
            return None;
        }
        self.input.as_ref().and_then(|i| i.get("path")).and_then(Value::as_str)
    }

    /// Whether the coordinator itself answers the call.
    pub fn is_coordinators(&self) -> bool {
        const NAMES: [&str; 8] = [
            "spawn_agent",
            "send_message",
            "receipts",
            "wait_agents",
            "list_agents",
            "stop_agent",
            "close_agent",
            "update_plan",
        ];
        NAMES.contains(&self.name.as_str())
    }
}

/// One scripted model call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    pub text: Option<String>,
    pub thinking: Option<String>,
    pub takes: Micros,
    /// It runs until this event instead of for `takes`.
    pub ends_after: Option<Anchor>,
    pub tools: Vec<Call>,
    pub error: Option<ModelError>,
    pub retry_after: Option<Micros>,
    pub stop_reason: Option<String>,
    /// Tokens in and out.
    pub usage: Option<(u64, u64)>,
}

/// One agent of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agent {
    pub name: String,
    pub lead: bool,
    /// Index of the parent; the writer always spells it out.
    pub parent: Option<usize>,
    pub prompt: Option<String>,
    pub spawned: bool,
    pub settings: Settings,
    /// Without it the agent is a name only.
    pub model: Option<Vec<Entry>>,
}

/// Who a message of the file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    Agent(usize),
    Parent,
    All,
}

/// When an item of `messages` arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    At(Micros),
    After { agent: usize, event: String, of: String, plus: Option<Micros> },
}

/// A message of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// `None` is the user.
    pub from: Option<usize>,
    pub to: To,
    pub text: String,
    pub wish: Wish,
    pub expires_after: Option<Micros>,
    pub supersedes: Option<String>,
    pub if_queued: bool,
    pub only_run: Option<u32>,
}

impl Message {
    /// A message without extras.
    pub fn new(from: Option<usize>, to: To, text: &str, wish: Wish) -> Message {
        Message {
            from,
            to,
            text: text.to_string(),
            wish,
            expires_after: None,
            supersedes: None,
            if_queued: false,
            only_run: None,
        }
    }
}

/// What an item does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Message(Message),
    Stop {
        agent: usize,
        by: Option<usize>,
        subtree: bool,
    },
    Supersede {
        agent: usize,
        text: String,
    },
    /// `None` is all agents.
    Resume {
        agent: Option<usize>,
    },
    Close {
        agent: usize,
        by: Option<usize>,
    },
    Withdraw {
        message: String,
        by: Option<usize>,
    },
    /// `None` is the session.
    Raise {
        agent: Option<usize>,
        limits: Limits,
    },
    /// The process ends; its session is taken up again so much later.
    Crash {
        down: Micros,
    },
    /// The same after a shutdown.
    Shutdown {
        down: Micros,
    },
}

/// One item of `messages`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub id: String,
    pub when: When,
    pub act: Act,
}

/// A whole scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    pub name: String,
    pub settings: Settings,
    pub agents: Vec<Agent>,
    pub items: Vec<Item>,
}

impl Scenario {
    /// The index of an agent's name.
    pub fn agent(&self, name: &str) -> Option<usize> {
        self.agents.iter().position(|a| a.name == name)
    }
}
