//! Replaces a file as a whole: who looks sees the old text or the new one, never a part.
//!
//! The new text goes to a temporary file in the same folder, which is held by its handle, is
//! synced, and takes the old one's name. Mode and owner stay. A hard link is left behind with
//! the old text; that is the price of replacing as a whole.

use std::fs::File;
use std::io::Write as _;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use super::{PathError, Place};
use crate::protect::aside::name_of_ours;
use crate::protect::beneath::new_file;

/// What tells whether a file is the one that was looked at, and as it was then.
fn identity(stat: &Stat) -> (u64, u64, i64, i64, u64) {
    (stat.st_dev, stat.st_ino, stat.st_size, stat.st_ctime, stat.st_ctime_nsec)
}

impl Place<'_> {
    /// Whether there is a file that may be replaced, and what it is like.
    pub(crate) fn present(&self) -> Result<Option<Stat>, PathError> {
        let Some(stat) = self.stat()? else { return Ok(None) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if stat.st_mode & 0o222 != 0 => Ok(Some(stat)),
            FileType::RegularFile => Err(PathError::ReadOnly(self.shown.to_owned(), stat.st_mode & 0o777)),
            FileType::Directory => Err(PathError::Folder(self.shown.to_owned())),
            _ => Err(PathError::Special(self.shown.to_owned())),
        }
    }

    /// Opens the file that is there, to read it.
    pub(crate) fn read(&self) -> Result<(File, Stat), PathError> {
        self.present()?.ok_or_else(|| PathError::Missing(self.shown.to_owned()))?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd =
            rustix::fs::openat(&self.dir, self.name, flags, Mode::empty()).map_err(|e| self.system(e))?;
        let stat = rustix::fs::fstat(&fd).map_err(|e| self.system(e))?;
        Ok((File::from(fd), stat))
    }

    /// Gives the file this content; what it is like then. `was` is what it is to be instead of; anything else
    /// that is there by now is left alone and is an error.
    pub(crate) fn replace(&self, content: &[u8], was: Option<&Stat>) -> Result<Stat, PathError> {
        let name = name_of_ours("write");
        let file = new_file(&self.dir, &name, 0o666).map_err(|e| self.system(e))?;
        let replaced = self.replace_by(file, &name, content, was);
        if replaced.is_err() {
            // The reason why it isn't needed is reported already.
            let _ = rustix::fs::unlinkat(&self.dir, &name, AtFlags::empty());
        }
        replaced
    }

    fn replace_by(
        &self,
        mut file: File,
        name: &str,
        content: &[u8],
        was: Option<&Stat>,
    ) -> Result<Stat, PathError> {
        file.write_all(content).map_err(|e| self.system(e))?;
        if let Some(was) = was {
            self.dress(&file, was)?;
        }
        file.sync_all().map_err(|e| self.system(e))?;
        if self.stat()?.as_ref().map(identity) != was.map(identity) {
            return Err(PathError::Changed(self.shown.to_owned()));
        }
        rustix::fs::renameat(&self.dir, name, &self.dir, self.name).map_err(|e| self.system(e))?;
        // The new name is a change of its own.
        rustix::fs::fstat(&file).map_err(|e| self.system(e))
    }

    /// The owner first: changing it takes bits off the mode. Only root can give a file away,
    /// so anybody else's edit of another one's file makes it his own, as any editor's does.
    fn dress(&self, file: &File, as_it_was: &Stat) -> Result<(), PathError> {
        let now = rustix::fs::fstat(file).map_err(|e| self.system(e))?;
        if (now.st_uid, now.st_gid) != (as_it_was.st_uid, as_it_was.st_gid) {
            let owner = (Uid::from_raw(as_it_was.st_uid), Gid::from_raw(as_it_was.st_gid));
            match rustix::fs::fchown(file, Some(owner.0), Some(owner.1)) {
                Ok(()) | Err(Errno::PERM) => {}
                Err(errno) => return Err(self.system(errno)),
            }
        }
        // Not whose rights it runs with: a write of anybody's takes that off, too.
        let mode = Mode::from_raw_mode(as_it_was.st_mode & 0o1777);
        rustix::fs::fchmod(file, mode).map_err(|e| self.system(e))
    }
}
