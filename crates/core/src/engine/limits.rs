//! Limits that a person sets while agents live (semantics.md, section 7). The sums are
//! `rules::limits`'; what a request may use is `agent::budget`'s.

use std::sync::Arc;

use super::coordinator::Coordinator;
use super::deliver::start_driver;
use super::journal::Draft;
use super::mailbox::Resume;
use super::ports::StoreError;
use super::resume;
use super::session::{AgentCell, Session};
use crate::rules::event::{EventKind, Place};
use crate::rules::limits::BelowSpent;
use crate::rules::mail::Sender;
use crate::rules::settings::LimitsPatch;

/// Why limits were not set. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RaiseError {
    /// Nobody has that name.
    #[error("there is no agent `{0}`")]
    UnknownAgent(String),
    /// Nothing is named.
    #[error("name at least one of max_turns, max_tokens, max_cost and max_time")]
    Nothing,
    /// More is spent already.
    #[error(transparent)]
    BelowSpent(#[from] BelowSpent),
    /// The process ends.
    #[error("Midturn is shutting down; try again after the next start")]
    ShuttingDown,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Coordinator {
    /// A person sets limits of an agent, or of the session, higher or lower, but never below what
    /// is spent; 0 is no limit. Whom a limit had kept goes on (semantics.md, section 7). It happens
    /// whole, whether or not the asker still waits.
    ///
    /// # Errors
    /// [`RaiseError`]; nothing was changed.
    pub async fn raise(&self, whose: Option<&str>, limits: LimitsPatch) -> Result<(), RaiseError> {
        if self.session.is_shutting_down() {
            return Err(RaiseError::ShuttingDown);
        }
        if limits.is_empty() {
            return Err(RaiseError::Nothing);
        }
        let unknown = |name: &str| RaiseError::UnknownAgent(name.chars().take(80).collect());
        let find = |name| self.session.agent(name).ok_or_else(|| unknown(name));
        let cell = whose.map(find).transpose()?;
        let raises = |session| async move {
            match cell {
                Some(cell) => raise_agent(&session, &cell, limits).await,
                None => raise_session(&session, limits).await,
            }
        };
        self.session.whole(raises).await
    }
}

async fn raise_agent(
    session: &Arc<Session>,
    cell: &Arc<AgentCell>,
    limits: LimitsPatch,
) -> Result<(), RaiseError> {
    cell.state.lock().budget.set(&limits)?;
    session.journal.record(Draft::event(cell.place(), raised(&limits))).await?;
    session.budget.look_again();
    let used_up = cell.state.lock().budget.reached();
    let was = cell.mailbox.limit().filter(|limit| limits.sets(limit) && !limit.contains('.'));
    let lifts = was.is_some() && used_up.is_none();
    if lifts {
        cell.mailbox.lift();
    }
    // Lowered to what is spent; or it is the session's by now that holds the agent.
    if rests_after_a_run(cell) {
        looks(session, cell);
    }
    if lifts {
        lets_go_on(session, cell, was);
    }
    Ok(())
}

async fn raise_session(session: &Arc<Session>, limits: LimitsPatch) -> Result<(), RaiseError> {
    let now = session.clock.now();
    session.budget.set(&limits, now)?;
    session.journal.record(Draft::event(Place::default(), raised(&limits))).await?;
    let used_up = session.budget.is_used_up(now);
    let was = session.budget.reached().filter(|limit| limits.sets(limit));
    match used_up {
        None if was.is_some() => {
            session.reaches(None);
            for cell in session.in_order() {
                lets_go_on(session, &cell, was);
            }
        }
        Some(limit) if session.in_order().iter().any(|cell| rests_after_a_run(cell)) => {
            session.reaches(Some(limit));
        }
        None | Some(_) => {}
    }
    Ok(())
}

fn raised(limits: &LimitsPatch) -> EventKind {
    EventKind::LimitRaised { by: Sender::User.to_string(), limits: limits.clone() }
}

/// Nothing is reached before a run has ended, and one that is under way may use what it has begun.
fn rests_after_a_run(cell: &AgentCell) -> bool {
    !cell.mailbox.is_running() && cell.state.lock().last_end.is_some()
}

/// A limit holds the agent no longer: the run that it had ended starts again as by `resume`, and
/// mail that waited wakes whoever it would have woken. Where another limit still holds the agent,
/// that run is asked for until it is raised, too.
fn lets_go_on(session: &Arc<Session>, cell: &Arc<AgentCell>, was: Option<&'static str>) {
    if cell.is_closed() {
        return;
    }
    if cell.mailbox.is_running() {
        // It ends the run already, and the next one follows.
        if cell.mailbox.timed_out() == was {
            cell.mailbox.resume(Resume::Anyway);
        }
        return;
    }
    if was.is_some() && ended_by(cell) == was {
        resume::go_on(session, cell);
    } else if cell.mailbox.wake_if_asked() {
        start_driver(session, cell);
    }
}

/// The limit that has ended the agent's last run.
pub(super) fn ended_by(cell: &AgentCell) -> Option<&'static str> {
    cell.state.lock().last_end.as_ref()?.limit()
}

/// The agent has reached a limit, its own or the session's.
pub(super) fn reaches(session: &Session, cell: &AgentCell, setting: &'static str) {
    if setting.starts_with("session.") {
        session.reaches(Some(setting));
    } else {
        cell.mailbox.reaches(setting);
    }
}

/// After a run has ended: is anything left for another turn?
pub(super) fn looks(session: &Session, cell: &AgentCell) {
    let own = cell.state.lock().budget.reached();
    let shared = session.budget.is_used_up(session.clock.now());
    for limit in [own, shared].into_iter().flatten() {
        reaches(session, cell, limit);
    }
}
