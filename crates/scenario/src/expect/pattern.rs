//! `event` and `never` expectations: fields of an event, compared as JSON.

use midturn_core::rules::event::Event;
use midturn_core::rules::time::Span;
use serde_json::Value;

use super::{Miss, timeline};
use crate::record::Record;
use crate::scenario::Pattern;

/// An event with these fields must happen at least once.
pub(super) fn happens(pattern: &Pattern, record: &Record) -> Option<Miss> {
    let mut nearest = None;
    for (index, event) in of_type(pattern, record) {
        match differing(pattern, event) {
            fields if fields.is_empty() => return None,
            fields => nearest = nearest.into_iter().chain([(fields, index)]).min_by_key(|(f, _)| f.len()),
        }
    }
    let happened = match &nearest {
        None => format!("no {} at all", pattern.event),
        Some((fields, index)) => {
            let nearest = timeline::line(&record.events[*index]);
            format!("the nearest differs in {}: {}", fields.join(", "), nearest.trim())
        }
    };
    Some(Miss::new(in_words(pattern), happened, nearest.map(|(_, index)| index)))
}

/// No event with these fields may happen.
pub(super) fn never_happens(pattern: &Pattern, record: &Record) -> Option<Miss> {
    let (index, event) = of_type(pattern, record).find(|(_, event)| differing(pattern, event).is_empty())?;
    let expected = format!("never {}", in_words(pattern));
    Some(Miss::new(expected, timeline::line(event).trim(), Some(index)))
}

fn of_type<'a>(pattern: &'a Pattern, record: &'a Record) -> impl Iterator<Item = (usize, &'a Event)> {
    record.events.iter().enumerate().filter(|(_, event)| {
        event.kind.type_name() == pattern.event
            && (pattern.agent.is_none() || event.at.agent == pattern.agent)
    })
}

/// The fields in which an event is not as the pattern has it.
fn differing<'a>(pattern: &'a Pattern, event: &Event) -> Vec<&'a str> {
    if pattern.fields.is_empty() {
        return Vec::new();
    }
    let json = serde_json::to_value(event).unwrap_or_default();
    let differs = |(field, expected): &(&String, &Value)| {
        !same(field, expected, json.get(field.as_str()).unwrap_or(&Value::Null))
    };
    pattern.fields.iter().filter(differs).map(|(field, _)| field.as_str()).collect()
}

/// Whether a value of the file is the one of an event. `t` may be written as a duration.
fn same(field: &str, expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Number(expected), Value::Number(actual)) => expected.as_f64() == actual.as_f64(),
        (Value::String(expected), Value::Number(actual)) if field == "t" => {
            let micros = expected.parse::<Span>().map(|span| span.0 as f64);
            micros.is_ok_and(|micros| actual.as_f64().is_some_and(|actual| (actual * 1e6).round() == micros))
        }
        (Value::String(expected), Value::String(actual)) if field == "wait" => {
            expected.parse::<Span>() == actual.parse::<Span>()
        }
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len() && expected.iter().zip(actual).all(|(e, a)| same("", e, a))
        }
        (Value::Object(expected), Value::Object(actual)) => {
            expected.iter().all(|(key, e)| actual.get(key).is_some_and(|a| same("", e, a)))
        }
        (expected, actual) => expected == actual,
    }
}

fn in_words(pattern: &Pattern) -> String {
    let agent = pattern.agent.as_ref().map(|agent| format!(" of {agent}")).unwrap_or_default();
    let fields: Vec<String> =
        pattern.fields.iter().map(|(field, value)| format!("{field}: {value}")).collect();
    let with = if fields.is_empty() { String::new() } else { format!(" with {}", fields.join(", ")) };
    format!("{}{agent}{with}", pattern.event)
}
