//! What an agent's branch changed since it began, with what is not committed yet.

use midturn_core::engine::ports::{Diff, ToolError};
use midturn_core::rules::id::AgentName;

use super::GitWorkplace;
use super::git::{Git, GitError};
use super::snapshot::snapshot;
use super::worktree::{FolderState, Worktree};

/// How much of a patch is given, in bytes.
const PATCH_MAX: usize = 1 << 20;

impl GitWorkplace {
    /// What is not committed in the project folder, where an agent works that has no worktree.
    pub(super) async fn diff_of_project(&self, agent: &AgentName) -> Result<Diff, ToolError> {
        let failed = |error: &dyn std::fmt::Display| {
            ToolError(format!("no diff of the folder `{agent}` works in: {error}"))
        };
        let repository = self.repository().await.map_err(|e| failed(&e))?;
        let project = repository.project().await.map_err(|e| failed(&e))?;
        of_files(&project).await.map_err(|error| failed(&error))
    }
}

/// The difference between the branch's start and what is in the worktree, or on the branch
/// where there is no worktree any more.
pub(super) async fn diff(worktree: &Worktree) -> Result<Diff, GitError> {
    match worktree.folder_state() {
        FolderState::Usable => of_files(worktree).await,
        state => {
            let top = worktree.top.display();
            let note = format!("{top} is no longer a worktree, so only what is on the branch is shown");
            let note = (state != FolderState::Gone).then_some(&*note);
            patch(worktree, &worktree.repository.git(), &worktree.reference(), note).await
        }
    }
}

/// The difference between the start and the files that are there.
async fn of_files(worktree: &Worktree) -> Result<Diff, GitError> {
    let seen = snapshot(worktree).await?;
    let note = seen.left_out.as_ref().map(|complaint| format!("not all files could be read: {complaint}"));
    patch(worktree, &seen.git, &seen.object, note.as_deref()).await
}

/// A note goes before the patch, where tools that apply patches read over it.
async fn patch(worktree: &Worktree, git: &Git<'_>, end: &str, note: Option<&str>) -> Result<Diff, GitError> {
    // A plumbing command: no person's settings change its form, and no program of the
    // repository's choice is run.
    let words = [
        "diff-tree",
        "-r",
        "--patch",
        "--find-renames",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        &worktree.start,
        end,
    ];
    let (bytes, cut) = git.head_of(&words, PATCH_MAX).await?;
    let mut patch = note.map(|note| format!("[{note}]\n")).unwrap_or_default();
    patch.push_str(&String::from_utf8_lossy(&bytes));
    let truncated = cut || patch.len() > PATCH_MAX;
    if truncated {
        patch.truncate(patch.floor_char_boundary(PATCH_MAX));
        // Whole lines only.
        patch.truncate(patch.rfind('\n').map_or(patch.len(), |end| end + 1));
    }
    Ok(Diff { branch: worktree.branch.clone(), start: worktree.start.clone(), patch, truncated })
}
