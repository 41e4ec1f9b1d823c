//! What the tools of an agent share, made of its place: its root, its environment, its confinement.

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use midturn_core::rules::id::AgentName;
use parking_lot::Mutex;

use super::GitWorkplace;
use super::home::lead;
use super::layout::RepositoryLayout;
use super::worktree::Worktree;
use crate::confined::Confined;
use crate::context::ToolContext;
use crate::environment::command_environment;
use crate::network::{self, Gate, Reachable, System};
use crate::root::Root;
use crate::sandbox::{InForce, NetworkState};
use crate::seen::Seen;

/// What of the network the agents of a session may reach, where they are held to a list.
#[derive(Default)]
pub(super) struct WayOut {
    reachable: OnceLock<Arc<Reachable>>,
    /// They can ask a person for more.
    asks: bool,
}

impl GitWorkplace {
    /// With agents who can ask a person for a host: where calls that run something are asked about.
    #[must_use]
    pub fn asks(mut self, asks: bool) -> Self {
        self.way_out.asks = asks;
        self
    }

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
            if !sandbox.as_ref().is_some_and(|sandbox| sandbox.mount_namespace) {
                lead(&mut environment, &confined.confinement.own);
            }
        }
        let gate = sandbox.as_ref().and_then(|sandbox| self.gate(sandbox, &mut environment));
        Ok(ToolContext {
            root,
            limits: self.limits.clone(),
            supervisor: self.supervisor.clone(),
            environment: environment.into(),
            gate,
            confined,
            edited: Mutex::default(),
            seen: worktree.is_none().then(|| Seen::new(agent.as_str(), &self.together)),
            unread: self.unread.clone(),
            commits: None,
            read_only_git: Vec::new(),
        })
    }

    /// An agent's way out, where its commands may reach some hosts, and the variables by which programs find it. What
    /// may be reached is its session's.
    fn gate(&self, sandbox: &InForce, environment: &mut Vec<(OsString, OsString)>) -> Option<Arc<Gate>> {
        let NetworkState::Hosts(hosts) = &sandbox.network else { return None };
        let proxy = network::environment(hosts);
        environment.retain(|(name, _)| proxy.iter().all(|(one, _)| one != name));
        environment.extend(proxy);
        let reachable = self.way_out.reachable.get_or_init(|| Arc::new(Reachable::new(hosts.clone())));
        Some(Arc::new(Gate::new(reachable.clone(), Arc::new(System), self.way_out.asks)))
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
