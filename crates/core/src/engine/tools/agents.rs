//! `spawn_agent`, `list_agents`, `stop_agent` and `close_agent`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::oneshot;

use super::spec;
use crate::engine::coordinator;
use crate::engine::ports::{Output, ToolCall, ToolSpec};
use crate::engine::session::{AgentCell, Session};
use crate::engine::stop as stopping;
use crate::rules::event::Scope;
use crate::rules::id::AgentName;
use crate::rules::mail::{Rest, Sender, Standing};

pub(super) const LIST: &str =
    "Lists the agents of this session: what each is doing and how its last run ended.";
pub(super) const STOP: &str = "Stops an agent's current run and returns the report on it. Its children go on unless scope is `subtree`.";
pub(super) const CLOSE: &str = "Closes an agent and all below it for good. Messages to them are returned.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SpawnInput {
    /// A name for the agent: [a-z0-9][a-z0-9_-]{0,63}, used once in a session.
    name: String,
    /// What it is to do. It sees nothing of your conversation.
    prompt: String,
    /// The definition to make it of.
    #[serde(default)]
    agent: Option<String>,
}

pub(super) fn spawn_spec(session: &Session) -> ToolSpec {
    let mut text =
        "Starts an agent that works beside you and returns at once. Its end comes to you as a message."
            .to_owned();
    for (name, description) in session.templates.names() {
        text.push_str(&format!("\n- agent `{name}`: {description}"));
    }
    spec::<SpawnInput>("spawn_agent", &text)
}

pub(super) async fn spawn(
    session: &Arc<Session>,
    cell: &Arc<AgentCell>,
    input: SpawnInput,
) -> Result<Output, Output> {
    let wrong = |text: String| Output::error(format!("Not spawned: {text}"));
    let name = AgentName::new(&input.name).map_err(|error| wrong(error.to_string()))?;
    if cell.is_closed() {
        return Err(wrong("you are closed".to_owned()));
    }
    if input.prompt.trim().is_empty() {
        return Err(wrong("the prompt is empty".to_owned()));
    }
    let resolved = session.templates.resolve(&name, input.agent.as_deref(), &cell.name);
    let mut spec = resolved.map_err(wrong)?;
    spec.name = name.clone();
    spec.parent = Some(cell.name.clone());
    spec.prompt = Some(input.prompt);
    coordinator::spawn(session, spec).await.map_err(|error| wrong(error.to_string()))?;
    Ok(Output::ok(format!("{name} is at work.")))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListInput {}

pub(super) fn list(session: &Session, cell: &AgentCell, _: ListInput) -> Result<Output, Output> {
    let lines: Vec<String> = session.in_order().iter().map(|other| line(other, cell)).collect();
    Ok(Output::ok(lines.join("\n")))
}

fn line(cell: &AgentCell, asker: &AgentCell) -> String {
    let doing = match cell.mailbox.standing() {
        Standing::Running => "running",
        Standing::Winding { .. } => "ending",
        Standing::Resting(Rest::Idle) => "idle",
        Standing::Resting(Rest::Stopped) => "stopped",
        Standing::Resting(Rest::Closed) => "closed",
    };
    let you = if cell.name == asker.name { " (you)" } else { "" };
    let parent = cell.parent.as_ref().map(|parent| format!(", child of {parent}")).unwrap_or_default();
    let last = cell.state.lock().last_end.clone();
    let last =
        last.map(|end| format!(", run {} {:?}", end.run, end.outcome).to_lowercase()).unwrap_or_default();
    format!("{}{you}: {doing}{parent}{last}, {} pending", cell.name, cell.mailbox.ids().len())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopInput {
    /// The agent.
    name: String,
    /// `agent`, or `subtree` for all below it too.
    #[serde(default)]
    scope: Scope,
}

pub(super) async fn stop(
    session: &Arc<Session>,
    cell: &Arc<AgentCell>,
    call: &ToolCall,
    input: StopInput,
) -> Result<Output, Output> {
    let report = ask_for_report(session, cell, &input.name);
    let by = Sender::Agent(cell.name.clone());
    let stopped = stopping::stop(session, &input.name, by, input.scope).await;
    let reply = stopped.map_err(|error| Output::error(error.to_string()))?;
    if reply.stopped.is_empty() {
        return Ok(Output::ok(format!("{} was not running: nothing was stopped.", input.name)));
    }
    let names: Vec<&str> = reply.stopped.iter().map(AgentName::as_str).collect();
    let text = format!("Stopped: {}.", names.join(", "));
    match report {
        Some(report) if names.contains(&input.name.as_str()) => {
            let report = told(report, call).await?;
            Ok(Output::ok(format!("{text}\n[{} was stopped: {report}]", input.name)))
        }
        Some(_) | None => Ok(Output::ok(text)),
    }
}

/// Has the report on a stopped child come here instead of by mail.
fn ask_for_report(session: &Session, cell: &AgentCell, name: &str) -> Option<oneshot::Receiver<String>> {
    let child = session.agent(name).filter(|child| session.is_ancestor(&cell.name, child))?;
    let running = child.mailbox.standing() == Standing::Running;
    let own = child.parent.as_ref() == Some(&cell.name);
    (running && own).then(|| {
        let (sender, receiver) = oneshot::channel();
        child.state.lock().report_to = Some(sender);
        receiver
    })
}

async fn told(report: oneshot::Receiver<String>, call: &ToolCall) -> Result<String, Output> {
    tokio::select! {
        biased;
        report = report => Ok(report.unwrap_or_default()),
        () = call.cancel.cancelled() => Err(Output::error("")),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CloseInput {
    /// The agent.
    name: String,
}

pub(super) async fn close(
    session: &Arc<Session>,
    cell: &Arc<AgentCell>,
    call: &ToolCall,
    input: CloseInput,
) -> Result<Output, Output> {
    let report = ask_for_report(session, cell, &input.name);
    let by = Sender::Agent(cell.name.clone());
    let closed = stopping::close(session, &input.name, by).await;
    let closed = closed.map_err(|error| Output::error(error.to_string()))?;
    if closed.is_empty() {
        return Ok(Output::ok(format!("{} was closed already.", input.name)));
    }
    let names: Vec<&str> = closed.iter().map(AgentName::as_str).collect();
    let text = format!("Closed: {}.", names.join(", "));
    match report {
        Some(report) => {
            let report = told(report, call).await?;
            Ok(Output::ok(format!("{text}\n[{} was stopped: {report}]", input.name)))
        }
        None => Ok(Output::ok(text)),
    }
}
