//! What a supervisor is told to do before it starts the command: its side of a sandbox. It
//! travels through the control socket, behind the command.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::layout::Step;
use super::rights::Rights;
use super::seccomp::Filter;

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Orders {
    /// The view to make. `None`: the one that is there.
    pub(crate) view: Option<View>,
    /// What the command's process does to itself.
    pub(crate) lock: Lock,
}

/// A view of the file system of its own, where bubblewrap doesn't make it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct View {
    pub(crate) steps: Vec<Step>,
    /// Where the command runs, to be entered anew: who stands in a folder stands below what is
    /// mounted on it.
    pub(crate) folder: PathBuf,
    /// No network but a loopback of its own.
    pub(crate) network_off: bool,
}

/// What the command's process does to itself before it becomes the command. Nothing of it can
/// be taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lock {
    pub(crate) bounds: Bounds,
    pub(crate) no_privileges: bool,
    pub(crate) rights: Option<Rights>,
    pub(crate) filter: Option<Filter>,
}

/// Limits of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bounds {
    pub(crate) file_size: Option<u64>,
    pub(crate) open_files: Option<u64>,
    /// Where no cgroup holds the tree.
    pub(crate) memory: Option<u64>,
    /// As before; beyond what the user has in this namespace.
    pub(crate) processes: Option<u64>,
}

/// Which of it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Failed {
    Orders = 1,
    View = 2,
    Cgroup = 3,
    Bounds = 4,
    Privileges = 5,
    Rights = 6,
    Filters = 7,
}

impl Failed {
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        use Failed::{Bounds, Cgroup, Filters, Orders, Privileges, Rights, View};
        [Orders, View, Cgroup, Bounds, Privileges, Rights, Filters].into_iter().find(|f| *f as u32 == number)
    }

    /// For people.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Orders => "what it was told could not be read",
            Self::View => "its own view of the file system could not be made",
            Self::Cgroup => "the command could not be put into its cgroup",
            Self::Bounds => "its limits could not be set",
            Self::Privileges => "privileges could not be given up",
            Self::Rights => "Landlock could not be applied",
            Self::Filters => "system calls could not be filtered",
        }
    }
}
