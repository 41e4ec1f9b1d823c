//! Looks through a folder for names that give authority. It goes by handles and through no
//! link, so that what it finds is in the folder, whatever is swapped meanwhile; and it looks at
//! so many names and no more, the shallow ones first.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::aside::is_half_written;
use super::beneath::{entries, kind, name, open_folder};
use super::what;

/// How many names are looked at: more than all but the largest projects have. So many take some
/// 0.6 s once the system has them in memory.
const NAMES_MAX: usize = 500_000;

/// How many bytes the paths of folders have, of which it is remembered that they are there.
const BYTES_MAX: usize = 32 << 20;

/// How many paths are found beside those that are known, at most: each is one more thing to keep from
/// commands.
const FOUND_MAX: usize = 256;

/// How many folders of git's are found.
const GIT_FOLDERS_MAX: usize = 10_000;

/// What to do with a name that was come upon.
enum Verdict {
    /// It is one of those that are looked for.
    Found,
    /// Look into it, if it is a folder.
    Into,
    /// Let it be.
    Pass,
}

/// What a look through a folder came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Walked {
    /// Relative to the folder.
    pub(super) found: Vec<PathBuf>,
    pub(super) stopped: Option<Stopped>,
}

/// A look that came upon too much.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stopped {
    pub(super) why: Bound,
    /// Those that were looked through to their end, and those that weren't, the next one first.
    looked: BTreeSet<PathBuf>,
    left: Vec<PathBuf>,
}

/// What it came upon too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Names(usize),
    Found(usize),
}

impl Stopped {
    /// Whether this may have been there without being seen.
    pub(super) fn may_have_missed(&self, path: &Path) -> bool {
        // What is nearer says more: of a folder that was looked through all is known.
        let known = path
            .ancestors()
            .skip(1)
            .find(|folder| self.looked.contains(*folder) || self.left.iter().any(|left| left == folder));
        known.is_none_or(|known| !self.looked.contains(known))
    }

    /// Where a look for this below `top` stopped, in words.
    pub(super) fn told(&self, top: &Path, sought: &str) -> String {
        let what = match self.why {
            Bound::Names(names) => format!("{names} names"),
            Bound::Found(found) => format!("{found} of them"),
        };
        format!(
            "the search for {sought} stopped after {what}, at {}: what is there and in the folders after it was not \
             looked at, and may be there; a person has to look",
            top.join(self.at()).display()
        )
    }

    /// The first folder that was not looked through to its end.
    fn at(&self) -> &Path {
        self.left.first().map_or(Path::new(""), PathBuf::as_path)
    }
}

/// The paths with authority in the folder, of which so many are `known`. `.git` counts only at the top: agents may have
/// repositories of their own further down.
pub(super) fn authorities(top: BorrowedFd<'_>, known: usize) -> io::Result<Walked> {
    walk(top, Bounds::beside(known), |folder, name, _| match what(name) {
        Some(_) if name != b".git" || folder.as_os_str().is_empty() => Verdict::Found,
        Some(_) => Verdict::Pass,
        None => Verdict::Into,
    })
}

/// What could be a folder of git's below the top, or lead to one: `.git`, and the `HEAD` that each
/// has.
pub(super) fn git_folders(top: BorrowedFd<'_>) -> io::Result<Walked> {
    let bounds = Bounds { found: GIT_FOLDERS_MAX, ..Bounds::beside(0) };
    walk(top, bounds, |folder, name, kind| match is_dot_git(name) {
        true if folder.as_os_str().is_empty() => Verdict::Pass,
        true => Verdict::Found,
        false if name == b"HEAD" && kind != FileType::Directory => Verdict::Found,
        false => Verdict::Into,
    })
}

/// Files that we were writing, and never came to give their names.
pub(super) fn temporaries(top: BorrowedFd<'_>) -> io::Result<Walked> {
    walk(top, Bounds::beside(0), |_, name, kind| match is_half_written(name) {
        true if kind == FileType::RegularFile => Verdict::Found,
        _ => Verdict::Into,
    })
}

/// On file systems too that don't tell cases apart.
pub(super) fn is_dot_git(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git")
}

/// How much a look may come upon.
struct Bounds {
    names: usize,
    found: usize,
    bytes: usize,
}

impl Bounds {
    fn beside(known: usize) -> Self {
        Self { names: NAMES_MAX, found: FOUND_MAX + known, bytes: BYTES_MAX }
    }
}

/// A look under way.
struct Walk<'a, J> {
    top: BorrowedFd<'a>,
    bounds: Bounds,
    judge: J,
    found: Vec<PathBuf>,
    /// All that were come upon, the shallow ones first.
    folders: Vec<PathBuf>,
    names: usize,
    bytes: usize,
}

fn walk(
    top: BorrowedFd<'_>,
    bounds: Bounds,
    judge: impl Fn(&Path, &[u8], FileType) -> Verdict,
) -> io::Result<Walked> {
    let (folders, found) = (vec![PathBuf::new()], Vec::new());
    let mut walk = Walk { top, bounds, judge, found, folders, names: 0, bytes: 0 };
    let mut at = 0;
    while let Some(folder) = walk.folders.get(at).cloned() {
        if let Some(why) = walk.look_into(&folder)? {
            let left = walk.folders.split_off(at);
            let looked = walk.folders.into_iter().collect();
            return Ok(Walked { found: walk.found, stopped: Some(Stopped { why, looked, left }) });
        }
        at += 1;
    }
    Ok(Walked { found: walk.found, stopped: None })
}

impl<J: Fn(&Path, &[u8], FileType) -> Verdict> Walk<'_, J> {
    /// Why it stopped before the folder's end, if it did.
    fn look_into(&mut self, folder: &Path) -> io::Result<Option<Bound>> {
        // One that is gone or was swapped holds nothing of this folder's.
        let Ok(opened) = open_folder(self.top, folder) else { return Ok(None) };
        let entries = match entries(&opened) {
            // One that may not be read: what is in it can't be told.
            Err(Errno::ACCESS) => return Ok(None),
            entries => entries?,
        };
        for entry in entries {
            if self.names == self.bounds.names || self.bytes > self.bounds.bytes {
                return Ok(Some(Bound::Names(self.names)));
            }
            self.names += 1;
            let name = name(&entry);
            // Not every file system says it in its list of names.
            let kind = match entry.file_type() {
                FileType::Unknown => kind(&opened, name).unwrap_or(FileType::Unknown),
                said => said,
            };
            match (self.judge)(folder, name.as_bytes(), kind) {
                Verdict::Found if self.found.len() == self.bounds.found => {
                    return Ok(Some(Bound::Found(self.found.len())));
                }
                Verdict::Found => self.found.push(folder.join(name)),
                Verdict::Into if kind == FileType::Directory => {
                    let path = folder.join(name);
                    self.bytes += path.as_os_str().len();
                    self.folders.push(path);
                }
                Verdict::Into | Verdict::Pass => {}
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use rustix::fs::{Mode, OFlags};

    use super::*;

    #[test]
    fn names_with_authority_are_found_at_any_depth_and_through_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = |path: &str| folder.path().join(path);
        for name in [".git", "a/.claude/agents", "a/b/.vscode", "a/inner/.git/hooks", "src"] {
            std::fs::create_dir_all(path(name)).unwrap();
        }
        std::fs::write(path("a/b/midturn.toml"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", path("src/.mcp.json")).unwrap();
        std::os::unix::fs::symlink("../a", path("src/link")).unwrap();
        let top = rustix::fs::open(folder.path(), OFlags::PATH, Mode::empty()).unwrap();
        let mut found = authorities(top.as_fd(), 0).unwrap().found;
        found.sort();
        let expected = [".git", "a/.claude", "a/b/.vscode", "a/b/midturn.toml", "src/.mcp.json"];
        assert_eq!(found, expected.map(PathBuf::from));
    }

    /// C7: it stopped without a word.
    #[test]
    fn a_look_that_stops_says_where_and_what_it_may_have_missed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/b/c", "a/.vscode", "d/.idea"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let top = rustix::fs::open(folder.path(), OFlags::PATH, Mode::empty()).unwrap();
        let judge = |_: &Path, name: &[u8], _| match what(name) {
            Some(_) => Verdict::Found,
            None => Verdict::Into,
        };
        let walk = |names, found, bytes| walk(top.as_fd(), Bounds { names, found, bytes }, judge).unwrap();
        assert_eq!(walk(6, 2, 99).stopped, None, "just so many");
        for (bounds, by_names) in
            [((5, 2, 99), true), ((2, 2, 99), true), ((6, 2, 4), true), ((6, 1, 99), false)]
        {
            let (names, found, bytes) = bounds;
            let stopped = walk(names, found, bytes).stopped.unwrap();
            assert_eq!(matches!(stopped.why, Bound::Names(_)), by_names, "{bounds:?}");
            assert!(stopped.looked.contains(Path::new("")), "{bounds:?}");
            assert!(!stopped.may_have_missed(Path::new("new")), "{bounds:?}");
            assert!(!stopped.may_have_missed(Path::new("new/.vscode")), "{bounds:?}");
            let at = stopped.at();
            assert!(!stopped.looked.contains(at) && stopped.may_have_missed(&at.join("x")), "{bounds:?}");
            assert!(stopped.may_have_missed(&at.join("new/.vscode")), "{bounds:?}");
        }
    }
}
