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
        // Behind a link it may be anybody's.
        let Ok(from) = file_below(top, &Path::new(".git").join(&path)) else {
            left += 1;
            continue;
        };
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// C2: content under another's name, and what isn't the agent's.
    #[test]
    fn only_what_its_name_says_is_taken_and_through_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let (top, common) = (folder.path().join("top"), folder.path().join("common"));
        let name = |text: &str| -> String {
            Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
        };
        let path = |name: &str| Path::new(OBJECTS).join(&name[..2]).join(&name[2..4]).join(name);
        let put = |name: &str, text: &str| {
            let file = top.join(".git").join(path(name));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        fs::create_dir(&common).unwrap();
        fs::write(folder.path().join("secret"), "secret").unwrap();
        put(&name("good"), "good");
        put(&name("forged"), "evil");
        put(&name("secret"), "");
        let linked = top.join(".git").join(path(&name("secret")));
        fs::remove_file(&linked).unwrap();
        symlink(folder.path().join("secret"), linked).unwrap();
        assert!(bring(&top, &common).unwrap().unwrap().starts_with("2 large files were not taken over"));
        assert_eq!(fs::read_to_string(common.join(path(&name("good")))).unwrap(), "good");
        for other in ["forged", "secret"] {
            assert!(!common.join(path(&name(other))).exists(), "{other}");
        }
    }
}
