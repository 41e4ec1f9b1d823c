//! Scripted models and simulated tools. They come in through the same ports as real ones.

mod anchor;
mod model;
pub mod script;
mod tools;
mod words;

pub use anchor::{Anchor, Anchors, EndsAfter, Reached};
pub use model::{PromptRecord, ScriptedModels};
pub use script::{ScriptedCall, ScriptedReply};
pub use tools::SimulatedTools;

use std::collections::HashMap;
use std::sync::Arc;

use crate::rules::id::AgentName;

/// The scripts of a scenario's agents.
pub type Scripts = HashMap<AgentName, Arc<[ScriptedReply]>>;
