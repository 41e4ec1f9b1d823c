//! `midturn ps --waiting`: what waits for a person, a line for each. For a status bar: where no Midturn runs nothing
//! waits, and that is no failure.

use midturn_client::{Client, Path, Trouble};
use midturn_core::rules::time::Micros;
use midturn_core::rules::view::Ask;
use midturn_view::inbox::{End, Need, newest_first};
use midturn_wire::agent::{Agent, Agents, LastEnd, Role, State};
use midturn_wire::approval::{Approval, Approvals};
use midturn_wire::session::Session;
use midturn_wire::work::Conflict;
use serde_json::{Value, json};

use super::{Answer, find, meant, say};
use crate::args::ClientArgs;
use crate::commands::block_on;
use crate::env::Env;
use crate::failure::{End as Status, Failure};
use crate::project::Project;

/// Prints what waits in one session, or in all that live.
///
/// # Errors
/// [`Failure`]: a process is there and can't be asked, or there is no such session.
pub(super) fn waiting(args: &ClientArgs, env: &Env) -> Result<Status, Failure> {
    let project = Project::named(&args.place, env)?;
    let answer = match find(&project)? {
        Some(client) => block_on(asked(&client, &args.session))?,
        None => Ok(told(Vec::new())),
    };
    // A process that has died left its address behind.
    let nobody = |failure: &Failure| *failure == Failure::from(Trouble::Nobody);
    match answer {
        Err(failure) if !nobody(&failure) => Err(failure),
        answer => say(args.json, answer.unwrap_or_else(|_| told(Vec::new()))),
    }
}

async fn asked(client: &Client, session: &str) -> Result<Answer, Failure> {
    let sessions = match session {
        "current" => {
            let all: midturn_wire::session::Sessions = client.get(&Path::of(&["sessions"])).await?;
            all.sessions.into_iter().filter(Session::lives_here).collect()
        }
        one => vec![meant(client, one).await?],
    };
    let mut all: Vec<(String, Need)> = Vec::new();
    for session in &sessions {
        let id = &session.session;
        let agents: Agents = client.get(&Path::in_session(id, &["agents"])).await?;
        let open: Approvals = client.get(&Path::in_session(id, &["approvals"])).await?;
        for mut need in needs(&agents.agents, open.approvals) {
            // Of several sessions: since 1970.
            need.since = need.since.map(|since| Micros(session.began_at.0.saturating_add(since.0)));
            all.push((id.clone(), need));
        }
    }
    Ok(told(sorted(all)))
}

/// The newest of all sessions first.
fn sorted(mut all: Vec<(String, Need)>) -> Vec<(String, Need)> {
    all.sort_by_key(|(_, need)| std::cmp::Reverse(need.since));
    all
}

/// What waits in a session, as its process lists its agents and requests.
fn needs(agents: &[Agent], open: Vec<Approval>) -> Vec<Need> {
    let rest = !agents.iter().any(|agent| matches!(agent.state, State::Running | State::Ending));
    let ended = agents.iter().filter_map(|agent| ended(agent, rest));
    let torn = agents.iter().filter_map(conflict);
    newest_first(open.into_iter().map(|open| Need::asks(&ask(open))).chain(ended).chain(torn))
}

/// A merge of its branch that would not go. Who works may be about to mend it.
fn conflict(agent: &Agent) -> Option<Need> {
    let Conflict { run, since, files } = agent.conflict.as_ref()?;
    let rests = matches!(agent.state, State::Idle | State::Stopped);
    rests.then(|| Need::conflict(&agent.name, *run, *since, files))
}

fn ask(open: Approval) -> Ask {
    let Approval { agent, tool, name, input, always, since, .. } = open;
    Ask {
        agent,
        tool: midturn_core::rules::id::CallId::new(tool),
        name: name.into(),
        input,
        always: always.into(),
        since,
    }
}

/// How an agent that rests has ended. When that was its process doesn't list.
fn ended(agent: &Agent, rest: bool) -> Option<Need> {
    let LastEnd { run, outcome, text } = agent.last_end.as_ref()?;
    if agent.state != State::Idle || *run != agent.run {
        return None;
    }
    let end = End {
        agent: &agent.name,
        is_lead: agent.role == Role::Lead,
        run: *run,
        outcome: (*outcome).into(),
        at: None,
        error: text,
        text,
    };
    Need::ended(&end, rest)
}

fn told(all: Vec<(String, Need)>) -> Answer {
    let several = all.iter().any(|(session, _)| *session != all[0].0);
    let line = |(session, need): &(String, Need)| match several {
        true => format!("{} ({session})\n", need.line()),
        false => format!("{}\n", need.line()),
    };
    let text: String = all.iter().map(line).collect();
    Answer::good(json!({ "waiting": all.iter().map(value).collect::<Vec<Value>>() }), text)
}

fn value((session, need): &(String, Need)) -> Value {
    let mut value = json!({
        "session": session, "agent": need.agent, "what": need.what.as_str(), "line": need.line(),
        "words": need.words, "id": need.id,
    });
    if let Some(since) = need.since {
        value["since"] = json!(since.0 as f64 / 1e6);
    }
    value
}
