//! The coordinator: what whoever embeds Midturn holds in hand. Cheap to clone.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use super::journal::{Draft, Journal};
use super::mailbox::{Mailbox, StopOrder};
use super::ports::store::MemoryStore;
use super::ports::{Changes, Clock, ModelFactory, Observer, RealClock, Store, StoreError, Workplace};
use super::receipts::Receipt;
use super::send::{self, Delivery, Message};
use super::session::{AgentCell, AgentState, LastEnd, Session};
use super::stop::{self, StopError, StopReply};
use super::templates::{AgentSpec, NoTemplates, Templates};
use crate::rules::conversation::{InterruptReason, MessageKey};
use crate::rules::event::{EventKind, Place, PlanStep, Scope};
use crate::rules::id::{AgentName, MessageId, SessionId, TurnId};
use crate::rules::mail::{Refusal, ReturnReason, Role, Sender, Standing};
use crate::rules::settings::Settings;

/// Why an agent was not spawned. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpawnError {
    /// Names are used once in a session.
    #[error("the name `{0}` is already used in this session; choose another")]
    NameTaken(AgentName),
    /// The parent is nobody.
    #[error("there is no agent `{0}` to be the parent")]
    UnknownParent(AgentName),
    /// Too deep.
    #[error("max_depth: agents may be nested {0} deep; do the work yourself")]
    TooDeep(u32),
    /// Too many.
    #[error("max_agents: at most {0} agents may be open; close one that is done")]
    TooMany(u32),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a coordinator is made of. Models and a workplace are needed, the rest has defaults.
pub struct Builder {
    session: SessionId,
    settings: Settings,
    clock: Option<Arc<dyn Clock>>,
    store: Arc<dyn Store>,
    models: Arc<dyn ModelFactory>,
    workplace: Arc<dyn Workplace>,
    templates: Arc<dyn Templates>,
    observers: Vec<Arc<dyn Observer>>,
    announced: BTreeMap<AgentName, AgentName>,
    virtual_time: bool,
    scenario: Option<Arc<str>>,
}

impl Builder {
    /// The session's id; `s1` otherwise.
    pub fn session(mut self, id: SessionId) -> Self {
        self.session = id;
        self
    }

    /// The settings of the session (agents bring their own).
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Another clock than the machine's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Another store than the one that forgets.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = store;
        self
    }

    /// What `spawn_agent` can make.
    pub fn templates(mut self, templates: Arc<dyn Templates>) -> Self {
        self.templates = templates;
        self
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
    pub fn virtual_time(mut self, yes: bool) -> Self {
        self.virtual_time = yes;
        self
    }

    /// Said in `session_started`: the scenario's path as given.
    pub fn scenario(mut self, path: impl Into<Arc<str>>) -> Self {
        self.scenario = Some(path.into());
        self
    }

    /// Begins the session.
    pub async fn start(self) -> Result<Coordinator, StoreError> {
        let clock = self.clock.unwrap_or_else(|| Arc::new(RealClock::start()));
        let journal = Journal::new(clock.clone(), self.store, self.observers);
        let started = EventKind::SessionStarted {
            session: self.session.clone(),
            version: env!("CARGO_PKG_VERSION"),
            virtual_time: self.virtual_time,
            scenario: self.scenario,
        };
        journal.record(Draft::event(Place::default(), started)).await?;
        Ok(Coordinator {
            session: Arc::new(Session {
                id: self.session,
                settings: Arc::new(self.settings),
                clock,
                journal,
                models: self.models,
                workplace: self.workplace,
                templates: self.templates,
                agents: DashMap::new(),
                announced: self.announced,
                order: Mutex::default(),
                waits: Mutex::default(),
                urgent: Mutex::default(),
                tasks: TaskTracker::new(),
                expiries: AtomicU64::new(0),
                busy: AtomicUsize::new(0),
                rested: Notify::new(),
                spawn_spec: OnceLock::new(),
            }),
        })
    }
}

/// A session of agents, and everything that can be done to them.
#[derive(Clone)]
pub struct Coordinator {
    session: Arc<Session>,
}

/// What is known of an agent.
#[derive(Clone, Debug)]
pub struct AgentStatus {
    /// Its name.
    pub name: AgentName,
    /// Lead or subagent.
    pub role: Role,
    /// Its parent.
    pub parent: Option<AgentName>,
    /// Its model.
    pub model: Option<Arc<str>>,
    /// What it is doing.
    pub standing: Standing,
    /// Its current or last run.
    pub run: u64,
    /// The turn of that run.
    pub turn: TurnId,
    /// How many messages wait for it.
    pub pending: usize,
    /// How its last run ended.
    pub last_end: Option<LastEnd>,
    /// What its last run changed.
    pub changes: Changes,
    /// Its plan.
    pub plan: Vec<PlanStep>,
}

impl Coordinator {
    /// What a coordinator needs at least: models, and a place for the agents to work in.
    pub fn builder(models: Arc<dyn ModelFactory>, workplace: Arc<dyn Workplace>) -> Builder {
        Builder {
            session: SessionId::new("s1"),
            settings: Settings::default(),
            clock: None,
            store: Arc::new(MemoryStore),
            models,
            workplace,
            templates: Arc::new(NoTemplates),
            observers: Vec::new(),
            announced: BTreeMap::new(),
            virtual_time: false,
            scenario: None,
        }
    }

    /// The session's id.
    pub fn session_id(&self) -> &SessionId {
        &self.session.id
    }

    /// Adds an agent. With a prompt its first run starts at once.
    pub async fn spawn_agent(&self, spec: AgentSpec) -> Result<(), SpawnError> {
        spawn(&self.session, spec).await
    }

    /// Adds an agent that the session begins with: no limit concerns it, and its parent may
    /// be one that is still to be spawned.
    pub async fn cast_agent(&self, spec: AgentSpec) -> Result<(), SpawnError> {
        cast(&self.session, spec).await
    }

    /// The plain form of sending, from a person: `urgent` or the receiver's default.
    pub async fn send_message(&self, to: &str, text: &str, urgent: bool) -> Result<Receipt, Refusal> {
        self.send(Message::new(Sender::User, to, text).urgent(urgent)).await
    }

    /// Sends to one agent. A message to `all` is for [`Coordinator::broadcast`]; here it has
    /// the receipt of the first receiver.
    pub async fn send(&self, message: Message) -> Result<Receipt, Refusal> {
        let nobody = Refusal::UnknownAgent(message.to.clone());
        send::send(&self.session, message)
            .await
            .into_iter()
            .next()
            .map_or(Err(nobody), |delivery| delivery.result)
    }

    /// Sends to whoever the address names: one delivery for each receiver.
    pub async fn broadcast(&self, message: Message) -> Vec<Delivery> {
        send::send(&self.session, message).await
    }

    /// Takes back what is queued and has not acted, from every receiver of the message.
    /// Returns how many mailboxes gave it back; 0 is too late.
    pub async fn withdraw(&self, from: &Sender, id: &MessageId) -> Result<usize, Refusal> {
        withdraw(&self.session, from, id).await
    }

    /// The receipts of a message, one for each receiver.
    pub fn receipts(&self, from: &Sender, id: &MessageId) -> Vec<Receipt> {
        self.session.journal.receipts.of(&MessageKey { from: from.clone(), id: id.clone() })
    }

    /// The mailbox of an agent, to look at.
    pub fn with_mailbox<T>(&self, name: &str, look: impl FnOnce(&Mailbox) -> T) -> Option<T> {
        self.session.agents.get(name).map(|cell| look(&cell.mailbox))
    }

    /// Ends the current run of an agent, and with [`Scope::Subtree`] of all below it.
    pub async fn stop(&self, name: &str, by: Sender, scope: Scope) -> Result<StopReply, StopError> {
        stop::stop(&self.session, name, by, scope).await
    }

    /// Stops the run and starts the next one with a person's message, as one action.
    pub async fn supersede(&self, message: Message) -> Result<Delivery, StopError> {
        stop::supersede(&self.session, message).await
    }

    /// Starts a stopped agent's next run. `false`: it is not stopped, or has nothing to go on with.
    pub fn resume(&self, name: &str) -> Result<bool, StopError> {
        stop::resume(&self.session, name)
    }

    /// Closes an agent and all below it, leaves first; names those it closed.
    pub async fn close(&self, name: &str, by: Sender) -> Result<Vec<AgentName>, StopError> {
        stop::close(&self.session, name, by).await
    }

    /// All agents, in the session's order.
    pub fn agents(&self) -> Vec<AgentStatus> {
        self.session.in_order().iter().map(|cell| status(cell)).collect()
    }

    /// One agent.
    pub fn agent(&self, name: &str) -> Option<AgentStatus> {
        self.session.agent(name).map(|cell| status(&cell))
    }

    /// Waits until no agent works.
    pub async fn quiet(&self) {
        self.session.quiet().await;
    }

    /// Stops all agents and waits until their calls have ended.
    pub async fn shutdown(&self) -> StopReply {
        let order = StopOrder { by: Sender::User, reason: InterruptReason::Shutdown };
        let cells = self.session.in_order();
        let reply = stop::stop_all(&self.session, &cells, &order, Scope::Subtree).await;
        self.quiet().await;
        reply
    }
}

fn status(cell: &AgentCell) -> AgentStatus {
    let state = cell.state.lock();
    AgentStatus {
        name: cell.name.clone(),
        role: cell.role,
        parent: cell.parent.clone(),
        model: cell.model.clone(),
        standing: cell.mailbox.standing(),
        run: cell.mailbox.run(),
        turn: state.turn,
        pending: cell.mailbox.ids().len(),
        last_end: state.last_end.clone(),
        changes: state.changes.clone(),
        plan: state.plan.clone(),
    }
}

/// Adds an agent to a session, within its limits.
pub(crate) async fn spawn(session: &Arc<Session>, spec: AgentSpec) -> Result<(), SpawnError> {
    if let Some(parent) = spec.parent.as_ref().filter(|parent| session.agent(parent.as_str()).is_none()) {
        return Err(SpawnError::UnknownParent(parent.clone()));
    }
    let depth = depth_of(session, spec.parent.as_ref());
    if depth > session.settings.max_depth {
        return Err(SpawnError::TooDeep(session.settings.max_depth));
    }
    let most = session.settings.max_agents as usize;
    // Closed ones are counted out only when that can matter: who counts them all for each
    // new one looks n² times for n agents.
    let is_full = || session.agents.iter().filter(|cell| !cell.is_closed()).count() >= most;
    if session.agents.len() >= most && is_full() {
        return Err(SpawnError::TooMany(session.settings.max_agents));
    }
    cast(session, spec).await
}

async fn cast(session: &Arc<Session>, spec: AgentSpec) -> Result<(), SpawnError> {
    let depth = depth_of(session, spec.parent.as_ref());
    let cell = enter(session, spec, depth)?;
    let (parent, role, model) = (cell.parent.clone(), cell.role, cell.model.clone());
    let kind = EventKind::AgentSpawned { parent, role, model };
    session.journal.record(Draft::event(cell.place(), kind)).await?;
    if cell.has_prompt() {
        send::start_prompted(session, &cell);
    }
    Ok(())
}

/// Gives the agent its name, if it is free, and its place in the session's order.
fn enter(session: &Session, spec: AgentSpec, depth: u32) -> Result<Arc<AgentCell>, SpawnError> {
    let mut order = session.order.lock();
    if session.agents.contains_key(&spec.name) {
        return Err(SpawnError::NameTaken(spec.name));
    }
    let index = u32::try_from(order.len()).unwrap_or(u32::MAX);
    let cell = Arc::new(cell_of(spec, index, depth));
    order.push(cell.name.clone());
    session.agents.insert(cell.name.clone(), cell.clone());
    Ok(cell)
}

/// How deep below a lead an agent with this parent stands.
fn depth_of(session: &Session, parent: Option<&AgentName>) -> u32 {
    let Some(parent) = parent else { return 0 };
    match session.agent(parent.as_str()) {
        Some(cell) => cell.depth + 1,
        None => 1 + depth_of(session, session.announced.get(parent)),
    }
}

fn cell_of(spec: AgentSpec, index: u32, depth: u32) -> AgentCell {
    let mailbox = if spec.model.is_some() { Mailbox::default() } else { Mailbox::of_a_name() };
    AgentCell {
        index,
        name: spec.name,
        role: spec.role,
        parent: spec.parent,
        depth,
        model: spec.model.map(Arc::from),
        system: spec.system.into(),
        settings: Arc::new(spec.settings),
        mailbox,
        state: Mutex::new(AgentState { prompt: spec.prompt.map(Arc::from), ..AgentState::default() }),
        body: Mutex::default(),
    }
}

/// Takes a message back from every mailbox where it is queued and has not acted.
pub(crate) async fn withdraw(
    session: &Arc<Session>,
    from: &Sender,
    id: &MessageId,
) -> Result<usize, Refusal> {
    let key = MessageKey { from: from.clone(), id: id.clone() };
    let receivers = session.journal.receipts.receivers(&key);
    if receivers.is_empty() {
        return Err(Refusal::UnknownMessage(id.clone()));
    }
    let mut returned = 0;
    for name in receivers {
        let Some(cell) = session.agent(name.as_str()) else { continue };
        let taken = send::take_back(session, &cell, from, id, ReturnReason::Withdrawn).await;
        returned += usize::from(taken.is_ok());
    }
    Ok(returned)
}
