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
    times: Option<Times>,
}

#[derive(Debug, PartialEq, Eq)]
struct Times {
    modified: (i64, i64),
    /// When anything about it changed: its attributes, its links, its mode.
    changed: (i64, i64),
}

/// How much of a path counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Nothing: it may change.
    Away,
    /// What is in it, and who may do what with it. It may have been put back as it was.
    AtContent,
    /// Everything.
    Closely,
}

impl Snapshot {
    /// All below these folders.
    pub(crate) fn of(folders: &[PathBuf], look: &dyn Fn(&Path) -> Look) -> Self {
        let mut entries = BTreeMap::new();
        let mut left = folders.to_vec();
        while let Some(path) = left.pop() {
            let Ok(found) = path.symlink_metadata() else { continue };
            let look = look(&path);
            if look == Look::Away {
                continue;
            }
            if found.is_dir() {
                left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
            let times = (look == Look::Closely).then(|| Times {
                modified: (found.mtime(), found.mtime_nsec()),
                changed: (found.ctime(), found.ctime_nsec()),
            });
            let content = || Content { hash: hash(&bytes(&path, &found)), links: found.nlink(), times };
            let content = (!found.is_dir()).then(content);
            entries.insert(path, Entry { mode: found.mode(), owner: (found.uid(), found.gid()), content });
        }
        Self(entries)
    }

    /// What is not the same any more.
    pub(crate) fn differences(&self, after: &Self) -> Vec<String> {
        let gone = self.0.iter().filter_map(|(path, entry)| match after.0.get(path) {
            None => Some(format!("{} is gone", path.display())),
            Some(now) if now != entry => {
                Some(format!("{} was changed: {}", path.display(), now.difference(entry)))
            }
            Some(_) => None,
        });
        let new = after.0.keys().filter(|path| !self.0.contains_key(*path));
        gone.chain(new.map(|path| format!("{} is new", path.display()))).collect()
    }
}

impl Entry {
    /// What is not as it was before.
    fn difference(&self, before: &Self) -> String {
        let mut told = Vec::new();
        if self.mode != before.mode {
            told.push(format!("mode {:o}, was {:o}", self.mode, before.mode));
        }
        if self.owner != before.owner {
            told.push(format!("owner {:?}, was {:?}", self.owner, before.owner));
        }
        if let (Some(now), Some(then)) = (&self.content, &before.content) {
            let changed = [
                (now.hash != then.hash, "content"),
                (now.links != then.links, "links"),
                (now.times != then.times, "times"),
            ];
            told.extend(changed.into_iter().filter(|(changed, _)| *changed).map(|(_, what)| what.to_owned()));
        }
        told.join("; ")
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
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
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
