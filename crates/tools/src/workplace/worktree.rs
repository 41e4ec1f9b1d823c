//! A worktree and a branch of its own for an agent: from HEAD, or found again.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use midturn_core::rules::id::{AgentName, SessionId};
use rustix::fs::{Mode, OFlags};

use super::git::{Git, GitError, parts};
use super::keeper::Keeper;
use super::layout::RepositoryLayout;
use super::record::{Record, Records};
use crate::arguments::listed;
use crate::mark::Mark;
use crate::protect::aside::restore;
use crate::protect::head_of;

/// How many names are tried when those wanted are taken.
const NAMES_TRIED: usize = 1_000;

/// How often it is looked again which names are free, when somebody else takes one meanwhile.
const LOOKS: usize = 5;

/// How many of git's own folders are looked through.
const WORKTREES_MAX: usize = 10_000;

/// What the file `commondir` in each of them has to say.
pub(super) const COMMON: &[u8] = b"../..\n";

/// How much is read of a file that holds a path, in bytes.
const PATH_MAX: u64 = 16 << 10;

/// What there is to say of a worktree of which only the branch was left.
const REBUILT: &str =
    "its worktree was gone and was made again from its branch: what was not committed is lost";

/// A repository, as seen from the project folder.
#[derive(Clone, Debug)]
pub(super) struct Repository {
    pub(super) layout: Arc<RepositoryLayout>,
    /// The state folder, which may be in the work tree.
    pub(super) state: PathBuf,
    /// What is remembered of the session's worktrees, in the folder where they are.
    pub(super) records: Records,
    /// Our own folder for scratch folders; no agent can write in it.
    pub(super) scratch: PathBuf,
    /// What our git commands carry.
    pub(super) mark: Option<Mark>,
    /// What our git commands run in.
    pub(super) keeper: Option<Keeper>,
}

/// An agent's worktree.
#[derive(Clone, Debug)]
pub(super) struct Worktree {
    pub(super) repository: Repository,
    /// The folder at its top.
    pub(super) top: PathBuf,
    /// Git's own folder for it, in the repository's `worktrees`.
    pub(super) own: PathBuf,
    pub(super) branch: String,
    /// The commit it started from.
    pub(super) start: String,
}

/// What is left of a worktree's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FolderState {
    /// It is the worktree.
    Usable,
    /// There is something, but no worktree of this repository.
    Broken,
    /// It isn't there.
    Gone,
}

/// What became of a worktree that was looked for.
pub(super) enum Again {
    /// It is there; with what there is to say of how it came back.
    Found(Box<Worktree>, Option<&'static str>),
    /// It can't be had again; why not, if there was one.
    Lost(Option<String>),
}

/// Why there is no worktree.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoWorktree {
    /// There is nothing to start one from; the folder itself will have to do.
    #[error("{0}")]
    NotPossible(String),
    /// It should have been possible.
    #[error("no worktree could be made: {0}")]
    Failed(String),
}

impl From<GitError> for NoWorktree {
    fn from(error: GitError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Worktree {
    pub(super) fn reference(&self) -> String {
        reference(&self.branch)
    }

    /// Git in the worktree. Its folders are those that we know, whatever the agent wrote into
    /// the worktree's `.git`.
    pub(super) fn git(&self) -> Git<'_> {
        Git::new(&self.repository, &self.top, &self.own)
    }

    /// What the file `.git` in the worktree has to say.
    pub(super) fn link(&self) -> Vec<u8> {
        [b"gitdir: ", self.own.as_os_str().as_encoded_bytes(), b"\n"].concat()
    }

    pub(super) fn folder_state(&self) -> FolderState {
        match self.top.symlink_metadata() {
            Err(_) => FolderState::Gone,
            Ok(about) if !about.is_dir() => FolderState::Broken,
            Ok(_) => {
                let is_ours = self.own.join("HEAD").symlink_metadata().is_ok()
                    && says(&self.top.join(".git"), &self.link())
                    && says(&self.own.join("gitdir"), &self.link_back());
                if is_ours { FolderState::Usable } else { FolderState::Broken }
            }
        }
    }

    /// What the file `gitdir` in git's own folder has to say.
    pub(super) fn link_back(&self) -> Vec<u8> {
        link_back(&self.top)
    }

    /// Removes what git commands that were killed leave behind; none may be alive. Whether there was
    /// anything. In folders that no agent can swap for others; and a link goes as itself.
    pub(super) fn remove_locks(&self) -> bool {
        let reference = self.repository.layout.common.join(format!("{}.lock", self.reference()));
        let locks = [self.own.join("index.lock"), self.own.join("HEAD.lock"), reference];
        // Each of them, not only the first that is there.
        locks.iter().filter(|lock| std::fs::remove_file(lock).is_ok()).count() > 0
    }

    /// Gives the worktree its link back, where git still has a folder for it: somebody removed it,
    /// or moved the repository. A folder in its place is another repository, and stays.
    fn repair(&self) {
        let link = self.top.join(".git");
        let is_folder = link.symlink_metadata().is_ok_and(|about| about.is_dir());
        if !is_folder && self.own.join("HEAD").symlink_metadata().is_ok() {
            give(&self.top, ".git", &self.link());
        }
    }
}

/// Gives a file in a folder its content. Whether that helped is seen by what comes next.
fn give(folder: &Path, name: &str, content: &[u8]) {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(folder) = rustix::fs::open(folder, flags, Mode::empty()) {
        let _ = restore(&folder, Path::new(name), content);
    }
}

fn link_back(top: &Path) -> Vec<u8> {
    [top.as_os_str().as_encoded_bytes(), b"/.git\n"].concat()
}

/// Whether a file holds this link.
fn says(path: &Path, link: &[u8]) -> bool {
    head_of(path, PATH_MAX).is_ok_and(|said| said.trim_ascii_end() == link.trim_ascii_end())
}

fn reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

impl Repository {
    /// Git in the project.
    pub(super) fn git(&self) -> Git<'_> {
        Git::new(self, &self.layout.top, &self.layout.own)
    }

    /// The commit at HEAD.
    pub(super) async fn head(&self) -> Result<String, NoWorktree> {
        let head = self.git().commit_at("HEAD").await?;
        head.ok_or_else(|| NoWorktree::NotPossible("its git repository has no commit yet".to_owned()))
    }

    /// The project's own work tree, from HEAD: no agent's, and only to be looked at.
    pub(super) async fn project(&self) -> Result<Worktree, NoWorktree> {
        let branch = self.git().maybe(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await?;
        Ok(Worktree {
            repository: self.clone(),
            top: self.layout.top.clone(),
            own: self.layout.own.clone(),
            branch: branch.unwrap_or_else(|| "HEAD".to_owned()),
            start: self.head().await?,
        })
    }

    /// What a worktree that starts from HEAD will not have, in words. `None`: nothing.
    pub(super) async fn dirty(&self, head: &str) -> Result<Option<String>, GitError> {
        let mut words =
            vec!["status", "--porcelain=v1", "-z", "--untracked-files=normal", "--no-renames", "--", "."];
        let ours =
            self.state.strip_prefix(&self.layout.top).map(|state| format!(":(exclude){}", state.display()));
        if let Ok(ours) = &ours {
            words.push(ours);
        }
        let answer = self.git().bytes(&words).await?;
        let paths = parts(&answer).filter_map(|part| part.get(3..)).map(String::from_utf8_lossy);
        Ok(listed(&paths.collect::<Vec<_>>()).map(|paths| {
            format!(
                "the worktree starts from commit {head:.12}: uncommitted changes in the project folder ({paths}) are \
                 not in it"
            )
        }))
    }

    /// Makes a worktree named after the agent, on the branch `midturn/SESSION/NAME`. If either is
    /// left over from before, a number is added to both: what is in them is somebody's work.
    pub(super) async fn add(&self, agent: &AgentName, start: &str) -> Result<Worktree, NoWorktree> {
        let mut error = None;
        for _ in 0..LOOKS {
            let (name, branch) = self.free_name(agent.as_str()).await?;
            let record = self.records.begin(agent, &name, &branch, start);
            // First, so that what is half made when we are killed is known as ours.
            self.records.save(&record).map_err(not_remembered)?;
            let worktree = self.worktree(&record);
            match self.try_add(&worktree.top, &["--no-track", "-b", &branch], start).await {
                Ok(()) => return self.made(worktree, record).map(|(worktree, _)| worktree),
                Err(failed) => error = Some(failed),
            }
        }
        Err(error.map_or_else(|| NoWorktree::Failed("no name is free".to_owned()), Into::into))
    }

    /// Git that was killed while it made a worktree can have left this file empty, whoever's it was: then it makes
    /// none any more, for nobody.
    pub(super) fn finish_half_made(&self) {
        let all = std::fs::read_dir(self.layout.common.join("worktrees"));
        for own in all.into_iter().flatten().take(WORKTREES_MAX).flatten().map(|entry| entry.path()) {
            let about = own.join("commondir").symlink_metadata();
            if about.is_ok_and(|about| about.is_file() && about.len() == 0) {
                give(&own, "commondir", COMMON);
            }
        }
    }

    /// The worktree that a record speaks of, whatever is left of it.
    pub(super) fn worktree(&self, record: &Record) -> Worktree {
        let top = self.records.folder.join(&record.name);
        Worktree {
            own: self.own_folder(&top, &record.name),
            repository: self.clone(),
            top,
            branch: record.branch.clone(),
            start: record.start.clone(),
        }
    }

    /// Git's own folder for the worktree at `top`: the one that says so. No agent can write
    /// what another one's says. If none does yet, the name that git tries first.
    fn own_folder(&self, top: &Path, name: &str) -> PathBuf {
        let all = self.layout.common.join("worktrees");
        let first = all.join(name);
        let is_of_top = |own: &PathBuf| says(&own.join("gitdir"), &link_back(top));
        if is_of_top(&first) {
            return first;
        }
        let others = std::fs::read_dir(&all).into_iter().flatten().take(WORKTREES_MAX).flatten();
        others.map(|entry| entry.path()).find(is_of_top).unwrap_or(first)
    }

    /// Looks for the worktree of a record, and makes it again where only its branch is left.
    pub(super) async fn again(&self, record: Record) -> Result<Again, NoWorktree> {
        let worktree = self.worktree(&record);
        worktree.remove_locks();
        let top = worktree.top.to_string_lossy().into_owned();
        if record.made {
            if worktree.folder_state() == FolderState::Broken {
                worktree.repair();
            }
            match worktree.folder_state() {
                FolderState::Usable => return Ok(Again::Found(self.made(worktree, record)?.0.into(), None)),
                FolderState::Broken => {
                    return Ok(left_as_it_is(format!("the folder {top} is no longer a worktree")));
                }
                FolderState::Gone => {}
            }
        }
        if self.git().commit_at(&worktree.reference()).await?.is_none() {
            return Ok(Again::Lost(record.made.then(|| "its worktree and its branch are gone".to_owned())));
        }
        // What git remembers of a folder that is gone; or a folder that was only half made, in
        // which nobody has worked. Where there is neither it fails.
        let _ = self.git().bytes(&["worktree", "remove", "--force", "--force", &top]).await;
        let Worktree { top, branch, .. } = &worktree;
        if let Err(error) = self.try_add(top, &[], branch).await {
            return Ok(left_as_it_is(format!("the branch {branch} can't be checked out: {error}")));
        }
        let (worktree, was_made) = self.made(worktree, record)?;
        Ok(Again::Found(worktree.into(), was_made.then_some(REBUILT)))
    }

    /// Remembers that it is made to the end; and whether that was known.
    fn made(&self, mut worktree: Worktree, mut record: Record) -> Result<(Worktree, bool), NoWorktree> {
        worktree.own = self.own_folder(&worktree.top, &record.name);
        let was = std::mem::replace(&mut record.made, true);
        if !was {
            self.records.save(&record).map_err(not_remembered)?;
        }
        Ok((worktree, was))
    }

    async fn try_add(&self, top: &Path, options: &[&str], from: &str) -> Result<(), GitError> {
        let top = top.to_string_lossy();
        let words = [&["worktree", "add", "--quiet"], options, &[&*top, from]].concat();
        // Newer versions can be set to write paths that we wouldn't recognise.
        self.git().setting("worktree.useRelativePaths", "false").bytes(&words).await.map(drop)
    }

    async fn free_name(&self, agent: &str) -> Result<(String, String), NoWorktree> {
        let git = self.git();
        let branches = format!("midturn/{}", part_of_branch(&self.records.session));
        let all = format!("{}/", reference(&branches));
        let taken = git.bytes(&["for-each-ref", "--format=%(refname)%00", &all]).await?;
        let taken: HashSet<_> = parts(&taken).map(|part| part.trim_ascii().to_vec()).collect();
        let registered = git.bytes(&["worktree", "list", "--porcelain", "-z"]).await?;
        let registered: HashSet<_> =
            parts(&registered).filter_map(|part| part.strip_prefix(b"worktree ")).collect();
        for n in 1..=NAMES_TRIED {
            // No agent's name has a dot, so no other agent wants this one.
            let name = if n == 1 { agent.to_owned() } else { format!("{agent}.{n}") };
            let branch = format!("{branches}/{name}");
            let path = self.records.folder.join(&name);
            let known = registered.contains(path.as_os_str().as_encoded_bytes());
            if !known && !taken.contains(reference(&branch).as_bytes()) && path.symlink_metadata().is_err() {
                return Ok((name, branch));
            }
        }
        Err(NoWorktree::Failed(format!("{NAMES_TRIED} worktrees named {agent} are left over: remove some")))
    }
}

fn left_as_it_is(why: String) -> Again {
    Again::Lost(Some(format!("{why}; it was left as it is")))
}

fn not_remembered(error: std::io::Error) -> NoWorktree {
    NoWorktree::Failed(format!("the record of it can't be written: {error}"))
}

/// A session's id as a part of a branch's name, where much is not allowed.
pub(super) fn part_of_branch(session: &SessionId) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let text: String = session.as_str().chars().map(|c| if allowed(c) { c } else { '-' }).take(100).collect();
    if text.is_empty() { "session".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_session_id_can_be_part_of_a_branch() {
        for (id, part) in
            [("s1", "s1"), ("a/b..c", "a-b--c"), ("", "session"), ("é~^:", "----"), ("x.lock", "x-lock")]
        {
            assert_eq!(part_of_branch(&SessionId::new(id)), part);
        }
    }
}
