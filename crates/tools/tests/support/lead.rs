//! A project whose lead works in its folder, in a sandbox, and commits by the tool.
#![allow(clippy::unwrap_used, reason = "this is all test code")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use midturn_core::engine::ports::{Output, Toolbox, Workplace as _};
use midturn_tools::sandbox::Sandbox;
use midturn_tools::workplace::{GitAccess, GitWorkplace, Reach};
use serde_json::{Value, json};

use super::project::Project;
use super::{call, name, supervisor};

/// A project of a person's, and its lead.
pub(crate) struct Place {
    pub(crate) project: Project,
    pub(crate) workplace: GitWorkplace,
    pub(crate) lead: Arc<dyn Toolbox>,
}

impl Place {
    pub(crate) async fn new(sandbox: &Sandbox) -> Self {
        Self::of(Project::new(), sandbox, |_| {}).await
    }

    /// With what a person prepared.
    pub(crate) async fn of(project: Project, sandbox: &Sandbox, prepare: impl FnOnce(&Project)) -> Self {
        for (key, value) in
            [("user.name", "p"), ("user.email", "p@example.invalid"), ("core.checkStat", "minimal")]
        {
            project.git(&["config", key, value]);
        }
        prepare(&project);
        let folder = project.folder.path().to_owned();
        Self::in_folder(project, &folder, sandbox, GitAccess::Read).await
    }

    pub(crate) async fn in_folder(
        project: Project,
        folder: &Path,
        sandbox: &Sandbox,
        git: GitAccess,
    ) -> Self {
        let workplace = project.workplace_in(folder).supervisor(supervisor().sandbox(sandbox.clone()));
        let workplace = workplace.reach(Reach { git, ..Reach::default() });
        let lead = workplace.open(&name("lead")).await.unwrap();
        Self { project, workplace, lead }
    }

    pub(crate) async fn bash(&self, command: &str) -> Output {
        call(&self.lead, "bash", json!({"command": command})).await
    }

    pub(crate) async fn commit(&self, input: Value) -> Output {
        call(&self.lead, "commit", input).await
    }

    pub(crate) async fn committed(&self, input: Value) -> String {
        let output = self.commit(input).await;
        assert!(!output.is_error, "{}", output.text);
        output.text
    }

    pub(crate) async fn refused(&self, input: Value) -> String {
        let head = self.log();
        let output = self.commit(input).await;
        assert!(output.is_error, "{}", output.text);
        assert_eq!(self.log(), head, "{}", output.text);
        output.text
    }

    pub(crate) fn log(&self) -> String {
        self.project.git(&["log", "--format=%s|%an <%ae>|%cn", "--name-status"])
    }

    pub(crate) fn status(&self) -> Vec<String> {
        let status = self.project.git(&["status", "--porcelain"]);
        status.lines().map(|line| line.trim().to_owned()).collect()
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.project.folder.path().join(path)
    }
}
