//! All that is in a worktree, as a tree that leaves no trace: the agent's index is not touched,
//! and what has to be stored for it goes to a scratch folder instead of the repository.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use tokio::runtime::Handle;

use super::back::{Brought, HandedOver, bring};
use super::git::{Git, GitError};
use super::record::SCRATCH;
use super::stage;
use super::worktree::{Repository, Worktree};
use crate::context::off_the_runtime;
use crate::protect::{file, file_below};

/// The largest index that is copied, in bytes: that of a million files.
const INDEX_MAX: u64 = 256 << 20;

/// A place for objects that nobody will miss.
#[derive(Debug)]
pub(super) struct Scratch {
    folder: PathBuf,
}

/// What a worktree holds, seen from the project.
pub(super) struct Snapshot<'a> {
    /// Git in the project, which sees it.
    pub(super) git: Git<'a>,
    /// A tree, or a commit that has it.
    pub(super) object: String,
    /// What could not be read of it, in git's words.
    pub(super) left_out: Option<String>,
    /// Where it is kept.
    _kept: Kept,
}

/// Kept until nobody looks any more.
enum Kept {
    Here { _scratch: Scratch },
    Back { _brought: Brought },
}

impl Scratch {
    /// For objects that are to be seen beside those of the project.
    pub(super) async fn of_project(repository: &Repository) -> Result<Self, GitError> {
        Self::new(repository.scratch.clone(), repository.layout.common.join("objects")).await
    }

    /// For objects that are to be seen beside those of a worktree, where its git can see them.
    pub(super) async fn of_worktree(worktree: &Worktree) -> Result<Self, GitError> {
        match &worktree.inside {
            Some(inside) => Self::new(inside.temporary.clone(), worktree.own.join("objects")).await,
            None => Self::of_project(&worktree.repository).await,
        }
    }

    async fn new(beside: PathBuf, objects: PathBuf) -> Result<Self, GitError> {
        let folder = off_the_runtime(move || {
            let folder = tempfile::Builder::new().prefix(SCRATCH).tempdir_in(beside)?;
            let info = folder.path().join("objects/info");
            std::fs::create_dir_all(&info)?;
            let mut objects = objects.into_os_string();
            objects.push("\n");
            std::fs::write(info.join("alternates"), objects.as_encoded_bytes())?;
            Ok(folder.keep())
        });
        Ok(Self { folder: folder.await.flatten()? })
    }

    /// A place for an index that is nobody's.
    pub(super) fn index(&self) -> PathBuf {
        self.file("index")
    }

    /// A place for a file.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Where objects go.
    pub(super) fn objects(&self) -> PathBuf {
        self.folder.join("objects")
    }

    /// Git that stores what it makes in here.
    pub(super) fn git<'a>(&self, git: &Git<'a>) -> Git<'a> {
        git.clone().with("GIT_OBJECT_DIRECTORY", self.objects())
    }
}

/// All files of a worktree, those that are ignored apart.
pub(super) async fn snapshot(worktree: &Worktree) -> Result<Snapshot<'_>, GitError> {
    let scratch = Scratch::of_worktree(worktree).await?;
    let git = scratch.git(&worktree.git().await?);
    let (tree, left_out) = tree(worktree, &scratch, &git).await?;
    let ours = worktree.repository.git();
    if worktree.inside.is_none() {
        let git = scratch.git(&ours);
        return Ok(Snapshot { git, object: tree, left_out, _kept: Kept::Here { _scratch: scratch } });
    }
    let words = ["commit-tree", &tree, "-p", &worktree.start, "-m", "a look"];
    let commit = git.clone().by("midturn", "midturn@midturn.invalid").text(&words).await?;
    let brought = bring(worktree, &git, &commit, HandedOver::SinceStart).await?;
    let git = brought.git(&ours);
    Ok(Snapshot { git, object: commit, left_out, _kept: Kept::Back { _brought: brought } })
}

/// The tree, and what is left out of it.
async fn tree(
    worktree: &Worktree,
    scratch: &Scratch,
    git: &Git<'_>,
) -> Result<(String, Option<String>), GitError> {
    let (index, theirs) = (scratch.index(), IndexOf::of(worktree));
    // With it comes what git knows of unchanged files, which are not read again then.
    let target = index.clone();
    let copied = off_the_runtime(move || copy_of(&theirs, &target)).await.flatten()?;
    let git = git.clone().with("GIT_INDEX_FILE", index).setting("core.splitIndex", "false");
    if !copied {
        git.bytes(&["read-tree", "HEAD"]).await?;
    }
    let left_out = add_all(&git).await?;
    // In the project's own work tree ours may be, too.
    if let Ok(state) = worktree.repository.state.strip_prefix(&worktree.top) {
        let state = format!(":(top,literal){}", state.display());
        git.bytes(&["rm", "-r", "--cached", "--force", "--quiet", "--ignore-unmatch", "--", &state]).await?;
    }
    Ok((git.text(&["write-tree"]).await?, left_out))
}

impl Drop for Scratch {
    /// Taken away behind our back; a failure leaves only rubbish, which the session's end removes, or
    /// its next start.
    fn drop(&mut self) {
        let folder = std::mem::take(&mut self.folder);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn_blocking(move || std::fs::remove_dir_all(folder));
        }
    }
}

/// Puts all files into the index. A file that can't be read, or that is gone while it is being
/// looked at, doesn't keep the others out.
async fn add_all(git: &Git<'_>) -> Result<Option<String>, GitError> {
    let mut left_out = None;
    // A second look, for what changed during the first.
    for _ in 0..2 {
        match stage::all(git, &["--ignore-errors"]).await {
            Ok(()) => return Ok(None),
            Err(GitError::Failed { complaint, .. }) => left_out = Some(complaint),
            Err(error) => return Err(error),
        }
    }
    Ok(left_out)
}

/// Where an index is.
enum IndexOf {
    Project(PathBuf),
    /// An agent can have put a link anywhere on the way to it.
    Agent(PathBuf),
}

impl IndexOf {
    fn of(worktree: &Worktree) -> Self {
        match worktree.inside {
            Some(_) => Self::Agent(worktree.top.clone()),
            None => Self::Project(worktree.own.join("index")),
        }
    }

    /// `None`: there is none, or what is in its place is none.
    fn open(&self) -> io::Result<Option<File>> {
        match self {
            Self::Agent(top) => Ok(file_below(top, Path::new(".git/index")).ok()),
            Self::Project(path) => match file(path) {
                Ok(file) => Ok(Some(file)),
                Err(_) if !is_file(path) => Ok(None),
                Err(error) => Err(error),
            },
        }
    }
}

/// Copies the project's index, as [`copy_of`] does.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<bool> {
    copy_of(&IndexOf::Project(from.to_owned()), to)
}

/// Copies an index, its time too: by that git knows which files it has to look into, because
/// they may have changed in the very instant when it was written. False: there is none.
fn copy_of(from: &IndexOf, to: &Path) -> io::Result<bool> {
    let Some(source) = from.open()? else { return Ok(false) };
    let about = source.metadata()?;
    if about.len() > INDEX_MAX {
        return Ok(false);
    }
    let mut target = File::create_new(to)?;
    io::copy(&mut source.take(INDEX_MAX), &mut target)?;
    target.set_modified(about.modified()?)?;
    Ok(true)
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| about.is_file())
}
