//! One run from its first message to its end: what is typed goes to the agents, and what
//! ends it is found out. The rules of who is interrupted when are the coordinator's.

pub(crate) mod attending;

use std::path::Path;
use std::pin::pin;

use midturn_client::Said;
use midturn_core::engine::ports::Changes;
use midturn_core::engine::ports::archive::SessionRecord;
use midturn_core::engine::{self, Coordinator, Meant, Message};
use midturn_core::rules::approval::{self, Rule};
use midturn_core::rules::event::Scope;
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_core::rules::mail::{Sender, Urgency};
use midturn_core::rules::view::{Ask, View};
use midturn_server::Live;
use midturn_tools::workplace::news;
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
        // Of a session that goes on its lead has ended before, perhaps, and does nothing now.
        let before = live.coordinator.agent(lead.as_str()).and_then(|lead| Some(lead.last_end?.outcome));
        let quiet = async || {
            live.coordinator.quiet().await;
            // What was told until then is heard before its answer.
            self.console.heard(live.feed.last()).await;
            Some(Over::Quiet)
        };
        let over = match &self.screen {
            Some(settings) => self.until_left(project, answering, &live, settings, safety.notes()).await,
            None => self.until_over(&lead, &live.coordinator, quiet).await.unwrap_or(Over::Quiet),
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
        let newest = carrier.sessions().await.ok().and_then(|all| Some(all.first()?.record.id.clone()));
        self.tell_news(project, &live.record, newest.as_ref()).await;
        let agents: Vec<Agent> = live.coordinator.agents().into_iter().map(Agent::from).collect();
        self.tell_spent(&agents).await;
        if self.stays {
            // Behind the reports: of twenty agents they are longer than a screen.
            let id = &live.record.id;
            self.console
                .tell(Tone::Plain, format!("session {id}: `midturn resume {id}` goes on with it"))
                .await;
        }
        let end = attending::end(&self.console, over, &lead, before).await;
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

    /// Steers a session by what is typed until somebody ends it, or it is quiet and nobody is asked for more.
    /// `None`: `quiet` could not find out.
    pub(crate) async fn until_over(
        &self,
        lead: &AgentName,
        steered: &impl Steered,
        mut quiet: impl AsyncFnMut() -> Option<Over>,
    ) -> Option<Over> {
        let mut lines = Lines::of(self.steers);
        loop {
            let over = self.until_quiet(lead, steered, &mut lines, quiet()).await;
            if over != Some(Over::Quiet) || !self.stays || !lines.is_open {
                return over;
            }
            attending::last_word(&self.console, lead).await;
            self.console.tell(Tone::Quiet, "all is done: say what comes next, or /quit").await;
            if let Some(over) = self.until_asked(lead, steered, &mut lines).await {
                return Some(over);
            }
        }
    }

    async fn until_quiet(
        &self,
        lead: &AgentName,
        steered: &impl Steered,
        lines: &mut Lines,
        quiet: impl Future<Output = Option<Over>>,
    ) -> Option<Over> {
        let mut quiet = pin!(quiet);
        loop {
            tokio::select! {
                biased;
                () = self.interrupted.cancelled() => return Some(Over::Interrupted),
                () = self.console.broken() => return Some(Over::OutputGone),
                // What was typed before the run's end is said before it: lines come before quiet.
                typed = lines.next(), if lines.is_open => {
                    if let Some(typed) = typed && obey(steered, lead, &self.console, typed).await {
                        return Some(Over::Interrupted);
                    }
                }
                quiet = &mut quiet => return quiet,
            }
        }
    }

    /// The line to type for each branch that has something new. `newest` is the session that commands mean of which
    /// nobody says which one.
    pub(crate) async fn tell_news(
        &self,
        project: &Project,
        record: &SessionRecord,
        newest: Option<&SessionId>,
    ) {
        let session = match newest {
            Some(newest) if *newest == record.id => String::new(),
            _ => format!(" --session {}", record.id),
        };
        let places = (&*project.whole_state(), self.base.as_deref());
        match news(Path::new(&record.folder), places, &record.id).await {
            Ok(agents) => {
                for agent in agents {
                    let line = format!(
                        "to look at {agent}'s work and take it: midturn diff {agent}{session} && midturn merge {agent}{session}"
                    );
                    self.console.tell(Tone::Plain, line).await;
                }
            }
            Err(error) => self.console.tell(Tone::Bad, format!("error: {error}")).await,
        }
    }

    /// Waits, while nobody works, for a line that sets somebody to work, or for somebody elsewhere who does.
    /// How it is over, if no such comes.
    async fn until_asked(&self, lead: &AgentName, steered: &impl Steered, lines: &mut Lines) -> Option<Over> {
        let answered = self.console.told(|view| view.agent(lead).map_or(0, |lead| lead.ended));
        loop {
            tokio::select! {
                biased;
                () = self.interrupted.cancelled() => return Some(Over::Interrupted),
                () = self.console.broken() => return Some(Over::OutputGone),
                typed = lines.next() => {
                    // Who leaves a session in which nobody works cuts nothing.
                    let Some(typed) = typed else { return Some(Over::Quiet) };
                    let leaves = obey(steered, lead, &self.console, typed).await;
                    return leaves.then_some(Over::Quiet);
                }
                () = self.console.more() => {}
            }
            // Somebody elsewhere has set somebody to work; it may be done with it already.
            let works = |view: &View| {
                view.agents()
                    .any(|(name, agent)| agent.is_working() || name == lead && agent.ended > answered)
            };
            if self.console.told(works) {
                return None;
            }
        }
    }

    /// Which limits were reached, and what all of it took: tokens, and money where it is known.
    pub(crate) async fn tell_spent(&self, agents: &[Agent]) {
        for Agent { name, limit_used, .. } in agents {
            if let Some(used) = limit_used {
                self.console.tell(Tone::Bad, format!("{name} is at its limit {used}")).await;
            }
        }
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

/// What is typed, as long as somebody types.
struct Lines {
    lines: mpsc::Receiver<input::Typed>,
    is_open: bool,
}

impl Lines {
    fn of(steers: bool) -> Self {
        Self { lines: if steers { input::lines() } else { mpsc::channel(1).1 }, is_open: steers }
    }

    async fn next(&mut self) -> Option<input::Typed> {
        let typed = self.lines.recv().await;
        self.is_open = typed.is_some();
        typed
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

    async fn send(&self, to: &AgentName, text: &str, urgency: Option<Urgency>) -> Result<(), String> {
        let message = Message { urgency, ..Message::new(Sender::User, to.as_str(), text) };
        Self::send(self, message).await.map(drop).map_err(|refusal| refusal.to_string())
    }

    async fn supersede(&self, to: &AgentName, text: &str) -> Result<(), String> {
        let superseded = Self::supersede(self, Message::new(Sender::User, to.as_str(), text)).await;
        let delivery = superseded.map_err(|error| error.to_string())?;
        delivery.result.map(drop).map_err(|refusal| refusal.to_string())
    }

    async fn close(&self, agent: &AgentName) -> Result<Vec<String>, String> {
        let closed = Self::close(self, agent.as_str(), Sender::User).await;
        let closed = closed.map_err(|error| error.to_string())?;
        Ok(closed.iter().map(ToString::to_string).collect())
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
        (What::Slot, Some(name)) => {
            Some(format!(", waits for a slot for {name}: as many commands run as may at once"))
        }
        (What::Budget, _) => Some(", waits for what others hold of the session's budget".to_owned()),
        (What::Retry, _) => Some(asks_again(activity.attempt)),
        (What::Approval | What::Slot | What::Model | What::Tool | What::Unknown, _) => None,
    });
    let asks = asks.unwrap_or_default();
    format!("{name}: {}{limit}, run {run}, turn {turn}{mail}{model}{asks}", progress::standing(*state))
}

fn asks_again(attempt: Option<u32>) -> String {
    let attempt = attempt.map(|attempt| format!(", attempt {attempt}")).unwrap_or_default();
    format!(", waits to ask its model again{attempt}")
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
