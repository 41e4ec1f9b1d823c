//! Resume: an agent that rests with work unfinished goes on (semantics.md, section 6).

use std::sync::Arc;

use super::deliver::{Report, start_driver};
use super::session::{AgentCell, LastEnd, Session};
use super::stop::{StopError, allowed};
use crate::rules::event::Outcome;
use crate::rules::id::{AgentName, RunId};
use crate::rules::limits::CONTEXT;
use crate::rules::mail::{End, ReceiptState, Rest, Sender, Standing};

/// What a resume did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// A run starts, now or when the stopped one has ended.
    Starts,
    /// There is neither mail nor anything unanswered, so no run starts; but anybody may wake the
    /// agent again.
    OnlyWakeable,
    /// It does not rest with work unfinished: nothing was changed.
    Nothing,
}

/// Starts the next run of an agent that was stopped, or whose last run failed. It is answered
/// once that run is recorded, so that after a crash it has happened.
pub(crate) async fn resume(session: &Arc<Session>, name: &str) -> Result<Resumed, StopError> {
    let cell = allowed(session, name, &Sender::User)?;
    if session.is_shutting_down() {
        return Err(StopError::ShuttingDown);
    }
    let resuming = session.clone();
    session.whole(async move { resume_one(&resuming, &cell).await }).await
}

/// Resumes everybody who rests with work unfinished, in spawn order: but no failed one whose end
/// its parent has read, and nobody at a limit. Names those whose runs start.
pub(crate) async fn resume_all(session: &Arc<Session>) -> Result<Vec<AgentName>, StopError> {
    if session.is_shutting_down() {
        return Err(StopError::ShuttingDown);
    }
    let resuming = session.clone();
    session
        .whole(async move {
            let meant = |cell: &Arc<AgentCell>| !parent_has_read(&resuming, cell);
            let cells: Vec<_> = resuming.in_order().into_iter().filter(meant).collect();
            // All of them start before one of them is waited for.
            let asked: Vec<_> = cells.iter().map(|cell| (cell, start(&resuming, cell))).collect();
            let mut started = Vec::new();
            for (cell, resumed) in asked {
                if let Ok((Resumed::Starts, run)) = resumed
                    && begun(&resuming, cell, run).await
                {
                    started.push(cell.name.clone());
                }
            }
            Ok(started)
        })
        .await
}

async fn resume_one(session: &Arc<Session>, cell: &Arc<AgentCell>) -> Result<Resumed, StopError> {
    let (resumed, run) = start(session, cell)?;
    match resumed {
        Resumed::Starts if !begun(session, cell, run).await => match cell.mailbox.standing() {
            Standing::Resting(Rest::Idle) => Ok(Resumed::OnlyWakeable),
            Standing::Running | Standing::Winding { .. } | Standing::Resting(_) => Ok(Resumed::Nothing),
        },
        resumed => Ok(resumed),
    }
}

/// Asks for the agent's next run, and says which that is.
fn start(session: &Arc<Session>, cell: &Arc<AgentCell>) -> Result<(Resumed, RunId), StopError> {
    let run = cell.mailbox.next_run();
    let rests = match cell.mailbox.standing() {
        Standing::Winding { then: Rest::Stopped, .. } | Standing::Resting(Rest::Stopped) => true,
        Standing::Resting(Rest::Idle) => last_failed(cell) || cell.mailbox.limit().is_some(),
        Standing::Running | Standing::Winding { .. } | Standing::Resting(Rest::Closed) => false,
    };
    match cell.mailbox.limit() {
        _ if !rests => return Ok((Resumed::Nothing, run)),
        // Nobody can raise it: it is tried once more.
        Some(CONTEXT) => drop(cell.mailbox.lift()),
        Some(limit) => return Err(StopError::Limit { name: cell.name.clone(), limit }),
        None => {}
    }
    match cell.mailbox.standing() {
        Standing::Resting(_) => Ok((go_on(session, cell), run)),
        Standing::Running | Standing::Winding { .. } => {
            cell.mailbox.resume();
            Ok((Resumed::Starts, run))
        }
    }
}

/// Starts the next run of an agent that rests, if there is anything to go on with.
pub(super) fn go_on(session: &Arc<Session>, cell: &Arc<AgentCell>) -> Resumed {
    let waits = cell.body.lock().as_ref().is_some_and(|body| body.prompt.awaits_reply());
    if !waits && !cell.has_prompt() && !cell.mailbox.has_pending_messages() {
        cell.mailbox.unstop();
        return Resumed::OnlyWakeable;
    }
    if cell.mailbox.resume() {
        start_driver(session, cell);
        return Resumed::Starts;
    }
    Resumed::Nothing
}

fn last_failed(cell: &AgentCell) -> bool {
    matches!(cell.state.lock().last_end, Some(LastEnd { outcome: Outcome::Failed, .. }))
}

/// Whether the last run failed and the parent has that in its conversation: it is the parent's
/// to go on with.
fn parent_has_read(session: &Session, cell: &AgentCell) -> bool {
    let last = cell.state.lock().last_end.clone();
    let Some(end) = last.filter(|end| end.outcome == Outcome::Failed && cell.parent.is_some()) else {
        return false;
    };
    let report = Report { run: end.run, end: End::Failed, text: end.text };
    let receipts = session.journal.receipts.of(&report.key(&cell.name));
    // What is settled for long is forgotten; what was never accepted has not been read.
    let is_told = receipts.is_empty() && !cell.state.lock().reporting;
    is_told || receipts.iter().any(|receipt| receipt.state() != ReceiptState::Queued)
}

/// Waits until the run has begun, and that is recorded. `false`: it was taken back before.
async fn begun(session: &Session, cell: &AgentCell, run: RunId) -> bool {
    loop {
        let rested = session.rested.notified();
        if cell.state.lock().begun >= run {
            return true;
        }
        let is_asked_for = match cell.mailbox.standing() {
            Standing::Running => true,
            Standing::Winding { restart, .. } => restart || cell.mailbox.run() >= run,
            Standing::Resting(_) => false,
        };
        if !is_asked_for || session.is_shutting_down() {
            return false;
        }
        rested.await;
    }
}
