//! What a message to a joined agent (docs/bridges.md) is made of, and what is said of one: the same for the command
//! line, which needs no process that runs, and for the interface.

use std::io;

use midturn_bridges::claude::{Known, settle};
use midturn_bridges::spool::{Joined, Landed, MAIN, Mailbox, Message, Refused, State};
use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::mail::{Refusal, Relation, Role, Urgency, default_urgency};
use midturn_core::rules::settings::Settings;
use midturn_core::rules::time::Span;
use midturn_wire::message::{Receipt, ReceiptWord};

use crate::env::now;

/// A message before it has an id and a time.
pub(crate) struct Draft {
    pub(crate) from: String,
    pub(crate) relation: Relation,
    pub(crate) text: String,
    /// The receiver's default without it.
    pub(crate) urgency: Option<Urgency>,
    pub(crate) id: Option<MessageId>,
    pub(crate) expires_after: Option<Span>,
}

impl Draft {
    /// The message to this agent.
    ///
    /// # Errors
    /// [`Refusal`], as for any message (semantics.md, sections 2 and 4).
    pub(crate) fn message(self, to: &Known) -> Result<Message, Refusal> {
        let Self { from, relation, text, urgency, id, expires_after } = self;
        let settings = Settings::default();
        if text.trim().is_empty() {
            return Err(Refusal::Empty);
        }
        let limit = usize::try_from(settings.message_bytes).unwrap_or(usize::MAX);
        if text.len() > limit {
            return Err(Refusal::TooLarge { bytes: text.len(), limit });
        }
        let role = if to.id == MAIN { Role::Lead } else { Role::Subagent };
        let urgency = urgency.unwrap_or_else(|| default_urgency(role, relation, &settings));
        if urgency == Urgency::Urgent && relation == Relation::Other {
            return Err(Refusal::UrgentNotAllowed);
        }
        let sent_at = now().0;
        let made = || MessageId::new(format!("m{sent_at:x}-{}", std::process::id()));
        let expires_at = expires_after.map(|span| sent_at.saturating_add(span.0));
        Ok(Message { id: id.unwrap_or_else(made), from, text, urgency, sent_at, expires_at, own: false })
    }
}

/// Why nothing is sent to an agent whose hooks have stopped.
pub(crate) fn doesnt_look(agent: &str) -> String {
    format!(
        "{agent} doesn't look any more: it has gone on since a hook of its ran last, so nothing was sent. `midturn hooks \
         status` says why; with the hooks installed it looks again, or else type it in the session itself"
    )
}

/// Where a message stands by now. `None`: this agent was sent none of this id.
///
/// # Errors
/// The spool can't be used.
pub(crate) fn stands(
    joined: &Joined,
    agent: &str,
    mailbox: &Mailbox,
    from: &str,
    id: &MessageId,
) -> io::Result<Option<State>> {
    settle(joined, agent, mailbox)?;
    mailbox.state(from, id)
}

/// What is known of a message.
pub(crate) fn receipt(id: &MessageId, to: &str, state: State, landed: Option<Landed>) -> Receipt {
    let (state, reason) = match state {
        State::Queued => (ReceiptWord::Queued, None),
        State::Injected => (ReceiptWord::Injected, None),
        State::Returned(reason) => (ReceiptWord::Returned, Some(reason.into())),
    };
    Receipt {
        id: id.to_string(),
        to: to.to_owned(),
        state,
        point: landed.as_ref().map(|landed| landed.point.into()),
        run: None,
        turn: None,
        call: None,
        skipped: landed.as_ref().map(|landed| landed.skipped.clone()),
        interrupted: landed.map(|landed| landed.interrupted),
        reason,
        too_late_to_supersede: None,
    }
}

/// Why a mailbox refuses a message, in the words of semantics.md. `Err`: the spool can't be written.
pub(crate) fn refusal(
    refused: Refused,
    to: &AgentName,
    message: &Message,
    supersedes: Option<&MessageId>,
) -> io::Result<Refusal> {
    match refused {
        Refused::Full => Ok(Refusal::MailboxFull(to.clone())),
        Refused::Reused => Ok(Refusal::DuplicateId(message.id.clone())),
        Refused::TooLate => Ok(Refusal::TooLate(supersedes.unwrap_or(&message.id).clone())),
        Refused::Broken(error) => Err(error),
    }
}
