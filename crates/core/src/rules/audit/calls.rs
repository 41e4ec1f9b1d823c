//! The calls of all agents: every one that a reply asked for has one result, is skipped or denied
//! only if it never started, and starts only with a person's word if one was asked for it.

use std::collections::{HashMap, HashSet};

use crate::rules::approval::Decision;
use crate::rules::conversation::ToolStatus;
use crate::rules::event::{Event, EventKind};
use crate::rules::id::{AgentName, CallId};
use crate::rules::validate::{Breach, breach};

/// The calls, and what became of them.
#[derive(Debug, Default)]
pub(super) struct Calls(HashMap<AgentName, OfAgent>);

#[derive(Debug, Default)]
struct OfAgent {
    asked: HashSet<CallId>,
    started: HashSet<CallId>,
    /// What a person was asked about, and what became of that; `None`: nothing yet.
    requests: HashMap<CallId, Option<Decision>>,
}

impl Calls {
    pub(super) fn event(&mut self, event: &Event) -> Result<(), Breach> {
        if matches!(event.kind, EventKind::SessionResumed { .. }) {
            // The process that asked is gone, and its requests with it.
            self.0.values_mut().for_each(|calls| calls.requests.clear());
        }
        let Some(agent) = &event.at.agent else { return Ok(()) };
        let calls = self.0.entry(agent.clone()).or_default();
        match &event.kind {
            EventKind::ModelFinished { tools, .. } => {
                calls.asked.extend(tools.iter().map(|tool| tool.id.clone()));
                Ok(())
            }
            EventKind::ToolStarted { tool, .. } => calls.start(tool),
            EventKind::ToolFinished { tool, status, output, .. } => calls.end(tool, *status, output),
            EventKind::ApprovalRequested { tool, .. } => calls.request(tool),
            EventKind::ApprovalResolved { tool, decision, by, .. } => calls.resolve(tool, *decision, by),
            EventKind::RunFinished { error, .. } => calls.run_ends(error.as_deref()),
            // No other kind is about a call.
            _ => Ok(()),
        }
    }
}

impl OfAgent {
    fn request(&mut self, tool: &CallId) -> Result<(), Breach> {
        let known = self.asked.contains(tool) && !self.started.contains(tool);
        if !known || self.requests.insert(tool.clone(), None).is_some() {
            return breach(4, format!("a person is asked about {tool}, which doesn't wait for that"));
        }
        Ok(())
    }

    /// Only a person's word lets a call start (semantics.md, section 9).
    fn resolve(&mut self, tool: &CallId, decision: Decision, by: &str) -> Result<(), Breach> {
        let approves = matches!(decision, Decision::Once | Decision::Session);
        if approves && by != "user" {
            return breach(4, format!("{by} approves {tool}"));
        }
        match self.requests.get_mut(tool) {
            Some(request @ None) => *request = Some(decision),
            Some(Some(_)) | None => {
                return breach(4, format!("{decision:?} for {tool}, which is not asked about"));
            }
        }
        Ok(())
    }

    fn start(&mut self, tool: &CallId) -> Result<(), Breach> {
        self.started.insert(tool.clone());
        match self.requests.get(tool) {
            None | Some(Some(Decision::Once | Decision::Session)) => Ok(()),
            Some(request) => breach(4, format!("{tool} starts, and its request is {request:?}")),
        }
    }

    fn end(&mut self, tool: &CallId, status: ToolStatus, output: &str) -> Result<(), Breach> {
        if !self.asked.remove(tool) {
            return breach(1, format!("a result for {tool}, which nobody asked for"));
        }
        let started = self.started.contains(tool);
        let denied = output.starts_with("[Denied") || output.starts_with("[Not answered: ");
        let never_ran = status == ToolStatus::Skipped || !started && status == ToolStatus::Failed && denied;
        if started == never_ran {
            return breach(4, format!("{tool} is {status:?}, and started is {started}"));
        }
        if let Some(None) = self.requests.get(tool) {
            return breach(4, format!("{tool} has ended, and a person is still asked about it"));
        }
        Ok(())
    }

    fn run_ends(&mut self, error: Option<&str>) -> Result<(), Breach> {
        // The engine's own validator has found one, and the run has failed of it.
        if let Some(found) = error.and_then(Breach::told_in) {
            return Err(found);
        }
        self.requests.clear();
        let mut open: Vec<CallId> = self.asked.drain().collect();
        open.sort();
        if open.is_empty() { Ok(()) } else { breach(1, format!("the run ends and {open:?} have no results")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::compaction::Purpose;
    use crate::rules::event::{CallRef, Outcome, Place, Trigger, VERSION};
    use crate::rules::time::Micros;

    fn course(kinds: &[EventKind]) -> Option<u8> {
        let worker = AgentName::new("worker").unwrap();
        let mut calls = Calls::default();
        let event = |(seq, kind): (u64, &EventKind)| Event {
            v: VERSION,
            seq,
            t: Micros(0),
            at: Place::of(&worker, 1, 1),
            kind: kind.clone(),
        };
        let broken = (1..).zip(kinds).map(event).find_map(|event| calls.event(&event).err());
        broken.map(|breach| breach.number)
    }

    fn says(ids: &[&str]) -> EventKind {
        let call = |id: &&str| CallRef { id: CallId::new(*id), name: "edit".into(), input: ().into() };
        EventKind::ModelFinished {
            stop_reason: "tool_use".into(),
            usage: Default::default(),
            text: String::new(),
            thinking: Vec::new(),
            tools: ids.iter().map(call).collect(),
            purpose: Purpose::Turn,
        }
    }

    fn starts(id: &str) -> EventKind {
        EventKind::ToolStarted { tool: CallId::new(id), name: "edit".into(), input: ().into(), batch: 1 }
    }

    fn ends(id: &str, status: ToolStatus, output: &str) -> EventKind {
        let (tool, name, output) = (CallId::new(id), "edit".into(), output.to_owned());
        EventKind::ToolFinished { tool, name, status, is_error: false, bytes: 0, output }
    }

    fn over(error: Option<&str>) -> EventKind {
        let error = error.map(Into::into);
        EventKind::RunFinished { outcome: Outcome::Finished, error, turns: 1, usage: Default::default() }
    }

    #[test]
    fn invariant_1_every_call_has_one_result_and_no_other_has_one() {
        let completed = |id| ends(id, ToolStatus::Completed, "");
        let rows = [
            (vec![says(&["a"]), starts("a"), completed("a"), over(None)], None),
            (vec![says(&["a"]), starts("a"), over(None)], Some(1)),
            (vec![says(&["a"]), starts("b"), completed("b")], Some(1)),
            (vec![says(&["a"]), starts("a"), completed("a"), completed("a")], Some(1)),
            (vec![over(Some("failed: invariant 7 is broken: a reply"))], Some(7)),
            (vec![EventKind::RunStarted { trigger: Trigger::Prompt }], None),
        ];
        for (kinds, expected) in rows {
            assert_eq!(course(&kinds), expected, "{kinds:?}");
        }
    }

    #[test]
    fn invariant_4_what_was_skipped_or_denied_never_started() {
        let rows = [
            (vec![says(&["a"]), ends("a", ToolStatus::Skipped, "")], None),
            (vec![says(&["a"]), starts("a"), ends("a", ToolStatus::Skipped, "")], Some(4)),
            (vec![says(&["a"]), ends("a", ToolStatus::Failed, "[Denied by a rule]")], None),
            (vec![says(&["a"]), ends("a", ToolStatus::Failed, "No such file.")], Some(4)),
            (vec![says(&["a"]), ends("a", ToolStatus::Completed, "")], Some(4)),
        ];
        for (kinds, expected) in rows {
            assert_eq!(course(&kinds), expected, "{kinds:?}");
        }
    }

    #[test]
    fn invariant_4_a_call_that_a_person_is_asked_about_waits_for_the_persons_word() {
        let asks = |id: &str| EventKind::ApprovalRequested {
            tool: CallId::new(id),
            name: "edit".into(),
            input: ().into(),
            always: "edit".into(),
        };
        let says_so = |decision, by: &str| EventKind::ApprovalResolved {
            tool: CallId::new("a"),
            decision,
            by: by.to_owned(),
            reason: None,
        };
        let rows = [
            (vec![says(&["a"]), asks("a"), says_so(Decision::Once, "user"), starts("a")], None),
            (vec![says(&["a"]), asks("a"), says_so(Decision::Once, "lead")], Some(4)),
            (vec![says(&["a"]), asks("a"), says_so(Decision::Denied, "user"), starts("a")], Some(4)),
            (vec![says(&["a"]), asks("a"), starts("a")], Some(4)),
            (vec![says(&["a"]), asks("a"), ends("a", ToolStatus::Skipped, "")], Some(4)),
            (vec![says(&["a"]), asks("a"), over(None)], Some(1)),
            (vec![says(&["a"]), asks("a"), asks("a")], Some(4)),
            (vec![says(&["a"]), asks("b")], Some(4)),
            (vec![says(&["a"]), says_so(Decision::Once, "user")], Some(4)),
        ];
        for (kinds, expected) in rows {
            assert_eq!(course(&kinds), expected, "{kinds:?}");
        }
    }
}
