//! Folders in memory that a command fills: they hold so much and no more, and whoever filled one is told.

use std::path::Path;

use rustix::fs::statvfs;
use serde::{Deserialize, Serialize};

/// One that every view has, or may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InMemory {
    /// `/dev/shm`.
    Shared,
    /// `/tmp`, where it isn't the agent's folder on disk.
    Temporary,
}

/// What is left of one that is full, at most: the last write may not have fitted.
const REST: u64 = 16 << 10;

impl InMemory {
    /// Its name for commands.
    pub fn path(self) -> &'static str {
        match self {
            Self::Shared => "/dev/shm",
            Self::Temporary => "/tmp",
        }
    }

    /// The one that is full, of those that hold so much: others are no folders of ours.
    pub(crate) fn full(room: u64) -> Option<Self> {
        [Self::Shared, Self::Temporary].into_iter().find(|one| is_full(Path::new(one.path()), room))
    }
}

fn is_full(path: &Path, room: u64) -> bool {
    let Ok(found) = statvfs(path) else { return false };
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    bytes(found.f_blocks).abs_diff(room) <= REST && bytes(found.f_bavail) <= REST
}
