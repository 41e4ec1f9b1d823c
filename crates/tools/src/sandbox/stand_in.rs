//! Empty folders that stand in, while commands run, for protected places that don't exist: a
//! mount needs something to be mounted on, and on what is mounted nobody can put a file.
//!
//! They are folders even where a file is meant: git shows no empty folder to anybody. They are
//! removed when the last command that needs them has ended; what a coordinator that is killed leaves,
//! empty, the next one removes (`under_way`).

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, mkdirat, openat2, unlinkat};
use rustix::io::Errno;

/// How many commands need each of them. Their number is bounded by that of running commands.
static STANDING: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

/// Those of one command.
#[derive(Debug, Default)]
pub(crate) struct StandIns(Vec<PathBuf>);

impl StandIns {
    /// Puts a folder at each of these paths, unless another command's is there.
    pub(crate) fn put(paths: &[PathBuf]) -> io::Result<Self> {
        let mut all = Self::default();
        for path in paths {
            let mut standing = STANDING.lock();
            let users = standing.entry(path.clone()).or_insert(0);
            if *users == 0
                && let Err(error) = make(path)
            {
                standing.remove(path);
                return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display())));
            }
            *users += 1;
            all.0.push(path.clone());
        }
        Ok(all)
    }
}

impl Drop for StandIns {
    fn drop(&mut self) {
        for path in self.0.drain(..) {
            let mut standing = STANDING.lock();
            if let Some(users) = standing.get_mut(&path) {
                *users -= 1;
                if *users == 0 {
                    // One that somebody has put something into is no stand-in any more.
                    let _in_use = remove(&path);
                    standing.remove(&path);
                }
            }
        }
    }
}

/// Whether what is at this path, if anything, is a stand-in.
pub(crate) fn stands_at(path: &Path) -> bool {
    STANDING.lock().contains_key(path)
}

fn make(path: &Path) -> io::Result<()> {
    let (folder, name) = above(path)?;
    Ok(mkdirat(folder, name, Mode::from_raw_mode(0o755))?)
}

/// Removes one that stands for nobody any more; what isn't empty stays.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let (folder, name) = above(path)?;
    match unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Through no link, whoever may have made one meanwhile.
fn above(path: &Path) -> io::Result<(OwnedFd, &Path)> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat2(CWD, above, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    Ok((folder, Path::new(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stand_in_stays_as_long_as_somebody_needs_it() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = folder.path().canonicalize().unwrap().join(".claude");
        let first = StandIns::put(std::slice::from_ref(&path)).unwrap();
        let second = StandIns::put(std::slice::from_ref(&path)).unwrap();
        drop(first);
        assert!(path.is_dir() && stands_at(&path));
        drop(second);
        assert!(!path.exists() && !stands_at(&path));
    }
}
