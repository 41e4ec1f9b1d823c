//! What is accepted arrives: mail comes into its mailbox, wakes whoever it wakes, expires, or
//! is taken back; the ends of runs are told to parents (semantics.md, sections 3, 8 and 9).

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use super::agent;
use super::journal::Draft;
use super::mailbox::{Pushed, TakeBack};
use super::ports::store::Accepted;
use super::ports::{Phase, StoreError};
use super::receipts::Asked;
use super::session::{AgentCell, Session};
use crate::fail;
use crate::rules::conversation::MessageKey;
use crate::rules::id::{AgentName, MessageId, RunId};
use crate::rules::mail::{
    End, Mail, MailKind, ReceiptState, Refusal, Relation, ReturnReason, Sender, Urgency,
};
use crate::rules::time::Micros;

/// Room in an agent's mailbox, kept for one message until it has arrived or never will.
pub(crate) struct Room {
    of: Arc<AgentCell>,
    bytes: usize,
}

impl Room {
    /// Keeps room for a message of so many bytes.
    pub(crate) fn reserve(of: &Arc<AgentCell>, bytes: usize) -> Result<Self, Refusal> {
        of.mailbox.reserve(&of.name, bytes, &of.settings)?;
        Ok(Self { of: of.clone(), bytes })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.of.mailbox.release(self.bytes);
    }
}

/// Records that a message is accepted, puts it into the mailbox in the order in which it was
/// recorded, and wakes whoever it wakes. The `room` that was kept for it is given back.
pub(crate) async fn deliver(
    session: &Arc<Session>,
    to: &Arc<AgentCell>,
    mail: &Arc<Mail>,
    relation: Relation,
    draft: Draft,
    room: Option<Room>,
) -> Result<(), StoreError> {
    let pushed = Arc::new(OnceLock::new());
    let arrives = {
        let (to, mail, pushed) = (to.clone(), mail.clone(), pushed.clone());
        move || {
            pushed.get_or_init(|| to.mailbox.push(mail, relation));
            // Only now: meanwhile nobody else may have its place.
            drop(room);
        }
    };
    session.journal.record(draft.then(arrives)).await?;
    fail::point("mail_delivered");
    match pushed.get() {
        Some(Pushed::Returned(reason)) => {
            came_back(session, to, mail, *reason).await;
            return Ok(());
        }
        Some(Pushed::Wake) => start_driver(session, to),
        Some(Pushed::Queued) | None => {}
    }
    if let Some(at) = mail.expires_at {
        expire(session, to, mail.clone(), at);
    }
    Ok(())
}

/// The receiver's standing sends it back.
async fn came_back(session: &Session, to: &AgentCell, mail: &Arc<Mail>, reason: ReturnReason) {
    let mut draft = Draft::default();
    draft.returns(std::slice::from_ref(mail), reason, &to.place());
    if let Err(error) = session.journal.record(draft).await {
        tracing::error!(%error, "a returned message is not recorded");
    }
}

/// Returns a message at its instant, if it is then still queued. The timer goes when the
/// message does.
pub(crate) fn expire(session: &Arc<Session>, to: &Arc<AgentCell>, mail: Arc<Mail>, at: Micros) {
    let key = MessageKey { from: mail.from.clone(), id: mail.id.clone() };
    let receipt = session.journal.receipts.of(&key).into_iter().find(|receipt| receipt.to == to.name);
    let Some(mut receipt) = receipt else { return };
    let (session, to) = (session.clone(), to.clone());
    session.clone().tasks.spawn(async move {
        let number = session.expiries.fetch_add(1, Ordering::Relaxed);
        tokio::select! {
            biased;
            () = session.clock.until(at, Phase::Expiry(number)) => {}
            _ = receipt.reached(|state| *state != ReceiptState::Queued) => return,
        }
        // Too late is no error: it acted or was injected in this very instant.
        take_back(&session, &to, &mail.from, &mail.id, ReturnReason::Expired).await.ok();
    });
}

/// Starts the driver of an agent that was woken.
pub(crate) fn start_driver(session: &Arc<Session>, cell: &Arc<AgentCell>) {
    let working = session.at_work();
    let (session, cell) = (session.clone(), cell.clone());
    session.clone().tasks.spawn(async move {
        session.clock.turn(Phase::Boundary(cell.index)).await;
        agent::drive(&session, &cell).await;
        drop(working);
    });
}

/// Has an agent with a prompt start its first run when it passes its boundary, unless mail
/// has woken it before, or it was closed.
pub(crate) fn start_prompted(session: &Arc<Session>, cell: &Arc<AgentCell>) {
    let working = session.at_work();
    let (session, cell) = (session.clone(), cell.clone());
    session.clone().tasks.spawn(async move {
        session.clock.turn(Phase::Boundary(cell.index)).await;
        if cell.mailbox.start_idle() {
            agent::drive(&session, &cell).await;
        }
        drop(working);
    });
}

/// Returns a message that is queued and not committed.
pub(crate) async fn take_back(
    session: &Session,
    to: &AgentCell,
    from: &Sender,
    id: &MessageId,
    reason: ReturnReason,
) -> Result<(), TakeBack> {
    let mail = to.mailbox.take_back(from, id)?;
    let mut draft = Draft::default();
    draft.returns(std::slice::from_ref(&mail), reason, &to.place());
    if let Err(error) = session.journal.record(draft).await {
        tracing::error!(%error, "a returned message is not recorded");
        to.mailbox.restore(vec![mail]);
    }
    Ok(())
}

/// What a parent is told of a run's end.
pub(crate) struct Report {
    pub(crate) run: RunId,
    pub(crate) end: End,
    pub(crate) text: Arc<str>,
}

/// Has the parent told of a run's end, in its order among all that arrives. The report is
/// work too: who waits for quiet waits for it.
pub(crate) fn report(session: &Arc<Session>, about: &Arc<AgentCell>, parent: &AgentName, report: Report) {
    about.state.lock().reporting = true;
    let working = session.at_work();
    let (session, about, parent) = (session.clone(), about.clone(), parent.clone());
    session.clone().tasks.spawn(async move {
        session.clock.turn(Phase::Caused).await;
        end_of(&session, &about.name, &parent, report).await;
        about.state.lock().reporting = false;
        drop(working);
    });
}

/// The id of the mail that tells of a run's end.
pub(crate) fn report_id(about: &AgentName, run: RunId) -> MessageId {
    MessageId::new(format!("{about}#{run}"))
}

/// Tells a parent of a subagent's end: mail of the coordinator's own.
async fn end_of(session: &Arc<Session>, about: &AgentName, parent: &AgentName, report: Report) {
    let Some(to) = session.agent(parent.as_str()) else { return };
    let mail = Arc::new(Mail {
        id: report_id(about, report.run),
        from: Sender::Coordinator(about.clone()),
        to: parent.clone(),
        text: report.text,
        urgency: Urgency::AfterTools,
        kind: MailKind::End(report.end),
        only_run: None,
        expires_at: None,
    });
    let urgency = Some(Urgency::AfterTools);
    let accepted = Accepted { mail: mail.clone(), address: parent.as_str().into(), urgency };
    let key = MessageKey { from: mail.from.clone(), id: mail.id.clone() };
    session.journal.receipts.open(&key, parent, Asked::of(&accepted));
    let mut draft = Draft::default();
    draft.accepts(accepted, to.place());
    if let Err(error) = deliver(session, &to, &mail, Relation::Coordinator, draft, None).await {
        session.journal.receipts.forget(&key, parent);
        tracing::error!(%error, "the end of a subagent is not recorded");
    }
}
