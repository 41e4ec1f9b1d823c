//! Messages and other actions.

use midturn_core::rules::event::Scope;
use midturn_core::rules::id::{AgentName, CallId, MessageId};
use midturn_core::rules::mail::{Sender, Urgency};
use midturn_core::rules::time::Micros;

use super::super::raw::{RawAfter, RawDecision, RawItem};
use super::super::values::{At, EventId};
use super::{Known, approvals};
use crate::error::{Error, Place};
use crate::scenario::{Act, Anchor, Item, Says, Send, When};

/// Whether an item is a message and not another action.
pub(super) fn sends(raw: &RawItem) -> bool {
    actions(raw).is_empty()
}

/// Checks all items.
pub(super) fn checked(known: &Known<'_>, raw: Vec<At<RawItem>>) -> Result<Vec<Item>, Error> {
    let ids = known.item_ids.iter().map(|id| id.as_deref().map(MessageId::new));
    raw.iter().zip(ids).map(|(item, id)| one(known, item, id)).collect()
}

fn one(known: &Known<'_>, raw: &At<RawItem>, id: Option<MessageId>) -> Result<Item, Error> {
    let when = when(known, raw)?;
    let act = match actions(&raw.value).as_slice() {
        [] => message(known, raw).map(Act::Send)?,
        [(key, target)] => action(known, &raw.value, key, target)?,
        [_, (key, second), ..] => {
            let found = format!("a second action, `{key}`");
            return Err(known.source.fault(second.place, found, "one action an item"));
        }
    };
    Ok(Item { id, when, act, place: raw.place })
}

/// The actions that an item names, with what each is done to.
fn actions(raw: &RawItem) -> Vec<(&'static str, &At<String>)> {
    let keys = [
        ("stop", &raw.stop),
        ("supersede", &raw.supersede),
        ("resume", &raw.resume),
        ("close", &raw.close),
        ("withdraw", &raw.withdraw),
        ("answer", &raw.answer),
    ];
    keys.into_iter().filter_map(|(key, target)| target.as_ref().map(|target| (key, target))).collect()
}

fn when(known: &Known<'_>, raw: &At<RawItem>) -> Result<When, Error> {
    match (&raw.value.at, &raw.value.after) {
        (Some(at), None) => Ok(When::At(Micros(at.value.0))),
        (None, Some(after)) => anchor(known, after).map(|anchor| When::After(anchor, after.value.plus)),
        (Some(_), Some(after)) => {
            Err(known.source.fault(after.place, "both `at` and `after`", "one of `at` and `after`"))
        }
        (None, None) => {
            Err(known.source.fault(raw.place, "neither `at` nor `after`", "one of `at` and `after`"))
        }
    }
}

fn anchor(known: &Known<'_>, after: &At<RawAfter>) -> Result<Anchor, Error> {
    let named: Vec<_> = after.value.named().collect();
    let [(event, id)] = named.as_slice() else {
        let found = match named.get(1) {
            Some((second, _)) => format!("a second event type, `{second}`"),
            None => "no event type".to_owned(),
        };
        let place = named.get(1).map_or(after.place, |(_, id)| id.place);
        let expected = "{agent, EVENT: ID, plus} with one event type, such as tool_started";
        return Err(known.source.fault(place, found, expected));
    };
    let agent = known.agent(&after.value.agent)?;
    let id = match &id.value {
        EventId::Any => None,
        EventId::Named(named) => {
            anchor_id(known, event, &agent, named, id.place)?;
            Some(named.clone())
        }
    };
    Ok(Anchor { agent, event, id })
}

/// An id that no such event can carry would never be reached.
fn anchor_id(known: &Known<'_>, event: &str, agent: &AgentName, id: &str, place: Place) -> Result<(), Error> {
    let id_at = At { value: id.to_owned(), place };
    if event.starts_with("tool_") || event.starts_with("approval_") {
        return known.call(agent, id, place);
    }
    if event.starts_with("message_") {
        return known.message(&id_at);
    }
    let numbered = event.starts_with("model_") || event.starts_with("run_");
    let expected = match (numbered, id.parse::<u64>()) {
        (true, Ok(_)) => return Ok(()),
        (true, Err(_)) => "a number (1, 2 …), or `any`",
        (false, _) => "`any`: such events have no id",
    };
    Err(known.source.fault(place, known.source.describe(place), expected))
}

fn message(known: &Known<'_>, raw: &At<RawItem>) -> Result<Send, Error> {
    let item = &raw.value;
    let strays = [
        ("by", place(&item.by)),
        ("scope", place(&item.scope)),
        ("tool", place(&item.tool)),
        ("decision", place(&item.decision)),
        ("rule", place(&item.rule)),
    ];
    for (key, place) in strays {
        if let Some(place) = place {
            let expected = "a message (`from`, `to`, `text`), or an action such as `stop` beside it";
            return Err(known.source.fault(place, format!("`{key}` without an action"), expected));
        }
    }
    let from = known.sender(required(known, raw, "from", item.from.as_ref())?)?;
    let to = required(known, raw, "to", item.to.as_ref())?;
    let text = required(known, raw, "text", item.text.as_ref())?;
    if to.value != "parent" && to.value != "all" {
        known.agent(to)?;
    }
    if let Some(superseded) = &item.supersedes {
        known.message(superseded)?;
    }
    Ok(Send {
        from,
        to: to.value.clone(),
        text: text.value.clone(),
        urgency: urgency(known, item)?,
        expires_after: item.expires_after.as_ref().map(|span| span.value),
        supersedes: item.supersedes.as_ref().map(|id| MessageId::new(id.value.as_str())),
        only_run: item.only_run.as_ref().map(|run| run.value),
    })
}

fn urgency(known: &Known<'_>, item: &RawItem) -> Result<Option<Urgency>, Error> {
    match (&item.urgent, &item.urgency) {
        (Some(_), Some(urgency)) => {
            let expected = "one of `urgent` and `urgency`";
            Err(known.source.fault(urgency.place, "both `urgent` and `urgency`", expected))
        }
        (Some(urgent), None) => Ok(urgent.value.then_some(Urgency::Urgent)),
        (None, urgency) => Ok(urgency.as_ref().map(|urgency| urgency.value)),
    }
}

fn action(known: &Known<'_>, raw: &RawItem, key: &str, target: &At<String>) -> Result<Act, Error> {
    fits(known, raw, key)?;
    let by = raw.by.as_ref().map_or(Ok(Sender::User), |by| known.sender(by))?;
    if key == "withdraw" {
        known.message(target)?;
        return Ok(Act::Withdraw { message: MessageId::new(target.value.as_str()), by });
    }
    let agent = known.agent(target)?;
    if key == "answer" {
        return answer(known, raw, agent, target.place);
    }
    Ok(match key {
        "stop" => {
            let scope = raw.scope.as_ref().map_or(Scope::Agent, |scope| scope.value);
            Act::Stop { agent, by, scope }
        }
        "supersede" => {
            let text = raw.text.as_ref().map(|text| text.value.clone()).unwrap_or_default();
            Act::Supersede { agent, by, text }
        }
        "resume" => Act::Resume { agent, by },
        _ => Act::Close { agent, by },
    })
}

/// A person's answer. No agent gives one: what it says is a message, and approves nothing.
fn answer(known: &Known<'_>, raw: &RawItem, agent: AgentName, place: Place) -> Result<Act, Error> {
    let source = known.source;
    if let Some(by) = raw.by.as_ref().filter(|by| by.value != "user") {
        return Err(source.fault(
            by.place,
            format!("an answer by `{}`", by.value),
            "`user`: only a person approves",
        ));
    }
    let (Some(tool), Some(decision)) = (&raw.tool, &raw.decision) else {
        return Err(source.fault(
            place,
            "an answer to nothing",
            "`answer: AGENT` with `tool: CALL` and `decision`",
        ));
    };
    known.call(&agent, &tool.value, tool.place)?;
    let rule = raw.rule.as_ref().map(|rule| approvals::rule(source, rule)).transpose()?;
    let says = match decision.value {
        RawDecision::Once => Says::Once,
        RawDecision::Session => Says::Session(rule),
        RawDecision::Denied => Says::Denied(raw.text.as_ref().map(|text| text.value.clone())),
    };
    Ok(Act::Answer { agent, tool: CallId::new(tool.value.as_str()), says })
}

/// Keys that have no meaning beside an action are errors, and so is a `supersede` without text.
fn fits(known: &Known<'_>, raw: &RawItem, key: &str) -> Result<(), Error> {
    let decision = raw.decision.as_ref().map(|decision| decision.value);
    let takes_text = key == "supersede" || decision == Some(RawDecision::Denied);
    let stray = [
        ("scope", place(&raw.scope).filter(|_| key != "stop")),
        ("text", place(&raw.text).filter(|_| !takes_text)),
        ("tool", place(&raw.tool).filter(|_| key != "answer")),
        ("decision", place(&raw.decision).filter(|_| key != "answer")),
        ("rule", place(&raw.rule).filter(|_| decision != Some(RawDecision::Session))),
        ("from", place(&raw.from)),
        ("to", place(&raw.to)),
        ("urgent", place(&raw.urgent)),
        ("urgency", place(&raw.urgency)),
        ("expires_after", place(&raw.expires_after)),
        ("supersedes", place(&raw.supersedes)),
        ("only_run", place(&raw.only_run)),
    ];
    if let Some((stray, Some(place))) = stray.iter().find(|(_, place)| place.is_some()) {
        let found = format!("`{stray}` beside `{key}`");
        let expected = "only `id`, `at` or `after`, `by`; `scope` with stop, `text` with supersede; `tool` and \
            `decision` with answer, and `text` if denied, `rule` for the session";
        return Err(known.source.fault(*place, found, expected));
    }
    match (&raw.supersede, &raw.text) {
        (Some(target), None) => {
            Err(known.source.fault(target.place, "`supersede` without `text`", "the new message as `text`"))
        }
        _ => Ok(()),
    }
}

fn required<'a, T>(
    known: &Known<'_>,
    item: &At<RawItem>,
    key: &str,
    value: Option<&'a At<T>>,
) -> Result<&'a At<T>, Error> {
    value.ok_or_else(|| {
        let expected =
            "a message (`from`, `to`, `text`), or one of stop, supersede, resume, close, withdraw, answer";
        known.source.fault(item.place, format!("an item without `{key}`"), expected)
    })
}

fn place<T>(value: &Option<At<T>>) -> Option<Place> {
    value.as_ref().map(|value| value.place)
}
