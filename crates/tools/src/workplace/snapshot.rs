//! All that is in a worktree, as a tree that leaves no trace: the agent's index is not touched,
//! and what has to be stored for it goes to a scratch folder instead of the repository.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use tokio::runtime::Handle;

use super::git::{Git, GitError};
use super::record::SCRATCH;
use super::stage;
use super::worktree::{Repository, Worktree};
use crate::context::off_the_runtime;
use crate::protect::file;

/// The largest index that is copied, in bytes: that of a million files.
const INDEX_MAX: u64 = 256 << 20;

/// A place for objects that nobody will miss.
pub(super) struct Scratch {
    folder: PathBuf,
}

/// What a worktree holds.
pub(super) struct Snapshot {
    pub(super) tree: String,
    /// What could not be read of it, in git's words.
    pub(super) left_out: Option<String>,
}

impl Scratch {
    /// For objects that are to be seen beside those of the repository.
    pub(super) async fn new(repository: &Repository) -> Result<Self, GitError> {
        let objects = repository.layout.common.join("objects");
        let beside = repository.scratch.clone();
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
        self.folder.join("index")
    }

    /// Git that stores what it makes in here.
    pub(super) fn git<'a>(&self, git: &Git<'a>) -> Git<'a> {
        git.clone().with("GIT_OBJECT_DIRECTORY", self.folder.join("objects"))
    }

    /// The tree of all files of the worktree, those that are ignored apart.
    pub(super) async fn snapshot(&self, worktree: &Worktree) -> Result<Snapshot, GitError> {
        let index = self.index();
        let theirs = worktree.own.join("index");
        // With it comes what git knows of unchanged files, which are not read again then.
        let target = index.clone();
        let copied = off_the_runtime(move || copy(&theirs, &target)).await.flatten()?;
        let git = self.git(&worktree.git()).with("GIT_INDEX_FILE", index).setting("core.splitIndex", "false");
        if !copied {
            git.bytes(&["read-tree", "HEAD"]).await?;
        }
        let left_out = add_all(&git).await?;
        // In the project's own work tree ours may be, too.
        if let Ok(state) = worktree.repository.state.strip_prefix(&worktree.top) {
            let state = format!(":(top,literal){}", state.display());
            git.bytes(&["rm", "-r", "--cached", "--force", "--quiet", "--ignore-unmatch", "--", &state])
                .await?;
        }
        Ok(Snapshot { tree: git.text(&["write-tree"]).await?, left_out })
    }
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

/// Copies an index, its time too: by that git knows which files it has to look into, because
/// they may have changed in the very instant when it was written. False: there is none, or
/// what an agent put in its place is none.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<bool> {
    let source = match file(from) {
        Ok(source) => source,
        Err(_) if !is_file(from) => return Ok(false),
        Err(error) => return Err(error),
    };
    let about = source.metadata()?;
    if about.len() > INDEX_MAX {
        return Ok(false);
    }
    let mut target = std::fs::File::create_new(to)?;
    io::copy(&mut source.take(INDEX_MAX), &mut target)?;
    target.set_modified(about.modified()?)?;
    Ok(true)
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| about.is_file())
}
