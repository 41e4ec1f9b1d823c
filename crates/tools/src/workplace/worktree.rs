//! A worktree and a branch of its own for an agent: from HEAD, or found again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use midturn_core::rules::id::{AgentName, SessionId};

use super::borrowed::Found;
use super::folders::SessionFolders;
use super::git::{Git, GitError, parts};
use super::keeper::Keeper;
use super::layout::{self, RepositoryLayout};
use super::record::{Record, Records};
use super::starting::Shared;
use crate::arguments::listed;
use crate::mark::Mark;
use crate::process::Supervisor;
use crate::protect::aside::remove;
use crate::protect::remove_below;

/// How many names are tried when those wanted are taken.
const NAMES_TRIED: usize = 1_000;

/// How often it is looked again which names are free, when somebody else takes one meanwhile.
const LOOKS: usize = 5;

/// In an agent's repository, what says that we made it.
pub(super) const OURS: &str = "midturn";

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
    /// What those run in that work in an agent's repository.
    pub(super) folders: Arc<SessionFolders>,
    pub(super) supervisor: Option<Supervisor>,
}

/// A work tree: an agent's, with a repository of its own; or the project's.
#[derive(Clone, Debug)]
pub(super) struct Worktree {
    pub(super) repository: Repository,
    /// The folder at its top.
    pub(super) top: PathBuf,
    /// Git's own folder for it.
    pub(super) own: PathBuf,
    /// Where git runs for it: an agent's in that agent's sandbox. `None`: it is the project's.
    pub(super) inside: Option<Inside>,
    pub(super) branch: String,
    /// The commit it started from.
    pub(super) start: String,
}

/// What our git commands for an agent's repository run in.
#[derive(Clone, Debug)]
pub(super) struct Inside {
    /// For temporary files of theirs, which the agent's commands don't see.
    pub(super) temporary: PathBuf,
    /// `None`: there is no sandbox.
    pub(super) keeper: Option<Keeper>,
}

impl Inside {
    /// A file for a command to read, as long as it is held.
    pub(super) fn file(&self, name: &str, content: &str) -> std::io::Result<tempfile::NamedTempFile> {
        let file = tempfile::Builder::new().prefix(name).tempfile_in(&self.temporary)?;
        std::fs::write(file.path(), content)?;
        Ok(file)
    }
}

/// What is left of a worktree's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FolderState {
    /// It is the worktree.
    Usable,
    /// It is one of git's linked worktrees, as agents had them before.
    Linked,
    /// There is something else.
    Broken,
    /// It isn't there.
    Gone,
}

/// A worktree that is about to be made, and what the project had when it began.
pub(super) struct Begun {
    pub(super) worktree: Worktree,
    pub(super) record: Record,
    pub(super) found: Arc<Found>,
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

    /// Git in it. Of an agent's repository what its settings name is run in the agent's sandbox, large
    /// files' names for one; where there is no sandbox, nothing is.
    pub(super) async fn git(&self) -> Result<Git<'_>, GitError> {
        let Some(inside) = &self.inside else {
            return Ok(Git::new(&self.repository, &self.top, &self.own));
        };
        let settings = self.repository.layout.settings_inside();
        let git = Git::inside(&self.repository, &self.top, &self.own, settings, inside.keeper.clone());
        if inside.keeper.is_some() {
            return Ok(git);
        }
        let said = git.maybe(&["config", "--list", "--name-only"]).await?.unwrap_or_default();
        Ok(layout::without_programs(said.lines()).fold(git, |git, (key, value)| git.setting(&key, &value)))
    }

    pub(super) fn folder_state(&self) -> FolderState {
        let kind = |path: &Path| path.symlink_metadata().map(|about| about.file_type()).ok();
        match (kind(&self.top), kind(&self.own)) {
            (None, _) => FolderState::Gone,
            (Some(top), Some(own)) if top.is_dir() && own.is_dir() => {
                let is_ours = kind(&self.own.join(OURS)).is_some_and(|kind| kind.is_file());
                if is_ours { FolderState::Usable } else { FolderState::Broken }
            }
            (Some(top), Some(own)) if top.is_dir() && own.is_file() => FolderState::Linked,
            _ => FolderState::Broken,
        }
    }

    /// Removes what git commands that were killed leave behind; none may be alive. Whether there was
    /// anything. Through no link, and a link goes as itself.
    pub(super) fn remove_locks(&self) -> bool {
        let branch = format!("{}.lock", self.reference());
        let own = ["index.lock", "HEAD.lock", &branch].map(|lock| Path::new(".git").join(lock));
        let own = own.iter().filter(|lock| remove_below(&self.top, lock).is_ok()).count();
        let ours = remove_below(&self.repository.layout.common, Path::new(&branch)).is_ok();
        own > 0 || ours
    }
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
            inside: None,
            branch: branch.unwrap_or_else(|| "HEAD".to_owned()),
            start: self.head().await?,
        })
    }

    /// Where somebody has a branch checked out.
    pub(super) async fn checked_out(&self, branch: &str) -> Result<Option<String>, GitError> {
        let (reference, mut place) = (reference(branch), None);
        let Ok(listed) = self.git().bytes(&["worktree", "list", "--porcelain", "-z"]).await else {
            // One of a person's that git left half made keeps it from listing any.
            let here = self.git().maybe(&["symbolic-ref", "--quiet", "HEAD"]).await?;
            return Ok((here == Some(reference)).then(|| self.layout.top.display().to_string()));
        };
        for part in parts(&listed) {
            match part.strip_prefix(b"worktree ") {
                Some(path) => place = Some(String::from_utf8_lossy(path).into_owned()),
                None if part.strip_prefix(b"branch ") == Some(reference.as_bytes()) => return Ok(place),
                None => {}
            }
        }
        Ok(None)
    }

    /// What a worktree that starts from HEAD will not have, in words. `None`: nothing.
    pub(super) async fn changed(&self) -> Result<Option<String>, GitError> {
        let mut words = vec![
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=normal",
            "--no-renames",
            "--ignore-submodules=dirty",
            "--",
            ".",
        ];
        let ours =
            self.state.strip_prefix(&self.layout.top).map(|state| format!(":(exclude){}", state.display()));
        if let Ok(ours) = &ours {
            words.push(ours);
        }
        let answer = self.git().bytes(&words).await?;
        let paths = parts(&answer).filter_map(|part| part.get(3..)).map(String::from_utf8_lossy);
        Ok(listed(&paths.collect::<Vec<_>>()))
    }

    /// Takes a name for a worktree, the agent's own, and the branch `midturn/SESSION/NAME`. If either is
    /// left over from before, a number is added to both: what is in them is somebody's work.
    pub(super) async fn begin(
        &self,
        agent: &AgentName,
        (shared, mut asked): (&Shared<Arc<Found>>, Instant),
    ) -> Result<Begun, NoWorktree> {
        let mut error = None;
        for _ in 0..LOOKS {
            let look = async |before: Option<Arc<Found>>| {
                let found = self.look().await?;
                Ok::<_, GitError>(Arc::new(found.after(before.as_deref())))
            };
            let found = shared.since(asked, look).await?;
            let start = found.head()?;
            let (name, branch) = self.free_name(agent.as_str(), &found)?;
            let record = self.records.begin(agent, &name, &branch, start);
            // First, so that what is half made when we are killed is known as ours.
            self.records.save(&record).map_err(not_remembered)?;
            match self.pin(&found, Some((&reference(&branch), start))).await {
                Ok(()) => {
                    let worktree = self.worktree(&record).map_err(not_made)?;
                    return Ok(Begun { worktree, record, found });
                }
                Err(failed) => error = Some(failed),
            }
            // Something is there that was not found.
            asked = Instant::now();
        }
        Err(error.map_or_else(|| NoWorktree::Failed("no name is free".to_owned()), Into::into))
    }

    /// The worktree that a record speaks of, whatever is left of it.
    pub(super) fn worktree(&self, record: &Record) -> std::io::Result<Worktree> {
        let top = self.records.folder.join(&record.name);
        Ok(Worktree {
            own: top.join(".git"),
            inside: Some(self.folders.inside(&self.layout, &record.name, &top, self.supervisor.as_ref())?),
            repository: self.clone(),
            top,
            branch: record.branch.clone(),
            start: record.start.clone(),
        })
    }

    /// Looks for the worktree of a record, and makes it again where only its branch is left.
    pub(super) async fn again(&self, record: Record) -> Result<Again, NoWorktree> {
        let worktree = self.worktree(&record).map_err(not_made)?;
        worktree.remove_locks();
        let state = if record.made { worktree.folder_state() } else { FolderState::Gone };
        let top = worktree.top.display();
        match state {
            FolderState::Usable => return Ok(Again::Found(worktree.into(), None)),
            FolderState::Linked => {
                worktree.take_over_linked().await?;
                return Ok(Again::Found(worktree.into(), None));
            }
            FolderState::Broken => {
                return Ok(left_as_it_is(format!("the folder {top} is no longer a worktree")));
            }
            FolderState::Gone => {}
        }
        let Some(tip) = self.git().commit_at(&worktree.reference()).await? else {
            return Ok(Again::Lost(record.made.then(|| "its worktree and its branch are gone".to_owned())));
        };
        let branch = &worktree.branch;
        if let Some(place) = self.checked_out(branch).await? {
            return Ok(left_as_it_is(format!("the branch {branch} is checked out in {place}")));
        }
        // One that was only half made, in which nobody has worked.
        remove_if_there(&worktree.top).map_err(not_made)?;
        let found = self.look().await?;
        self.pin(&found, None).await?;
        worktree.make(&tip, &found).await?;
        let was_made = record.made;
        self.made(record)?;
        Ok(Again::Found(worktree.into(), was_made.then_some(REBUILT)))
    }

    /// Takes the name of a worktree back that could not be made: nobody has worked on its branch.
    pub(super) async fn forget(&self, worktree: &Worktree) {
        // If it can't be, the next one has a number behind its name.
        let _ = self.git().bytes(&["update-ref", "-d", &worktree.reference(), &worktree.start]).await;
    }

    /// Remembers that it is made to the end.
    pub(super) fn made(&self, mut record: Record) -> Result<Record, NoWorktree> {
        record.made = true;
        self.records.save(&record).map_err(not_remembered)?;
        Ok(record)
    }

    fn free_name(&self, agent: &str, found: &Found) -> Result<(String, String), NoWorktree> {
        let branches = format!("midturn/{}", part_of_branch(&self.records.session));
        for n in 1..=NAMES_TRIED {
            // No agent's name has a dot, so no other agent wants this one.
            let name = if n == 1 { agent.to_owned() } else { format!("{agent}.{n}") };
            let branch = format!("{branches}/{name}");
            let path = self.records.folder.join(&name);
            if !found.has(&reference(&branch)) && path.symlink_metadata().is_err() {
                return Ok((name, branch));
            }
        }
        Err(NoWorktree::Failed(format!("{NAMES_TRIED} worktrees named {agent} are left over: remove some")))
    }
}

fn left_as_it_is(why: String) -> Again {
    Again::Lost(Some(format!("{why}; it was left as it is")))
}

fn not_made(error: std::io::Error) -> NoWorktree {
    NoWorktree::Failed(error.to_string())
}

fn remove_if_there(folder: &Path) -> std::io::Result<()> {
    match remove(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
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
