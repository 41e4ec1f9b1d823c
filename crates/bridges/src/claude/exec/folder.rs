//! A folder of the spool, held open. No name is followed out of it: what is a link, or not ours, isn't there.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{Dir, FileType, Mode, OFlags, fstat, mkdirat, openat, renameat};
use rustix::io::Errno;
use serde::de::DeserializeOwned;

/// How many names are looked at, and how long a file may be. More is nobody's spool.
const NAMES_MAX: usize = 4_096;
const FILE_MAX: u64 = 4 << 20;

const WRITABLE_BY_OTHERS: u32 = 0o022;

pub(super) struct Folder(OwnedFd);

impl Folder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Self::at(rustix::fs::CWD, path)
    }

    pub(super) fn inner(&self, name: &Path) -> io::Result<Self> {
        Self::at(self.0.as_fd(), name)
    }

    /// Made if it isn't there.
    pub(super) fn inner_or_new(&self, name: &Path) -> io::Result<Self> {
        match mkdirat(&self.0, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => self.inner(name),
            Err(errno) => Err(errno.into()),
        }
    }

    fn at(above: BorrowedFd<'_>, name: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(above, name, flags, Mode::empty())?;
        let stat = fstat(&folder)?;
        let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
        if is_ours && stat.st_mode & WRITABLE_BY_OTHERS == 0 {
            Ok(Self(folder))
        } else {
            Err(Errno::PERM.into())
        }
    }

    /// Without those that begin with a dot: these aren't finished yet.
    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)?.take(NAMES_MAX) {
            let name = entry?.file_name().to_bytes().to_vec();
            if !name.starts_with(b".") {
                names.push(OsString::from_vec(name));
            }
        }
        Ok(names)
    }

    /// What a file says, and when it was written.
    pub(super) fn read<T: DeserializeOwned>(&self, name: &Path) -> io::Result<(T, SystemTime)> {
        // A pipe would make us wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.0, name, flags, Mode::empty())?;
        let stat = fstat(&file)?;
        let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
        if !is_ours || FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Errno::PERM.into());
        }
        let mut text = Vec::new();
        let file = File::from(file);
        let written = file.metadata()?.modified()?;
        file.take(FILE_MAX).read_to_end(&mut text)?;
        Ok((serde_json::from_slice(&text)?, written))
    }

    /// Fails with [`io::ErrorKind::NotFound`] for the one who comes second.
    pub(super) fn rename(&self, name: &Path, to: &Self, new: &Path) -> io::Result<()> {
        Ok(renameat(&self.0, name, &to.0, new)?)
    }

    /// A path to this very folder, whatever has become of its name.
    pub(super) fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }
}
