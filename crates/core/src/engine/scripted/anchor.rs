//! Events that something waits for: scripted work with `ends_after`, and a scenario's items
//! with `after` (scenarios.md, section 1). The first event that fits counts, since the session
//! began, whoever begins to wait for it and when.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::engine::ports::Observer;
use crate::rules::event::{Event, EventKind};
use crate::rules::id::AgentName;
use crate::rules::time::{Micros, Span};

/// An event: the first that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Whose event; none for one of the session.
    pub agent: Option<AgentName>,
    /// Its type.
    pub event: &'static str,
    /// The id of its call, tool or message, or a number; `None` is any.
    pub id: Option<String>,
}

impl Anchor {
    /// What names an event; `call` is the number of its agent's last model call.
    pub fn of(event: &Event, call: u64) -> Self {
        Self { agent: event.at.agent.clone(), event: event.kind.type_name(), id: ids(event, call).pop() }
    }
}

/// What ends a scripted call or reply in the place of a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndsAfter {
    /// The event.
    pub anchor: Anchor,
    /// So long after it.
    pub plus: Span,
    /// Where the file says so, for whoever has to be told that the event never comes: line and
    /// column.
    pub at: (usize, usize),
}

/// Matches events with those that are waited for. It outlives the process that a replay ends,
/// and has to be told the events of each (as their [`Observer`]).
#[derive(Debug, Default)]
pub struct Anchors {
    state: Mutex<State>,
    /// Told when somebody begins to wait for the end of scripted work.
    began: Notify,
}

#[derive(Debug, Default)]
struct State {
    waited_for: Vec<Watched>,
    reached: Vec<Watched>,
    /// The number of each agent's current model call: only `model_started` says it.
    calls: HashMap<AgentName, u64>,
    /// Whose scripted work goes on until an event that has not come.
    open: Vec<(AgentName, EndsAfter)>,
}

#[derive(Debug)]
struct Watched {
    anchor: Anchor,
    at: watch::Sender<Option<Micros>>,
}

/// When an event happened, once it has.
#[derive(Clone, Debug)]
pub struct Reached(watch::Receiver<Option<Micros>>);

impl Reached {
    /// Waits for the event; for ever, if nobody can tell of it any more.
    pub async fn at(mut self) -> Micros {
        match self.0.wait_for(Option::is_some).await.map(|at| *at) {
            Ok(Some(at)) => at,
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// When it happened, if it has.
    pub fn now(&self) -> Option<Micros> {
        *self.0.borrow()
    }
}

impl Anchors {
    /// When the first such event happens. What is waited for has to be named before it can
    /// happen: events are not kept.
    pub fn watch(&self, anchor: &Anchor) -> Reached {
        let mut state = self.state.lock();
        let known = state.waited_for.iter().chain(&state.reached).find(|known| known.anchor == *anchor);
        let receiver = match known {
            Some(known) => known.at.subscribe(),
            None => {
                let (at, receiver) = watch::channel(None);
                state.waited_for.push(Watched { anchor: anchor.clone(), at });
                receiver
            }
        };
        Reached(receiver)
    }

    /// What scripted work waits for now, and whose it is.
    pub fn open(&self) -> Vec<(AgentName, EndsAfter)> {
        self.state.lock().open.clone()
    }

    /// Told when scripted work begins to wait after this call.
    pub fn began_to_wait(&self) -> tokio::sync::futures::Notified<'_> {
        self.began.notified()
    }

    /// Waits until work of this agent is to end.
    pub(super) async fn ends(&self, agent: &AgentName, after: &EndsAfter) -> Micros {
        let reached = self.watch(&after.anchor);
        let _waits = match reached.now() {
            Some(_) => None,
            None => Some(Waits::begin(self, agent, after)),
        };
        reached.at().await.after(after.plus)
    }
}

/// Somebody waits, until this is dropped.
struct Waits<'a> {
    anchors: &'a Anchors,
    what: (AgentName, EndsAfter),
}

impl<'a> Waits<'a> {
    fn begin(anchors: &'a Anchors, agent: &AgentName, after: &EndsAfter) -> Self {
        let what = (agent.clone(), after.clone());
        anchors.state.lock().open.push(what.clone());
        anchors.began.notify_waiters();
        Self { anchors, what }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut state = self.anchors.state.lock();
        if let Some(place) = state.open.iter().position(|open| *open == self.what) {
            state.open.remove(place);
        }
    }
}

impl Observer for Anchors {
    fn event(&self, event: &Event) {
        let mut state = self.state.lock();
        let agent = event.at.agent.as_ref();
        if let (EventKind::ModelStarted { call, .. }, Some(agent)) = (&event.kind, agent) {
            state.calls.insert(agent.clone(), *call);
        }
        let call = agent.and_then(|agent| state.calls.get(agent)).copied().unwrap_or_default();
        let State { waited_for, reached, .. } = &mut *state;
        for watched in waited_for.extract_if(.., |watched| fits(&watched.anchor, event, call)) {
            watched.at.send_replace(Some(event.t));
            reached.push(watched);
        }
    }
}

fn fits(anchor: &Anchor, event: &Event, call: u64) -> bool {
    anchor.agent == event.at.agent
        && event.kind.type_name() == anchor.event
        && anchor.id.as_ref().is_none_or(|id| ids(event, call).contains(id))
}

/// The ids by which an event can be named: of its call, tool or messages, or a number; `call` is that of
/// its agent's last model call. No other kind has an id.
fn ids(event: &Event, call: u64) -> Vec<String> {
    match &event.kind {
        EventKind::ToolStarted { tool, .. }
        | EventKind::ToolFinished { tool, .. }
        | EventKind::ApprovalRequested { tool, .. }
        | EventKind::ApprovalResolved { tool, .. } => vec![tool.to_string()],
        EventKind::MessageQueued { message, .. }
        | EventKind::MessageRefused { message, .. }
        | EventKind::MessageReturned { message, .. } => vec![message.to_string()],
        EventKind::MessageInjected { messages, .. } => messages.iter().map(ToString::to_string).collect(),
        EventKind::ModelStarted { .. }
        | EventKind::ModelFinished { .. }
        | EventKind::ModelInterrupted { .. }
        | EventKind::ModelRetry { .. } => vec![call.to_string()],
        EventKind::RunStarted { .. } | EventKind::RunFinished { .. } => {
            event.at.run.iter().map(ToString::to_string).collect()
        }
        _ => Vec::new(),
    }
}
