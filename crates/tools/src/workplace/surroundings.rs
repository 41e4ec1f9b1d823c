//! What the tools of an agent share, made of its place: its root, its environment, its confinement.

use std::path::Path;

use midturn_core::rules::id::AgentName;
use parking_lot::Mutex;

use super::GitWorkplace;
use super::home::lead;
use super::layout::RepositoryLayout;
use super::worktree::Worktree;
use crate::confined::Confined;
use crate::context::ToolContext;
use crate::environment::command_environment;
use crate::root::Root;
use crate::seen::Seen;

impl GitWorkplace {
    pub(super) fn context(
        &self,
        agent: &AgentName,
        worktree: Option<&Worktree>,
        layout: Option<&RepositoryLayout>,
    ) -> Result<ToolContext, String> {
        let folder = worktree.map_or(&self.project, |worktree| &worktree.top);
        let mut root = Root::open(folder)
            .map_err(|error| format!("the folder {} can't be opened: {error}", folder.display()))?;
        let sandbox = self.supervisor.in_force();
        let confined =
            sandbox.as_ref().map(|_| self.confined(agent, root.path(), worktree, layout)).transpose();
        let confined =
            confined.map_err(|error| format!("what its commands may touch can't be determined: {error}"))?;
        if let Some(worktree) = worktree {
            // A folder without a committed file isn't in a worktree yet.
            root = root.below(&worktree.repository.layout.prefix)?;
        }
        let mut environment = command_environment(std::env::vars_os(), &self.reach.environment);
        if let Some(confined) = &confined {
            root = root.hiding(confined.confinement.hidden.clone());
            environment.push(("TMPDIR".into(), confined.confinement.temporary.clone().into()));
            if !sandbox.is_some_and(|sandbox| sandbox.mount_namespace) {
                lead(&mut environment, &confined.confinement.own);
            }
        }
        Ok(ToolContext {
            root,
            limits: self.limits.clone(),
            supervisor: self.supervisor.clone(),
            environment: environment.into(),
            confined,
            edited: Mutex::default(),
            seen: worktree.is_none().then(|| Seen::new(agent.as_str(), &self.together)),
            unread: self.unread.clone(),
            commits: None,
            read_only_git: Vec::new(),
        })
    }

    fn confined(
        &self,
        agent: &AgentName,
        folder: &Path,
        worktree: Option<&Worktree>,
        layout: Option<&RepositoryLayout>,
    ) -> std::io::Result<Confined> {
        let folders = self.folders()?;
        match worktree {
            _ if !self.is_kept() => Ok(folders.unconfined(agent.as_str(), folder)),
            Some(worktree) => folders.in_worktree(agent.as_str(), worktree),
            None => folders.in_project(agent.as_str(), folder, layout),
        }
    }
}
