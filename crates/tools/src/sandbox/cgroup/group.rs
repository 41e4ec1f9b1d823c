//! One group: its folders, and the files of it that are written or read for each command, opened once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::{Exceeded, Places};
use crate::sandbox::TreeLimits;

/// The kernel's answers are shorter, in bytes.
const ANSWER_MAX: usize = 1_024;

/// A group that is handed on may hold this part of the memory that it is limited to: what the system has kept of files.
const HELD_PART: u64 = 256;

/// The folders of a group: one, or one for each of the old hierarchies.
#[derive(Debug, Default)]
pub(super) struct Folders {
    pub(super) all: Vec<PathBuf>,
    /// Through these a process walks in, by writing `0`.
    doors: Vec<File>,
    counts: Vec<(Count, File)>,
}

/// What a group counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    /// Processes and threads in it.
    Inside,
    /// Bytes that it holds.
    Held,
    /// What was killed in it for its memory.
    Killed,
    /// What could not be started in it.
    Refused,
}

impl Folders {
    /// Makes them. What is made when that fails is in `self`.
    pub(super) fn make(&mut self, places: &Places, name: &str, limits: &TreeLimits) -> io::Result<()> {
        let (processes, memory) = (limits.processes.to_string(), limits.memory.to_string());
        let folder = self.add(&places.pids, name, places.door())?;
        set(&folder, "pids.max", &processes)?;
        self.count(&folder, [(Count::Inside, "pids.current"), (Count::Refused, "pids.events")]);
        let Some(base) = &places.memory else {
            set(&folder, "memory.max", &memory)?;
            // Without swap there is none to limit.
            let _no_swap = set(&folder, "memory.swap.max", "0");
            self.count(&folder, [(Count::Held, "memory.current"), (Count::Killed, "memory.events")]);
            return Ok(());
        };
        let folder = self.add(base, name, places.door())?;
        set(&folder, "memory.limit_in_bytes", &memory)?;
        let _no_swap = set(&folder, "memory.memsw.limit_in_bytes", &memory);
        self.count(&folder, [(Count::Held, "memory.usage_in_bytes"), (Count::Killed, "memory.oom_control")]);
        Ok(())
    }

    fn add(&mut self, base: &Path, name: &str, door: &str) -> io::Result<PathBuf> {
        let folder = base.join(name);
        fs::create_dir(&folder)?;
        self.all.push(folder.clone());
        self.doors.push(OpenOptions::new().write(true).open(folder.join(door))?);
        Ok(folder)
    }

    /// What a kernel doesn't count can't be known.
    fn count(&mut self, folder: &Path, files: [(Count, &str); 2]) {
        let open = |(count, file)| Some((count, File::open(folder.join(file)).ok()?));
        self.counts.extend(files.into_iter().filter_map(open));
    }

    pub(super) fn doors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.doors.iter().map(File::as_fd)
    }

    /// Which limit was run into, memory first: that one kills.
    pub(super) fn exceeded(&self, limits: &TreeLimits) -> Option<Exceeded> {
        let happened = |count| self.counted(count).is_some_and(|count| count > 0);
        if happened(Count::Killed) {
            Some(Exceeded::Memory(limits.memory))
        } else if happened(Count::Refused) {
            Some(Exceeded::Processes(limits.processes))
        } else {
            None
        }
    }

    /// Whether a command would be held as by a new one.
    pub(super) fn is_as_new(&self, limits: &TreeLimits) -> bool {
        self.counted(Count::Inside) == Some(0)
            && self.counted(Count::Held).is_some_and(|held| held <= limits.memory / HELD_PART)
            && self.counted(Count::Killed) == Some(0)
            && self.counted(Count::Refused) == Some(0)
    }

    fn counted(&self, wanted: Count) -> Option<u64> {
        let (_, file) = self.counts.iter().find(|(count, _)| *count == wanted)?;
        let mut answer = [0; ANSWER_MAX];
        let length = file.read_at(&mut answer, 0).ok()?;
        wanted.read(std::str::from_utf8(&answer[..length]).ok()?)
    }
}

impl Count {
    fn read(self, answer: &str) -> Option<u64> {
        let word = match self {
            Self::Inside | Self::Held => "",
            Self::Killed => "oom_kill ",
            Self::Refused => "max ",
        };
        answer.lines().find_map(|line| line.strip_prefix(word)?.trim().parse().ok())
    }
}

pub(super) fn set(folder: &Path, file: &str, value: &str) -> io::Result<()> {
    // Opened and not made: these files are the kernel's.
    let mut file = OpenOptions::new().write(true).open(folder.join(file))?;
    file.write_all(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_answers_are_read() {
        assert_eq!(Count::Inside.read("3\n"), Some(3));
        assert_eq!(Count::Held.read("4096\n"), Some(4_096));
        let old = "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n";
        assert_eq!(Count::Killed.read(old), Some(2));
        assert_eq!(Count::Killed.read("low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n"), Some(1));
        assert_eq!(Count::Refused.read("max 5\n"), Some(5));
        assert_eq!(Count::Refused.read(""), None);
    }
}
