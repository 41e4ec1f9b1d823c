//! `message` expectations: where a message went in, or that and why it did not.

use std::collections::BTreeMap;
use std::{fmt, slice};

use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, MessageId, RunId, TurnId};
use midturn_core::rules::mail::{Point, ReturnReason};
use midturn_core::rules::time::Micros;

use super::Miss;
use crate::record::Record;
use crate::scenario::{InjectedClaim, MessageClaim};

/// What became of a message at one receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Queued,
    Refused(String),
    Returned { reason: ReturnReason, at: Micros },
    Injected { point: Point, run: RunId, turn: TurnId, at: Micros },
}

/// What became of messages at their receivers, and which event says so.
pub(crate) type Fates<'e> = BTreeMap<(&'e MessageId, Option<&'e AgentName>), (Fate, usize)>;

/// Checks a claim about a message.
pub(super) fn check(claim: &MessageClaim, record: &Record) -> Vec<Miss> {
    let mut fates = fates(&record.events);
    fates.retain(|(id, to), _| **id == claim.message && (claim.to.is_none() || *to == claim.to.as_ref()));
    if fates.is_empty() {
        let to = claim.to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
        return vec![Miss::new(format!("message {}{to}", claim.message), "it was never sent", None)];
    }
    let one = |((_, receiver), (fate, event)): (&(&MessageId, Option<&AgentName>), &(Fate, usize))| {
        let to = receiver.map(|to| format!(" to {to}")).unwrap_or_default();
        let expected = wrong(claim, fate)?;
        let expected = format!("message {}{to}: {expected}", claim.message);
        Some(Miss::new(expected, fate.to_string(), Some(*event)))
    };
    fates.iter().filter_map(one).collect()
}

/// Whether mail for the agent is still queued at the end.
pub(super) fn has_queued_mail(record: &Record, agent: &AgentName) -> bool {
    let mut ids: Vec<&MessageId> = Vec::new();
    for event in record.events.iter().filter(|event| event.at.agent.as_ref() == Some(agent)) {
        match &event.kind {
            EventKind::MessageQueued { message, .. } => ids.push(message),
            EventKind::MessageReturned { message, .. } => ids.retain(|id| *id != message),
            EventKind::MessageInjected { messages, .. } => ids.retain(|id| !messages.contains(id)),
            _ => {}
        }
    }
    !ids.is_empty()
}

/// What became of all messages; of what came of one the last counts.
pub(crate) fn fates(events: &[Event]) -> Fates<'_> {
    let mut fates = Fates::new();
    for (index, event) in events.iter().enumerate() {
        let (ids, fate) = match &event.kind {
            EventKind::MessageQueued { message, .. } => (slice::from_ref(message), Fate::Queued),
            EventKind::MessageRefused { message, reason, .. } => {
                (slice::from_ref(message), Fate::Refused(reason.to_string()))
            }
            EventKind::MessageReturned { message, reason } => {
                (slice::from_ref(message), Fate::Returned { reason: *reason, at: event.t })
            }
            EventKind::MessageInjected { messages, point, .. } => {
                let (run, turn) = (event.at.run.unwrap_or_default(), event.at.turn.unwrap_or_default());
                (messages.as_slice(), Fate::Injected { point: *point, run, turn, at: event.t })
            }
            _ => continue,
        };
        let to = event.at.agent.as_ref();
        fates.extend(ids.iter().map(|id| ((id, to), (fate.clone(), index))));
    }
    fates
}

/// What the claim asks for that the fate is not; `None`: the claim holds.
fn wrong(claim: &MessageClaim, fate: &Fate) -> Option<String> {
    if let Some(expected) = &claim.injected
        && !is_injected(expected, fate)
    {
        return Some(injected_in_words(expected));
    }
    if let Some(expected) = claim.returned
        && !matches!(fate, Fate::Returned { reason, .. } if *reason == expected)
    {
        return Some(format!("returned: {}", expected.as_str()));
    }
    if let Some(expected) = &claim.refused
        && *fate != Fate::Refused(expected.clone())
    {
        return Some(format!("refused: {expected}"));
    }
    match claim.queued {
        Some(true) if *fate != Fate::Queued => Some("still queued at the end".to_owned()),
        Some(false) if *fate == Fate::Queued => Some("no longer queued at the end".to_owned()),
        Some(_) | None => None,
    }
}

fn is_injected(expected: &InjectedClaim, fate: &Fate) -> bool {
    let Fate::Injected { point, run, turn, at } = fate else { return false };
    expected.point.is_none_or(|expected| expected == *point)
        && expected.run.is_none_or(|expected| expected == *run)
        && expected.turn.is_none_or(|expected| expected == *turn)
        && expected.at.is_none_or(|expected| expected.0 == at.0)
}

fn injected_in_words(claim: &InjectedClaim) -> String {
    let words = [
        claim.point.map(|point| format!(" at {}", point.as_str())),
        claim.run.map(|run| format!(", run {run}")),
        claim.turn.map(|turn| format!(", turn {turn}")),
        claim.at.map(|at| format!(", {} s", Micros(at.0))),
    ];
    format!("injected{}", words.into_iter().flatten().collect::<String>())
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queued => f.write_str("it is still queued"),
            Self::Refused(reason) => write!(f, "refused: {reason}"),
            Self::Returned { reason, at } => write!(f, "returned: {} at {at} s", reason.as_str()),
            Self::Injected { point, run, turn, at } => {
                write!(f, "injected at {}, run {run}, turn {turn}, {at} s", point.as_str())
            }
        }
    }
}
