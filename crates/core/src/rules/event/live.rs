//! What is only told while it happens: the part of the vocabulary that is in no journal.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Place;
use crate::rules::id::CallId;
use crate::rules::time::Micros;

/// What is only told while it happens and not recorded piece by piece: it carries the `seq`
/// of the event before it and a counter of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveEvent {
    /// The version of the vocabulary.
    pub v: u32,
    /// The `seq` of the event before it.
    pub seq: u64,
    /// Counts the live events.
    pub n: u64,
    /// When: since the session began.
    pub t: Micros,
    /// Whom it concerns.
    #[serde(flatten)]
    pub at: Place,
    /// What was said.
    #[serde(flatten)]
    pub kind: LiveKind,
}

/// The kinds of live event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are those of the table in scenarios.md, section 4")]
pub enum LiveKind {
    TextDelta { text: String },
    ThinkingDelta { text: String },
    CallDelta { tool: CallId, name: Arc<str>, bytes: u64 },
    ToolOutput { tool: CallId, text: String },
}

impl LiveKind {
    /// The text that goes on; none of a call's arguments, which are only counted.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::TextDelta { text } | Self::ThinkingDelta { text } | Self::ToolOutput { text, .. } => {
                Some(text)
            }
            Self::CallDelta { .. } => None,
        }
    }

    /// The same, to be changed.
    pub fn text_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::TextDelta { text } | Self::ThinkingDelta { text } | Self::ToolOutput { text, .. } => {
                Some(text)
            }
            Self::CallDelta { .. } => None,
        }
    }

    /// The word in the field `type`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::TextDelta { .. } => "text_delta",
            Self::ThinkingDelta { .. } => "thinking_delta",
            Self::CallDelta { .. } => "call_delta",
            Self::ToolOutput { .. } => "tool_output",
        }
    }
}
