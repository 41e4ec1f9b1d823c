//! One run from its first message to its end: what is typed goes to the agents, and what
//! ends it is found out. The rules of who is interrupted when are the coordinator's.

pub(crate) mod attending;

use std::pin::pin;

use midturn_client::Said;
use midturn_core::engine::ports::Changes;
use midturn_core::engine::{self, Coordinator, Meant};
use midturn_core::rules::approval::{self, Rule};
use midturn_core::rules::event::Scope;
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Sender;
use midturn_core::rules::view::Ask;
use midturn_server::Live;
use midturn_tui::settings::Settings;
use midturn_tui::state::Standing;
use midturn_view::clean::one_line;
use midturn_view::words::Tone;
use midturn_wire::agent::{Agent, What};
use midturn_wire::spent::Spent;
use midturn_wire::work::Stopped;
use tokio::sync::mpsc;

use super::progress;
use super::{Attended, input};
use crate::failure::End;
use crate::host::{Answering, Begun};
use crate::project::Project;
use crate::screen;
use attending::{Over, Steered, obey};

impl Attended {
    /// Steers a session of this process by what is typed until it is over; then stops what is left,
    /// reports, and waits for the sessions that others have begun here meanwhile.
    pub(crate) async fn steer(&self, project: &Project, answering: &Answering, begun: Begun) -> End {
        let carrier = answering.carrier();
        let Begun { live, lead, attached, safety, .. } = begun;
        let quiet = async {
            live.coordinator.quiet().await;
            Over::Quiet
        };
        let over = match &self.screen {
            Some(settings) => self.until_left(project, answering, &live, settings, safety.notes()).await,
            None => self.until_over(&lead, &live.coordinator, quiet).await,
        };
        // From here on nobody is there who answers what agents ask.
        drop(attached);
        if over == Over::Interrupted {
            // Nothing is waited for before the agents are told, and no agent for another.
            let told = self.console.tell(Tone::Cut, "stopping all agents; Ctrl-C leaves at once");
            tokio::join!(carrier.shutdown(), told);
        } else {
            live.coordinator.shutdown().await;
        }
        self.console.heard(live.feed.last()).await;
        for status in live.coordinator.agents() {
            if let Some(end) = &status.last_end {
                self.report(&status.name, &end.changes).await;
            }
        }
        let agents: Vec<Agent> = live.coordinator.agents().into_iter().map(Agent::from).collect();
        self.tell_spent(&agents).await;
        if self.screen.is_some() {
            // Behind the reports: of twenty agents they are longer than a screen.
            let id = &live.record.id;
            self.console
                .tell(Tone::Plain, format!("session {id}: `midturn resume {id}` goes on with it"))
                .await;
        }
        let end = attending::end(&self.console, over, &lead).await;
        self.wait_for_guests(carrier).await;
        end
    }

    /// Shows the session on the screen until the person leaves: it stays after the answer, for the next word.
    async fn until_left(
        &self,
        project: &Project,
        answering: &Answering,
        live: &Live,
        settings: &Settings,
        notes: Vec<String>,
    ) -> Over {
        let shown = self.console.covered(async {
            let mut place = screen::live(project, &answering.client(), &live.into(), Standing::Ours)?;
            place.opening.notes = notes;
            screen::show(place, settings.clone(), &self.interrupted).await
        });
        let left = match shown.await {
            Ok(left) => left,
            Err(failure) => {
                // Whose terminal is gone can't see what goes on any more.
                self.console.tell(Tone::Bad, format!("error: {failure}")).await;
                return Over::Interrupted;
            }
        };
        let working: Vec<_> = left.session.view().agents().filter(|(_, agent)| agent.is_working()).collect();
        let names: Vec<String> = working.iter().map(|(name, _)| name.to_string()).collect();
        if names.is_empty() && !live.coordinator.is_busy() {
            return Over::Quiet;
        }
        self.console.tell(Tone::Cut, format!("stopped: {}", names.join(", "))).await;
        Over::Interrupted
    }

    /// Steers a session by what is typed until somebody ends it, or it is quiet.
    pub(crate) async fn until_over<T: From<Over>>(
        &self,
        lead: &AgentName,
        steered: &impl Steered,
        quiet: impl Future<Output = T>,
    ) -> T {
        let mut lines = if self.steers { input::lines() } else { mpsc::channel(1).1 };
        let (mut is_open, mut quiet) = (self.steers, pin!(quiet));
        loop {
            tokio::select! {
                biased;
                () = self.interrupted.cancelled() => return Over::Interrupted.into(),
                () = self.console.broken() => return Over::OutputGone.into(),
                // What was typed before the run's end is said before it: lines come before quiet.
                typed = lines.recv(), if is_open => match typed {
                    None => is_open = false,
                    Some(typed) => {
                        if obey(steered, lead, &self.console, typed).await {
                            return Over::Interrupted.into();
                        }
                    }
                },
                quiet = &mut quiet => return quiet,
            }
        }
    }

    /// What all of it took: tokens, and money where it is known.
    pub(crate) async fn tell_spent<'a>(&self, agents: impl IntoIterator<Item = &'a Agent>) {
        let spent = Spent::of_agents(agents);
        if spent.tokens > 0 {
            self.console.tell(Tone::Quiet, format!("used: {spent}")).await;
        }
    }

    /// What a person wants to know at the end: what became of whose changes.
    pub(crate) async fn report(&self, name: &AgentName, changes: &Changes) {
        for line in told(name, changes) {
            self.console.tell(Tone::Plain, line).await;
        }
    }
}

// Straight to the agents: whatever becomes of the socket, or asks there, a person's own terminal
// steers them.
impl Steered for Coordinator {
    async fn requests(&self) -> Result<Vec<Ask>, String> {
        let ask = |open: engine::Approval| {
            let engine::Approval { agent, tool, name, input, always, since } = open;
            Ask { agent, tool, name, input, always: always.text().into(), since }
        };
        Ok(self.approvals().into_iter().map(ask).collect())
    }

    async fn answer(&self, request: &Ask, said: &Said) -> Result<(), String> {
        let (agent, tool) = (request.agent.as_str(), request.tool.as_str());
        let answer = match said {
            Said::Once => approval::Answer::Once,
            Said::Always(rule) => approval::Answer::Session(rule_of(self, request, rule.as_deref())?),
            Said::No(reason) => approval::Answer::No(reason.clone()),
        };
        let meant = Meant::Since(request.since);
        Self::answer(self, agent, tool, meant, answer).map_err(|error| error.to_string())
    }

    async fn agents(&self) -> Result<Vec<Agent>, String> {
        Ok(Self::agents(self).into_iter().map(Agent::from).collect())
    }

    async fn send(&self, to: &AgentName, text: &str, urgent: bool) -> Result<(), String> {
        let sent = self.send_message(to.as_str(), text, urgent).await;
        sent.map(drop).map_err(|refusal| refusal.to_string())
    }

    async fn stop(&self, agent: &AgentName) -> Result<Stopped, String> {
        let stopped = Self::stop(self, agent.as_str(), Sender::User, Scope::Agent).await;
        stopped.map(Stopped::from).map_err(|error| error.to_string())
    }
}

/// What is allowed from now on: the rule that was given, or that of the request itself.
fn rule_of(coordinator: &Coordinator, request: &Ask, given: Option<&str>) -> Result<Rule, String> {
    if let Some(given) = given {
        return Rule::parse(given).map_err(|error| error.to_string());
    }
    let is_it = |open: &engine::Approval| {
        open.agent == request.agent && open.tool == request.tool && open.since == request.since
    };
    let open = coordinator.approvals().into_iter().find(is_it);
    open.map(|open| open.always).ok_or_else(|| "nobody asks about it any more".to_owned())
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
        (What::Retry, _) => Some(", waits to ask its model again".to_owned()),
        (What::Approval | What::Model | What::Tool | What::Unknown, _) => None,
    });
    let asks = asks.unwrap_or_default();
    format!("{name}: {}{limit}, run {run}, turn {turn}{mail}{model}{asks}", progress::standing(*state))
}

/// What an agent changed, and what a person has to know of it.
fn told(name: &AgentName, changes: &Changes) -> Vec<String> {
    let mut lines = Vec::new();
    let files: Vec<String> = changes.files.iter().map(|file| one_line(file)).collect();
    match (&changes.branch, files.is_empty()) {
        (Some(branch), false) => {
            lines.push(format!("{name} changed on branch {branch}: {}", files.join(", ")))
        }
        (None, false) => lines.push(format!("{name} changed: {}", files.join(", "))),
        (_, true) => {}
    }
    lines.extend(changes.notes.iter().map(|note| format!("{name}: {}", one_line(note))));
    lines
}
