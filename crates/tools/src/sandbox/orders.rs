//! What is made of a sandbox on the other side of a control socket: by an anchor once, and by each command's process
//! before it becomes the command. What an agent's commands have in common is shared, and compared as such.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::mount_plan::Step;
use super::rights::Rights;
use super::seccomp::Filter;

/// All of it. Nothing of what the command's process does to itself can be taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Orders {
    /// The view to make. `None`: the one that is there.
    pub(crate) view: Option<Arc<View>>,
    /// The port on the loopback of its own at which we listen for those who want out.
    pub(crate) way_out: Option<u16>,
    /// What the command's process does to itself before it becomes the command: it takes these
    /// limits, gives up its privileges, and keeps these rights and what this filter leaves.
    pub(crate) bounds: Bounds,
    pub(crate) no_privileges: bool,
    pub(crate) rights: Option<Arc<Rights>>,
    pub(crate) filter: Option<Filter>,
}

/// A view of the file system of its own, where bubblewrap doesn't make it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct View {
    pub(crate) steps: Vec<Step>,
    /// No network but a loopback of its own.
    pub(crate) network_off: bool,
}

/// Limits of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bounds {
    pub(crate) file_size: Option<u64>,
    pub(crate) open_files: Option<u64>,
    /// Where no cgroup holds the tree.
    pub(crate) memory: Option<u64>,
    /// What each folder in memory holds, where a view has some.
    pub(crate) in_memory: Option<u64>,
    /// Where no cgroup holds the tree; beyond what the user has in this namespace.
    pub(crate) processes: Option<u64>,
}
