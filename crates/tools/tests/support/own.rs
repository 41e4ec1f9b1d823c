//! A project of a person's, in which agents have repositories of their own.
#![allow(clippy::unwrap_used, reason = "this is all test code")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use midturn_core::engine::ports::{Changes, Output, Toolbox, Workplace as _};
use midturn_core::rules::id::SessionId;
use midturn_tools::sandbox::{Sandbox, TreeLimits};
use midturn_tools::workplace::{AgentPlace, GitWorkplace, Isolation};
use serde_json::json;

use super::project::git;
use super::{call, name, sandboxed, supervisor};

/// A project in a folder of its own, whose state is not below `/tmp`, which is the agents' own.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    /// With an empty folder `project`.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        std::fs::create_dir(folder.path().join("project")).unwrap();
        Self { folder }
    }

    /// With a commit of two files.
    pub(crate) fn with_a_commit() -> Self {
        let place = Self::new();
        place.sh("git init -q -b main; echo one > a.txt; echo b > b.txt; git add .; git commit -qm c");
        place
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(path)
    }

    /// What its owner does in the project.
    pub(crate) fn sh(&self, command: &str) -> String {
        sh(&self.at("project"), command)
    }

    pub(crate) fn git(&self, words: &[&str]) -> String {
        git(&self.at("project"), words)
    }

    pub(crate) fn workplace(&self, sandbox: &Sandbox) -> GitWorkplace {
        self.workplace_in(&self.at("project"), sandbox)
    }

    pub(crate) fn workplace_in(&self, folder: &Path, sandbox: &Sandbox) -> GitWorkplace {
        let place = |_: &_| AgentPlace::new(Isolation::Worktree);
        let session = if folder.ends_with("linked") { "s2" } else { "s1" };
        let workplace = GitWorkplace::new(folder, self.at("state"), &SessionId::new(session), place);
        workplace.supervisor(supervisor().sandbox(sandbox.clone()))
    }
}

/// A person's shell, with an identity and without anything else of whose machine this is.
pub(crate) fn sh(folder: &Path, command: &str) -> String {
    let output = std::process::Command::new("bash")
        .args(["-ec", command])
        .current_dir(folder)
        .envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_AUTHOR_NAME", "p"), ("GIT_COMMITTER_NAME", "p")])
        .envs([("GIT_AUTHOR_EMAIL", "p@example.invalid"), ("GIT_COMMITTER_EMAIL", "p@example.invalid")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// The sandboxes that can be had on this machine, each of which has to do.
pub(crate) async fn sandboxes() -> Vec<Sandbox> {
    sandboxed::sandboxes(false, TreeLimits::default()).await
}

/// The best of them: for what doesn't depend on the kind.
pub(crate) async fn sandbox() -> Sandbox {
    sandboxes().await.swap_remove(0)
}

pub(crate) async fn bash(workplace: &GitWorkplace, agent: &str, command: &str) -> Output {
    let toolbox: Arc<dyn Toolbox> = workplace.open(&name(agent)).await.unwrap();
    call(&toolbox, "bash", json!({"command": command})).await
}

pub(crate) async fn ended(workplace: &GitWorkplace, agent: &str) -> Changes {
    workplace.run_ended(&name(agent), 1).await.unwrap()
}

pub(crate) const ME: &str = "git -c user.name=w -c user.email=w@w";
