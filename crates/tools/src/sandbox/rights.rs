//! Landlock: which files a command may read and write, whom it may signal.
//!
//! Rights of a folder hold for all below it and can't be taken back there, so what is to be
//! kept from a command is kept by granting its neighbours one by one. What Landlock doesn't
//! govern on any system so far: modes, owners and times of files that can be reached by DAC.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, LandlockStatus, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetError, Scope, path_beneath_rules,
};
use serde::{Deserialize, Serialize};

use super::mount_plan::Kind;

/// Folders with more entries are not gone through.
const ENTRIES_MAX: usize = 4_096;

/// More rules than these would cost each command too much.
const RULES_MAX: usize = 16_384;

/// The newest interface that was looked into.
const NEWEST: ABI = ABI::V9;

/// Files that every program may write.
pub(crate) const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// What is granted; all else is not. In a view of one's own nothing is to be seen that may not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rights {
    /// Files are not governed when there are neither.
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
}

/// What Landlock on this system can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// It is there, with all that is needed to govern files (since Linux 6.2).
    pub(crate) files: bool,
    /// Signals and abstract sockets stay inside (since Linux 6.12).
    pub(crate) scopes: bool,
    /// Sockets that are files stay inside.
    pub(crate) sockets: bool,
}

impl Abilities {
    /// Found out by a thread that restricts itself and ends.
    pub(crate) fn of_this_system() -> Self {
        let tried = std::thread::spawn(|| Rights::default().apply()).join();
        let abi = match tried {
            Ok(Ok(LandlockStatus::Available { effective_abi, .. })) => effective_abi,
            Ok(_) | Err(_) => ABI::Unsupported,
        };
        Self { files: abi >= ABI::V3, scopes: abi >= ABI::V6, sockets: abi >= ABI::V9 }
    }
}

impl Rights {
    /// Rights for the view that all have: what is nearest above a path holds for it.
    ///
    /// # Errors
    /// A folder that can't be gone through, or is too large for it.
    pub(crate) fn without_a_view(places: &BTreeMap<PathBuf, Kind>) -> io::Result<Self> {
        let mut rights = Self::default();
        let mut places = places.clone();
        places.insert("/dev".into(), Kind::Hidden);
        places.extend(DEVICES.map(|device| (device.into(), Kind::Writable)));
        // What nobody lets in can't be read.
        let top = places.get(Path::new("/")).copied().unwrap_or(Kind::Hidden);
        rights.grant(&places, Path::new("/"), top)?;
        Ok(rights)
    }

    fn grant(&mut self, places: &BTreeMap<PathBuf, Kind>, path: &Path, kind: Kind) -> io::Result<()> {
        let below: Vec<_> =
            places.iter().filter(|(place, _)| *place != path && place.starts_with(path)).collect();
        if below.iter().any(|(_, stronger)| **stronger > kind) {
            return self.grant_below(places, path, kind);
        }
        match kind {
            Kind::Hidden => {}
            Kind::Readable | Kind::Cache | Kind::Private | Kind::ReadOnly => self.read.push(path.to_owned()),
            Kind::Own | Kind::Writable => self.write.push(path.to_owned()),
        }
        if self.read.len() + self.write.len() > RULES_MAX {
            return Err(io::Error::other("there are too many files beside those that are to be hidden"));
        }
        // Of those below each other the upper ones see to the others.
        let mut done: Option<&Path> = None;
        for (place, kind) in below {
            if done.is_none_or(|done| !place.starts_with(done)) {
                self.grant(places, place, *kind)?;
                done = Some(place);
            }
        }
        Ok(())
    }

    /// Each entry for itself; nothing can be made in the folder then, and it can't be listed.
    fn grant_below(&mut self, places: &BTreeMap<PathBuf, Kind>, path: &Path, kind: Kind) -> io::Result<()> {
        let entries = match fs::read_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return self.grant_known(places, path, kind);
            }
            entries => entries?,
        };
        for (count, entry) in entries.enumerate() {
            let entry = entry?;
            if count == ENTRIES_MAX {
                return Err(io::Error::other(format!(
                    "{} has too many entries to go through",
                    path.display()
                )));
            }
            // What a link leads to has rights of its own.
            if !entry.file_type()?.is_symlink() {
                let path = entry.path();
                self.grant(places, &path, places.get(&path).copied().unwrap_or(kind))?;
            }
        }
        Ok(())
    }

    /// A folder that we can't list, where homes are on some machines: what isn't known to lead to one
    /// of the places is not granted.
    fn grant_known(&mut self, places: &BTreeMap<PathBuf, Kind>, path: &Path, kind: Kind) -> io::Result<()> {
        let below = places.keys().filter_map(|place| place.strip_prefix(path).ok()?.iter().next());
        for name in below.collect::<BTreeSet<_>>() {
            let path = path.join(name);
            self.grant(places, &path, places.get(&path).copied().unwrap_or(kind))?;
        }
        Ok(())
    }

    /// Restricts this thread, and all that it will start, for good.
    ///
    /// # Errors
    /// When the system has no Landlock, or refuses it.
    pub(crate) fn apply(&self) -> Result<LandlockStatus, RulesetError> {
        let mut ruleset = Ruleset::default();
        if !self.read.is_empty() || !self.write.is_empty() {
            ruleset = ruleset.handle_access(AccessFs::from_all(NEWEST))?;
        }
        let ruleset = ruleset.scope(Scope::from_all(NEWEST))?.create()?;
        // To open a socket's file for reading is nothing; to connect to it is. What is gone by now, or
        // isn't ours to open, is not granted.
        let ruleset = ruleset
            .add_rules(path_beneath_rules(&self.read, AccessFs::from_read(NEWEST)))?
            .add_rules(path_beneath_rules(&self.write, AccessFs::from_all(NEWEST)))?;
        Ok(ruleset.restrict_self()?.landlock)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use rustix::process::{Uid, geteuid};
    use rustix::thread::set_thread_res_uid;

    use super::*;

    /// C11: a folder of mode 0711 that is another user's.
    #[test]
    fn of_a_folder_that_cannot_be_listed_only_what_is_known_is_granted() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["homes/me/work", "homes/me/keys", "homes/me/tools", "homes/other"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        let mode =
            |path: &str, mode| fs::set_permissions(at(path), fs::Permissions::from_mode(mode)).unwrap();
        mode("", 0o755);
        mode("homes", 0o311);
        let places = [
            (at("homes/me/work"), Kind::Writable),
            (at("homes/me/keys"), Kind::Hidden),
            (at("homes/other/socket"), Kind::Hidden),
        ];
        let top = folder.path();
        let granted = std::thread::scope(|scope| {
            let granting = scope.spawn(|| {
                // Root can list all; and this is of this thread only.
                if geteuid().is_root() {
                    let nobody = Uid::from_raw(65_534);
                    set_thread_res_uid(nobody, nobody, nobody).unwrap();
                }
                let mut rights = Rights::default();
                rights.grant(&places.into(), top, Kind::ReadOnly).map(|()| rights)
            });
            granting.join().unwrap()
        });
        mode("homes", 0o755);
        let rights = granted.unwrap();
        assert_eq!((rights.read, rights.write), (vec![at("homes/me/tools")], vec![at("homes/me/work")]));
    }
}
