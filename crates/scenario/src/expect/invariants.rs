//! The invariants of semantics.md, section 10. Every replay is held against them, whatever
//! its file expects: by the auditor of core's rules, and here for what it leaves open, that
//! every call a reply asked for has one result, and is skipped only if it never started.

use std::collections::{HashMap, HashSet};

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
}

impl Results {
    fn see(&mut self, event: &Event) -> Result<(), String> {
        let Some(agent) = &event.at.agent else { return Ok(()) };
        let calls = self.0.entry(agent.clone()).or_default();
        match &event.kind {
            EventKind::ModelFinished { tools, .. } => {
                calls.asked.extend(tools.iter().map(|tool| tool.id.clone()));
                Ok(())
            }
            EventKind::ToolStarted { tool, .. } => {
                calls.started.insert(tool.clone());
                Ok(())
            }
            EventKind::ToolFinished { tool, status, .. } => calls.end(tool, *status),
            EventKind::RunFinished { error, .. } => calls.run_ends(error.as_deref()),
            _ => Ok(()),
        }
    }
}

impl Calls {
    fn end(&mut self, tool: &CallId, status: ToolStatus) -> Result<(), String> {
        if !self.asked.remove(tool) {
            return Err(format!("invariant 1 is broken: a result for {tool}, which nobody asked for"));
        }
        let started = self.started.contains(tool);
        if started == (status == ToolStatus::Skipped) {
            return Err(format!("invariant 4 is broken: {tool} is {status:?}, and started is {started}"));
        }
        Ok(())
    }

    fn run_ends(&mut self, error: Option<&str>) -> Result<(), String> {
        if let Some(breach) =
            error.filter(|error| error.contains("invariant ") && error.contains(" is broken"))
        {
            return Err(breach.to_owned());
        }
        let mut open: Vec<CallId> = self.asked.drain().collect();
        open.sort();
        if open.is_empty() {
            Ok(())
        } else {
            Err(format!("invariant 1 is broken: the run ends and {open:?} have no results"))
        }
    }
}
