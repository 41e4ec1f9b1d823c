//! How a session begins, or goes on: what it is made of.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agent;
use super::approvals::Approvals;
use super::coordinator::Coordinator;
use super::journal::{Draft, Journal};
use super::ports::store::MemoryStore;
use super::ports::{Clock, ModelFactory, Observer, RealClock, SessionJournal, Store, StoreError, Workplace};
use super::recovery;
use super::session::Session;
use super::session_budget::SessionBudget;
use super::slots::Slots;
use super::templates::{NoTemplates, Templates};
use crate::rules::approval::Policy;
use crate::rules::event::{EventKind, Place};
use crate::rules::id::{AgentName, SessionId};
use crate::rules::secrets::Secrets;
use crate::rules::settings::{OutOfBounds, Settings};

/// Why a session does not begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// Nothing could run with its settings.
    #[error(transparent)]
    Settings(#[from] OutOfBounds),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a coordinator is made of. Models and a workplace are needed, the rest has defaults.
pub struct Builder {
    session: SessionId,
    settings: Settings,
    secrets: Secrets,
    clock: Option<Arc<dyn Clock>>,
    store: Arc<dyn Store>,
    models: Arc<dyn ModelFactory>,
    workplace: Arc<dyn Workplace>,
    templates: Arc<dyn Templates>,
    observers: Vec<Arc<dyn Observer>>,
    announced: BTreeMap<AgentName, AgentName>,
    virtual_time: bool,
    scenario: Option<Arc<str>>,
    journal: Option<SessionJournal>,
    approvals: Policy,
    slots: Option<Slots>,
}

impl Coordinator {
    /// What a coordinator needs at least: models, and a place for the agents to work in.
    pub fn builder(models: Arc<dyn ModelFactory>, workplace: Arc<dyn Workplace>) -> Builder {
        Builder::new(models, workplace)
    }
}

impl Builder {
    /// Models and a place to work in, and defaults for the rest.
    fn new(models: Arc<dyn ModelFactory>, workplace: Arc<dyn Workplace>) -> Self {
        Self {
            session: SessionId::new("s1"),
            settings: Settings::default(),
            secrets: Secrets::NONE,
            clock: None,
            store: Arc::new(MemoryStore),
            models,
            workplace,
            templates: Arc::new(NoTemplates),
            observers: Vec::new(),
            announced: BTreeMap::new(),
            virtual_time: false,
            scenario: None,
            journal: None,
            approvals: Policy::default(),
            slots: None,
        }
    }

    /// The session's id; `s1` otherwise.
    pub fn session(self, id: SessionId) -> Self {
        Self { session: id, ..self }
    }

    /// The settings of the session (agents bring their own).
    pub fn settings(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// What is taken out of every text that comes into the session, before the model, the
    /// record or anybody else has it; nothing otherwise. What a session that goes on has
    /// recorded already stays as it is.
    pub fn secrets(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// Another clock than the machine's.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// Another store than the one that forgets.
    pub fn store(self, store: Arc<dyn Store>) -> Self {
        Self { store, ..self }
    }

    /// What may run unasked; without it everything may.
    pub fn approvals(self, policy: Policy) -> Self {
        Self { approvals: policy, ..self }
    }

    /// Whose commands wait until one of these is free; without them as many run at once as agents start.
    pub fn slots(self, slots: Slots) -> Self {
        Self { slots: Some(slots), ..self }
    }

    /// What `spawn_agent` can make.
    pub fn templates(self, templates: Arc<dyn Templates>) -> Self {
        Self { templates, ..self }
    }

    /// An agent that is still to be spawned, and its parent: others may already stand below it.
    pub fn announce(mut self, agent: AgentName, parent: AgentName) -> Self {
        self.announced.insert(agent, parent);
        self
    }

    /// One more who is told of every event.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Said in `session_started`.
    pub fn virtual_time(self, yes: bool) -> Self {
        Self { virtual_time: yes, ..self }
    }

    /// Said in `session_started`: the scenario's path as given.
    pub fn scenario(self, path: impl Into<Arc<str>>) -> Self {
        Self { scenario: Some(path.into()), ..self }
    }

    /// Goes on with a session that was recorded: its agents, conversations, mailboxes and
    /// receipts are there again. Nothing runs before [`Coordinator::go_on`]. The clock given
    /// has to go on too ([`RealClock::since`]).
    pub fn resume(mut self, journal: SessionJournal) -> Self {
        self.session = journal.record.id.clone();
        self.journal = Some(journal);
        self
    }

    /// Begins the session, or goes on with it.
    ///
    /// # Errors
    /// [`StartError::Settings`]: a setting is out of its bounds. [`StartError::Store`]: the begin
    /// can't be recorded.
    pub async fn start(self) -> Result<Coordinator, StartError> {
        self.settings.check()?;
        let clock = self.clock.unwrap_or_else(|| Arc::new(RealClock::start()));
        let (last_seq, lived) =
            self.journal.as_ref().map(|journal| (journal.last_seq, journal.lived)).unwrap_or_default();
        let session = Arc::new(Session {
            id: self.session.clone(),
            budget: SessionBudget::new(self.settings.session, lived, clock.now()),
            fences: Arc::default(),
            spawns: Arc::default(),
            settings: Arc::new(self.settings),
            secrets: self.secrets,
            journal: Journal::new(clock.clone(), self.store, self.observers, last_seq),
            clock,
            models: self.models,
            workplace: self.workplace,
            templates: self.templates,
            agents: DashMap::new(),
            announced: self.announced,
            order: Mutex::default(),
            waits: Mutex::default(),
            approvals: Arc::new(Approvals::new(self.approvals)),
            slots: self.slots,
            urgent: Mutex::default(),
            tasks: TaskTracker::new(),
            drive: |session, cell| Box::pin(async move { agent::drive(&session, &cell).await }),
            shutting_down: CancellationToken::new(),
            expiries: AtomicU64::new(0),
            busy: AtomicUsize::new(0),
            rested: Notify::new(),
            left: Mutex::default(),
            spawn_spec: OnceLock::new(),
        });
        let version = env!("CARGO_PKG_VERSION").into();
        let begins = match self.journal {
            Some(journal) => {
                recovery::restore(&session, journal);
                EventKind::SessionResumed { version }
            }
            None => EventKind::SessionStarted {
                session: self.session,
                version,
                virtual_time: self.virtual_time,
                scenario: self.scenario,
            },
        };
        session.journal.record(Draft::event(Place::default(), begins)).await?;
        Ok(Coordinator { session })
    }
}
