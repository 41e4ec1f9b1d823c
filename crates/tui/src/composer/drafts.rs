//! Drafts on the disk, for the next terminal when this one is killed.
use midturn_core::rules::id::AgentName;
use serde::{Deserialize, Serialize};
/// What is saved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// The drafts.
    pub drafts: Vec<SavedDraft>,
    /// History.
    pub history: Vec<String>,
}
/// One agent's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedDraft {
    /// Whose.
    pub agent: AgentName,
    /// Texts.
    pub texts: Vec<String>,
    /// Cursor.
    pub cursor: (usize, usize),
}
