//! What a person was asked about and what was denied, as a policy that comes to the same.

use midturn_core::engine::tools::is_safe;
use midturn_core::rules::approval::{Asked, Decision, Effect, Mode, Rule};
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::time::Span;
use serde_json::Value;

use super::out::{OutApprovals, Us};
use super::plan::{Call, CallKind, Plan};

/// What a policy's denial begins with.
const DENIED: &str = "[Denied: ";

/// The policy of the session, as far as it showed; none where nobody was asked and nothing denied.
pub(super) fn policy(plan: &Plan, told: &[Event]) -> Option<OutApprovals> {
    let denials: Vec<&str> = told.iter().filter_map(denial).collect();
    let requests: Vec<&Event> =
        told.iter().filter(|event| matches!(event.kind, EventKind::ApprovalRequested { .. })).collect();
    if denials.is_empty() && requests.is_empty() {
        return None;
    }
    let mut policy = OutApprovals { attached: !requests.is_empty(), ..OutApprovals::default() };
    for denial in denials {
        if let Some((rule, _)) =
            denial.strip_prefix("the rule ").and_then(|rest| rest.rsplit_once(" forbids it"))
        {
            let rule = rule.trim_matches('`').to_owned();
            if !policy.deny.contains(&rule) {
                policy.deny.push(rule);
            }
        } else if let Some(mode) = [Mode::Plan, Mode::Ask, Mode::AcceptEdits]
            .into_iter()
            .find(|mode| denial.starts_with(&format!("the mode is `{}`", mode.as_str())))
        {
            policy.mode = mode;
        }
    }
    let calls = || plan.agents.iter().flat_map(|agent| &agent.entries).flat_map(|entry| &entry.calls);
    let asked: Vec<&Call> = requests.iter().filter_map(|request| call_of(plan, request)).collect();
    if !asked.is_empty() {
        policy.mode = if asked.iter().any(|call| effect(call) == Effect::Edits) {
            Mode::Ask
        } else {
            Mode::AcceptEdits
        };
    }
    let granted: Vec<Rule> = told.iter().filter_map(grant).collect();
    let free = calls().filter(|call| call.kind == CallKind::Simulated && call.started.is_some());
    for call in free.filter(|call| !asked.iter().any(|asked| std::ptr::eq(*asked, *call))) {
        let runs = match policy.mode {
            Mode::Auto | Mode::Plan => true,
            Mode::AcceptEdits => effect(call) != Effect::Runs,
            Mode::Ask => effect(call) == Effect::Reads,
        };
        if runs || granted.iter().any(|rule| rule.allows(&seen(call))) {
            continue;
        }
        let rule = Rule::always(&seen(call)).text().to_owned();
        if !policy.allow.contains(&rule) {
            policy.allow.push(rule);
        }
    }
    policy.patience = told.iter().filter_map(|event| patience(event, told)).max().map(Us);
    Some(policy)
}

fn denial(event: &Event) -> Option<&str> {
    match &event.kind {
        EventKind::ToolFinished { output, .. } => output.strip_prefix(DENIED),
        _ => None,
    }
}

fn call_of<'p>(plan: &'p Plan, request: &Event) -> Option<&'p Call> {
    let EventKind::ApprovalRequested { tool, .. } = &request.kind else { return None };
    let agent = plan.agents.iter().find(|agent| Some(&agent.name) == request.at.agent.as_ref())?;
    agent.entries.iter().flat_map(|entry| &entry.calls).find(|call| call.id == tool.as_str())
}

fn grant(event: &Event) -> Option<Rule> {
    match &event.kind {
        EventKind::ApprovalResolved { decision: Decision::Session, reason: Some(rule), .. } => {
            Rule::parse(rule).ok()
        }
        _ => None,
    }
}

/// How long an answer was waited for in vain; or longer than one was, that came.
fn patience(event: &Event, told: &[Event]) -> Option<Span> {
    let EventKind::ApprovalResolved { tool, decision, by, .. } = &event.kind else { return None };
    let mut before = told.iter().filter(|told| told.seq < event.seq && told.at.agent == event.at.agent);
    let asked = before
        .rfind(|told| matches!(&told.kind, EventKind::ApprovalRequested { tool: of, .. } if of == tool))?;
    let waited = event.t.since(asked.t);
    let in_vain = *decision == Decision::NotAnswered && by == "coordinator";
    (in_vain || waited > Span::secs(600)).then_some(waited)
}

/// What a simulated call does to the world.
fn effect(call: &Call) -> Effect {
    match call.name.as_str() {
        "edit" | "write" => Effect::Edits,
        name if call.safe.unwrap_or_else(|| is_safe(name)) => Effect::Reads,
        _ => Effect::Runs,
    }
}

/// The call as rules see it in a replay.
fn seen(call: &Call) -> Asked<'_> {
    let subject = ["path", "file_path", "command"].iter().find_map(|key| call.input.get(*key)?.as_str());
    Asked { name: &call.name, subject: subject.filter(|_| call.input != Value::Null), effect: effect(call) }
}
