//! A worktree and a branch of its own for an agent, from HEAD.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::git::{Git, GitError, parts};

/// How many names are tried when those wanted are taken.
const NAMES_TRIED: usize = 1_000;

/// How often it is looked again which names are free, when somebody else takes one meanwhile.
const LOOKS: usize = 5;

/// A repository, as seen from the project folder.
#[derive(Clone, Debug)]
pub(super) struct Repository {
    /// The folder at the top of the work tree.
    pub(super) top: PathBuf,
    /// The project folder, relative to that: empty, or with a slash at its end.
    pub(super) prefix: String,
}

/// An agent's worktree.
#[derive(Clone, Debug)]
pub(super) struct Worktree {
    /// The folder at its top.
    pub(super) top: PathBuf,
    /// What the project folder is in the project's own work tree.
    pub(super) root: PathBuf,
    /// As in [`Repository`].
    pub(super) prefix: String,
    pub(super) branch: String,
    /// The commit it started from.
    pub(super) start: String,
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

impl Repository {
    /// The repository that the folder is in.
    pub(super) async fn of(project: &Path) -> Result<Self, NoWorktree> {
        let git = Git::new(project);
        match git.text(&["rev-parse", "--show-toplevel"]).await {
            Ok(top) => Ok(Self { top: top.into(), prefix: git.text(&["rev-parse", "--show-prefix"]).await? }),
            Err(GitError::Failed { complaint, .. }) if complaint.contains("not a git repository") => {
                Err(NoWorktree::NotPossible("it is in no git repository".to_owned()))
            }
            // Somebody else's repository, say, or no git at all.
            Err(error) => Err(NoWorktree::NotPossible(error.to_string())),
        }
    }

    /// The commit at HEAD.
    pub(super) async fn head(&self) -> Result<String, NoWorktree> {
        let head = Git::new(&self.top).maybe(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await?;
        head.ok_or_else(|| NoWorktree::NotPossible("its git repository has no commit yet".to_owned()))
    }

    /// What a worktree that starts from HEAD will not have, in words. `None`: nothing.
    pub(super) async fn dirty(&self, state: &Path, head: &str) -> Result<Option<String>, GitError> {
        let mut words =
            vec!["status", "--porcelain=v1", "-z", "--untracked-files=normal", "--no-renames", "--", "."];
        let ours = state.strip_prefix(&self.top).map(|state| format!(":(exclude){}", state.display()));
        if let Ok(ours) = &ours {
            words.push(ours);
        }
        let answer = Git::new(&self.top).bytes(&words).await?;
        let paths: Vec<_> =
            parts(&answer).filter_map(|part| part.get(3..)).map(String::from_utf8_lossy).collect();
        let short = head.get(..12).unwrap_or(head);
        Ok(match paths.as_slice() {
            [] => None,
            [path] => Some(format!(
                "the worktree starts from commit {short}: an uncommitted change in the project folder ({path}) is not in it"
            )),
            [path, others @ ..] => Some(format!(
                "the worktree starts from commit {short}: uncommitted changes in the project folder ({path} and {} others) are not in it",
                others.len()
            )),
        })
    }

    /// Makes a worktree in the folder `beside`, named after the agent, on the branch
    /// `midturn/SESSION/NAME`. If either is left over from before, a number is added to both:
    /// what is in them is somebody's work.
    pub(super) async fn add(
        &self,
        beside: &Path,
        session: &str,
        agent: &str,
        start: String,
    ) -> Result<Worktree, NoWorktree> {
        let mut error = None;
        for _ in 0..LOOKS {
            let (name, branch) = self.free_name(beside, session, agent).await?;
            let top = beside.join(name);
            match self.try_add(&top, &branch, &start).await {
                Ok(()) => {
                    let root = top.join(&self.prefix);
                    // A folder without a committed file isn't in a worktree yet.
                    std::fs::create_dir_all(&root).map_err(|e| NoWorktree::Failed(e.to_string()))?;
                    return Ok(Worktree { top, root, prefix: self.prefix.clone(), branch, start });
                }
                Err(failed) => error = Some(failed),
            }
        }
        Err(error.map_or_else(|| NoWorktree::Failed("no name is free".to_owned()), Into::into))
    }

    async fn try_add(&self, top: &Path, branch: &str, start: &str) -> Result<(), GitError> {
        let top = top.to_string_lossy();
        let words = ["worktree", "add", "--quiet", "--no-track", "-b", branch, &top, start];
        Git::new(&self.top).bytes(&words).await.map(drop)
    }

    async fn free_name(
        &self,
        beside: &Path,
        session: &str,
        agent: &str,
    ) -> Result<(String, String), NoWorktree> {
        let git = Git::new(&self.top);
        let branches = format!("refs/heads/midturn/{session}/");
        let taken = git.bytes(&["for-each-ref", "--format=%(refname)%00", &branches]).await?;
        let taken: HashSet<_> = parts(&taken).map(|part| part.trim_ascii().to_vec()).collect();
        let registered = git.bytes(&["worktree", "list", "--porcelain", "-z"]).await?;
        let registered: HashSet<_> =
            parts(&registered).filter_map(|part| part.strip_prefix(b"worktree ")).collect();
        for n in 1..=NAMES_TRIED {
            // No agent's name has a dot, so no other agent wants this one.
            let name = if n == 1 { agent.to_owned() } else { format!("{agent}.{n}") };
            let path = beside.join(&name);
            let known = registered.contains(path.as_os_str().as_encoded_bytes());
            if !known
                && !taken.contains(format!("{branches}{name}").as_bytes())
                && path.symlink_metadata().is_err()
            {
                let branch = format!("midturn/{session}/{name}");
                return Ok((name, branch));
            }
        }
        Err(NoWorktree::Failed(format!("{NAMES_TRIED} worktrees named {agent} are left over: remove some")))
    }
}

/// A session's id as a part of a branch's name, where much is not allowed.
pub(super) fn part_of_branch(session: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let text: String = session.chars().map(|c| if allowed(c) { c } else { '-' }).take(100).collect();
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
            assert_eq!(part_of_branch(id), part);
        }
    }
}
