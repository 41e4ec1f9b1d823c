//! What the process that holds a project's store does with a session that nobody carries: it shows, merges and removes
//! what is left of it. Nobody takes that session up meanwhile: its agents would work in the same folders.

use midturn_core::engine::ports::{Diff, Merge, ToolError, Workplace as _};
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_core::rules::mail::{Rest, Standing};
use midturn_server::HostError;
use midturn_wire::session::{Remove, Removed};

use super::Carrier;
use crate::afterwards::{self, Stored};
use crate::failure::Failure;

impl Carrier {
    /// As `Host::diff`.
    pub(super) async fn diff_of(&self, session: &SessionId, agent: &AgentName) -> Result<Diff, HostError> {
        let _turn = self.turn.lock().await;
        if let Some(begun) = self.begun(session.as_str()) {
            let coordinator = begun.live.coordinator;
            let has_branch = coordinator.agent(agent.as_str()).is_some_and(|agent| agent.branch.is_some());
            return coordinator.diff(agent).await.map_err(|error| no_diff(&error, has_branch));
        }
        let Stored { workplace, .. } = self.stored(session).await?;
        let has_branch = workplace.branch(agent).is_some();
        workplace.diff(agent).await.map_err(|error| no_diff(&error, has_branch))
    }

    /// As `Host::merge`.
    pub(super) async fn merge_of(&self, session: &SessionId, agent: &AgentName) -> Result<Merge, HostError> {
        let _turn = self.turn.lock().await;
        if let Some(begun) = self.begun(session.as_str()) {
            let coordinator = begun.live.coordinator;
            let has_branch = coordinator.agent(agent.as_str()).is_some_and(|agent| agent.branch.is_some());
            return coordinator.merge(agent).await.map_err(|error| no_diff(&error, has_branch));
        }
        let Stored { workplace, .. } = self.stored(session).await?;
        let has_branch = workplace.branch(agent).is_some();
        workplace.merge(agent).await.map_err(|error| no_diff(&error, has_branch))
    }

    /// As `Host::remove`. A session that lives here goes only if all of its agents are closed.
    pub(super) async fn remove_of(&self, session: &SessionId, seen: &Remove) -> Result<Removed, HostError> {
        let _turn = self.turn.lock().await;
        if let Some(begun) = self.begun(session.as_str()) {
            let agents = begun.live.coordinator.agents();
            if agents.iter().any(|agent| agent.standing != Standing::Resting(Rest::Closed)) {
                let text = format!("session {session} is live: close its lead first");
                return Err(HostError::Conflict { code: "already_live", text });
            }
            self.let_go(&begun).await;
        }
        let stored = self.stored(session).await?;
        afterwards::remove_as_seen(&*self.holding.archive, &stored, seen).await
    }

    /// A session that nobody carries, and the places of its agents.
    async fn stored(&self, session: &SessionId) -> Result<Stored, HostError> {
        let nobody = || HostError::NotFound(format!("there is no session `{session}` in this store"));
        let journal = self.holding.archive.journal(session).await.map_err(Failure::failed)?;
        let journal = journal.ok_or_else(nobody)?;
        let project = &self.holding.project;
        let terms = Stored::terms(project, &journal, &self.again, &self.env)?;
        let safety = self.safety_of(&terms.config).await?;
        Ok(Stored::on(project, journal, &terms, &safety)?)
    }
}

/// Why there is neither diff nor merge: git fails, or there is no branch.
fn no_diff(error: &ToolError, has_branch: bool) -> HostError {
    let code = if has_branch { "git_failed" } else { "no_branch" };
    HostError::Conflict { code, text: error.to_string() }
}
