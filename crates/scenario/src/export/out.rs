//! The scenario file as it is written: the counterpart of what `file` reads. Keys that would
//! say the default are left out. The YAML itself is the serializer's.

use std::collections::BTreeMap;

use midturn_core::rules::approval::{Decision, Mode};
use midturn_core::rules::conversation::{ToolStatus, Usage};
use midturn_core::rules::event::Outcome;
use midturn_core::rules::id::{AgentName, RunId};
use midturn_core::rules::mail::{Point, ReturnReason, Role, Urgency};
use midturn_core::rules::settings::LimitsPatch;
use midturn_core::rules::time::Span;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::ExportError;
use super::plan::Mark;

/// A duration in microseconds, as it was measured: `1500us`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Us(pub(super) Span);

impl Us {
    fn is_zero(&self) -> bool {
        self.0 == Span::ZERO
    }
}

impl Serialize for Us {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.0 {
            0 => serializer.serialize_u64(0),
            micros => serializer.collect_str(&format_args!("{micros}us")),
        }
    }
}

/// Whether a key says the default.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_true(value: &bool) -> bool {
    *value
}

#[derive(Debug, Serialize)]
pub(super) struct OutFile {
    pub(super) midturn: u32,
    pub(super) name: String,
    pub(super) description: String,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) settings: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) approvals: Option<OutApprovals>,
    pub(super) agents: Vec<OutAgent>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) messages: Vec<OutItem>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) expect: Vec<OutClaim>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct OutApprovals {
    pub(super) mode: Mode,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) allow: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) deny: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) patience: Option<Us>,
    pub(super) attached: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct OutAgent {
    pub(super) name: String,
    pub(super) role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) start: Option<&'static str>,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) settings: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<Vec<OutEntry>>,
}

impl OutAgent {
    /// An agent that was a parent before it came, and never did.
    pub(super) fn announced(name: &AgentName) -> Self {
        Self {
            name: name.to_string(),
            role: Role::Subagent,
            parent: None,
            prompt: None,
            start: Some("spawned"),
            settings: Value::Null,
            model: None,
        }
    }
}

/// When scripted work ends.
#[derive(Debug, Default, Serialize)]
pub(super) struct OutEnd {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) takes: Option<Us>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ends_after: Option<OutAfter>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct OutEntry {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) thinking: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) text: String,
    #[serde(flatten)]
    pub(super) end: OutEnd,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<OutCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry_after: Option<Us>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stop_reason: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) usage: Usage,
}

impl Default for Us {
    fn default() -> Self {
        Self(Span::ZERO)
    }
}

#[derive(Debug, Serialize)]
pub(super) struct OutCall {
    pub(super) id: String,
    pub(super) name: String,
    #[serde(skip_serializing_if = "is_nothing")]
    pub(super) input: Value,
    #[serde(flatten)]
    pub(super) end: OutEnd,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) output: Vec<(Us, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) safe: Option<bool>,
    #[serde(skip_serializing_if = "is_true")]
    pub(super) abortable: bool,
    #[serde(skip_serializing_if = "Us::is_zero")]
    pub(super) abort_takes: Us,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) continues: Option<Us>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) provider: bool,
}

/// An absent input and an empty one are the same.
fn is_nothing(input: &Value) -> bool {
    input.is_null() || input.as_object().is_some_and(serde_json::Map::is_empty)
}

#[derive(Debug, Default, Serialize)]
pub(super) struct OutItem {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<Us>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<OutAfter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stop: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) supersede: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) resume: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) close: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) withdraw: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) decision: Option<Decision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raise: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limits: Option<LimitsPatch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) crash: Option<Us>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) shutdown: Option<Us>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) urgency: Option<Urgency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires_after: Option<Us>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) supersedes: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) if_queued: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) only_run: Option<RunId>,
}

/// `{agent, EVENT: ID, plus}`.
#[derive(Debug)]
pub(super) struct OutAfter {
    /// `None`: the session began.
    pub(super) mark: Option<Mark>,
    pub(super) plus: Us,
}

impl Serialize for OutAfter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        let mut map = serializer.serialize_map(None)?;
        match &self.mark {
            Some(mark) => {
                map.serialize_entry("agent", mark.agent.as_str())?;
                map.serialize_entry(mark.event, &mark.id)?;
            }
            None => map.serialize_entry("session_started", "any")?,
        }
        if !self.plus.is_zero() {
            map.serialize_entry("plus", &self.plus)?;
        }
        map.end()
    }
}

#[derive(Debug, Default, Serialize)]
pub(super) struct OutClaim {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) tools: BTreeMap<String, ToolStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) injected: Option<OutInjected>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) returned: Option<ReturnReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queued: Option<bool>,
}

#[derive(Debug, Serialize)]
pub(super) struct OutInjected {
    pub(super) point: Point,
    pub(super) run: RunId,
    pub(super) turn: u32,
}

/// The text of the file.
pub(super) fn text(file: &OutFile) -> Result<String, ExportError> {
    // Every key of a text is in quotes where it has to be, on lines of its own where it has several.
    serde_saphyr::to_string(file).map_err(|error| ExportError::damaged(format!("it is no YAML: {error}")))
}
