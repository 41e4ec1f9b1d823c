//! Whether what was mounted for a command so that it can't be written is still what is there. Who renames a new
//! file over it, outside of the sandbox, takes the mount away with the old one: from then on the command can write
//! the new one. A person's editor saves so, and git its settings. Whose words are in it then can't be known: it is
//! left as it is, and said; but for git's settings that name programs which they didn't name before.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, StatxFlags};

use super::aside::{Aside, restore};
use super::beneath::{head_in, parent_of};
use super::git_settings::Settings;

/// How many are told of at a run's end.
const TOLD_MAX: usize = 5;

/// Git's settings, of a repository and of a worktree.
const SETTINGS: [&str; 2] = ["config", "config.worktree"];

/// The longest such file that is remembered, in bytes.
const SETTINGS_MAX: u64 = 256 << 10;

/// What was mounted, and which file or folder it was.
#[derive(Debug)]
pub(super) struct Mounted {
    /// By whom it is watched.
    pub(super) by: usize,
    pub(super) path: PathBuf,
    was: Option<Identity>,
    settings: Option<Vec<u8>>,
}

impl Mounted {
    /// `of_git`: it is in a folder of git's.
    pub(super) fn new(by: usize, top: BorrowedFd<'_>, path: &Path, of_git: bool) -> Self {
        let is_settings = of_git && SETTINGS.iter().any(|name| path == Path::new(name));
        let settings = is_settings.then(|| settings(top, path)).flatten();
        Self { by, path: path.to_owned(), was: identity(top, path), settings }
    }

    /// What there is to say, if there is another in its place now. `shown`: its folder.
    pub(super) fn told(&self, top: BorrowedFd<'_>, shown: &Path, aside: &Aside) -> Option<String> {
        let is = identity(top, &self.path)?;
        if Some(is) == self.was {
            return None;
        }
        let place = shown.join(&self.path);
        let replaced = format!("{} was replaced from outside while a command ran", place.display());
        let Some(before) =
            self.settings.as_ref().filter(|before| is_risky(before, settings(top, &self.path)))
        else {
            return Some(format!(
                "{replaced}, which could write the new one from then on: a person has to look whether all that is in it \
                 is theirs"
            ));
        };
        Some(match self.give_back(top, before, aside) {
            Ok(new) => format!(
                "{replaced}, and names programs that it didn't name before: it was made as it was, and the new one is \
                 {}",
                new.display()
            ),
            Err(error) => format!(
                "{replaced}, and names programs that it didn't name before; it can't be made as it was ({error}): a \
                 person has to look at it"
            ),
        })
    }

    /// Where the new one is afterwards.
    fn give_back(&self, top: BorrowedFd<'_>, before: &[u8], aside: &Aside) -> io::Result<PathBuf> {
        let new = aside.put(top.as_fd(), &self.path)?.ok_or(io::ErrorKind::NotFound)?;
        restore(top, &self.path, before)?;
        Ok(new)
    }
}

/// A file of settings. `None`: it is none, or too long.
fn settings(top: BorrowedFd<'_>, path: &Path) -> Option<Vec<u8>> {
    let bytes = head_in(top, path, SETTINGS_MAX + 1).ok()?;
    (bytes.len() as u64 <= SETTINGS_MAX).then_some(bytes)
}

/// Whether what they say more than before runs programs or leads git elsewhere.
fn is_risky(before: &[u8], now: Option<Vec<u8>>) -> bool {
    let Some(now) = now else { return true };
    let known: HashSet<_> = lines(before).into_iter().collect();
    let new = lines(&now).into_iter().filter(|line| !known.contains(line));
    let new: String =
        new.flat_map(|(section, line)| [section, "\n".to_owned(), line, "\n".to_owned()]).collect();
    !Settings::read(new.as_bytes(), |_| false).risky.is_empty()
}

/// Its lines, each with the section that it belongs to.
fn lines(bytes: &[u8]) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut lines = Vec::new();
    for line in String::from_utf8_lossy(bytes).lines().map(str::trim) {
        if line.starts_with('[') {
            line.clone_into(&mut section);
        }
        lines.push((section.clone(), line.to_owned()));
    }
    lines
}

/// Which file or folder something is: its number, and when it was made, since numbers are given again.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    number: u64,
    made: (i64, u32),
}

/// What has this path. `None`: nothing, or it can't be looked at.
fn identity(top: BorrowedFd<'_>, path: &Path) -> Option<Identity> {
    let (parent, name) = parent_of(top, path).ok()??;
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let found = rustix::fs::statx(parent, name, AtFlags::SYMLINK_NOFOLLOW, wanted).ok()?;
    Some(Identity { number: found.stx_ino, made: (found.stx_btime.tv_sec, found.stx_btime.tv_nsec) })
}

/// What there is to say of a run.
#[derive(Debug, Default)]
pub(super) struct Replaced(Mutex<BTreeSet<String>>);

impl Replaced {
    /// Keeps it for the run's end.
    pub(super) fn keep(&self, told: &str) {
        let mut all = self.0.lock();
        if all.len() < TOLD_MAX {
            all.insert(told.to_owned());
        }
    }

    pub(super) fn take(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_name_programs_which_were_not_named_are_risky() {
        const OLD: &str = "[core]\n\tbare = false\n\teditor = vim\n[remote \"o\"]\n\turl = x\n";
        for (now, risky) in [
            (OLD.to_owned(), false),
            (String::new(), false),
            (format!("{OLD}[branch \"b\"]\n\tremote = o\n"), false),
            (OLD.replace("url = x", "url = y"), false),
            (OLD.replace("vim", "evil"), true),
            (OLD.replace("vim", "vim -c evil"), true),
            (format!("{OLD}[core]\n\tfsmonitor = evil\n"), true),
            (format!("{OLD}[core] fsmonitor = evil\n"), true),
            (format!("{OLD}[include]\n\tpath = evil\n"), true),
            (OLD.replace("[core]", "[alias]"), true),
        ] {
            assert_eq!(is_risky(OLD.as_bytes(), Some(now.clone().into_bytes())), risky, "{now}");
        }
        assert!(is_risky(b"", None), "what can't be read");
    }
}
