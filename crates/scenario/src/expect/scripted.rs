//! What a file's script lacks: a model that was asked more often than it has entries, a spawn of an
//! agent that the file doesn't have. Either fails a scenario, unless the file expects it.

use midturn_core::engine::ports::ErrorKind;
use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{Event, EventKind, Outcome};
use midturn_core::rules::id::{AgentName, CallId, RunId};

use super::{Miss, runs};
use crate::record::Record;
use crate::scenario::ABSENT;
use crate::scenario::{Claim, Ended, Scenario};

/// All that the script lacked and no expectation names.
pub(super) fn check(scenario: &Scenario, record: &Record) -> Vec<Miss> {
    let events = record.events.iter().enumerate();
    let misses = events.filter_map(|(index, event)| {
        let (expected, happened) = lack(scenario, record, event)?;
        Some(Miss::new(expected, happened, Some(index)))
    });
    misses.collect()
}

fn lack(scenario: &Scenario, record: &Record, event: &Event) -> Option<(String, String)> {
    let agent = event.at.agent.as_ref()?;
    match &event.kind {
        EventKind::RunFinished { outcome: Outcome::Failed, error: Some(error), .. }
            if **error == *ErrorKind::ScriptExhausted.to_string() =>
        {
            let run = event.at.run.unwrap_or_default();
            let expected =
                format!("a `model` entry for each call of {agent}, or an expectation that run {run} fails");
            (!expects_failure(scenario, record, agent, run))
                .then(|| (expected, format!("run {run}: {error}")))
        }
        EventKind::ToolFinished { tool, status: ToolStatus::Failed, output, .. }
            if output.contains(ABSENT) =>
        {
            let expected =
                format!("an agent for the spawn `{tool}` of {agent}, or an expectation that it fails");
            (!expects_call(scenario, agent, tool)).then(|| (expected, output.clone()))
        }
        _ => None,
    }
}

/// Whether the file says that this run fails.
fn expects_failure(scenario: &Scenario, record: &Record, agent: &AgentName, run: RunId) -> bool {
    scenario.expect.iter().any(|expectation| match &expectation.claim {
        Claim::Run(claim) if claim.agent == *agent => {
            let fails = claim.outcome == Some(Ended::Failed) || claim.error.is_some();
            fails && claim.run.or_else(|| runs::last(record, agent)) == Some(run)
        }
        _ => false,
    })
}

/// Whether the file says that this call fails.
fn expects_call(scenario: &Scenario, agent: &AgentName, tool: &CallId) -> bool {
    let named = (tool.clone(), ToolStatus::Failed);
    scenario.expect.iter().any(|expectation| match &expectation.claim {
        Claim::Run(claim) => claim.agent == *agent && claim.tools.contains(&named),
        _ => false,
    })
}
