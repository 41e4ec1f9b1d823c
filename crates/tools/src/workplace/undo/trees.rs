//! Trees of the project folder, in a git folder of ours that lies in the state folder: it borrows the project's
//! objects, and nothing of the project's settings, attributes or hooks is obeyed. Files are kept byte for byte.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::super::git::{Git, GitError, parts};
use super::super::layout::RepositoryLayout;
use super::super::snapshot;
use crate::context::off_the_runtime;
use crate::mark::Mark;
use crate::protect::{TEMPORARY, remove_below};

/// The largest file that is kept, in bytes: a larger one is seldom somebody's text.
const FILE_MAX: u64 = 16 << 20;

/// How much one tree may add, in bytes.
const TREE_MAX: u64 = 1 << 30;

/// How many files that are left out are named.
const LEFT_OUT_MAX: usize = 20;

/// What git is to take from files: their bytes.
const RAW: &str = "* -text -eol -ident -filter -working-tree-encoding\n";

/// The tree that the index is.
const KNOWN: &str = "known";

/// A file in a tree: its mode and the name of its content.
pub(super) type Entry = String;

/// Where trees are kept, and of what.
#[derive(Clone, Debug)]
pub(super) struct Trees {
    /// The git folder.
    pub(super) own: PathBuf,
    /// The work tree.
    pub(super) top: PathBuf,
    /// The folder in it that is looked at.
    pub(super) folder: PathBuf,
    /// What of ours may lie in there.
    pub(super) state: PathBuf,
    pub(super) mark: Option<Mark>,
}

/// A tree that was just made.
pub(super) struct Taken {
    pub(super) tree: String,
    /// How much it added at most, in bytes.
    pub(super) bytes: u64,
    /// Files that are too large to be in it.
    pub(super) left_out: Vec<String>,
}

/// What a turn did to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) path: PathBuf,
    /// `None`: it was not there.
    pub(super) before: Option<Entry>,
    pub(super) after: Option<Entry>,
}

/// What is not in the index as it is in the folder.
#[derive(Default)]
struct Unknown {
    paths: Vec<u8>,
    bytes: u64,
    left_out: Vec<String>,
}

impl Trees {
    /// Makes the place, if it isn't there.
    pub(super) async fn make(&self, layout: &RepositoryLayout) -> Result<(), GitError> {
        if self.own.join("info/attributes").exists() {
            return Ok(());
        }
        let format = format!("--object-format={}", layout.objects);
        self.git().bytes(&["init", "--quiet", "--template=", &format]).await?;
        if let Some((key, value)) = layout.settings.iter().find(|(key, _)| key == "core.excludesfile") {
            self.git().bytes(&["config", key, value]).await?;
        }
        let (own, common, index) = (self.own.clone(), layout.common.clone(), layout.own.join("index"));
        off_the_runtime(move || {
            std::fs::create_dir_all(own.join("info"))?;
            let excluded = std::fs::read(common.join("info/exclude")).unwrap_or_default();
            std::fs::write(own.join("info/exclude"), excluded)?;
            let mut objects = common.join("objects").into_os_string();
            objects.push("\n");
            std::fs::create_dir_all(own.join("objects/info"))?;
            std::fs::write(own.join("objects/info/alternates"), objects.as_encoded_bytes())?;
            // With it comes what git knows of unchanged files, which are not read again then.
            snapshot::copy(&index, &own.join("index"))
        })
        .await
        .flatten()?;
        self.keep_of_index_what_is_raw().await?;
        // Last: with it, the place is made.
        Ok(std::fs::write(self.own.join("info/attributes"), RAW)?)
    }

    /// The project's index is taken for what it is only where content is in it as it is in files.
    async fn keep_of_index_what_is_raw(&self) -> Result<(), GitError> {
        let git = self.git();
        // A split one needs another file; who has attributes may have filters.
        let listed = git.bytes(&["ls-files", "--stage", "-z"]).await.unwrap_or_default();
        let is_plain = !listed.is_empty()
            && !parts(&listed)
                .any(|entry| entry.ends_with(b".gitattributes") || entry.starts_with(b"160000"));
        let index = self.own.join("index");
        if !is_plain && index.exists() {
            std::fs::remove_file(index)?;
        }
        Ok(())
    }

    fn git(&self) -> Git<'_> {
        Git::beside(&self.top, &self.top, &self.own, self.mark.as_ref())
    }

    /// All files of the folder as they are, those that are ignored, and repositories inside, apart.
    pub(super) async fn take(&self) -> Result<Taken, GitError> {
        let Unknown { paths, bytes, left_out } = self.unknown().await?;
        let known = self.own.join(KNOWN);
        if paths.is_empty()
            && let Ok(tree) = std::fs::read_to_string(&known)
        {
            return Ok(Taken { tree, bytes: 0, left_out });
        }
        if bytes > TREE_MAX {
            let (max, folder) = (TREE_MAX >> 20, self.folder.display());
            let why = format!("more than {max} MiB of files in {folder} are neither committed nor ignored");
            return Err(GitError::Refused(why));
        }
        self.forget_known()?;
        if !paths.is_empty() {
            let words = ["update-index", "-z", "--add", "--remove", "--replace", "--stdin"];
            self.fed(&paths, &words).await?;
        }
        let tree = self.git().text(&["write-tree", "--missing-ok"]).await?;
        std::fs::write(known, &tree)?;
        Ok(Taken { tree, bytes, left_out })
    }

    /// Before the index becomes another one: whoever is killed in the middle of that leaves none that is wrong.
    fn forget_known(&self) -> std::io::Result<()> {
        match std::fs::remove_file(self.own.join(KNOWN)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    async fn unknown(&self) -> Result<Unknown, GitError> {
        let git = Git::beside(&self.folder, &self.top, &self.own, self.mark.as_ref());
        let words =
            ["ls-files", "-z", "--others", "--modified", "--exclude-standard", "--full-name", "--", "."];
        let listed = git.bytes(&words).await?;
        let trees = self.clone();
        Ok(off_the_runtime(move || trees.measured(&listed)).await?)
    }

    fn measured(&self, listed: &[u8]) -> Unknown {
        let mut unknown = Unknown::default();
        for part in parts(listed) {
            let path = Path::new(OsStr::from_bytes(part));
            let whole = self.top.join(path);
            let is_ours =
                path.file_name().is_some_and(|name| name.as_bytes().starts_with(TEMPORARY.as_bytes()));
            // A repository inside, and what of ours lies in the project.
            if part.ends_with(b"/") || is_ours || whole.starts_with(&self.state) {
                continue;
            }
            let about = whole.symlink_metadata();
            let size = about.as_ref().map_or(0, std::fs::Metadata::len);
            let is_file = about.is_ok_and(|about| about.is_file());
            let can_be_read = || accessat(CWD, &whole, Access::READ_OK, AtFlags::EACCESS).is_ok();
            if is_file && (size > FILE_MAX || !can_be_read()) {
                if unknown.left_out.len() == LEFT_OUT_MAX {
                    continue;
                }
                unknown.left_out.push(path.display().to_string());
                continue;
            }
            unknown.bytes += size;
            unknown.paths.extend_from_slice(part);
            unknown.paths.push(0);
        }
        unknown
    }

    /// What one tree has that the other hasn't, and the other way round.
    pub(super) async fn changes(&self, before: &str, after: &str) -> Result<Vec<Change>, GitError> {
        let words = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", before, after];
        let answer = self.git().bytes(&words).await?;
        let mut parts = parts(&answer);
        let mut changes = Vec::new();
        while let (Some(about), Some(path)) = (parts.next(), parts.next()) {
            let about = String::from_utf8_lossy(about);
            let words: Vec<&str> = about.trim_start_matches(':').split(' ').collect();
            let [mode_before, mode_after, before, after, _] = words[..] else { continue };
            let entry = |mode: &str, name: &str| (mode != "000000").then(|| format!("{mode} {name}"));
            let path = PathBuf::from(OsStr::from_bytes(path));
            changes.push(Change {
                path,
                before: entry(mode_before, before),
                after: entry(mode_after, after),
            });
        }
        Ok(changes)
    }

    /// All that is in a tree.
    pub(super) async fn entries(&self, tree: &str) -> Result<BTreeMap<PathBuf, Entry>, GitError> {
        let words =
            ["ls-tree", "-r", "-z", "--full-tree", "--format=%(objectmode) %(objectname)%x09%(path)", tree];
        let answer = self.git().bytes(&words).await?;
        let entry = |part: &[u8]| {
            let at = part.iter().position(|&b| b == b'\t')?;
            let path = PathBuf::from(OsStr::from_bytes(&part[at + 1..]));
            Some((path, String::from_utf8_lossy(&part[..at]).into_owned()))
        };
        Ok(parts(&answer).filter_map(entry).collect())
    }

    /// Of these contents, those that are there no more: the project's git let go of them.
    pub(super) async fn missing(&self, entries: &[Entry]) -> Result<Vec<Entry>, GitError> {
        let mut asked = Vec::new();
        for entry in entries {
            asked.extend_from_slice(name_of(entry).as_bytes());
            asked.push(b'\n');
        }
        let answer = self.fed(&asked, &["cat-file", "--batch-check=%(objectname)"]).await?;
        let answer = String::from_utf8_lossy(&answer);
        let is_missing = |(_, line): &(&Entry, &str)| line.ends_with(" missing");
        Ok(entries.iter().zip(answer.lines()).filter(is_missing).map(|(entry, _)| entry.clone()).collect())
    }

    /// Makes files what they are to be: gone, or with this content. `tree`: any, for how long its name is.
    pub(super) async fn put(
        &self,
        wanted: &BTreeMap<PathBuf, Option<Entry>>,
        tree: &str,
    ) -> Result<(), GitError> {
        let (mut index, mut files) = (Vec::new(), Vec::new());
        for (path, entry) in wanted {
            let bytes = path.as_os_str().as_bytes();
            let nothing = || format!("0 {}", "0".repeat(tree.len()));
            let entry = entry.as_ref().inspect(|_| files.extend([bytes, b"\0"].concat()));
            index.extend([entry.cloned().unwrap_or_else(nothing).as_bytes(), b"\t", bytes, b"\0"].concat());
        }
        // First what is to go: a folder may have to come where it is.
        let top = self.top.clone();
        let gone: Vec<PathBuf> =
            wanted.iter().filter(|(_, to)| to.is_none()).map(|(path, _)| path.clone()).collect();
        off_the_runtime(move || gone.iter().try_for_each(|path| remove(&top, path))).await.flatten()?;
        self.forget_known()?;
        self.fed(&index, &["update-index", "-z", "--index-info"]).await?;
        self.fed(&files, &["checkout-index", "--force", "-z", "--stdin"]).await.map(drop)
    }

    /// Git, at the top, that reads this.
    async fn fed(&self, bytes: &[u8], words: &[&str]) -> Result<Vec<u8>, GitError> {
        let file = self.own.join("read");
        std::fs::write(&file, bytes)?;
        let answer = self.git().fed(file.clone()).bytes(words).await;
        std::fs::remove_file(file)?;
        answer
    }
}

/// Removes a file, and the folders that are empty then: git knows of none.
fn remove(top: &Path, path: &Path) -> std::io::Result<()> {
    remove_below(top, path)?;
    for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
        if std::fs::remove_dir(top.join(folder)).is_err() {
            break;
        }
    }
    Ok(())
}

fn name_of(entry: &str) -> &str {
    entry.split_once(' ').map_or(entry, |(_, name)| name)
}
