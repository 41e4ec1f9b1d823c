//! Empty folders that stand in, while commands run, for protected places that don't exist: a
//! mount needs something to be mounted on, and on what is mounted nobody can put a file.
//!
//! They are folders even where a file is meant: git shows no empty folder to anybody. They are
//! removed when the last command that needs them has ended, or a moment later: to make and remove folders all the time
//! is dear, and an agent's commands often follow each other. What a coordinator that is killed leaves,
//! empty, the next one removes (`under_way`).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, mkdirat, openat2, unlinkat};
use rustix::io::Errno;

/// So long the next command of a run is waited for.
const LINGERS: Duration = Duration::from_millis(500);

/// All that stand, by path, compared as bytes: it is asked for with each name that is looked at. Their number is bounded
/// by that of commands in twice that time.
static STANDING: Mutex<Standing> = Mutex::new(Standing { all: BTreeMap::new(), is_swept: false });

#[derive(Debug)]
struct Standing {
    all: BTreeMap<OsString, StandIn>,
    /// Whether a thread removes those that nobody needs any more.
    is_swept: bool,
}

#[derive(Debug, Default)]
struct StandIn {
    /// How many commands need it.
    users: usize,
    /// Since nobody does.
    free_since: Option<Instant>,
}

/// Those of one command.
#[derive(Debug, Default)]
pub(crate) struct StandIns {
    paths: Vec<PathBuf>,
    /// Whether they stay for a moment, for the next command.
    linger: bool,
}

impl StandIns {
    /// Puts a folder at each of these paths, unless another command's is there. Whoever lets them `linger` makes a
    /// [`sweep`] at last.
    pub(crate) fn put(paths: &[PathBuf], linger: bool) -> io::Result<Self> {
        let mut all = Self { paths: Vec::new(), linger };
        for path in paths {
            let mut standing = STANDING.lock();
            let one = standing.all.entry(path.clone().into()).or_default();
            if one.users == 0
                && let Err(error) = if one.free_since.is_some() { still_stands(path) } else { make(path) }
            {
                standing.all.remove(path.as_os_str());
                return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display())));
            }
            (one.users, one.free_since) = (one.users + 1, None);
            all.paths.push(path.clone());
        }
        Ok(all)
    }
}

impl Drop for StandIns {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut standing = STANDING.lock();
        for path in &self.paths {
            let Some(one) = standing.all.get_mut(path.as_os_str()) else { continue };
            one.users -= 1;
            one.free_since = (one.users == 0).then_some(now);
        }
        if self.linger && standing.all.values().any(|one| one.free_since.is_some()) {
            standing.sweep_later();
        } else {
            standing.sweep(|path, _| self.paths.iter().any(|mine| mine == path));
        }
    }
}

impl Standing {
    /// Removes those that nobody needs, of which this is true.
    fn sweep(&mut self, is_over: impl Fn(&Path, Instant) -> bool) {
        let is_over = |path: &OsString, at| is_over(Path::new(path), at);
        for (path, _) in
            self.all.extract_if(.., |path, one| one.free_since.is_some_and(|at| is_over(path, at)))
        {
            // One that somebody has put something into is no stand-in any more.
            let _in_use = remove(Path::new(&path));
        }
    }

    fn sweep_later(&mut self) {
        if !self.is_swept {
            let thread = thread::Builder::new().name("midturn-stand-in".into()).stack_size(128 << 10);
            self.is_swept = thread.spawn(sweep_until_none_is_free).is_ok();
            if !self.is_swept {
                self.sweep(|_, _| true);
            }
        }
    }
}

fn sweep_until_none_is_free() {
    loop {
        thread::sleep(LINGERS);
        let mut standing = STANDING.lock();
        standing.sweep(|_, since| since.elapsed() >= LINGERS);
        if standing.all.values().all(|one| one.free_since.is_none()) {
            standing.is_swept = false;
            return;
        }
    }
}

/// Removes all that nobody needs.
pub(crate) fn sweep() {
    STANDING.lock().sweep(|_, _| true);
}

/// Whether what is at this path, if anything, is a stand-in.
pub(crate) fn stands_at(path: &Path) -> bool {
    STANDING.lock().all.contains_key(path.as_os_str())
}

/// Somebody may have put something else in the place of one that nobody needed.
fn still_stands(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
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
        let put = |linger| StandIns::put(std::slice::from_ref(&path), linger);
        let (first, second) = (put(false).unwrap(), put(false).unwrap());
        drop(first);
        assert!(path.is_dir() && stands_at(&path));
        drop(second);
        assert!(!path.exists() && !stands_at(&path));
        // The next command finds it, unless something else is there by now.
        drop(put(true).unwrap());
        assert!(path.is_dir() && stands_at(&path));
        let again = put(true).unwrap();
        sweep();
        assert!(path.is_dir() && stands_at(&path));
        drop(again);
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(put(true).is_err() && !stands_at(&path));
        assert!(put(true).is_err() && path.is_file());
        std::fs::remove_file(&path).unwrap();
        drop(put(true).unwrap());
        sweep();
        assert!(!path.exists() && !stands_at(&path));
        // Nobody has to sweep.
        drop(put(true).unwrap());
        while stands_at(&path) {
            thread::yield_now();
        }
        assert!(!path.exists());
    }
}
