//! One run from its first message to its end: what is typed goes to the agents, and what
//! ends it is found out. The rules of who is interrupted when are the coordinator's.

pub(crate) mod attending;

use std::sync::Arc;

use midturn_core::engine::ports::Changes;
use midturn_core::engine::{self, Attached, Coordinator, Meant};
use midturn_core::rules::approval::{self, Rule};
use midturn_core::rules::event::Scope;
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Sender;
use midturn_core::rules::view::Ask;
use midturn_server::Feed;
use midturn_wire::agent::{Agent, What};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::console::Console;
use super::input::Typed;
use super::progress::{self, Tone};
use super::steering::Said;
use crate::failure::End;
use crate::host::Carrier;
use attending::{Asked, Halted, Over, Steered, obey};

/// A run under way.
pub(crate) struct Session {
    /// Its agents.
    pub(crate) coordinator: Coordinator,
    /// Its lead.
    pub(crate) lead: AgentName,
    /// What the person reads.
    pub(crate) console: Arc<Console>,
    /// What is told of it.
    pub(crate) feed: Arc<Feed>,
    /// That the person is there who answers what agents ask, if so.
    pub(crate) attached: Option<Arc<Attached>>,
}

impl Session {
    /// Steers the run by what is typed until it is over; then stops what is left and reports.
    pub(crate) async fn steer(
        mut self,
        carrier: &Carrier,
        mut lines: mpsc::Receiver<Typed>,
        interrupted: CancellationToken,
    ) -> End {
        let over = self.until_over(&mut lines, &interrupted).await;
        self.attached = None;
        if over == Over::Interrupted {
            // Nothing is waited for before the agents are told, and no agent for another.
            let told = self.console.tell(Tone::Cut, "stopping all agents; Ctrl-C leaves at once");
            tokio::join!(carrier.shutdown(), told);
        } else {
            self.coordinator.shutdown().await;
        }
        self.console.heard(self.feed.last()).await;
        self.report().await;
        attending::end(&self.console, over, &self.lead).await
    }

    async fn until_over(&self, lines: &mut mpsc::Receiver<Typed>, interrupted: &CancellationToken) -> Over {
        let mut is_open = true;
        loop {
            tokio::select! {
                biased;
                () = interrupted.cancelled() => return Over::Interrupted,
                () = self.console.broken() => return Over::OutputGone,
                // What was typed before the run's end is said before it: lines come before quiet.
                typed = lines.recv(), if is_open => match typed {
                    None => is_open = false,
                    Some(typed) => {
                        if obey(self, &self.console, typed).await {
                            return Over::Interrupted;
                        }
                    }
                },
                () = self.coordinator.quiet() => return Over::Quiet,
            }
        }
    }

    /// What a person wants to know at the end: what became of whose changes.
    async fn report(&self) {
        for status in self.coordinator.agents() {
            let Some(end) = &status.last_end else { continue };
            for line in changes(&status.name, &end.changes) {
                self.console.tell(Tone::Plain, line).await;
            }
        }
    }
}

impl Asked for Session {
    async fn requests(&self) -> Result<Vec<Ask>, String> {
        let ask = |open: engine::Approval| {
            let engine::Approval { agent, tool, name, input, always, since } = open;
            Ask { agent, tool, name, input, always: always.text().into(), since }
        };
        Ok(self.coordinator.approvals().into_iter().map(ask).collect())
    }

    async fn answer(&self, request: &Ask, said: &Said) -> Result<(), String> {
        let (agent, tool) = (request.agent.as_str(), request.tool.as_str());
        let answer = match said {
            Said::Once => approval::Answer::Once,
            Said::Always(rule) => approval::Answer::Session(self.rule(request, rule.as_deref())?),
            Said::No(reason) => approval::Answer::No(reason.clone()),
        };
        let meant = Meant::Since(request.since);
        self.coordinator.answer(agent, tool, meant, answer).map_err(|error| error.to_string())
    }
}

impl Steered for Session {
    fn lead(&self) -> &AgentName {
        &self.lead
    }

    async fn agents(&self) -> Result<Vec<Agent>, String> {
        Ok(self.coordinator.agents().into_iter().map(Agent::from).collect())
    }

    async fn send(&self, to: &AgentName, text: &str, urgent: bool) -> Result<(), String> {
        let sent = self.coordinator.send_message(to.as_str(), text, urgent).await;
        sent.map(drop).map_err(|refusal| refusal.to_string())
    }

    async fn stop(&self, name: &AgentName) -> Result<Halted, String> {
        let stopped = self.coordinator.stop(name.as_str(), Sender::User, Scope::Agent).await;
        let reply = stopped.map_err(|error| error.to_string())?;
        let still_queued = reply.still_queued.iter().map(ToString::to_string).collect();
        Ok(Halted { any: !reply.stopped.is_empty(), still_queued })
    }
}

impl Session {
    /// What is allowed from now on: the rule that was given, or that of the request itself.
    fn rule(&self, request: &Ask, given: Option<&str>) -> Result<Rule, String> {
        if let Some(given) = given {
            return Rule::parse(given).map_err(|error| error.to_string());
        }
        let is_it = |open: &engine::Approval| {
            open.agent == request.agent && open.tool == request.tool && open.since == request.since
        };
        let open = self.coordinator.approvals().into_iter().find(is_it);
        open.map(|open| open.always).ok_or_else(|| "nobody asks about it any more".to_owned())
    }
}

/// A line of `/ps`.
pub(crate) fn listed(agent: &Agent) -> String {
    let Agent { name, state, run, turn, pending, .. } = agent;
    let limit = agent.limit.as_ref().map(|limit| format!(" at its limit {limit}")).unwrap_or_default();
    let mail = if *pending == 0 { String::new() } else { format!(", {pending} unread") };
    let model = agent.model.as_ref().map(|model| format!(", {model}")).unwrap_or_default();
    let asks = agent.activity.iter().find_map(|activity| match (activity.what, &activity.name) {
        (What::Approval, Some(name)) => Some(format!(", asks for a word on {name}")),
        (What::Budget, _) => Some(", waits for what others hold of the session's budget".to_owned()),
        (What::Approval | What::Model | What::Tool | What::Unknown, _) => None,
    });
    let asks = asks.unwrap_or_default();
    format!("{name}: {}{limit}, run {run}, turn {turn}{mail}{model}{asks}", progress::standing(*state))
}

/// What an agent changed, and what a person has to know of it.
pub(crate) fn changes(name: &AgentName, changes: &Changes) -> Vec<String> {
    let shown = |text: &str| -> String { progress::harmless(text).filter(|c| *c != '\n').collect() };
    let mut lines = Vec::new();
    let files: Vec<String> = changes.files.iter().map(|file| shown(file)).collect();
    match (&changes.branch, files.is_empty()) {
        (Some(branch), false) => {
            lines.push(format!("{name} changed on branch {branch}: {}", files.join(", ")))
        }
        (None, false) => lines.push(format!("{name} changed: {}", files.join(", "))),
        (_, true) => {}
    }
    lines.extend(changes.notes.iter().map(|note| format!("{name}: {}", shown(note))));
    lines
}
