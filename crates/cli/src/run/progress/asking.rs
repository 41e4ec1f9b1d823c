//! Who asks for a person's word, as far as events tell, so that with each request it is said
//! what can be typed. Pure: it prints nothing and answers nothing.

use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, CallId};
use midturn_core::rules::time::Micros;

/// How many requests are followed: more than a session has.
const OPEN_MAX: usize = 4_096;

/// A request that a person was shown. A model may use a call's id again: what is asked about
/// such a call after this one was shown is another request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Who asks.
    pub agent: AgentName,
    /// The call.
    pub tool: CallId,
    /// By when it was asked, in the session's time.
    pub by: Micros,
}

/// The requests that are open.
#[derive(Debug, Default)]
pub struct Asking {
    open: Vec<Shown>,
}

impl Asking {
    /// A request that was open before the first event that is followed: what a person can type.
    pub fn knows(&mut self, agent: &AgentName, tool: &str, by: Micros) -> String {
        let is_it = |shown: &Shown| shown.agent == *agent && shown.tool.as_str() == tool;
        let hint = hint(agent, self.open.iter().any(|shown| !is_it(shown)));
        // What was open before the first event may be told by an event, too.
        if let Some(known) = self.open.iter_mut().find(|shown| is_it(shown)) {
            known.by = by;
        } else if self.open.len() < OPEN_MAX {
            self.open.push(Shown { agent: agent.clone(), tool: CallId::new(tool), by });
        }
        hint
    }

    /// They, in the order in which they were shown.
    pub fn shown(&self) -> Vec<Shown> {
        self.open.clone()
    }

    /// Follows an event. Of a request it says what a person can type, to be put behind its line.
    pub fn follow(&mut self, event: &Event) -> Option<String> {
        let agent = event.at.agent.as_ref()?;
        match &event.kind {
            EventKind::ApprovalRequested { tool, .. } => Some(self.knows(agent, tool.as_str(), event.t)),
            EventKind::ApprovalResolved { tool, .. } => {
                self.open.retain(|shown| shown.agent != *agent || shown.tool != *tool);
                None
            }
            EventKind::RunStarted { .. } | EventKind::RunFinished { .. } | EventKind::AgentClosed {} => {
                self.open.retain(|shown| shown.agent != *agent);
                None
            }
            _ => None,
        }
    }
}

/// Without a name the oldest request is answered, so a later one says its agent's.
fn hint(agent: &AgentName, others: bool) -> String {
    if others {
        format!("    [/yes {agent}, /always {agent}, /no {agent} REASON]")
    } else {
        "    [/yes, /always, /no REASON]".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midturn_core::rules::approval::Decision;
    use midturn_core::rules::conversation::Usage;
    use midturn_core::rules::event::{Outcome, Place, VERSION};

    fn follow(asking: &mut Asking, agent: &str, kind: EventKind) -> Option<String> {
        let at = Place::of(&AgentName::new(agent).unwrap(), 1, 1);
        asking.follow(&Event { v: VERSION, seq: 1, t: Micros(0), at, kind })
    }

    fn asks(asking: &mut Asking, agent: &str) -> String {
        let (tool, name, input, always) = (CallId::new("c"), "bash".into(), "x".into(), "bash(x)".into());
        follow(asking, agent, EventKind::ApprovalRequested { tool, name, input, always }).unwrap()
    }

    #[test]
    fn what_was_asked_before_counts_among_the_others() {
        let mut asking = Asking::default();
        let early = AgentName::new("early").unwrap();
        assert_eq!(asking.knows(&early, "c", Micros(0)), "    [/yes, /always, /no REASON]");
        assert_eq!(asks(&mut asking, "b"), "    [/yes b, /always b, /no b REASON]");
    }

    #[test]
    fn a_request_beside_others_is_answered_by_name() {
        let alone = "    [/yes, /always, /no REASON]";
        let mut asking = Asking::default();
        assert_eq!(asks(&mut asking, "a"), alone);
        assert_eq!(asks(&mut asking, "b"), "    [/yes b, /always b, /no b REASON]");
        let (tool, decision) = (CallId::new("c"), Decision::Once);
        let resolved = EventKind::ApprovalResolved { tool, decision, by: "user".into(), reason: None };
        assert_eq!(follow(&mut asking, "a", resolved), None);
        let (outcome, usage) = (Outcome::Stopped, Usage::default());
        follow(&mut asking, "b", EventKind::RunFinished { outcome, error: None, turns: 1, usage });
        assert_eq!(asks(&mut asking, "a"), alone);
    }
}
