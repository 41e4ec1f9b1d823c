//! Attending to a session that runs elsewhere: what it tells is shown, what is typed is sent
//! to it, and its end is found out.

use std::pin::pin;
use std::time::Duration;

use midturn_client::events::{Ended, Told, Wanted, follow};
use midturn_client::{Client, Trouble};
use midturn_core::engine::ports::archive::AgentJournal;
use midturn_core::rules::event::Event;
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_core::rules::view;
use midturn_wire::session::Session;
use midturn_wire::work::{Empty, Stopped};
use tokio::sync::mpsc;

use super::super::elsewhere::Elsewhere;
use crate::failure::{End, Failure};
use crate::history;
use crate::project::Project;
use crate::run::progress::Tone;
use crate::run::session::attending::{self, Over, Steered as _, obey};
use crate::run::{Attended, input};

/// The pauses between looks whether anybody still works: from the first to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// How long the last events may take to come.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// A session that runs elsewhere.
pub(super) struct Remote {
    elsewhere: Elsewhere,
    project: Project,
    lead: AgentName,
    attended: Attended,
    /// The last event that was told.
    seq: u64,
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
            elsewhere: Elsewhere::new(&client, &session.session),
            project: project.clone(),
            lead,
            attended,
            seq: 0,
        })
    }

    /// Steers the session by what is typed until it is over; then stops what is left and
    /// reports. Events up to the number `after` were told before.
    pub(super) async fn steer(mut self, after: u64) -> Result<End, Failure> {
        self.seq = after;
        let answers = self.attended.console.answers();
        let Elsewhere { client, session } = &self.elsewhere;
        let wanted = Wanted { session: session.clone(), agent: None, after, answers };
        let (mut told, _reader) = follow(client.clone(), wanted);
        if answers && after > 0 {
            self.show_open().await;
        }
        let over = self.until_over(&mut told).await.ok_or_else(|| self.lost())?;
        if over == Over::Interrupted {
            self.attended.console.tell(Tone::Cut, "stopping all agents; Ctrl-C leaves at once").await;
        }
        if over != Over::Quiet && self.shut_down(&mut told).await.is_err() {
            return Err(self.lost());
        }
        self.report().await;
        Ok(attending::end(&self.attended.console, over, &self.lead).await)
    }

    /// Shows what a session that has lived a while asks already.
    async fn show_open(&self) {
        match self.elsewhere.requests().await {
            Ok(open) => {
                for request in &open {
                    self.attended.console.asked(request).await;
                }
            }
            Err(trouble) => {
                let told = format!("error: what agents ask already is not known: {trouble}");
                self.attended.console.tell(Tone::Bad, told).await;
            }
        }
    }

    /// `None`: the other process is gone.
    async fn until_over(&mut self, told: &mut mpsc::Receiver<Told>) -> Option<Over> {
        let Attended { console, interrupted } = self.attended.clone();
        let (mut lines, mut is_open, mut pause) = (input::lines(), true, PAUSES.0);
        loop {
            tokio::select! {
                biased;
                () = interrupted.cancelled() => return Some(Over::Interrupted),
                () = console.broken() => return Some(Over::OutputGone),
                typed = lines.recv(), if is_open => match typed {
                    None => is_open = false,
                    Some(typed) => {
                        if obey(&self.elsewhere, &self.lead, &console, typed).await {
                            return Some(Over::Interrupted);
                        }
                    }
                },
                next = told.recv() => {
                    match self.take(next).await {
                        Came::News => pause = PAUSES.0,
                        Came::End => return Some(Over::Quiet),
                        Came::Loss => return None,
                    }
                }
                () = tokio::time::sleep(pause), if !self.is_anybody_working() => {
                    if self.is_quiet().await {
                        return Some(Over::Quiet);
                    }
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }

    /// Shows what was told.
    async fn take(&mut self, told: Option<Told>) -> Came {
        match told {
            Some(Told::Event(raw, event)) => self.event(raw, event).await,
            Some(Told::Live(event)) => self.attended.console.live(&event).await,
            Some(Told::Other(_, seq)) => self.seq = self.seq.max(seq.unwrap_or_default()),
            Some(Told::Ended(Ended::Session)) => return Came::End,
            // A process that waited for this session only ends with it.
            Some(Told::Ended(Ended::Lost(_))) | None if self.is_done() => return Came::End,
            Some(Told::Ended(Ended::Lost(_))) | None => return Came::Loss,
        }
        Came::News
    }

    async fn event(&mut self, raw: String, event: Box<Event>) {
        self.seq = event.seq;
        self.attended.console.event(raw, event).await;
    }

    /// Whether the lead's end was told, and nobody's run was left open.
    fn is_done(&self) -> bool {
        let has_ended = |view: &view::View| view.agent(&self.lead).is_some_and(|lead| lead.outcome.is_some());
        !self.is_anybody_working() && self.attended.console.told(has_ended)
    }

    /// Whether a run has begun and not ended, as far as was told.
    fn is_anybody_working(&self) -> bool {
        self.attended.console.told(|view| view.agents().any(|(_, agent)| agent.is_working()))
    }

    /// Whether all was told and nobody works.
    async fn is_quiet(&self) -> bool {
        // When nobody answers the events' own task finds out why.
        let session = self.elsewhere.client.get::<Session>(&self.elsewhere.path(&[])).await;
        session.is_ok_and(|session| !session.busy && session.last_seq <= self.seq)
    }

    /// Stops all agents, and shows what that does.
    async fn shut_down(&mut self, told: &mut mpsc::Receiver<Told>) -> Result<(), Trouble> {
        let client = self.elsewhere.client.clone();
        let (path, nothing) = (self.elsewhere.path(&["shutdown"]), Empty {});
        let mut stopped = pin!(client.post_patiently::<Stopped>(&path, &nothing));
        loop {
            tokio::select! {
                biased;
                stopped = &mut stopped => match stopped {
                    Ok(_) => break,
                    Err(trouble) => return Err(trouble),
                },
                next = told.recv() => {
                    if self.take(next).await != Came::News {
                        return Ok(());
                    }
                }
            }
        }
        if tokio::time::timeout(LAST_EVENTS, self.until_quiet(told)).await.is_err() {
            let late = "the last events did not come in time; `midturn log` has them";
            self.attended.console.tell(Tone::Bad, late).await;
        }
        Ok(())
    }

    /// A stop is answered when it is recorded: shows what comes until the runs have ended.
    async fn until_quiet(&mut self, told: &mut mpsc::Receiver<Told>) {
        let mut pause = PAUSES.0;
        loop {
            tokio::select! {
                biased;
                next = told.recv() => {
                    if self.take(next).await != Came::News {
                        return;
                    }
                }
                () = tokio::time::sleep(pause) => {
                    if self.is_quiet().await {
                        return;
                    }
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }

    /// What a person wants to know at the end: what became of whose changes. The store knows,
    /// whether or not the other process is still there.
    async fn report(&self) {
        match self.journal().await {
            Ok(agents) => {
                for AgentJournal { record, last_end, .. } in &agents {
                    if let Some((end, _)) = last_end {
                        self.attended.report(&record.name, &end.changes).await;
                    }
                }
            }
            Err(failure) => {
                self.attended
                    .console
                    .tell(Tone::Bad, format!("what was changed is not known: {failure}"))
                    .await;
            }
        }
    }

    async fn journal(&self) -> Result<Vec<AgentJournal>, Failure> {
        let id = SessionId::new(self.elsewhere.session.as_str());
        let archive = history::read_only(&self.project).await?;
        let archive = archive.ok_or_else(|| Failure::failed("the store is gone"))?;
        let journal = archive.journal(&id).await.map_err(|error| Failure::failed(error.to_string()))?;
        Ok(journal.map(|journal| journal.agents).unwrap_or_default())
    }

    fn lost(&self) -> Failure {
        Failure::failed(format!(
            "the process that ran the session has ended, or can't be asked any more: `midturn resume {}` goes on with it",
            self.elsewhere.session
        ))
    }
}

/// What came from the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    /// Something that was told.
    News,
    /// The session's end.
    End,
    /// Nothing more, before its end.
    Loss,
}
