//! What is said of an agent's place before it is made: apart or not, with which tools, and what
//! commands may touch besides what they need anyway.

use std::path::PathBuf;

use midturn_core::rules::id::AgentName;
use serde::{Deserialize, Serialize};

/// Whether an agent works apart from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In a worktree and on a branch of its own, where there is a repository.
    Worktree,
    /// In the project folder itself.
    None,
}

/// What an agent is given to work with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPlace {
    /// Whether it works apart.
    pub isolation: Isolation,
    /// The work tools it has, by name in any case; `None`: all of them.
    pub tools: Option<Vec<String>>,
}

impl AgentPlace {
    /// All work tools, in a place of this kind.
    pub fn new(isolation: Isolation) -> Self {
        Self { isolation, tools: None }
    }
}

/// Says what an agent is given; asked once, when its first run starts.
pub type PlaceOf = dyn Fn(&AgentName) -> AgentPlace + Send + Sync;

/// What commands of agents in the project folder may do with git's own folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GitAccess {
    /// Look at it: their agents commit by a tool (docs/decisions/0036).
    #[default]
    Read,
    /// Commit and branch by git itself; settings and hooks stay as they are.
    Write,
}

/// What commands may touch besides what their agents need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// How far the project's own git folder is open to them.
    pub git: GitAccess,
    /// Folders that all agents may write in, as a cache that builds share.
    pub writable: Vec<PathBuf>,
    /// Files and folders that all agents may read, besides what toolchains need.
    pub readable: Vec<PathBuf>,
    /// Files and folders that are kept from all agents: a token, a socket, a database. The state
    /// folder, and where people keep keys, are hidden anyway.
    pub hidden: Vec<PathBuf>,
    /// Variables whose values they get besides those that all commands get.
    pub environment: Vec<String>,
}
