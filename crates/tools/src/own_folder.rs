//! Folders of our own: of state, of sockets, of temporary files. Whoever could put something into one of them, or
//! another in its place, would decide what Midturn obeys and whom it tells the token; so one that isn't ours is
//! refused, and neither used nor mended.
//!
//! It knows of users and modes only, not of what is in a folder.

use std::fs::{DirBuilder, Metadata, Permissions, metadata, set_permissions, symlink_metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// The user that may do everything anyway.
const ROOT: u32 = 0;

/// Why a folder can't be taken for ours. What to do about it depends on who chose the place.
#[derive(Debug, thiserror::Error)]
pub enum NotOurs {
    /// Somebody else made it, and says what is in it.
    #[error("{} belongs to another user (uid {owner})", path.display())]
    Anothers {
        /// The folder or link.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Others may have put something into it.
    #[error("other users can write into {} (mode {mode:o})", path.display())]
    Open {
        /// The folder.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// There is something else in its place.
    #[error("{} is {what}, not a folder", path.display())]
    NoFolder {
        /// The place.
        path: PathBuf,
        /// What is there.
        what: &'static str,
    },
    /// The system says no.
    #[error("{} can't be made or looked at: {error}", path.display())]
    System {
        /// The folder.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

impl From<NotOurs> for io::Error {
    fn from(not_ours: NotOurs) -> Self {
        let kind = match &not_ours {
            NotOurs::System { error, .. } => error.kind(),
            NotOurs::Anothers { .. } | NotOurs::Open { .. } => io::ErrorKind::PermissionDenied,
            NotOurs::NoFolder { .. } => io::ErrorKind::NotADirectory,
        };
        Self::new(kind, not_ours)
    }
}

/// Makes `below` in `base`, for this user only. `base` is what a person or the system named; all of `below` is ours,
/// and its last folder is closed to others if it isn't yet.
///
/// # Errors
/// It can't be made, or something on the way isn't ours: see [`look`].
pub fn make(base: &Path, below: &Path) -> Result<(), NotOurs> {
    let path = base.join(below);
    let failed = |error| NotOurs::System { path: path.clone(), error };
    // Before as well: nothing is to be made where another's link leads.
    let mut found = found(base, below)?;
    if !found.as_ref().is_some_and(Metadata::is_dir) {
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(failed)?;
        found = self::found(base, below)?;
    }
    match found.map(|found| found.mode() & 0o077) {
        Some(0) => Ok(()),
        Some(_) => set_permissions(&path, Permissions::from_mode(0o700)).map_err(failed),
        None => Err(failed(io::ErrorKind::NotFound.into())),
    }
}

/// Whether `below` in `base` is ours as far as it is there. What is not there is made later by nobody else:
/// of what is above it, others have no say.
///
/// # Errors
/// A link on the way, the base, or a folder of ours belongs to somebody who is neither this user nor root; others can
/// write into the base (without its being sticky) or into one of ours; the last one is a link.
pub fn look(base: &Path, below: &Path) -> Result<(), NotOurs> {
    found(base, below).map(drop)
}

/// What is there, if all of it is.
fn found(base: &Path, below: &Path) -> Result<Option<Metadata>, NotOurs> {
    links_to(base)?;
    let mut last = there(base, metadata(base))?;
    if let Some(found) = &last {
        holds(base, found)?;
    }
    let mut path = base.to_owned();
    let mut rest = below.components();
    while let Some(name) = rest.next() {
        path.push(name);
        let Some(found) = there(&path, symlink_metadata(&path))? else { return Ok(None) };
        let is_last = rest.as_path().as_os_str().is_empty();
        ours(&path, &found, is_last)?;
        last = Some(found);
    }
    Ok(last)
}

/// Whether nobody else made a link on the way to the base.
fn links_to(base: &Path) -> Result<(), NotOurs> {
    for path in base.ancestors() {
        // What is not there, or can't be looked at, is found out below or when it is made.
        match symlink_metadata(path) {
            Ok(found) if found.is_symlink() => known_owner(path, &found)?,
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// Whether nobody else can put another in the place of what we make in this folder.
fn holds(path: &Path, found: &Metadata) -> Result<(), NotOurs> {
    const STICKY: u32 = 0o1000;
    known_owner(path, found)?;
    let mode = found.mode() & 0o7777;
    if mode & 0o002 != 0 && mode & STICKY == 0 {
        return Err(NotOurs::Open { path: path.to_owned(), mode });
    }
    Ok(())
}

fn ours(path: &Path, found: &Metadata, is_last: bool) -> Result<(), NotOurs> {
    known_owner(path, found)?;
    let no_folder = |what| NotOurs::NoFolder { path: path.to_owned(), what };
    let about = match found.is_symlink() {
        // A person's own, to another disk say.
        true if !is_last => metadata(path).map_err(|_| no_folder("a link to nothing"))?,
        true => return Err(no_folder("a link")),
        false => found.clone(),
    };
    if !about.is_dir() {
        return Err(no_folder("something else"));
    }
    known_owner(path, &about)?;
    let mode = about.mode() & 0o7777;
    if mode & 0o022 != 0 { Err(NotOurs::Open { path: path.to_owned(), mode }) } else { Ok(()) }
}

fn known_owner(path: &Path, found: &Metadata) -> Result<(), NotOurs> {
    match found.uid() {
        ROOT => Ok(()),
        owner if owner == geteuid().as_raw() => Ok(()),
        owner => Err(NotOurs::Anothers { path: path.to_owned(), owner }),
    }
}

/// What is there; nothing is fine.
fn there(path: &Path, found: io::Result<Metadata>) -> Result<Option<Metadata>, NotOurs> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(NotOurs::System { path: path.to_owned(), error }),
    }
}
