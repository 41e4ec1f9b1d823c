//! What the interface asks of the sessions that live here.

use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::{Archive, Diff, Merge};
use midturn_core::engine::{SpawnError, Templates};
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_server::{Entered, Host, HostError, Joined, Live, NewAgent, Script};
use midturn_wire::replay::Played;
use midturn_wire::session::{NewSession, Remove, Removed};

use super::{Audience, Begun, Carrier};
use crate::args::LayerArgs;
use crate::host::what_if;
use crate::notify::Telling;
use crate::run::models::Earlier;
use crate::run::prepare;

#[async_trait]
impl Host for Carrier {
    fn live(&self) -> Vec<Live> {
        self.all().into_iter().map(|begun| begun.live).collect()
    }

    fn find(&self, id: &str) -> Option<Live> {
        self.begun(id).map(|begun| begun.live)
    }

    fn joined(&self) -> Vec<Arc<dyn Joined>> {
        self.joined.live()
    }

    fn unseen(&self, session: &SessionId, need: String) {
        Telling::unseen(self.begun(session.as_str()).and_then(|begun| begun.notifying), need);
    }

    async fn begin(self: Arc<Self>, session: NewSession) -> Result<Entered, HostError> {
        let audience = Audience { answers: session.answers, ..Audience::default() };
        let task = prepare::task(&session.task.0)?.to_owned();
        let layer = over(&self.layer, session);
        let prepared = self.prepare(&layer, &Earlier::default())?;
        let begins = async move { self.begin_with(&task, prepared, audience).await };
        Ok(entered(whole(begins).await?, Vec::new()))
    }

    async fn resume(self: Arc<Self>, session: SessionId, attended: bool) -> Result<Entered, HostError> {
        let audience = Audience { answers: attended, ..Audience::default() };
        let id = session.clone();
        let taken = whole(async move { self.go_on_with(&id, &[], audience).await }).await?;
        let nobody = || HostError::NotFound(format!("there is no session `{session}` in this store"));
        let (begun, working) = taken.ok_or_else(nobody)?;
        Ok(entered(begun, working))
    }

    async fn spawn(&self, session: &SessionId, agent: NewAgent) -> Result<(), HostError> {
        let begun = self
            .begun(session.as_str())
            .ok_or_else(|| HostError::NotFound(format!("session `{session}` doesn't live here")))?;
        let coordinator = &begun.live.coordinator;
        let parent = agent.parent.unwrap_or_else(|| begun.lead.clone());
        if coordinator.agent(parent.as_str()).is_none() {
            return Err(HostError::NotFound(format!("there is no agent `{parent}` to be the parent")));
        }
        let spec = begun.team.resolve(&agent.name, agent.agent.as_deref(), &parent);
        let mut spec = spec.map_err(HostError::Invalid)?;
        spec.parent = Some(parent);
        spec.prompt = agent.prompt;
        coordinator.spawn_agent(spec).await.map_err(refused)
    }

    async fn diff(&self, session: &SessionId, agent: &AgentName) -> Result<Diff, HostError> {
        self.diff_of(session, agent).await
    }

    async fn merge(self: Arc<Self>, session: SessionId, agent: AgentName) -> Result<Merge, HostError> {
        whole(async move { self.merge_of(&session, &agent).await }).await
    }

    async fn remove(self: Arc<Self>, session: SessionId, seen: Remove) -> Result<Removed, HostError> {
        whole(async move { self.remove_of(&session, &seen).await }).await
    }

    async fn play(self: Arc<Self>, script: Script, shift: Vec<String>) -> Result<Played, HostError> {
        what_if::play(&*self.holding.archive, script, shift).await
    }

    fn archive(&self) -> Arc<dyn Archive> {
        self.holding.archive.clone()
    }

    fn safety(&self) -> String {
        let sessions = self.sessions.all();
        let all: Vec<(&str, String)> =
            sessions.iter().map(|begun| (begun.live.record.id.as_str(), begun.safety.to_string())).collect();
        match (all.first(), &self.safety) {
            (None, None) => "no session lives here".to_owned(),
            (None, Some(safety)) => safety.to_string(),
            (Some((_, one)), _) if all.iter().all(|(_, line)| line == one) => one.clone(),
            (Some(_), _) => {
                let lines: Vec<String> =
                    all.iter().map(|(id, line)| format!("session {id}: {line}")).collect();
                lines.join(" | ")
            }
        }
    }
}

/// Does something to its end, whether or not the asker still waits for it then: a session that
/// is half begun would be nobody's.
async fn whole<T: Send + 'static>(
    work: impl Future<Output = Result<T, HostError>> + Send + 'static,
) -> Result<T, HostError> {
    let done = tokio::spawn(work).await;
    done.unwrap_or_else(|error| Err(HostError::Failed(format!("internal error: {error}"))))
}

fn entered(begun: Begun, working: Vec<AgentName>) -> Entered {
    Entered { live: begun.live, working, attached: begun.attached }
}

fn over(layer: &LayerArgs, session: NewSession) -> LayerArgs {
    let NewSession { folder, model, set, .. } = session;
    LayerArgs {
        cwd: folder.map(|folder| folder.0.into()).or_else(|| layer.cwd.clone()),
        model: model.map(|model| model.0).or_else(|| layer.model.clone()),
        set: layer.set.iter().cloned().chain(set.into_iter().map(|set| set.0)).collect(),
    }
}

/// Why an agent is not spawned, with the code that programs read.
fn refused(error: SpawnError) -> HostError {
    let text = error.to_string();
    match error {
        SpawnError::NameTaken(_) => HostError::Conflict { code: "name_taken", text },
        SpawnError::TooDeep(_) => HostError::Conflict { code: "max_depth", text },
        SpawnError::TooMany(_) => HostError::Conflict { code: "max_agents", text },
        SpawnError::TooManyBelow { .. } => HostError::Conflict { code: "max_spawns", text },
        SpawnError::Limit(_) => HostError::Conflict { code: "limit", text },
        SpawnError::ShuttingDown => HostError::ShuttingDown(text),
        SpawnError::Stopped => HostError::Conflict { code: "stopped", text },
        SpawnError::Settings(_) => HostError::Invalid(text),
        SpawnError::UnknownParent(_) => HostError::NotFound(text),
        SpawnError::Store(_) => HostError::Failed(text),
    }
}
