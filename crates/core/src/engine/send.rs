//! The way of a message from its sender into a mailbox, or back (semantics.md, sections 2, 6 and 8).

use std::sync::Arc;

use super::deliver::{self, Room};
use super::journal::Draft;
use super::mailbox::{Queued, StopOrder};
use super::ports::store::Accepted;
use super::receipts::{Asked, Claim, Receipt};
use super::session::{AgentCell, Session};
use super::stop::{self, StopError};
use crate::rules::characters::is_blank;
use crate::rules::conversation::MessageKey;
use crate::rules::event::{EventKind, Halt, Place, Scope};
use crate::rules::id::{AgentName, MessageId, RunId};
use crate::rules::mail::{
    Admission, Mail, MailKind, Refusal, ReturnReason, Sender, Urgency, default_urgency, may_be_urgent,
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
    /// With `supersedes`: where that is too late, the message is refused instead of accepted.
    pub if_queued: bool,
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
            if_queued: false,
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

/// Sends a message to whoever its address names: one delivery for each receiver. Who sends may be
/// gone before it is done (a call that is given up, a client that hangs up): all of it happens.
pub(crate) async fn send(session: &Arc<Session>, message: Message) -> Vec<Delivery> {
    session.whole(|session| async move { send_to_all(&session, message).await }).await
}

async fn send_to_all(session: &Arc<Session>, message: Message) -> Vec<Delivery> {
    let sending = Sending::new(session, message);
    let mut deliveries = Vec::new();
    for to in receivers(session, &sending.message) {
        deliveries.push(sending.to(to).await);
    }
    deliveries
}

/// Stops the run and starts the next one with a person's message: one step, recorded as one. On
/// an idle agent it is a message. What would be refused as a message stops nothing.
pub(crate) async fn supersede(session: &Arc<Session>, message: Message) -> Result<Delivery, StopError> {
    let cell = stop::allowed(session, &message.to, &message.from)?;
    session.whole(|session| async move { supersede_whole(&session, message, cell).await }).await
}

async fn supersede_whole(
    session: &Arc<Session>,
    mut message: Message,
    cell: Arc<AgentCell>,
) -> Result<Delivery, StopError> {
    let run = message.expects_run.take();
    let sending = Sending::new(session, message);
    let (name, place) = (cell.name.to_string(), cell.place());
    match sending.superseding(&cell, run).await {
        Ok((result, too_late)) => Ok(Delivery { to: name, result, too_late_to_supersede: too_late }),
        Err(error) => {
            if let StopError::Refused(refusal) = &error {
                sending.tell_refusal(place, refusal).await;
            }
            Err(error)
        }
    }
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
    message: Message,
    id: MessageId,
}

/// A message that nothing is wrong with.
struct Checked {
    mail: Arc<Mail>,
    /// Kept for it, unless it goes back at once.
    room: Option<Room>,
    /// The one whose place it takes.
    replaced: Option<Queued>,
}

impl<'a> Sending<'a> {
    fn new(session: &'a Arc<Session>, message: Message) -> Self {
        let message = Message { text: session.secrets.redacted(message.text), ..message };
        let id = message.id.clone().unwrap_or_else(|| session.journal.receipts.next_id());
        Self { session, message, id }
    }

    async fn to(&self, to: Result<Arc<AgentCell>, Refusal>) -> Delivery {
        let (name, place, (result, too_late)) = match to {
            Ok(cell) => (cell.name.to_string(), cell.place(), self.to_agent(&cell).await),
            Err(refusal) => (self.message.to.clone(), self.unknown_place(), (Err(refusal), false)),
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
        // It would be recorded late or never, and who sends is to hear it now.
        if self.session.journal.trouble().is_some() {
            return;
        }
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
        let (receipt, claimed) = match self.claim(to).await {
            Ok(Claim::New(receipt)) => (receipt, self.claimed(to)),
            Ok(Claim::Earlier(receipt)) => return (Ok(receipt), false),
            Err(refusal) => return (Err(refusal), false),
        };
        let checked = match self.checked(to) {
            Ok(checked) => checked,
            Err(refusal) => return (Err(refusal), false),
        };
        let too_late = self.message.supersedes.is_some() && checked.replaced.is_none();
        let done = self.accept(claimed, to, checked, Draft::default()).await;
        (done.map(|()| receipt), too_late)
    }

    /// As [`Sending::to_agent`], with the stop of the run in the same record.
    async fn superseding(
        &self,
        to: &Arc<AgentCell>,
        run: Option<RunId>,
    ) -> Result<(Result<Receipt, Refusal>, bool), StopError> {
        let receipt = match self.claim(to).await? {
            Claim::New(receipt) => receipt,
            // The same again: its run was superseded then, and is not a second time.
            Claim::Earlier(receipt) => return Ok((Ok(receipt), false)),
        };
        let claimed = self.claimed(to);
        let mut checked = self.checked(to)?;
        let order = StopOrder { by: self.message.from.clone(), halt: Halt::Supersede, run };
        let mut stopped = to.mailbox.supersede(order.clone());
        if let (Some(current), Some(asked)) = (stopped.stale, run) {
            return Err(StopError::StaleRun { asked, current });
        }
        let mut draft = Draft::default();
        if stopped.changed {
            if let Some(room) = &mut checked.room {
                room.supersedes();
            }
            stop::told(&mut draft, to, &order, Scope::Agent, &stopped, ReturnReason::Superseded);
        }
        let too_late = self.message.supersedes.is_some() && checked.replaced.is_none();
        let done = self.accept(claimed, to, checked, draft).await;
        // Now the run may end for whoever reads the events.
        stopped.telling = None;
        Ok((done.map(|()| receipt), too_late))
    }

    /// Claims the message's id at a receiver. The process that ends accepts nothing, and neither does
    /// one whose store is waited for: who sends hears that at once (semantics.md, section 7).
    async fn claim(&self, to: &AgentCell) -> Result<Claim, Refusal> {
        let journal = &self.session.journal;
        if self.message.id.is_some() {
            // An id of long ago is no new message.
            journal.recall(&self.key()).await.map_err(|error| Refusal::Store(error.to_string()))?;
        }
        let claim = journal.receipts.claim(&self.key(), &to.name, &asked(&self.message)).await?;
        let refusal = match claim {
            Claim::New(_) if self.session.is_shutting_down() => Some(Refusal::ShuttingDown),
            Claim::New(_) => journal.trouble().map(|why| Refusal::Store(why.to_string())),
            Claim::Earlier(_) => None,
        };
        let Some(refusal) = refusal else { return Ok(claim) };
        drop(self.claimed(to));
        Err(refusal)
    }

    fn claimed(&self, to: &AgentCell) -> Claimed {
        Claimed { session: self.session.clone(), key: self.key(), to: to.name.clone() }
    }

    fn key(&self) -> MessageKey {
        MessageKey { from: self.message.from.clone(), id: self.id.clone() }
    }

    /// Everything that can be wrong with a message, before anything is changed; and the room
    /// that is kept for it, if it needs any.
    fn checked(&self, to: &Arc<AgentCell>) -> Result<Checked, Refusal> {
        let message = &self.message;
        if matches!(&message.from, Sender::Agent(name) if *name == to.name) {
            return Err(Refusal::ToSelf);
        }
        well_formed(&message.text, to)?;
        self.right_run(to)?;
        let urgency = self.urgency(to)?;
        self.within_rate(to, urgency)?;
        self.still_replaces(to)?;
        let relation = self.session.relation(&message.from, to);
        let (room, replaced) = match to.mailbox.admits(relation) {
            Admission::Return(_) => (None, None),
            Admission::Refuse(limit) => return Err(Refusal::Limit { to: to.name.clone(), limit }),
            Admission::Queue | Admission::Wake => {
                let replaces = message.supersedes.as_ref();
                let (room, replaced) = Room::reserve(to, &message.from, message.text.len(), replaces)?;
                (Some(room), replaced)
            }
        };
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
        Ok(Checked { mail: Arc::new(mail), room, replaced })
    }

    /// With `if_queued` a message is for nothing but to take another one's place.
    fn still_replaces(&self, to: &AgentCell) -> Result<(), Refusal> {
        match (&self.message.supersedes, self.message.if_queued) {
            (None, true) => Err(Refusal::NothingToReplace),
            (Some(id), true) if !to.mailbox.can_take_back(&self.message.from, id) => {
                Err(Refusal::TooLate(id.clone()))
            }
            (_, _) => Ok(()),
        }
    }

    /// Makes the message durable and delivers it, with what else is to be recorded in that step.
    async fn accept(
        &self,
        claimed: Claimed,
        to: &Arc<AgentCell>,
        checked: Checked,
        mut draft: Draft,
    ) -> Result<(), Refusal> {
        let Checked { mail, room, replaced } = checked;
        if let Some(old) = &replaced {
            draft.returns(std::slice::from_ref(&old.mail), ReturnReason::Superseded, &to.place());
        }
        let address = self.message.to.as_str().into();
        let accepted = Accepted { mail: mail.clone(), address, urgency: self.message.urgency };
        draft.accepts(accepted, to.place());
        let relation = self.session.relation(&mail.from, to);
        let delivered = deliver::deliver(self.session, to, &mail, relation, draft, room).await;
        drop(claimed);
        if let Err(error) = delivered {
            to.mailbox.restore(replaced.into_iter().collect());
            return Err(Refusal::Store(error.to_string()));
        }
        if let (Sender::Agent(from), Urgency::Urgent) = (&mail.from, mail.urgency) {
            self.session.count_urgent(from, &to.name);
        }
        Ok(())
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
}

fn well_formed(text: &str, to: &AgentCell) -> Result<(), Refusal> {
    let limit = usize::try_from(to.settings.message_bytes).unwrap_or(usize::MAX);
    match text.len() {
        _ if is_blank(text) => Err(Refusal::Empty),
        bytes if bytes > limit => Err(Refusal::TooLarge { bytes, limit }),
        _ => Ok(()),
    }
}
