//! A project, a sandbox around its agents, and a place outside that stays as it is.
#![allow(clippy::unwrap_used, reason = "this is all test code")]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use midturn_core::engine::ports::{Output, Toolbox, Workplace as _};
use midturn_tools::sandbox::Sandbox;
use midturn_tools::workplace::{GitAccess, GitWorkplace, Reach};
use serde_json::json;

use super::project::Project;
use super::{call, name, supervisor};

/// A project whose state is not below `/tmp`, which is the agents' own.
pub(crate) struct Place {
    pub(crate) project: Project,
    pub(crate) outside: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let project = Project::new();
        project.git(&["config", "user.name", "p"]);
        project.git(&["config", "user.email", "p@example.invalid"]);
        Self { project, outside: tempfile::tempdir_in("/var/tmp").unwrap() }
    }

    pub(crate) fn workplace(&self, sandbox: &Sandbox) -> GitWorkplace {
        self.workplace_with(sandbox, GitAccess::Read)
    }

    pub(crate) fn workplace_with(&self, sandbox: &Sandbox, git: GitAccess) -> GitWorkplace {
        let workplace = self.project.workplace().supervisor(supervisor().sandbox(sandbox.clone()));
        let readable = vec![self.outside.path().to_owned()];
        workplace.reach(Reach { git, readable, ..Reach::default() })
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.project.folder.path().canonicalize().unwrap().join(path)
    }

    /// A program that says when it was run.
    pub(crate) fn program(&self) -> PathBuf {
        let program = self.outside.path().join("program");
        let script = format!("#!/bin/sh\necho ran \"$0\" \"$@\" >> {}\ncat\n", self.witness().display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        program
    }

    pub(crate) fn witness(&self) -> PathBuf {
        self.outside.path().join("ran")
    }
}

pub(crate) async fn bash(workplace: &GitWorkplace, agent: &str, command: &str) -> Output {
    let toolbox: Arc<dyn Toolbox> = workplace.open(&name(agent)).await.unwrap();
    call(&toolbox, "bash", json!({"command": command})).await
}
