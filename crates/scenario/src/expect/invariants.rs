//! The invariants of semantics.md, section 10. Every replay is held against them, whatever
//! its file expects: by the auditor of core's rules, and here for what it leaves open, that
//! every call a reply asked for has one result, is skipped or denied only if it never started,
//! and starts only with a person's word if one was asked for it.

use std::collections::{HashMap, HashSet};

use midturn_core::rules::approval::Decision;
use midturn_core::rules::audit::Auditor;
use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, CallId};

use super::Miss;
use crate::record::Record;

/// What every replay is expected to keep.
const EXPECTED: &str = "the invariants of semantics.md, section 10";

/// All breaches in a record. The auditor's count ends with its first: what follows a breach
/// is measured against nothing.
pub(super) fn check(record: &Record) -> Vec<Miss> {
    let miss = |what: String, about| Miss::new(EXPECTED, what, about);
    let mut misses: Vec<Miss> = record.breaches.iter().map(|breach| miss(breach.clone(), None)).collect();
    let mut auditor = Auditor::default();
    let mut audited = record.events.iter().enumerate();
    misses.extend(audited.find_map(|(index, event)| {
        let breach = auditor.event(event).err()?;
        Some(miss(breach.to_string(), Some(index)))
    }));
    let mut results = Results::default();
    for (index, event) in record.events.iter().enumerate() {
        misses.extend(results.see(event).err().map(|what| miss(what, Some(index))));
    }
    misses
}

/// The calls of all agents, and what became of them.
#[derive(Default)]
struct Results(HashMap<AgentName, Calls>);

#[derive(Default)]
struct Calls {
    asked: HashSet<CallId>,
    started: HashSet<CallId>,
    /// What a person was asked about, and what became of that; `None`: nothing yet.
    requests: HashMap<CallId, Option<Decision>>,
}

impl Results {
    fn see(&mut self, event: &Event) -> Result<(), String> {
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
            _ => Ok(()),
        }
    }
}

impl Calls {
    fn request(&mut self, tool: &CallId) -> Result<(), String> {
        let known = self.asked.contains(tool) && !self.started.contains(tool);
        if !known || self.requests.insert(tool.clone(), None).is_some() {
            return Err(format!("a person is asked about {tool}, which doesn't wait for that"));
        }
        Ok(())
    }

    fn resolve(&mut self, tool: &CallId, decision: Decision, by: &str) -> Result<(), String> {
        let approves = matches!(decision, Decision::Once | Decision::Session);
        if approves && by != "user" {
            return Err(format!("section 9 is broken: {by} approves {tool}"));
        }
        match self.requests.get_mut(tool) {
            Some(request @ None) => *request = Some(decision),
            Some(Some(_)) | None => return Err(format!("{decision:?} for {tool}, which is not asked about")),
        }
        Ok(())
    }

    fn start(&mut self, tool: &CallId) -> Result<(), String> {
        self.started.insert(tool.clone());
        match self.requests.get(tool) {
            None | Some(Some(Decision::Once | Decision::Session)) => Ok(()),
            Some(request) => {
                Err(format!("invariant 4 is broken: {tool} starts, and its request is {request:?}"))
            }
        }
    }

    fn end(&mut self, tool: &CallId, status: ToolStatus, output: &str) -> Result<(), String> {
        if !self.asked.remove(tool) {
            return Err(format!("invariant 1 is broken: a result for {tool}, which nobody asked for"));
        }
        let started = self.started.contains(tool);
        let denied = output.starts_with("[Denied") || output.starts_with("[Not answered: ");
        let never_ran = status == ToolStatus::Skipped || !started && status == ToolStatus::Failed && denied;
        if started == never_ran {
            return Err(format!("invariant 4 is broken: {tool} is {status:?}, and started is {started}"));
        }
        if let Some(None) = self.requests.get(tool) {
            return Err(format!("{tool} has ended, and a person is still asked about it"));
        }
        Ok(())
    }

    fn run_ends(&mut self, error: Option<&str>) -> Result<(), String> {
        if let Some(breach) =
            error.filter(|error| error.contains("invariant ") && error.contains(" is broken"))
        {
            return Err(breach.to_owned());
        }
        self.requests.clear();
        let mut open: Vec<CallId> = self.asked.drain().collect();
        open.sort();
        if open.is_empty() {
            Ok(())
        } else {
            Err(format!("invariant 1 is broken: the run ends and {open:?} have no results"))
        }
    }
}
