//! Takes away what was planted: it is renamed into a folder of ours, or, where that is on
//! another disk or its mode forbids it, to a name that nobody trusts. Nothing is followed, read or copied.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, RenameFlags};
use rustix::io::Errno;

use super::TEMPORARY;
use super::beneath::{HANDLE, new_file, parent_of};
use super::walk::temporaries;

/// How many things are kept of one agent; the place of an older one is taken then.
const KEPT_MAX: usize = 64;

/// How much of its name it keeps, in characters.
const NAME_MAX: usize = 60;

/// Where planted files go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Aside {
    folder: PathBuf,
}

impl Aside {
    /// The folder is made when it is needed; no command can write in it.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Takes away what is at `path` below `top`, and says where it is now. `None`: nothing is there.
    pub(super) fn put(&self, top: impl AsFd, path: &Path) -> io::Result<Option<PathBuf>> {
        let Some((parent, name)) = parent_of(top, path)? else { return Ok(None) };
        std::fs::create_dir_all(&self.folder)?;
        let shown: String = name.to_string_lossy().chars().take(NAME_MAX).collect();
        let place = self.free_place(&shown)?;
        match rustix::fs::renameat(&parent, name, CWD, &place) {
            Ok(()) => Ok(Some(place)),
            Err(Errno::NOENT) => Ok(None),
            // Another disk; or a folder in which nobody may write can't change the one it is in.
            Err(Errno::XDEV | Errno::ACCESS) => {
                let beside = name_of_ours("aside");
                rustix::fs::renameat_with(&parent, name, &parent, &beside, RenameFlags::NOREPLACE)?;
                Ok(Some(path.with_file_name(beside)))
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// A name that is free.
    fn free_place(&self, name: &str) -> io::Result<PathBuf> {
        let mut taken: Vec<(usize, PathBuf)> = Vec::new();
        for entry in std::fs::read_dir(&self.folder)?.take(2 * KEPT_MAX) {
            let path = entry?.path();
            let number = path.file_name().and_then(|name| name.to_str()?.split_once('-')?.0.parse().ok());
            taken.extend(number.map(|number: usize| (number, path)));
        }
        taken.sort();
        if taken.len() >= KEPT_MAX {
            let (_, oldest) = taken.remove(0);
            remove(&oldest)?;
        }
        let number = taken.last().map_or(1, |(number, _)| number + 1);
        Ok(self.folder.join(format!("{number}-{name}")))
    }
}

/// A name for what is ours where commands can write: one that they can't have taken before.
pub(crate) fn name_of_ours(what: &str) -> String {
    format!("{TEMPORARY}{what}-{:016x}", RandomState::new().build_hasher().finish())
}

/// What our names for new files say of them; the other names hold what is somebody's.
const HALF_WRITTEN: [&str; 2] = ["write-", "restore-"];

/// Whether a name is one of those that a file has until it is written.
pub(super) fn is_half_written(name: &[u8]) -> bool {
    let what = name.strip_prefix(TEMPORARY.as_bytes());
    what.is_some_and(|what| HALF_WRITTEN.iter().any(|half| what.starts_with(half.as_bytes())))
}

/// Removes files in a folder and below that a killed process was writing; as many as are found.
pub(crate) fn remove_half_written(folder: &Path) -> io::Result<()> {
    let top = rustix::fs::openat(CWD, folder, HANDLE, Mode::empty())?;
    for path in temporaries(top.as_fd())?.found {
        if let Some((parent, name)) = parent_of(&top, &path)? {
            rustix::fs::unlinkat(parent, name, AtFlags::empty())?;
        }
    }
    Ok(())
}

/// Removes a file, or a folder with all that is in it, where nobody can write but we: so this is
/// what was looked at.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
}

/// Gives a file below `top` this content, as a whole, in place of what has its name: a file or
/// a link, no folder.
pub(crate) fn restore(top: impl AsFd, path: &Path, content: &[u8]) -> io::Result<()> {
    let (parent, name) = parent_of(top, path)?.ok_or(io::ErrorKind::NotFound)?;
    let temporary = name_of_ours("restore");
    io::Write::write_all(&mut new_file(&parent, &temporary, 0o644)?, content)?;
    Ok(rustix::fs::renameat(&parent, &temporary, &parent, name)?)
}

#[cfg(test)]
mod tests {
    use rustix::fs::OFlags;

    use super::*;

    /// C8: a process was killed while it wrote a file.
    #[test]
    fn of_our_names_only_half_written_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        let names = ["write", "restore", "aside", "original"].map(name_of_ours);
        for name in &names {
            std::fs::write(folder.path().join("a/b").join(name), "").unwrap();
        }
        std::fs::create_dir(folder.path().join(name_of_ours("write"))).unwrap();
        remove_half_written(folder.path()).unwrap();
        let left = names.map(|name| folder.path().join("a/b").join(name).exists());
        assert_eq!(left, [false, false, true, true]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_is_put_aside_is_gone_and_what_a_link_points_to_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = |path: &str| folder.path().join(path);
        std::fs::create_dir_all(path("top/.claude/agents")).unwrap();
        std::fs::create_dir_all(path("outside")).unwrap();
        std::fs::write(path("outside/midturn.toml"), "kept").unwrap();
        std::os::unix::fs::symlink(path("outside/midturn.toml"), path("top/midturn.toml")).unwrap();
        std::os::unix::fs::symlink(path("outside"), path("top/link")).unwrap();
        let top = rustix::fs::open(path("top"), OFlags::PATH, Mode::empty()).unwrap();
        let aside = Aside::new(path("aside"));
        let put = |name: &str| aside.put(&top, Path::new(name)).unwrap();
        assert_eq!(put(".claude"), Some(path("aside/1-.claude")));
        assert_eq!(put("midturn.toml"), Some(path("aside/2-midturn.toml")));
        assert_eq!(put("link/midturn.toml"), None, "through no link");
        assert_eq!(put("none"), None);
        assert!(path("aside/1-.claude/agents").is_dir() && path("aside/2-midturn.toml").is_symlink());
        assert_eq!(std::fs::read_to_string(path("outside/midturn.toml")).unwrap(), "kept");
        for n in 0..2 * KEPT_MAX {
            std::fs::write(path("top/.mcp.json"), n.to_string()).unwrap();
            put(".mcp.json");
        }
        assert_eq!(std::fs::read_dir(path("aside")).unwrap().count(), KEPT_MAX);
    }
}
