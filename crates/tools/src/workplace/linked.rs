//! Worktrees as agents had them before each had a repository of its own: linked ones of git's, which share
//! the project's refs and settings. Whoever comes back to one gets a repository, with what was in its index
//! and where it was; git's own folder for it in the project goes. Nothing makes one any more.

use std::fs;
use std::path::{Path, PathBuf};

use super::git::GitError;
use super::worktree::Worktree;
use crate::protect::aside::remove;
use crate::protect::{head_of, remove_below};

/// How many of git's own folders are looked through.
const WORKTREES_MAX: usize = 10_000;

/// How much is read of a file that holds a path, and of the others, in bytes.
const PATH_MAX: u64 = 16 << 10;
const FILE_MAX: u64 = 256 << 20;

/// What git remembers of a worktree in files of its own, beside HEAD.
const REMEMBERED: [&str; 7] =
    ["index", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "ORIG_HEAD"];

impl Worktree {
    /// Gives it a repository of its own.
    pub(super) async fn take_over_linked(&self) -> Result<(), GitError> {
        let own = own_folder(&self.repository.layout.common.join("worktrees"), &self.top);
        let git = self.repository.git();
        let tip = git.commit_at(&self.reference()).await?.unwrap_or_else(|| self.start.clone());
        let head = own.as_ref().and_then(|own| head_of(&own.join("HEAD"), PATH_MAX).ok());
        let head = head.as_deref().and_then(where_it_is);
        let head = head.unwrap_or_else(|| format!("ref: {}", self.reference()));
        let found = self.repository.look().await?;
        self.repository.pin(&found, None).await?;
        let new = self.new_repository(&tip, &found, &head).await?;
        for name in REMEMBERED {
            let from = own.iter().map(|own| own.join(name));
            if let Some(content) = from.filter_map(|file| head_of(&file, FILE_MAX).ok()).next() {
                fs::write(new.folder().join(name), content)?;
            }
        }
        remove_below(&self.top, Path::new(".git"))?;
        fs::rename(new.folder(), &self.own)?;
        // Left over, it only keeps its branch from being checked out; `git worktree prune` removes it.
        own.map_or(Ok(()), |own| remove(&own)).map_err(Into::into)
    }
}

/// Git's own folder for the worktree at `top`: the one that says so.
fn own_folder(all: &Path, top: &Path) -> Option<PathBuf> {
    let link = [top.as_os_str().as_encoded_bytes(), b"/.git"].concat();
    let says = |own: &PathBuf| {
        head_of(&own.join("gitdir"), PATH_MAX).is_ok_and(|said| said.trim_ascii_end() == link)
    };
    let folders = fs::read_dir(all).ok()?.take(WORKTREES_MAX).flatten();
    folders.map(|entry| entry.path()).find(says)
}

/// What HEAD says, if it is a branch or a commit: an agent could write it.
fn where_it_is(head: &[u8]) -> Option<String> {
    let head = std::str::from_utf8(head).ok()?.trim_ascii_end();
    let name = head.strip_prefix("ref: refs/heads/");
    let is_plain = |text: &str| !text.is_empty() && !text.chars().any(|c| c.is_control() || c == ' ');
    let is_commit = head.len() >= 40 && head.bytes().all(|b| b.is_ascii_hexdigit());
    (is_commit || name.is_some_and(is_plain)).then(|| head.to_owned())
}
