//! The sessions that live in this process: beginning one, taking one up, adding agents.

mod asked;

use std::sync::{Arc, OnceLock};

use midturn_core::engine::ports::archive::{SessionRecord, SessionSummary, TakenUp};
use midturn_core::engine::ports::{Observer, SessionJournal, Store};
use midturn_core::engine::{Attached, Slots};
use midturn_core::fail;
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_server::feed::Follower;
use midturn_server::{Feed, HostError, Live, Metrics};
use midturn_tools::leftovers;
use midturn_tools::sandbox::Sandbox;
use midturn_tools::workplace::{Listener, Wishes};
use parking_lot::Mutex;

use super::carry;
use super::holding::Holding;
use super::joined::JoinedSessions;
use super::living::Living;
use super::safety::Safety;
use crate::args::LayerArgs;
use crate::config::Config;
use crate::env::Env;
use crate::failure::Failure;
use crate::notify::{Own, Telling};
use crate::run::console::Console;
use crate::run::models::{Earlier, Reached};
use crate::run::prepare::{self, Prepared};
use crate::run::session_id;
use crate::run::team::Team;
use crate::telemetry::Telemetry;

/// A session, and what its process needs besides to follow it.
#[derive(Clone)]
pub(crate) struct Begun {
    /// The session.
    pub(crate) live: Live,
    /// Its lead.
    pub(crate) lead: AgentName,
    /// What holds its agents back.
    pub(crate) safety: Safety,
    /// Whoever was attached before its agents began, for who asked to be.
    pub(crate) attached: Option<Arc<Attached>>,
    /// Tells the person what waits for them, while nobody is attached.
    pub(super) notifying: Option<Arc<Telling>>,
    team: Arc<Team>,
}

/// Who is there from a session's first event on.
#[derive(Default)]
pub(crate) struct Audience {
    /// Who shows what is told of it.
    console: Option<Arc<Console>>,
    /// Whether somebody answers what agents ask.
    answers: bool,
}

impl From<&Arc<Console>> for Audience {
    fn from(console: &Arc<Console>) -> Self {
        Self { console: Some(console.clone()), answers: console.answers() }
    }
}

/// Carries sessions.
pub(crate) struct Carrier {
    pub(super) holding: Holding,
    pub(super) env: Env,
    /// What is laid over the configuration of sessions that come through the interface.
    layer: LayerArgs,
    metrics: Arc<Metrics>,
    telemetry: Option<Telemetry>,
    /// What holds agents back of whom nothing else is said; none where this is no daemon.
    safety: Option<Safety>,
    /// What is laid over every session that is taken up.
    pub(super) again: Vec<String>,
    /// The sandbox that was tried last.
    tried: Mutex<Option<Sandbox>>,
    reached: Reached,
    /// In which the commands of all sessions run; the first session says how many there are.
    slots: OnceLock<Slots>,
    sessions: Living,
    joined: JoinedSessions,
    /// Sessions begin and are taken up one at a time, so that none is taken up twice.
    pub(super) turn: tokio::sync::Mutex<()>,
}

impl Carrier {
    /// Carries sessions that are kept in this store.
    pub(crate) fn new(holding: Holding, env: &Env, layer: &LayerArgs) -> Self {
        let metrics = Metrics::default();
        let counted = holding.archive.clone();
        metrics.stale_writes_from(move || counted.stale_writes());
        Self {
            holding,
            telemetry: Telemetry::from_env(env),
            env: env.clone(),
            layer: layer.clone(),
            metrics: Arc::new(metrics),
            safety: None,
            again: Vec::new(),
            tried: Mutex::default(),
            reached: Reached::default(),
            slots: OnceLock::new(),
            sessions: Living::default(),
            joined: JoinedSessions::of(env),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// It is a daemon: what begins here goes on when it starts again. `safety` is what holds
    /// agents back of whom nothing else is said, `again` is laid over sessions that are taken up.
    pub(crate) fn serving(self, safety: Safety, again: Vec<String>) -> Self {
        *self.tried.lock() = Some(safety.sandbox().clone());
        Self { safety: Some(safety), again, ..self }
    }

    /// Prepares a session that is to live here; `earlier` is what it has had.
    ///
    /// # Errors
    /// As [`prepare::prepare`].
    fn prepare(&self, layer: &LayerArgs, earlier: &Earlier) -> Result<Prepared, Failure> {
        prepare::prepare(layer, &self.env, earlier, &self.reached)
    }

    /// What holds agents back that work by this configuration.
    ///
    /// # Errors
    /// [`Failure::Usage`]: there is no sandbox.
    pub(crate) async fn safety_of(&self, config: &Config) -> Result<Safety, Failure> {
        let tried = self.tried.lock().clone();
        let safety = Safety::of(config, tried.as_ref()).await?;
        *self.tried.lock() = Some(safety.sandbox().clone());
        Ok(safety)
    }

    /// The figures.
    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Begins a session with a task for its lead.
    ///
    /// # Errors
    /// [`HostError::Invalid`]: there is no sandbox. [`HostError::Conflict`]: too many sessions are at
    /// work. [`HostError::Failed`]: the store doesn't take it, or its lead can't be made.
    pub(crate) async fn begin_with(
        &self,
        task: &str,
        prepared: Prepared,
        audience: Audience,
    ) -> Result<Begun, HostError> {
        let _turn = self.turn.lock().await;
        self.sessions.must_go_on()?;
        let safety = self.safety_of(&prepared.config).await?.sharing(prepared.sharing().await);
        self.sessions.make_room().await?;
        let record = carry::record(session_id::new(), task, &prepared, self.safety.is_some());
        let store = self.holding.archive.begin(record.clone()).await.map_err(Failure::failed)?;
        fail::point("session_archived");
        let stored = Stored { record, epoch: 1, store, journal: None };
        let begun = self.enter(&prepared, safety, stored, audience).await?;
        let Prepared { models, team, .. } = prepared;
        let spec = team.lead(&models.lead, &models.name, task);
        if let Err(error) = begun.live.coordinator.spawn_agent(spec).await {
            self.sessions.give_up(&begun).await;
            return Err(self.sessions.must_go_on().err().unwrap_or_else(|| Failure::failed(error).into()));
        }
        self.sessions.show(begun.live.record.id.as_str());
        Ok(begun)
    }

    /// As [`Carrier::take_up`], because somebody asked for it: who rests with work unfinished
    /// (stopped, or failed) is resumed too. Names all who work now.
    ///
    /// # Errors
    /// As there.
    pub(crate) async fn go_on_with(
        &self,
        id: &SessionId,
        set: &[String],
        audience: Audience,
    ) -> Result<Option<(Begun, Vec<AgentName>)>, HostError> {
        let Some((begun, mut working)) = self.take_up(id, set, audience).await? else { return Ok(None) };
        let resumed = begun.live.coordinator.resume_all().await.map_err(Failure::failed)?;
        working.extend(resumed);
        Ok(Some((begun, working)))
    }

    /// Takes a stored session up, with these settings over its own, and starts what was under
    /// way; one that lives here already is left as it is. `None`: there is none of that id.
    ///
    /// # Errors
    /// [`HostError::Invalid`]: its folder or its configuration is not sound any more, or there is no
    /// sandbox. [`HostError::Conflict`]: too many sessions are at work. [`HostError::Failed`]: the store fails.
    pub(crate) async fn take_up(
        &self,
        id: &SessionId,
        set: &[String],
        audience: Audience,
    ) -> Result<Option<(Begun, Vec<AgentName>)>, HostError> {
        let _turn = self.turn.lock().await;
        self.sessions.must_go_on()?;
        let lives = self.begun(id.as_str());
        if let Some(begun) = lives.as_ref().filter(|begun| begun.live.coordinator.broken().is_none()) {
            let attached = audience.answers.then(|| Arc::new(begun.live.coordinator.attach()));
            return Ok(Some((Begun { attached, ..begun.clone() }, Vec::new())));
        }
        let Some(looked) = self.holding.archive.journal(id).await.map_err(Failure::failed)? else {
            return Ok(None);
        };
        // What can be wrong is found before anybody else's writes are fenced off.
        let layer = carry::layer(&looked.record, &[&self.again, set].concat())?;
        let prepared = self.prepare(&layer, &carry::earlier(&looked))?;
        let safety = self.safety_of(&prepared.config).await?.sharing(prepared.sharing().await);
        if let Some(broken) = lives {
            // It records nothing any more: what is left of it ends before it is taken up again.
            self.sessions.give_up(&broken).await;
        }
        end_leftovers(std::slice::from_ref(id)).await?;
        self.sessions.make_room().await?;
        let Some(taken) = self.holding.archive.take_up(id).await.map_err(Failure::failed)? else {
            return Ok(None);
        };
        fail::point("taken_up");
        let TakenUp { store, journal, epoch, .. } = taken;
        let stored = Stored { record: journal.record.clone(), epoch, store, journal: Some(journal) };
        let begun = self.enter(&prepared, safety, stored, audience).await?;
        self.sessions.show(begun.live.record.id.as_str());
        let working = begun.live.coordinator.go_on().await;
        Ok(Some((begun, working)))
    }

    /// Carries a session no longer in which nobody works.
    pub(crate) async fn let_go(&self, begun: &Begun) {
        self.sessions.give_up(begun).await;
    }

    /// Makes what a stored session lives by. None of its agents works yet, and nobody finds it.
    async fn enter(
        &self,
        prepared: &Prepared,
        safety: Safety,
        stored: Stored,
        audience: Audience,
    ) -> Result<Begun, HostError> {
        let Stored { record, epoch, store, journal } = stored;
        let lead = prepared.models.lead.clone();
        let feed = Arc::new(Feed::resumed(journal.as_ref().map(SessionJournal::view).unwrap_or_default()));
        let figures = match &journal {
            Some(journal) => self.metrics.for_resumed(journal),
            None => self.metrics.for_session(),
        };
        // Whoever sits at the terminal of this process sees it.
        let is_shown = audience.answers && audience.console.is_some();
        let own = Own::of(prepared.config.general.notify.command.as_deref()).filter(|_| !is_shown);
        let follower = Follower::new(feed.clone(), self.holding.archive.clone(), record.id.clone());
        let known = || journal.as_ref().map(SessionJournal::view).unwrap_or_default();
        let own = own.map(|own| (own, follower, known()));
        let spans = self.telemetry.as_ref().map(|telemetry| telemetry.observer(&record.id, known()));
        let always: [Arc<dyn Observer>; 2] = [feed.clone(), figures];
        let observers = always.into_iter().chain(spans).collect();
        if let Some(console) = &audience.console {
            console.follow(Follower::new(feed.clone(), self.holding.archive.clone(), record.id.clone()));
        }
        // Agents see nothing of this process, whatever the configuration says.
        let listener = audience.console.map(|console| console as Arc<dyn Listener>);
        let workplace = carry::workplace(prepared, &safety, &self.holding.hidden, &record.id);
        let workplace = workplace.wishes(Wishes { listener, ..prepared.config.wishes() });
        let slots = self.slots.get_or_init(|| prepared.config.general.sandbox.slots()).clone();
        let coordinator =
            carry::coordinator(prepared, workplace, &record.id, store, observers, slots, journal);
        let coordinator = coordinator.await.inspect_err(|_| feed.end())?;
        let shared = safety.shared().map(str::to_owned);
        let live = Live { record, epoch, lead: Some(lead.clone()), shared, coordinator, feed };
        let notifying = own.map(|own| Telling::start(own, live.coordinator.clone()));
        let begun = Begun { live, lead, safety, attached: None, notifying, team: prepared.team.clone() };
        self.sessions.enter(&begun).await?;
        let attached = audience.answers.then(|| Arc::new(begun.live.coordinator.attach()));
        Ok(Begun { attached, ..begun })
    }

    /// What is kept, the newest first.
    ///
    /// # Errors
    /// [`Failure::Failed`]: the store can't be read.
    pub(crate) async fn sessions(&self) -> Result<Vec<SessionSummary>, Failure> {
        self.holding.archive.sessions().await.map_err(Failure::failed)
    }

    /// A session that lives here.
    pub(crate) fn begun(&self, id: &str) -> Option<Begun> {
        self.sessions.find(id)
    }

    /// All that live here, in the order in which they began.
    pub(crate) fn all(&self) -> Vec<Begun> {
        self.sessions.all()
    }

    /// Stops all agents of all sessions, all at once, and waits until their calls have ended:
    /// every session can be resumed, and none begins any more. Whoever reads events gets the
    /// last of them, and the end.
    pub(crate) async fn shutdown(&self) {
        self.sessions.shutdown().await;
    }

    /// Lets the store go. Nothing is recorded from now on.
    pub(crate) async fn close(&self, in_a_hurry: bool) {
        self.holding.archive.close().await;
        if let Some(telemetry) = &self.telemetry {
            telemetry.shutdown(in_a_hurry);
        }
    }

    /// Waits until no agent of any session works.
    pub(crate) async fn quiet(&self) {
        for begun in self.all() {
            begun.live.coordinator.quiet().await;
        }
    }
}

/// A session as the store has it.
struct Stored {
    record: SessionRecord,
    /// How often it was taken up.
    epoch: u64,
    store: Arc<dyn Store>,
    /// What happened in it; none if it begins now.
    journal: Option<SessionJournal>,
}

/// What dead processes left running of these sessions is ended before any of them goes on: how
/// many processes that were.
///
/// # Errors
/// [`Failure::Failed`]: some may still be running.
pub(super) async fn end_leftovers(sessions: &[SessionId]) -> Result<usize, Failure> {
    let ended = leftovers::end(sessions).await.map_err(|error| {
        let of = match sessions {
            [one] => format!("session {one}"),
            all => format!("{} sessions", all.len()),
        };
        Failure::failed(format!("commands of {of} may still be running, so none goes on: {error}"))
    })?;
    if ended > 0 {
        tracing::warn!(?sessions, ended, "processes that a dead coordinator left behind were ended");
    }
    Ok(ended)
}

impl From<Failure> for HostError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Usage(text) => Self::Invalid(text),
            Failure::Failed(text) => Self::Failed(text),
        }
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Invalid(text) | HostError::NotFound(text) => Self::Usage(text),
            HostError::Refused(refusal) => Self::failed(refusal),
            HostError::Conflict { text, .. } | HostError::ShuttingDown(text) | HostError::Failed(text) => {
                Self::Failed(text)
            }
        }
    }
}

#[cfg(test)]
mod tests;
