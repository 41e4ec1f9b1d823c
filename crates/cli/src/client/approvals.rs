//! `midturn approvals`, `midturn approve`, `midturn deny`: what agents ask in all sessions
//! that live here, and a person's word on it.

use midturn_client::{Path, Said, SessionClient, Trouble};
use midturn_core::rules::time::{Micros, Span};
use midturn_view::clean::{one_line, visible};
use midturn_view::words::{self};
use midturn_wire::approval::Approval;
use midturn_wire::session::{Session, Sessions};
use serde_json::{Value, json};

use super::elsewhere::ask;
use super::table::duration;
use super::{Answer, Asking, now};
use crate::args::MeantArgs;
use crate::run::session::attending::told;

/// A request, the session it is in, and its JSON.
struct Open {
    session: Session,
    approval: Approval,
    whole: Value,
}

/// Lists what is asked. `only`: in this session.
pub(super) async fn list(asking: &Asking, only: Option<&str>) -> Result<Answer, Trouble> {
    let open = all(asking, only).await?;
    let now = now();
    let blocks: Vec<String> = open.iter().map(|open| block(open, now)).collect();
    let text = match blocks.is_empty() {
        true => "nobody asks for anything now\n".to_owned(),
        false => blocks.join("\n"),
    };
    Ok(Answer::good(json!({"approvals": wholes(open)}), text))
}

/// Gives a person's word: on the call that is meant, else on the oldest that the agent asks about.
pub(super) async fn answer(asking: &Asking, meant: &MeantArgs, said: &Said) -> Result<Answer, Trouble> {
    let MeantArgs { agent, call, client } = meant;
    let mut open = all(asking, client.session.as_deref()).await?;
    let is_call = |tool: &str| call.as_ref().is_none_or(|call| call == tool);
    open.retain(|open| open.approval.agent == *agent && is_call(&open.approval.tool));
    let mut sessions: Vec<&str> = open.iter().map(|open| open.session.session.as_str()).collect();
    sessions.dedup();
    if let [_, _, ..] = sessions.as_slice() {
        let failure = format!("{agent} asks in {}: name one with --session ID", sessions.join(" and "));
        return Ok(unsaid(open, failure));
    }
    let Some(first) = open.first() else {
        let what = call.as_ref().map_or(" for anything".to_owned(), |call| format!(" about the call {call}"));
        let failure = format!("{agent} doesn't ask{what} now; `midturn approvals` lists what is asked");
        return Ok(unsaid(open, failure));
    };
    let request = ask(first.approval.clone());
    let session = SessionClient::new(&asking.client, &first.session.session);
    let value = session.answer(&request.agent, &request.tool, request.since, said).await?;
    Ok(Answer::good(value, format!("{}\n", told(&request, said))))
}

/// Nothing was answered.
fn unsaid(open: Vec<Open>, failure: String) -> Answer {
    Answer::failed(json!({"approvals": wholes(open)}), "", failure)
}

fn wholes(open: Vec<Open>) -> Vec<Value> {
    open.into_iter().map(|open| open.whole).collect()
}

/// What is asked in all sessions that live, or in the one that is named.
async fn all(asking: &Asking, only: Option<&str>) -> Result<Vec<Open>, Trouble> {
    let client = &asking.client;
    let sessions: Vec<Session> = match only {
        Some(session) => vec![client.get(&Path::in_session(session, &[])).await?],
        None => client.get::<Sessions>(&Path::of(&["sessions"])).await?.sessions,
    };
    let mut all = Vec::new();
    for session in sessions.into_iter().filter(|session| session.live) {
        let (value, open) = SessionClient::new(client, &session.session).approvals().await?;
        let wholes = value["approvals"].as_array().cloned().unwrap_or_default();
        let open = open.approvals.into_iter().zip(wholes);
        all.extend(open.map(|(approval, whole)| Open { session: session.clone(), approval, whole }));
    }
    Ok(all)
}

/// All that a person needs to decide.
fn block(open: &Open, now: Micros) -> String {
    let Open { session, approval, .. } = open;
    let since = duration(now.since(session.began_at.after(Span(approval.since.0))));
    let mut text = format!(
        "{} asks in {} for {since}, call {}: {}\n",
        approval.agent,
        session.session,
        one_line(&approval.tool),
        one_line(&approval.name)
    );
    match approval.input.as_object() {
        Some(fields) => fields.iter().for_each(|(name, value)| text.push_str(&field(name, value))),
        None => text.push_str(&field("input", &approval.input)),
    }
    if approval.truncated {
        let cut = format!("(cut: `midturn log {} --json` has all of it)", session.session);
        text.push_str(&indented(&cut));
    }
    text.push_str(&indented(&format!("always: {}", words::whole(&approval.always))));
    text
}

fn field(name: &str, value: &Value) -> String {
    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    indented(&format!("{}: {}", one_line(name), value.trim_end()))
}

/// Every line after the first is further in, so that none can be taken for another field.
fn indented(text: &str) -> String {
    let shown = visible(text);
    format!("  {}\n", shown.replace('\n', "\n      "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_shown_whole_and_no_text_of_it_looks_like_another_part() {
        let whole = json!({"session": "s-1", "agent": "worker", "tool": "c1\n", "name": "bash", "truncated": true,
            "input": {"command": "a\u{1b}[2J\nalways: no", "timeout": 30}, "always": "bash(a)", "since": 2.0});
        let session = json!({"session": "s-1", "title": "", "folder": "/w", "began_at": 100.0, "epoch": 1,
            "live": true, "agents": 1, "running": 1, "busy": true, "last_seq": 4});
        let session = serde_json::from_value(session).unwrap();
        let open = Open { session, approval: serde_json::from_value(whole.clone()).unwrap(), whole };
        let expected = "\
worker asks in s-1 for 1 min 03 s, call c1: bash
  command: a‹U+001B›[2J
      always: no
  timeout: 30
  (cut: `midturn log s-1 --json` has all of it)
  always: bash(a)
";
        assert_eq!(block(&open, Micros(165_000_000)), expected);
    }
}
