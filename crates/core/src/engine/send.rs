//! The way of a message from its sender into a mailbox, or back (semantics.md, sections 2, 6 and 8).

use std::sync::Arc;

use super::deliver::{self, Room};
use super::journal::Draft;
use super::ports::store::Accepted;
use super::receipts::{Asked, Claim, Receipt};
use super::session::{AgentCell, Session};
use crate::rules::conversation::MessageKey;
use crate::rules::event::{EventKind, Place};
use crate::rules::id::{AgentName, MessageId, RunId};
use crate::rules::mail::{
    Admission, Mail, MailKind, Refusal, ReturnReason, Sender, Urgency, admission, default_urgency,
    may_be_urgent,
};
use crate::rules::time::Span;

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
    let message = Message { text: session.secrets.redacted(message.text), ..message };
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

fn asked(message: &Message) -> Asked {
    let (to, text) = (message.to.as_str().into(), message.text.as_str().into());
    Asked { to, text, urgency: message.urgency }
}

/// The receipt of this very message, if it was accepted before.
pub(crate) fn known(
    session: &Session,
    message: &Message,
    to: &AgentCell,
) -> Result<Option<Receipt>, Refusal> {
    let Some(id) = message.id.clone() else { return Ok(None) };
    let key = MessageKey { from: message.from.clone(), id };
    session.journal.receipts.known(&key, &to.name, &asked(message))
}

/// An id that was claimed and is free again when this goes, unless its message is accepted by
/// then: whoever waits for that claims it anew.
struct Claimed {
    session: Arc<Session>,
    key: MessageKey,
    to: AgentName,
}

impl Drop for Claimed {
    fn drop(&mut self) {
        self.session.journal.receipts.forget(&self.key, &self.to);
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
        let receipts = &self.session.journal.receipts;
        let receipt = match receipts.claim(&self.key(), &to.name, &asked(self.message)).await {
            Ok(Claim::New(receipt)) => receipt,
            Ok(Claim::Earlier(receipt)) => return (Ok(receipt), false),
            Err(refusal) => return (Err(refusal), false),
        };
        let claimed = Claimed { session: self.session.clone(), key: self.key(), to: to.name.clone() };
        let (mail, room) = match self.checked(to) {
            Ok(checked) => checked,
            Err(refusal) => return (Err(refusal), false),
        };
        let replaced = self.replaced();
        let too_late = self.message.supersedes.is_some() && replaced.is_none();
        let address = self.message.to.as_str().into();
        let accepted = Accepted { mail, address, urgency: self.message.urgency };
        let accepting = Accepting { claimed, to: to.clone(), accepted, room, replaced };
        // Who sends may be gone before it is done (a call that is given up, a client that
        // hangs up): what is durable is delivered all the same.
        let done = self.session.tasks.spawn(accepting.run()).await;
        let done = done.unwrap_or_else(|error| Err(Refusal::Store(error.to_string())));
        (done.map(|()| receipt), too_late)
    }

    fn key(&self) -> MessageKey {
        MessageKey { from: self.message.from.clone(), id: self.id.clone() }
    }

    /// Everything that can be wrong with a message, before anything is changed; and the room
    /// that is kept for it, if it needs any.
    fn checked(&self, to: &Arc<AgentCell>) -> Result<(Arc<Mail>, Option<Room>), Refusal> {
        let message = self.message;
        if matches!(&message.from, Sender::Agent(name) if *name == to.name) {
            return Err(Refusal::ToSelf);
        }
        well_formed(&message.text, to)?;
        self.right_run(to)?;
        let urgency = self.urgency(to)?;
        self.within_rate(to, urgency)?;
        let needs_room = !self.frees_room(to) && !self.returns_at_once(to);
        let room = needs_room.then(|| Room::reserve(to, message.text.len())).transpose()?;
        let mail = Mail {
            id: self.id.clone(),
            from: message.from.clone(),
            to: to.name.clone(),
            text: message.text.as_str().into(),
            urgency,
            kind: MailKind::Words,
            only_run: message.only_run,
            expires_at: message.expires_after.map(|span| self.session.clock.now().after(span)),
        };
        Ok((Arc::new(mail), room))
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
}

/// A message that has its receipt and is to be made durable and delivered.
struct Accepting {
    claimed: Claimed,
    to: Arc<AgentCell>,
    accepted: Accepted,
    room: Option<Room>,
    replaced: Option<(Arc<AgentCell>, Arc<Mail>)>,
}

impl Accepting {
    async fn run(self) -> Result<(), Refusal> {
        let Self { claimed, to, accepted, room, replaced } = self;
        let session = &claimed.session;
        let mail = accepted.mail.clone();
        let mut draft = Draft::default();
        if let Some((cell, old)) = &replaced {
            draft.returns(std::slice::from_ref(old), ReturnReason::Superseded, &cell.place());
        }
        draft.accepts(accepted, to.place());
        let relation = session.relation(&mail.from, &to);
        if let Err(error) = deliver::deliver(session, &to, &mail, relation, draft, room).await {
            if let Some((cell, old)) = replaced {
                cell.mailbox.restore(vec![old]);
            }
            return Err(Refusal::Store(error.to_string()));
        }
        if let (Sender::Agent(from), Urgency::Urgent) = (&mail.from, mail.urgency) {
            session.count_urgent(from, &to.name);
        }
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
