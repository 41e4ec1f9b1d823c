//! One agent's confinement: what its commands may touch, made anew for each of them, because
//! what has authority is looked for each time; and the look afterwards at what they planted.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::protect::guard::{Before, Guard};
use crate::sandbox::Confinement;

/// What an agent's commands are confined to.
#[derive(Debug)]
pub(crate) struct Confined {
    /// What every command of the agent has in common; of what is read-only, what is there is.
    pub(crate) confinement: Confinement,
    /// What no command may make although it isn't there.
    pub(crate) stand_ins: Vec<PathBuf>,
    /// Looks before and after each.
    pub(crate) guard: Guard,
}

impl Confined {
    /// Before a command: what it is confined to, and what to compare with afterwards.
    ///
    /// # Errors
    /// What has to be kept from the command can't be known: it must not run.
    pub(crate) fn before(&self) -> io::Result<(Arc<Confinement>, Arc<Before>)> {
        private_folder(&self.confinement.temporary)?;
        let before = self.guard.before()?;
        let mut confinement = self.confinement.clone();
        confinement.read_only.retain(|path| is_there(path));
        confinement.read_only.extend(self.stand_ins.iter().filter(|path| !path.is_symlink()).cloned());
        confinement.read_only.extend(before.to_mount.iter().cloned());
        // A folder that is told to be writable is one whose parts are told apart.
        confinement.read_only.retain(|path| !confinement.writable.contains(path));
        Ok((Arc::new(confinement), before))
    }
}

/// Makes a folder for this user only, if it isn't there.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Whether there is something that can be mounted on itself. A link can't: the guard sees to it.
pub(crate) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| !about.is_symlink())
}
