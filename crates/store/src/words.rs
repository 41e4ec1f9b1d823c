//! The core's words as the tables have them, and back.

use std::sync::Arc;

use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::{MailKind, Sender};
use midturn_core::rules::progress::Closed;
use midturn_core::rules::settings::{Patched, Settings, SettingsPatch};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Unreadable;

/// The text that is there before the name of the agent that the coordinator writes about. No
/// agent's name has a colon.
const COORDINATOR: &str = "coordinator:";

/// A sender: `user`, the name of an agent, or `coordinator:NAME`.
pub(crate) fn sender(sender: &Sender) -> Arc<str> {
    match sender {
        Sender::User => "user".into(),
        Sender::Agent(name) => name.as_str().into(),
        Sender::Coordinator(about) => format!("{COORDINATOR}{about}").into(),
    }
}

/// The sender of a text.
pub(crate) fn to_sender(text: &str) -> Result<Sender, Unreadable> {
    if text == "user" {
        return Ok(Sender::User);
    }
    match text.strip_prefix(COORDINATOR) {
        Some(about) => Ok(Sender::Coordinator(name(about)?)),
        None => Ok(Sender::Agent(name(text)?)),
    }
}

/// An agent's name.
pub(crate) fn name(text: &str) -> Result<AgentName, Unreadable> {
    AgentName::new(text).map_err(Unreadable::of)
}

/// What a message is: `words`, or how the run ended that it tells of.
pub(crate) fn mail_kind(kind: &MailKind) -> &'static str {
    match kind {
        MailKind::Words => "words",
        MailKind::End(end) => end.as_str(),
    }
}

/// The kind of a word.
pub(crate) fn to_mail_kind(word: &str) -> Result<MailKind, Unreadable> {
    if word == "words" {
        return Ok(MailKind::Words);
    }
    let end = to_variant(word.to_owned()).map(MailKind::End);
    end.map_err(|_| Unreadable(format!("`{word}` is not a kind of message")))
}

/// How far a close has come. 1 is what every version wrote once it was told.
pub(crate) fn closed(closed: Closed) -> u64 {
    match closed {
        Closed::No => 0,
        Closed::Told => 1,
        Closed::Asked => 2,
    }
}

/// The close of a number.
pub(crate) fn to_closed(number: u64) -> Result<Closed, Unreadable> {
    match number {
        0 => Ok(Closed::No),
        1 => Ok(Closed::Told),
        2 => Ok(Closed::Asked),
        other => Err(Unreadable(format!("{other} says nothing of whether an agent is closed"))),
    }
}

/// The variant of a word.
pub(crate) fn to_variant<T: DeserializeOwned>(word: String) -> Result<T, Unreadable> {
    serde_json::from_value(serde_json::Value::String(word)).map_err(Unreadable::of)
}

/// The settings of JSON that any version wrote: what it knew and we don't is left out, what we
/// know and it didn't is as it is by default. A value that can't be read is an error: a limit
/// must not be lost.
pub(crate) fn to_settings(json: &str) -> Result<Settings, Unreadable> {
    let mut settings = Settings::default();
    let mut kept: Value = serde_json::from_str(json).map_err(Unreadable::of)?;
    let known = serde_json::to_value(&settings).map_err(Unreadable::of)?;
    leave_out_unknown(&mut kept, &known);
    let patch: SettingsPatch = serde_json::from_value(kept).map_err(Unreadable::of)?;
    settings.patch(&patch);
    Ok(settings)
}

fn leave_out_unknown(kept: &mut Value, known: &Value) {
    let (Value::Object(kept), Value::Object(known)) = (kept, known) else { return };
    kept.retain(|key, _| known.contains_key(key));
    for (key, value) in kept {
        leave_out_unknown(value, &known[key]);
    }
}
