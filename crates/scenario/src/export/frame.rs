//! What a plan is made of besides what was done: who is there, with which settings, and the policy
//! of approvals as far as it showed.

use std::sync::Arc;

use midturn_core::engine::ports::ErrorKind;
use midturn_core::engine::ports::archive::SessionJournal;
use midturn_core::engine::scripted::{ScriptedCall, ScriptedReply};
use midturn_core::engine::tools::{is_own, is_safe};
use midturn_core::rules::approval::{Asked, Decision, Effect, Mode, Policy, Rule, Verdict};
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, CallId};
use midturn_core::rules::mail::Role;
use midturn_core::rules::settings::SettingsPatch;

use super::ExportError;
use super::plan::Plan;
use super::read::{Hand, Reader};
use super::settings;
use crate::error::{Place, Source};
use crate::scenario::{Agent, Approvals, Scenario, Start, Tools};

/// The plan of a session whose events are read.
pub(super) fn planned(
    journal: &SessionJournal,
    mut reader: Reader<'_>,
) -> Result<(Plan, Vec<Event>), ExportError> {
    let numbered = |done: &super::plan::Done| {
        let auto = done.item.id.as_ref().is_some_and(|id| id.as_str().starts_with("auto-"));
        auto || done.item.act.ends_process()
    };
    // In the session the coordinator also numbered messages that the file sends.
    if reader.items.iter().any(numbered) {
        reader.hands.iter_mut().for_each(name_messages);
    }
    let (common, own) = settings::layers(journal.agents.iter().map(|agent| &*agent.record.settings))?;
    let agents = reader.hands.iter().zip(own).map(|(hand, settings)| Agent {
        name: hand.name().clone(),
        role: hand.record.role,
        parent: hand.record.parent.clone(),
        prompt: hand
            .record
            .prompt
            .as_deref()
            .filter(|_| hand.start == Some(Start::AtOnce))
            .map(str::to_owned),
        start: hand.start.unwrap_or_default(),
        settings,
        model: hand.record.model.as_ref().map(|_| Arc::default()),
        place: Place::START,
    });
    let frame = Scenario {
        source: Source { path: "the export".into(), text: "".into() },
        name: name(journal),
        settings: common,
        tools: Tools::Simulated,
        approvals: policy(&reader.hands, &reader.told),
        agents: parents_first(agents.collect()),
        items: Vec::new(),
        expect: Vec::new(),
    };
    let scripts = reader.hands.into_iter().map(|hand| (hand.name().clone(), answered(hand.script)));
    Ok((Plan { frame, scripts: scripts.collect(), items: reader.items }, reader.told))
}

fn name(journal: &SessionJournal) -> String {
    let title = journal.record.title.lines().next().unwrap_or_default().trim();
    let short: String = title.chars().take(120).collect();
    if short.is_empty() { format!("session {}", journal.record.id) } else { short }
}

fn name_messages(hand: &mut Hand<'_>) {
    for (entry, place, id) in &hand.sent_as {
        let call = Arc::make_mut(&mut hand.script[*entry].tools[*place]);
        if let Some(input) = call.input.as_object_mut() {
            input.insert("id".to_owned(), id.as_str().into());
        }
    }
}

/// For what the script did not say at its end, it has no entry.
fn answered(mut script: Vec<ScriptedReply>) -> Vec<ScriptedReply> {
    let exhausted = |entry: &ScriptedReply| entry.error == Some(ErrorKind::ScriptExhausted);
    while script.last().is_some_and(exhausted) {
        script.pop();
    }
    for entry in script.iter_mut().filter(|entry| exhausted(entry)) {
        entry.error = Some(ErrorKind::InvalidRequest);
    }
    script
}

/// The agents in the session's order, parents before their children.
fn parents_first(agents: Vec<Agent>) -> Vec<Agent> {
    let known = |agents: &[Agent], name: &AgentName| agents.iter().any(|agent| agent.name == *name);
    let mut first: Vec<Agent> = Vec::with_capacity(agents.len());
    for parent in agents.iter().filter_map(|agent| agent.parent.as_ref()) {
        if !known(&agents, parent) && !known(&first, parent) {
            first.push(announced(parent));
        }
    }
    let mut left = agents;
    while !left.is_empty() {
        let is_next = |agent: &Agent| agent.parent.as_ref().is_none_or(|parent| known(&first, parent));
        // Parents in a circle are the reader's to refuse.
        let next = left.iter().position(is_next).unwrap_or(0);
        first.push(left.remove(next));
    }
    first
}

/// An agent that was a parent before it came, and never did.
fn announced(name: &AgentName) -> Agent {
    Agent {
        name: name.clone(),
        role: Role::Subagent,
        parent: None,
        prompt: None,
        start: Start::Spawned,
        settings: SettingsPatch::default(),
        model: None,
        place: Place::START,
    }
}

/// The policy of the session, as far as it showed: what was asked about is asked about, what was
/// denied is denied, and what else ran is allowed.
fn policy(hands: &[Hand<'_>], told: &[Event]) -> Approvals {
    let mut policy = Policy::default();
    let (mut asked, mut granted, mut ran) = (Vec::new(), Vec::new(), Vec::new());
    let mut patience = Vec::new();
    for event in told {
        match &event.kind {
            EventKind::ToolStarted { tool, .. } => ran.extend(call_of(hands, event, tool)),
            EventKind::ToolFinished { output, .. } => {
                output.strip_prefix("[Denied: ").into_iter().for_each(|why| denied(&mut policy, why));
            }
            EventKind::ApprovalRequested { tool, .. } => {
                asked.extend(call_of(hands, event, tool).map(|call| (call, event.t)));
            }
            EventKind::ApprovalResolved { tool, decision, by, reason } => {
                let rule = reason.as_deref().filter(|_| *decision == Decision::Session);
                granted.extend(rule.and_then(|rule| Rule::parse(rule).ok()));
                let call = call_of(hands, event, tool);
                let since =
                    asked.iter().rfind(|(asked, _)| call.is_some_and(|call| std::ptr::eq(call, *asked)));
                let Some((_, since)) = since else { continue };
                let waited = event.t.since(*since);
                // In vain; or longer than one waits by default, and an answer came.
                let in_vain = *decision == Decision::NotAnswered && by == "coordinator";
                patience.extend((in_vain || waited > policy.patience).then_some(waited));
            }
            _ => {}
        }
    }
    if !asked.is_empty() {
        let edits = asked.iter().any(|(call, _)| effect(call) == Effect::Edits);
        policy.mode = if edits { Mode::Ask } else { Mode::AcceptEdits };
    }
    for call in ran.into_iter().filter(|call| !is_own(&call.name)) {
        let is_asked = asked.iter().any(|(asked, _)| std::ptr::eq(*asked, call));
        let seen = seen(call);
        if !is_asked && policy.judge(&seen, &granted) == Verdict::Ask {
            policy.allow.push(Rule::always(&seen));
        }
    }
    policy.patience = patience.into_iter().max().unwrap_or(policy.patience);
    Approvals { policy, attached: !asked.is_empty() }
}

fn denied(policy: &mut Policy, why: &str) {
    let rule = why.strip_prefix("the rule `").and_then(|rest| rest.split_once("` forbids it"));
    if let Some(rule) = rule.and_then(|(rule, _)| Rule::parse(rule).ok()) {
        if !policy.deny.iter().any(|known| known.text() == rule.text()) {
            policy.deny.push(rule);
        }
        return;
    }
    let is_mode = |mode: &Mode| why.starts_with(&format!("the mode is `{}`", mode.as_str()));
    let mode = [Mode::Plan, Mode::Ask, Mode::AcceptEdits].into_iter().find(is_mode);
    policy.mode = mode.unwrap_or(policy.mode);
}

fn call_of<'h>(hands: &'h [Hand<'_>], event: &Event, id: &CallId) -> Option<&'h ScriptedCall> {
    let hand = hands.iter().find(|hand| Some(hand.name()) == event.at.agent.as_ref())?;
    let mut calls = hand.script.iter().flat_map(|entry| &entry.tools);
    calls.find(|call| call.id == *id).map(|call| &**call)
}

/// What a simulated call does to the world.
fn effect(call: &ScriptedCall) -> Effect {
    match &*call.name {
        "edit" | "write" => Effect::Edits,
        name if call.safe.unwrap_or_else(|| is_safe(name)) => Effect::Reads,
        _ => Effect::Runs,
    }
}

/// The call as rules see it in a replay.
fn seen(call: &ScriptedCall) -> Asked<'_> {
    let subject = ["path", "file_path", "command"].iter().find_map(|key| call.input.get(*key)?.as_str());
    Asked { name: &call.name, subject, effect: effect(call) }
}
