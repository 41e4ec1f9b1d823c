//! What a commit is to hold: HEAD, and over it what was asked for as it is in the work tree, in an index
//! that is nobody's. What gives authority and repositories inside are never in it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{ByTool, NoCommit, refused};
use crate::arguments::listed;
use crate::context::{CommitOrder, off_the_runtime};
use crate::protect::{TEMPORARY, authority};
use crate::workplace::git::{Git, GitError, parts};
use crate::workplace::snapshot::{Scratch, copy};
use crate::workplace::{relative, stage};

/// The mode of a repository inside, in a tree.
const GITLINK: &[u8] = b"160000";

/// Why a person commits it.
const OBEYED: &str = "is obeyed by git, Midturn or other tools";

/// Of how many files git is asked at once.
const ASKED: usize = 500;

/// A path in the work tree, from its top.
type TreePath = Vec<u8>;

/// The commit's index, as it comes to be.
pub(super) struct Staging<'a> {
    by: &'a ByTool,
    /// Git with the person's index.
    theirs: Git<'a>,
    /// Git with ours.
    git: Git<'a>,
    index: PathBuf,
    /// What the index is compared with: a commit, or the empty tree.
    base: String,
    /// What was asked for by name, from the top of the work tree; `None`: all below the agent's root.
    named: Option<Vec<String>>,
    left_out: Vec<TreePath>,
    /// What hooks have staged besides.
    more: Vec<TreePath>,
}

/// What is to be committed.
pub(super) struct Staged {
    pub(super) tree: String,
    /// How many files are other than in HEAD.
    pub(super) files: usize,
}

impl<'a> Staging<'a> {
    /// From HEAD, with what the person's index knows of files that have not changed.
    pub(super) async fn of(
        by: &'a ByTool,
        theirs: &Git<'a>,
        scratch: &Scratch,
        head: Option<&str>,
        order: &CommitOrder,
    ) -> Result<Self, NoCommit> {
        let (layout, index) = (&by.repository.layout, scratch.index());
        let git = theirs.clone().with("GIT_INDEX_FILE", &index).setting("core.splitIndex", "false");
        let (from, to) = (layout.own.join("index"), index.clone());
        off_the_runtime(move || copy(&from, &to)).await.flatten().map_err(GitError::from)?;
        let base = match head {
            Some(head) => {
                git.bytes(&["read-tree", "-m", head]).await?;
                head.to_owned()
            }
            None => {
                git.bytes(&["read-tree", "--empty"]).await?;
                git.text(&["hash-object", "-t", "tree", "/dev/null"]).await?
            }
        };
        let from_the_top =
            |path: &String| format!("{}{path}", layout.prefix).trim_end_matches('/').to_owned();
        let named = order.paths.as_ref().map(|paths| paths.iter().map(from_the_top).collect());
        let (left_out, more) = (Vec::new(), Vec::new());
        Ok(Self { by, theirs: theirs.clone(), git, index, base, named, left_out, more })
    }

    /// Stages what was asked for. What was left out of it, where all was.
    pub(super) async fn stage(&mut self) -> Result<Vec<String>, NoCommit> {
        let named = self.named.iter().flatten().map(|path| path.clone().into_bytes());
        self.leave_out(named.filter(|path| is_obeyed(path)).collect(), OBEYED)?;
        let nested = self.nested().await?;
        self.leave_out(nested, "is a git repository of its own")?;
        self.add(&self.wanted(), true).await?;
        let mut obeyed: Vec<_> = self.changes().await?.into_iter().filter(Change::is_for_a_person).collect();
        if self.named.is_none() && !obeyed.is_empty() {
            let specs: Vec<_> = obeyed.iter().map(|change| literal(&change.path)).collect();
            self.by_file(&self.git, &["reset", "--quiet"], &specs).await?;
        }
        let obeyed = obeyed.drain(..).map(|change| change.path).collect();
        self.leave_out(obeyed, OBEYED)?;
        Ok(self.names(self.left_out.iter()))
    }

    /// Refuses what was asked for by name.
    fn leave_out(&mut self, paths: Vec<TreePath>, why: &str) -> Result<(), NoCommit> {
        match (listed(&self.names(paths.iter())), &self.named) {
            (Some(names), Some(_)) => {
                refused(format!("{names} {why}: leave it out of `paths`, a person can commit it"))
            }
            _ => {
                self.left_out.extend(paths);
                Ok(())
            }
        }
    }

    /// Whether HEAD has all of it.
    pub(super) async fn is_empty(&self) -> Result<bool, NoCommit> {
        Ok(self.changes().await?.is_empty())
    }

    /// What is in the index: mode, object and stage of each path.
    async fn entries(&self, git: &Git<'_>) -> Result<BTreeMap<TreePath, Vec<u8>>, NoCommit> {
        let listed = git.bytes(&["ls-files", "--stage", "-z"]).await?;
        let entries = parts(&listed).filter_map(|entry| {
            let at = entry.iter().position(|&b| b == b'\t')?;
            Some((entry[at + 1..].to_owned(), entry[..at].to_owned()))
        });
        Ok(entries.collect())
    }

    /// The index that hooks are given.
    pub(super) fn index(&self) -> &Path {
        &self.index
    }

    /// Takes over what a hook staged, by its index: only what is so in the work tree, where git reads it
    /// again. What hooks store of it themselves, anybody could have written.
    pub(super) async fn take_over(&mut self, index: &Path) -> Result<(), NoCommit> {
        let before = self.entries(&self.git).await?;
        let after = self.entries(&self.theirs.clone().with("GIT_INDEX_FILE", index)).await?;
        let changed: Vec<_> = different(&before, &after);
        if changed.is_empty() {
            return Ok(());
        }
        self.add(&changed.iter().map(|path| literal(path)).collect::<Vec<_>>(), false).await?;
        let now = self.entries(&self.git).await?;
        if let Some(names) = listed(&self.names(different(&now, &after).iter())) {
            return refused(format!(
                "the hook staged {names} otherwise than in the work tree, and only what is there can be committed"
            ));
        }
        self.more.extend(changed);
        Ok(())
    }

    /// All of it, as a tree, where nothing is in it that only a person may commit.
    pub(super) async fn tree(&self) -> Result<Staged, NoCommit> {
        let changes = self.changes().await?;
        let obeyed = changes.iter().filter(|change| change.is_for_a_person());
        if let Some(names) = listed(&self.names(obeyed.map(|change| &change.path))) {
            return refused(format!(
                "a hook staged {names}, which git or other tools obey: a person can commit it"
            ));
        }
        self.nothing_filtered(&changes).await?;
        Ok(Staged { tree: self.git.text(&["write-tree"]).await?, files: changes.len() })
    }

    /// The person's index holds what was committed, and besides what it held.
    pub(super) async fn follow(&self) -> Result<(), NoCommit> {
        let more = self.more.iter().map(|path| literal(path));
        let left_out = self.left_out.iter().map(|path| excluded(path));
        let specs: Vec<_> = self.wanted().into_iter().chain(more).chain(left_out).collect();
        self.by_file(&self.theirs, &["reset", "--quiet"], &specs).await?;
        // So that nobody has to read the files again; it fails where one has changed since.
        let _ = self.theirs.is(&["update-index", "-q", "--refresh"]).await?;
        Ok(())
    }

    fn wanted(&self) -> Vec<Vec<u8>> {
        match &self.named {
            Some(named) => named.iter().map(|path| literal(path.as_bytes())).collect(),
            None => vec![literal(self.by.repository.layout.prefix.as_bytes())],
        }
    }

    /// Stages these as they are in the work tree. Repositories inside that HEAD has are staged apart, by
    /// what they have checked out: git would obey them otherwise.
    async fn add(&self, specs: &[Vec<u8>], wanted: bool) -> Result<(), NoCommit> {
        let inner = stage::inner(&self.git).await?;
        let ours = format!(":(exclude,top,glob)**/{TEMPORARY}*").into_bytes();
        let state = self.by.repository.state.strip_prefix(&self.by.repository.layout.top);
        let state = state.iter().map(|state| excluded(state.as_os_str().as_bytes()));
        let apart = inner.iter().map(|path| excluded(path.as_bytes()));
        let left_out = self.left_out.iter().map(|path| excluded(path));
        let others: Vec<_> = inner.iter().map(|path| literal(path.as_bytes())).collect();
        let specs: Vec<_> = specs.iter().filter(|spec| !others.contains(spec)).cloned().collect();
        if !specs.is_empty() {
            let all: Vec<_> =
                specs.into_iter().chain([ours]).chain(state).chain(apart).chain(left_out).collect();
            self.by_file(&self.git, &["add", "--all"], &all).await?;
        }
        let inner: Vec<_> =
            inner.iter().filter(|path| wanted && self.is_wanted(path)).map(String::as_str).collect();
        if !inner.is_empty() {
            self.git.bytes(&[&["update-index", "--add", "--remove", "--"], &*inner].concat()).await?;
        }
        Ok(())
    }

    fn is_wanted(&self, path: &str) -> bool {
        match &self.named {
            Some(named) => named.iter().any(|name| name.is_empty() || Path::new(path).starts_with(name)),
            None => path.starts_with(&self.by.repository.layout.prefix),
        }
    }

    /// Repositories inside that HEAD doesn't have, among what is wanted.
    async fn nested(&self) -> Result<Vec<TreePath>, NoCommit> {
        let listed = self.git.bytes(&["ls-files", "--others", "--exclude-standard", "-z"]).await?;
        let folders = parts(&listed).filter_map(|path| path.strip_suffix(b"/"));
        let wanted = folders.filter(|path| self.is_wanted(&String::from_utf8_lossy(path)));
        Ok(wanted.map(<[u8]>::to_vec).collect())
    }

    async fn changes(&self) -> Result<Vec<Change>, NoCommit> {
        let words = ["diff-index", "--cached", "--raw", "--no-renames", "-z", &self.base];
        let answer = self.git.bytes(&words).await?;
        let (mut answer, mut changes) = (parts(&answer), Vec::new());
        // `:OLDMODE NEWMODE OLD NEW STATUS`, then the path.
        while let (Some(change), Some(path)) = (answer.next(), answer.next()) {
            let mut modes = change.strip_prefix(b":").unwrap_or(change).split(|&b| b == b' ');
            let (old, new) = (modes.next(), modes.next());
            changes.push(Change { path: path.to_owned(), is_new_link: new == Some(GITLINK) && old != new });
        }
        Ok(changes)
    }

    /// Refuses files that a person's git would filter: our own runs no filter, and would commit what no
    /// clone could use.
    async fn nothing_filtered(&self, changes: &[Change]) -> Result<(), NoCommit> {
        let filters = &self.by.repository.layout.filters;
        if filters.is_empty() {
            return Ok(());
        }
        let texts: Vec<_> =
            changes.iter().filter_map(|change| std::str::from_utf8(&change.path).ok()).collect();
        for some in texts.chunks(ASKED) {
            let answer = self.git.bytes(&[&["check-attr", "-z", "filter", "--"], some].concat()).await?;
            // The path, the attribute, and its value; a path is never empty.
            let answer: Vec<_> = answer.split(|&b| b == 0).collect();
            let filtered =
                |row: &&[&[u8]]| row.len() == 3 && filters.iter().any(|name| name.as_bytes() == row[2]);
            let filtered = answer.chunks(3).filter(filtered).map(|row| row[0].to_owned()).collect::<Vec<_>>();
            if let Some(names) = listed(&self.names(filtered.iter())) {
                return refused(format!(
                    "{names} goes through a filter of git's, which only a person's git runs"
                ));
            }
        }
        Ok(())
    }

    /// Git with these as the paths that it works on, however many there are.
    async fn by_file(&self, git: &Git<'_>, words: &[&str], specs: &[Vec<u8>]) -> Result<(), GitError> {
        let file = self.index.with_file_name("paths");
        let (bytes, to) = (specs.join(&0), file.clone());
        off_the_runtime(move || std::fs::write(to, bytes)).await.flatten()?;
        let from = format!("--pathspec-from-file={}", file.display());
        let done = git.bytes(&[words, &[&from, "--pathspec-file-nul"]].concat()).await;
        done.map(drop).map_err(|error| match error {
            GitError::Failed { command, complaint } => {
                GitError::Failed { command, complaint: complaint.replace(":(top,literal)", "") }
            }
            other => other,
        })
    }

    /// As the agent would write them.
    fn names<'p>(&self, paths: impl Iterator<Item = &'p TreePath>) -> Vec<String> {
        let prefix = &self.by.repository.layout.prefix;
        paths.map(|path| relative(prefix, &String::from_utf8_lossy(path))).collect()
    }
}

/// A file that is other than in HEAD.
struct Change {
    path: TreePath,
    /// A repository inside that HEAD doesn't have.
    is_new_link: bool,
}

impl Change {
    fn is_for_a_person(&self) -> bool {
        self.is_new_link || is_obeyed(&self.path)
    }
}

fn is_obeyed(path: &[u8]) -> bool {
    authority(Path::new(OsStr::from_bytes(path))).is_some()
}

fn literal(path: &[u8]) -> Vec<u8> {
    // All there is can't be named literally.
    if path.is_empty() { b":/".to_vec() } else { [b":(top,literal)", path].concat() }
}

fn excluded(path: &[u8]) -> Vec<u8> {
    [b":(exclude,top,literal)", path].concat()
}

/// The paths that are not the same in both.
fn different(a: &BTreeMap<TreePath, Vec<u8>>, b: &BTreeMap<TreePath, Vec<u8>>) -> Vec<TreePath> {
    let changed = a.iter().filter(|(path, entry)| b.get(*path) != Some(entry));
    let new = b.iter().filter(|(path, _)| !a.contains_key(*path));
    changed.chain(new).map(|(path, _)| path.clone()).collect()
}
