//! `after`: who waits for the first event of a kind is told when it happened.

use std::collections::HashMap;

use midturn_core::engine::ports::Observer;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::time::Micros;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::scenario::Anchor;

/// Matches events with those that items wait for. Each is told once, of the first that fits.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<(Anchor, oneshot::Sender<Micros>)>,
    /// The number of each agent's current model call: only `model_started` says it.
    calls: HashMap<AgentName, u64>,
}

impl Anchors {
    /// When the first such event happens; never, if the sender is dropped before.
    pub(super) fn watch(&self, anchor: &Anchor) -> oneshot::Receiver<Micros> {
        let (sender, receiver) = oneshot::channel();
        self.state.lock().waiting.push((anchor.clone(), sender));
        receiver
    }

    /// How many events are still waited for.
    pub(super) fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }
}

impl Observer for Anchors {
    fn event(&self, event: &Event) {
        let mut state = self.state.lock();
        let Some(agent) = &event.at.agent else { return };
        if let EventKind::ModelStarted { call, .. } = &event.kind {
            state.calls.insert(agent.clone(), *call);
        }
        let call = state.calls.get(agent).copied().unwrap_or_default();
        let mut index = 0;
        while index < state.waiting.len() {
            if fits(&state.waiting[index].0, agent, event, call) {
                let (_, sender) = state.waiting.remove(index);
                // Nobody waits any more when the replay has ended.
                let _ = sender.send(event.t);
            } else {
                index += 1;
            }
        }
    }
}

fn fits(anchor: &Anchor, agent: &AgentName, event: &Event, call: u64) -> bool {
    anchor.agent == *agent
        && event.kind.type_name() == anchor.event
        && anchor.id.as_ref().is_none_or(|id| has_id(event, id, call))
}

fn has_id(event: &Event, id: &str, call: u64) -> bool {
    match &event.kind {
        EventKind::ToolStarted { tool, .. }
        | EventKind::ToolFinished { tool, .. }
        | EventKind::ApprovalRequested { tool, .. }
        | EventKind::ApprovalResolved { tool, .. } => tool.as_str() == id,
        EventKind::MessageQueued { message, .. }
        | EventKind::MessageRefused { message, .. }
        | EventKind::MessageReturned { message, .. } => message.as_str() == id,
        EventKind::MessageInjected { messages, .. } => messages.iter().any(|message| message.as_str() == id),
        EventKind::ModelStarted { .. }
        | EventKind::ModelFinished { .. }
        | EventKind::ModelInterrupted { .. }
        | EventKind::ModelRetry { .. } => call.to_string() == id,
        EventKind::RunStarted { .. } | EventKind::RunFinished { .. } => {
            event.at.run.is_some_and(|run| run.to_string() == id)
        }
        EventKind::SessionStarted { .. }
        | EventKind::AgentSpawned { .. }
        | EventKind::StopRequested { .. }
        | EventKind::PlanUpdated { .. }
        | EventKind::Compacted { .. }
        | EventKind::AgentClosed {} => false,
    }
}
