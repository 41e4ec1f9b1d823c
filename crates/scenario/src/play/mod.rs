//! Plays a scenario on the real engine: virtual time and simulated tools, or real ones.
//!
//! Nothing here decides anything: it sends what the file says when the file says it, and
//! writes down what comes of it (scenarios.md, section 2).

mod acts;
mod audit;
mod items;
mod lives;
mod real;
mod stage;

use std::fmt;
use std::sync::Arc;

use midturn_core::engine::ports::store::MemoryStore;
use midturn_core::engine::ports::{Clock, ModelFactory, RealClock, Store, Workplace};
use midturn_core::engine::scripted::{Anchors, ScriptedModels};
use midturn_core::engine::{AgentStatus, Coordinator, Stuck, VirtualClock};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use real::{RealWorkplace, RealWorkplaces};

use crate::error::{Error, Place};
use crate::expect::Worktrees;
use crate::record::{Record, Recorder};
use crate::scenario::{Scenario, Tools};
use audit::Audit;
use items::Items;

/// A scenario that was played.
pub struct Played {
    /// What came of it.
    pub record: Record,
    /// Where the agents worked; kept until expectations about files are checked.
    pub worktrees: Box<Worktrees>,
}

/// Plays a scenario to its end. `real` makes real tools for those that ask for them.
///
/// # Errors
/// [`Error`] when it can't be played at all: real tools without `real`, a workspace
/// that can't be copied, an agent that can't be spawned.
pub fn play(scenario: &Scenario, real: Option<&dyn RealWorkplaces>) -> Result<Played, Error> {
    match &scenario.tools {
        Tools::Simulated => {
            let keeps = Keeps { store: Arc::new(MemoryStore), clock: Arc::default(), virtual_time: true };
            play_kept(scenario, keeps)
        }
        Tools::Real(workspace) => {
            let real = real.ok_or("`tools: real` can't be played here: no real tools were given");
            let opened = real.map_err(str::to_owned).and_then(|real| real::open(workspace, real));
            play_real(scenario, opened.map_err(|why| refused(scenario, why))?)
        }
    }
}

fn refused(scenario: &Scenario, why: impl fmt::Display) -> Error {
    Error::of(&scenario.source.path, why)
}

/// What is told of a play while it goes on, by one process after the other.
struct Witnesses {
    recorder: Arc<Recorder>,
    anchors: Arc<Anchors>,
    audit: Arc<Audit>,
    asked: Arc<ScriptedModels>,
    remarks: acts::Remarks,
}

impl Witnesses {
    fn new(scenario: &Scenario, clock: &Arc<dyn Clock>) -> Self {
        let anchors = Arc::default();
        let models = ScriptedModels::recording(clock.clone(), stage::scripts(scenario));
        let asked = Arc::new(models.anchored(&anchors));
        let models: Arc<dyn ModelFactory> = asked.clone();
        let audit = Arc::new(Audit::of(models));
        Self { recorder: Arc::default(), anchors, audit, asked, remarks: acts::Remarks::default() }
    }

    fn record(&self, stuck: Option<Stuck>) -> Record {
        Record {
            events: self.recorder.take(),
            prompts: self.asked.asked(),
            breaches: self.audit.breaches(),
            remarks: self.remarks.take(),
            stuck: stuck.map(|stuck| stuck.to_string()),
        }
    }
}

/// Where a play is recorded, and on which clock.
pub struct Keeps {
    /// Keeps what is recorded. Where the scenario ends a process, all that it was given counts
    /// as recorded.
    pub store: Arc<dyn Store>,
    /// Moves the time of the play, and of a store that takes its time.
    pub clock: Arc<VirtualClock>,
    /// What `session_started` says of the time.
    pub virtual_time: bool,
}

/// Plays a scenario with simulated tools to its end, and has it recorded.
///
/// # Errors
/// [`Error`] when it can't be played: an agent that can't be spawned; with its place in
/// the file when it can't be played as the file has it: an `ends_after` that never comes, a
/// `raise` below what is spent.
pub fn play_kept(scenario: &Scenario, keeps: Keeps) -> Result<Played, Error> {
    lives::played(scenario, &keeps)
}

/// Scripted work that waits for an event: an error, where nothing can happen any more.
fn never_comes(scenario: &Scenario, anchors: &Anchors) -> Option<Error> {
    let (agent, after) = anchors.open().into_iter().next()?;
    let of = after.anchor.agent.as_ref().map(|of| format!(" of {of}")).unwrap_or_default();
    let id = after.anchor.id.as_deref().unwrap_or("any");
    let found = format!("an event that never comes: `{}: {id}`{of}", after.anchor.event);
    let place = Place { line: after.at.0, column: after.at.1, len: 1 };
    Some(scenario.source.fault(place, found, format!("one that happens while {agent} waits for it")))
}

fn play_real(scenario: &Scenario, opened: real::Opened) -> Result<Played, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| refused(scenario, format!("no runtime: {error}")))?;
    let played = runtime.block_on(async {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let witnesses = Witnesses::new(scenario, &clock);
        let items = Items::of(scenario, &witnesses.anchors);
        let tools: Arc<dyn Workplace> = opened.workplace.workplace();
        let builder = stage::builder(scenario, &witnesses, clock.clone(), tools);
        let coordinator = stage::set(scenario, builder).await?;
        let _attached = scenario.approvals.attached.then(|| coordinator.attach());
        let acting = acts::Acting {
            coordinator: coordinator.clone(),
            remarks: witnesses.remarks.clone(),
            source: scenario.source.clone(),
            clock: clock.clone(),
            process: watch::Sender::new(acts::Process::Lives),
        };
        let mut tasks = items.start(&clock, &acting);
        until_nothing_happens(&coordinator, &witnesses.anchors, &items, &mut tasks).await;
        let failed = never_comes(scenario, &witnesses.anchors).or_else(|| witnesses.remarks.refusal());
        coordinator.shutdown().await;
        failed.map_or_else(|| Ok(witnesses.record(None)), Err)
    });
    drop(runtime);
    Ok(Played { record: played?, worktrees: Box::new(move |agent| opened.worktree(agent)) })
}

/// Until nobody works and every item left waits for an event that nobody is left to cause.
async fn until_nothing_happens(
    coordinator: &Coordinator,
    anchors: &Anchors,
    items: &Items,
    tasks: &mut JoinSet<()>,
) {
    loop {
        if tasks.len() > items.waiting() {
            tasks.join_next().await;
            continue;
        }
        let began_to_wait = anchors.began_to_wait();
        if is_quiet(coordinator, anchors) {
            return;
        }
        tokio::select! {
            () = coordinator.quiet() => {}
            () = began_to_wait => {}
            Some(_) = tasks.join_next() => {}
        }
    }
}

/// Whether whoever works only waits for an event that nobody else can cause.
fn is_quiet(coordinator: &Coordinator, anchors: &Anchors) -> bool {
    use midturn_core::rules::mail::Standing;
    let open = anchors.open();
    let is_still = |agent: &AgentStatus| {
        matches!(agent.standing, Standing::Resting(_))
            || agent.model.is_none()
            || open.iter().any(|(waits, _)| *waits == agent.name)
    };
    coordinator.agents().iter().all(is_still)
}

#[cfg(test)]
mod tests;
