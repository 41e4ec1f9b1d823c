//! Stop, supersede, resume and close (semantics.md, section 6).

use std::sync::Arc;

use super::deliver::start_driver;
use super::fence::Around;
use super::journal::Draft;
use super::mailbox::{StopOrder, Stopped};
use super::send::{self, Delivery, Message};
use super::session::{AgentCell, Session};
use crate::rules::conversation::InterruptReason;
use crate::rules::event::{EventKind, Scope};
use crate::rules::id::{AgentName, MessageId, RunId};
use crate::rules::mail::{Refusal, Rest, ReturnReason, Sender, Standing};

/// Why somebody may not stop or close an agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StopError {
    /// Nobody has that name.
    #[error("there is no agent `{0}`")]
    UnknownAgent(String),
    /// Only a person or an ancestor may.
    #[error("`{by}` may not stop `{name}`: only a person or an ancestor may")]
    NotAllowed {
        /// Who asked.
        by: String,
        /// Whom it was about.
        name: AgentName,
    },
    /// Another run is current by now (or was the last one); nothing was stopped.
    #[error("stale_run: run {asked} was meant, and the agent is at run {current}")]
    StaleRun {
        /// The run that was meant.
        asked: RunId,
        /// The current run, or the last one.
        current: RunId,
    },
    /// The message of a supersede was refused; nothing was stopped.
    #[error("nothing was stopped: {0}")]
    Refused(#[from] Refusal),
}

/// What a stop did. It says so when there was nothing to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopReply {
    /// The agents whose run was stopped, or whose next run was taken back.
    pub stopped: Vec<AgentName>,
    /// A person's mail that waits for the next run.
    pub still_queued: Vec<MessageId>,
}

/// The agent, if `by` may stop it.
fn allowed(session: &Session, name: &str, by: &Sender) -> Result<Arc<AgentCell>, StopError> {
    let cell = session.agent(name).ok_or_else(|| StopError::UnknownAgent(name.chars().take(80).collect()))?;
    match by {
        Sender::Agent(above) if !session.is_ancestor(above, &cell) => {
            Err(StopError::NotAllowed { by: by.to_string(), name: cell.name.clone() })
        }
        Sender::Agent(_) | Sender::User | Sender::Coordinator(_) => Ok(cell),
    }
}

fn reason_of(by: &Sender) -> InterruptReason {
    match by {
        Sender::Agent(_) => InterruptReason::StoppedByParent,
        Sender::User | Sender::Coordinator(_) => InterruptReason::UserCancelled,
    }
}

/// Ends the current run of an agent, and of all below it if asked. With `run` only if that
/// is its run.
pub(crate) async fn stop(
    session: &Arc<Session>,
    name: &str,
    by: Sender,
    scope: Scope,
    run: Option<RunId>,
) -> Result<StopReply, StopError> {
    let root = allowed(session, name, &by)?;
    let order = StopOrder { reason: reason_of(&by), by, run };
    let mut reply = StopReply::default();
    let _fence = (scope == Scope::Subtree).then(|| session.fence(Around::Subtree(root.name.clone())));
    let stopped = halt(session, &root, &order, scope, &mut reply).await;
    if let (Some(current), Some(asked)) = (stopped.stale, run) {
        return Err(StopError::StaleRun { asked, current });
    }
    if scope == Scope::Subtree {
        let below = session.subtree(&root.name).split_off(1);
        stop_all(session, &below, &StopOrder { run: None, ..order }, &mut reply).await;
    }
    Ok(reply)
}

/// Stops these agents, in this order. Prompts that have not begun are stopped too: nothing of
/// theirs starts behind the stop.
async fn stop_all(
    session: &Arc<Session>,
    cells: &[Arc<AgentCell>],
    order: &StopOrder,
    reply: &mut StopReply,
) {
    for cell in cells {
        session.spawns.ended(&cell.name).await;
        begin_prompted(session, cell);
        halt(session, cell, order, Scope::Subtree, reply).await;
    }
}

/// Stops everybody, because the process ends.
pub(crate) async fn shut_down(session: &Arc<Session>) -> StopReply {
    let _fence = session.fence(Around::All);
    let order = StopOrder { by: Sender::User, reason: InterruptReason::Shutdown, run: None };
    let mut reply = StopReply::default();
    stop_all(session, &session.in_order(), &order, &mut reply).await;
    session.quiet().await;
    reply
}

/// Makes a run of a prompt that has not begun, so that there is one to stop.
fn begin_prompted(session: &Arc<Session>, cell: &Arc<AgentCell>) {
    if cell.has_prompt() && cell.mailbox.start_idle() {
        start_driver(session, cell);
    }
}

async fn halt(
    session: &Session,
    cell: &AgentCell,
    order: &StopOrder,
    scope: Scope,
    reply: &mut StopReply,
) -> Stopped {
    let mut stopped = cell.mailbox.stop(order.clone());
    if stopped.changed {
        tell(session, cell, order, scope, &mut stopped, ReturnReason::Stopped).await;
        reply.stopped.push(cell.name.clone());
        reply.still_queued.extend(stopped.still_queued.iter().cloned());
    }
    stopped
}

async fn tell(
    session: &Session,
    cell: &AgentCell,
    order: &StopOrder,
    scope: Scope,
    stopped: &mut Stopped,
    returned: ReturnReason,
) {
    let place = cell.place();
    let kind = EventKind::StopRequested {
        by: order.by.to_string(),
        scope,
        still_queued: stopped.still_queued.clone(),
    };
    let mut draft = Draft::event(place.clone(), kind);
    draft.returns(&stopped.returned, returned, &place);
    record(session, draft).await;
    // Now the run may end for whoever reads the events.
    stopped.telling = None;
}

async fn record(session: &Session, draft: Draft) {
    if let Err(error) = session.journal.record(draft).await {
        tracing::error!(%error, "a stop is not recorded");
    }
}

/// Stops the run and starts the next one with a person's message, as one action. On an idle
/// agent it is a message.
pub(crate) async fn supersede(session: &Arc<Session>, mut message: Message) -> Result<Delivery, StopError> {
    let cell = allowed(session, &message.to, &message.from)?;
    message.text = session.secrets.redacted(message.text);
    if let Some(receipt) = send::known(session, &message, &cell)? {
        // The same again: its run was superseded then, and is not a second time.
        let to = cell.name.to_string();
        return Ok(Delivery { to, result: Ok(receipt), too_late_to_supersede: false });
    }
    send::would_accept(&message.text, &cell)?;
    let run = message.expects_run.take();
    let order = StopOrder { by: message.from.clone(), reason: InterruptReason::Superseded, run };
    let mut stopped = cell.mailbox.supersede(order.clone());
    if let (Some(current), Some(asked)) = (stopped.stale, run) {
        return Err(StopError::StaleRun { asked, current });
    }
    if stopped.changed {
        tell(session, &cell, &order, Scope::Agent, &mut stopped, ReturnReason::Superseded).await;
    }
    let refused = || StopError::UnknownAgent(cell.name.to_string());
    send::send(session, message).await.pop().ok_or_else(refused)
}

/// Starts a stopped agent's next run with what is queued. With nothing to answer it only
/// makes the agent one that anybody may wake. `true`: a run starts, now or when the stopped
/// one has ended.
pub(crate) fn resume(session: &Arc<Session>, name: &str) -> Result<bool, StopError> {
    let cell = allowed(session, name, &Sender::User)?;
    match cell.mailbox.standing() {
        Standing::Winding { then: Rest::Stopped, .. } => {
            cell.mailbox.resume();
            Ok(true)
        }
        Standing::Resting(Rest::Stopped) => Ok(resume_stopped(session, &cell)),
        Standing::Running | Standing::Winding { .. } | Standing::Resting(_) => Ok(false),
    }
}

pub(crate) fn resume_stopped(session: &Arc<Session>, cell: &Arc<AgentCell>) -> bool {
    let waits = cell.body.lock().as_ref().is_some_and(|body| body.prompt.awaits_reply());
    if !waits && !cell.mailbox.has_pending_messages() {
        cell.mailbox.unstop();
        return false;
    }
    let starts = cell.mailbox.resume();
    if starts {
        start_driver(session, cell);
    }
    starts
}

/// Closes an agent and all below it, leaves first. From now on their mail is returned.
pub(crate) async fn close(
    session: &Arc<Session>,
    name: &str,
    by: Sender,
) -> Result<Vec<AgentName>, StopError> {
    let root = allowed(session, name, &by)?;
    let order = StopOrder { reason: reason_of(&by), by, run: None };
    let _fence = session.fence(Around::Subtree(root.name.clone()));
    let mut closed = Vec::new();
    for cell in session.subtree(&root.name).iter().rev() {
        session.spawns.ended(&cell.name).await;
        if close_one(session, cell, &order).await {
            closed.push(cell.name.clone());
        }
    }
    Ok(closed)
}

/// `false`: it was closed already.
async fn close_one(session: &Session, cell: &AgentCell, order: &StopOrder) -> bool {
    let mut stopped = cell.mailbox.close(order.clone());
    if stopped.changed && stopped.at_rest {
        let mut draft = Draft::default();
        draft.returns(&stopped.returned, ReturnReason::Closed, &cell.place());
        record(session, draft).await;
        tell_closed(session, cell, cell.mailbox.standing()).await;
    } else if stopped.changed {
        tell(session, cell, order, Scope::Subtree, &mut stopped, ReturnReason::Closed).await;
    }
    stopped.changed
}

/// Tells that an agent is closed, once it rests for good.
pub(crate) async fn tell_closed(session: &Session, cell: &AgentCell, standing: Standing) {
    if standing == Standing::Resting(Rest::Closed) {
        record(session, Draft::event(cell.place(), EventKind::AgentClosed {})).await;
    }
}
