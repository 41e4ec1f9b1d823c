//! The files that we read and write for a person: read whole within a bound, never through a link, and written so that
//! there is always either the old one or the new one. It knows nothing of what is in them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, OFlags, access};

/// The largest that is read: settings of people have a few KiB.
const BYTES_MAX: u64 = 4 << 20;

/// Why a file is left alone.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Who wrote the link decides what would be written.
    #[error("{} is a symbolic link: nothing was changed. Put a file in its place, or work where it leads to: \
        CLAUDE_CONFIG_DIR names the folder", .0.display())]
    Link(PathBuf),
    /// A folder, a pipe.
    #[error("{path} is no {1}: nothing was changed. Put it out of the way first", path = .0.display())]
    Kind(PathBuf, &'static str),
    /// Another user's.
    #[error("{} belongs to another user: nothing was changed. Become its owner, or ask them", .0.display())]
    Owner(PathBuf),
    /// Not to be written.
    #[error("{} can't be written: nothing was changed. `chmod u+w` it if you want that", .0.display())]
    ReadOnly(PathBuf),
    /// Not settings that a person wrote.
    #[error("{} has more than 4 MiB: nothing was changed. Make it smaller first", .0.display())]
    Large(PathBuf),
    /// An editor, or Claude Code.
    #[error("{} was changed by somebody else at the same moment: nothing was changed. Try again", .0.display())]
    Changed(PathBuf),
    /// The system's word.
    #[error("{path}: {1}", path = .0.display())]
    System(PathBuf, io::Error),
}

/// A file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) bytes: Vec<u8>,
    mode: u32,
}

/// A file as whoever may only look sees it; `None` if there is none.
pub(super) fn look(path: &Path) -> Result<Option<Found>, Refused> {
    let system = |error| Refused::System(path.to_owned(), error);
    // A pipe would hold whoever opens it.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) if is_link(path) => {
            drop(error);
            return Err(Refused::Link(path.to_owned()));
        }
        Err(error) => return Err(system(error)),
    };
    let about = file.metadata().map_err(system)?;
    if !about.is_file() {
        return Err(Refused::Kind(path.to_owned(), "file"));
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(system)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Refused::Large(path.to_owned()));
    }
    Ok(Some(Found { bytes, mode: about.permissions().mode() & 0o7777 }))
}

/// A file that will be written: one's own, in a folder of one's own.
pub(super) fn read(path: &Path) -> Result<Option<Found>, Refused> {
    if let Some(folder) = path.parent() {
        check(folder, Kind::Folder)?;
    }
    let found = look(path)?;
    check(path, Kind::File)?;
    Ok(found)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

/// Refuses what is there and not one's own to write.
fn check(path: &Path, kind: Kind) -> Result<(), Refused> {
    let about = match fs::symlink_metadata(path) {
        Ok(about) => about,
        Err(error) if is_absent(&error) => return Ok(()),
        Err(error) => return Err(Refused::System(path.to_owned(), error)),
    };
    let (is_right, name) = match kind {
        Kind::File => (about.is_file(), "file"),
        Kind::Folder => (about.is_dir(), "folder"),
    };
    match () {
        () if about.is_symlink() => Err(Refused::Link(path.to_owned())),
        () if !is_right => Err(Refused::Kind(path.to_owned(), name)),
        () if about.uid() != rustix::process::geteuid().as_raw() => Err(Refused::Owner(path.to_owned())),
        () if access(path, Access::WRITE_OK).is_err() => Err(Refused::ReadOnly(path.to_owned())),
        () => Ok(()),
    }
}

/// Puts bytes in the place of what was read, if that is still there.
pub(super) fn replace(path: &Path, former: Option<&Found>, bytes: &[u8]) -> Result<(), Refused> {
    // What somebody saved meanwhile would be lost. The rest of a moment nobody can close.
    if read(path)?.as_ref() != former {
        return Err(Refused::Changed(path.to_owned()));
    }
    write(path, bytes, former.map_or(0o600, |found| found.mode))
}

/// Writes a file: the old one is there until the new one is on the disk.
pub(super) fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Refused> {
    let system = |error| Refused::System(path.to_owned(), error);
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new().prefix(".midturn-").tempfile_in(folder).map_err(system)?;
    file.write_all(bytes).map_err(system)?;
    file.as_file().set_permissions(fs::Permissions::from_mode(mode)).map_err(system)?;
    file.as_file().sync_all().map_err(system)?;
    file.persist(path).map_err(|error| system(error.error))?;
    sync(folder)
}

/// Removes what was read, if that is still there.
pub(super) fn remove(path: &Path, former: Option<&Found>) -> Result<(), Refused> {
    if read(path)?.as_ref() != former {
        return Err(Refused::Changed(path.to_owned()));
    }
    remove_any(path)
}

/// Removes a file if it is there.
pub(super) fn remove_any(path: &Path) -> Result<(), Refused> {
    match fs::remove_file(path) {
        Ok(()) => sync(path.parent().unwrap_or(Path::new("/"))),
        Err(error) if is_absent(&error) => Ok(()),
        Err(error) => Err(Refused::System(path.to_owned(), error)),
    }
}

/// Makes a folder for its owner alone, with those above it. Whether it was made.
pub(super) fn make_folder(path: &Path) -> Result<bool, Refused> {
    if path.is_dir() {
        return Ok(false);
    }
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map(|()| true).map_err(|error| Refused::System(path.to_owned(), error))
}

fn sync(folder: &Path) -> Result<(), Refused> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| Refused::System(folder.to_owned(), error))
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| about.is_symlink())
}

/// Whether there is no such file or folder.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
