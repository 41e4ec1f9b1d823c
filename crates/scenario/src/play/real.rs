//! `tools: real`: a temporary git repository for the agents to work in.
//!
//! The tools themselves come from whoever joins the crates, through [`RealWorkplaces`]: this
//! crate knows no tools.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use midturn_core::engine::ports::Workplace;
use midturn_core::rules::id::AgentName;
use tempfile::TempDir;

use crate::scenario::Workspace;

/// Makes workplaces with real tools.
pub trait RealWorkplaces {
    /// A workplace on a git repository, each agent in a worktree of its own beneath `state`.
    /// The error says what to do.
    fn open(&self, repository: &Path, state: &Path) -> Result<Box<dyn RealWorkplace>, String>;
}

/// A workplace with real tools.
pub trait RealWorkplace: Send + Sync {
    /// It, as the engine's port.
    fn workplace(&self) -> Arc<dyn Workplace>;

    /// The folder of an agent's worktree, once it has one.
    fn worktree(&self, agent: &AgentName) -> Option<PathBuf>;
}

/// A workplace and the temporary folders beneath it, which go with it.
pub(super) struct Opened {
    pub(super) workplace: Box<dyn RealWorkplace>,
    _folder: TempDir,
}

impl Opened {
    pub(super) fn worktree(&self, agent: &AgentName) -> Option<PathBuf> {
        self.workplace.worktree(agent)
    }
}

/// Copies or clones the workspace and opens a workplace on it.
pub(super) fn open(workspace: &Workspace, real: &dyn RealWorkplaces) -> Result<Opened, String> {
    let folder = tempfile::Builder::new().prefix("midturn-replay-").tempdir();
    let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?;
    let repository = folder.path().join("repository");
    let state = folder.path().join("state");
    std::fs::create_dir(&state).map_err(|error| format!("no state folder: {error}"))?;
    match workspace {
        Workspace::Folder(from) => {
            copy(from, &repository)?;
            commit_all(&repository)?;
        }
        Workspace::Clone(from) => clone(from, &repository)?,
    }
    Ok(Opened { workplace: real.open(&repository, &state)?, _folder: folder })
}

/// Copies a folder with all below it; links are copied as links.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("the workspace {} can't be copied: {error}", from.display());
    std::fs::create_dir(to).map_err(wrong)?;
    for entry in std::fs::read_dir(from).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(wrong)?;
        if kind.is_dir() {
            copy(&source, &target)?;
        } else if kind.is_symlink() {
            let aim = std::fs::read_link(&source).map_err(wrong)?;
            std::os::unix::fs::symlink(aim, &target).map_err(wrong)?;
        } else {
            std::fs::copy(&source, &target).map_err(wrong)?;
        }
    }
    Ok(())
}

fn commit_all(repository: &Path) -> Result<(), String> {
    git(repository, &["init", "--quiet", "--initial-branch=main"])?;
    git(repository, &["add", "--all", "--force"])?;
    git(
        repository,
        &["commit", "--quiet", "--allow-empty", "--no-verify", "--message=The workspace of the scenario"],
    )
}

fn clone(from: &Path, to: &Path) -> Result<(), String> {
    let (from, to) = (from.to_string_lossy(), to.to_string_lossy());
    git(Path::new("."), &["clone", "--quiet", "--no-hardlinks", "--", &from, &to])
}

/// The git command with nothing of the user's: no configuration, no hooks, a fixed identity.
fn git(folder: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
        command.env_remove(name);
    }
    for (name, value) in IDENTITY {
        command.env(name, value);
    }
    command
        .current_dir(folder)
        .args(["-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false"])
        .args(arguments);
    let output = command.output().map_err(|error| format!("git can't be run ({error}); install it"))?;
    if output.status.success() {
        return Ok(());
    }
    let what = arguments.first().copied().unwrap_or_default();
    Err(format!("git {what} failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

const IDENTITY: [(&str, &str); 9] = [
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_AUTHOR_NAME", "Midturn"),
    ("GIT_AUTHOR_EMAIL", "midturn@localhost"),
    ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
    ("GIT_COMMITTER_NAME", "Midturn"),
    ("GIT_COMMITTER_EMAIL", "midturn@localhost"),
    ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
];
