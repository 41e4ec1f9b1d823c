//! `agent` expectations: how a run ended, what it took, what became of the agent's calls.

use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{Event, EventKind, Outcome};
use midturn_core::rules::id::{AgentName, CallId, RunId, TurnId};
use midturn_core::rules::time::Micros;

use super::{Miss, messages};
use crate::record::Record;
use crate::scenario::{Ended, RunClaim};

/// What a record says of one run.
#[derive(Debug, Default)]
struct Facts {
    run: RunId,
    end: Option<End>,
    model_calls: u64,
    turns: TurnId,
    last_event: Option<usize>,
}

#[derive(Debug)]
struct End {
    outcome: Outcome,
    error: Option<String>,
    at: Micros,
}

/// Checks a claim about a run.
pub(super) fn check(claim: &RunClaim, record: &Record) -> Vec<Miss> {
    let mut misses: Vec<Miss> =
        claim.tools.iter().filter_map(|(id, status)| tool(record, &claim.agent, id, *status)).collect();
    if !claim.is_about_the_run() {
        return misses;
    }
    match facts(record, &claim.agent, claim.run) {
        Some(facts) => misses.extend(run(claim, &facts)),
        None => misses.extend(never_ran(claim, record)),
    }
    misses
}

/// The runs of an agent.
fn runs(record: &Record, agent: &AgentName) -> impl Iterator<Item = RunId> {
    let started = move |event: &&Event| {
        event.at.agent.as_ref() == Some(agent) && matches!(event.kind, EventKind::RunStarted { .. })
    };
    record.events.iter().filter(started).filter_map(|event| event.at.run)
}

/// The last run of an agent.
pub(super) fn last(record: &Record, agent: &AgentName) -> Option<RunId> {
    runs(record, agent).max()
}

/// The run asked for, or the last; `None`: there is no such run.
fn facts(record: &Record, agent: &AgentName, run: Option<RunId>) -> Option<Facts> {
    let of_agent =
        || record.events.iter().enumerate().filter(|(_, event)| event.at.agent.as_ref() == Some(agent));
    let run = match run {
        Some(run) => runs(record, agent).find(|started| *started == run)?,
        None => last(record, agent)?,
    };
    let mut facts = Facts { run, ..Facts::default() };
    for (index, event) in of_agent().filter(|(_, event)| event.at.run == Some(run)) {
        facts.last_event = Some(index);
        facts.turns = facts.turns.max(event.at.turn.unwrap_or_default());
        match &event.kind {
            EventKind::ModelStarted { .. } => facts.model_calls += 1,
            EventKind::RunFinished { outcome, error, turns, .. } => {
                facts.turns = *turns;
                let error = error.as_deref().map(str::to_owned);
                facts.end = Some(End { outcome: *outcome, error, at: event.t });
                break;
            }
            _ => {}
        }
    }
    Some(facts)
}

fn run(claim: &RunClaim, facts: &Facts) -> Vec<Miss> {
    let who = format!("{} run {}", claim.agent, facts.run);
    let mut misses = Vec::new();
    let mut miss = |expected: String, happened: String| {
        misses.push(Miss::new(format!("{who}: {expected}"), happened, facts.last_event));
    };
    if let Some(expected) = claim.outcome
        && expected != ended(facts)
    {
        miss(format!("outcome {expected:?}").to_lowercase(), ending(facts));
    }
    if let Some(expected) = &claim.error {
        let error = facts.end.as_ref().and_then(|end| end.error.as_deref());
        if !error.is_some_and(|error| error.contains(expected.as_str())) {
            let happened = error
                .map_or_else(|| format!("no error, {}", ending(facts)), |error| format!("error {error:?}"));
            miss(format!("an error with {expected:?}"), happened);
        }
    }
    if let Some(expected) = claim.ends_at
        && facts.end.as_ref().map(|end| end.at) != Some(expected)
    {
        miss(format!("ends at {expected} s"), ending(facts));
    }
    for (what, expected, happened) in [
        ("model calls", claim.model_calls, facts.model_calls),
        ("turns", claim.turns.map(u64::from), u64::from(facts.turns)),
    ] {
        if let Some(expected) = expected
            && expected != happened
        {
            miss(format!("{expected} {what}"), format!("{happened} {what}"));
        }
    }
    misses
}

fn ended(facts: &Facts) -> Ended {
    facts.end.as_ref().map_or(Ended::Waiting, |end| end.outcome.into())
}

fn ending(facts: &Facts) -> String {
    match &facts.end {
        None => "it had not ended when the replay did".to_owned(),
        Some(End { outcome, error, at }) => {
            let error = error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
            format!("{}{error} at {at} s", outcome.as_str())
        }
    }
}

/// An agent without the run asked for: a name only that has mail is `waiting`.
fn never_ran(claim: &RunClaim, record: &Record) -> Option<Miss> {
    let only_waiting = claim.outcome == Some(Ended::Waiting)
        && claim.run.is_none()
        && claim.error.is_none()
        && claim.ends_at.is_none()
        && claim.model_calls.unwrap_or_default() == 0
        && claim.turns.unwrap_or_default() == 0;
    if only_waiting && messages::has_queued_mail(record, &claim.agent) {
        return None;
    }
    let run = claim.run.map_or_else(|| "a run".to_owned(), |run| format!("run {run}"));
    Some(Miss::new(format!("{run} of {}", claim.agent), "there was none", None))
}

/// Whether a call of the agent ended with a status.
fn tool(record: &Record, agent: &AgentName, id: &CallId, expected: ToolStatus) -> Option<Miss> {
    let mut started = None;
    for (index, event) in record.events.iter().enumerate() {
        if event.at.agent.as_ref() != Some(agent) {
            continue;
        }
        match &event.kind {
            EventKind::ToolStarted { tool, .. } if tool == id => started = Some(index),
            EventKind::ToolFinished { tool, status, .. } if tool == id => {
                let happened = format!("{} at {} s", status.as_str(), event.t);
                let wrong = *status != expected;
                return wrong.then(|| Miss::new(claim_of(agent, id, expected), happened, Some(index)));
            }
            _ => {}
        }
    }
    let happened = match started {
        Some(_) => "it started and had not ended when the replay did",
        None => "the call was never made",
    };
    Some(Miss::new(claim_of(agent, id, expected), happened, started))
}

fn claim_of(agent: &AgentName, id: &CallId, expected: ToolStatus) -> String {
    format!("{agent}: call {id} {}", expected.as_str())
}
