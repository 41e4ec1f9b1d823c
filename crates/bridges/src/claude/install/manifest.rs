//! What an install remembers, for the uninstall: the bytes that there were, and which there are since. It lies in our
//! own state, named by the settings' path.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::entries::Ours;
use super::file::{self, Refused};

/// What was done to one file of settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// The file.
    pub(super) settings: PathBuf,
    /// The program that the hooks start.
    pub(super) program: String,
    /// The prefix that was set.
    pub(super) prefix: Option<String>,
    /// The sum of the bytes that there were; `None`: there was no file.
    pub(super) before: Option<String>,
    /// The sum of those that we left.
    pub(super) after: String,
    /// The objects and lists that were made.
    pub(super) made: BTreeSet<String>,
    /// Whether the settings' folder was made.
    pub(super) made_folder: bool,
    /// By which version.
    pub(super) midturn: String,
}

/// Where the manifest of one file of settings lies, and the bytes that there were.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    folder: PathBuf,
    name: String,
}

impl Kept {
    /// The place.
    pub(super) fn of(state: &Path, settings: &Path) -> Self {
        let mut name = sum(settings.as_os_str().as_encoded_bytes());
        name.truncate(16);
        Self { folder: state.join("hooks"), name }
    }

    /// The file with the bytes that there were.
    pub(super) fn backup(&self) -> PathBuf {
        self.folder.join(format!("{}.before", self.name))
    }

    fn manifest(&self) -> PathBuf {
        self.folder.join(format!("{}.json", self.name))
    }

    /// What was remembered. What can't be read is as if it weren't there: ours is known by itself too.
    pub(super) fn read(&self) -> Option<Manifest> {
        serde_json::from_slice(&file::look(&self.manifest()).ok()??.bytes).ok()
    }

    /// The bytes that there were, if they are still what they were.
    pub(super) fn before(&self, manifest: &Manifest) -> Option<Option<Vec<u8>>> {
        let Some(wanted) = &manifest.before else { return Some(None) };
        let bytes = file::look(&self.backup()).ok()??.bytes;
        (sum(&bytes) == *wanted).then_some(Some(bytes))
    }

    /// Remembers. It comes before the settings are written: who is killed in between has changed nothing.
    pub(super) fn write(&self, manifest: &Manifest, before: Option<&[u8]>) -> Result<(), Refused> {
        file::make_folder(&self.folder)?;
        match before {
            Some(bytes) => file::write(&self.backup(), bytes, 0o600)?,
            None => file::remove_any(&self.backup())?,
        }
        let text = serde_json::to_vec_pretty(manifest).unwrap_or_default();
        file::write(&self.manifest(), &text, 0o600)
    }

    /// Forgets.
    pub(super) fn forget(&self) -> Result<(), Refused> {
        if !self.folder.exists() {
            return Ok(());
        }
        file::remove_any(&self.manifest())?;
        file::remove_any(&self.backup())
    }
}

impl Manifest {
    /// What is known of ours by it.
    pub(super) fn ours(of: Option<&Self>) -> Ours {
        of.map(|manifest| Ours { program: Some(manifest.program.clone()), prefix: manifest.prefix.clone() })
            .unwrap_or_default()
    }
}

/// SHA-256, in hexadecimal digits.
pub(super) fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
