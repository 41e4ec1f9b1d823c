//! Large files that an agent made: git knows them by name, and what is in them lies beside git. It comes
//! back with the commits that name them, each only if it is what its name says.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::worktree::Worktree;
use crate::context::off_the_runtime;
use crate::protect::{file_below, make_folders};

/// Where they are, below a folder of git's.
const OBJECTS: &str = "lfs/objects";

/// How many are taken at a time, and how much that is, in bytes.
const FILES_MAX: usize = 10_000;
const BYTES_MAX: u64 = 4 << 30;

impl Worktree {
    /// Copies what the project hasn't got. What there is to say of the rest.
    pub(super) async fn bring_large_files(&self) -> io::Result<Option<String>> {
        if !self.repository.layout.has_large_files() {
            return Ok(None);
        }
        let (top, common) = (self.top.clone(), self.repository.layout.common.clone());
        off_the_runtime(move || bring(&top, &common)).await.flatten()
    }
}

fn bring(top: &Path, common: &Path) -> io::Result<Option<String>> {
    let (mut bytes, mut left) = (0, 0_usize);
    for path in named_by_content(&top.join(".git").join(OBJECTS)) {
        let to = common.join(&path);
        if to.symlink_metadata().is_ok() {
            continue;
        }
        let from = file_below(top, &Path::new(".git").join(&path))?;
        bytes += from.metadata()?.len();
        let is_taken = bytes <= BYTES_MAX && take(from, common, &path)?;
        left += usize::from(!is_taken);
    }
    let note = || format!("{left} large files were not taken over: too much, or not what their names say");
    Ok((left > 0).then(note))
}

/// The paths of all, below a folder of git's: `lfs/objects/01/23/0123…`. What is there is looked at only
/// when it is opened.
fn named_by_content(objects: &Path) -> Vec<PathBuf> {
    let inside =
        |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = inside(objects).flat_map(|first| inside(&first).collect::<Vec<_>>());
    let files = files.flat_map(|second| inside(&second).collect::<Vec<_>>());
    let named = files.filter_map(|file| {
        let name = file.file_name()?.to_str()?;
        let is_name = name.len() == 64 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        is_name.then(|| Path::new(OBJECTS).join(&name[..2]).join(&name[2..4]).join(name))
    });
    named.take(FILES_MAX).collect()
}

/// Whether it is what its name says.
fn take(from: File, common: &Path, path: &Path) -> io::Result<bool> {
    let folder = path.parent().unwrap_or(Path::new(OBJECTS));
    make_folders(common, folder)?;
    let mut new = tempfile::NamedTempFile::new_in(common.join(folder))?;
    let (mut sum, mut part) = (Sha256::new(), vec![0; 1 << 20]);
    let mut from = from.take(BYTES_MAX);
    loop {
        let read = from.read(&mut part)?;
        if read == 0 {
            break;
        }
        sum.update(&part[..read]);
        new.write_all(&part[..read])?;
    }
    let sum: String = sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if path.file_name() != Some(sum.as_ref()) {
        return Ok(false);
    }
    new.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    new.as_file().sync_all()?;
    new.persist(common.join(path)).map_err(|error| error.error)?;
    Ok(true)
}
