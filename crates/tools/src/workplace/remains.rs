//! What is left of a session's work in a project when nobody works on it any more: branches, and folders. It is looked
//! at without a change, and removed piece by piece as somebody else decides (issue 14).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use midturn_core::engine::ports::ToolError;
use midturn_core::rules::id::{AgentName, SessionId};

use super::GitWorkplace;
use super::folders;
use super::git::{Git, GitError, parts};
use super::layout::RepositoryLayout;
use super::merge::changed;
use super::record::{Record, Records};
use super::snapshot::snapshot;
use super::worktree::{FolderState, NoWorktree, Worktree, part_of_branch};
use crate::arguments::listed;
use crate::context::off_the_runtime;
use crate::protect::aside::remove;

/// What is left of one agent's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remains {
    /// The agent's name, with a number behind it where it began anew.
    pub name: String,
    /// Its branch, if that is there.
    pub branch: Option<String>,
    /// How many of the branch's commits are on no branch of a person's.
    pub unmerged: u64,
    /// Its folder, if that is there, and what it holds, in bytes.
    pub folder: Option<(PathBuf, u64)>,
    /// What is in the folder only, in words.
    pub unsaved: Option<String>,
}

/// The agents of a session on whose branches there is something that no branch of a person's has. Nothing is run
/// but git, and nothing changed. `base`: as in [`Wishes`](super::Wishes).
///
/// # Errors
/// The records can't be read, or git fails.
pub async fn news(
    project: &Path,
    (state, base): (&Path, Option<&Path>),
    session: &SessionId,
) -> Result<Vec<AgentName>, ToolError> {
    let failed = |error: &dyn std::fmt::Display| ToolError(format!("what is new on branches: {error}"));
    let folder = folders::worktrees(state, base, &part_of_branch(session));
    let records = Records { folder, session: session.clone() }.look().map_err(|error| failed(&error))?;
    if records.is_empty() {
        return Ok(Vec::new());
    }
    let layout = RepositoryLayout::of(project, None).await.map_err(|error| failed(&error))?;
    let git = Git::asking(&layout);
    let branches = branches(&git, session).await.map_err(|error| failed(&error))?;
    // Of agents that did nothing all branches are at the same commit.
    let (mut new, mut known) = (BTreeSet::new(), BTreeMap::new());
    for record in records.into_values() {
        let branch = branches.get(&record.name).filter(|(branch, _)| *branch == record.branch);
        let Some((_, tip)) = branch.filter(|(_, tip)| record.squashed.as_ref() != Some(tip)) else {
            continue;
        };
        if !known.contains_key(tip) {
            known.insert(tip, unmerged(&git, tip, None).await.map_err(|error| failed(&error))?);
        }
        if known[tip] > 0 {
            new.insert(record.agent);
        }
    }
    Ok(new.into_iter().collect())
}

/// How many commits up to `tip` are on no branch of a person's, here or as last seen elsewhere.
async fn unmerged(git: &Git<'_>, tip: &str, record: Option<&Record>) -> Result<u64, GitError> {
    if record.is_some_and(|record| record.squashed.as_deref() == Some(tip)) {
        return Ok(0);
    }
    // HEAD doesn't count, as it may be on this very branch. A copy of the branch elsewhere says that it was
    // pushed, not that it was merged.
    let of_persons = ["--exclude=midturn/*", "--branches", "--exclude=*/midturn/*", "--remotes"];
    let words = [&["rev-list", "--count", "--ignore-missing", tip, "--not"], &of_persons[..]].concat();
    let count = git.text(&words).await?;
    count.parse().map_err(|_| GitError::Refused(format!("`{count}` is not how many commits there are")))
}

impl GitWorkplace {
    /// What is left of each agent's work.
    ///
    /// # Errors
    /// It can't be looked at.
    pub async fn remains(&self) -> Result<Vec<Remains>, ToolError> {
        let failed = |error: &dyn std::fmt::Display| ToolError(format!("what is left of the work: {error}"));
        let records = self.records_of_session();
        let known = records.look().map_err(|error| failed(&error))?;
        let known: BTreeMap<_, _> = known.into_values().map(|record| (record.name.clone(), record)).collect();
        let folders = folders_in(&records.folder).map_err(|error| failed(&error))?;
        let layout = match self.layout().await {
            Ok(layout) => Some(layout),
            Err(NoWorktree::NotPossible(_)) => None,
            Err(error) => return Err(failed(&error)),
        };
        let git = layout.as_deref().map(Git::asking);
        let branches = match &git {
            Some(git) => branches(git, &self.session).await.map_err(|error| failed(&error))?,
            None => BTreeMap::new(),
        };
        let names: BTreeSet<String> = folders.into_iter().chain(branches.keys().cloned()).collect();
        let mut all = Vec::new();
        for name in names {
            let (record, branch) = (known.get(&name), branches.get(&name));
            let unmerged = match (&git, branch) {
                (Some(git), Some((_, tip))) => {
                    unmerged(git, tip, record).await.map_err(|error| failed(&error))?
                }
                _ => 0,
            };
            let top = records.folder.join(&name);
            let is_there = top.symlink_metadata().is_ok();
            let folder = if is_there {
                let bytes = size_of(&top).await.map_err(|error| failed(&error))?;
                Some((top, bytes))
            } else {
                None
            };
            let unsaved = match (&git, record) {
                _ if !is_there => None,
                (Some(_), Some(record)) => {
                    let worktree = self.worktree_of(record).await.map_err(|error| failed(&error))?;
                    let tip = branch.map(|(_, tip)| &**tip);
                    unsaved(&worktree, tip).await.map_err(|error| failed(&error))?
                }
                (None, _) => Some("its project is no git repository any more".to_owned()),
                (_, None) => Some("whose it is nobody knows any more".to_owned()),
            };
            let branch = branch.map(|(branch, _)| branch.clone());
            all.push(Remains { name, branch, unmerged, folder, unsaved });
        }
        Ok(all)
    }

    async fn worktree_of(&self, record: &Record) -> Result<Worktree, NoWorktree> {
        let repository = self.repository().await?;
        repository.worktree(record).map_err(|error| NoWorktree::Failed(error.to_string()))
    }

    /// Removes a branch and a folder; those that are `None` stay.
    ///
    /// # Errors
    /// Either can't be removed: the branch is checked out, say.
    pub async fn remove(&self, branch: Option<&str>, folder: Option<&Path>) -> Result<(), ToolError> {
        if let Some(branch) = branch {
            let failed = |error: &dyn std::fmt::Display| {
                ToolError(format!("the branch {branch} was not removed: {error}"))
            };
            let repository = self.repository().await.map_err(|error| failed(&error))?;
            if let Some(place) = repository.checked_out(branch).await.map_err(|error| failed(&error))? {
                return Err(failed(&format!("it is checked out in {place}")));
            }
            let words = ["update-ref", "-d", &format!("refs/heads/{branch}")];
            repository.git().bytes(&words).await.map_err(|error| failed(&error))?;
        }
        let Some(folder) = folder.map(Path::to_owned) else { return Ok(()) };
        let shown = folder.display().to_string();
        let records = self.records_of_session();
        let gone = off_the_runtime(move || remove_folder(&folder, &records)).await.flatten();
        gone.map_err(|error| ToolError(format!("the folder {shown} was not removed: {error}")))
    }

    /// Removes what the session held of the project's for its agents: no folder of theirs may be left.
    ///
    /// # Errors
    /// It can't be removed.
    pub async fn remove_pin(&self) -> Result<(), ToolError> {
        let repository = match self.repository().await {
            Ok(repository) => repository,
            Err(NoWorktree::NotPossible(_)) => return Ok(()),
            Err(error) => return Err(ToolError(error.to_string())),
        };
        let pin = format!("refs/midturn/{}", part_of_branch(&self.session));
        let removed = repository.git().bytes(&["update-ref", "-d", &pin]).await;
        removed.map_err(|error| ToolError(format!("{pin} was not removed: {error}")))?;
        let worktrees = self.records_of_session().folder;
        // One that isn't empty has something else in it.
        match std::fs::remove_dir(&worktrees) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => {
                if_there(removed).map_err(|error| ToolError(format!("{}: {error}", worktrees.display())))
            }
        }
    }

    /// Removes the folders of the session that are ours; worktrees are not among them.
    ///
    /// # Errors
    /// One can't be removed.
    pub async fn remove_folders(&self) -> Result<(), ToolError> {
        let session = part_of_branch(&self.session);
        let ours = ["tmp", "aside", "undo"].map(|name| self.state.join(name).join(&session));
        let gone = off_the_runtime(move || ours.iter().try_for_each(|folder| if_there(remove(folder))));
        gone.await.flatten().map_err(|error| ToolError(format!("folders of the session: {error}")))
    }

    fn records_of_session(&self) -> Records {
        let folder =
            folders::worktrees(&self.state, self.wishes.base.as_deref(), &part_of_branch(&self.session));
        Records { folder, session: self.session.clone() }
    }
}

/// The commit of each of the session's branches, by the last part of its name.
async fn branches(
    git: &Git<'_>,
    session: &SessionId,
) -> Result<BTreeMap<String, (String, String)>, GitError> {
    let all = format!("refs/heads/midturn/{}/", part_of_branch(session));
    let words = ["for-each-ref", "--format=%(refname)%00%(objectname)%00", &all];
    let answer = git.bytes(&words).await?;
    let mut fields = parts(&answer).map(|part| String::from_utf8_lossy(part.trim_ascii()).into_owned());
    let mut found = BTreeMap::new();
    while let (Some(name), Some(tip)) = (fields.next(), fields.next()) {
        let branch = name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned();
        let last = branch.rsplit('/').next().unwrap_or_default().to_owned();
        found.insert(last, (branch, tip));
    }
    Ok(found)
}

/// What is in a worktree and not on its branch, in words.
async fn unsaved(worktree: &Worktree, tip: Option<&str>) -> Result<Option<String>, GitError> {
    match worktree.folder_state() {
        FolderState::Gone => return Ok(None),
        FolderState::Usable => {}
        FolderState::Linked | FolderState::Broken => {
            return Ok(Some("it can't be seen what is in it".to_owned()));
        }
    }
    let inside = worktree.git().await?;
    let there = inside.commit_at(&worktree.reference()).await?;
    let Some(tip) = tip.filter(|tip| there.as_deref() == Some(tip)) else {
        return Ok(Some("it has commits that were not brought back".to_owned()));
    };
    let seen = snapshot(worktree).await?;
    let paths = changed(&seen.git, tip, &seen.object).await?;
    let paths: Vec<_> = parts(&paths).map(String::from_utf8_lossy).collect();
    Ok(listed(&paths).map(|paths| format!("not committed: {paths}")))
}

/// The names of the folders in one.
fn folders_in(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Scratch folders begin with a dot.
        if entry.file_type()?.is_dir() && !name.starts_with('.') {
            names.push(name);
        }
    }
    Ok(names)
}

/// How much a folder holds, in bytes.
async fn size_of(folder: &Path) -> Result<u64, GitError> {
    let folder = folder.to_owned();
    let sum = move || {
        let (mut bytes, mut left) = (0, vec![folder]);
        while let Some(folder) = left.pop() {
            for entry in std::fs::read_dir(folder)? {
                let entry = entry?;
                match entry.metadata()? {
                    inner if inner.is_dir() => left.push(entry.path()),
                    file => bytes += file.len(),
                }
            }
        }
        Ok(bytes)
    };
    Ok(off_the_runtime(sum).await.flatten()?)
}

fn remove_folder(folder: &Path, records: &Records) -> io::Result<()> {
    let name = folder.file_name().unwrap_or_default();
    let record = records.look()?.into_values().find(|record| *record.name == *name);
    if_there(remove(folder))?;
    // After the folder: without its record nobody would know whose it is.
    match record {
        Some(record) => if_there(std::fs::remove_file(records.folder.join(format!("{}.json", record.agent)))),
        None => Ok(()),
    }
}

fn if_there(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
