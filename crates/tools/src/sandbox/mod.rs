//! What an agent's commands can reach: the kinds of sandbox there are, what is asked of one, and
//! what is in force.
//!
//! [`Sandbox::probe`] finds the best one by really running a command in it; a
//! [`Supervisor`](crate::process::Supervisor) then starts each command in it, within the
//! [`Confinement`] of its agent. Nothing in here decides what an agent may touch, and nothing
//! ever runs a command with less than what is [in force](Sandbox::in_force): what can't be
//! built is an error.

mod bubblewrap;
pub(crate) mod cgroup;
mod in_force;
mod in_memory;
pub(crate) mod lock;
mod look;
pub(crate) mod mount_plan;
pub(crate) mod orders;
mod places;
mod powerless;
pub(crate) mod prepare;
mod probe;
mod rights;
mod seccomp;
pub(crate) mod stand_in;
mod toolchains;
pub(crate) mod upper;
pub(crate) mod view;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::cgroup::Exceeded;
pub use self::in_force::{InForce, Kept, LimitsBy, NetworkState};
pub use self::in_memory::InMemory;
pub(crate) use self::prepare::Prepared;
pub use self::toolchains::Toolchains;

use self::cgroup::Groups;
use self::rights::Abilities;
use self::seccomp::Filter;
use crate::network::{Hosts, Network};
use crate::process::Supervision;

/// Which kind of sandbox is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Bubblewrap, and seccomp in it.
    Bubblewrap,
    /// Landlock and seccomp, in namespaces where the system has them.
    Landlock,
    /// None: chosen by a person.
    None,
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The kind; `None`: the best there is.
    pub tier: Option<Tier>,
    /// What of the network commands may use.
    pub network: Network,
    /// How much one command and all it starts may take.
    pub limits: TreeLimits,
}

/// Limits on everything that one command starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TreeLimits {
    /// Processes and threads at a time.
    pub processes: u32,
    /// Memory, in bytes.
    pub memory: u64,
    /// The largest file that can be written, in bytes.
    pub file_size: u64,
    /// Files that one process can have open.
    pub open_files: u32,
}

impl TreeLimits {
    /// How much a folder in memory holds: it is a part of the memory, and there are several.
    pub(crate) fn in_memory(&self) -> u64 {
        self.memory / 4
    }
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self { processes: 512, memory: 2 << 30, file_size: 1 << 30, open_files: 1024 }
    }
}

/// What one agent's commands may touch. Of the rest of the file system they see the system's programs and
/// settings, read-only, and nothing else. All paths are absolute; of two of which one is below the
/// other, the lower one holds there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Files and folders that can be written, with all below. One that doesn't exist is left
    /// out. Files that programs replace (git's `HEAD`, say) need their folder here: a place that
    /// is named can be neither removed nor replaced, only written.
    pub writable: Vec<PathBuf>,
    /// Files and folders that can be seen, with all below, and not written; below a writable one that says
    /// nothing. One that doesn't exist is left out.
    pub readable: Vec<PathBuf>,
    /// Folders that are the agent's own under another's name.
    pub own: Vec<Own>,
    /// What tools keep to have it at hand the next time. One that doesn't exist is left out.
    pub caches: Vec<Cache>,
    /// Below a writable one, not writable all the same. One that doesn't exist can't be made;
    /// for that, an empty folder stands in its place while commands run (see `lingers`). Elsewhere it says nothing, but in
    /// what is hidden or private it can be seen.
    pub read_only: Vec<PathBuf>,
    /// Not to be read either; otherwise as before.
    pub hidden: Vec<PathBuf>,
    /// Of these folders only what is named below them is to be seen. Commands can make files in
    /// them, as git does its locks; nobody else sees those, and they are gone afterwards. Where
    /// there is no view of one's own, such a folder can be read, and not written.
    pub private: Vec<PathBuf>,
    /// The agent's own folder for temporary files: writable, and `/tmp` where there can be a
    /// view of one's own, unless it or something else to be seen is below `/tmp` itself; then `/tmp` is
    /// in memory, as long as the view is.
    pub temporary: PathBuf,
    /// Whether what stands in for something that isn't there may stay half a second longer than its command, for the
    /// next one.
    pub lingers: bool,
}

/// A folder of the agent's own under another's name, as the person's home is. Where there is no view of one's own,
/// it is where it is, and whoever makes the command's environment says so there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Its name for commands.
    pub at: PathBuf,
    /// Where it is.
    pub from: PathBuf,
}

/// A person's cache, seen by commands, with what they change in it kept apart; where that can't be had they can only
/// read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The person's.
    pub at: PathBuf,
    /// A folder of the agent's, for what is changed.
    pub above: PathBuf,
}

/// Why there is no sandbox: what is missing, and how to get it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoSandbox(pub String);

/// A sandbox that was tried out and works here.
#[derive(Clone, Debug)]
pub struct Sandbox {
    wanted: Wanted,
    engine: Engine,
    abilities: Abilities,
    filter: Option<Filter>,
    groups: Option<Groups>,
}

/// Who builds it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Engine {
    Bubblewrap,
    Landlock(Supervision),
    Nobody,
}

impl Engine {
    /// Commands have a view of the file system of their own.
    fn has_a_view(&self) -> bool {
        !self.has_no_namespaces() && *self != Self::Nobody
    }

    /// Landlock alone: commands meet all that the machine has.
    fn has_no_namespaces(&self) -> bool {
        *self == Self::Landlock(Supervision::Subreaper)
    }
}

impl Sandbox {
    /// What was asked for.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Whether its commands have all of the machine's network.
    fn is_open(&self) -> bool {
        self.wanted.network == Network::On || self.engine == Engine::Nobody
    }

    /// The hosts that its commands may reach, where they can be held to a list: it takes a network of their own that
    /// we are in, too. Elsewhere their network is off.
    fn hosts(&self) -> Option<&Arc<Hosts>> {
        match (&self.wanted.network, &self.engine) {
            (Network::Hosts(hosts), Engine::Landlock(kind)) if *kind != Supervision::Subreaper => Some(hosts),
            _ => None,
        }
    }

    /// The supervision that belongs to it. `None`: any.
    pub(crate) fn supervision(&self) -> Option<Supervision> {
        match self.engine {
            Engine::Bubblewrap => Some(Supervision::Inside),
            Engine::Landlock(supervision) => Some(supervision),
            Engine::Nobody => None,
        }
    }
}
