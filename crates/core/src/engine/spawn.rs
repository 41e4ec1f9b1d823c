//! How an agent comes into a session: its name, its place, its limits (semantics.md, sections 7 and 9).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use super::deliver;
use super::fence::Spawning;
use super::journal::Draft;
use super::mailbox::Mailbox;
use super::ports::StoreError;
use super::ports::store::AgentRecord;
use super::session::{AgentCell, AgentState, Session};
use super::templates::AgentSpec;
use crate::rules::event::{EventKind, Place};
use crate::rules::id::AgentName;
use crate::rules::limits::{Budget, Spent, Whose};
use crate::rules::settings::OutOfBounds;

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
    /// Too many below one agent, over its whole life.
    #[error(
        "max_spawns: at most {most} agents may ever be spawned below `{above}`; use those that there are"
    )]
    TooManyBelow {
        /// The limit.
        most: u32,
        /// Whose lineage is full.
        above: AgentName,
    },
    /// Nothing could run with its settings.
    #[error(transparent)]
    Settings(#[from] OutOfBounds),
    /// Who spawns was stopped, or is being stopped.
    #[error("who asks for it, or an agent above it, is being stopped")]
    Stopped,
    /// The session has reached a limit: an agent more could do nothing.
    #[error("limit: the session has reached {0}; a person has to raise it first")]
    Limit(&'static str),
    /// The process ends.
    #[error("Midturn is shutting down; try again after the next start")]
    ShuttingDown,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Adds an agent to a session, within its limits. `spawner` is the run of an agent that asks
/// for it: once that is stopped, nothing is spawned any more. It happens whole, whether or not
/// the asker still waits.
pub(crate) async fn spawn(
    session: &Arc<Session>,
    spec: AgentSpec,
    spawner: Option<CancellationToken>,
) -> Result<(), SpawnError> {
    session.whole(|session| async move { spawn_within_limits(&session, spec, spawner).await }).await
}

async fn spawn_within_limits(
    session: &Arc<Session>,
    spec: AgentSpec,
    spawner: Option<CancellationToken>,
) -> Result<(), SpawnError> {
    if let Some(parent) = spec.parent.as_ref().filter(|parent| session.agent(parent.as_str()).is_none()) {
        return Err(SpawnError::UnknownParent(parent.clone()));
    }
    let checks = |spec: &AgentSpec, depth| {
        let above = lineage(session, spec.parent.as_ref()).map(|cell| cell.name.clone());
        if session.is_shutting_down() {
            return Err(SpawnError::ShuttingDown);
        }
        if spawner.is_some_and(|run| run.is_cancelled()) || session.fences.hold(above) {
            return Err(SpawnError::Stopped);
        }
        if let Some(limit) = session.budget.reached() {
            return Err(SpawnError::Limit(limit));
        }
        within_limits(session, spec, depth)
    };
    add(session, spec, checks).await
}

/// Adds an agent that a session begins with.
pub(crate) async fn cast(session: &Arc<Session>, spec: AgentSpec) -> Result<(), SpawnError> {
    session.whole(|session| async move { add(&session, spec, |_, _| Ok(())).await }).await
}

async fn add(
    session: &Arc<Session>,
    spec: AgentSpec,
    checks: impl FnOnce(&AgentSpec, u32) -> Result<(), SpawnError>,
) -> Result<(), SpawnError> {
    spec.settings.check()?;
    let (record, cell, spawning) = enter(session, spec.without(&session.secrets), checks)?;
    let (parent, model, prompt) = (record.parent.clone(), record.model.clone(), record.prompt.clone());
    let spawned = EventKind::AgentSpawned { parent, role: record.role, model, prompt };
    let mut draft = Draft::event(Place::of(&cell.name, 0, 0), spawned);
    draft.agent(record);
    if let Err(error) = session.journal.record(draft).await {
        leave(session, &cell);
        return Err(error.into());
    }
    drop(spawning);
    if cell.has_prompt() {
        deliver::start_driver(session, &cell);
    }
    Ok(())
}

/// Takes an agent out again that could not be recorded.
fn leave(session: &Session, cell: &AgentCell) {
    let mut order = session.order.lock();
    order.retain(|name| *name != cell.name);
    session.agents.remove(&cell.name);
}

/// Gives the agent its name, if it is free, and its place in the session's order. Looking at
/// the limits and taking a place are one step, however many spawn at once.
fn enter(
    session: &Session,
    spec: AgentSpec,
    checks: impl FnOnce(&AgentSpec, u32) -> Result<(), SpawnError>,
) -> Result<(AgentRecord, Arc<AgentCell>, Spawning), SpawnError> {
    let depth = depth_of(session, spec.parent.as_ref());
    let mut order = session.order.lock();
    checks(&spec, depth)?;
    if session.agents.contains_key(&spec.name) {
        return Err(SpawnError::NameTaken(spec.name));
    }
    let index = u32::try_from(order.len()).unwrap_or(u32::MAX);
    let record = AgentRecord {
        index,
        settings: session.shared(spec.settings, order.last()),
        name: spec.name,
        role: spec.role,
        parent: spec.parent,
        prompt: spec.prompt.map(Arc::from),
        model: spec.model.map(Arc::from),
        system: spec.system.into(),
        memo: spec.memo,
    };
    let cell = Arc::new(cell_of(record.clone(), depth));
    // The run of a prompt is there from now on: whoever stops the agent finds it.
    if cell.has_prompt() {
        cell.mailbox.prompt();
    }
    count_below(session, cell.parent.as_ref());
    order.push(cell.name.clone());
    session.agents.insert(cell.name.clone(), cell.clone());
    let spawning = session.spawns.begin(&cell.name);
    Ok((record, cell, spawning))
}

fn within_limits(session: &Session, spec: &AgentSpec, depth: u32) -> Result<(), SpawnError> {
    let settings = &session.settings;
    if depth > settings.max_depth {
        return Err(SpawnError::TooDeep(settings.max_depth));
    }
    let most = settings.max_agents as usize;
    // Closed ones are counted out only when that can matter: who counts them all for each
    // new one looks n² times for n agents.
    let is_full = || session.agents.iter().filter(|cell| !cell.is_closed()).count() >= most;
    if session.agents.len() >= most && is_full() {
        return Err(SpawnError::TooMany(settings.max_agents));
    }
    let full = |cell: &Arc<AgentCell>| cell.below.load(Ordering::Relaxed) >= settings.max_spawns;
    match lineage(session, spec.parent.as_ref()).find(full) {
        Some(above) => Err(SpawnError::TooManyBelow { most: settings.max_spawns, above: above.name.clone() }),
        None => Ok(()),
    }
}

/// An agent and all above it, as far as they are spawned.
fn lineage<'a>(
    session: &'a Session,
    from: Option<&AgentName>,
) -> impl Iterator<Item = Arc<AgentCell>> + use<'a> {
    let cell = move |name: &AgentName| session.agent(name.as_str());
    std::iter::successors(from.and_then(cell), move |below| below.parent.as_ref().and_then(cell))
}

/// One more was spawned below all of these. Under the order's lock, or before anybody spawns.
pub(super) fn count_below(session: &Session, parent: Option<&AgentName>) {
    for above in lineage(session, parent) {
        above.below.fetch_add(1, Ordering::Relaxed);
    }
}

/// The cell of an agent whose name is free.
fn cell_of(record: AgentRecord, depth: u32) -> AgentCell {
    let mailbox = if record.model.is_some() { Mailbox::default() } else { Mailbox::of_a_name() };
    let budget = Budget::new(Whose::Agent, record.settings.caps(), Spent::default());
    let state = AgentState { prompt: record.prompt.clone(), budget, ..AgentState::default() };
    AgentCell::new(record, depth, mailbox, state)
}

/// How deep below a lead an agent with this parent stands.
pub(super) fn depth_of(session: &Session, parent: Option<&AgentName>) -> u32 {
    let Some(parent) = parent else { return 0 };
    match session.agent(parent.as_str()) {
        Some(cell) => cell.depth + 1,
        None => 1 + depth_of(session, session.announced.get(parent)),
    }
}
