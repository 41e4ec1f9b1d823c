//! Expectations. One that checks nothing, or could never fail, is an error.

use std::collections::BTreeMap;

use midturn_core::rules::id::{AgentName, CallId, MessageId};
use midturn_core::rules::mail::Refusal;
use midturn_core::rules::time::Micros;
use serde_json::Value;

use super::super::raw::RawExpect;
use super::super::vocabulary::{fields_of, is_live, misfit, type_names, type_of};
use super::anchors::live_only;
use super::{Known, place};
use crate::error::{Error, Place};
use crate::scenario::{Claim, Expectation, FileClaim, MessageClaim, Pattern, PromptClaim, RunClaim, Tools};
use crate::values::{At, Pairs};

const KINDS: &str = "exactly one of agent, message, prompt, never, event and file";

/// Checks all expectations.
pub(super) fn checked(
    known: &Known<'_>,
    tools: &Tools,
    raw: Vec<At<RawExpect>>,
) -> Result<Vec<Expectation>, Error> {
    raw.into_iter()
        .map(|raw| claim(known, tools, &raw).map(|claim| Expectation { place: raw.place, claim }))
        .collect()
}

fn claim(known: &Known<'_>, tools: &Tools, raw: &At<RawExpect>) -> Result<Claim, Error> {
    of_one_kind(known, raw)?;
    match &raw.value {
        RawExpect { agent: Some(agent), .. } => run(known, raw, agent).map(Claim::Run),
        RawExpect { message: Some(id), .. } => message(known, raw, id).map(Claim::Message),
        RawExpect { prompt: Some(raw), .. } => prompt(known, raw).map(Claim::Prompt),
        RawExpect { never: Some(fields), .. } => pattern(known, fields).map(Claim::Never),
        RawExpect { event: Some(fields), .. } => pattern(known, fields).map(Claim::Event),
        RawExpect { file: Some(raw), .. } => file(known, tools, raw).map(Claim::File),
        _ => Err(known.source.fault(raw.place, "an expectation of no kind", KINDS)),
    }
}

/// An expectation names one kind, and has the keys of that only.
fn of_one_kind(known: &Known<'_>, raw: &At<RawExpect>) -> Result<(), Error> {
    let value = &raw.value;
    // Each key and its kind; the kinds are keys, too.
    let keys = [
        ("agent", "agent", place(&value.agent)),
        ("message", "message", place(&value.message)),
        ("prompt", "prompt", place(&value.prompt)),
        ("never", "never", place(&value.never)),
        ("event", "event", place(&value.event)),
        ("file", "file", place(&value.file)),
        ("run", "agent", place(&value.run)),
        ("outcome", "agent", place(&value.outcome)),
        ("error", "agent", place(&value.error)),
        ("model_calls", "agent", place(&value.model_calls)),
        ("ends_at", "agent", place(&value.ends_at)),
        ("turns", "agent", place(&value.turns)),
        ("tools", "agent", place(&value.tools)),
        ("to", "message", place(&value.to)),
        ("injected", "message", place(&value.injected)),
        ("returned", "message", place(&value.returned)),
        ("refused", "message", place(&value.refused)),
        ("queued", "message", place(&value.queued)),
    ];
    let mut named = keys.into_iter().filter_map(|(key, kind, place)| Some((key, kind, place?)));
    let Some((kind, ..)) = named.clone().find(|(key, kind, _)| key == kind) else { return Ok(()) };
    let Some((key, of, place)) = named.find(|(_, of, _)| *of != kind) else { return Ok(()) };
    let expected = if key == of { KINDS.to_owned() } else { format!("`{key}` beside `{of}`") };
    Err(known.source.fault(place, format!("`{key}` beside `{kind}`"), expected))
}

fn run(known: &Known<'_>, raw: &At<RawExpect>, name: &At<String>) -> Result<RunClaim, Error> {
    let agent = known.agent(name)?;
    let value = &raw.value;
    let mut tools = Vec::new();
    for (id, status) in value.tools.iter().flat_map(|tools| &tools.value) {
        known.call(&agent, &id.value, id.place)?;
        tools.push((CallId::new(id.value.as_str()), *status));
    }
    let claim = RunClaim {
        agent,
        run: value.run.as_ref().map(|run| run.value),
        outcome: value.outcome.as_ref().map(|outcome| outcome.value),
        error: value.error.as_ref().map(|error| error.value.clone()),
        model_calls: value.model_calls.as_ref().map(|calls| calls.value),
        ends_at: value.ends_at.as_ref().map(|at| Micros(at.value.0)),
        turns: value.turns.as_ref().map(|turns| turns.value),
        tools,
    };
    let any = claim.is_about_the_run() || !claim.tools.is_empty();
    checks_something(known, raw.place, any, "outcome, error, model_calls, ends_at, turns or tools")?;
    Ok(claim)
}

fn message(known: &Known<'_>, raw: &At<RawExpect>, id: &At<String>) -> Result<MessageClaim, Error> {
    known.message(id)?;
    let value = &raw.value;
    if let Some(reason) = &value.refused
        && !Refusal::CODES.contains(&reason.value.as_str())
    {
        return Err(known.source.unknown(reason.place, "reason", &reason.value, Refusal::CODES));
    }
    let claim = MessageClaim {
        message: MessageId::new(id.value.as_str()),
        to: value.to.as_ref().map(|to| known.agent(to)).transpose()?,
        injected: value.injected.as_ref().map(|injected| injected.value.clone()),
        returned: value.returned.as_ref().map(|reason| reason.value),
        refused: value.refused.as_ref().map(|reason| reason.value.clone()),
        queued: value.queued.as_ref().map(|queued| queued.value),
    };
    let any = claim.injected.is_some()
        || claim.returned.is_some()
        || claim.refused.is_some()
        || claim.queued.is_some();
    checks_something(known, raw.place, any, "injected, returned, refused or queued")?;
    Ok(claim)
}

fn prompt(known: &Known<'_>, claim: &At<PromptClaim>) -> Result<PromptClaim, Error> {
    let PromptClaim { agent, last_message_contains, messages, .. } = &claim.value;
    known.agent(agent)?;
    let any = last_message_contains.as_ref().is_some_and(|texts| !texts.as_slice().is_empty());
    checks_something(known, claim.place, any || messages.is_some(), "last_message_contains or messages")?;
    Ok(claim.value.clone())
}

fn file(known: &Known<'_>, tools: &Tools, claim: &At<FileClaim>) -> Result<FileClaim, Error> {
    if *tools == Tools::Simulated {
        return Err(known.source.fault(claim.place, "`file` with simulated tools", "`tools: real`"));
    }
    let FileClaim { agent, path, contains, absent } = &claim.value;
    checks_something(known, claim.place, contains.is_some() || absent.is_some(), "contains or absent")?;
    known.agent(agent)?;
    super::is_inside(known.source, path)?;
    Ok(claim.value.clone())
}

fn pattern(known: &Known<'_>, raw: &At<Pairs<At<Value>>>) -> Result<Pattern, Error> {
    let source = known.source;
    let pairs = &raw.value;
    let find = |key: &str| pairs.iter().find(|(name, _)| name.value == key).map(|(_, value)| value);
    let event = match find("event") {
        Some(At { value: Value::String(event), place }) => event_type(known, event, *place)?,
        Some(other) => {
            return Err(source.fault(other.place, source.describe(other.place), "an event's type"));
        }
        None => return Err(source.fault(raw.place, "no `event` here", "{agent, event: TYPE, …}")),
    };
    let agent = find("agent").map(|agent| pattern_agent(known, agent)).transpose()?;
    let mut fields = BTreeMap::new();
    for (key, value) in pairs.iter().filter(|(key, _)| key.value != "event" && key.value != "agent") {
        if !fields_of(event).any(|field| field == key.value) {
            let what = format!("field of {event}");
            return Err(source.unknown(key.place, &what, &key.value, fields_of(event)));
        }
        if let Some(expected) = misfit(event, &key.value, &value.value) {
            let found = format!("a `{}` that no {event} has", key.value);
            return Err(source.fault(value.place, found, expected));
        }
        pattern_value(known, agent.as_ref(), event, &key.value, value)?;
        fields.insert(key.value.clone(), value.value.clone());
    }
    Ok(Pattern { event, agent, fields })
}

fn event_type(known: &Known<'_>, event: &str, place: Place) -> Result<&'static str, Error> {
    if is_live(event) {
        return Err(live_only(known, event, place));
    }
    type_of(event).ok_or_else(|| known.source.unknown(place, "event type", event, type_names()))
}

fn pattern_agent(known: &Known<'_>, agent: &At<Value>) -> Result<AgentName, Error> {
    match &agent.value {
        Value::String(name) => known.agent(&At { value: name.clone(), place: agent.place }),
        _ => Err(known.source.fault(agent.place, known.source.describe(agent.place), "an agent")),
    }
}

/// A `never` about a call, a message or somebody that isn't there would hold for ever.
fn pattern_value(
    known: &Known<'_>,
    agent: Option<&AgentName>,
    event: &str,
    key: &str,
    value: &At<Value>,
) -> Result<(), Error> {
    let words = match &value.value {
        Value::String(word) => vec![word.as_str()],
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(()),
    };
    let at = |word: &str| At { value: word.to_owned(), place: value.place };
    words.into_iter().try_for_each(|word| match (event, key) {
        (_, "tool" | "skipped" | "interrupted") => match agent {
            Some(agent) => known.call(agent, word, value.place),
            None => known.any_call(word, value.place),
        },
        (_, "message" | "messages" | "still_queued") => known.message(&at(word)),
        ("run_started", "trigger") if word != "prompt" => known.message(&at(word)),
        ("message_queued" | "message_refused", "from") | ("stop_requested" | "limit_raised", "by") => {
            if word == "coordinator" { Ok(()) } else { known.sender(&at(word)).map(drop) }
        }
        ("agent_spawned", "parent") => known.agent(&at(word)).map(drop),
        ("message_refused", "reason") if !Refusal::CODES.contains(&word) => {
            Err(known.source.unknown(value.place, "reason", word, Refusal::CODES))
        }
        _ => Ok(()),
    })
}

fn checks_something(known: &Known<'_>, place: Place, does: bool, expected: &str) -> Result<(), Error> {
    if does {
        return Ok(());
    }
    Err(known.source.fault(place, "an expectation that checks nothing", format!("{expected} beside it")))
}
