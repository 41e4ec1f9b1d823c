//! What must come of an export again: what became of every call, how every run ended, where
//! every message went in.

use std::collections::{BTreeMap, HashMap};

use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, RunId};

use super::out::{OutClaim, OutInjected};

/// The expectations of an export, from the events as the file names things.
pub(super) fn claims(told: &[Event]) -> Vec<OutClaim> {
    runs(told).into_iter().chain(messages(told)).collect()
}

fn runs(told: &[Event]) -> Vec<OutClaim> {
    let mut tools: HashMap<(&AgentName, RunId), BTreeMap<String, ToolStatus>> = HashMap::new();
    let mut runs = Vec::new();
    for event in told {
        let (Some(agent), Some(run)) = (&event.at.agent, event.at.run) else { continue };
        match &event.kind {
            EventKind::ToolFinished { tool, status, .. } => {
                tools.entry((agent, run)).or_default().insert(tool.to_string(), *status);
            }
            EventKind::RunFinished { outcome, error, .. } => runs.push(OutClaim {
                agent: Some(agent.to_string()),
                run: Some(run),
                outcome: Some(*outcome),
                error: error.as_deref().map(str::to_owned),
                tools: tools.remove(&(agent, run)).unwrap_or_default(),
                ..OutClaim::default()
            }),
            _ => {}
        }
    }
    runs
}

/// The claims about messages; none where an id stands for several.
fn messages(told: &[Event]) -> Vec<OutClaim> {
    let mut letters: Vec<(&AgentName, &str, OutClaim)> = Vec::new();
    let mut doubled = Vec::new();
    for event in told {
        let Some(to) = &event.at.agent else { continue };
        let fate = |letters: &mut Vec<(&AgentName, &str, OutClaim)>, id: &str, fate: OutClaim| {
            if let Some((.., claim)) = letters.iter_mut().find(|(of, named, _)| *of == to && *named == id) {
                let (message, to) = (claim.message.take(), claim.to.take());
                *claim = OutClaim { message, to, ..fate };
            }
        };
        match &event.kind {
            EventKind::MessageQueued { message, .. } => {
                let id = message.as_str();
                if letters.iter().any(|(of, named, _)| *of == to && *named == id) {
                    doubled.push((to, id));
                }
                let claim = OutClaim {
                    message: Some(id.to_owned()),
                    to: Some(to.to_string()),
                    queued: Some(true),
                    ..OutClaim::default()
                };
                letters.push((to, id, claim));
            }
            EventKind::MessageInjected { messages, point, .. } => {
                let (point, run) = (*point, event.at.run.unwrap_or_default());
                let turn = event.at.turn.unwrap_or_default();
                for id in messages {
                    let injected = Some(OutInjected { point, run, turn });
                    fate(&mut letters, id.as_str(), OutClaim { injected, ..OutClaim::default() });
                }
            }
            EventKind::MessageReturned { message, reason } => {
                let returned = Some(*reason);
                fate(&mut letters, message.as_str(), OutClaim { returned, ..OutClaim::default() });
            }
            _ => {}
        }
    }
    let single = letters.into_iter().filter(|(to, id, _)| !doubled.contains(&(*to, *id)));
    single.map(|(.., claim)| claim).collect()
}
