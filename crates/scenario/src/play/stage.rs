//! Sets the stage: the coordinator and the agents of a scenario.

use std::sync::Arc;

use midturn_core::engine::ports::{Clock, Workplace};
use midturn_core::engine::scripted::Scripts;
use midturn_core::engine::{AgentSpec, Builder, Coordinator, Templates};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::settings::{Patched, Settings};

use super::{Witnesses, refused};
use crate::error::Error;
use crate::scenario::{ABSENT, Agent, Scenario, Start};

/// The name under which every scripted model goes.
const SCRIPTED: &str = "scripted";

/// The scripts by agent.
pub(super) fn scripts(scenario: &Scenario) -> Scripts {
    let scripted =
        scenario.agents.iter().filter_map(|agent| Some((agent.name.clone(), agent.model.clone()?)));
    scripted.collect()
}

/// What a session of the scenario is made of, but for its store.
pub(super) fn builder(
    scenario: &Scenario,
    witnesses: &Witnesses,
    clock: Arc<dyn Clock>,
    workplace: Arc<dyn Workplace>,
) -> Builder {
    announced(scenario, Coordinator::builder(witnesses.audit.clone(), workplace))
        .settings(settings(scenario, None))
        .approvals(scenario.approvals.policy.clone())
        .clock(clock)
        .templates(Arc::new(Understudies::of(scenario)))
        .observer(witnesses.recorder.clone())
        .observer(witnesses.anchors.clone())
        .scenario(scenario.source.path.clone())
}

/// Starts the session and spawns whoever begins at once.
pub(super) async fn set(scenario: &Scenario, builder: Builder) -> Result<Coordinator, Error> {
    let coordinator = started(scenario, builder).await?;
    for agent in in_spawn_order(scenario) {
        if let Err(error) = coordinator.cast_agent(spec(scenario, agent)).await {
            let found = format!("an agent that can't be spawned ({error})");
            return Err(scenario.source.fault(agent.place, found, "fewer agents, or other limits"));
        }
    }
    Ok(coordinator)
}

/// Goes on with the session where the process before it left it.
pub(super) async fn take_up(scenario: &Scenario, builder: Builder) -> Result<Coordinator, Error> {
    let coordinator = started(scenario, builder).await?;
    coordinator.go_on().await;
    Ok(coordinator)
}

async fn started(scenario: &Scenario, builder: Builder) -> Result<Coordinator, Error> {
    builder.start().await.map_err(|error| refused(scenario, error.to_string()))
}

/// Tells where the agents that are still to be spawned will stand: others may be below them.
fn announced(scenario: &Scenario, builder: Builder) -> Builder {
    let later = scenario.agents.iter().filter(|agent| agent.start == Start::Spawned);
    let placed = later.filter_map(|agent| Some((agent.name.clone(), agent.parent.clone()?)));
    placed.fold(builder, |builder, (agent, parent)| builder.announce(agent, parent))
}

/// The file's order, but that a lead who is a parent by default comes before its first child.
fn in_spawn_order(scenario: &Scenario) -> Vec<&Agent> {
    let mut order: Vec<&Agent> = Vec::new();
    for agent in scenario.agents.iter().filter(|agent| agent.start == Start::AtOnce) {
        let parent = agent.parent.as_ref();
        let parent = scenario.agents.iter().find(|other| Some(&other.name) == parent);
        for next in parent.into_iter().chain([agent]) {
            if next.start == Start::AtOnce && !order.iter().any(|known| known.name == next.name) {
                order.push(next);
            }
        }
    }
    order
}

fn settings(scenario: &Scenario, agent: Option<&Agent>) -> Settings {
    let mut settings = Settings::default();
    settings.patch(&scenario.settings);
    if let Some(agent) = agent {
        settings.patch(&agent.settings);
    }
    settings
}

fn spec(scenario: &Scenario, agent: &Agent) -> AgentSpec {
    let mut spec = AgentSpec::new(agent.name.clone(), SCRIPTED);
    spec.role = agent.role;
    spec.parent = agent.parent.clone();
    spec.prompt = agent.prompt.clone();
    spec.settings = settings(scenario, Some(agent));
    if agent.model.is_none() {
        spec.model = None;
    }
    spec
}

/// The agents that wait for a `spawn_agent` call to name them.
struct Understudies(Vec<AgentSpec>);

impl Understudies {
    fn of(scenario: &Scenario) -> Self {
        let waiting = scenario.agents.iter().filter(|agent| agent.start == Start::Spawned);
        Self(waiting.map(|agent| spec(scenario, agent)).collect())
    }
}

impl Templates for Understudies {
    fn resolve(&self, name: &AgentName, _: Option<&str>, _: &AgentName) -> Result<AgentSpec, String> {
        let found = self.0.iter().find(|spec| spec.name == *name);
        found.cloned().ok_or_else(|| {
            let names: Vec<&str> = self.0.iter().map(|spec| spec.name.as_str()).collect();
            let names = names.join(", ");
            format!("{ABSENT} `{name}` with `start: spawned`; there are: [{names}]")
        })
    }
}
