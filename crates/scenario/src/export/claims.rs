//! What must come of an export again: what became of every call, how every run ended, where
//! every message went in.

use std::collections::{BTreeMap, HashMap};

use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, MessageId, RunId};

use super::out::{Keys, Out};

/// The expectations of an export, from the events as the file names things.
pub(super) fn claims(told: &[Event]) -> Vec<Out> {
    runs(told).into_iter().chain(messages(told)).map(Out::from).collect()
}

fn runs(told: &[Event]) -> Vec<Keys> {
    let mut tools: HashMap<(&AgentName, RunId), BTreeMap<&str, ToolStatus>> = HashMap::new();
    let mut runs = Vec::new();
    for event in told {
        let (Some(agent), Some(run)) = (&event.at.agent, event.at.run) else { continue };
        match &event.kind {
            EventKind::ToolFinished { tool, status, .. } => {
                tools.entry((agent, run)).or_default().insert(tool.as_str(), *status);
            }
            EventKind::RunFinished { outcome, error, .. } => runs.push(
                Keys::default()
                    .put("agent", Some(agent))
                    .put("run", Some(run))
                    .put("outcome", Some(outcome))
                    .put("error", error.as_deref())
                    .put("tools", tools.remove(&(agent, run))),
            ),
            _ => {}
        }
    }
    runs
}

/// Where a message went, at each receiver: the place of its event among all, and what that says.
type Fates<'e> = Vec<(&'e AgentName, &'e MessageId, Option<&'e Event>)>;

/// The claims about messages; none where an id stands for several.
fn messages(told: &[Event]) -> Vec<Keys> {
    let mut fates: Fates<'_> = Vec::new();
    for event in told {
        let Some(to) = &event.at.agent else { continue };
        match &event.kind {
            EventKind::MessageQueued { message, .. } => fates.push((to, message, None)),
            EventKind::MessageInjected { messages, .. } => {
                messages.iter().for_each(|message| went(&mut fates, to, message, event));
            }
            EventKind::MessageReturned { message, .. } => went(&mut fates, to, message, event),
            _ => {}
        }
    }
    let same = |(to, message, _): &(&AgentName, &MessageId, _)| {
        fates.iter().filter(|(other, id, _)| other == to && id == message).count() == 1
    };
    fates.iter().filter(|fate| same(fate)).map(|(to, message, fate)| claim(to, message, *fate)).collect()
}

fn went<'e>(fates: &mut Fates<'e>, to: &AgentName, message: &MessageId, event: &'e Event) {
    if let Some((.., fate)) = fates.iter_mut().find(|(of, id, _)| *of == to && *id == message) {
        *fate = Some(event);
    }
}

fn claim(to: &AgentName, message: &MessageId, fate: Option<&Event>) -> Keys {
    let keys = Keys::default().put("message", Some(message)).put("to", Some(to));
    match fate.map(|event| (&event.kind, &event.at)) {
        Some((EventKind::MessageInjected { point, .. }, at)) => {
            let injected = Keys::default().put("point", Some(point)).put("run", at.run).put("turn", at.turn);
            keys.map("injected", Some(injected))
        }
        Some((EventKind::MessageReturned { reason, .. }, _)) => keys.put("returned", Some(reason)),
        _ => keys.put("queued", Some(true)),
    }
}
