//! `midturn-exec`, the program that starts Claude Code's Bash commands: this binary by another name, in our own state.
//! Were it the installed one, whoever removed the package without an uninstall could run no command any more.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::entries::EXEC;
use super::file::{self, Refused};

/// Where it lies.
pub(super) fn path(state: &Path) -> PathBuf {
    state.join("bin").join(EXEC)
}

/// Puts it there, unless it is.
pub(super) fn put(program: &Path, to: &Path) -> Result<(), Refused> {
    if is_same(program, to) {
        return Ok(());
    }
    let folder = to.parent().unwrap_or(Path::new("/"));
    file::make_folder(folder)?;
    let system = |error| Refused::System(to.to_owned(), error);
    // A command of an open session may start it at any moment: there is always one.
    let aside = tempfile::Builder::new().prefix(".midturn-").tempdir_in(folder).map_err(system)?;
    let new = aside.path().join(EXEC);
    if fs::hard_link(program, &new).is_err() {
        fs::copy(program, &new).and_then(|_| File::open(&new)?.sync_all()).map_err(system)?;
    }
    fs::rename(&new, to).map_err(system)
}

/// Whether two files are one, or of the same bytes.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    let same = || -> io::Result<bool> {
        let (mut one, mut other) = (File::open(one)?, File::open(other)?);
        let (about_one, about_other) = (one.metadata()?, other.metadata()?);
        let id = |about: &fs::Metadata| (about.dev(), about.ino());
        if id(&about_one) == id(&about_other) || about_one.len() != about_other.len() {
            return Ok(about_one.len() == about_other.len());
        }
        let (mut of_one, mut of_other) = (vec![0; 1 << 16], vec![0; 1 << 16]);
        for done in (0..about_one.len()).step_by(1 << 16) {
            let length = usize::try_from((about_one.len() - done).min(1 << 16)).unwrap_or(1 << 16);
            one.read_exact(&mut of_one[..length])?;
            other.read_exact(&mut of_other[..length])?;
            if of_one[..length] != of_other[..length] {
                return Ok(false);
            }
        }
        Ok(true)
    };
    same().unwrap_or(false)
}
