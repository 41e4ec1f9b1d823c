//! Stop, close and shutdown (semantics.md, section 6).
//!
//! All of them cancel first, everybody who is meant and without a wait in between; then they
//! record, all of it at once; then they wait where they do. Each is a task of the session: it
//! happens whole, whether or not the asker still waits for the answer.

use std::sync::Arc;

use super::deliver::start_driver;
use super::fence::Around;
use super::journal::Draft;
use super::mailbox::{StopOrder, Stopped};
use super::ports::StoreError;
use super::session::{AgentCell, Session};
use crate::rules::event::{EventKind, Halt, Scope};
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
    /// The agent has reached a limit, so it can't be resumed.
    #[error("`{name}` has reached its limit {limit}; raise that first")]
    Limit {
        /// The agent.
        name: AgentName,
        /// The setting.
        limit: &'static str,
    },
    /// The process ends: nobody is resumed any more.
    #[error("Midturn is shutting down; try again after the next start")]
    ShuttingDown,
    /// It has acted, and could not be recorded: after a crash it may not have happened.
    #[error("it has acted and is not recorded: {0}")]
    Store(#[from] StoreError),
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
pub(super) fn allowed(session: &Session, name: &str, by: &Sender) -> Result<Arc<AgentCell>, StopError> {
    let cell = session.agent(name).ok_or_else(|| StopError::UnknownAgent(name.chars().take(80).collect()))?;
    match by {
        Sender::Agent(above) if !session.is_ancestor(above, &cell) => {
            Err(StopError::NotAllowed { by: by.to_string(), name: cell.name.clone() })
        }
        Sender::Agent(_) | Sender::User | Sender::Coordinator(_) => Ok(cell),
    }
}

/// Agents that were cancelled together, and what each one's mailbox gave back.
struct Halted {
    order: StopOrder,
    scope: Scope,
    cells: Vec<(Arc<AgentCell>, Stopped)>,
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
    let order = StopOrder { halt: Halt::Stop, by, run };
    session
        .whole(|session| async move {
            let _fence = (scope == Scope::Subtree).then(|| session.fence(Around::Subtree(root.name.clone())));
            let first = root.mailbox.stop(order.clone());
            if let (Some(current), Some(asked)) = (first.stale, run) {
                return Err(StopError::StaleRun { asked, current });
            }
            let below = match scope {
                Scope::Agent => Vec::new(),
                Scope::Subtree => session.subtree(&root.name).split_off(1),
            };
            let order = StopOrder { run: None, ..order };
            // All before the record: with a slow store the last would work on for as long as it takes.
            let mut halted = Halted { order, scope, cells: vec![(root, first)] };
            halted.cancel(below);
            Ok(halted.record(&session).await?)
        })
        .await
}

/// Stops everybody, as a person does who stops each of them.
pub(crate) async fn stop_all(session: &Arc<Session>, by: Sender) -> Result<StopReply, StopError> {
    let order = StopOrder { by, halt: Halt::Stop, run: None };
    session
        .whole(|session| async move {
            let _fence = session.fence(Around::All);
            let mut halted = Halted { order, scope: Scope::Subtree, cells: Vec::new() };
            halted.cancel(session.in_order());
            Ok(halted.record(&session).await?)
        })
        .await
}

/// Stops everybody, because the process ends. From its first moment on nothing is accepted and
/// nobody is woken. It returns no mail, and what asks for a run asks again at the next start.
pub(crate) async fn shut_down(session: &Arc<Session>) -> StopReply {
    session.shutting_down.cancel();
    let order = StopOrder { by: Sender::User, halt: Halt::Shutdown, run: None };
    session
        .whole(|session| async move {
            // It stays: nobody comes into a session that has ended.
            std::mem::forget(session.fence(Around::All));
            let mut halted = Halted { order, scope: Scope::Subtree, cells: Vec::new() };
            halted.cancel(session.in_order());
            let reply = halted.record(&session).await.unwrap_or_else(|error| {
                tracing::error!(%error, "a shutdown is not recorded: what it ends is lost as in a crash");
                StopReply::default()
            });
            session.quiet().await;
            reply
        })
        .await
}

impl Halted {
    /// Cancels these agents' runs, without a wait between two of them.
    fn cancel(&mut self, cells: Vec<Arc<AgentCell>>) {
        for cell in cells {
            let stopped = cell.mailbox.stop(self.order.clone());
            self.cells.push((cell, stopped));
        }
    }

    /// Records what was cancelled or closed, all of it at once. Where nothing has changed, nothing
    /// is told.
    async fn record(self, session: &Arc<Session>) -> Result<StopReply, StoreError> {
        let Self { order, scope, cells } = self;
        let closes = order.halt == Halt::Close;
        let returned = if closes { ReturnReason::Closed } else { ReturnReason::Stopped };
        let mut reply = StopReply::default();
        let mut draft = Draft::default();
        let mut tellings = Vec::new();
        for (cell, mut stopped) in cells.into_iter().filter(|(_, stopped)| stopped.changed) {
            can_be_told(session, &cell, &stopped).await;
            if closes && stopped.at_rest {
                draft.returns(&stopped.returned, returned, &cell.place());
                draft.tell(cell.place(), EventKind::AgentClosed {});
            } else {
                told(&mut draft, &cell, &order, scope, &stopped, returned);
            }
            tellings.push(stopped.telling.take());
            reply.stopped.push(cell.name.clone());
            reply.still_queued.append(&mut stopped.still_queued);
        }
        let recorded = session.journal.record(draft).await;
        // Only now may the runs end for whoever reads the events.
        drop(tellings);
        recorded.map(|()| reply)
    }
}

/// Nothing can be told of an agent before it is told that there is one. A run that a shutdown had
/// put off begins, so that it can end.
async fn can_be_told(session: &Arc<Session>, cell: &Arc<AgentCell>, stopped: &Stopped) {
    session.spawns.ended(&cell.name).await;
    if stopped.begins {
        start_driver(session, cell);
    }
}

/// What is told of a stop: that it was asked for, and what goes back.
pub(super) fn told(
    draft: &mut Draft,
    cell: &AgentCell,
    order: &StopOrder,
    scope: Scope,
    stopped: &Stopped,
    returned: ReturnReason,
) {
    let place = cell.place();
    let kind = EventKind::StopRequested {
        by: order.by.to_string(),
        scope,
        reason: order.halt,
        still_queued: stopped.still_queued.clone(),
    };
    draft.tell(place.clone(), kind);
    draft.returns(&stopped.returned, returned, &place);
}

/// Closes an agent and all below it, leaves first. From now on their mail is returned.
pub(crate) async fn close(
    session: &Arc<Session>,
    name: &str,
    by: Sender,
) -> Result<Vec<AgentName>, StopError> {
    let root = allowed(session, name, &by)?;
    let order = StopOrder { halt: Halt::Close, by, run: None };
    session
        .whole(|session| async move {
            let _fence = session.fence(Around::Subtree(root.name.clone()));
            let cells = session.subtree(&root.name).into_iter().rev();
            let cells = cells.map(|cell| (cell.clone(), cell.mailbox.close(order.clone()))).collect();
            let closed = Halted { order, scope: Scope::Subtree, cells }.record(&session).await?;
            Ok(closed.stopped)
        })
        .await
}

/// Tells that an agent is closed whose run a close has ended, once it rests for good.
pub(crate) async fn tell_closed(session: &Session, cell: &AgentCell, standing: Standing) {
    if standing == Standing::Resting(Rest::Closed)
        && let Err(error) =
            session.journal.record(Draft::event(cell.place(), EventKind::AgentClosed {})).await
    {
        tracing::error!(%error, agent = %cell.name, "that an agent is closed is not recorded");
    }
}
