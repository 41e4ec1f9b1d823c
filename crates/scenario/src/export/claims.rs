//! What must come of an export again: what became of every call, how every run ended, where
//! every message went in.

use std::collections::{BTreeMap, HashMap};

use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, MessageId, RunId};

use super::out::{Keys, Out};
use crate::expect::messages::{Fate, fates};

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

/// The claims about messages. What was refused is not in the file.
fn messages(told: &[Event]) -> Vec<Keys> {
    let mut fates: Vec<_> = fates(told).into_iter().collect();
    fates.sort_by_key(|(_, (_, event))| *event);
    fates.into_iter().filter_map(|((message, to), (fate, _))| claim(message, to, &fate)).collect()
}

fn claim(message: &MessageId, to: Option<&AgentName>, fate: &Fate) -> Option<Keys> {
    let keys = Keys::default().put("message", Some(message)).put("to", to);
    Some(match fate {
        Fate::Queued => keys.put("queued", Some(true)),
        Fate::Refused(_) => return None,
        Fate::Returned { reason, .. } => keys.put("returned", Some(reason)),
        Fate::Injected { point, run, turn, .. } => {
            let injected =
                Keys::default().put("point", Some(point)).put("run", Some(run)).put("turn", Some(turn));
            keys.map("injected", Some(injected))
        }
    })
}
