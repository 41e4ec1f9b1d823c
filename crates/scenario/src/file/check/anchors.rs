//! `after` and `ends_after`: one type of event, and an id that such an event can have. One
//! that can't would never be reached.

use midturn_core::engine::scripted::EndsAfter;
use midturn_core::rules::id::AgentName;
use midturn_core::rules::time::Span;

use super::super::after::RawAfter;
use super::super::vocabulary::{is_live, is_of_session, type_names, type_of};
use super::Known;
use crate::error::{Error, Place};
use crate::scenario::Anchor;
use crate::values::At;

/// The form, for errors.
const FORM: &str = "{agent, EVENT: ID, plus} with one event type, such as tool_started";

/// What can be said of an event that has no id.
const NO_ID: &str = "`any`: such events have no id";

/// Checks an event that something follows.
pub(super) fn anchor(known: &Known<'_>, after: &At<RawAfter>) -> Result<Anchor, Error> {
    let source = known.source;
    for (key, _) in &after.value.named {
        if is_live(&key.value) {
            return Err(live_only(known, &key.value, key.place));
        }
        if type_of(&key.value).is_none() {
            let all = ["agent", "plus"].into_iter().chain(type_names());
            return Err(source.unknown(key.place, "key", &key.value, all));
        }
    }
    let [(event, id)] = after.value.named.as_slice() else {
        let (found, place) = match after.value.named.get(1) {
            Some((second, id)) => (format!("a second event type, `{}`", second.value), id.place),
            None => ("no event type".to_owned(), after.place),
        };
        return Err(source.fault(place, found, FORM));
    };
    // The name is known by now.
    let event = type_of(&event.value).unwrap_or_default();
    let agent = after.value.agent.as_ref().map(|agent| known.agent(agent)).transpose()?;
    if is_of_session(event) {
        if id.value.named().is_some() {
            return Err(stray(known, id.place, NO_ID));
        }
        return Ok(Anchor { agent: agent.filter(|_| event == "limit_raised"), event, id: None });
    }
    let Some(agent) = agent else {
        return Err(source.fault(after.place, "no `agent` here", FORM));
    };
    let named = id.value.named();
    named.iter().try_for_each(|named| of_event(known, event, &agent, named, id.place))?;
    Ok(Anchor { agent: Some(agent), event, id: named })
}

/// The error about a type of event that is told only while it happens.
pub(super) fn live_only(known: &Known<'_>, event: &str, place: Place) -> Error {
    let found = format!("`{event}`, which is live only and no event of a replay");
    known.source.fault(place, found, "a type that is recorded, such as model_finished")
}

/// Checks what ends scripted work; `takes` is what else the file says of its end.
pub(super) fn ends_after(
    known: &Known<'_>,
    after: Option<&At<RawAfter>>,
    takes: Option<Span>,
) -> Result<Option<EndsAfter>, Error> {
    let Some(after) = after else { return Ok(None) };
    if takes.is_some() {
        let expected = "one of `takes` and `ends_after`";
        return Err(known.source.fault(after.place, "both `takes` and `ends_after`", expected));
    }
    let anchor = anchor(known, after)?;
    Ok(Some(EndsAfter { anchor, plus: after.value.plus, at: (after.place.line, after.place.column) }))
}

fn of_event(
    known: &Known<'_>,
    event: &str,
    agent: &AgentName,
    named: &str,
    place: Place,
) -> Result<(), Error> {
    if event.starts_with("tool_") || event.starts_with("approval_") {
        return known.call(agent, named, place);
    }
    if event.starts_with("message_") {
        return known.message(&At { value: named.to_owned(), place });
    }
    let numbered = event.starts_with("model_") || event.starts_with("run_");
    match named.parse::<u64>() {
        Ok(_) if numbered => Ok(()),
        Err(_) if numbered => Err(stray(known, place, "a number (1, 2 …), or `any`")),
        _ => Err(stray(known, place, NO_ID)),
    }
}

fn stray(known: &Known<'_>, place: Place, expected: &str) -> Error {
    known.source.fault(place, known.source.describe(place), expected)
}
