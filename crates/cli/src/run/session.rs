//! One run from its first message to its end: what is typed goes to the agents, and what
//! ends it is found out. The rules of who is interrupted when are the coordinator's.

pub(crate) mod attending;

use midturn_core::engine::Coordinator;
use midturn_core::engine::ports::Changes;
use midturn_core::rules::id::AgentName;
use midturn_wire::agent::{Agent, What};

use super::progress::{self, Tone};
use super::{Attended, input};
use crate::client::Steered;
use crate::failure::End;
use crate::host::{Answering, Begun};
use attending::{Over, obey};

impl Attended {
    /// Steers a session of this process by what is typed until it is over; then stops what is left,
    /// reports, and waits for the sessions that others have begun here meanwhile.
    pub(crate) async fn steer(&self, answering: &Answering, begun: Begun) -> End {
        let Begun { live, lead, attached, .. } = begun;
        let steered = Steered::new(&answering.client(), live.record.id.as_str());
        let over = self.until_over(&steered, &lead, &live.coordinator).await;
        // From here on nobody is there who answers what agents ask.
        drop(attached);
        if over == Over::Interrupted {
            // Nothing is waited for before the agents are told, and no agent for another.
            let told = self.console.tell(Tone::Cut, "stopping all agents; Ctrl-C leaves at once");
            tokio::join!(answering.carrier().shutdown(), told);
        } else {
            live.coordinator.shutdown().await;
        }
        self.console.heard(live.feed.last()).await;
        for status in live.coordinator.agents() {
            self.report(&status.name, &status.changes).await;
        }
        let end = attending::end(&self.console, over, &lead).await;
        self.wait_for_guests(answering.carrier()).await;
        end
    }

    async fn until_over(&self, steered: &Steered, lead: &AgentName, coordinator: &Coordinator) -> Over {
        let (mut lines, mut is_open) = (input::lines(), true);
        loop {
            tokio::select! {
                biased;
                () = self.interrupted.cancelled() => return Over::Interrupted,
                () = self.console.broken() => return Over::OutputGone,
                // What was typed before the run's end is said before it: lines come before quiet.
                typed = lines.recv(), if is_open => match typed {
                    None => is_open = false,
                    Some(typed) => {
                        if obey(steered, lead, &self.console, typed).await {
                            return Over::Interrupted;
                        }
                    }
                },
                () = coordinator.quiet() => return Over::Quiet,
            }
        }
    }

    /// What a person wants to know at the end: what became of whose changes.
    pub(crate) async fn report(&self, name: &AgentName, changes: &Changes) {
        for line in told(name, changes) {
            self.console.tell(Tone::Plain, line).await;
        }
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
fn told(name: &AgentName, changes: &Changes) -> Vec<String> {
    let mut lines = Vec::new();
    let files: Vec<String> = changes.files.iter().map(|file| progress::one_line(file)).collect();
    match (&changes.branch, files.is_empty()) {
        (Some(branch), false) => {
            lines.push(format!("{name} changed on branch {branch}: {}", files.join(", ")))
        }
        (None, false) => lines.push(format!("{name} changed: {}", files.join(", "))),
        (_, true) => {}
    }
    lines.extend(changes.notes.iter().map(|note| format!("{name}: {}", progress::one_line(note))));
    lines
}
