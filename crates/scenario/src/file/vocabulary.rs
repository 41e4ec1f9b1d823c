//! The event types and their fields, as scenarios.md, section 4, lists them: what `after`,
//! `event` and `never` may name. A misspelt field in `never` would hold for ever, so every
//! name is checked against these lists. What is live only is no event of a replay.

/// The fields that every event may have.
pub(crate) const COMMON: [&str; 7] = ["v", "seq", "t", "agent", "run", "turn", "type"];

/// The types and the fields of their own.
pub(crate) const TYPES: [(&str, &[&str]); 20] = [
    ("session_started", &["session", "version", "virtual_time", "scenario"]),
    ("agent_spawned", &["parent", "role", "model"]),
    ("run_started", &["trigger"]),
    ("model_started", &["call", "messages", "purpose"]),
    ("model_finished", &["stop_reason", "usage", "text", "thinking", "tools", "purpose"]),
    ("model_interrupted", &["reason", "text", "thinking", "partial_tokens"]),
    ("model_retry", &["attempt", "error", "wait"]),
    ("tool_started", &["tool", "name", "input", "batch"]),
    ("tool_finished", &["tool", "name", "status", "is_error", "bytes", "output"]),
    ("message_queued", &["message", "from", "urgency", "text"]),
    ("message_refused", &["message", "from", "reason"]),
    ("message_injected", &["messages", "point", "text", "skipped", "interrupted"]),
    ("message_returned", &["message", "reason"]),
    ("stop_requested", &["by", "scope", "still_queued"]),
    ("plan_updated", &["steps"]),
    ("approval_requested", &["tool", "name", "input", "always"]),
    ("approval_resolved", &["tool", "decision", "by", "reason"]),
    ("compacted", &["messages", "tokens"]),
    ("run_finished", &["outcome", "error", "turns", "usage"]),
    ("agent_closed", &[]),
];

/// The fields of a type's own; `None`: there is no such type.
pub(crate) fn fields_of(event: &str) -> Option<&'static [&'static str]> {
    TYPES.iter().find(|(name, _)| *name == event).map(|(_, fields)| *fields)
}

/// The names of all types.
pub(crate) fn type_names() -> impl Iterator<Item = &'static str> {
    TYPES.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use midturn_core::rules::compaction::Purpose;
    use midturn_core::rules::event::{Event, EventKind, Outcome, Place, Scope, VERSION};
    use midturn_core::rules::time::Micros;

    use super::*;

    #[test]
    fn the_lists_are_those_of_the_engines_events() {
        let kinds = [
            EventKind::AgentClosed {},
            EventKind::RunFinished {
                outcome: Outcome::Failed,
                error: Some("x".into()),
                turns: 1,
                usage: Default::default(),
            },
            EventKind::StopRequested { by: "user".into(), scope: Scope::Agent, still_queued: vec![] },
            EventKind::PlanUpdated { steps: vec![] },
            EventKind::ModelStarted { call: 1, messages: 1, purpose: Purpose::Summary },
        ];
        for kind in kinds {
            let name = kind.type_name();
            let at = Place { agent: None, run: Some(1), turn: Some(1) };
            let event = Event { v: VERSION, seq: 1, t: Micros(0), at, kind };
            let json = serde_json::to_value(&event).unwrap();
            let known = fields_of(name).unwrap();
            for field in json.as_object().unwrap().keys() {
                assert!(
                    known.contains(&field.as_str()) || COMMON.contains(&field.as_str()),
                    "{name}.{field}"
                );
            }
        }
    }
}
