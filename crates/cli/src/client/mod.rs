//! The commands that ask a running Midturn: `ps`, `send`, `withdraw`, `stop`, `supersede`, `close`, `limit`,
//! `approvals`, `approve`, `deny`, `watch`, `diff`, `merge`, `stats`; and a run whose session lives in another process.
//!
//! They ask through the interface of docs/protocol.md, as every other program would, and put
//! the answer in words. They open no store and decide nothing about messages.

mod approvals;
mod branch;
mod control;
mod elsewhere;
mod joined;
mod kept;
mod open;
mod ps;
mod receipt;
mod remote;
mod send;
mod stats;
pub(crate) mod table;
mod taking_up;
mod view;
mod waiting;
mod watch;

use std::io::IsTerminal;

use midturn_client::{Client, Path, Said, Trouble};
use midturn_core::rules::id::AgentName;
use midturn_view::clean::clean;
use midturn_wire::session::{Session, Sessions as Live};
use serde_json::{Value, json};

use crate::args::{ClientArgs, ClientCommand, MeantArgs, SendArgs};
use crate::commands::{self, block_on};
use crate::env::{Env, now};
use crate::failure::{End, Failure};
use crate::history;
use crate::pictures;
use crate::project::Project;
use crate::secrets;

use joined::Sessions;
pub(crate) use remote::{remote_resume, remote_run};

/// Whom a command asks, and about which session.
struct Asking {
    project: Project,
    client: Client,
    session: String,
    json: bool,
}

/// What people read.
#[derive(Debug, PartialEq, Eq)]
enum Text {
    /// Sentences and tables: nothing in them acts on a terminal.
    Words(String),
    /// For other programs as it is; on a terminal nothing in it acts.
    Patch(String),
    /// A word beside an empty answer, on standard error.
    Note(String),
}

/// What a command has to say.
struct Answer {
    /// For programs: what the process answered.
    value: Value,
    /// For people.
    text: Text,
    /// Why it did not do what it was for, if it did not.
    failure: Option<String>,
}

impl Answer {
    /// All went well.
    fn good(value: Value, text: impl Into<String>) -> Self {
        Self { value, text: Text::Words(text.into()), failure: None }
    }

    /// The agents that have joined, alone.
    fn joined(joined: &Sessions) -> Self {
        Self::good(json!({"agents": [], "joined": joined.value()}), joined.told())
    }

    /// The same beside others.
    fn with_joined(mut self, joined: &Sessions) -> Self {
        self.value["joined"] = joined.value();
        if let Text::Words(text) = &mut self.text {
            text.push('\n');
            text.push_str(&joined.told());
        }
        self
    }

    /// It did not do what it was for.
    fn failed(value: Value, text: impl Into<String>, failure: String) -> Self {
        Self { failure: Some(failure), ..Self::good(value, text) }
    }
}

impl Asking {
    fn of(args: &ClientArgs, env: &Env) -> Result<Self, Failure> {
        let project = Project::named(&args.place, env)?;
        let client = find(&project)?.ok_or(Trouble::Nobody)?;
        Ok(Self { project, client, session: args.session.clone(), json: args.json })
    }

    /// Whether the process that was asked took its leave: one that was killed did not.
    fn has_left(&self) -> bool {
        matches!(find(&self.project), Ok(now) if now.as_ref() != Some(&self.client))
    }

    /// A path below the session.
    fn path(&self, parts: &[&str]) -> Path {
        Path::in_session(&self.session, parts)
    }
}

/// The process that said last that it holds a project; `None` if none does. It may have died.
///
/// # Errors
/// [`Failure::Failed`]: `interface.json` can't be believed.
pub(crate) fn find(project: &Project) -> Result<Option<Client>, Failure> {
    Ok(project.interface()?.map(Client::of))
}

/// The session that somebody means, of those that the process knows: `current` is the one that began last among
/// those that live, else the newest.
///
/// # Errors
/// [`Failure`]: the process doesn't answer, or there is no such session.
pub(crate) async fn meant(client: &Client, asked: &str) -> Result<Session, Failure> {
    let mut sessions = client.get::<Live>(&Path::of(&["sessions"])).await?.sessions;
    // Those that live come first in it; by name the newest comes first.
    let at = match asked {
        "current" if sessions.first().is_some_and(Session::lives_here) => 0,
        asked => {
            sessions.retain(|session| session.joined.is_none() || asked != "current");
            sessions.sort_by_key(|session| std::cmp::Reverse(session.began_at));
            let ids: Vec<&str> = sessions.iter().map(|session| session.session.as_str()).collect();
            history::choose(&ids, if asked == "current" { "last" } else { asked })?
        }
    };
    Ok(sessions.swap_remove(at))
}

/// Asks what a command is to ask.
///
/// # Errors
/// [`Failure::Failed`]: nobody answers, it is refused, or it doesn't do what it was for.
pub(crate) fn run(command: &ClientCommand, env: &Env) -> Result<End, Failure> {
    match command {
        ClientCommand::Ps(args) if args.waiting => waiting::waiting(&args.client, env),
        ClientCommand::Ps(args) => agents(&args.client, env),
        ClientCommand::Send(args) => send_to(args, env),
        ClientCommand::Withdraw { id, client } => match Sessions::of(env)?.withdraw(id, client.json)? {
            Some(end) => Ok(end),
            None => ask(client, env, async |asking| control::withdraw(asking, id).await),
        },
        ClientCommand::Stop { agent, subtree, client } => {
            ask(client, env, async |asking| control::stop(asking, agent, *subtree).await)
        }
        ClientCommand::Supersede { agent, text, client } => {
            ask(client, env, async |asking| control::supersede(asking, agent, text).await)
        }
        ClientCommand::Close { agent, client } => {
            ask(client, env, async |asking| control::close(asking, agent).await)
        }
        ClientCommand::Limit { agent, limits, client } => {
            ask(client, env, async |asking| control::limit(asking, agent.as_ref(), &limits.patch()).await)
        }
        ClientCommand::Approvals(args) => {
            let only = args.session.as_deref();
            ask(&args.of_current(), env, async |asking| approvals::list(asking, only).await)
        }
        ClientCommand::Approve { what, always } => {
            answer(what, &always.as_ref().map_or(Said::Once, |rule| Said::Always(rule.clone())), env)
        }
        ClientCommand::Deny { what, reason } => answer(what, &Said::No(reason.clone()), env),
        ClientCommand::Watch { agent, client } => lines(client, agent.clone(), env),
        ClientCommand::Attach(args) => crate::screen::attach(args, env),
        ClientCommand::Open(args) => open::open(args, env),
        ClientCommand::Diff(args) => branch::diff(args, env),
        ClientCommand::Merge(args) => branch::merge(args, env),
        ClientCommand::Push(args) => branch::push(args, env),
        ClientCommand::Stats { svg: None, client } => ask(client, env, stats::stats),
        ClientCommand::Stats { svg: Some(path), client } => {
            let asking = Asking::of(client, env)?;
            match block_on(stats::stats(&asking))? {
                Ok(answer) => pictures::written(path, &stats::picture(&answer.value)).map(|()| End::Finished),
                Err(trouble) => refused(&asking, trouble),
            }
        }
    }
}

/// The agents of a session, and below them those that have joined from other programs.
fn agents(client: &ClientArgs, env: &Env) -> Result<End, Failure> {
    let joined = Sessions::of(env)?;
    if joined.is_empty() {
        return ask(client, env, ps::ps);
    }
    match Asking::of(client, env) {
        Ok(asking) => match block_on(ps::ps(&asking))? {
            Ok(answer) => say(asking.json, answer.with_joined(&joined)),
            Err(Trouble::Nobody) => say(client.json, Answer::joined(&joined)),
            Err(trouble) => refused(&asking, trouble),
        },
        // No Midturn runs here, and none is needed for these.
        Err(_) => say(client.json, Answer::joined(&joined)),
    }
}

/// A message to an agent of a running Midturn, or to one that has joined from another program.
fn send_to(args: &SendArgs, env: &Env) -> Result<End, Failure> {
    let project = Project::named(&args.client.place, env)?;
    let is_ours = !args.to.contains('/') && find(&project)?.is_some();
    let receiver = if is_ours { None } else { Sessions::of(env)?.receiver(&args.to, project.root())? };
    match receiver {
        Some(receiver) => receiver.send(args),
        None => taking_up::send(args, env),
    }
}

/// What happens, in lines.
///
/// # Errors
/// [`Failure`]: nobody answers, or there is no such session.
pub(crate) fn lines(client: &ClientArgs, agent: Option<AgentName>, env: &Env) -> Result<End, Failure> {
    let colours = !env.is_set("NO_COLOR");
    if let Some(mut joined) = joined_session(client, env)? {
        let interrupted = crate::run::signals::listen()?;
        let screen = watch::Screen::new(client.json, colours, false);
        return block_on(watch::joined(&mut joined, agent.as_ref(), screen, interrupted))?;
    }
    let asking = Asking::of(client, env)?;
    let interrupted = crate::run::signals::listen()?;
    block_on(watch::watch(&asking, agent, colours, interrupted))?
}

/// The joined session that somebody means: by its id or the beginning of that, or because it is the newest in this
/// folder and no Midturn runs here.
fn joined_session(client: &ClientArgs, env: &Env) -> Result<Option<joined::Watched>, Failure> {
    let project = Project::named(&client.place, env)?;
    let is_ours = client.session == "current" && find(&project)?.is_some();
    if is_ours { Ok(None) } else { Ok(Sessions::of(env)?.watched(&client.session, project.root())) }
}

fn answer(what: &MeantArgs, said: &Said, env: &Env) -> Result<End, Failure> {
    ask(&what.client.of_current(), env, async |asking| approvals::answer(asking, what, said).await)
}

/// Asks one question and prints what is answered.
fn ask(
    args: &ClientArgs,
    env: &Env,
    question: impl AsyncFnOnce(&Asking) -> Result<Answer, Trouble>,
) -> Result<End, Failure> {
    let asking = Asking::of(args, env)?;
    match block_on(question(&asking))? {
        Ok(answer) => say(asking.json, answer),
        Err(trouble) => refused(&asking, trouble),
    }
}

/// What was asked is not done.
fn refused(asking: &Asking, trouble: Trouble) -> Result<End, Failure> {
    if let (true, Trouble::Refused(problem)) = (asking.json, &trouble) {
        commands::print(&format!("{}\n", json!(problem)))?;
    }
    Err(trouble.into())
}

fn say(json: bool, answer: Answer) -> Result<End, Failure> {
    let whole = format!("{}\n", answer.value);
    let end = match answer.text {
        Text::Patch(_) if json => commands::print_whole(&whole)?,
        _ if json => commands::print(&whole)?,
        Text::Patch(patch) if !std::io::stdout().is_terminal() => commands::print_whole(&patch)?,
        Text::Words(text) | Text::Patch(text) => commands::print(&clean(&text))?,
        Text::Note(note) => {
            let note = clean(&note);
            eprintln!("midturn: {}", secrets::clean(&note));
            End::Finished
        }
    };
    match answer.failure {
        None => Ok(end),
        Some(failure) => Err(Failure::failed(failure)),
    }
}

/// An agent that rests and has done nothing, but for what a test says of it.
#[cfg(test)]
fn agent(more: &Value) -> midturn_wire::agent::Agent {
    let mut agent = json!({"name": "a", "role": "subagent", "state": "idle", "run": 0, "turn": 0, "pending": 0,
        "activity": [], "tokens": 0, "plan": []});
    for (field, value) in more.as_object().into_iter().flatten() {
        agent[field] = value.clone();
    }
    serde_json::from_value(agent).unwrap()
}
