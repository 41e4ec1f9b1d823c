//! What an agent knows of the files in a folder where others work, too: a file that somebody else changed
//! since the agent read it is not written over (docs/decisions/0041). What the agent's own commands
//! changed it is taken to know, as long as no other agent's command ran at the same time.
//!
//! Nothing here prevents a change: it is found out just before a file is replaced, and by the folder's
//! agents alone. It is forgotten when the process ends; then a file counts as one that was not read.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::Stat;

/// How many files are known of one agent, and of a folder.
const FILES_MAX: usize = 10_000;

/// What tells whether a file is as it was: device, inode, size, time of its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(u64, u64, u64, i64, i64);

impl From<&Stat> for Version {
    fn from(stat: &Stat) -> Self {
        let nanoseconds = i64::try_from(stat.st_ctime_nsec).unwrap_or_default();
        Self(stat.st_dev, stat.st_ino, stat.st_size.unsigned_abs(), stat.st_ctime, nanoseconds)
    }
}

impl Version {
    /// That of the file with this name below a folder; `None`: it is gone.
    fn of(root: &Path, file: &str) -> Option<Self> {
        let found = root.join(file).symlink_metadata().ok()?;
        Some(Self(found.dev(), found.ino(), found.size(), found.ctime(), found.ctime_nsec()))
    }
}

/// What all agents of a folder have in common.
#[derive(Debug, Default)]
pub(crate) struct Together(Mutex<Folder>);

#[derive(Debug, Default)]
struct Folder {
    /// Who wrote a file last by a tool, and the how manieth write it was.
    written: HashMap<String, (Arc<str>, u64)>,
    writes: u64,
    /// Commands that run, and all that ever began.
    running: u64,
    begun: u64,
}

/// A file, as the agent knows it.
#[derive(Clone, Copy, Debug)]
struct Known {
    version: Version,
    /// What is in it; `None`: the agent's own command changed it.
    content: Option<u64>,
}

/// What one agent knows.
#[derive(Debug)]
pub(crate) struct Seen {
    agent: Arc<str>,
    together: Arc<Together>,
    known: Mutex<HashMap<String, Known>>,
}

/// A command of the agent's that runs.
pub(crate) struct Running {
    together: Arc<Together>,
    /// Files that were as the agent knew them when it began.
    current: Vec<(String, Version)>,
    alone: bool,
    number: u64,
    writes: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.together.0.lock().running -= 1;
    }
}

fn hash(content: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(content);
    hasher.finish()
}

impl Seen {
    pub(crate) fn new(agent: &str, together: &Arc<Together>) -> Self {
        Self { agent: agent.into(), together: together.clone(), known: Mutex::default() }
    }

    /// The agent read the file.
    pub(crate) fn has_read(&self, file: &str, version: Version, content: &[u8]) {
        let mut known = self.known.lock();
        if known.len() < FILES_MAX || known.contains_key(file) {
            known.insert(file.to_owned(), Known { version, content: Some(hash(content)) });
        }
    }

    /// The agent wrote the file by a tool.
    pub(crate) fn has_written(&self, file: &str, version: Version, content: &[u8]) {
        self.has_read(file, version, content);
        let mut folder = self.together.0.lock();
        folder.writes += 1;
        let by_us = (self.agent.clone(), folder.writes);
        if folder.written.len() < FILES_MAX || folder.written.contains_key(file) {
            folder.written.insert(file.to_owned(), by_us);
        }
    }

    /// Whether the agent may change a part of the file, or (`whole`) all of it. `now`: what is there.
    ///
    /// # Errors
    /// Somebody else changed it since the agent read it; who, if that is known, and what to do.
    pub(crate) fn may_change(
        &self,
        file: &str,
        now: Option<(Version, &[u8])>,
        whole: bool,
    ) -> Result<(), String> {
        let other = self.other_writer(file);
        let Some(known) = self.known.lock().get(file).copied() else {
            return match (other, now, whole) {
                (Some(other), Some(_), true) => Err(format!(
                    "`{file}` is the work of `{other}`, and you have not read it, so nothing was written: read it, \
                     then write it with what is to stay, or use another name"
                )),
                _ => Ok(()),
            };
        };
        let Some((version, content)) = now else {
            self.known.lock().remove(file);
            return Err(format!(
                "`{file}` was removed by somebody else since you read it, so nothing was written: if it is to be there \
                 all the same, write it again"
            ));
        };
        if version == known.version || known.content == Some(hash(content)) {
            return Ok(());
        }
        let who = other.map_or_else(|| "somebody else".to_owned(), |other| format!("`{other}`"));
        Err(format!(
            "`{file}` was changed by {who} since you read it, so nothing was written: read it again, then make your \
             change to what is there now"
        ))
    }

    fn other_writer(&self, file: &str) -> Option<Arc<str>> {
        let folder = self.together.0.lock();
        folder.written.get(file).map(|(who, _)| who.clone()).filter(|who| *who != self.agent)
    }

    /// Before a command of the agent's.
    pub(crate) fn command_begins(&self, root: &Path) -> Running {
        let (alone, number, writes) = {
            let mut folder = self.together.0.lock();
            folder.running += 1;
            folder.begun += 1;
            (folder.running == 1, folder.begun, folder.writes)
        };
        let known = self.known.lock().clone();
        let current =
            known.into_iter().filter(|(file, known)| Version::of(root, file) == Some(known.version));
        let current = current.map(|(file, known)| (file, known.version)).collect();
        Running { together: self.together.clone(), current, alone, number, writes }
    }

    /// After it: what it changed is known to the agent.
    pub(crate) fn command_ended(&self, root: &Path, running: &Running) {
        let by_others = |file: &str| {
            let folder = self.together.0.lock();
            let written = folder.written.get(file);
            folder.begun != running.number
                || written.is_some_and(|(who, at)| *who != self.agent && *at > running.writes)
        };
        for (file, was) in &running.current {
            let now = Version::of(root, file);
            if now == Some(*was) || !running.alone || by_others(file) {
                continue;
            }
            let mut known = self.known.lock();
            match now {
                Some(version) => drop(known.insert(file.clone(), Known { version, content: None })),
                None => drop(known.remove(file)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Two {
        folder: tempfile::TempDir,
        one: Seen,
        two: Seen,
    }

    impl Two {
        /// Both have read `f`.
        fn new() -> Self {
            let (folder, together) = (tempfile::tempdir().unwrap(), Arc::default());
            let [one, two] = ["one", "two"].map(|agent| Seen::new(agent, &together));
            let place = Self { folder, one, two };
            place.write("0");
            place.reads(&place.one);
            place.reads(&place.two);
            place
        }

        fn write(&self, content: &str) {
            // A new file each time, as the tools make: its inode tells.
            let new = self.folder.path().join("new");
            std::fs::write(&new, content).unwrap();
            std::fs::rename(new, self.folder.path().join("f")).unwrap();
        }

        fn now(&self) -> Option<(Version, Vec<u8>)> {
            let version = Version::of(self.folder.path(), "f")?;
            Some((version, std::fs::read(self.folder.path().join("f")).unwrap()))
        }

        fn reads(&self, seen: &Seen) {
            let (version, content) = self.now().unwrap();
            seen.has_read("f", version, &content);
        }

        fn writes(&self, seen: &Seen, content: &str) {
            self.write(content);
            seen.has_written("f", self.now().unwrap().0, content.as_bytes());
        }

        fn may(&self, seen: &Seen) -> Result<(), String> {
            let now = self.now();
            seen.may_change("f", now.as_ref().map(|(version, content)| (*version, &**content)), true)
        }

        fn command(&self, seen: &Seen, does: impl FnOnce()) {
            let running = seen.command_begins(self.folder.path());
            does();
            seen.command_ended(self.folder.path(), &running);
        }
    }

    #[test]
    fn what_somebody_else_changed_is_not_written_over_until_it_is_read_again() {
        let two = Two::new();
        assert_eq!(two.may(&two.one), Ok(()));
        two.writes(&two.two, "2");
        assert_eq!(two.may(&two.two), Ok(()), "its own");
        assert!(two.may(&two.one).unwrap_err().contains("changed by `two` since you read it"));
        two.reads(&two.one);
        assert_eq!(two.may(&two.one), Ok(()));
        two.write("a person's");
        assert!(two.may(&two.one).unwrap_err().contains("changed by"), "and not by a tool");
        two.write("2");
        assert_eq!(two.may(&two.one), Ok(()), "the same text is there again");
    }

    #[test]
    fn what_another_agent_made_is_not_replaced_unread_and_what_it_removed_is_told() {
        let two = Two::new();
        let three = Seen::new("three", &two.one.together);
        assert_eq!(two.may(&three), Ok(()), "a person's file, as ever");
        two.writes(&two.one, "1");
        assert!(two.may(&three).unwrap_err().contains("the work of `one`"));
        std::fs::remove_file(two.folder.path().join("f")).unwrap();
        assert!(two.may(&two.two).unwrap_err().contains("was removed"));
        assert_eq!(two.may(&two.two), Ok(()), "it was told");
    }

    #[test]
    fn what_an_agents_own_command_changed_it_knows() {
        let two = Two::new();
        two.command(&two.one, || two.write("formatted"));
        assert_eq!(two.may(&two.one), Ok(()));
        assert!(two.may(&two.two).is_err());
        two.reads(&two.two);
        // While another one's command runs nobody knows whose change it is.
        two.command(&two.one, || two.command(&two.two, || two.write("x")));
        assert!(two.may(&two.one).is_err() && two.may(&two.two).is_err());
        two.reads(&two.one);
        two.reads(&two.two);
        two.command(&two.one, || two.writes(&two.two, "2"));
        assert!(two.may(&two.one).is_err(), "another agent's tool did that");
    }
}
