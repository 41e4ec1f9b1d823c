//! What is accepted arrives: mail comes into its mailbox, wakes whoever it wakes, expires, or
//! is taken back; the ends of runs are told to parents (semantics.md, sections 3, 8 and 9).

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use super::journal::Draft;
use super::mailbox::{Pushed, Queued, TakenBack};
use super::ports::store::Accepted;
use super::ports::{Phase, StoreError};
use super::receipts::Asked;
use super::report::Report;
use super::session::{AgentCell, Session};
use crate::fail;
use crate::rules::id::{AgentName, MessageId};
use crate::rules::mail::{Mail, MailKind, ReceiptState, Refusal, Relation, ReturnReason, Sender, Urgency};
use crate::rules::time::Micros;

/// Room in an agent's mailbox, kept for one message until it has arrived or never will.
pub(crate) struct Room {
    of: Arc<AgentCell>,
    from: Sender,
    bytes: usize,
    /// How often the run that comes next is asked for by this message before it is there.
    on_its_way: u32,
}

impl Room {
    /// Keeps room for a message of so many bytes, and takes the one out that it replaces, if that
    /// can still be taken back.
    pub(crate) fn reserve(
        of: &Arc<AgentCell>,
        from: &Sender,
        bytes: usize,
        replaces: Option<&MessageId>,
    ) -> Result<(Self, Option<Queued>), Refusal> {
        let replaced = of.mailbox.reserve(from, &of.name, bytes, replaces, &of.settings)?;
        let on_its_way = u32::from(replaced.is_some());
        Ok((Self { of: of.clone(), from: from.clone(), bytes, on_its_way }, replaced))
    }

    /// The message also starts the run that follows one it has superseded.
    pub(crate) fn supersedes(&mut self) {
        self.on_its_way += 1;
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.of.mailbox.release(&self.from, self.bytes);
        for _ in 0..self.on_its_way {
            self.of.mailbox.replaced();
        }
    }
}

/// Records that a message is accepted, puts it into the mailbox in the order in which it was
/// recorded, and wakes whoever it wakes. The `room` that was kept for it is given back.
pub(crate) async fn deliver(
    session: &Arc<Session>,
    to: &Arc<AgentCell>,
    mail: &Arc<Mail>,
    relation: Relation,
    mut draft: Draft,
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
    draft.then(arrives);
    session.journal.record(draft).await?;
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
    let key = mail.key();
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
        has_expired(&session, &to, &mail).await;
    });
}

/// Returns a message whose time is up. It may be too late: what acted or was injected stays.
pub(crate) async fn has_expired(session: &Session, to: &AgentCell, mail: &Mail) {
    if let Err(error) = take_back(session, to, &mail.from, &mail.id, ReturnReason::Expired).await {
        tracing::error!(%error, "an expired message is not recorded");
    }
}

/// Starts the driver of an agent that was woken.
pub(crate) fn start_driver(session: &Arc<Session>, cell: &Arc<AgentCell>) {
    let working = session.at_work();
    let (session, cell) = (session.clone(), cell.clone());
    session.clone().tasks.spawn(async move {
        session.clock.turn(Phase::Boundary(cell.index)).await;
        (session.drive)(session.clone(), cell.clone()).await;
        drop(working);
    });
}

/// Returns a message that is queued and not committed, and what waited for the run that only
/// this message asked for. `false`: it is too late.
pub(crate) async fn take_back(
    session: &Session,
    to: &AgentCell,
    from: &Sender,
    id: &MessageId,
    reason: ReturnReason,
) -> Result<bool, StoreError> {
    let Some(TakenBack { queued, stranded }) = to.mailbox.take_back(from, id) else { return Ok(false) };
    session.rested.notify_waiters();
    let place = to.place();
    let mut draft = Draft::default();
    draft.returns(std::slice::from_ref(&queued.mail), reason, &place);
    // What expires in the same instant has waited for nobody.
    let now = session.clock.now();
    let waited = stranded.iter().map(|queued| queued.mail.clone());
    let (expired, stopped): (Vec<_>, Vec<_>) =
        waited.partition(|mail| mail.expires_at.is_some_and(|at| at <= now));
    draft.returns(&expired, ReturnReason::Expired, &place);
    draft.returns(&stopped, ReturnReason::Stopped, &place);
    if let Err(error) = session.journal.record(draft).await {
        to.mailbox.restore(std::iter::once(queued).chain(stranded).collect());
        return Err(error);
    }
    Ok(true)
}

/// An agent whose last run's end is on its way to the parent, as long as this lives.
struct Reporting(Arc<AgentCell>);

impl Drop for Reporting {
    fn drop(&mut self) {
        self.0.state.lock().reporting = false;
    }
}

/// Has the parent told of a run's end, in the order of the phase among all that arrives: one that
/// the process before this one had to tell comes before all else. The report is work too: who waits
/// for quiet waits for it.
pub(crate) fn report(
    phase: Phase,
    session: &Arc<Session>,
    about: &Arc<AgentCell>,
    parent: &AgentName,
    report: Report,
) {
    about.state.lock().reporting = true;
    let (working, reporting) = (session.at_work(), Reporting(about.clone()));
    let (session, about, parent) = (session.clone(), about.clone(), parent.clone());
    session.clone().tasks.spawn(async move {
        session.clock.turn(phase).await;
        end_of(&session, &about.name, &parent, report).await;
        drop(reporting);
        drop(working);
    });
}

/// Tells a parent of a subagent's end: mail of the coordinator's own.
async fn end_of(session: &Arc<Session>, about: &AgentName, parent: &AgentName, report: Report) {
    let Some(to) = session.agent(parent.as_str()) else { return };
    let mail = Arc::new(Mail {
        id: report.id(about),
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
    let key = mail.key();
    session.journal.receipts.open(&key, parent, Asked::of(&accepted));
    let mut draft = Draft::default();
    draft.accepts(accepted, to.place());
    if let Err(error) = deliver(session, &to, &mail, Relation::Coordinator, draft, None).await {
        session.journal.receipts.forget(&key, parent);
        tracing::error!(%error, "the end of a subagent is not recorded");
    }
}
