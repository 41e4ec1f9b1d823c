//! Resume: an agent that rests with work unfinished goes on (semantics.md, section 6).

use std::sync::Arc;

use super::coordinator::Coordinator;
use super::deliver::start_driver;
use super::journal::{Draft, PutOff};
use super::mailbox::Resume;
use super::report::Report;
use super::session::{ActivityKind, AgentCell, Session};
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

impl Coordinator {
    /// Starts the next run of an agent that was stopped, or whose last run failed (semantics.md,
    /// section 6). At a limit it is refused until that is raised. It is answered once it is recorded,
    /// so that after a crash it has happened.
    pub async fn resume(&self, name: &str) -> Result<Resumed, StopError> {
        let cell = allowed(&self.session, name, &Sender::User)?;
        if self.session.is_shutting_down() {
            return Err(StopError::ShuttingDown);
        }
        let resumes = |session: Arc<Session>| async move {
            let asked = start(&session, &cell)?;
            comes_of(&session, &cell, asked).await
        };
        self.session.whole(resumes).await
    }

    /// Resumes all who rest with work unfinished, in spawn order, and names those whose runs
    /// start: no failed one whose end its parent has read, and nobody at a limit.
    pub async fn resume_all(&self) -> Result<Vec<AgentName>, StopError> {
        if self.session.is_shutting_down() {
            return Err(StopError::ShuttingDown);
        }
        let resumes = |session: Arc<Session>| async move {
            let meant = |cell: &Arc<AgentCell>| !parent_has_read(&session, cell);
            let cells: Vec<_> = session.in_order().into_iter().filter(meant).collect();
            // Who is at a limit stays as it is.
            let asked = cells.into_iter().filter_map(|cell| Some((start(&session, &cell).ok()?, cell)));
            // All of them start and are being recorded before one of them is waited for.
            let asked: Vec<_> = asked
                .map(|(asked, cell)| {
                    let (resuming, name) = (session.clone(), cell.name.clone());
                    (name, session.tasks.spawn(async move { comes_of(&resuming, &cell, asked).await }))
                })
                .collect();
            let mut started = Vec::new();
            for (name, resumed) in asked {
                // Nobody aborts it, so what is no answer is a panic.
                match resumed.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))? {
                    Resumed::Starts => started.push(name),
                    Resumed::OnlyWakeable | Resumed::Nothing => {}
                }
            }
            Ok(started)
        };
        self.session.whole(resumes).await
    }
}

/// Records what was asked for, and waits until it is known what it comes to.
async fn comes_of(
    session: &Session,
    cell: &AgentCell,
    (resumed, run): (Resumed, RunId),
) -> Result<Resumed, StopError> {
    if resumed != Resumed::Nothing {
        let mut draft = Draft::default();
        draft.resumes(&cell.name, run);
        // Unless it has begun by then, or a stop has taken it back.
        let wanted = || resumed == Resumed::OnlyWakeable || cell.mailbox.is_resumed();
        session.journal.record_after(&mut PutOff::default(), draft, wanted).await?;
    }
    match resumed {
        Resumed::Starts if !begins(session, cell, run).await => match cell.mailbox.standing() {
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
            cell.mailbox.resume(Resume::Anyway);
            Ok((Resumed::Starts, run))
        }
    }
}

/// Starts the next run of an agent that rests, if there is anything to go on with.
pub(super) fn go_on(session: &Arc<Session>, cell: &Arc<AgentCell>) -> Resumed {
    let waits = cell.body.lock().as_ref().is_some_and(|body| body.prompt.awaits_reply());
    let how = if waits || cell.has_prompt() { Resume::Anyway } else { Resume::WithMail };
    if how == Resume::WithMail && !cell.mailbox.has_pending_messages() {
        cell.mailbox.unstop();
        return Resumed::OnlyWakeable;
    }
    if cell.mailbox.resume(how) {
        start_driver(session, cell);
        return Resumed::Starts;
    }
    Resumed::Nothing
}

fn last_failed(cell: &AgentCell) -> bool {
    cell.state.lock().last_end.as_ref().is_some_and(|end| end.outcome == Outcome::Failed)
}

/// Whether the agent rests after a run that failed and the parent has that in its conversation: it
/// is the parent's to go on with.
fn parent_has_read(session: &Session, cell: &AgentCell) -> bool {
    if cell.mailbox.is_running() {
        return false;
    }
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

/// Waits until it is sure that the run begins. `false`: it was taken back, or there is nothing
/// that it could begin with.
async fn begins(session: &Session, cell: &AgentCell, run: RunId) -> bool {
    loop {
        let rested = session.rested.notified();
        // Whatever calls give that still end, it is unanswered.
        if cell.state.lock().begun >= run || (cell.mailbox.is_resumed() && has_calls(cell)) {
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

fn has_calls(cell: &AgentCell) -> bool {
    let is_call = |kind: &ActivityKind| matches!(kind, ActivityKind::Tool { .. });
    cell.state.lock().activity.iter().any(|activity| is_call(&activity.what))
}
