//! What lies in folders, so that it can be said what is different afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use midturn_tests::root;

/// Every path with what can be known of it.
#[derive(Debug, Default)]
pub(crate) struct Snapshot(BTreeMap<PathBuf, Entry>);

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    mode: u32,
    owner: (u32, u32),
    /// Of a folder nothing more: who may change a file in it changes its times.
    content: Option<Content>,
}

#[derive(Debug, PartialEq, Eq)]
struct Content {
    hash: u64,
    links: u64,
    modified: (i64, i64),
    /// When anything about it changed: its attributes, its links, its mode.
    changed: (i64, i64),
}

impl Snapshot {
    /// All below these folders but what may change.
    pub(crate) fn of(folders: &[PathBuf], may_change: &dyn Fn(&Path) -> bool) -> Self {
        let mut entries = BTreeMap::new();
        let mut left = folders.to_vec();
        while let Some(path) = left.pop() {
            let Ok(found) = path.symlink_metadata() else { continue };
            if may_change(&path) {
                continue;
            }
            if found.is_dir() {
                left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
            let content = (!found.is_dir()).then(|| Content {
                hash: hash(&bytes(&path, &found)),
                links: found.nlink(),
                modified: (found.mtime(), found.mtime_nsec()),
                changed: (found.ctime(), found.ctime_nsec()),
            });
            entries.insert(path, Entry { mode: found.mode(), owner: (found.uid(), found.gid()), content });
        }
        Self(entries)
    }

    /// What is not the same any more.
    pub(crate) fn differences(&self, after: &Self) -> Vec<String> {
        let gone = self.0.iter().filter_map(|(path, entry)| match after.0.get(path) {
            None => Some(format!("{} is gone", path.display())),
            Some(now) if now != entry => Some(format!("{} was changed: {entry:?}, now {now:?}", path.display())),
            Some(_) => None,
        });
        let new = after.0.keys().filter(|path| !self.0.contains_key(*path));
        gone.chain(new.map(|path| format!("{} is new", path.display()))).collect()
    }
}

fn bytes(path: &Path, found: &fs::Metadata) -> Vec<u8> {
    if found.is_symlink() {
        fs::read_link(path).map(|target| target.into_os_string().into_encoded_bytes()).unwrap_or_default()
    } else if found.is_file() {
        fs::read(path).unwrap_or_default()
    } else {
        Vec::new()
    }
}

fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Folders of the machine in which a program tries to make something. Only names are looked at:
/// others work there too.
pub(crate) const OF_THE_MACHINE: [&str; 8] =
    ["/", "/etc", "/tmp", "/var/tmp", "/dev", "/dev/shm", "/usr/local", "/run"];

/// What lies there that carries a mark; it is removed.
pub(crate) fn take_marked(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    let folders = OF_THE_MACHINE.iter().map(PathBuf::from).chain([root().to_owned()]);
    for folder in folders {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // The world itself lies in one of them.
            if name.starts_with(&format!("hostile-{mark}-")) {
                found.push(format!("{} was made", entry.path().display()));
                // One of both; what can't be removed is told anyhow.
                let _ = fs::remove_file(entry.path());
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
    found
}
