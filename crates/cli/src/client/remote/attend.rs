//! Attending to a session that runs elsewhere: what it tells is shown, what is typed is sent
//! to it, and its end is found out.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use midturn_core::engine::AgentStatus;
use midturn_core::engine::ports::archive::AgentJournal;
use midturn_core::engine::ports::{Changes, Observer};
use midturn_core::rules::event::{Event, EventKind, Outcome};
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_core::rules::mail::{Rest, Role, Standing};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::super::events::{Ended, Told, Wanted, follow};
use super::super::http::{Client, Path, Trouble};
use super::super::wire::{Agent, AgentState, Agents, Session, Stopped};
use crate::failure::{End, Failure};
use crate::history;
use crate::project::Project;
use crate::run::Attended;
use crate::run::console::Console;
use crate::run::input::Typed;
use crate::run::progress::Tone;
use crate::run::session::{changes, listed};
use crate::run::steering::{self, Line};
use crate::run::watcher::LeadWatcher;

/// The pauses between looks whether anybody still works: from the first to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// How long the last events may take to come.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// A session that runs elsewhere.
pub(super) struct Remote {
    client: Client,
    project: Project,
    session: String,
    lead: AgentName,
    watcher: LeadWatcher,
    console: Arc<Console>,
    interrupted: CancellationToken,
    /// The last event that was told.
    seq: u64,
    /// Those whose run began and has not ended, as far as was told.
    working: BTreeSet<AgentName>,
}

/// Why it is over.
#[derive(Debug, Clone, PartialEq)]
enum Over {
    /// Nobody works and nobody will.
    Quiet,
    /// A signal, or `/quit`.
    Interrupted,
    /// Nobody reads the output any more.
    OutputGone,
    /// The other process is gone.
    Lost,
}

impl Remote {
    /// # Errors
    /// [`Failure::Failed`]: the session has no lead.
    pub(super) fn new(
        client: Client,
        project: &Project,
        session: &Session,
        attended: Attended,
    ) -> Result<Self, Failure> {
        let nobody = || Failure::failed(format!("the session {} has no lead to talk to", session.session));
        let lead = session.lead.clone().ok_or_else(nobody)?;
        Ok(Self {
            client,
            project: project.clone(),
            session: session.session.clone(),
            watcher: LeadWatcher::new(lead.clone()),
            lead,
            console: attended.console,
            interrupted: attended.interrupted,
            seq: 0,
            working: BTreeSet::new(),
        })
    }

    /// Steers the session by what is typed until it is over; then stops what is left and
    /// reports. Events up to the number `after` were told before.
    pub(super) async fn steer(
        mut self,
        after: u64,
        mut lines: mpsc::Receiver<Typed>,
    ) -> Result<End, Failure> {
        self.seq = after;
        let wanted = Wanted { session: self.session.clone(), agent: None, after };
        let (mut told, _reader) = follow(self.client.clone(), wanted);
        let over = self.until_over(&mut lines, &mut told).await;
        match over {
            Over::Interrupted => self.console.tell(Tone::Cut, "stopping all agents; Ctrl-C leaves at once"),
            Over::Quiet | Over::OutputGone => {}
            Over::Lost => return Err(self.lost()),
        }
        if over != Over::Quiet && self.shut_down(&mut told).await.is_err() {
            return Err(self.lost());
        }
        self.report().await;
        Ok(self.end(&over))
    }

    async fn until_over(
        &mut self,
        lines: &mut mpsc::Receiver<Typed>,
        told: &mut mpsc::Receiver<Told>,
    ) -> Over {
        let (console, interrupted) = (self.console.clone(), self.interrupted.clone());
        let (mut is_open, mut pause, mut last_look) = (true, PAUSES.0, None);
        loop {
            tokio::select! {
                biased;
                () = interrupted.cancelled() => return Over::Interrupted,
                () = console.broken() => return Over::OutputGone,
                typed = lines.recv(), if is_open => match typed {
                    None => is_open = false,
                    Some(typed) => {
                        if self.obey(typed).await {
                            return Over::Interrupted;
                        }
                    }
                },
                next = told.recv() => {
                    if let Some(over) = self.take(next) {
                        return over;
                    }
                    (pause, last_look) = (PAUSES.0, None);
                }
                () = tokio::time::sleep(pause), if self.working.is_empty() => {
                    let look = self.quiet_at().await;
                    // Twice the same: between a run's end and the mail about it nobody seems to work.
                    if look.is_some() && look == last_look {
                        return Over::Quiet;
                    }
                    (pause, last_look) = ((pause * 2).min(PAUSES.1), look);
                }
            }
        }
    }

    /// Shows what was told.
    fn take(&mut self, told: Option<Told>) -> Option<Over> {
        match told {
            Some(Told::Event(_, event)) => self.event(&event),
            Some(Told::Live(event)) => self.console.live(&event),
            Some(Told::Other(_, seq)) => self.seq = self.seq.max(seq.unwrap_or_default()),
            Some(Told::Ended(Ended::Session)) => return Some(Over::Quiet),
            // A process that waited for this session only ends with it.
            Some(Told::Ended(Ended::Lost(_))) | None if self.is_done() => return Some(Over::Quiet),
            Some(Told::Ended(Ended::Lost(_))) | None => return Some(Over::Lost),
        }
        None
    }

    fn event(&mut self, event: &Event) {
        self.seq = event.seq;
        self.watcher.event(event);
        self.console.event(event);
        let Some(agent) = &event.at.agent else { return };
        match event.kind {
            EventKind::RunStarted { .. } => {
                self.working.insert(agent.clone());
            }
            EventKind::RunFinished { .. } => {
                self.working.remove(agent);
            }
            _ => {}
        }
    }

    /// Whether the lead's end was told, and nobody's run was left open.
    fn is_done(&self) -> bool {
        self.working.is_empty() && self.watcher.last_word().outcome.is_some()
    }

    /// The number of the last event, if all were told and nobody works.
    async fn quiet_at(&self) -> Option<u64> {
        // When nobody answers the events' own task finds out why.
        let session = self.session().await.ok()?;
        (!session.busy && session.last_seq <= self.seq).then_some(session.last_seq)
    }

    async fn session(&self) -> Result<Session, Trouble> {
        let answer = self.client.get(&self.path(&[])).await?;
        self.client.read(&answer)
    }

    async fn agents(&self) -> Result<Vec<Agent>, Trouble> {
        let answer = self.client.get(&self.path(&["agents"])).await?;
        Ok(self.client.read::<Agents>(&answer)?.agents)
    }

    fn path(&self, parts: &[&str]) -> Path {
        let session = ["sessions", &self.session];
        Path::of(&[&session, parts].concat())
    }

    /// Does what a line says. `true`: the session is to end.
    async fn obey(&self, typed: Typed) -> bool {
        let agents = match self.agents().await {
            Ok(agents) => agents,
            Err(trouble) => {
                self.console.tell(Tone::Bad, format!("error: not sent: {trouble}"));
                return false;
            }
        };
        let is_agent = |name: &str| agents.iter().any(|agent| agent.name.as_str() == name);
        match typed.and_then(|line| steering::parse(&line, is_agent)) {
            Ok(Line::Blank) => {}
            Ok(Line::Quit) => return true,
            Ok(Line::Ps) => {
                agents.iter().for_each(|agent| self.console.tell(Tone::Plain, listed(&status(agent))));
            }
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
        let path = self.path(&["agents", to.as_str(), "messages"]);
        if let Err(trouble) = self.client.post(&path, &json!({"text": text, "urgent": urgent})).await {
            self.console.tell(Tone::Bad, format!("error: not sent to {to}: {trouble}"));
        }
    }

    async fn stop(&self, name: &AgentName) {
        let path = self.path(&["agents", name.as_str(), "stop"]);
        let answer = self.client.post(&path, &json!({})).await;
        match answer.and_then(|answer| self.client.read::<Stopped>(&answer)) {
            Err(trouble) => self.console.tell(Tone::Bad, format!("error: {trouble}")),
            Ok(reply) if reply.stopped.is_empty() => {
                self.console.tell(Tone::Plain, format!("{name} is idle; there was nothing to stop"));
            }
            Ok(reply) if !reply.still_queued.is_empty() => {
                let ids = reply.still_queued.join(", ");
                self.console.tell(Tone::Plain, format!("still queued for {name}: {ids}"));
            }
            Ok(_) => {}
        }
    }

    /// Stops all agents, and shows what that does.
    async fn shut_down(&mut self, told: &mut mpsc::Receiver<Told>) -> Result<(), Trouble> {
        let client = self.client.clone();
        let (path, nothing) = (self.path(&["shutdown"]), json!({}));
        let mut stopped = pin!(client.post_patiently(&path, &nothing));
        loop {
            tokio::select! {
                biased;
                stopped = &mut stopped => match stopped {
                    Ok(_) => break,
                    Err(trouble) => return Err(trouble),
                },
                next = told.recv() => {
                    if self.take(next).is_some() {
                        return Ok(());
                    }
                }
            }
        }
        let last = self.session().await?.last_seq;
        let rest = async { while self.seq < last && self.take(told.recv().await).is_none() {} };
        if tokio::time::timeout(LAST_EVENTS, rest).await.is_err() {
            self.console.tell(Tone::Bad, "the last events did not come in time; `midturn log` has them");
        }
        Ok(())
    }

    /// What a person wants to know at the end: what became of whose changes. The store knows,
    /// whether or not the other process is still there.
    async fn report(&self) {
        match self.journal().await {
            Ok(agents) => {
                let lines = agents.iter().flat_map(|agent| changes(&at_the_end(agent)));
                lines.for_each(|line| self.console.tell(Tone::Plain, line));
            }
            Err(failure) => {
                self.console.tell(Tone::Bad, format!("what was changed is not known: {failure}"));
            }
        }
    }

    async fn journal(&self) -> Result<Vec<AgentJournal>, Failure> {
        let id = SessionId::new(self.session.as_str());
        let archive = history::read_only(&self.project).await?;
        let archive = archive.ok_or_else(|| Failure::failed("the store is gone"))?;
        let journal = archive.journal(&id).await.map_err(|error| Failure::failed(error.to_string()))?;
        Ok(journal.map(|journal| journal.agents).unwrap_or_default())
    }

    fn end(&self, over: &Over) -> End {
        let last = self.watcher.last_word();
        if last.outcome == Some(Outcome::Finished) && *over == Over::Quiet {
            self.console.answer(&last.text);
        }
        match (over, last.outcome) {
            (Over::Interrupted, _) | (Over::Quiet, Some(Outcome::Stopped)) => End::Interrupted,
            (Over::OutputGone | Over::Lost, _) | (Over::Quiet, None | Some(Outcome::Failed)) => End::Failed,
            (Over::Quiet, Some(Outcome::Limit)) => End::Limit,
            (Over::Quiet, Some(Outcome::Finished)) => End::Finished,
        }
    }

    fn lost(&self) -> Failure {
        Failure::failed(format!(
            "the process that ran the session has ended, or can't be asked any more: `midturn resume {}` goes on with it",
            self.session
        ))
    }
}

/// An agent as a run in this process would know it.
fn status(agent: &Agent) -> AgentStatus {
    let standing = match agent.state {
        AgentState::Running | AgentState::Unknown => Standing::Running,
        AgentState::Ending => Standing::Winding { then: Rest::Idle, restart: false },
        AgentState::Idle | AgentState::Suspended => Standing::Resting(Rest::Idle),
        AgentState::Stopped => Standing::Resting(Rest::Stopped),
        AgentState::Closed => Standing::Resting(Rest::Closed),
    };
    AgentStatus {
        parent: agent.parent.clone(),
        model: agent.model.as_deref().map(Arc::from),
        standing,
        run: agent.run,
        turn: agent.turn,
        pending: usize::try_from(agent.pending).unwrap_or(usize::MAX),
        tokens: agent.tokens,
        branch: agent.branch.clone(),
        ..named(&agent.name, agent.role)
    }
}

/// An agent that rests, and what its last run changed.
fn at_the_end(agent: &AgentJournal) -> AgentStatus {
    let changes = agent.last_end.as_ref().map(|(end, _)| end.changes.clone());
    AgentStatus {
        run: agent.run,
        changes: changes.unwrap_or_default(),
        ..named(&agent.record.name, agent.record.role)
    }
}

fn named(name: &AgentName, role: Role) -> AgentStatus {
    AgentStatus {
        name: name.clone(),
        role,
        parent: None,
        model: None,
        standing: Standing::Resting(Rest::Idle),
        run: 0,
        turn: 0,
        pending: 0,
        last_end: None,
        activity: Vec::new(),
        tokens: 0,
        branch: None,
        changes: Changes::default(),
        plan: Vec::new(),
    }
}
