//! The course of events of a session: what follows what, in each agent and in all of them.

use std::collections::{HashMap, HashSet};

use crate::rules::compaction::Purpose;
use crate::rules::event::{Event, EventKind};
use crate::rules::id::{AgentName, CallId, MessageId, RunId};
use crate::rules::mail::Point;
use crate::rules::time::Micros;
use crate::rules::validate::{Breach, breach};

/// What was told so far.
#[derive(Debug, Default)]
pub(super) struct Course {
    seq: u64,
    t: Micros,
    agents: HashMap<AgentName, Agent>,
}

#[derive(Debug, Default)]
struct Agent {
    run: RunId,
    running: bool,
    /// A stop was asked for in this run: no call and no request leaves any more.
    stopped: bool,
    /// Mail was put into the conversation and no request has followed: no call may start.
    closed_turn: bool,
    /// The last call gave a summary, and nothing has been made of it.
    summarised: bool,
    queued: Vec<MessageId>,
    started: HashSet<CallId>,
    finished: HashSet<CallId>,
}

impl Course {
    pub(super) fn event(&mut self, event: &Event) -> Result<(), Breach> {
        if event.seq != self.seq + 1 || event.t < self.t {
            return breach(
                8,
                format!("event {} at {} s follows event {} at {} s", event.seq, event.t, self.seq, self.t),
            );
        }
        (self.seq, self.t) = (event.seq, event.t);
        let Some(name) = &event.at.agent else { return Ok(()) };
        let agent = self.agents.entry(name.clone()).or_default();
        agent.of_this_run(event)?;
        agent.mail(&event.kind)?;
        agent.calls(&event.kind)
    }

    /// Every run that began has ended.
    pub(super) fn ends(&self) -> Result<(), Breach> {
        let open = self.agents.iter().find(|(_, agent)| agent.running);
        open.map_or(Ok(()), |(name, agent)| breach(8, format!("run {} of {name} has not ended", agent.run)))
    }
}

impl Agent {
    /// Invariant 8: what belongs to a run happens in it.
    fn of_this_run(&mut self, event: &Event) -> Result<(), Breach> {
        let run = event.at.run.unwrap_or_default();
        match &event.kind {
            EventKind::RunStarted { .. } => {
                if self.running || run != self.run + 1 {
                    return breach(8, format!("run {run} starts while run {} is the last", self.run));
                }
                *self = Self {
                    run,
                    running: true,
                    queued: std::mem::take(&mut self.queued),
                    finished: std::mem::take(&mut self.finished),
                    ..Self::default()
                };
            }
            EventKind::RunFinished { .. } => {
                self.in_run(run)?;
                if self.started.iter().any(|call| !self.finished.contains(call)) {
                    return breach(9, "a run is over while a call of it is not");
                }
                self.running = false;
            }
            // It may find an agent that was woken and has not begun (docs/decisions/0012).
            EventKind::StopRequested { .. } if !self.running && run == self.run + 1 => {}
            EventKind::StopRequested { .. } => self.in_run(run)?,
            kind if kind.is_of_run() => self.in_run(run)?,
            _ => {}
        }
        Ok(())
    }

    fn in_run(&self, run: RunId) -> Result<(), Breach> {
        if self.running && run == self.run {
            Ok(())
        } else {
            breach(
                8,
                format!(
                    "an event of run {run}, and run {} is {}",
                    self.run,
                    if self.running { "current" } else { "over" }
                ),
            )
        }
    }

    /// Invariants 2 and 3: each message leaves the mailbox once, together in order of arrival.
    fn mail(&mut self, kind: &EventKind) -> Result<(), Breach> {
        match kind {
            EventKind::MessageQueued { message, .. } => self.queued.push(message.clone()),
            EventKind::MessageReturned { message, .. } => {
                self.leaves(message)?;
            }
            EventKind::MessageInjected { messages, .. } => {
                let places: Vec<usize> =
                    messages.iter().map(|id| self.place(id)).collect::<Result<_, _>>()?;
                if !places.is_sorted() {
                    return breach(2, format!("{messages:?} are not injected in order of arrival"));
                }
                for message in messages {
                    self.leaves(message)?;
                }
            }
            // No other kind moves mail: what each does to an agent is decided in `rules/view`.
            _ => {}
        }
        Ok(())
    }

    fn place(&self, message: &MessageId) -> Result<usize, Breach> {
        let place = self.queued.iter().position(|queued| queued == message);
        place.map_or_else(|| breach(2, format!("message {message} was not queued, or is there twice")), Ok)
    }

    fn leaves(&mut self, message: &MessageId) -> Result<(), Breach> {
        let place = self.place(message)?;
        self.queued.remove(place);
        Ok(())
    }

    /// Invariants 4 and 5: nothing starts that a look or a token forbade, nothing ends twice.
    fn calls(&mut self, kind: &EventKind) -> Result<(), Breach> {
        match kind {
            EventKind::ModelStarted { .. } if self.stopped => breach(5, "a request leaves after a stop"),
            EventKind::ModelStarted { .. } => {
                (self.closed_turn, self.summarised) = (false, false);
                Ok(())
            }
            EventKind::ModelFinished { purpose, .. } => {
                self.summarised = *purpose == Purpose::Summary;
                // It is no reply: the turn has nothing yet that could ask for a call.
                self.closed_turn |= self.summarised;
                Ok(())
            }
            EventKind::Compacted { .. } => {
                if std::mem::take(&mut self.summarised) {
                    Ok(())
                } else {
                    breach(6, "a conversation is compacted and no call gave a summary")
                }
            }
            EventKind::MessageInjected { point, .. } => {
                self.closed_turn |= *point != Point::Wait;
                Ok(())
            }
            EventKind::StopRequested { .. } => {
                self.stopped = true;
                Ok(())
            }
            EventKind::ToolStarted { tool, .. } => self.call_starts(tool),
            EventKind::ToolFinished { tool, .. } if self.finished.insert(tool.clone()) => Ok(()),
            EventKind::ToolFinished { tool, .. } => breach(4, format!("call {tool} has a second result")),
            // No other kind starts anything or ends it.
            _ => Ok(()),
        }
    }

    fn call_starts(&mut self, tool: &CallId) -> Result<(), Breach> {
        let is_new = !self.finished.contains(tool) && self.started.insert(tool.clone());
        if is_new && !self.stopped && !self.closed_turn {
            return Ok(());
        }
        breach(4, format!("call {tool} starts though it was forbidden or has started before"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::rules::conversation::ToolStatus;
    use crate::rules::event::{Outcome, Place, Trigger, VERSION};
    use crate::rules::mail::{ReturnReason, Urgency};

    fn course(kinds: Vec<EventKind>) -> Option<u8> {
        let worker = AgentName::new("worker").unwrap();
        let mut course = Course::default();
        let event = |(seq, kind)| Event { v: VERSION, seq, t: Micros(0), at: Place::of(&worker, 1, 1), kind };
        (1..).zip(kinds).map(event).find_map(|event| course.event(&event).err()).map(|breach| breach.number)
    }

    fn starts() -> EventKind {
        EventKind::RunStarted { trigger: Trigger::Prompt }
    }

    fn tool(id: &str) -> EventKind {
        EventKind::ToolStarted {
            tool: CallId::new(id),
            name: "edit".into(),
            input: serde_json::Value::Null,
            batch: 1,
        }
    }

    fn ends(id: &str) -> EventKind {
        let (tool, name) = (CallId::new(id), "edit".into());
        EventKind::ToolFinished {
            tool,
            name,
            status: ToolStatus::Completed,
            is_error: false,
            bytes: 0,
            output: String::new(),
        }
    }

    fn queued(id: &str) -> EventKind {
        EventKind::MessageQueued {
            message: MessageId::new(id),
            from: "user".into(),
            urgency: Urgency::Urgent,
            text: "x".into(),
        }
    }

    fn injected(ids: &[&str]) -> EventKind {
        EventKind::MessageInjected {
            messages: ids.iter().map(|id| MessageId::new(*id)).collect(),
            point: Point::C,
            text: "x".into(),
            skipped: Arc::default(),
            interrupted: Arc::default(),
        }
    }

    fn stopped() -> EventKind {
        EventKind::StopRequested {
            by: "user".into(),
            scope: Default::default(),
            reason: Default::default(),
            still_queued: Vec::new(),
        }
    }

    #[test]
    fn invariant_2_a_message_leaves_the_mailbox_once_and_in_order() {
        assert_eq!(course(vec![starts(), queued("a"), queued("b"), injected(&["a", "b"])]), None);
        assert_eq!(course(vec![starts(), queued("a"), queued("b"), injected(&["b", "a"])]), Some(2));
        let returned =
            EventKind::MessageReturned { message: MessageId::new("a"), reason: ReturnReason::Stopped };
        assert_eq!(course(vec![starts(), queued("a"), injected(&["a"]), returned]), Some(2));
    }

    #[test]
    fn invariant_4_nothing_starts_that_was_forbidden_and_nothing_ends_twice() {
        assert_eq!(course(vec![starts(), tool("a"), ends("a")]), None);
        assert_eq!(course(vec![starts(), tool("a"), ends("a"), ends("a")]), Some(4));
        assert_eq!(course(vec![starts(), stopped(), tool("a")]), Some(4));
        assert_eq!(course(vec![starts(), queued("a"), injected(&["a"]), tool("a")]), Some(4));
    }

    #[test]
    fn invariant_5_a_stop_at_any_moment_wins() {
        let request = EventKind::ModelStarted { call: 1, messages: 1, purpose: Purpose::Turn };
        assert_eq!(course(vec![starts(), stopped(), request]), Some(5));
    }

    #[test]
    fn invariant_6_restarts_at_a_summary_and_only_there() {
        let said = |purpose| EventKind::ModelFinished {
            stop_reason: "end_turn".into(),
            usage: Default::default(),
            text: "So far.".into(),
            thinking: Vec::new(),
            tools: Vec::new(),
            purpose,
        };
        let compacted = || EventKind::Compacted { messages: Default::default(), tokens: Default::default() };
        assert_eq!(course(vec![starts(), said(Purpose::Summary), compacted()]), None);
        assert_eq!(course(vec![starts(), compacted()]), Some(6));
        assert_eq!(course(vec![starts(), said(Purpose::Turn), compacted()]), Some(6));
        assert_eq!(course(vec![starts(), said(Purpose::Summary), compacted(), compacted()]), Some(6));
        assert_eq!(course(vec![starts(), said(Purpose::Summary), tool("a")]), Some(4));
        assert_eq!(course(vec![compacted()]), Some(8));
    }

    #[test]
    fn invariant_8_an_event_of_a_stale_run_is_noticed() {
        assert_eq!(course(vec![tool("a")]), Some(8));
        assert_eq!(course(vec![starts(), starts()]), Some(8));
    }

    #[test]
    fn invariant_8_a_run_that_began_has_ended_at_the_end() {
        let worker = AgentName::new("worker").unwrap();
        let mut course = Course::default();
        assert!(course.ends().is_ok());
        let at = Place::of(&worker, 1, 0);
        course.event(&Event { v: VERSION, seq: 1, t: Micros(0), at: at.clone(), kind: starts() }).unwrap();
        assert_eq!(course.ends().unwrap_err().number, 8);
        let (outcome, usage) = (Outcome::Finished, Default::default());
        let kind = EventKind::RunFinished { outcome, error: None, turns: 0, usage };
        course.event(&Event { v: VERSION, seq: 2, t: Micros(0), at, kind }).unwrap();
        assert!(course.ends().is_ok());
    }
}
