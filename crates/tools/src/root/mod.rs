//! An agent's root folder, held open. A path is resolved beneath it by directory handles, so
//! that a link, or a folder swapped for a link meanwhile, can't lead out: strings are compared
//! only to make an absolute path relative (issue 2, item 5).

mod replace;
mod walk;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::protect::authority;

/// How many links a path may go through, as in the kernel.
const LINKS_MAX: usize = 40;

/// How often a resolution is tried again that something else disturbed.
const TRIES: usize = 16;

/// Why a path was refused or could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PathError {
    /// There is nothing to open.
    #[error("the path is empty: name a file, relative to {0}")]
    Empty(PathBuf),
    /// The system ends a path there.
    #[error("the path holds a NUL character, which no file's name can: leave it out")]
    Nul,
    /// Only a shell knows what it means.
    #[error(
        "`{0}` is refused: `~` isn't expanded here; name what you mean relative to {1}, and a folder that is really called `~` as `./~`"
    )]
    Home(String, PathBuf),
    /// It leads out.
    #[error("`{0}` is refused: it leads out of {1}, and only what is beneath that can be reached")]
    Outside(String, PathBuf),
    /// Nothing is there.
    #[error("`{0}` does not exist; look with glob for what does")]
    Missing(String),
    /// A folder, where a file is needed.
    #[error("`{0}` is a folder, not a file")]
    Folder(String),
    /// A file, where a folder is needed.
    #[error("`{0}` is not a folder")]
    NotFolder(String),
    /// A device, a pipe or a socket.
    #[error("`{0}` is neither a file nor a folder: it can't be used here")]
    Special(String),
    /// It was changed by somebody else.
    #[error("`{0}` was changed by something else meanwhile: read it again, then repeat the edit")]
    Changed(String),
    /// It gives authority.
    #[error(
        "`{0}` is protected ({1}): what is trusted later can only be written by a person; say in your answer what \
         should be in it"
    )]
    Protected(String, &'static str),
    /// It is kept from all agents.
    #[error("`{0}` is refused: it is kept from agents")]
    Hidden(String),
    /// It may not be written.
    #[error("`{0}` is read-only (mode {1:03o}): make it writable first if it is meant to be changed")]
    ReadOnly(String, u32),
    /// The system's word.
    #[error("`{0}`: {1}")]
    System(String, io::Error),
}

impl From<PathError> for String {
    /// In the words that a model reads.
    fn from(error: PathError) -> Self {
        error.to_string()
    }
}

/// A folder that is held open, and what lies beneath it.
#[derive(Debug)]
pub(crate) struct Root {
    dir: OwnedFd,
    /// As given, and as it really is: the beginnings that absolute paths may have.
    given: PathBuf,
    real: PathBuf,
    /// Whether the kernel resolves beneath a handle (`openat2`); if not we walk.
    kernel: AtomicBool,
    /// What is below it, or above, and kept from its agent.
    hidden: Vec<PathBuf>,
}

/// The folder of a file, held open, and the file's name in it. The name is no link.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    dir: OwnedFd,
    name: &'a Path,
    shown: &'a str,
}

impl Root {
    /// Opens a folder as a root.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let dir =
            rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let real = real_path(&dir)?;
        Ok(Self { dir, given: path.to_owned(), real, kernel: AtomicBool::new(true), hidden: Vec::new() })
    }

    /// With folders and files that are not to be reached, as they really are.
    #[must_use]
    pub(crate) fn hiding(mut self, hidden: Vec<PathBuf>) -> Self {
        // What lies above the root is hidden around it: the state folder around a worktree.
        self.hidden = hidden.into_iter().filter(|path| !self.real.starts_with(path)).collect();
        self
    }

    /// The same, on a system without `openat2`.
    #[cfg(test)]
    fn open_without_kernel_help(path: &Path) -> io::Result<Self> {
        let root = Self::open(path)?;
        root.kernel.store(false, Ordering::Relaxed);
        Ok(root)
    }

    /// Where the root really is.
    pub(crate) fn path(&self) -> &Path {
        &self.real
    }

    /// The path as it is used beneath the root.
    pub(crate) fn relative<'a>(&self, text: &'a str) -> Result<&'a Path, PathError> {
        let path = Path::new(text);
        match text {
            "" => return Err(PathError::Empty(self.real.clone())),
            nul if nul.contains('\0') => return Err(PathError::Nul),
            home if path.starts_with("~") => return Err(PathError::Home(home.to_owned(), self.real.clone())),
            _ => {}
        }
        if !path.is_absolute() {
            return Ok(path);
        }
        [&self.real, &self.given]
            .into_iter()
            .find_map(|root| path.strip_prefix(root).ok())
            .ok_or_else(|| self.outside(text))
    }

    /// One name for all ways to write the same path; looks at nothing.
    pub(crate) fn normal(&self, text: &str) -> Option<String> {
        let mut parts = Vec::new();
        for component in self.relative(text).ok()?.components() {
            match component {
                Component::Normal(part) => parts.push(part.to_str()?),
                Component::ParentDir => drop(parts.pop()?),
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(parts.join("/"))
    }

    /// One name for the file that a path means: as [`Root::normal`], but where there are links it
    /// is what they lead to. `None`: it leads out.
    pub(crate) fn meant(&self, text: &str) -> Option<String> {
        let path = self.relative(text).ok()?;
        for there in path.ancestors() {
            match self.resolve(there, OFlags::PATH) {
                Ok(fd) => {
                    let real = real_path(&fd).ok()?;
                    let rest = path.strip_prefix(there).ok()?;
                    let below = real.strip_prefix(&self.real).ok()?.join(rest);
                    return match below.as_os_str().is_empty() {
                        true => Some(".".to_owned()),
                        false => self.normal(below.to_str()?),
                    };
                }
                Err(Errno::XDEV) => return None,
                Err(_) => {}
            }
        }
        None
    }

    /// The folder `prefix` below this root as a root of its own; it is made if it isn't there. It
    /// has to be where its name says: not through a link that somebody made of a part of it.
    pub(crate) fn below(self, prefix: &str) -> Result<Self, PathError> {
        let prefix = prefix.trim_end_matches('/');
        if prefix.is_empty() {
            return Ok(self);
        }
        let dir = self.parent(Path::new(prefix), true, prefix)?;
        let real = real_path(&dir).map_err(|e| PathError::System(prefix.to_owned(), e))?;
        if real != self.real.join(prefix) {
            return Err(self.outside(prefix));
        }
        let kernel = AtomicBool::new(self.kernel.load(Ordering::Relaxed));
        Ok(Self { dir, given: real.clone(), real, kernel, hidden: Vec::new() })
    }

    /// Opens a file to read, with what it was like then.
    pub(crate) fn file(&self, text: &str) -> Result<(File, Stat), PathError> {
        // Not blocking: opening a named pipe would wait for its writer.
        let fd = self.reach(text, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let stat = rustix::fs::fstat(&fd).map_err(|e| self.explain(text, e))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok((File::from(fd), stat)),
            FileType::Directory => Err(PathError::Folder(text.to_owned())),
            _ => Err(PathError::Special(text.to_owned())),
        }
    }

    /// Where a folder beneath the root really is.
    pub(crate) fn folder(&self, text: &str) -> Result<PathBuf, PathError> {
        let fd = self.reach(text, OFlags::PATH | OFlags::DIRECTORY)?;
        real_path(&fd).map_err(|e| PathError::System(text.to_owned(), e))
    }

    fn reach(&self, text: &str, flags: OFlags) -> Result<OwnedFd, PathError> {
        let fd = self.resolve(self.relative(text)?, flags).map_err(|errno| self.explain(text, errno))?;
        self.not_hidden(&fd, None, text)?;
        Ok(fd)
    }

    /// Holds the folder of a file and calls `with` with it. A last component that is a link is
    /// followed, so that what it points to is changed and not the link. `create`: makes the
    /// folders that are not there.
    pub(crate) fn place<T, E: From<PathError>>(
        &self,
        text: &str,
        create: bool,
        with: impl FnOnce(&Place<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut path = self.relative(text)?.to_owned();
        for _ in 0..LINKS_MAX {
            let name = path.file_name().ok_or_else(|| PathError::Folder(text.to_owned()))?;
            let parent = path.parent().unwrap_or(Path::new(""));
            let dir = self.parent(parent, create, text)?;
            self.not_protected(&dir, name, text)?;
            match rustix::fs::readlinkat(&dir, name, Vec::new()) {
                Ok(target) => {
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    if target.is_absolute() {
                        return Err(self.outside(text).into());
                    }
                    path = parent.join(target);
                }
                Err(Errno::INVAL | Errno::NOENT) => {
                    return with(&Place { dir, name: Path::new(name), shown: text });
                }
                Err(errno) => return Err(self.explain(text, errno).into()),
            }
        }
        Err(self.explain(text, Errno::LOOP).into())
    }

    fn parent(&self, path: &Path, create: bool, text: &str) -> Result<OwnedFd, PathError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let explain = |errno| self.explain(text, errno);
        match self.resolve(path, flags) {
            Err(Errno::NOENT) if create => {}
            other => return other.map_err(explain),
        }
        // What can't be named can't be made: a path that ends in `..`.
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(explain(Errno::NOENT));
        };
        let above = self.parent(parent, true, text)?;
        self.not_protected(&above, name, text)?;
        match rustix::fs::mkdirat(&above, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => self.resolve(path, flags).map_err(explain),
            Err(errno) => Err(explain(errno)),
        }
    }

    /// That a name in this folder may be written: judged by where the folder really is, so that
    /// no link makes it look like another one.
    fn not_protected(&self, folder: &OwnedFd, name: &OsStr, text: &str) -> Result<(), PathError> {
        self.not_hidden(folder, Some(name), text)?;
        let path = real_path(folder).map_err(|e| PathError::System(text.to_owned(), e))?.join(name);
        let below = path.strip_prefix(&self.real).map_err(|_| self.outside(text))?;
        match authority(below) {
            Some(what) => Err(PathError::Protected(text.to_owned(), what)),
            None => Ok(()),
        }
    }

    /// That what is open, or this name in it, isn't kept from the agent.
    fn not_hidden(&self, fd: &OwnedFd, name: Option<&OsStr>, text: &str) -> Result<(), PathError> {
        if self.hidden.is_empty() {
            return Ok(());
        }
        let mut path = real_path(fd).map_err(|e| PathError::System(text.to_owned(), e))?;
        path.extend(name);
        match self.hidden.iter().any(|hidden| path.starts_with(hidden)) {
            true => Err(PathError::Hidden(text.to_owned())),
            false => Ok(()),
        }
    }

    /// Opens a path beneath the root; nothing is ever created.
    fn resolve(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = flags | OFlags::CLOEXEC;
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..TRIES {
            if !self.kernel.load(Ordering::Relaxed) {
                return walk::open(self.dir.as_fd(), path, flags);
            }
            match rustix::fs::openat2(&self.dir, path, flags, Mode::empty(), beneath) {
                // Something was renamed while it looked; it can't be sure, so it says so.
                Err(Errno::AGAIN) => {}
                // An old kernel, or a filter that doesn't know the call.
                Err(Errno::NOSYS | Errno::PERM) => self.kernel.store(false, Ordering::Relaxed),
                other => return other,
            }
        }
        Err(Errno::AGAIN)
    }

    fn outside(&self, text: &str) -> PathError {
        PathError::Outside(text.to_owned(), self.real.clone())
    }

    fn explain(&self, text: &str, errno: Errno) -> PathError {
        match errno {
            Errno::XDEV => self.outside(text),
            Errno::NOENT => PathError::Missing(text.to_owned()),
            Errno::NOTDIR => PathError::NotFolder(text.to_owned()),
            Errno::ISDIR => PathError::Folder(text.to_owned()),
            other => PathError::System(text.to_owned(), other.into()),
        }
    }
}

fn real_path(fd: &OwnedFd) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

impl Place<'_> {
    fn stat(&self) -> Result<Option<Stat>, PathError> {
        match rustix::fs::statat(&self.dir, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.system(errno)),
        }
    }

    fn system(&self, error: impl Into<io::Error>) -> PathError {
        PathError::System(self.shown.to_owned(), error.into())
    }
}

#[cfg(test)]
mod tests;
