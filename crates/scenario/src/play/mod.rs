//! Plays a scenario on the real engine: virtual time and simulated tools, or real ones.
//!
//! Nothing here decides anything: it sends what the file says when the file says it, and
//! writes down what comes of it (scenarios.md, section 2).

mod acts;
mod anchors;
mod audit;
mod real;
mod stage;

use std::path::PathBuf;
use std::sync::Arc;

use midturn_core::engine::ports::store::MemoryStore;
use midturn_core::engine::ports::{Clock, ModelFactory, Phase, RealClock, Store, Workplace};
use midturn_core::engine::scripted::{ScriptedModels, SimulatedTools};
use midturn_core::engine::{Attached, Coordinator, Stuck, VirtualClock};
use midturn_core::rules::id::AgentName;
use tokio::task::JoinSet;

pub use real::{RealWorkplace, RealWorkplaces};

use crate::error::Error;
use crate::expect::{NoWorktrees, Worktrees};
use crate::record::{Record, Recorder};
use crate::scenario::{Scenario, Tools, When};
use anchors::Anchors;
use audit::Audit;

/// A scenario that was played.
pub struct Played {
    /// What came of it.
    pub record: Record,
    /// Why it ended early, if it did: an instant that never ends.
    pub stuck: Option<String>,
    /// Where the agents worked; kept until expectations about files are checked.
    pub worktrees: Box<dyn Worktrees>,
}

/// Plays a scenario to its end. `real` makes real tools for those that ask for them.
///
/// # Errors
/// [`Error::Replay`] when it can't be played at all: real tools without `real`, a workspace
/// that can't be copied, an agent that can't be spawned.
pub fn play(scenario: &Scenario, real: Option<&dyn RealWorkplaces>) -> Result<Played, Error> {
    match &scenario.tools {
        Tools::Simulated => play_simulated(scenario),
        Tools::Real(workspace) => {
            let Some(real) = real else {
                return Err(refused(
                    scenario,
                    "`tools: real` can't be played here: no real tools were given",
                ));
            };
            let workplace = real::open(workspace, real).map_err(|why| refused(scenario, why))?;
            play_real(scenario, workplace)
        }
    }
}

fn refused(scenario: &Scenario, why: impl Into<String>) -> Error {
    Error::Replay { path: scenario.source.path.to_string(), why: why.into() }
}

/// What is told of a play while it goes on.
struct Witnesses {
    recorder: Arc<Recorder>,
    anchors: Arc<Anchors>,
    audit: Arc<Audit>,
    asked: Arc<ScriptedModels>,
    remarks: acts::Remarks,
}

impl Witnesses {
    fn new(scenario: &Scenario, clock: &Arc<dyn Clock>) -> Self {
        let asked = Arc::new(ScriptedModels::recording(clock.clone(), stage::scripts(scenario)));
        let models: Arc<dyn ModelFactory> = asked.clone();
        Self {
            recorder: Arc::default(),
            anchors: Arc::default(),
            audit: Arc::new(Audit::of(models)),
            asked,
            remarks: acts::Remarks::default(),
        }
    }

    fn record(&self) -> Record {
        Record {
            events: self.recorder.take(),
            prompts: self.asked.asked(),
            breaches: self.audit.breaches(),
            remarks: self.remarks.take(),
        }
    }
}

fn play_simulated(scenario: &Scenario) -> Result<Played, Error> {
    let keeps = Keeps { store: Arc::new(MemoryStore), clock: Arc::default(), virtual_time: true };
    play_kept(scenario, keeps)
}

/// Where a play is recorded, and on which clock.
pub struct Keeps {
    /// Keeps what is recorded.
    pub store: Arc<dyn Store>,
    /// Moves the time of the play, and of a store that takes its time.
    pub clock: Arc<VirtualClock>,
    /// What `session_started` says of the time.
    pub virtual_time: bool,
}

/// Plays a scenario with simulated tools to its end, and has it recorded.
///
/// # Errors
/// [`Error::Replay`] when it can't be played: an agent that can't be spawned.
pub fn play_kept(scenario: &Scenario, keeps: Keeps) -> Result<Played, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.map_err(|error| refused(scenario, format!("no runtime: {error}")))?;
    let clock = keeps.clock.clone();
    let time: Arc<dyn Clock> = clock.clone();
    let witnesses = Witnesses::new(scenario, &time);
    let workplace = Arc::new(SimulatedTools::new(time.clone(), stage::scripts(scenario)));
    let driven = runtime.block_on(async {
        // With a store that takes its time, the stage is set while the clock moves.
        let setting = async {
            let coordinator = stage::set(scenario, &witnesses, time.clone(), workplace, Some(keeps)).await?;
            let attached = attached(scenario, &coordinator);
            Ok::<_, Error>((start_items(scenario, &coordinator, &witnesses, &time), attached))
        };
        driven(&clock, setting, || refused(scenario, "the store never answered")).await
    })?;
    drop(runtime);
    let stuck = driven.err().map(|stuck: Stuck| stuck.to_string());
    Ok(Played { record: witnesses.record(), stuck, worktrees: Box::new(NoWorktrees) })
}

/// Sets the stage and moves time until nothing can happen any more.
async fn driven<T>(
    clock: &VirtualClock,
    setting: impl Future<Output = Result<T, Error>>,
    lost: impl Fn() -> Error,
) -> Result<Result<(), Stuck>, Error> {
    tokio::pin!(setting);
    let _while_it_lasts = tokio::select! {
        biased;
        set = &mut setting => set?,
        moved = clock.drive() => match moved {
            Ok(()) => return Err(lost()),
            stuck => return Ok(stuck),
        },
    };
    Ok(clock.drive().await)
}

/// Somebody who can answer, as long as it is kept.
fn attached(scenario: &Scenario, coordinator: &Coordinator) -> Option<Attached> {
    scenario.approvals.attached.then(|| coordinator.attach())
}

/// One task for each item. They are ended with the set that is returned.
fn start_items(
    scenario: &Scenario,
    coordinator: &Coordinator,
    witnesses: &Witnesses,
    clock: &Arc<dyn Clock>,
) -> JoinSet<()> {
    let mut items = JoinSet::new();
    for (item, index) in scenario.items.iter().zip(0..) {
        let reached = match &item.when {
            When::At(_) => None,
            When::After(anchor, _) => Some(witnesses.anchors.watch(anchor)),
        };
        let act = acts::Acting {
            coordinator: coordinator.clone(),
            item: item.clone(),
            remarks: witnesses.remarks.clone(),
        };
        let clock = clock.clone();
        items.spawn(async move {
            let at = match (&act.item.when, reached) {
                (When::After(_, plus), Some(reached)) => match reached.await {
                    Ok(event) => event.after(*plus),
                    Err(_) => return,
                },
                (When::At(at), _) => *at,
                (When::After(..), None) => return,
            };
            clock.until(at, Phase::Arrival(index)).await;
            act.act().await;
        });
    }
    items
}

fn play_real(scenario: &Scenario, workplace: real::Opened) -> Result<Played, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| refused(scenario, format!("no runtime: {error}")))?;
    let played = runtime.block_on(async {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let witnesses = Witnesses::new(scenario, &clock);
        let tools: Arc<dyn Workplace> = workplace.tools();
        let coordinator = stage::set(scenario, &witnesses, clock.clone(), tools, None).await?;
        let _attached = attached(scenario, &coordinator);
        let mut items = start_items(scenario, &coordinator, &witnesses, &clock);
        until_nothing_happens(&coordinator, &witnesses.anchors, &mut items).await;
        coordinator.shutdown().await;
        Ok::<_, Error>(witnesses.record())
    });
    drop(runtime);
    Ok(Played { record: played?, stuck: None, worktrees: Box::new(workplace) })
}

/// Until nobody works and every item left waits for an event that nobody is left to cause.
async fn until_nothing_happens(coordinator: &Coordinator, anchors: &Anchors, items: &mut JoinSet<()>) {
    loop {
        if items.len() > anchors.waiting() {
            items.join_next().await;
            continue;
        }
        tokio::select! {
            () = coordinator.quiet() => {}
            Some(_) = items.join_next() => continue,
        }
        if items.len() <= anchors.waiting() && is_quiet(coordinator) {
            return;
        }
    }
}

fn is_quiet(coordinator: &Coordinator) -> bool {
    use midturn_core::rules::mail::Standing;
    coordinator
        .agents()
        .iter()
        .all(|agent| matches!(agent.standing, Standing::Resting(_)) || agent.model.is_none())
}

impl Worktrees for real::Opened {
    fn folder(&self, agent: &AgentName) -> Option<PathBuf> {
        self.worktree(agent)
    }
}

#[cfg(test)]
mod tests;
