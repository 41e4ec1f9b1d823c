//! How soon a message acts: the ladder of semantics.md, section 2.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How soon a message acts: the ladder of semantics.md, section 2. Ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Urgency {
    /// When the agent would otherwise finish, or at once if it is idle.
    FollowUp = 1,
    /// When all tool results of the turn are in.
    AfterTools = 2,
    /// At the next boundary; what has not started is skipped.
    NextBoundary = 3,
    /// Now: what runs is aborted.
    Urgent = 4,
}

impl Urgency {
    /// All four, from the mildest.
    pub const ALL: [Self; 4] = [Self::FollowUp, Self::AfterTools, Self::NextBoundary, Self::Urgent];

    /// The word of the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FollowUp => "follow_up",
            Self::AfterTools => "after_tools",
            Self::NextBoundary => "next_boundary",
            Self::Urgent => "urgent",
        }
    }
}
