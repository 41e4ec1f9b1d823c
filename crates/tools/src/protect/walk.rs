//! Looks through a folder for names that give authority. It goes by handles and through no
//! link, so that what it finds is in the folder, whatever is swapped meanwhile; and it looks at
//! so many names and no more, the shallow ones first.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::beneath::{entries, kind, name, open_folder};
use super::what;

/// How many names are looked at. A folder of a large project has some ten thousand.
const NAMES_MAX: usize = 50_000;

/// How many folders are still to be looked into, at most.
const FOLDERS_MAX: usize = 10_000;

/// How many paths are found, at most: each is one more thing to keep from commands.
const FOUND_MAX: usize = 256;

/// What to do with a name that was come upon.
enum Verdict {
    /// It is one of those that are looked for.
    Found,
    /// Look into it, if it is a folder.
    Into,
    /// Let it be.
    Pass,
}

/// The paths with authority in the folder, relative to it. `.git` counts only at the top: agents
/// may have repositories of their own further down.
pub(super) fn authorities(top: BorrowedFd<'_>) -> io::Result<Vec<PathBuf>> {
    walk(top, |folder, name, _| match what(name) {
        Some(_) if name != b".git" || folder.as_os_str().is_empty() => Verdict::Found,
        Some(_) => Verdict::Pass,
        None => Verdict::Into,
    })
}

/// The links in a folder and in those below it, relative to it.
pub(super) fn links(top: BorrowedFd<'_>) -> io::Result<Vec<PathBuf>> {
    walk(top, |_, _, kind| match kind {
        FileType::Symlink => Verdict::Found,
        _ => Verdict::Into,
    })
}

fn walk(top: BorrowedFd<'_>, judge: impl Fn(&Path, &[u8], FileType) -> Verdict) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut left = NAMES_MAX;
    let mut folders = VecDeque::from([PathBuf::new()]);
    while let Some(folder) = folders.pop_front() {
        // One that is gone or was swapped holds nothing of this folder's.
        let Ok(opened) = open_folder(top, &folder) else { continue };
        let entries = match entries(&opened) {
            // One that may not be read: what is in it can't be told.
            Err(Errno::ACCESS) => continue,
            entries => entries?,
        };
        for entry in entries {
            let name = name(&entry);
            if left == 0 || found.len() == FOUND_MAX {
                return Ok(found);
            }
            left -= 1;
            // Not every file system says it in its list of names.
            let kind = match entry.file_type() {
                FileType::Unknown => kind(&opened, name).unwrap_or(FileType::Unknown),
                said => said,
            };
            match judge(&folder, name.as_bytes(), kind) {
                Verdict::Found => found.push(folder.join(name)),
                Verdict::Into if kind == FileType::Directory && folders.len() < FOLDERS_MAX => {
                    folders.push_back(folder.join(name));
                }
                Verdict::Into | Verdict::Pass => {}
            }
        }
    }
    Ok(found)
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
        let mut found = authorities(top.as_fd()).unwrap();
        found.sort();
        let expected = [".git", "a/.claude", "a/b/.vscode", "a/b/midturn.toml", "src/.mcp.json"];
        assert_eq!(found, expected.map(PathBuf::from));
        let mut found = links(top.as_fd()).unwrap();
        found.sort();
        assert_eq!(found, ["src/.mcp.json", "src/link"].map(PathBuf::from));
    }
}
