//! The commands that ask a running Midturn: `ps`, `send`, `withdraw`, `stop`, `limit`,
//! `approvals`, `approve`, `deny`, `watch`, `diff`, `merge`, `stats`; and a run whose session lives in another process.
//!
//! They ask through the interface of docs/protocol.md, as every other program would, and put
//! the answer in words. They open no store and decide nothing about messages.

mod answer;
mod approvals;
mod branch;
mod control;
mod ps;
mod receipt;
mod remote;
mod send;
mod stats;
pub(crate) mod table;
mod view;
mod watch;

use std::io::IsTerminal;

use midturn_client::{Client, Path, Trouble};
use serde_json::{Value, json};

use crate::args::{
    AgentArgs, ApproveArgs, ClientArgs, DenyArgs, LimitArgs, MeantArgs, SendArgs, StopArgs, WatchArgs,
    WideClientArgs, WithdrawArgs,
};
use crate::commands::{self, block_on};
use crate::env::{Env, now};
use crate::failure::{End, Failure};
use crate::project::Project;
use crate::run::progress;
use crate::run::steering::Said;
use crate::secrets;
use approvals::Meant;

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

/// `midturn ps`.
///
/// # Errors
/// [`Failure::Failed`]: nobody answers, or it is refused.
pub(crate) fn ps(args: &ClientArgs, env: &Env) -> Result<End, Failure> {
    ask(args, env, async |asking| ps::ps(asking).await)
}

/// `midturn send`.
///
/// # Errors
/// [`Failure::Failed`]: nobody answers, it is refused or returned, or does not get there in time.
pub(crate) fn send(args: &SendArgs, env: &Env) -> Result<End, Failure> {
    ask(&args.client, env, async |asking| send::send(asking, args).await)
}

/// `midturn withdraw`.
///
/// # Errors
/// [`Failure::Failed`]: nobody answers, or it is too late.
pub(crate) fn withdraw(args: &WithdrawArgs, env: &Env) -> Result<End, Failure> {
    ask(&args.client, env, async |asking| control::withdraw(asking, &args.id).await)
}

/// `midturn stop`.
///
/// # Errors
/// [`Failure::Failed`]: nobody answers, or there is no such agent.
pub(crate) fn stop(args: &StopArgs, env: &Env) -> Result<End, Failure> {
    ask(&args.client, env, async |asking| control::stop(asking, &args.agent, args.subtree).await)
}

/// `midturn limit`.
///
/// # Errors
/// [`Failure::Failed`]: nobody answers, there is no such agent, or more is spent already.
pub(crate) fn limit(args: &LimitArgs, env: &Env) -> Result<End, Failure> {
    let limits = args.limits.patch();
    ask(&args.client, env, async |asking| control::limit(asking, args.agent.as_ref(), &limits).await)
}

/// `midturn approvals`.
///
/// # Errors
/// [`Failure::Failed`]: nobody answers.
pub(crate) fn approvals(args: &WideClientArgs, env: &Env) -> Result<End, Failure> {
    let only = args.session.as_deref();
    ask(&args.of_current(), env, async |asking| approvals::list(asking, only).await)
}

/// `midturn approve`.
///
/// # Errors
/// [`Failure::Failed`]: nobody answers, the agent doesn't ask, or the rule is refused.
pub(crate) fn approve(args: &ApproveArgs, env: &Env) -> Result<End, Failure> {
    let said = match &args.always {
        None => Said::Once,
        Some(rule) => Said::Always(rule.clone()),
    };
    answer(&args.what, &said, env)
}

/// `midturn deny`.
///
/// # Errors
/// [`Failure::Failed`]: nobody answers, or the agent doesn't ask.
pub(crate) fn deny(args: &DenyArgs, env: &Env) -> Result<End, Failure> {
    answer(&args.what, &Said::No(args.reason.clone()), env)
}

fn answer(what: &MeantArgs, said: &Said, env: &Env) -> Result<End, Failure> {
    let only = what.client.session.as_deref();
    let meant = Meant { agent: &what.agent, call: what.call.as_deref(), only };
    ask(&what.client.of_current(), env, async |asking| approvals::answer(asking, &meant, said).await)
}

/// `midturn diff`.
///
/// # Errors
/// [`Failure::Failed`]: nobody answers, or the agent has no branch.
pub(crate) fn diff(args: &AgentArgs, env: &Env) -> Result<End, Failure> {
    ask(&args.client, env, async |asking| branch::diff(asking, &args.agent).await)
}

/// `midturn merge`.
///
/// # Errors
/// [`Failure::Failed`]: nobody answers, the agent has no branch, or it can't be merged.
pub(crate) fn merge(args: &AgentArgs, env: &Env) -> Result<End, Failure> {
    ask(&args.client, env, async |asking| branch::merge(asking, &args.agent).await)
}

/// `midturn stats`.
///
/// # Errors
/// [`Failure::Failed`]: nobody answers.
pub(crate) fn stats(args: &ClientArgs, env: &Env) -> Result<End, Failure> {
    ask(args, env, async |asking| stats::stats(asking).await)
}

/// `midturn watch`.
///
/// # Errors
/// [`Failure::Failed`]: nobody answers, or the process ends while it is watched.
pub(crate) fn watch(args: &WatchArgs, env: &Env) -> Result<End, Failure> {
    let asking = Asking::of(&args.client, env)?;
    let interrupted = crate::run::signals::listen()?;
    let colours = !env.is_set("NO_COLOR");
    block_on(watch::watch(&asking, args.agent.clone(), colours, interrupted))?
}

/// Asks one question and prints what is answered.
fn ask(
    args: &ClientArgs,
    env: &Env,
    question: impl AsyncFnOnce(&Asking) -> Result<Answer, Trouble>,
) -> Result<End, Failure> {
    let asking = Asking::of(args, env)?;
    match block_on(question(&asking))? {
        Ok(answer) => say(&asking, answer),
        Err(trouble) => {
            if let (true, Trouble::Refused(problem)) = (asking.json, &trouble) {
                commands::print(&format!("{}\n", json!(problem)))?;
            }
            Err(trouble.into())
        }
    }
}

fn say(asking: &Asking, answer: Answer) -> Result<End, Failure> {
    let whole = format!("{}\n", answer.value);
    let end = match answer.text {
        Text::Patch(_) if asking.json => commands::print_whole(&whole)?,
        _ if asking.json => commands::print(&whole)?,
        Text::Patch(patch) if !std::io::stdout().is_terminal() => commands::print_whole(&patch)?,
        Text::Words(text) | Text::Patch(text) => {
            commands::print(&progress::harmless(&text).collect::<String>())?
        }
        Text::Note(note) => {
            let note: String = progress::harmless(&note).collect();
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
