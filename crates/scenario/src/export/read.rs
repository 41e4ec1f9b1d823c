//! Reads the events of a session in order and tells every agent's part what happened.
//!
//! The parts are `runs` (runs and model calls), `turn` (calls), `own` (the coordinator's
//! tools), `mail` (messages) and `halt` (stops and closes). None of them decides what a
//! message does: they only see what it did, and say which instants must come in which order
//! so that it does the same again.

use std::collections::HashMap;

use midturn_core::engine::ports::archive::SessionJournal;
use midturn_core::engine::ports::store::Accepted;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, MessageId, RunId};
use midturn_core::rules::mail::{Point, ReturnReason};
use midturn_core::rules::time::Micros;

use super::ExportError;
use super::actor::{Actor, Opening};
use super::moments::{BEGIN, Moments};
use super::plan::{Deed, LandmarkKind};

/// What became of a message at one receiver, for the export's expectations.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    /// The id that the file calls it by.
    pub(super) file_id: String,
    pub(super) from: String,
    pub(super) id: MessageId,
    pub(super) to: usize,
    pub(super) fate: Fate,
}

/// Where a message ended up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Queued,
    Injected { point: Point, run: RunId, turn: u32 },
    Returned(ReturnReason),
}

/// A session, as far as its events are read.
pub(super) struct Reader<'a> {
    pub(super) events: &'a [Event],
    /// The place of the event that is read now.
    pub(super) place: usize,
    pub(super) actors: Vec<Actor<'a>>,
    pub(super) moments: Moments,
    pub(super) deeds: Vec<Deed>,
    pub(super) letters: Vec<Letter>,
    pub(super) kept: HashMap<(String, MessageId, AgentName), &'a Accepted>,
    index: HashMap<AgentName, usize>,
}

impl<'a> Reader<'a> {
    /// Reads all of a session.
    pub(super) fn read(journal: &'a SessionJournal, events: &'a [Event]) -> Result<Self, ExportError> {
        let mut reader = Self::new(journal, events);
        for (place, event) in events.iter().enumerate() {
            reader.place = place;
            reader.event(event)?;
        }
        Ok(reader)
    }

    fn new(journal: &'a SessionJournal, events: &'a [Event]) -> Self {
        let spawned = |event: &&Event| matches!(event.kind, EventKind::AgentSpawned { .. });
        let virtual_time = events.iter().find_map(|event| match &event.kind {
            EventKind::SessionStarted { virtual_time, .. } => Some(*virtual_time),
            _ => None,
        });
        let exact = virtual_time.unwrap_or(false);
        let first = events.iter().find(spawned).map_or(Micros(0), |event| event.t);
        let origin = if exact { Micros(0) } else { first };
        let actors: Vec<Actor<'a>> = journal.agents.iter().map(Actor::new).collect();
        let index = actors.iter().enumerate().map(|(i, actor)| (actor.journal.record.name.clone(), i));
        let kept = journal.mail.iter().map(|kept| {
            let mail = &kept.accepted.mail;
            ((mail.from.to_string(), mail.id.clone(), mail.to.clone()), &kept.accepted)
        });
        Self {
            events,
            place: 0,
            index: index.collect(),
            kept: kept.collect(),
            actors,
            moments: Moments::new(origin, exact),
            deeds: Vec::new(),
            letters: Vec::new(),
        }
    }

    /// The place of an agent in the session.
    pub(super) fn agent(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// The events that come after the one that is read now.
    pub(super) fn ahead(&self) -> &'a [Event] {
        &self.events[self.place + 1..]
    }

    fn event(&mut self, event: &Event) -> Result<(), ExportError> {
        let Some(name) = &event.at.agent else { return Ok(()) };
        // A refused message may be for nobody.
        let Some(agent) = self.agent(name.as_str()) else {
            return match &event.kind {
                EventKind::MessageRefused { .. } => Ok(()),
                _ => Err(ExportError::damaged(format!("event {} is about an unknown agent", event.seq))),
            };
        };
        match &event.kind {
            EventKind::AgentSpawned { .. } => self.spawned(event, agent),
            EventKind::AgentClosed {} => self.closed(event, agent),
            EventKind::StopRequested { .. } => self.stop_requested(event, agent),
            EventKind::MessageQueued { .. } => self.queued(event, agent),
            EventKind::MessageInjected { .. } => self.injected(event, agent),
            EventKind::MessageReturned { .. } => self.returned(event, agent),
            EventKind::RunStarted { trigger } => self.run_started(event, agent, trigger),
            EventKind::RunFinished { .. } => self.run_finished(event, agent)?,
            EventKind::ModelStarted { .. } => self.model_started(event, agent)?,
            EventKind::ModelFinished { .. } => self.model_finished(event, agent)?,
            EventKind::ModelInterrupted { reason, .. } => self.model_interrupted(event, agent, *reason),
            EventKind::ModelRetry { .. } => self.model_retry(event, agent),
            EventKind::ToolStarted { .. } => self.tool_started(event, agent)?,
            EventKind::ToolFinished { .. } => self.tool_finished(event, agent)?,
            EventKind::ApprovalRequested { .. } | EventKind::ApprovalResolved { .. } => {
                return Err(ExportError::NotThereYet("a person was asked about calls"));
            }
            EventKind::LimitRaised { .. } => return Err(ExportError::NotThereYet("a limit was raised")),
            EventKind::Compacted { .. }
            | EventKind::SessionStarted { .. }
            | EventKind::SessionResumed { .. }
            | EventKind::MessageRefused { .. }
            | EventKind::PlanUpdated { .. } => {}
        }
        Ok(())
    }

    fn spawned(&mut self, event: &Event, agent: usize) {
        let record = &self.actors[agent].journal.record;
        let name = record.name.as_str();
        let parent = record.parent.as_ref().and_then(|parent| self.agent(parent.as_str()));
        let names_it = |input: &serde_json::Value| input.get("name").and_then(|n| n.as_str()) == Some(name);
        let call = parent.and_then(|parent| self.acting(parent, &["spawn_agent"], names_it));
        let (opening, at) = match call {
            Some(at) => (Opening::Spawned, at),
            None if self.began_before() && !self.moments.is_exact() => (Opening::Late, BEGIN),
            None => (Opening::AtOnce, BEGIN),
        };
        let actor = &mut self.actors[agent];
        (actor.opening, actor.now) = (opening, at);
        if opening == Opening::Spawned {
            actor.landmark(event.seq, "agent_spawned", Some("any".into()), at, LandmarkKind::Caused);
        }
    }

    /// Whether something had come of the session's first agents when this one came.
    fn began_before(&self) -> bool {
        self.events[..self.place].iter().any(|event| {
            !matches!(
                event.kind,
                EventKind::SessionStarted { .. }
                    | EventKind::AgentSpawned { .. }
                    | EventKind::RunStarted { .. }
                    | EventKind::ModelStarted { .. }
            )
        })
    }
}
