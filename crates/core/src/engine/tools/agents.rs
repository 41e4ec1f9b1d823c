//! `spawn_agent`, `list_agents`, `stop_agent` and `close_agent`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::spec;
use crate::engine::ports::{Output, ToolCall, ToolSpec};
use crate::engine::report::Report;
use crate::engine::session::{AgentCell, Claimed, Session};
use crate::engine::spawn as spawning;
use crate::engine::stop as stopping;
use crate::rules::characters::is_blank;
use crate::rules::event::Scope;
use crate::rules::id::AgentName;
use crate::rules::mail::{Rest, Sender, Standing};
use crate::rules::wording;

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
    run: &CancellationToken,
) -> Result<Output, Output> {
    let wrong = |text: String| Output::error(format!("Not spawned: {text}"));
    let name = AgentName::new(&input.name).map_err(|error| wrong(error.to_string()))?;
    if cell.is_closed() {
        return Err(wrong("you are closed".to_owned()));
    }
    if is_blank(&input.prompt) {
        return Err(wrong("the prompt is empty".to_owned()));
    }
    let resolved = session.templates.resolve(&name, input.agent.as_deref(), &cell.name);
    let mut spec = resolved.map_err(wrong)?;
    spec.name = name.clone();
    spec.parent = Some(cell.name.clone());
    spec.prompt = Some(input.prompt);
    spawning::spawn(session, spec, Some(run.clone())).await.map_err(|error| wrong(error.to_string()))?;
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
    let halting = Halting::prepare(session, cell, &input.name);
    let by = Sender::Agent(cell.name.clone());
    let stopped = stopping::stop(session, &input.name, by, input.scope, None).await;
    let reply = stopped.map_err(|error| Output::error(error.to_string()))?;
    let ending = still_ending(session, &input.name, input.scope);
    if !reply.stopped.is_empty() {
        return halting.report("Stopped", &reply.stopped, &ending, cell, call).await;
    }
    if ending.is_empty() {
        return Ok(Output::ok(format!("{} was not running: nothing was stopped.", input.name)));
    }
    halting.report("Stopped already", &ending, &ending, cell, call).await
}

/// Whoever was meant and is in a run that ends, by this call or by what somebody did before.
fn still_ending(session: &Session, name: &str, scope: Scope) -> Vec<AgentName> {
    let Some(root) = session.agent(name) else { return Vec::new() };
    let meant = match scope {
        Scope::Agent => vec![root],
        Scope::Subtree => session.subtree(&root.name),
    };
    meant.iter().filter(|cell| cell.mailbox.is_running()).map(|cell| cell.name.clone()).collect()
}

/// Waits for the ends of runs that a call has stopped, and for the report on a child.
struct Halting<'a> {
    session: &'a Arc<Session>,
    name: &'a str,
    report: Option<oneshot::Receiver<Report>>,
}

impl<'a> Halting<'a> {
    /// Has the report on a running child come here instead of by mail.
    fn prepare(session: &'a Arc<Session>, cell: &AgentCell, name: &'a str) -> Self {
        let own = session.agent(name).filter(|child| child.parent.as_ref() == Some(&cell.name));
        let running = own.filter(|child| child.mailbox.takes_a_stop());
        let report = running.map(|child| {
            let (sender, receiver) = oneshot::channel();
            child.state.lock().report_to = Some(sender);
            receiver
        });
        Self { session, name, report }
    }

    /// `done` what, to whom: told when every run that was `ending` has ended.
    async fn report(
        self,
        done: &str,
        names: &[AgentName],
        ending: &[AgentName],
        cell: &AgentCell,
        call: &ToolCall,
    ) -> Result<Output, Output> {
        let mut coming = self.report;
        let ended = async {
            let report = match &mut coming {
                Some(report) => report.await.ok(),
                None => None,
            };
            // From here on it is this call's to tell: if its result doesn't come, the driver does.
            if let (Some(report), Ok(about)) = (&report, AgentName::new(self.name)) {
                let claim = Claimed::Report(about, report.clone());
                cell.state.lock().claims.insert(call.call.id.clone(), claim);
            }
            for name in ending {
                self.session.at_rest(name).await;
            }
            report
        };
        let report = tokio::select! {
            biased;
            report = ended => report,
            () = call.cancel.cancelled() => {
                if let (Some(coming), Ok(about)) = (coming, AgentName::new(self.name)) {
                    let claims = &mut cell.state.lock().claims;
                    claims.entry(call.call.id.clone()).or_insert(Claimed::Awaited(about, coming));
                }
                return Err(Output::error(""));
            }
        };
        let names: Vec<&str> = names.iter().map(AgentName::as_str).collect();
        let mut text = format!("{done}: {}.", names.join(", "));
        if let Some(report) = report {
            text.push_str(&format!("\n{}", wording::ended(self.name, report.end, &report.text)));
        }
        Ok(Output::ok(text))
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
    let halting = Halting::prepare(session, cell, &input.name);
    let by = Sender::Agent(cell.name.clone());
    let closed = stopping::close(session, &input.name, by).await;
    let closed = closed.map_err(|error| Output::error(error.to_string()))?;
    let ending = still_ending(session, &input.name, Scope::Subtree);
    if closed.is_empty() {
        let name = AgentName::new(&input.name).map_err(|error| Output::error(error.to_string()))?;
        return halting.report("Closed already", &[name], &ending, cell, call).await;
    }
    halting.report("Closed", &closed, &ending, cell, call).await
}
