//! Attending to a session that runs elsewhere: what it tells is shown, what is typed is sent
//! to it, and its end is found out.

use std::sync::Arc;
use std::time::Duration;

use midturn_client::events::{Ended, Told, Wanted, follow};
use midturn_client::{Client, SessionClient, Trouble};
use midturn_core::engine::ports::archive::{AgentJournal, SessionJournal};
use midturn_core::rules::event::Outcome;
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_core::rules::view;
use midturn_tui::settings::Settings;
use midturn_tui::state::Standing;
use midturn_view::words::Tone;
use midturn_wire::session::Session;
use midturn_wire::work::{Empty, Stopped};
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::failure::{End, Failure};
use crate::history;
use crate::project::Project;
use crate::run::Attended;
use crate::run::console::Console;
use crate::run::session::attending::{self, Over, Steered as _};
use crate::screen;

/// The pauses between looks whether anybody still works: from the first to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// How long the last events may take to come.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// A session that runs elsewhere.
struct Remote {
    session: SessionClient,
    project: Project,
    lead: AgentName,
    attended: Attended,
}

/// The task that shows what is told, and the last event that it has shown.
struct Hearing {
    task: AbortOnDropHandle<Option<Ended>>,
    seq: watch::Receiver<u64>,
}

impl Hearing {
    /// Events up to the number `after` were told before.
    fn start(console: &Arc<Console>, told: mpsc::Receiver<Told>, after: u64) -> Self {
        let (heard, seq) = watch::channel(after);
        // A task of its own: whoever waits for something else meanwhile loses nothing of it.
        let task = AbortOnDropHandle::new(tokio::spawn(hear(console.clone(), told, heard)));
        Self { task, seq }
    }
}

/// Shows what is told until nothing comes any more, and says why.
async fn hear(
    console: Arc<Console>,
    mut told: mpsc::Receiver<Told>,
    heard: watch::Sender<u64>,
) -> Option<Ended> {
    while let Some(next) = told.recv().await {
        let seq = match next {
            Told::Event(raw, event) => {
                let seq = event.seq;
                console.event(raw, event).await;
                Some(seq)
            }
            Told::Live(event) => {
                console.live(&event).await;
                None
            }
            Told::Other(_, seq) => seq,
            Told::Ended(ended) => return Some(ended),
        };
        heard.send_modify(|heard| *heard = seq.unwrap_or_default().max(*heard));
    }
    None
}

/// Steers a session by what is typed until it is over; then stops what is left and reports.
/// Events up to the number `after` were told before.
///
/// # Errors
/// [`Failure::Failed`]: the session has no lead, or the process that runs it is gone.
pub(super) async fn steer(
    client: Client,
    project: &Project,
    session: &Session,
    attended: Attended,
    after: u64,
) -> Result<End, Failure> {
    let nobody = || Failure::failed(format!("the session {} has no lead to talk to", session.session));
    let lead = session.lead.clone().ok_or_else(nobody)?;
    let session = SessionClient::new(&client, &session.session);
    Remote { session, project: project.clone(), lead, attended }.steer(after).await
}

impl Remote {
    async fn steer(self, after: u64) -> Result<End, Failure> {
        if let Some(settings) = self.attended.screen.clone() {
            return self.on_screen(settings).await;
        }
        let console = &self.attended.console;
        let answers = console.answers();
        let SessionClient { client, id } = &self.session;
        let wanted = Wanted { session: id.clone(), agent: None, after, answers };
        let (told, _reader) = follow(client.clone(), wanted);
        if answers && after > 0 {
            self.show_open().await;
        }
        let mut hearing = Hearing::start(console, told, after);
        let quiet = async || self.quiet(&mut hearing).await;
        let over = self.attended.until_over(&self.lead, &self.session, quiet).await;
        let over = over.ok_or_else(|| self.lost())?;
        if over == Over::Interrupted {
            console.tell(Tone::Cut, "stopping all agents; Ctrl-C leaves at once").await;
        }
        let cuts = matches!(over, Over::Interrupted | Over::OutputGone);
        if cuts && self.shut_down(hearing).await.is_err() {
            return Err(self.lost());
        }
        let before = self.report().await;
        // Where it can't be asked any more, its own process has told it.
        if let Ok(agents) = self.session.agents().await {
            self.attended.tell_spent(&agents).await;
        }
        Ok(attending::end(console, over, &self.lead, before).await)
    }

    /// Shows the session on the screen until the person leaves. It goes on where it is.
    async fn on_screen(self, settings: Settings) -> Result<End, Failure> {
        let client = &self.session.client;
        let summary = self.session.summary().await?;
        let place = screen::live(&self.project, client, &summary, Standing::Theirs)?;
        let console = &self.attended.console;
        let left = console.covered(screen::show(place, settings, &self.attended.interrupted)).await?;
        console.tell(Tone::Plain, screen::goes_on(&left)).await;
        Ok(End::Finished)
    }

    /// Shows what a session that has lived a while asks already.
    async fn show_open(&self) {
        match self.session.requests().await {
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

    /// Waits until all was told and nobody works. `None`: the other process is gone before that.
    async fn quiet(&self, hearing: &mut Hearing) -> Option<Over> {
        let mut pause = PAUSES.0;
        loop {
            tokio::select! {
                biased;
                ended = &mut hearing.task => {
                    // A process that waited for this session only ends with it.
                    let is_over = matches!(ended, Ok(Some(Ended::Session))) || self.is_done();
                    return is_over.then_some(Over::Ended);
                }
                Ok(()) = hearing.seq.changed() => pause = PAUSES.0,
                () = tokio::time::sleep(pause), if !self.is_anybody_working() => {
                    let heard = *hearing.seq.borrow();
                    if self.is_quiet(heard).await {
                        return Some(Over::Quiet);
                    }
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
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

    /// Whether nobody works, and nothing was told after the event of this number.
    async fn is_quiet(&self, heard: u64) -> bool {
        // When nobody answers the events' own task finds out why.
        let session = self.session.summary().await;
        session.is_ok_and(|session| !session.busy && session.last_seq <= heard)
    }

    /// Stops all agents, and shows what that does. A stop is answered when it is recorded: what comes
    /// until the runs have ended is waited for.
    async fn shut_down(&self, mut hearing: Hearing) -> Result<(), Trouble> {
        let path = self.session.path(&["shutdown"]);
        let stopped = self.session.client.post_patiently::<Stopped>(&path, &Empty {});
        tokio::select! {
            biased;
            stopped = stopped => stopped?,
            // Nothing more comes: the session has ended, or the process.
            _ = &mut hearing.task => return Ok(()),
        };
        if tokio::time::timeout(LAST_EVENTS, self.quiet(&mut hearing)).await.is_err() {
            let late = "the last events did not come in time; `midturn log` has them";
            self.attended.console.tell(Tone::Bad, late).await;
        }
        Ok(())
    }

    /// What a person wants to know at the end: what became of whose changes. The store knows,
    /// whether or not the other process is still there. How the lead's last run ended, if one did.
    async fn report(&self) -> Option<Outcome> {
        match self.journal().await {
            Ok((journal, newest)) => {
                let mut outcome = None;
                for AgentJournal { record, last_end, .. } in &journal.agents {
                    if let Some((end, _)) = last_end {
                        self.attended.report(&record.name, &end.changes).await;
                        outcome = outcome.or((record.name == self.lead).then_some(end.outcome));
                    }
                }
                self.attended.tell_news(&self.project, &journal.record, newest.as_ref()).await;
                outcome
            }
            Err(failure) => {
                self.attended
                    .console
                    .tell(Tone::Bad, format!("what was changed is not known: {failure}"))
                    .await;
                None
            }
        }
    }

    /// What is kept of the session, and which began last.
    async fn journal(&self) -> Result<(SessionJournal, Option<SessionId>), Failure> {
        let id = SessionId::new(self.session.id.as_str());
        let archive = history::read_only(&self.project).await?;
        let archive = archive.ok_or_else(|| Failure::failed("the store is gone"))?;
        let journal = archive.journal(&id).await.map_err(Failure::failed)?;
        let journal = journal.ok_or_else(|| Failure::failed("the session is gone"))?;
        let all = archive.sessions().await.map_err(Failure::failed)?;
        Ok((journal, all.into_iter().next().map(|newest| newest.record.id)))
    }

    fn lost(&self) -> Failure {
        Failure::failed(format!(
            "the process that ran the session has ended, or can't be asked any more: `midturn resume {}` goes on with it",
            self.session.id
        ))
    }
}
