//! What is known of a session's turns: one small file beside their trees, read and written by whoever holds the lock.

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use midturn_core::rules::id::{AgentName, RunId, TurnId};
use serde::{Deserialize, Serialize};

use crate::confined::private_folder;
use crate::protect::head_of;

/// The format of the file, and how long it may be, in bytes.
const VERSION: u32 = 1;
const BYTES_MAX: u64 = 4 << 20;

const FILE: &str = "turns.json";

/// What an agent is to be told with its next call's result.
const UNTOLD: &str = "untold";
const UNTOLD_MAX: u64 = 16 << 10;

/// A turn of an agent, as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// The agent.
    pub agent: AgentName,
    /// Its run.
    pub run: RunId,
    /// The turn in that. `None`: its process ended in the middle of it.
    pub turn: Option<TurnId>,
}

/// A turn that changed files in the project folder; several, where they overlapped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Whose.
    pub who: Vec<Who>,
    /// When its first call that could change something began, in seconds since 1970.
    pub began_at: u64,
    /// Whether its agent committed in it: commits stay.
    pub committed: bool,
    /// How many files it changed; 0 while it is under way.
    pub files: usize,
    /// Files that were not looked at: too large, or they can't be read.
    pub left_out: Vec<String>,
    pub(super) before: String,
    pub(super) after: Option<String>,
}

/// All that is known of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ledger {
    version: u32,
    /// The work tree, and the folder in it.
    pub(super) top: PathBuf,
    pub(super) folder: PathBuf,
    /// The oldest first.
    pub(super) turns: Vec<Turn>,
    /// How much the trees added at most, in bytes.
    pub(super) bytes: u64,
}

impl Ledger {
    pub(super) fn new(top: PathBuf, folder: PathBuf) -> Self {
        Self { version: VERSION, top, folder, turns: Vec::new(), bytes: 0 }
    }
}

/// The folder of one session's turns.
#[derive(Clone, Debug)]
pub(super) struct Place(PathBuf);

/// Held while a turn is under way, and while one is undone.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) place: Place,
    lock: File,
}

impl Place {
    /// Below a state folder; `session` as its folders are called.
    pub(super) fn new(state: &Path, session: &str) -> Self {
        Self(state.join("undo").join(session))
    }

    pub(super) fn git(&self) -> PathBuf {
        self.0.join("git")
    }

    pub(super) fn exists(&self) -> bool {
        self.0.join(FILE).exists()
    }

    /// Holds it. `None`: somebody else does.
    pub(super) fn hold(&self) -> io::Result<Option<Held>> {
        private_folder(&self.0)?;
        let lock = File::options().create(true).append(true).open(self.0.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Held { place: self.clone(), lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// What is to be told, once.
    pub(super) fn take_untold(&self) -> Option<String> {
        let path = self.0.join(UNTOLD);
        path.symlink_metadata().ok()?;
        let text = head_of(&path, UNTOLD_MAX).ok()?;
        std::fs::remove_file(path).ok()?;
        Some(String::from_utf8_lossy(&text).trim_end().to_owned())
    }

    /// To be told beside what is there to be told.
    pub(super) fn tell(&self, text: &str) -> io::Result<()> {
        let mut file = File::options().create(true).append(true).open(self.0.join(UNTOLD))?;
        writeln!(file, "{text}")
    }
}

impl Drop for Held {
    /// Said, not only let go: a process that was forked a moment ago may hold the file open until it runs its program.
    fn drop(&mut self) {
        let _ = self.lock.unlock();
    }
}

impl Held {
    /// What is known. `None`: nothing yet.
    pub(super) fn load(&self) -> io::Result<Option<Ledger>> {
        let bytes = match head_of(&self.place.0.join(FILE), BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let ledger: Ledger = serde_json::from_slice(&bytes)?;
        if ledger.version != VERSION {
            return Err(io::Error::other(format!(
                "{} is of another version of Midturn",
                self.place.0.display()
            )));
        }
        Ok(Some(ledger))
    }

    pub(super) fn save(&self, ledger: &Ledger) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.place.0)?;
        file.write_all(&serde_json::to_vec(ledger)?)?;
        file.persist(self.place.0.join(FILE))?;
        Ok(())
    }

    /// Forgets all turns, and what their trees hold.
    pub(super) fn forget(&self) -> io::Result<()> {
        for folder in [self.place.git(), self.place.0.join(FILE)] {
            match folder.symlink_metadata() {
                Ok(about) if about.is_dir() => std::fs::remove_dir_all(folder)?,
                Ok(_) => std::fs::remove_file(folder)?,
                Err(_) => {}
            }
        }
        Ok(())
    }
}
