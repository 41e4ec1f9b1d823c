//! At a run's end: what changed goes to the agent's branch. Whatever state the agent left its
//! worktree in, nothing is lost: what can't be committed stays where it is, and that is said.

use midturn_core::engine::ports::Changes;
use midturn_core::rules::id::RunId;

use super::back::bring_branch;
use super::git::{Git, GitError, parts};
use super::message::signed;
use super::snapshot::Scratch;
use super::status::Status;
use super::worktree::{FolderState, Worktree};
use super::{relative, stage};
use crate::arguments::listed;

/// How many links are looked at.
const LINKS_MAX: usize = 100;

/// Commits what changed and says which files are different from the worktree's start.
pub(super) async fn commit(worktree: &Worktree, agent: &str, run: RunId, message: &str) -> Changes {
    let mut changes = Changes { branch: Some(worktree.branch.clone()), ..Changes::default() };
    let top = worktree.top.display();
    let usable = worktree.folder_state() == FolderState::Usable;
    if !usable {
        changes.notes.push(format!(
            "not everything could be committed (its folder is no longer a worktree); the work is in {top}"
        ));
    }
    let mut tip = None;
    if usable {
        let saved = save(worktree, agent, message, &mut changes.notes).await;
        let at = saved.unwrap_or_else(|why_not| {
            let note = format!("not everything could be committed ({why_not}); the work is in {top}");
            changes.notes.push(note);
            None
        });
        match bring_branch(worktree, &format!("{agent}, run {run}"), at.as_deref()).await {
            Ok(back) => {
                tip = back.tip;
                changes.notes.extend(back.note);
            }
            Err(why) => {
                let branch = &worktree.branch;
                changes.notes.push(format!("{branch} stays where it was ({why}); the work is in {top}"));
            }
        }
    }
    match files(worktree, tip.as_deref(), &mut changes.notes).await {
        Ok(files) => changes.files = files,
        Err(error) => changes.notes.push(format!("the files changed can't be listed: {error}")),
    }
    changes
}

/// Where the agent's branch is in its repository, if nothing had to be saved.
async fn save(
    worktree: &Worktree,
    agent: &str,
    message: &str,
    notes: &mut Vec<String>,
) -> Result<Option<String>, GitError> {
    let git = worktree.git().await?;
    RunEnd { worktree, git, agent, message }.save(notes).await
}

/// One run's end.
struct RunEnd<'a> {
    worktree: &'a Worktree,
    git: Git<'a>,
    agent: &'a str,
    message: &'a str,
}

impl RunEnd<'_> {
    /// Saves what is uncommitted, and what was committed elsewhere than on the branch.
    async fn save(&self, notes: &mut Vec<String>) -> Result<Option<String>, GitError> {
        // Right after a checkout git trusts the times of no file: it looks into all of them here, once, in place of in each
        // command that follows.
        let Status { head, branch, changed } =
            Status::of(&self.git.clone().noting_times(), "all", &[]).await?;
        if branch.as_ref() != Some(&self.worktree.branch) {
            return self.save_from_elsewhere(branch, notes).await.map(|()| None);
        }
        if changed == 0 {
            return Ok(head);
        }
        if self.unfinished_merge() {
            notes.push("a merge was not finished: it was committed as it stood".to_owned());
        }
        match self.commit_all().await {
            Ok(()) => Ok(None),
            // A git command that was killed leaves its lock behind; none of ours is alive.
            Err(error) if self.worktree.remove_locks() => {
                self.commit_all().await.map_err(|_| error).map(|()| None)
            }
            Err(error) => self.commit_the_rest(error).await.map(|()| None),
        }
    }

    async fn commit_all(&self) -> Result<(), GitError> {
        stage::all(&self.git, &[]).await?;
        self.commit_index().await
    }

    /// One file that can't be read doesn't keep the others from being committed.
    async fn commit_the_rest(&self, error: GitError) -> Result<(), GitError> {
        // It fails again, for the same file; the error to report is the one that is there.
        let _ = stage::all(&self.git, &["--ignore-errors"]).await;
        self.commit_index().await?;
        Err(error)
    }

    async fn commit_index(&self) -> Result<(), GitError> {
        let words = ["commit", "--quiet", "--no-verify", "-m", self.message];
        let Err(error) = self.signed().await.bytes(&words).await else { return Ok(()) };
        // It refuses where there is nothing to commit; nearly always there is something.
        let words = ["diff", "--cached", "--quiet", "--no-ext-diff", "--no-textconv"];
        let is_nothing = !self.unfinished_merge() && self.git.is(&words).await.unwrap_or(false);
        if is_nothing { Ok(()) } else { Err(error) }
    }

    async fn signed(&self) -> Git<'_> {
        signed(self.git.clone(), &self.worktree.repository.git(), self.agent).await
    }

    fn unfinished_merge(&self) -> bool {
        self.worktree.own.join("MERGE_HEAD").symlink_metadata().is_ok()
    }

    /// The agent left its branch (another one, or none while it rebases). What there is then is
    /// committed to its branch from outside, without touching its index: a commit with the
    /// branch and the place where the agent is as parents.
    async fn save_from_elsewhere(
        &self,
        branch: Option<String>,
        notes: &mut Vec<String>,
    ) -> Result<(), GitError> {
        let here = self.git.text(&["rev-parse", "--verify", "HEAD^{commit}"]).await?;
        let tip = self.git.commit_at(&self.worktree.reference()).await?;
        let tree = self.tree_of_all().await?;
        let already = match &tip {
            Some(tip) => {
                let same =
                    self.git.text(&["rev-parse", "--verify", &format!("{tip}^{{tree}}")]).await? == tree;
                same && self.git.is(&["merge-base", "--is-ancestor", &here, tip]).await?
            }
            None => false,
        };
        if !already {
            let parents: Vec<&str> = tip.iter().chain([&here]).flat_map(|parent| ["-p", parent]).collect();
            let words = [&["commit-tree", &tree, "-m", self.message], parents.as_slice()].concat();
            let git = self.signed().await;
            let commit = git.text(&words).await?;
            git.bytes(&["update-ref", &self.worktree.reference(), &commit, tip.as_deref().unwrap_or("")])
                .await?;
        }
        let place = branch.map_or_else(
            || format!("on no branch, at {}", here.get(..12).unwrap_or(&here)),
            |branch| format!("on branch {branch}"),
        );
        notes.push(format!(
            "the worktree was left {place}; the work is on {} all the same",
            self.worktree.branch
        ));
        Ok(())
    }

    async fn tree_of_all(&self) -> Result<String, GitError> {
        let scratch = Scratch::of_worktree(self.worktree).await?;
        let git = self.git.clone().with("GIT_INDEX_FILE", scratch.index());
        git.bytes(&["read-tree", "HEAD"]).await?;
        stage::all(&git, &[]).await?;
        git.text(&["write-tree"]).await
    }
}

/// The files that differ between the worktree's start and the branch, relative to the root. `tip`: the commit
/// that the branch is at, if that is known.
async fn files(
    worktree: &Worktree,
    tip: Option<&str>,
    notes: &mut Vec<String>,
) -> Result<Vec<String>, GitError> {
    if tip == Some(&worktree.start) {
        return Ok(Vec::new());
    }
    let (git, reference) = (worktree.repository.git(), worktree.reference());
    let tip = tip.unwrap_or(&reference);
    let words = ["diff-tree", "-r", "--raw", "-z", "--no-renames", &worktree.start, tip];
    let answer = git.bytes(&words).await?;
    let (mut files, mut links) = (Vec::new(), Vec::new());
    let mut answer = parts(&answer);
    // `:OLDMODE NEWMODE OLD NEW STATUS`, then the path.
    while let (Some(change), Some(path)) = (answer.next(), answer.next()) {
        let (path, change) = (String::from_utf8_lossy(path), String::from_utf8_lossy(change));
        let shown = relative(&worktree.repository.layout.prefix, &path);
        match change.split(' ').collect::<Vec<_>>()[..] {
            [_, "160000", ..] => notes.push(format!(
                "{shown} is a git repository of its own: its files are not on the branch but in the worktree"
            )),
            [_, "120000", _, object, _] => links.push((path.into_owned(), object.to_owned())),
            _ => {}
        }
        files.push(shown);
    }
    let mut out = Vec::new();
    for (path, object) in links.into_iter().take(LINKS_MAX) {
        let target = git.bytes(&["cat-file", "blob", &object]).await?;
        let target = String::from_utf8_lossy(&target).into_owned();
        out.extend(leads_out(&path, &target).then(|| format!("{path} to {target}")));
    }
    notes.extend(listed(&out).map(|links| format!("links on the branch lead out of the project: {links}")));
    Ok(files)
}

/// Whether a link at a path of a work tree leads out of it. Names are all that is looked at.
pub(super) fn leads_out(path: &str, target: &str) -> bool {
    let mut depth = path.split('/').count() - 1;
    target.starts_with('/')
        || target.split('/').any(|part| match part {
            ".." => {
                let is_out = depth == 0;
                depth = depth.saturating_sub(1);
                is_out
            }
            "" | "." => false,
            _ => {
                depth += 1;
                false
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_out_is_told_by_its_names() {
        for (path, target, out) in [
            ("a", "b", false),
            ("a", "/etc/passwd", true),
            ("a", "../b", true),
            ("a/b", "../c", false),
            ("a/b", "../../c", true),
            ("a/b", "c/../../d", false),
            ("a/b", "c/../../../d", true),
            ("a/b/c", ".././/../x", false),
        ] {
            assert_eq!(leads_out(path, target), out, "{path} -> {target}");
        }
    }
}
