//! A process with scripted agents.

use std::sync::Arc;

use async_trait::async_trait;
use midturn_conformance::memory::Memory;
use midturn_core::engine::ports::archive::SessionRecord;
use midturn_core::engine::ports::{Archive, Diff, Merge, RealClock};
use midturn_core::engine::scripted::{ScriptedModels, Scripts, SimulatedTools};
use midturn_core::engine::{AgentSpec, Coordinator, SpawnError};
use midturn_core::rules::approval::Policy;
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_core::rules::mail::Role;
use midturn_server::{Entered, Feed, Host, HostError, Live, NewAgent, Script};
use midturn_wire::replay::Played;
use midturn_wire::session::{NewSession, Remove, Removed};
use parking_lot::Mutex;

use super::name;

/// The process.
pub struct TestHost {
    pub archive: Arc<Memory>,
    pub live: Mutex<Vec<Live>>,
    pub scripts: Scripts,
    /// What sessions that begin from now on may do unasked.
    pub policy: Mutex<Policy>,
}

/// The record of a session of that id.
pub fn record(id: &str, title: &str) -> SessionRecord {
    SessionRecord {
        id: SessionId::new(id),
        began_at: 1_795_000_000_000_000,
        folder: "/project".to_owned(),
        title: title.to_owned(),
        memo: serde_json::Value::Null,
    }
}

impl TestHost {
    pub fn new(archive: Arc<Memory>, scripts: Scripts) -> Self {
        Self { archive, live: Mutex::default(), scripts, policy: Mutex::default() }
    }

    /// A session with an idle lead and an idle worker below it.
    pub async fn start_session(&self, id: &str) -> Live {
        let policy = self.policy.lock().clone();
        self.start_with(id, policy).await
    }

    /// The same, where not everything runs unasked.
    pub async fn start_with(&self, id: &str, policy: Policy) -> Live {
        let store = self.archive.add(record(id, "a task"));
        let feed = Arc::new(Feed::default());
        let clock = Arc::new(RealClock::start());
        let models = Arc::new(ScriptedModels::new(clock.clone(), self.scripts.clone()));
        let tools = Arc::new(SimulatedTools::new(clock.clone(), self.scripts.clone()));
        let builder = Coordinator::builder(models, tools).session(SessionId::new(id)).clock(clock);
        let coordinator =
            builder.approvals(policy).store(store).observer(feed.clone()).start().await.unwrap();
        let lead = AgentSpec { role: Role::Lead, ..AgentSpec::new(name("lead"), "scripted") };
        let worker = AgentSpec { parent: Some(name("lead")), ..AgentSpec::new(name("worker"), "scripted") };
        coordinator.spawn_agent(lead).await.unwrap();
        coordinator.spawn_agent(worker).await.unwrap();
        let record = record(id, "a task");
        let shared = (id != "s1").then(|| "all agents work in this one folder".to_owned());
        self.enter(Live { record, epoch: 1, lead: Some(name("lead")), shared, coordinator, feed })
    }

    /// A session that lives from now on.
    pub fn enter(&self, live: Live) -> Live {
        self.live.lock().push(live.clone());
        live
    }
}

#[async_trait]
impl Host for TestHost {
    fn live(&self) -> Vec<Live> {
        self.live.lock().clone()
    }

    fn find(&self, id: &str) -> Option<Live> {
        self.live.lock().iter().find(|live| live.record.id.as_str() == id).cloned()
    }

    async fn begin(self: Arc<Self>, session: NewSession) -> Result<Entered, HostError> {
        if session.model.is_some() {
            return Err(HostError::Invalid("there is only the scripted model; leave `model` out".to_owned()));
        }
        let number = self.live.lock().len() + 1;
        let live = self.start_session(&format!("s{number}")).await;
        let attached = session.answers.then(|| Arc::new(live.coordinator.attach()));
        Ok(Entered { live, working: Vec::new(), attached })
    }

    async fn resume(self: Arc<Self>, session: SessionId, _: bool) -> Result<Entered, HostError> {
        let text = format!("`{session}` can't be taken up here: its models are gone");
        Err(HostError::Conflict { code: "not_resumable", text })
    }

    async fn spawn(&self, session: &SessionId, agent: NewAgent) -> Result<(), HostError> {
        let live = self.find(session.as_str());
        let live = live.ok_or_else(|| HostError::NotFound(format!("`{session}` is gone")))?;
        if agent.agent.is_some() {
            return Err(HostError::Invalid("there are no definitions; leave `agent` out".to_owned()));
        }
        let parent = agent.parent.or(Some(name("lead")));
        let spec = AgentSpec { parent, prompt: agent.prompt, ..AgentSpec::new(agent.name, "scripted") };
        live.coordinator.spawn_agent(spec).await.map_err(|error| match error {
            SpawnError::Store(_) => HostError::Failed(error.to_string()),
            SpawnError::ShuttingDown => HostError::ShuttingDown(error.to_string()),
            SpawnError::UnknownParent(_) | SpawnError::Settings(_) => HostError::Invalid(error.to_string()),
            _ => HostError::Conflict { code: "not_spawned", text: error.to_string() },
        })
    }

    async fn diff(&self, _: &SessionId, agent: &AgentName) -> Result<Diff, HostError> {
        Err(HostError::Conflict { code: "no_branch", text: format!("`{agent}` has no branch of its own") })
    }

    async fn merge(self: Arc<Self>, _: SessionId, agent: AgentName) -> Result<Merge, HostError> {
        Err(HostError::Conflict { code: "no_branch", text: format!("`{agent}` has no branch of its own") })
    }

    async fn play(self: Arc<Self>, _: Script, _: Vec<String>) -> Result<Played, HostError> {
        Err(HostError::Invalid("there are no scenarios here".to_owned()))
    }

    async fn remove(self: Arc<Self>, session: SessionId, _: Remove) -> Result<Removed, HostError> {
        if self.find(session.as_str()).is_some() {
            return Err(HostError::Conflict { code: "already_live", text: format!("{session} is live") });
        }
        Ok(Removed { session: true, branches: 0, folders: 0, bytes: 0 })
    }

    fn archive(&self) -> Arc<dyn Archive> {
        self.archive.clone()
    }

    fn safety(&self) -> String {
        "mode auto; sandbox: none".to_owned()
    }
}
