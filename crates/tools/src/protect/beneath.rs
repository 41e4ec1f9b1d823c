//! What is done beneath a folder that is held open. It goes by handles and through no link, so that
//! nothing that is swapped meanwhile leads out of that folder.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, OFlags, RawMode};
use rustix::io::Errno;

/// A handle that is good for finding what is below it, and needs no right to read.
pub(super) const HANDLE: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a folder below another one.
pub(super) fn open_folder(top: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let mut here = rustix::fs::openat(top, ".", HANDLE, Mode::empty())?;
    for part in path {
        here = rustix::fs::openat(here, part, HANDLE, Mode::empty())?;
    }
    Ok(here)
}

/// The folder that something below `top` is in, and its name there. `None`: that folder is gone, or
/// was swapped for something else, so it isn't there either.
pub(super) fn parent_of(top: impl AsFd, path: &Path) -> io::Result<Option<(OwnedFd, &OsStr)>> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    match open_folder(top, parent) {
        Ok(parent) => Ok(Some((parent, name))),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// What is in a folder, as far as it can be read.
pub(super) fn entries(folder: impl AsFd) -> Result<impl Iterator<Item = DirEntry>, Errno> {
    let is_name = |entry: &DirEntry| ![b".".as_slice(), b".."].contains(&entry.file_name().to_bytes());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let readable = rustix::fs::openat(folder, ".", flags, Mode::empty())?;
    Ok(Dir::new(readable)?.flatten().filter(is_name))
}

/// The name of what is in a folder.
pub(super) fn name(entry: &DirEntry) -> &OsStr {
    OsStr::from_bytes(entry.file_name().to_bytes())
}

/// What has this name in a folder.
pub(super) fn kind(folder: impl AsFd, name: &OsStr) -> Result<FileType, Errno> {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Opens a file to read, if it is one and no link; it waits for nobody.
pub(super) fn file_in(folder: impl AsFd, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a file")) }
}

/// The beginning of such a file, up to `max` bytes.
pub(super) fn head_in(folder: impl AsFd, path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file_in(folder, path)?.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Makes a file where there is nothing.
pub(crate) fn new_file(folder: impl AsFd, name: impl AsRef<OsStr>, mode: RawMode) -> Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name.as_ref(), flags, Mode::from_raw_mode(mode)).map(File::from)
}
