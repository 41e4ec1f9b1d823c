//! The commits of agents that work in the project folder, made for them: git's own folder is read-only
//! to their commands (docs/decisions/0036). It goes as `git commit -- PATHS` goes, by our own git, which
//! runs nothing of the repository's: an index of our own holds HEAD and what is to be committed, the
//! hooks see a copy of it in the agent's sandbox, then HEAD moves on from where it was, and last the
//! person's index follows for what was committed.

mod hooks;
mod staging;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::ToolCall;

use self::hooks::{Hooks, MESSAGE, STAGED};
use self::staging::{Staged, Staging};
use super::confine::of_git;
use super::git::{Git, GitError, parts};
use super::layout::RepositoryLayout;
use super::merge::UNDER_WAY;
use super::message::{signed, with_trailer};
use super::snapshot::Scratch;
use super::worktree::Repository;
use crate::arguments::{listed, with_note};
use crate::confined::Confined;
use crate::context::{CommitOrder, Commits, ToolContext, off_the_runtime};

/// Makes commits for one agent.
#[derive(Debug)]
pub(super) struct ByTool {
    pub(super) repository: Repository,
    pub(super) agent: String,
    /// Whether a commit says which agent made it.
    pub(super) has_trailer: bool,
    /// Whether a sandbox holds what hooks run.
    pub(super) is_kept: bool,
}

/// Why nothing was committed.
#[derive(Debug, thiserror::Error)]
enum NoCommit {
    #[error("nothing was committed: {0}")]
    Refused(String),
    #[error("nothing was committed: {0}")]
    Git(#[from] GitError),
}

fn refused<T>(why: impl Into<String>) -> Result<T, NoCommit> {
    Err(NoCommit::Refused(why.into()))
}

/// Where HEAD is.
struct Head {
    /// `None`: there is no commit yet.
    commit: Option<String>,
    /// `None`: it is on no branch.
    branch: Option<String>,
}

/// Git's own folders that commands in the project folder can't write. With Landlock alone what is in that
/// folder can't be kept from them.
pub(super) fn read_only_git(layout: &RepositoryLayout, project: &Path, mounts: bool) -> Vec<PathBuf> {
    let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    of_git(layout).into_iter().filter(|path| mounts || !path.starts_with(&project)).collect()
}

#[async_trait]
impl Commits for ByTool {
    async fn commit(
        &self,
        order: &CommitOrder,
        context: &Arc<ToolContext>,
        call: &ToolCall,
    ) -> Result<String, String> {
        let hooks = Hooks { by: self, context, call };
        self.make(order, &hooks).await.map_err(|error| error.to_string())
    }

    fn runs_programs_that_nothing_holds(&self) -> bool {
        !self.is_kept && [STAGED, MESSAGE].into_iter().any(|name| hooks::program(self, name).is_some())
    }
}

impl ByTool {
    async fn make(&self, order: &CommitOrder, hooks: &Hooks<'_>) -> Result<String, NoCommit> {
        let mut notes = put_aside(hooks.context).await?;
        let git = self.git().await;
        let head = self.ready(&git).await?;
        let scratch = Scratch::of_project(&self.repository).await?;
        let mut staging = Staging::of(self, &git, &scratch, head.commit.as_deref(), order).await?;
        let left_out = staging.stage().await?;
        if staging.is_empty().await? {
            let what = listed(&left_out)
                .map(|names| format!("; what was left out is a person's to commit: {names}"));
            return refused(format!("there is nothing to commit{}", what.unwrap_or_default()));
        }
        notes.extend(listed(&left_out).map(|names| {
            format!("left out, since git or other tools obey it: {names}. A person can commit it")
        }));
        let message = match self.has_trailer {
            true => with_trailer(&order.message, &self.agent),
            false => order.message.clone(),
        };
        let passed = hooks.run(&mut staging, &message).await?;
        let Staged { tree, files } = staging.tree().await?;
        if hooks.call.cancel.is_cancelled() {
            return refused("it was stopped before");
        }
        let Some(new) = self.move_on(&git, &head, &tree, &passed.message).await? else {
            return refused("somebody else committed meanwhile: look at what is there now, and commit again");
        };
        notes.extend(staging.follow().await.err().map(|error| {
            format!("the index of the project folder still shows it as it was ({error}): `git reset -q` there puts it right")
        }));
        let branch = head
            .branch
            .map_or_else(|| "no branch (detached HEAD)".to_owned(), |branch| format!("`{branch}`"));
        let count = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
        let said = format!("Committed {new:.12} on {branch}, {count}.\n{}", passed.said);
        let notes = passed.notes.iter().chain(&notes);
        Ok(notes.fold(said.trim_end().to_owned(), |said, note| with_note(said, note)))
    }

    /// Git in the project, with whose commits are whose.
    async fn git(&self) -> Git<'_> {
        let git = self.repository.git().setting("advice.addIgnoredFile", "false");
        signed(git.clone(), &git, &self.agent).await
    }

    /// Refuses where something is in the way whatever is to be committed.
    async fn ready(&self, git: &Git<'_>) -> Result<Head, NoCommit> {
        let own = &self.repository.layout.own;
        let is_there = |name: &str| own.join(name).symlink_metadata().is_ok();
        if let Some((_, what)) = UNDER_WAY.iter().find(|(file, _)| is_there(file)) {
            return refused(format!(
                "{what} is under way in the project folder: a person has to finish it or give it up first"
            ));
        }
        if is_there("index.lock") {
            let lock = own.join("index.lock");
            return refused(format!(
                "another git command is at work in the project folder, or was killed there: try again, and if that \
                 doesn't help a person has to remove {}",
                lock.display()
            ));
        }
        if parts(&git.bytes(&["ls-files", "--unmerged", "-z"]).await?).next().is_some() {
            return refused("there are conflicts in the project folder that a person has to resolve first");
        }
        let branch = git.maybe(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await?;
        Ok(Head { commit: git.commit_at("HEAD").await?, branch })
    }

    /// Makes the commit, and has HEAD's branch go on to it. `None`: HEAD is not where it was.
    async fn move_on(
        &self,
        git: &Git<'_>,
        head: &Head,
        tree: &str,
        message: &str,
    ) -> Result<Option<String>, NoCommit> {
        let parent = head.commit.iter().flat_map(|commit| ["-p", commit]);
        let words: Vec<_> = ["commit-tree", tree, "-m", message].into_iter().chain(parent).collect();
        let new = git.text(&words).await?;
        let subject = message.lines().next().unwrap_or_default();
        let (kind, old) = match &head.commit {
            Some(commit) => ("commit", commit.as_str()),
            // There must be none.
            None => ("commit (initial)", ""),
        };
        let reason = format!("{kind}: {subject}");
        match git.bytes(&["update-ref", "-m", &reason, "HEAD", &new, old]).await {
            Ok(_) => Ok(Some(new)),
            Err(error) if git.commit_at("HEAD").await? == head.commit => Err(error.into()),
            Err(_) => Ok(None),
        }
    }
}

/// What the run has left for git so far is put aside, so that no commit holds it.
async fn put_aside(context: &Arc<ToolContext>) -> Result<Vec<String>, NoCommit> {
    let context = context.clone();
    let look = move || context.confined.as_ref().map(Confined::before_git_works).transpose();
    let notes = off_the_runtime(look).await.flatten();
    let notes =
        notes.map_err(|error| NoCommit::Refused(format!("the folder can't be looked through: {error}")))?;
    Ok(notes.unwrap_or_default())
}
