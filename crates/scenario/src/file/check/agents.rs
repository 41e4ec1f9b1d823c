//! Agents and their scripts.

use std::sync::Arc;

use midturn_core::engine::scripted::{ScriptedCall, ScriptedReply};
use midturn_core::rules::conversation::StopReason;
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Role;
use serde_json::Value;

use super::super::raw::{RawAgent, RawCall, RawReply};
use super::{Known, anchors};
use crate::error::Error;
use crate::scenario::{Agent, Tools};

/// Checks all agents; each one's parent must stand before it.
pub(super) fn checked(known: &Known<'_>, tools: &Tools, raw: Vec<RawAgent>) -> Result<Vec<Agent>, Error> {
    let is_lead = |agent: &RawAgent| agent.role == Some(Role::Lead);
    let first_lead = raw.iter().find(|agent| is_lead(agent)).map(|agent| agent.name.value.clone());
    let mut agents: Vec<Agent> = Vec::with_capacity(raw.len());
    for agent in raw {
        let agent = one(known, tools, agent, first_lead.as_ref(), &agents)?;
        agents.push(agent);
    }
    Ok(agents)
}

fn one(
    known: &Known<'_>,
    tools: &Tools,
    raw: RawAgent,
    first_lead: Option<&AgentName>,
    earlier: &[Agent],
) -> Result<Agent, Error> {
    let role = raw.role.unwrap_or(Role::Subagent);
    let parent = parent(known, &raw, role, earlier)?.or_else(|| match role {
        Role::Lead => None,
        Role::Subagent => first_lead.cloned(),
    });
    let settings = super::settings(known.source, raw.settings.as_ref())?;
    let replies = |entries: Vec<RawReply>| entries.into_iter().map(|raw| reply(known, tools, raw)).collect();
    let model = raw.model.map(replies).transpose()?;
    if let (Some(prompt), None) = (&raw.prompt, &model) {
        let found = format!("a prompt for {}, which is a name only", raw.name.value);
        return Err(known.source.fault(prompt.place, found, "a `model` beside it"));
    }
    let start = raw.start.unwrap_or_default();
    let prompt = raw.prompt.map(|prompt| prompt.value);
    let place = raw.name.place;
    Ok(Agent { name: raw.name.value, role, parent, prompt, start, settings, model, place })
}

fn parent(
    known: &Known<'_>,
    raw: &RawAgent,
    role: Role,
    earlier: &[Agent],
) -> Result<Option<AgentName>, Error> {
    let Some(parent) = &raw.parent else { return Ok(None) };
    let source = known.source;
    if role == Role::Lead {
        return Err(source.fault(parent.place, "a parent of a lead", "a lead without a parent"));
    }
    let name = known.agent(parent)?;
    if !earlier.iter().any(|agent| agent.name == name) {
        let found = format!("the parent `{name}`, which comes later");
        return Err(source.fault(parent.place, found, "an agent that stands before its children"));
    }
    Ok(Some(name))
}

fn reply(known: &Known<'_>, tools: &Tools, raw: RawReply) -> Result<ScriptedReply, Error> {
    let calls = raw.tools.unwrap_or_default().into_iter();
    Ok(ScriptedReply {
        text: raw.text.unwrap_or_default(),
        thinking: raw.thinking.unwrap_or_default(),
        takes: raw.takes.unwrap_or_default(),
        ends_after: anchors::ends_after(known, raw.ends_after.as_ref(), raw.takes)?,
        tools: calls.map(|raw| call(known, tools, raw).map(Arc::new)).collect::<Result<_, _>>()?,
        error: raw.error,
        retry_after: raw.retry_after,
        stop_reason: raw.stop_reason.map(|word| StopReason::from_word(&word)),
        usage: raw.usage.unwrap_or_default(),
        when: raw.when.map(|when| when.last_message_contains.as_slice().to_vec()).unwrap_or_default(),
    })
}

fn call(known: &Known<'_>, tools: &Tools, raw: RawCall) -> Result<ScriptedCall, Error> {
    let ends_after = anchors::ends_after(known, raw.ends_after.as_ref(), raw.takes)?;
    if let (Some(after), Tools::Real(_)) = (&raw.ends_after, tools) {
        let found = "`ends_after` with `tools: real`";
        return Err(known.source.fault(after.place, found, "simulated tools: a real call ends when it ends"));
    }
    let input = match raw.input {
        Some(Value::Null) | None => Value::Object(serde_json::Map::new()),
        Some(input) => input,
    };
    Ok(ScriptedCall {
        takes: raw.takes.unwrap_or_default(),
        ends_after,
        result: raw.result.unwrap_or_default(),
        error: raw.error,
        output: raw.output.unwrap_or_default(),
        safe: raw.safe,
        abortable: raw.abortable.unwrap_or(true),
        abort_takes: raw.abort_takes,
        continues: raw.continues,
        provider: raw.provider,
        ..ScriptedCall::new(&raw.id.value, &raw.name.value, input)
    })
}
