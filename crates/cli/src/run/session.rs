//! One run from its first message to its end: what is typed goes to the agents, and what
//! ends it is found out. The rules of who is interrupted when are the coordinator's.

use std::sync::Arc;

use midturn_core::engine::{AgentStatus, Coordinator};
use midturn_core::rules::event::{Outcome, Scope};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::{Rest, Sender, Standing};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::console::Console;
use super::input::Typed;
use super::progress::{self, Tone};
use super::steering::{self, Line};
use super::watcher::LeadWatcher;
use crate::failure::End;

/// A run under way.
pub struct Session {
    /// Its agents.
    pub(crate) coordinator: Coordinator,
    /// Its lead.
    pub(crate) lead: AgentName,
    /// The lead's last word.
    pub(crate) watcher: Arc<LeadWatcher>,
    /// What the person reads.
    pub(crate) console: Arc<Console>,
}

/// Why a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    /// Nobody works and nobody will.
    Quiet,
    /// A signal, or `/quit`.
    Interrupted,
    /// Nobody reads the output any more.
    OutputGone,
}

impl Session {
    /// Steers the run by what is typed until it is over; then stops what is left and reports.
    pub async fn steer(&self, mut lines: mpsc::Receiver<Typed>, interrupted: CancellationToken) -> End {
        let over = self.until_over(&mut lines, &interrupted).await;
        if over == Over::Interrupted {
            self.console.tell(Tone::Cut, "stopping all agents; Ctrl-C leaves at once");
        }
        self.coordinator.shutdown().await;
        self.report();
        self.end(over)
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
                        if self.obey(typed).await {
                            return Over::Interrupted;
                        }
                    }
                },
                () = self.coordinator.quiet() => return Over::Quiet,
            }
        }
    }

    /// Does what a line says. `true`: the run is to end.
    async fn obey(&self, typed: Typed) -> bool {
        let is_agent = |name: &str| self.coordinator.agent(name).is_some();
        match typed.and_then(|line| steering::parse(&line, is_agent)) {
            Ok(Line::Blank) => {}
            Ok(Line::Quit) => return true,
            Ok(Line::Ps) => self.list(),
            Ok(Line::Stop(name)) => self.stop(&name).await,
            Ok(Line::ToAgent { to, text, urgent }) => self.send(&to, &text, urgent).await,
            Ok(Line::ToLead { text, unknown }) => {
                if let Some(unknown) = unknown {
                    self.console.tell(
                        Tone::Quiet,
                        format!("there is no agent `{unknown}`; the line went to `{}`", self.lead),
                    );
                }
                self.send(&self.lead, &text, false).await;
            }
            Err(error) => self.console.tell(Tone::Bad, format!("error: {error}")),
        }
        false
    }

    async fn send(&self, to: &AgentName, text: &str, urgent: bool) {
        if let Err(refusal) = self.coordinator.send_message(to.as_str(), text, urgent).await {
            self.console.tell(Tone::Bad, format!("error: not sent to {to}: {refusal}"));
        }
    }

    async fn stop(&self, name: &AgentName) {
        match self.coordinator.stop(name.as_str(), Sender::User, Scope::Agent).await {
            Err(error) => self.console.tell(Tone::Bad, format!("error: {error}")),
            Ok(reply) if reply.stopped.is_empty() => {
                self.console.tell(Tone::Plain, format!("{name} is idle; there was nothing to stop"));
            }
            Ok(reply) if !reply.still_queued.is_empty() => {
                let ids: Vec<&str> = reply.still_queued.iter().map(|id| id.as_str()).collect();
                self.console.tell(Tone::Plain, format!("still queued for {name}: {}", ids.join(", ")));
            }
            Ok(_) => {}
        }
    }

    fn list(&self) {
        for status in self.coordinator.agents() {
            self.console.tell(Tone::Plain, listed(&status));
        }
    }

    /// What a person wants to know at the end: what became of whose changes.
    fn report(&self) {
        for status in self.coordinator.agents() {
            for line in changes(&status) {
                self.console.tell(Tone::Plain, line);
            }
        }
    }

    fn end(&self, over: Over) -> End {
        let last = self.watcher.last_word();
        if last.outcome == Some(Outcome::Finished) && over == Over::Quiet {
            self.console.answer(&last.text);
        }
        match (over, last.outcome) {
            (Over::Interrupted, _) | (Over::Quiet, Some(Outcome::Stopped)) => End::Interrupted,
            (Over::OutputGone, _) | (Over::Quiet, None | Some(Outcome::Failed)) => End::Failed,
            (Over::Quiet, Some(Outcome::Limit)) => End::Limit,
            (Over::Quiet, Some(Outcome::Finished)) => End::Finished,
        }
    }
}

/// A line of `/ps`.
pub(crate) fn listed(status: &AgentStatus) -> String {
    let standing = match status.standing {
        Standing::Running => "running",
        Standing::Winding { .. } => "ending",
        Standing::Resting(Rest::Idle) => "idle",
        Standing::Resting(Rest::Stopped) => "stopped",
        Standing::Resting(Rest::Closed) => "closed",
    };
    let AgentStatus { name, run, turn, pending, .. } = status;
    let mail = if *pending == 0 { String::new() } else { format!(", {pending} unread") };
    let model = status.model.as_deref().map(|model| format!(", {model}")).unwrap_or_default();
    format!("{name}: {standing}, run {run}, turn {turn}{mail}{model}")
}

/// What an agent changed, and what a person has to know of it.
pub(crate) fn changes(status: &AgentStatus) -> Vec<String> {
    let name = &status.name;
    let shown = |text: &str| -> String { progress::harmless(text).filter(|c| *c != '\n').collect() };
    let mut lines = Vec::new();
    let files: Vec<String> = status.changes.files.iter().map(|file| shown(file)).collect();
    match (&status.changes.branch, files.is_empty()) {
        (Some(branch), false) => {
            lines.push(format!("{name} changed on branch {branch}: {}", files.join(", ")))
        }
        (None, false) => lines.push(format!("{name} changed: {}", files.join(", "))),
        (_, true) => {}
    }
    lines.extend(status.changes.notes.iter().map(|note| format!("{name}: {}", shown(note))));
    lines
}
