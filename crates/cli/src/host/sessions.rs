//! The sessions that live in this process: beginning one, taking one up, adding agents.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::SpawnError;
use midturn_core::engine::ports::archive::SessionSummary;
use midturn_core::engine::ports::{Archive, Observer};
use midturn_core::fail;
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_server::{Feed, Host, HostError, Live, Metrics, NewAgent, NewSession};
use midturn_store::SqlArchive;
use midturn_tools::leftovers;
use parking_lot::Mutex;

use super::carry;
use super::holding::Holding;
use crate::args::LayerArgs;
use crate::env::Env;
use crate::failure::Failure;
use crate::run::models::Earlier;
use crate::run::prepare::{self, Prepared};
use crate::run::session_id;
use crate::run::team::Team;
use crate::run::watcher::LeadWatcher;
use crate::telemetry::Telemetry;

/// How many sessions live at once. When one more comes, the one that has rested longest is
/// let go: it is stored, and `resume` brings it back.
const LIVE_MAX: usize = 64;

/// A session, and what its process needs besides to follow it.
#[derive(Clone)]
pub struct Begun {
    /// The session.
    pub live: Live,
    /// Its lead.
    pub lead: AgentName,
    /// The lead's last word.
    pub watcher: Arc<LeadWatcher>,
    team: Arc<Team>,
}

/// Carries sessions.
pub struct Carrier {
    holding: Holding,
    /// The store as sessions see it.
    archive: Arc<dyn Archive>,
    env: Env,
    /// What is laid over the configuration of sessions that come through the interface.
    layer: LayerArgs,
    metrics: Arc<Metrics>,
    telemetry: Option<Telemetry>,
    sessions: Mutex<Vec<Begun>>,
    /// Sessions begin and are taken up one at a time, so that none is taken up twice.
    turn: tokio::sync::Mutex<()>,
    served: bool,
}

impl Carrier {
    /// Carries sessions that are kept in this store.
    pub fn new(holding: Holding, env: &Env, layer: &LayerArgs) -> Self {
        let metrics = Metrics::default();
        let counted = holding.store.clone();
        metrics.stale_writes_from(move || counted.stale_writes());
        Self {
            archive: seen(&holding.store),
            holding,
            telemetry: Telemetry::from_env(env),
            env: env.clone(),
            layer: layer.clone(),
            metrics: Arc::new(metrics),
            sessions: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            served: false,
        }
    }

    /// It is a daemon: what begins here goes on when it starts again.
    pub fn serving(self) -> Self {
        Self { served: true, ..self }
    }

    /// The figures.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Begins a session with a task for its lead.
    ///
    /// # Errors
    /// [`Failure::Failed`]: the store doesn't take it, or its lead can't be made.
    pub async fn begin_with(
        &self,
        task: &str,
        prepared: Prepared,
        more: Vec<Arc<dyn Observer>>,
    ) -> Result<Begun, Failure> {
        let _turn = self.turn.lock().await;
        self.make_room();
        let record = carry::record(session_id::new(), task, &prepared, self.served);
        let store = self.archive.begin(record.clone()).await.map_err(failed)?;
        fail::point("session_archived");
        let feed = Arc::new(Feed::resumed(0));
        let watcher = Arc::new(LeadWatcher::new(prepared.models.lead.clone()));
        let mut observers = observers(&feed, &watcher, self.metrics.for_session(), more);
        observers.extend(self.telemetry.as_ref().map(|telemetry| telemetry.observer(&record.id)));
        let coordinator = carry::coordinator(&prepared, &record.id, store, observers, None).await?;
        let Prepared { models, team, .. } = prepared;
        let lead = Some(models.lead.clone());
        let live = Live { record, epoch: 1, lead, coordinator, feed };
        let begun = Begun { live, lead: models.lead.clone(), watcher, team: team.clone() };
        self.sessions.lock().push(begun.clone());
        let spec = team.lead(&models.lead, &models.name, task);
        begun.live.coordinator.spawn_agent(spec).await.map_err(failed)?;
        Ok(begun)
    }

    /// Takes a stored session up and starts what was under way. `None`: there is none of that id.
    ///
    /// # Errors
    /// [`Failure::Usage`]: its folder or its configuration is not sound any more.
    /// [`Failure::Failed`]: the store fails.
    pub async fn take_up(
        &self,
        id: &SessionId,
        more: Vec<Arc<dyn Observer>>,
    ) -> Result<Option<(Begun, Vec<AgentName>)>, Failure> {
        let _turn = self.turn.lock().await;
        if let Some(begun) = self.begun(id.as_str()) {
            let resumed = resume_stopped(&begun);
            return Ok(Some((begun, resumed)));
        }
        let Some(looked) = self.archive.journal(id).await.map_err(failed)? else { return Ok(None) };
        // What can be wrong is found before anybody else's writes are fenced off.
        let layer = carry::layer(&looked.record)?;
        let prepared = prepare::prepare(&layer, &self.env, &carry::earlier(&looked))?;
        end_leftovers(id).await?;
        self.make_room();
        let Some(taken) = self.archive.take_up(id).await.map_err(failed)? else { return Ok(None) };
        fail::point("taken_up");
        let feed = Arc::new(Feed::resumed(taken.journal.last_seq));
        let watcher = Arc::new(LeadWatcher::new(prepared.models.lead.clone()));
        let mut observers = observers(&feed, &watcher, self.metrics.for_resumed(&taken.journal), more);
        observers.extend(self.telemetry.as_ref().map(|telemetry| telemetry.resumed(&taken.journal)));
        let record = taken.journal.record.clone();
        let coordinator =
            carry::coordinator(&prepared, id, taken.store, observers, Some(taken.journal)).await?;
        let lead = prepared.models.lead.clone();
        let live = Live { record, epoch: taken.epoch, lead: Some(lead.clone()), coordinator, feed };
        let begun = Begun { live, lead, watcher, team: prepared.team };
        self.sessions.lock().push(begun.clone());
        let working = begun.live.coordinator.go_on().await;
        Ok(Some((begun, working)))
    }

    /// What is kept, the newest first.
    ///
    /// # Errors
    /// [`Failure::Failed`]: the store can't be read.
    pub async fn sessions(&self) -> Result<Vec<SessionSummary>, Failure> {
        self.archive.sessions().await.map_err(failed)
    }

    /// A session that lives here.
    pub fn begun(&self, id: &str) -> Option<Begun> {
        self.sessions.lock().iter().find(|begun| begun.live.record.id.as_str() == id).cloned()
    }

    /// All that live here, in the order in which they began.
    pub fn all(&self) -> Vec<Begun> {
        self.sessions.lock().clone()
    }

    /// Stops all agents of all sessions and waits until their calls have ended: every session
    /// can be resumed.
    pub async fn shutdown(&self) {
        for begun in self.all() {
            begun.live.coordinator.shutdown().await;
        }
    }

    /// Lets the store go. Nothing is recorded from now on.
    pub async fn close(&self) {
        self.holding.store.close().await;
        if let Some(telemetry) = &self.telemetry {
            telemetry.shutdown();
        }
    }

    /// Waits until no agent of any session works.
    pub async fn quiet(&self) {
        for begun in self.all() {
            begun.live.coordinator.quiet().await;
        }
    }

    fn make_room(&self) {
        let rests = |begun: &Begun| !begun.live.coordinator.is_busy();
        let mut sessions = self.sessions.lock();
        if sessions.len() >= LIVE_MAX
            && let Some(at) = sessions.iter().position(rests)
        {
            sessions.remove(at);
        }
    }
}

/// The store, as it is or with a fault that the crash harness plants.
fn seen(store: &SqlArchive) -> Arc<dyn Archive> {
    let archive: Arc<dyn Archive> = Arc::new(store.clone());
    #[cfg(feature = "crash-tests")]
    let archive = crate::faults::around(archive);
    archive
}

fn observers(
    feed: &Arc<Feed>,
    watcher: &Arc<LeadWatcher>,
    figures: Arc<dyn Observer>,
    more: Vec<Arc<dyn Observer>>,
) -> Vec<Arc<dyn Observer>> {
    let own: [Arc<dyn Observer>; 3] = [feed.clone(), watcher.clone(), figures];
    own.into_iter().chain(more).collect()
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::failed(error.to_string())
}

/// A session that lives is resumed by resuming its stopped agents.
fn resume_stopped(begun: &Begun) -> Vec<AgentName> {
    let coordinator = &begun.live.coordinator;
    let names = coordinator.agents().into_iter().map(|agent| agent.name);
    names.filter(|name| coordinator.resume(name.as_str()).unwrap_or(false)).collect()
}

/// What a dead process left running of this session is ended before anything else runs.
async fn end_leftovers(id: &SessionId) -> Result<(), Failure> {
    let ended = leftovers::end(id).await.map_err(|error| {
        Failure::failed(format!(
            "commands of session {id} may still be running, so it doesn't go on: {error}"
        ))
    })?;
    if ended > 0 {
        tracing::warn!(session = %id, ended, "processes that a dead coordinator left were ended");
    }
    Ok(())
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self(match failure {
            Failure::Usage(text) => HostError::Invalid(text),
            Failure::Failed(text) => HostError::Failed(text),
        })
    }
}

/// Carries a failure of ours to the interface: neither type is this module's.
struct Refused(HostError);

impl From<Refused> for HostError {
    fn from(refused: Refused) -> Self {
        refused.0
    }
}

#[async_trait]
impl Host for Carrier {
    fn live(&self) -> Vec<Live> {
        self.all().into_iter().map(|begun| begun.live).collect()
    }

    fn find(&self, id: &str) -> Option<Live> {
        self.begun(id).map(|begun| begun.live)
    }

    async fn begin(&self, session: NewSession) -> Result<Live, HostError> {
        let layer = over(&self.layer, session.folder, session.model, session.set);
        let task = prepare::task(&session.task).map_err(Refused::from)?;
        let prepared = prepare::prepare(&layer, &self.env, &Earlier::default()).map_err(Refused::from)?;
        let begun = self.begin_with(task, prepared, Vec::new()).await.map_err(Refused::from)?;
        Ok(begun.live)
    }

    async fn resume(&self, session: &SessionId) -> Result<(Live, Vec<AgentName>), HostError> {
        let taken = self.take_up(session, Vec::new()).await.map_err(Refused::from)?;
        let nobody = || HostError::NotFound(format!("there is no session `{session}` in this store"));
        let (begun, working) = taken.ok_or_else(nobody)?;
        Ok((begun.live, working))
    }

    async fn spawn(&self, session: &SessionId, agent: NewAgent) -> Result<(), HostError> {
        let begun = self
            .begun(session.as_str())
            .ok_or_else(|| HostError::NotFound(format!("session `{session}` doesn't live here")))?;
        spawn(&begun, agent).await
    }

    fn archive(&self) -> Arc<dyn Archive> {
        self.archive.clone()
    }

    fn store_name(&self) -> String {
        self.holding.store.name().to_owned()
    }
}

fn over(layer: &LayerArgs, folder: Option<PathBuf>, model: Option<String>, set: Vec<String>) -> LayerArgs {
    LayerArgs {
        cwd: folder.or_else(|| layer.cwd.clone()),
        model: model.or_else(|| layer.model.clone()),
        set: layer.set.iter().cloned().chain(set).collect(),
    }
}

async fn spawn(begun: &Begun, agent: NewAgent) -> Result<(), HostError> {
    let coordinator = &begun.live.coordinator;
    let parent = agent.parent.unwrap_or_else(|| begun.lead.clone());
    if coordinator.agent(parent.as_str()).is_none() {
        return Err(HostError::NotFound(format!("there is no agent `{parent}` to be the parent")));
    }
    let mut spec =
        midturn_core::engine::Templates::resolve(&*begun.team, &agent.name, agent.agent.as_deref(), &parent)
            .map_err(HostError::Invalid)?;
    spec.parent = Some(parent);
    spec.prompt = agent.prompt;
    coordinator.spawn_agent(spec).await.map_err(|error| {
        let text = error.to_string();
        match error {
            SpawnError::NameTaken(_) => HostError::Conflict { code: "name_taken", text },
            SpawnError::TooDeep(_) => HostError::Conflict { code: "max_depth", text },
            SpawnError::TooMany(_) => HostError::Conflict { code: "max_agents", text },
            SpawnError::UnknownParent(_) => HostError::NotFound(text),
            SpawnError::Store(_) => HostError::Failed(text),
        }
    })
}
