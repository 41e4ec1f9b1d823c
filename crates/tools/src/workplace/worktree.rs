//! A worktree and a branch of its own for an agent: from HEAD, or found again.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use midturn_core::rules::id::AgentName;

use super::git::{Git, GitError, parts};
use super::record::{Record, Records};
use crate::mark::Mark;

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
    /// What our git commands carry.
    mark: Option<Mark>,
}

/// An agent's worktree.
#[derive(Clone, Debug)]
pub(super) struct Worktree {
    pub(super) repository: Repository,
    /// The folder at its top.
    pub(super) top: PathBuf,
    pub(super) branch: String,
    /// The commit it started from.
    pub(super) start: String,
}

/// What is left of a worktree's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is the worktree.
    Usable,
    /// There is something, but no worktree of this repository.
    Broken,
    /// It isn't there.
    Gone,
}

/// What became of a worktree that was looked for.
pub(super) enum Again {
    /// It is there.
    Found(Worktree),
    /// Its folder was gone; it was made again from the branch.
    Rebuilt(Worktree),
    /// Neither folder nor branch is there.
    Gone,
    /// It can't be used, in words; it is left as it is.
    NotUsable(String),
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
    /// What the project folder is in the project's own work tree.
    pub(super) fn root(&self) -> PathBuf {
        self.top.join(&self.repository.prefix)
    }

    pub(super) fn reference(&self) -> String {
        reference(&self.branch)
    }

    /// Git in the worktree. If it is none any more, git doesn't look for another one above it.
    pub(super) fn git(&self) -> Git<'_> {
        let above = self.top.parent().unwrap_or(&self.top);
        Git::new(&self.top, self.repository.mark.as_ref()).with("GIT_CEILING_DIRECTORIES", above)
    }

    pub(super) async fn state(&self) -> Result<State, GitError> {
        if self.top.symlink_metadata().is_err() {
            return Ok(State::Gone);
        }
        let common = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
        let theirs = match self.git().text(&["rev-parse", "--show-toplevel"]).await {
            Ok(top) if Path::new(&top) == self.top => self.git().text(&common).await?,
            Ok(_) | Err(GitError::Failed { .. } | GitError::NotRun(_)) => return Ok(State::Broken),
            Err(error) => return Err(error),
        };
        let ours = self.repository.git().text(&common).await?;
        Ok(if theirs == ours { State::Usable } else { State::Broken })
    }
}

fn reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

impl Repository {
    /// The repository that the folder is in; our git commands in it carry the mark.
    pub(super) async fn of(project: &Path, mark: Option<&Mark>) -> Result<Self, NoWorktree> {
        let git = Git::new(project, mark);
        match git.text(&["rev-parse", "--show-toplevel"]).await {
            Ok(top) => Ok(Self {
                top: top.into(),
                prefix: git.text(&["rev-parse", "--show-prefix"]).await?,
                mark: mark.cloned(),
            }),
            Err(GitError::Failed { complaint, .. }) if complaint.contains("not a git repository") => {
                Err(NoWorktree::NotPossible("it is in no git repository".to_owned()))
            }
            // Somebody else's repository, say, or no git at all.
            Err(error) => Err(NoWorktree::NotPossible(error.to_string())),
        }
    }

    /// Git in the project.
    pub(super) fn git(&self) -> Git<'_> {
        Git::new(&self.top, self.mark.as_ref())
    }

    /// The commit at HEAD.
    pub(super) async fn head(&self) -> Result<String, NoWorktree> {
        let head = self.git().maybe(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await?;
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
        let answer = self.git().bytes(&words).await?;
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
        agent: &AgentName,
        (records, start): (&Records, &str),
    ) -> Result<Worktree, NoWorktree> {
        let mut error = None;
        for _ in 0..LOOKS {
            let (name, branch) = self.free_name(beside, session, agent.as_str()).await?;
            let record = records.begin(agent, &name, &branch, start);
            // First, so that what is half made when we are killed is known as ours.
            records.save(&record).map_err(not_remembered)?;
            let worktree = self.worktree(beside, &record);
            match self.try_add(&worktree.top, &["--no-track", "-b", &branch], start).await {
                Ok(()) => return self.made(worktree, records, record).map(|(worktree, _)| worktree),
                Err(failed) => error = Some(failed),
            }
        }
        Err(error.map_or_else(|| NoWorktree::Failed("no name is free".to_owned()), Into::into))
    }

    /// The worktree that a record speaks of, whatever is left of it.
    pub(super) fn worktree(&self, beside: &Path, record: &Record) -> Worktree {
        Worktree {
            repository: self.clone(),
            top: beside.join(&record.name),
            branch: record.branch.clone(),
            start: record.start.clone(),
        }
    }

    /// Looks for the worktree of a record, and makes it again where only its branch is left.
    pub(super) async fn again(
        &self,
        beside: &Path,
        records: &Records,
        record: Record,
    ) -> Result<Again, NoWorktree> {
        let worktree = self.worktree(beside, &record);
        let top = worktree.top.to_string_lossy().into_owned();
        if record.made {
            if worktree.state().await? == State::Broken {
                // Somebody removed its `.git`, or moved the repository; whether it helped is seen next.
                let _ = self.git().bytes(&["worktree", "repair", &top]).await;
            }
            match worktree.state().await? {
                State::Usable => {
                    return self.made(worktree, records, record).map(|(found, _)| Again::Found(found));
                }
                State::Broken => {
                    return Ok(Again::NotUsable(format!("the folder {top} is no worktree any more")));
                }
                State::Gone => {}
            }
        }
        let lives = self.git().maybe(&["rev-parse", "--verify", "--quiet", &worktree.reference()]).await?;
        if lives.is_none() {
            return Ok(Again::Gone);
        }
        // What git remembers of a folder that is gone; or a folder that was only half made, in
        // which nobody has worked. Where there is neither it fails.
        let _ = self.git().bytes(&["worktree", "remove", "--force", "--force", &top]).await;
        match self.try_add(&worktree.top, &[], &worktree.branch).await {
            Ok(()) => self
                .made(worktree, records, record)
                .map(|(worktree, was)| if was { Again::Rebuilt(worktree) } else { Again::Found(worktree) }),
            Err(error) => {
                Ok(Again::NotUsable(format!("the branch {} can't be checked out: {error}", worktree.branch)))
            }
        }
    }

    /// Remembers that it is made to the end; and whether that was known.
    fn made(
        &self,
        worktree: Worktree,
        records: &Records,
        mut record: Record,
    ) -> Result<(Worktree, bool), NoWorktree> {
        // A folder without a committed file isn't in a worktree yet.
        std::fs::create_dir_all(worktree.root()).map_err(|e| NoWorktree::Failed(e.to_string()))?;
        let was = std::mem::replace(&mut record.made, true);
        if !was {
            records.save(&record).map_err(not_remembered)?;
        }
        Ok((worktree, was))
    }

    async fn try_add(&self, top: &Path, options: &[&str], from: &str) -> Result<(), GitError> {
        let top = top.to_string_lossy();
        let words = [&["worktree", "add", "--quiet"], options, &[&*top, from]].concat();
        self.git().bytes(&words).await.map(drop)
    }

    async fn free_name(
        &self,
        beside: &Path,
        session: &str,
        agent: &str,
    ) -> Result<(String, String), NoWorktree> {
        let git = self.git();
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

fn not_remembered(error: std::io::Error) -> NoWorktree {
    NoWorktree::Failed(format!("what belongs to it can't be written down: {error}"))
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
