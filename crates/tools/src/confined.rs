//! One agent's confinement: what its commands may touch, made anew for each of them, because
//! what has authority is looked for each time; and the look afterwards at what they planted.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::own_folder;
use crate::protect::guard::{Before, Guard};
use crate::sandbox::Confinement;
use crate::sandbox::stand_in::stands_at;
use crate::under_way::UnderWay;

/// What an agent's commands are confined to.
#[derive(Debug)]
pub(crate) struct Confined {
    /// What every command of the agent has in common; of what is read-only, what is there is.
    pub(crate) confinement: Confinement,
    /// What no command may make although it isn't there.
    pub(crate) stand_ins: Vec<PathBuf>,
    /// Looks before and after each.
    pub(crate) guard: Guard,
    /// Tells of each while it runs, where anybody looks after them.
    pub(crate) under_way: Option<UnderWay>,
}

impl Confined {
    /// Before a command: what it is confined to, and what to compare with afterwards.
    ///
    /// # Errors
    /// What has to be kept from the command can't be known: it must not run.
    pub(crate) fn before(&self) -> io::Result<(Arc<Confinement>, Arc<Before>)> {
        private_folder(&self.confinement.temporary)?;
        self.confinement.own.iter().try_for_each(|own| private_folder(&own.from))?;
        self.run_begins()?;
        if let Some(under_way) = &self.under_way {
            under_way.recover(&self.guard)?;
        }
        let before = self.guard.before()?;
        if let Some(under_way) = &self.under_way {
            let missing =
                self.stand_ins.iter().filter(|path| path.symlink_metadata().is_err() || stands_at(path));
            under_way.begins(&before, missing.cloned(), &self.confinement.temporary)?;
        }
        let mut confinement = self.confinement.clone();
        // At the run's end what lingers is swept.
        confinement.lingers = self.under_way.is_some();
        confinement.read_only.retain(|path| is_there(path));
        confinement.read_only.extend(self.stand_ins.iter().filter(|path| !path.is_symlink()).cloned());
        confinement.read_only.extend(before.to_mount.iter().cloned());
        // A folder that is told to be writable is one whose parts are told apart.
        confinement.read_only.retain(|path| !confinement.writable.contains(path));
        Ok((Arc::new(confinement), before))
    }

    /// Before anything is changed: what has to be known at the run's end.
    ///
    /// # Errors
    /// It can't be known.
    pub(crate) fn run_begins(&self) -> io::Result<()> {
        let Some(under_way) = &self.under_way else { return Ok(()) };
        private_folder(under_way.folder())?;
        under_way.run_begins(&self.guard)
    }

    /// At a run's end: what a person has to know of it.
    pub(crate) fn run_ended(&self) -> Vec<String> {
        let left_for_git = self.under_way.as_ref().map(|under_way| {
            // A call that was given up was not looked after.
            let _told_before_the_next = under_way.recover(&self.guard);
            under_way.run_is_over()
        });
        let notes = self.guard.missing().into_iter().chain(self.guard.stopped_in_run());
        notes.chain(self.guard.replaced_in_run()).chain(left_for_git.unwrap_or_default()).collect()
    }

    /// In the middle of a run, before git works in the folder: what the run has left for git so far is
    /// put aside. What there is to say of it.
    ///
    /// # Errors
    /// The folder can't be looked through.
    pub(crate) fn before_git_works(&self) -> io::Result<Vec<String>> {
        self.run_begins()?;
        let notes = self.under_way.as_ref().map(UnderWay::run_is_over).unwrap_or_default();
        self.run_begins().map(|()| notes)
    }

    /// After a command, when nothing of it is alive: what there is to say of what it planted, and of
    /// where the look for that stopped.
    pub(crate) fn after(&self, before: &Before) -> (Vec<String>, Vec<String>) {
        let notes = self.guard.after(before);
        // Nothing that the command did wrong.
        let replaced = self.guard.replaced(before, &self.confinement.read_only, stands_at);
        let earlier = self.under_way.as_ref().map(UnderWay::is_over).unwrap_or_default();
        (notes, earlier.into_iter().chain(replaced).chain(self.guard.stopped()).collect())
    }
}

/// Makes a folder for this user only, if it isn't there; one that isn't this user's is refused.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    let (base, name) = match (folder.parent(), folder.file_name()) {
        (Some(parent), Some(name)) if !folder.is_symlink() => (parent, Path::new(name)),
        // A person's state folder may be a link of theirs, to another disk say.
        _ => (folder, Path::new("")),
    };
    Ok(own_folder::make(base, name)?)
}

/// Whether there is something that can be mounted on itself. A link can't: the guard sees to it.
pub(crate) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| !about.is_symlink())
}
