//! How an agent comes into a session: its name, its place, its limits (semantics.md, sections 7 and 9).

use std::sync::Arc;

use parking_lot::Mutex;

use super::deliver;
use super::journal::Draft;
use super::mailbox::Mailbox;
use super::ports::StoreError;
use super::ports::store::AgentRecord;
use super::session::{AgentCell, AgentState, Session};
use super::templates::AgentSpec;
use crate::rules::event::EventKind;
use crate::rules::id::AgentName;

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

pub(crate) async fn cast(session: &Arc<Session>, spec: AgentSpec) -> Result<(), SpawnError> {
    let depth = depth_of(session, spec.parent.as_ref());
    let cell = enter(session, spec, depth)?;
    let (parent, role, model) = (cell.parent.clone(), cell.role, cell.model.clone());
    let mut draft = Draft::event(cell.place(), EventKind::AgentSpawned { parent, role, model });
    draft.agent(record_of(&cell));
    session.journal.record(draft).await?;
    if cell.has_prompt() {
        deliver::start_prompted(session, &cell);
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

fn record_of(cell: &AgentCell) -> AgentRecord {
    AgentRecord {
        index: cell.index,
        name: cell.name.clone(),
        role: cell.role,
        parent: cell.parent.clone(),
        prompt: cell.state.lock().prompt.clone(),
        model: cell.model.clone(),
        system: cell.system.clone(),
        settings: cell.settings.clone(),
        memo: cell.memo.clone(),
    }
}

/// How deep below a lead an agent with this parent stands.
pub(super) fn depth_of(session: &Session, parent: Option<&AgentName>) -> u32 {
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
        memo: spec.memo,
        mailbox,
        state: Mutex::new(AgentState { prompt: spec.prompt.map(Arc::from), ..AgentState::default() }),
        body: Mutex::default(),
    }
}
