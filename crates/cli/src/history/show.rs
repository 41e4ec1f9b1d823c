//! The events of a session as they were kept: lines for people, or the JSON.

use std::io::IsTerminal;

use midturn_core::engine::ports::Archive;
use midturn_core::engine::ports::archive::{Rows, StoredEvent};
use midturn_core::rules::event::Event;
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_view::clean::{clean, one_line};
use midturn_view::words::{self};
use serde_json::Value;

use crate::commands::{self, Reader};
use crate::failure::{End, Failure};
use crate::meanwhile::Meanwhile;
use crate::run::progress;
use crate::secrets;

/// How many events are read at once.
const PAGE: u32 = 1_000;

/// Before what stands below an event's line: as wide as the time.
const IN: &str = "             ";

/// What is to be shown.
pub(super) struct Wanted<'a> {
    pub(super) session: &'a SessionId,
    pub(super) agent: Option<&'a AgentName>,
    pub(super) json: bool,
    /// Every event, and all of each text.
    pub(super) full: bool,
}

/// Writes the events to standard output, page by page. Where a person reads them that is all there is to tell.
pub(super) async fn show(
    archive: &dyn Archive,
    wanted: &Wanted<'_>,
    meanwhile: &Meanwhile,
) -> Result<End, Failure> {
    let is_read = std::io::stdout().is_terminal();
    let mut count = 0;
    let colours = is_read && std::env::var_os("NO_COLOR").is_none();
    let mut after = 0;
    loop {
        let page = archive.events(wanted.session, wanted.agent, Rows::After(after), PAGE).await;
        let page = page.map_err(Failure::failed)?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        count += page.len();
        meanwhile.has(count);
        let shown = page.into_iter().filter_map(|event| match wanted.json {
            true => Some(format!("{}\n", event.json)),
            false if wanted.full => Some(whole(&event, colours)),
            false => line(&event, colours).map(|line| line + "\n"),
        });
        // Each page for itself: nobody may hold standard output while waiting for the store.
        let text = secrets::clean(&shown.collect::<String>()).into_owned();
        let reader = if is_read { meanwhile.aside(|| commands::put(&text)) } else { commands::put(&text) };
        if reader? == Reader::Gone {
            return Ok(End::Finished);
        }
    }
    if after == 0
        && let Some(agent) = wanted.agent
    {
        return Err(Failure::usage(format!(
            "nothing is kept of an agent `{agent}` in session {0}: `midturn log {0}` shows who was there",
            wanted.session
        )));
    }
    Ok(End::Finished)
}

/// The line for an event, after the second in which it happened; an event of a kind that is
/// not known here is shown as it is.
fn line(event: &StoredEvent, colours: bool) -> Option<String> {
    let Ok(parsed) = serde_json::from_str::<Event>(&event.json) else {
        return Some(format!("{:>9}  {}", "?", clean(&event.json)));
    };
    let (tone, line) = words::line(&parsed)?;
    let line = if colours { progress::coloured(tone, &line) } else { line };
    Some(format!("{:>7}.{} s  {line}", parsed.t.0 / 1_000_000, parsed.t.0 / 100_000 % 10))
}

/// An event's line, or its kind if it has none, and below it all that it says besides.
fn whole(event: &StoredEvent, colours: bool) -> String {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(&event.json) else {
        return line(event, colours).unwrap_or_default() + "\n";
    };
    let kind = fields.get("type").and_then(Value::as_str).map(one_line).unwrap_or_default();
    let agent = event.agent.as_ref().map(|agent| format!("{agent}: ")).unwrap_or_default();
    let t = fields.get("t").and_then(Value::as_f64).unwrap_or_default();
    let head = line(event, colours).unwrap_or_else(|| format!("{t:>9.1} s  {agent}{kind}"));
    // Where it stands is in its line, and who it is about.
    for known in ["v", "seq", "t", "type", "agent"] {
        fields.remove(known);
    }
    let mut shown = head + "\n";
    fields.iter().for_each(|(name, value)| put(&mut shown, name, value));
    shown
}

/// A field, below its event; of an object each field for itself.
fn put(shown: &mut String, name: &str, value: &Value) {
    let text = match value {
        Value::Null => return,
        Value::Object(fields) => {
            return fields.iter().for_each(|(below, value)| put(shown, &format!("{name}.{below}"), value));
        }
        Value::String(text) => clean(text),
        other => clean(&other.to_string()),
    };
    let name = one_line(name);
    match text.contains('\n') {
        false => shown.push_str(&format!("{IN}{name}: {text}\n")),
        true => {
            shown.push_str(&format!("{IN}{name}:\n"));
            text.lines().for_each(|line| shown.push_str(&format!("{IN}  {line}\n")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_an_event_is_left_out() {
        let long = "x".repeat(300);
        let json = format!(
            r#"{{"v":1,"seq":2,"t":1.25,"agent":"w","run":1,"turn":2,"type":"tool_finished","tool":"b","name":"bash","status":"completed","is_error":false,"bytes":303,"output":"{long}\nab\u001b[31m","more":{{"k":"v","none":null}}}}"#
        );
        let agent = Some(AgentName::new("w").unwrap());
        let shown = whole(&StoredEvent { seq: 2, agent, json: json.into() }, false);
        let expected = format!(
            "      1.2 s  w: tool_finished\n             bytes: 303\n             is_error: false\n             more.k: v\n             \
             name: bash\n             output:\n               {long}\n               ab\n             run: 1\n             \
             status: completed\n             tool: b\n             turn: 2\n"
        );
        assert_eq!(shown, expected);
    }

    fn shown(json: &str) -> Option<String> {
        line(&StoredEvent { seq: 1, agent: None, json: json.into() }, false)
    }

    #[test]
    fn a_line_says_when_and_what_and_nothing_that_does_not_matter() {
        for (json, expected) in [
            (
                r#"{"v":1,"seq":1,"t":83.27,"agent":"w","run":1,"turn":1,"type":"tool_started","tool":"b","name":"bash","input":{"command":"ls"},"batch":1}"#,
                Some("     83.2 s  w: bash ls"),
            ),
            (r#"{"v":1,"seq":2,"t":0.0,"agent":"w","run":1,"turn":1,"type":"agent_closed"}"#, None),
            (r#"{"type":"new"}"#, Some("        ?  {\"type\":\"new\"}")),
        ] {
            assert_eq!(shown(json).as_deref(), expected);
        }
    }
}
