//! A4: whoever panics, the run ends as `failed` (or as `stopped` if it was being stopped), its
//! parent is told, no stop leaves the agent winding down, and it can be woken again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use midturn_core::engine::ToolSet;
use midturn_core::engine::ports::{
    CallTraits, Changes, Observer, Output, Returned, Tool, ToolCall, ToolError, ToolSpec, Toolbox, Workplace,
};
use midturn_core::rules::conversation::ToolUse;
use midturn_core::rules::event::{Event, EventKind, Outcome, Scope};
use midturn_core::rules::id::{AgentName, RunId};
use midturn_core::rules::mail::{Rest, Sender, Standing};
use serde_json::json;

use crate::world::{World, name};

/// What panics, the first time.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Traits,
    Find,
    RunEnded,
}

/// A workplace, its tools and its one tool, of which one panics once.
#[derive(Clone)]
struct Faulty {
    at: Place,
    is_over: Arc<AtomicBool>,
}

impl Faulty {
    fn at(at: Place) -> Arc<Self> {
        Arc::new(Self { at, is_over: Arc::default() })
    }

    fn comes_to(&self, place: Place) {
        if self.at == place && !self.is_over.swap(true, Ordering::Relaxed) {
            panic!("a fault of its own");
        }
    }
}

#[async_trait]
impl Workplace for Faulty {
    async fn open(&self, _: &AgentName) -> Result<Arc<dyn Toolbox>, ToolError> {
        Ok(Arc::new(self.clone()))
    }

    async fn run_ended(&self, agent: &AgentName, _: RunId) -> Result<Changes, ToolError> {
        if *agent == name("a") && self.at == Place::RunEnded && !self.is_over.load(Ordering::Relaxed) {
            // As often as it is asked in that run.
            panic!("a fault of its own");
        }
        Ok(Changes::default())
    }
}

impl Toolbox for Faulty {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        vec![self.spec()]
    }

    fn find(&self, _: &ToolUse) -> Option<Arc<dyn Tool>> {
        self.comes_to(Place::Find);
        Some(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Tool for Faulty {
    fn spec(&self) -> Arc<ToolSpec> {
        let spec = ToolSpec { name: "tool".into(), description: "A tool.".into(), input_schema: json!({}) };
        Arc::new(spec)
    }

    fn traits(&self, _: &ToolUse) -> CallTraits {
        self.comes_to(Place::Traits);
        CallTraits::SAFE
    }

    async fn call(&self, call: ToolCall) -> Returned {
        if self.at == Place::RunEnded {
            call.cancel.cancelled().await;
        }
        Output::ok("done").into()
    }
}

/// How often the lead was told of an end of `a`'s.
fn told_of_a(kind: &EventKind, of: &str) -> bool {
    matches!(kind, EventKind::MessageQueued { from, .. } if of == "lead" && from == "coordinator")
}

/// The agent rests, nobody waits for it any more, and the next message has its answer.
async fn goes_on(world: &World, rests: Rest) {
    world.log.until(1, told_of_a).await;
    world.coordinator.quiet().await;
    assert_eq!(world.coordinator.agent("a").unwrap().standing, Standing::Resting(rests));
    let again = world.coordinator.stop("a", Sender::User, Scope::Agent).await.unwrap();
    assert_eq!(again.stopped, [], "there is nothing left to stop");
    world.coordinator.send_message("a", "Again.", false).await.unwrap();
    world.until_ended("a", 2).await;
    assert_eq!(world.log.ends("a")[1].0, Outcome::Finished);
    world.coordinator.quiet().await;
    assert_eq!(world.log.count(told_of_a), 2, "each end is told once");
}

async fn fails(world: &World, what: &str) {
    world.until_ended("a", 1).await;
    let ends = world.log.ends("a");
    assert_eq!(ends, [(Outcome::Failed, format!("internal: {what}"))]);
    goes_on(world, Rest::Idle).await;
}

#[tokio::test(start_paused = true)]
async fn a4_a_model_that_panics_ends_its_run() {
    let world = World::new().await;
    world.coordinator.spawn_agent(World::spec("a", "panics once", "lead")).await.unwrap();
    fails(&world, "a model's own fault").await;
}

#[tokio::test(start_paused = true)]
async fn a4_a_tool_that_panics_when_it_is_looked_at_ends_its_run() {
    for place in [Place::Traits, Place::Find] {
        let world = World::of(Faulty::at(place), |builder| builder).await;
        world.coordinator.spawn_agent(World::spec("a", "calls once", "lead")).await.unwrap();
        fails(&world, "a fault of its own").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a4_a_workplace_that_panics_at_a_runs_end_ends_it() {
    let faulty = Faulty::at(Place::RunEnded);
    let world = World::of(faulty.clone(), |builder| builder).await;
    world.coordinator.spawn_agent(World::spec("a", "says", "lead")).await.unwrap();
    world.until_ended("a", 1).await;
    faulty.is_over.store(true, Ordering::Relaxed);
    fails(&world, "a fault of its own").await;
}

#[tokio::test(start_paused = true)]
async fn a4_a_model_that_panics_when_it_is_cut_was_stopped() {
    let world = World::new().await;
    world.agent("a", "panics when cut once").await;
    let reply = world.coordinator.stop("a", Sender::User, Scope::Agent).await.unwrap();
    assert_eq!(reply.stopped, [name("a")]);
    world.until_ended("a", 1).await;
    assert_eq!(world.log.ends("a"), [(Outcome::Stopped, String::new())]);
    goes_on(&world, Rest::Stopped).await;
}

#[tokio::test(start_paused = true)]
async fn a4_a_workplace_that_panics_at_the_end_of_a_stopped_run_leaves_nobody_winding_down() {
    // In the middle of a request, and of a call: that one has its result in the next request.
    for (model, is_under_way) in [("waits once", "model_started"), ("calls once", "tool_started")] {
        let faulty = Faulty::at(Place::RunEnded);
        let world = World::of(faulty.clone(), |builder| builder).await;
        world.agent("a", model).await;
        world.log.until(1, |kind, _| kind.type_name() == is_under_way).await;
        world.coordinator.stop("a", Sender::User, Scope::Agent).await.unwrap();
        world.until_ended("a", 1).await;
        faulty.is_over.store(true, Ordering::Relaxed);
        assert_eq!(world.log.ends("a"), [(Outcome::Stopped, String::new())]);
        goes_on(&world, Rest::Stopped).await;
    }
}

/// Panics at the first event of its kind.
struct Frail;

impl Observer for Frail {
    fn event(&self, event: &Event) {
        assert!(!matches!(event.kind, EventKind::ModelStarted { .. }), "an observer's own fault");
    }
}

#[tokio::test(start_paused = true)]
async fn a4_an_observer_that_panics_ends_nothing_and_is_told_nothing_more() {
    let more = |builder: midturn_core::engine::Builder| builder.observer(Arc::new(Frail));
    let world = World::of(Arc::new(ToolSet::default()), more).await;
    world.coordinator.spawn_agent(World::spec("a", "says", "lead")).await.unwrap();
    world.until_ended("a", 1).await;
    assert_eq!(world.log.ends("a"), [(Outcome::Finished, String::new())]);
    goes_on(&world, Rest::Idle).await;
}
