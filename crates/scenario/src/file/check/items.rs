//! Messages and other actions.

use midturn_core::engine::Message;
use midturn_core::rules::event::Scope;
use midturn_core::rules::id::{AgentName, CallId, MessageId};
use midturn_core::rules::mail::{Sender, Urgency};
use midturn_core::rules::settings::LimitsPatch;
use midturn_core::rules::time::{Micros, Span};

use super::super::raw::{RawDecision, RawItem};
use super::{Known, anchors, approvals, place};
use crate::error::{Error, Place};
use crate::scenario::{Act, Item, Says, Tools, When};
use crate::values::At;

/// What an item without an action is.
const MESSAGE: &str = "message";

/// What an item may be, for errors.
const KINDS: &str = "a message (`from`, `to`, `text`), or one of stop, supersede, resume, close, withdraw, answer, \
                     raise, crash, shutdown";

/// Whether an item is a message and not another action.
pub(super) fn sends(raw: &RawItem) -> bool {
    actions(raw).is_empty()
}

/// Checks all items.
pub(super) fn checked(known: &Known<'_>, tools: &Tools, raw: Vec<At<RawItem>>) -> Result<Vec<Item>, Error> {
    let ids = known.item_ids.iter().map(|id| id.as_deref().map(MessageId::new));
    raw.iter().zip(ids).map(|(item, id)| one(known, tools, item, id)).collect()
}

fn one(known: &Known<'_>, tools: &Tools, raw: &At<RawItem>, id: Option<MessageId>) -> Result<Item, Error> {
    let when = when(known, raw)?;
    let kind = match actions(&raw.value).as_slice() {
        [] => MESSAGE,
        [(key, _)] => *key,
        [_, (key, second), ..] => {
            let found = format!("a second action, `{key}`");
            return Err(known.source.fault(*second, found, "one action an item"));
        }
    };
    fits(known, &raw.value, kind)?;
    Ok(Item { id, when, act: act(known, tools, raw)?, place: raw.place })
}

/// The actions that an item names, with where each stands.
fn actions(raw: &RawItem) -> Vec<(&'static str, Place)> {
    let keys = [
        ("stop", place(&raw.stop)),
        ("supersede", place(&raw.supersede)),
        ("resume", place(&raw.resume)),
        ("close", place(&raw.close)),
        ("withdraw", place(&raw.withdraw)),
        ("answer", place(&raw.answer)),
        ("raise", place(&raw.raise)),
        ("crash", place(&raw.crash)),
        ("shutdown", place(&raw.shutdown)),
    ];
    keys.into_iter().filter_map(|(key, place)| place.map(|place| (key, place))).collect()
}

fn when(known: &Known<'_>, raw: &At<RawItem>) -> Result<When, Error> {
    let RawItem { at, after, upon, .. } = &raw.value;
    let (place, found) = match (at, after, upon) {
        (Some(at), None, None) => return Ok(When::at(Micros(at.value.0))),
        (None, Some(after), None) => {
            return Ok(When::After(anchors::anchor(known, after)?, after.value.plus));
        }
        (None, None, Some(upon)) if upon.value.plus == Span::ZERO => {
            return Ok(When::Upon(anchors::anchor(known, upon)?));
        }
        (None, None, Some(upon)) => {
            let expected = "the event alone: the process ends with it; `after` has a `plus`";
            return Err(known.source.fault(upon.place, "`plus` in `upon`", expected));
        }
        (Some(_), Some(after), _) => (after.place, "both `at` and `after`"),
        (Some(_), None, Some(upon)) => (upon.place, "both `at` and `upon`"),
        (None, Some(_), Some(upon)) => (upon.place, "both `after` and `upon`"),
        (None, None, None) => (raw.place, "neither `at` nor `after`"),
    };
    Err(known.source.fault(place, found, "one of `at` and `after`, or with crash `upon`"))
}

fn message(known: &Known<'_>, raw: &At<RawItem>) -> Result<Message, Error> {
    let item = &raw.value;
    let from = known.sender(required(known, raw, "from", item.from.as_ref())?)?;
    let to = required(known, raw, "to", item.to.as_ref())?;
    let text = required(known, raw, "text", item.text.as_ref())?;
    if to.value != "parent" && to.value != "all" {
        known.agent(to)?;
    }
    if let Some(superseded) = &item.supersedes {
        known.message(superseded)?;
    }
    if let (Some(if_queued), None) = (&item.if_queued, &item.supersedes) {
        let expected = "`supersedes: MESSAGE` beside it";
        return Err(known.source.fault(if_queued.place, "`if_queued` without `supersedes`", expected));
    }
    Ok(Message {
        urgency: urgency(known, item)?,
        expires_after: item.expires_after.as_ref().map(|span| span.value),
        supersedes: item.supersedes.as_ref().map(|id| MessageId::new(id.value.as_str())),
        if_queued: item.if_queued.as_ref().is_some_and(|only| only.value),
        only_run: item.only_run.as_ref().map(|run| run.value),
        ..Message::new(from, to.value.as_str(), text.value.as_str())
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

fn act(known: &Known<'_>, tools: &Tools, item: &At<RawItem>) -> Result<Act, Error> {
    let raw = &item.value;
    let by = raw.by.as_ref().map_or(Ok(Sender::User), |by| known.sender(by))?;
    Ok(match raw {
        RawItem { stop: Some(agent), scope, .. } => {
            let scope = scope.as_ref().map_or(Scope::Agent, |scope| scope.value);
            Act::Stop { agent: known.agent(agent)?, by, scope }
        }
        RawItem { supersede: Some(target), text, .. } => {
            let agent = known.agent(target)?;
            let text = text.as_ref().ok_or_else(|| {
                known.source.fault(target.place, "`supersede` without `text`", "the new message as `text`")
            })?;
            Act::Supersede { agent, by, text: text.value.clone() }
        }
        RawItem { resume: Some(agent), .. } => {
            let agent = if agent.value == "all" { None } else { Some(known.agent(agent)?) };
            Act::Resume { agent, by }
        }
        RawItem { close: Some(agent), .. } => Act::Close { agent: known.agent(agent)?, by },
        RawItem { withdraw: Some(message), .. } => {
            known.message(message)?;
            Act::Withdraw { message: MessageId::new(message.value.as_str()), by }
        }
        RawItem { answer: Some(agent), .. } => answer(known, raw, known.agent(agent)?, agent.place)?,
        RawItem { raise: Some(whose), .. } => raise(known, raw, whose)?,
        RawItem { crash: Some(after), .. } => {
            Act::Crash { back_after: back_after(known, tools, "crash", after)? }
        }
        RawItem { shutdown: Some(after), .. } => {
            Act::ShutDown { back_after: back_after(known, tools, "shutdown", after)? }
        }
        _ => Act::Send(message(known, item)?),
    })
}

/// How much later than its process ends a session is taken up.
fn back_after(known: &Known<'_>, tools: &Tools, key: &str, after: &At<Span>) -> Result<Span, Error> {
    if *tools == Tools::Simulated {
        return Ok(after.value);
    }
    let found = format!("`{key}` with `tools: real`");
    Err(known.source.fault(after.place, found, "simulated tools: what real ones do goes on"))
}

/// Limits that a person sets.
fn raise(known: &Known<'_>, raw: &RawItem, whose: &At<String>) -> Result<Act, Error> {
    only_a_person(known, raw, "a raise", "raises")?;
    let limits = raw.limits.as_ref().filter(|limits| limits.value != LimitsPatch::default());
    let limits = limits.ok_or_else(|| {
        let expected = "`limits` beside it, with some of max_turns, max_tokens, max_cost and max_time";
        known.source.fault(whose.place, "a raise of nothing", expected)
    })?;
    let whose = if whose.value == "session" { None } else { Some(known.agent(whose)?) };
    Ok(Act::Raise { whose, limits: limits.value.clone() })
}

/// What agents say is a message, and decides nothing.
fn only_a_person(known: &Known<'_>, raw: &RawItem, what: &str, does: &str) -> Result<(), Error> {
    match raw.by.as_ref().filter(|by| by.value != "user") {
        Some(by) => {
            let found = format!("{what} by `{}`", by.value);
            Err(known.source.fault(by.place, found, format!("`user`: only a person {does}")))
        }
        None => Ok(()),
    }
}

/// A person's answer.
fn answer(known: &Known<'_>, raw: &RawItem, agent: AgentName, place: Place) -> Result<Act, Error> {
    let source = known.source;
    only_a_person(known, raw, "an answer", "approves")?;
    let (Some(tool), Some(decision)) = (&raw.tool, &raw.decision) else {
        let expected = "`answer: AGENT` with `tool: CALL` and `decision`";
        return Err(source.fault(place, "an answer to nothing", expected));
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

/// Keys that have no meaning in such an item are errors.
fn fits(known: &Known<'_>, raw: &RawItem, kind: &str) -> Result<(), Error> {
    let decision = raw.decision.as_ref().map(|decision| decision.value);
    let is_message = kind == MESSAGE;
    let takes_text = is_message || kind == "supersede" || decision == Some(RawDecision::Denied);
    let keys = [
        ("by", place(&raw.by), !is_message && kind != "crash" && kind != "shutdown"),
        ("scope", place(&raw.scope), kind == "stop"),
        ("text", place(&raw.text), takes_text),
        ("tool", place(&raw.tool), kind == "answer"),
        ("decision", place(&raw.decision), kind == "answer"),
        ("rule", place(&raw.rule), decision == Some(RawDecision::Session)),
        ("limits", place(&raw.limits), kind == "raise"),
        ("upon", place(&raw.upon), kind == "crash"),
        ("from", place(&raw.from), is_message),
        ("to", place(&raw.to), is_message),
        ("urgent", place(&raw.urgent), is_message),
        ("urgency", place(&raw.urgency), is_message),
        ("expires_after", place(&raw.expires_after), is_message),
        ("supersedes", place(&raw.supersedes), is_message),
        ("if_queued", place(&raw.if_queued), is_message),
        ("only_run", place(&raw.only_run), is_message),
    ];
    let Some((key, Some(place), _)) = keys.iter().find(|(_, place, fits)| place.is_some() && !fits) else {
        return Ok(());
    };
    let (found, expected) = match is_message {
        true => (
            format!("`{key}` without an action"),
            "a message (`from`, `to`, `text`), or an action such as `stop` beside it",
        ),
        false => (
            format!("`{key}` beside `{kind}`"),
            "only `id`, `at` or `after`, `by`; `scope` with stop, `text` with supersede, `limits` with raise; \
             `tool` and `decision` with answer, and `text` if denied, `rule` for the session; no `by` with crash and \
             shutdown; `upon` with crash",
        ),
    };
    Err(known.source.fault(*place, found, expected))
}

fn required<'a, T>(
    known: &Known<'_>,
    item: &At<RawItem>,
    key: &str,
    value: Option<&'a At<T>>,
) -> Result<&'a At<T>, Error> {
    value.ok_or_else(|| known.source.fault(item.place, format!("an item without `{key}`"), KINDS))
}
