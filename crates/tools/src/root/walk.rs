//! Resolves a path beneath a folder where the kernel has no `openat2`: component by component,
//! never through a link that the kernel would follow by itself.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::LINKS_MAX;

/// Opens `path` beneath `root`. `XDEV`: it leads out, as from `openat2`.
pub(super) fn open(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut rest = components(path)?;
    // The folders from below the root down to where we are, so that `..` goes back the way we
    // came, whatever was moved since.
    let mut folders: Vec<OwnedFd> = Vec::new();
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        let here = folders.last().map_or(root, AsFd::as_fd);
        if name == ".." {
            folders.pop().ok_or(Errno::XDEV)?;
            continue;
        }
        let last = rest.is_empty();
        let wanted = if last { flags } else { OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC };
        match rustix::fs::openat(here, &name, wanted | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(fd) if last && !is_link(&fd)? => return Ok(fd),
            Ok(fd) if !last => folders.push(fd),
            Ok(_) | Err(Errno::LOOP | Errno::NOTDIR | Errno::MLINK) => {
                links += 1;
                follow(here, &name, &mut rest, links)?;
            }
            Err(errno) => return Err(errno),
        }
    }
    rustix::fs::openat(folders.last().map_or(root, AsFd::as_fd), ".", flags, Mode::empty())
}

fn components(path: &Path) -> Result<VecDeque<OsString>, Errno> {
    if path.has_root() {
        return Err(Errno::XDEV);
    }
    let parts = path.as_os_str().as_bytes().split(|&b| b == b'/');
    let parts = parts.filter(|part| !part.is_empty() && *part != b".");
    Ok(parts.map(|part| OsStr::from_bytes(part).to_owned()).collect())
}

/// Puts a link's target before what is left of the path. What is no link is an error of its own.
fn follow(
    here: BorrowedFd<'_>,
    name: &OsStr,
    rest: &mut VecDeque<OsString>,
    links: usize,
) -> Result<(), Errno> {
    if links > LINKS_MAX {
        return Err(Errno::LOOP);
    }
    let target = match rustix::fs::readlinkat(here, name, Vec::new()) {
        Err(Errno::INVAL) => return Err(Errno::NOTDIR),
        other => other?,
    };
    for part in components(Path::new(OsStr::from_bytes(target.as_bytes())))?.into_iter().rev() {
        rest.push_front(part);
    }
    Ok(())
}

/// `O_PATH` opens a link itself.
fn is_link(fd: &OwnedFd) -> Result<bool, Errno> {
    Ok(rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode).is_symlink())
}
