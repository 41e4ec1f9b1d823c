//! Remembers how the lead ended. It is told every event and acts on none.

use std::sync::{Mutex, PoisonError};

use midturn_core::engine::ports::Observer;
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::event::{Event, EventKind, Outcome};
use midturn_core::rules::id::AgentName;

/// What the lead said last and how its last run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastWord {
    /// The whole text of its last reply.
    pub text: String,
    /// The outcome; none before its first run's end.
    pub outcome: Option<Outcome>,
}

/// Remembers the lead's last word.
#[derive(Debug)]
pub struct LeadWatcher {
    lead: AgentName,
    last: Mutex<LastWord>,
}

impl LeadWatcher {
    /// Watches this agent.
    pub fn new(lead: AgentName) -> Self {
        Self { lead, last: Mutex::default() }
    }

    /// What it said and how it ended, as far as it has.
    pub fn last_word(&self) -> LastWord {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Observer for LeadWatcher {
    fn event(&self, event: &Event) {
        if event.at.agent.as_ref() != Some(&self.lead) {
            return;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &event.kind {
            EventKind::RunStarted { .. } => *last = LastWord::default(),
            EventKind::ModelFinished { text, purpose: Purpose::Turn, .. } => last.text.clone_from(text),
            EventKind::RunFinished { outcome, .. } => last.outcome = Some(*outcome),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use midturn_core::rules::conversation::Usage;
    use midturn_core::rules::event::{Place, Trigger, VERSION};
    use midturn_core::rules::time::Micros;

    use super::*;

    #[test]
    fn the_last_run_of_the_lead_alone_counts() {
        let watcher = LeadWatcher::new(AgentName::new("lead").unwrap());
        let tell = |agent: &str, kind: EventKind| {
            let at = Place::of(&AgentName::new(agent).unwrap(), 1, 1);
            watcher.event(&Event { v: VERSION, seq: 1, t: Micros(0), at, kind });
        };
        let said = |text: &str| EventKind::ModelFinished {
            stop_reason: "end_turn".into(),
            usage: Usage::default(),
            text: text.to_owned(),
            thinking: vec![],
            tools: vec![],
            purpose: Purpose::Turn,
        };
        let ended =
            |outcome| EventKind::RunFinished { outcome, error: None, turns: 1, usage: Usage::default() };
        tell("lead", said("first"));
        tell("lead", ended(Outcome::Failed));
        tell("lead", EventKind::RunStarted { trigger: Trigger::Prompt });
        assert_eq!(watcher.last_word(), LastWord::default());
        tell("lead", said("second"));
        tell("worker", said("other"));
        tell("worker", ended(Outcome::Failed));
        tell("lead", ended(Outcome::Finished));
        assert_eq!(watcher.last_word(), LastWord { text: "second".into(), outcome: Some(Outcome::Finished) });
    }
}
