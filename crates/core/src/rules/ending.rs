//! How what was begun ends: a run's outcome, and why a stream or a call was cut.

use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing more to do.
    Finished,
    /// Stopped by a person, an ancestor or a shutdown.
    Stopped,
    /// An error.
    Failed,
    /// A limit.
    Limit,
}

impl Outcome {
    /// The word of the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Limit => "limit",
        }
    }
}

/// Why a stream or a call was cut (semantics.md, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InterruptReason {
    /// A person stopped it.
    UserCancelled,
    /// A person stopped it and started anew.
    Superseded,
    /// An urgent message.
    MessageInterrupt,
    /// An ancestor stopped it.
    StoppedByParent,
    /// The process ends.
    Shutdown,
    /// A limit in time was reached.
    Limit,
    /// The stream failed, or its process ended.
    Error,
}

impl InterruptReason {
    /// The word of the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UserCancelled => "user_cancelled",
            Self::Superseded => "superseded",
            Self::MessageInterrupt => "message_interrupt",
            Self::StoppedByParent => "stopped_by_parent",
            Self::Shutdown => "shutdown",
            Self::Limit => "limit",
            Self::Error => "error",
        }
    }
}
