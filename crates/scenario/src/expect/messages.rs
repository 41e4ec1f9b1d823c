//! `message` expectations: where a message went in, or that and why it did not.

use std::collections::BTreeMap;

use midturn_core::rules::event::EventKind;
use midturn_core::rules::id::{AgentName, MessageId, RunId, TurnId};
use midturn_core::rules::mail::{Point, ReturnReason};
use midturn_core::rules::time::Micros;

use super::Miss;
use crate::record::Record;
use crate::scenario::{InjectedClaim, MessageClaim};

/// What became of a message at one receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    Queued,
    Refused(String),
    Returned(ReturnReason),
    Injected { point: Point, run: RunId, turn: TurnId, at: Micros },
}

/// What became of a message at one receiver, and the event that says so.
type Fates = BTreeMap<Option<AgentName>, (Fate, usize)>;

/// Checks a claim about a message.
pub(super) fn check(claim: &MessageClaim, record: &Record) -> Vec<Miss> {
    let mut fates = fates(record, &claim.message);
    if let Some(to) = &claim.to {
        fates.retain(|receiver, _| receiver.as_ref() == Some(to));
    }
    if fates.is_empty() {
        let to = claim.to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
        return vec![Miss::new(format!("message {}{to}", claim.message), "it was never sent", None)];
    }
    let one = |(receiver, (fate, event)): (&Option<AgentName>, &(Fate, usize))| {
        let to = receiver.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
        let expected = wrong(claim, fate)?;
        let expected = format!("message {}{to}: {expected}", claim.message);
        Some(Miss::new(expected, told(fate), Some(*event)))
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

fn fates(record: &Record, id: &MessageId) -> Fates {
    let mut fates = Fates::new();
    for (index, event) in record.events.iter().enumerate() {
        let fate = match &event.kind {
            EventKind::MessageQueued { message, .. } if message == id => Fate::Queued,
            EventKind::MessageRefused { message, reason, .. } if message == id => {
                Fate::Refused(reason.to_string())
            }
            EventKind::MessageReturned { message, reason } if message == id => Fate::Returned(*reason),
            EventKind::MessageInjected { messages, point, .. } if messages.contains(id) => Fate::Injected {
                point: *point,
                run: event.at.run.unwrap_or_default(),
                turn: event.at.turn.unwrap_or_default(),
                at: event.t,
            },
            _ => continue,
        };
        fates.insert(event.at.agent.clone(), (fate, index));
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
        && *fate != Fate::Returned(expected)
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

fn told(fate: &Fate) -> String {
    match fate {
        Fate::Queued => "it is still queued".to_owned(),
        Fate::Refused(reason) => format!("refused: {reason}"),
        Fate::Returned(reason) => format!("returned: {}", reason.as_str()),
        Fate::Injected { point, run, turn, at } => {
            format!("injected at {}, run {run}, turn {turn}, {at} s", point.as_str())
        }
    }
}
