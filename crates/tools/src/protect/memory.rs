//! What a protected place holds, kept while a command runs that can't be prevented from changing
//! it, to be compared and given back afterwards: with Landlock alone, and where the place is a
//! link. Bounded: of what is too much, the smaller and shallower files are remembered.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, RawMode};
use rustix::io::Errno;

use super::beneath::{entries, head_in, kind, name, new_file, open_folder, parent_of};

/// The largest file that is remembered, in bytes, and how much of all of them.
const FILE_MAX: u64 = 256 << 10;
const ALL_MAX: u64 = 8 << 20;

/// How many files and folders are remembered.
const ENTRIES_MAX: usize = 2_000;

/// Folders of git's that hold no settings, and much else.
const PASSED: [&str; 3] = ["objects", "refs", "logs"];

/// What is at one path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Folder,
    File(RawMode, Vec<u8>),
    Link(Vec<u8>),
}

/// What a place and all below it holds, by path below the folder it is in; each above its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) path: PathBuf,
    entries: BTreeMap<PathBuf, Entry>,
}

impl Memory {
    /// Looks at `path` below `top`.
    pub(super) fn of(top: BorrowedFd<'_>, path: &Path) -> io::Result<Self> {
        let mut entries = BTreeMap::new();
        let mut left = ALL_MAX;
        let mut paths = VecDeque::from([path.to_owned()]);
        while let Some(path) = paths.pop_front() {
            let Some((entry, below)) = look(top, &path, &mut left)? else { continue };
            if entries.len() == ENTRIES_MAX {
                break;
            }
            paths.extend(below.into_iter().take(ENTRIES_MAX));
            entries.insert(path, entry);
        }
        Ok(Self { path: path.to_owned(), entries })
    }

    /// Looks again: what was not there, or something else, and has to go. `None`: all is as it was.
    /// What was too much to be remembered is let be.
    pub(super) fn changes(&self, top: BorrowedFd<'_>) -> io::Result<Option<Vec<PathBuf>>> {
        let now = Self::of(top, &self.path)?;
        if now == *self {
            return Ok(None);
        }
        let mut to_remove: Vec<PathBuf> = Vec::new();
        // Those that are remembered, too: what is there instead of one may be too much to be seen.
        for path in self.entries.keys().chain(now.entries.keys()).collect::<BTreeSet<_>>() {
            let (was, is) = (self.entries.get(path), now.entries.get(path));
            // A folder that isn't seen is gone, or too much came before it: then all that it holds
            // that was never remembered would go with it.
            let is_folder_unseen = is.is_none() && was == Some(&Entry::Folder);
            let goes_with = to_remove.iter().any(|above| path.starts_with(above));
            if was != is && !is_folder_unseen && !goes_with {
                to_remove.push(path.clone());
            }
        }
        Ok(Some(to_remove))
    }

    /// Makes again what is missing.
    pub(super) fn restore(&self, top: BorrowedFd<'_>) -> io::Result<()> {
        for (path, entry) in &self.entries {
            let (parent, name) = parent_of(top, path)?.ok_or(io::ErrorKind::NotFound)?;
            if kind(&parent, name).is_ok() {
                continue;
            }
            match entry {
                Entry::Folder => rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755))?,
                Entry::Link(target) => rustix::fs::symlinkat(target.as_slice(), &parent, name)?,
                Entry::File(mode, content) => new_file(&parent, name, *mode)?.write_all(content)?,
            }
        }
        Ok(())
    }
}

/// `None`: it isn't there, or is nothing that can be remembered.
fn look(top: BorrowedFd<'_>, path: &Path, left: &mut u64) -> io::Result<Option<(Entry, Vec<PathBuf>)>> {
    let Some((parent, name)) = parent_of(top, path)? else { return Ok(None) };
    let stat = match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let mode = stat.st_mode & 0o7777;
    let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(&parent, name, Vec::new())?;
            Some((Entry::Link(target.into_bytes()), Vec::new()))
        }
        FileType::Directory => Some((Entry::Folder, names(parent.as_fd(), path)?)),
        FileType::RegularFile if size <= FILE_MAX.min(*left) => {
            let content = head_in(&parent, name.as_ref(), FILE_MAX)?;
            *left = left.saturating_sub(content.len() as u64);
            Some((Entry::File(mode, content), Vec::new()))
        }
        _ => None,
    })
}

/// What is in the folder that has the last name of `path`, with that path.
fn names(parent: BorrowedFd<'_>, path: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = open_folder(parent, Path::new(path.file_name().unwrap_or_default()))?;
    let all = entries(&folder)?.take(ENTRIES_MAX);
    let all = all.filter(|entry| !PASSED.iter().any(|passed| name(entry) == *passed));
    Ok(all.map(|entry| path.join(name(&entry))).collect())
}

#[cfg(test)]
mod tests {
    use rustix::fs::OFlags;

    use super::*;

    #[test]
    fn what_is_remembered_is_made_again_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = |path: &str| folder.path().join(path);
        std::fs::create_dir_all(path(".claude/agents/objects")).unwrap();
        std::fs::write(path(".claude/agents/a.md"), "a").unwrap();
        std::fs::write(path(".claude/large"), "x".repeat(300 << 10)).unwrap();
        std::os::unix::fs::symlink("../elsewhere", path(".claude/link")).unwrap();
        let top = rustix::fs::open(folder.path(), OFlags::PATH, Mode::empty()).unwrap();
        let remember = || Memory::of(top.as_fd(), Path::new(".claude")).unwrap();
        let before = remember();
        assert_eq!(before.entries.len(), 4, "{before:?}");
        assert_eq!(before.changes(top.as_fd()).unwrap(), None);

        std::fs::write(path(".claude/agents/b.md"), "b").unwrap();
        std::fs::create_dir_all(path(".claude/new/er")).unwrap();
        std::fs::write(path(".claude/agents/a.md"), "changed").unwrap();
        let changes = || before.changes(top.as_fd()).unwrap().unwrap();
        let expected = [".claude/agents/a.md", ".claude/agents/b.md", ".claude/new"].map(PathBuf::from);
        assert_eq!(changes(), expected);

        for gone in [".claude/agents", ".claude/new"] {
            std::fs::remove_dir_all(path(gone)).unwrap();
        }
        before.restore(top.as_fd()).unwrap();
        assert_eq!(remember(), before);
        assert_eq!(std::fs::read_to_string(path(".claude/agents/a.md")).unwrap(), "a");
        assert!(path(".claude/large").exists(), "though it was too large to remember");

        std::fs::write(path(".claude/agents/a.md"), "x".repeat(300 << 10)).unwrap();
        assert_eq!(changes(), [PathBuf::from(".claude/agents/a.md")], "though it is too large to look at");
    }

    #[test]
    fn of_too_much_no_folder_is_taken_for_one_that_came_to_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = |path: &str| folder.path().join(path);
        for n in 0..=ENTRIES_MAX {
            std::fs::create_dir_all(path(&format!(".idea/{n}/in"))).unwrap();
        }
        let top = rustix::fs::open(folder.path(), OFlags::PATH, Mode::empty()).unwrap();
        let before = Memory::of(top.as_fd(), Path::new(".idea")).unwrap();
        assert_eq!(before.entries.len(), ENTRIES_MAX);
        for n in 0..64 {
            std::fs::write(path(&format!(".idea/new-{n}")), "").unwrap();
        }
        let to_remove = before.changes(top.as_fd()).unwrap().unwrap_or_default();
        assert!(to_remove.iter().all(|name| !folder.path().join(name).is_dir()), "{to_remove:?}");
    }
}
