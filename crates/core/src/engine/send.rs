//! The way of a message from its sender into a mailbox, or back (semantics.md, sections 2, 6 and 8).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::agent;
use super::journal::Draft;
use super::mailbox::{Pushed, TakeBack};
use super::ports::Phase;
use super::ports::store::Accepted;
use super::receipts::{Asked, Receipt};
use super::session::{AgentCell, Session};
use crate::fail;
use crate::rules::conversation::MessageKey;
use crate::rules::event::{EventKind, Place};
use crate::rules::id::{AgentName, MessageId, RunId};
use crate::rules::mail::{
    Admission, End, Mail, MailKind, ReceiptState, Refusal, Relation, ReturnReason, Sender, Urgency,
    admission, default_urgency, may_be_urgent,
};
use crate::rules::time::{Micros, Span};

/// A message as its sender asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who sends it.
    pub from: Sender,
    /// An agent's name, `parent` or `all`.
    pub to: String,
    /// What it says.
    pub text: String,
    /// How soon it acts; the receiver's default when absent.
    pub urgency: Option<Urgency>,
    /// The sender's id for it. The same id with the same content is the same message.
    pub id: Option<MessageId>,
    /// Returned as `expired` if it is still queued so much later.
    pub expires_after: Option<Span>,
    /// An earlier message of the sender's to the same receiver that this one replaces.
    pub supersedes: Option<MessageId>,
    /// The only run it may be injected in.
    pub only_run: Option<RunId>,
    /// The run that the sender saw: if another one is current by now (the last one, when the
    /// receiver is idle), the message is refused as stale.
    pub expects_run: Option<RunId>,
}

impl Message {
    /// A message with the receiver's default urgency; the fields are public to be changed.
    pub fn new(from: Sender, to: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            from,
            to: to.into(),
            text: text.into(),
            urgency: None,
            id: None,
            expires_after: None,
            supersedes: None,
            only_run: None,
            expects_run: None,
        }
    }

    /// The plain form: `true` is `urgent`, `false` the receiver's default.
    pub fn urgent(mut self, urgent: bool) -> Self {
        self.urgency = urgent.then_some(Urgency::Urgent);
        self
    }
}

/// What became of a message at one receiver.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The receiver, as far as it could be found.
    pub to: String,
    /// The receipt, or why it was not accepted.
    pub result: Result<Receipt, Refusal>,
    /// The message it was to replace had acted or was injected already.
    pub too_late_to_supersede: bool,
}

/// Sends a message to whoever its address names: one delivery for each receiver.
pub(crate) async fn send(session: &Arc<Session>, message: Message) -> Vec<Delivery> {
    let id = message.id.clone().unwrap_or_else(|| session.journal.receipts.next_id());
    let mut deliveries = Vec::new();
    for to in receivers(session, &message) {
        let sending = Sending { session, message: &message, id: id.clone() };
        deliveries.push(sending.to(to).await);
    }
    deliveries
}

/// The receivers that an address names; an error stands for one that can't be found.
fn receivers(session: &Session, message: &Message) -> Vec<Result<Arc<AgentCell>, Refusal>> {
    let sender = match &message.from {
        Sender::Agent(name) => session.agent(name.as_str()),
        Sender::User | Sender::Coordinator(_) => None,
    };
    match (message.to.as_str(), sender) {
        ("all", sender) => {
            let own = sender.map(|cell| cell.index);
            let others = session.in_order().into_iter().filter(|cell| Some(cell.index) != own);
            others.filter(|cell| !cell.is_closed()).map(Ok).collect()
        }
        ("parent", sender) => {
            let parent = sender.and_then(|cell| session.agent(cell.parent.as_ref()?.as_str()));
            vec![parent.ok_or_else(|| Refusal::NoParent(message.from.to_string()))]
        }
        (name, _) => {
            vec![session.agent(name).ok_or_else(|| Refusal::UnknownAgent(name.chars().take(80).collect()))]
        }
    }
}

struct Sending<'a> {
    session: &'a Arc<Session>,
    message: &'a Message,
    id: MessageId,
}

impl Sending<'_> {
    async fn to(&self, to: Result<Arc<AgentCell>, Refusal>) -> Delivery {
        let (name, place) = match &to {
            Ok(cell) => (cell.name.to_string(), cell.place()),
            Err(_) => (self.message.to.clone(), self.unknown_place()),
        };
        let (result, too_late) = match to {
            Ok(cell) => self.to_agent(&cell).await,
            Err(refusal) => (Err(refusal), false),
        };
        if let Err(refusal) = &result {
            self.tell_refusal(place, refusal).await;
        }
        Delivery { to: name, result, too_late_to_supersede: too_late }
    }

    fn unknown_place(&self) -> Place {
        Place { agent: AgentName::new(&self.message.to).ok(), ..Place::default() }
    }

    async fn tell_refusal(&self, place: Place, refusal: &Refusal) {
        let kind = EventKind::MessageRefused {
            message: self.id.clone(),
            from: self.message.from.to_string(),
            reason: refusal.code().into(),
        };
        if let Err(error) = self.session.journal.record(Draft::event(place, kind)).await {
            tracing::error!(%error, "a refusal is not recorded");
        }
    }

    async fn to_agent(&self, to: &Arc<AgentCell>) -> (Result<Receipt, Refusal>, bool) {
        match self.earlier(to) {
            Ok(None) => {}
            Ok(Some(receipt)) => return (Ok(receipt), false),
            Err(refusal) => return (Err(refusal), false),
        }
        let mail = match self.checked(to) {
            Ok(mail) => Arc::new(mail),
            Err(refusal) => return (Err(refusal), false),
        };
        let replaced = self.replaced();
        let too_late = self.message.supersedes.is_some() && replaced.is_none();
        (self.accept(to, mail, replaced).await, too_late)
    }

    fn key(&self) -> MessageKey {
        MessageKey { from: self.message.from.clone(), id: self.id.clone() }
    }

    /// The receipt of the same message, sent before.
    fn earlier(&self, to: &AgentCell) -> Result<Option<Receipt>, Refusal> {
        let asked = Asked {
            to: self.message.to.as_str().into(),
            text: self.message.text.as_str().into(),
            urgency: self.message.urgency,
        };
        let earlier = self.session.journal.receipts.earlier(&self.key(), &asked)?;
        Ok(earlier.and_then(|receipts| receipts.into_iter().find(|receipt| receipt.to == to.name)))
    }

    /// Everything that can be wrong with a message, before anything is changed.
    fn checked(&self, to: &AgentCell) -> Result<Mail, Refusal> {
        let message = self.message;
        if matches!(&message.from, Sender::Agent(name) if *name == to.name) {
            return Err(Refusal::ToSelf);
        }
        well_formed(&message.text, to)?;
        self.right_run(to)?;
        let urgency = self.urgency(to)?;
        self.within_rate(to, urgency)?;
        if !self.frees_room(to) && !self.returns_at_once(to) {
            to.mailbox.has_room(&to.name, message.text.len(), &to.settings)?;
        }
        Ok(Mail {
            id: self.id.clone(),
            from: message.from.clone(),
            to: to.name.clone(),
            text: message.text.as_str().into(),
            urgency,
            kind: MailKind::Words,
            only_run: message.only_run,
            expires_at: message.expires_after.map(|span| self.session.clock.now().after(span)),
        })
    }

    fn urgency(&self, to: &AgentCell) -> Result<Urgency, Refusal> {
        let relation = self.session.relation(&self.message.from, to);
        let default = || default_urgency(to.role, relation, &to.settings);
        let urgency = self.message.urgency.unwrap_or_else(default);
        if urgency == Urgency::Urgent && !may_be_urgent(relation, &to.settings) {
            return Err(Refusal::UrgentNotAllowed);
        }
        Ok(urgency)
    }

    /// Whether the message takes the place of one that is queued.
    fn frees_room(&self, to: &AgentCell) -> bool {
        let from = &self.message.from;
        self.message.supersedes.as_ref().is_some_and(|id| to.mailbox.can_take_back(from, id))
    }

    /// Whether the receiver's standing sends the message back, so that it needs no room.
    fn returns_at_once(&self, to: &AgentCell) -> bool {
        let relation = self.session.relation(&self.message.from, to);
        matches!(admission(to.mailbox.standing(), relation), Admission::Return(_))
    }

    fn right_run(&self, to: &AgentCell) -> Result<(), Refusal> {
        let stale = |asked: Option<RunId>, current| match asked {
            Some(asked) if asked != current => Err(Refusal::StaleRun { asked, current }),
            Some(_) | None => Ok(()),
        };
        stale(self.message.expects_run, to.mailbox.run())?;
        stale(self.message.only_run, to.mailbox.next_run())
    }

    fn within_rate(&self, to: &AgentCell, urgency: Urgency) -> Result<(), Refusal> {
        match &self.message.from {
            Sender::Agent(from) if urgency == Urgency::Urgent && !self.session.urgent_in_rate(from, to) => {
                Err(Refusal::UrgentRate(to.settings.urgent_per_minute))
            }
            Sender::Agent(_) | Sender::User | Sender::Coordinator(_) => Ok(()),
        }
    }

    /// The message that this one replaces, if it can still be taken back.
    fn replaced(&self) -> Option<(Arc<AgentCell>, Arc<Mail>)> {
        let id = self.message.supersedes.as_ref()?;
        let key = MessageKey { from: self.message.from.clone(), id: id.clone() };
        let receivers = self.session.journal.receipts.receivers(&key);
        receivers.iter().filter_map(|name| self.session.agent(name.as_str())).find_map(|cell| {
            let mail = cell.mailbox.take_back(&self.message.from, id).ok()?;
            Some((cell, mail))
        })
    }

    async fn accept(
        &self,
        to: &Arc<AgentCell>,
        mail: Arc<Mail>,
        replaced: Option<(Arc<AgentCell>, Arc<Mail>)>,
    ) -> Result<Receipt, Refusal> {
        let address = self.message.to.as_str().into();
        let accepted = Accepted { mail, address, urgency: self.message.urgency };
        let receipt = self.session.journal.receipts.open(&self.key(), &to.name, Asked::of(&accepted));
        let accepting = Accepting { session: self.session.clone(), to: to.clone(), accepted, replaced };
        // Who sends may be gone before it is done (a call that is given up, a client that
        // hangs up): what is durable is delivered all the same.
        let done = self.session.tasks.spawn(accepting.run()).await;
        done.map_err(|error| Refusal::Store(error.to_string()))?.map(|()| receipt)
    }
}

/// A message that has its receipt and is to be made durable and delivered.
struct Accepting {
    session: Arc<Session>,
    to: Arc<AgentCell>,
    accepted: Accepted,
    replaced: Option<(Arc<AgentCell>, Arc<Mail>)>,
}

impl Accepting {
    async fn run(self) -> Result<(), Refusal> {
        let Self { session, to, accepted, replaced } = self;
        let mail = accepted.mail.clone();
        let mut draft = Draft::default();
        if let Some((cell, old)) = &replaced {
            draft.returns(std::slice::from_ref(old), ReturnReason::Superseded, &cell.place());
        }
        draft.accepts(accepted, to.place());
        if let Err(error) = session.journal.record(draft).await {
            let key = MessageKey { from: mail.from.clone(), id: mail.id.clone() };
            session.journal.receipts.forget(&key, &to.name);
            if let Some((cell, old)) = replaced {
                cell.mailbox.restore(vec![old]);
            }
            return Err(Refusal::Store(error.to_string()));
        }
        if let (Sender::Agent(from), Urgency::Urgent) = (&mail.from, mail.urgency) {
            session.count_urgent(from, &to.name);
        }
        let relation = session.relation(&mail.from, &to);
        deliver(&session, &to, mail, relation).await;
        Ok(())
    }
}

fn well_formed(text: &str, to: &AgentCell) -> Result<(), Refusal> {
    let limit = usize::try_from(to.settings.message_bytes).unwrap_or(usize::MAX);
    match text.len() {
        _ if text.trim().is_empty() => Err(Refusal::Empty),
        bytes if bytes > limit => Err(Refusal::TooLarge { bytes, limit }),
        _ => Ok(()),
    }
}

/// Whether a person's message to this agent would be accepted, for what must not be half done.
pub(crate) fn would_accept(text: &str, to: &AgentCell) -> Result<(), Refusal> {
    well_formed(text, to)?;
    to.mailbox.has_room(&to.name, text.len(), &to.settings)
}

/// Puts an accepted message into the mailbox, and wakes whoever it wakes.
async fn deliver(session: &Arc<Session>, to: &Arc<AgentCell>, mail: Arc<Mail>, relation: Relation) {
    let pushed = to.mailbox.push(mail.clone(), relation);
    fail::point("mail_delivered");
    match pushed {
        Pushed::Queued => {}
        Pushed::Wake => start_driver(session, to),
        Pushed::Returned(reason) => {
            let mut draft = Draft::default();
            draft.returns(&[mail], reason, &to.place());
            if let Err(error) = session.journal.record(draft).await {
                tracing::error!(%error, "a returned message is not recorded");
            }
            return;
        }
    }
    if let Some(at) = mail.expires_at {
        expire(session, to, mail, at);
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
    if let Err(error) = session.journal.record(draft).await {
        session.journal.receipts.forget(&key, parent);
        tracing::error!(%error, "the end of a subagent is not recorded");
        return;
    }
    deliver(session, &to, mail, Relation::Coordinator).await;
}
