//! An agent's branch into what the project folder has checked out. Nothing is forced: the merge
//! is tried where it touches nothing, made as a commit, and the project folder then moves on to
//! that commit, which git refuses when it would cost anybody a change. So there is no instant
//! at which the project folder is in the middle of a merge.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use midturn_core::engine::ports::Merge;

use super::back::bring_branch;
use super::git::{Git, GitError, parts};
use super::message::author;
use super::relative;
use super::snapshot::{Scratch, snapshot};
use super::worktree::{FolderState, Worktree};
use crate::arguments::listed;
use crate::protect::authority;

/// How often it is tried again when somebody commits in the project folder meanwhile.
const LOOKS: usize = 3;

/// Who makes a merge's commit; its author is the person, where git knows one.
const MIDTURN: &str = "midturn";

/// What git is in the middle of when there is such a file.
pub(super) const UNDER_WAY: [(&str, &str); 5] = [
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
];

/// A branch to be merged, and whose it is.
pub(super) struct Merging<'a> {
    pub(super) worktree: &'a Worktree,
    pub(super) agent: &'a str,
    /// The message of the one commit that all of it becomes. `None`: a merge.
    pub(super) squash: Option<&'a str>,
}

/// Why it goes no further.
pub(super) enum Stop {
    /// It is refused, or there are conflicts.
    Known(Merge),
    Git(GitError),
}

impl From<GitError> for Stop {
    fn from(error: GitError) -> Self {
        Self::Git(error)
    }
}

fn refused<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Known(Merge::Refused(why.into())))
}

impl Merging<'_> {
    pub(super) async fn merge(&self) -> Result<Merge, GitError> {
        match self.try_merge().await {
            Ok(merge) | Err(Stop::Known(merge)) => Ok(merge),
            Err(Stop::Git(GitError::Refused(why))) => Ok(Merge::Refused(why)),
            Err(Stop::Git(error)) => Err(error),
        }
    }

    async fn try_merge(&self) -> Result<Merge, Stop> {
        let git = self.worktree.repository.git().by(MIDTURN, "midturn@midturn.invalid");
        self.nothing_in_the_way(&git).await?;
        let tip = self.tip(&git, "merge").await?;
        for _ in 0..LOOKS {
            if let Some(done) = self.attempt(&git, &tip).await? {
                return Ok(done);
            }
        }
        refused("somebody else is committing in the project folder: try again")
    }

    /// `None`: HEAD moved meanwhile.
    async fn attempt(&self, git: &Git<'_>, tip: &str) -> Result<Option<Merge>, Stop> {
        let Some(head) = git.commit_at("HEAD").await? else {
            return refused("the project folder has no commit yet to merge into");
        };
        if git.is(&["merge-base", "--is-ancestor", tip, &head]).await? {
            return Ok(Some(Merge::UpToDate));
        }
        let is_ahead = git.is(&["merge-base", "--is-ancestor", &head, tip]).await?;
        let new = if let Some(message) = self.squash {
            let tree = self.result(git, &head, tip).await?;
            if git.text(&["rev-parse", &format!("{head}^{{tree}}")]).await? == tree {
                return Ok(Some(Merge::UpToDate));
            }
            self.commit(git, &[&head], tip, &tree, message).await?
        } else if is_ahead {
            self.no_authority(git, &head, tip).await?;
            tip.to_owned()
        } else {
            let tree = self.result(git, &head, tip).await?;
            let message = format!(
                "Merge branch '{}'\n\nThe work of {}, merged by midturn.",
                self.worktree.branch, self.agent
            );
            self.commit(git, &[&head, tip], tip, &tree, &message).await?
        };
        Ok(self.forward(git, &head, &new).await?.then_some(Merge::Merged(new)))
    }

    /// Refuses where something is in the way whatever the branch holds.
    async fn nothing_in_the_way(&self, git: &Git<'_>) -> Result<(), Stop> {
        let folder = &self.worktree.repository.layout.own;
        let is_there = |(file, _): &&(&str, &str)| folder.join(file).symlink_metadata().is_ok();
        if let Some((_, what)) = UNDER_WAY.iter().find(is_there) {
            return refused(format!(
                "{what} is under way in the project folder: finish it or give it up first"
            ));
        }
        if git.maybe(&["symbolic-ref", "--quiet", "HEAD"]).await?.is_none() {
            return refused("the project folder is on no branch (detached HEAD): switch to one first");
        }
        match parts(&git.bytes(&["ls-files", "--unmerged", "-z"]).await?).next() {
            None => Ok(()),
            Some(_) => refused(
                "there are conflicts in the project folder that nobody has resolved: resolve them first",
            ),
        }
    }

    /// Brings what the agent committed since its last run's end: the branch has all of its work then.
    pub(super) async fn tip(&self, git: &Git<'_>, what: &str) -> Result<String, Stop> {
        let tip = match self.worktree.folder_state() {
            FolderState::Usable => bring_branch(self.worktree, what, None).await?.tip,
            _ => git.commit_at(&self.worktree.reference()).await?,
        };
        let Some(tip) = tip else {
            return refused(format!("the branch {} is gone", self.worktree.branch));
        };
        self.all_committed(&tip).await?;
        Ok(tip)
    }

    /// Refuses where something is in the worktree and not on the branch.
    async fn all_committed(&self, tip: &str) -> Result<(), Stop> {
        let top = self.worktree.top.display();
        match self.worktree.folder_state() {
            FolderState::Gone => return Ok(()),
            FolderState::Linked | FolderState::Broken => {
                return refused(format!(
                    "{top} is no longer {}'s worktree, so what is not committed there can't be seen: without the \
                     folder the branch can be merged",
                    self.agent
                ));
            }
            FolderState::Usable => {}
        }
        let seen = snapshot(self.worktree).await?;
        let changed = changed(&seen.git, tip, &seen.object).await?;
        match listed(&self.names(parts(&changed))) {
            None => Ok(()),
            Some(files) => refused(format!(
                "{} has work that is not committed ({files}): that is done when its run ends, so merge then; \
                 if no run of it is going on, commit or remove it in {top}",
                self.agent
            )),
        }
    }

    /// Refuses where files that give authority in the project folder would not be what they are now. An agent can
    /// commit them without ever having such a file, and git carries a change to where a person has moved the file.
    async fn no_authority(&self, git: &Git<'_>, head: &str, result: &str) -> Result<(), Stop> {
        let words = ["diff-tree", "-r", "--raw", "--no-renames", "-z", head, result];
        let changes = git.bytes(&words).await?;
        let branch = &self.worktree.branch;
        match listed(&self.names(obeyed(&changes))) {
            None => Ok(()),
            Some(files) => refused(format!(
                "{branch} changes what Midturn or other tools obey ({files}): look at it with \
                 `git diff {head:.12}...{branch}`, and if it is as you want it, merge it yourself with `git merge {branch}`"
            )),
        }
    }

    /// The tree of the merge. Refuses what may not change, or with the files that conflict. It is tried in a scratch
    /// folder, so then not even the repository's objects have changed.
    async fn result(&self, git: &Git<'_>, head: &str, tip: &str) -> Result<String, Stop> {
        let scratch = Scratch::of_project(&self.worktree.repository).await?;
        let words = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", head, tip];
        let (clean, answer) = scratch.git(git).yes_or_no(&words).await?;
        // The tree comes first; with conflicts it holds what would lie there to be resolved.
        let mut answer = parts(&answer);
        let tree = String::from_utf8_lossy(answer.next().unwrap_or_default()).into_owned();
        self.no_authority(&scratch.git(git), head, &tree).await?;
        if clean {
            return Ok(tree);
        }
        let files = self.names(answer);
        if files.is_empty() {
            let complaint = "it reports conflicts and names none".to_owned();
            return Err(GitError::Failed { command: "merge-tree".to_owned(), complaint }.into());
        }
        Err(Stop::Known(Merge::Conflicts(files)))
    }

    /// Makes the commit, of the tree that was looked at and of no other.
    async fn commit(
        &self,
        git: &Git<'_>,
        parents: &[&str],
        tip: &str,
        tree: &str,
        message: &str,
    ) -> Result<String, GitError> {
        // Its objects were in the scratch folder until now.
        git.bytes(&["merge-tree", "--write-tree", "--no-messages", "-z", parents[0], tip]).await?;
        let git = match author(git).await {
            Some((name, email)) => git.clone().with("GIT_AUTHOR_NAME", name).with("GIT_AUTHOR_EMAIL", email),
            None => git.clone(),
        };
        let parents = parents.iter().flat_map(|parent| ["-p", parent]);
        let words: Vec<_> = ["commit-tree", tree, "-m", message].into_iter().chain(parents).collect();
        git.text(&words).await
    }

    /// Moves the project folder on to a commit that is ahead of its HEAD. False: HEAD is not where it
    /// was.
    async fn forward(&self, git: &Git<'_>, head: &str, new: &str) -> Result<bool, Stop> {
        // Options that the branch is configured with go last but for these.
        let words = [
            "merge",
            "--ff-only",
            "--no-squash",
            "--no-stat",
            "--no-autostash",
            "--no-overwrite-ignore",
            "--no-verify-signatures",
            "--quiet",
            new,
        ];
        let action = format!("midturn merge {}", self.worktree.branch);
        match git.clone().with("GIT_REFLOG_ACTION", action).bytes(&words).await {
            Ok(_) => Ok(true),
            Err(GitError::Failed { .. }) if git.commit_at("HEAD").await?.as_deref() != Some(head) => {
                Ok(false)
            }
            Err(GitError::Failed { command, complaint }) => match refusal(&complaint) {
                Some(why) => refused(why),
                None => Err(GitError::Failed { command, complaint }.into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// As the person in the project folder would write them.
    fn names<'a>(&self, paths: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
        paths
            .map(|path| relative(&self.worktree.repository.layout.prefix, &String::from_utf8_lossy(path)))
            .collect()
    }
}

/// The paths of the files that are different in two trees, or in those of two commits.
pub(super) async fn changed(git: &Git<'_>, from: &str, to: &str) -> Result<Vec<u8>, GitError> {
    git.bytes(&["diff-tree", "-r", "--name-only", "--no-renames", "-z", from, to]).await
}

/// The paths among the changes of `diff-tree --raw -z` that somebody obeys, and those where a repository is new:
/// if there is one in the project folder already, git would go into it from then on and do what its settings say.
fn obeyed(changes: &[u8]) -> impl Iterator<Item = &[u8]> {
    const REPOSITORY: &[u8] = b"160000";
    let mut fields = parts(changes);
    // `:OLDMODE NEWMODE OLD NEW STATUS`, then the path.
    let changes = std::iter::from_fn(move || Some((fields.next()?, fields.next()?)));
    let obeyed = changes.filter(|(change, path)| {
        let mut modes = change.strip_prefix(b":").unwrap_or(change).split(|&byte| byte == b' ');
        let (old, new) = (modes.next(), modes.next());
        let is_new = new == Some(REPOSITORY) && old != Some(REPOSITORY);
        is_new || authority(Path::new(OsStr::from_bytes(path))).is_some()
    });
    obeyed.map(|(_, path)| path)
}

/// What git's complaint means where it refused before it changed anything.
fn refusal(complaint: &str) -> Option<String> {
    let names: Vec<_> = complaint.split("; ").filter_map(|line| line.strip_prefix('\t')).collect();
    let files = listed(&names).unwrap_or_else(|| complaint.to_owned());
    if complaint.contains("untracked") {
        Some(format!(
            "untracked files in the project folder are in the way ({files}): move or remove them first"
        ))
    } else if complaint.contains("would be overwritten") || complaint.contains("not uptodate") {
        Some(format!(
            "uncommitted changes in the project folder are in the way ({files}): commit or stash them first"
        ))
    } else if complaint.contains(".lock': File exists") {
        Some(format!(
            "another git command is at work in the project folder, or was killed there: {complaint}"
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_refuses_is_said_in_a_sentence() {
        let rows = [
            (
                "error: Your local changes to the following files would be overwritten by merge:; \ta b.txt; \tb; \
                 Please commit your changes or stash them before you merge.; Aborting",
                Some(
                    "uncommitted changes in the project folder are in the way (a b.txt, b): commit or stash them first",
                ),
            ),
            (
                "error: The following untracked working tree files would be overwritten by merge:; \tn.txt; Please \
                 move or remove them before you merge.; Aborting",
                Some(
                    "untracked files in the project folder are in the way (n.txt): move or remove them first",
                ),
            ),
            ("fatal: write error: No space left on device", None),
        ];
        for (complaint, sentence) in rows {
            assert_eq!(refusal(complaint).as_deref(), sentence);
        }
    }
}
