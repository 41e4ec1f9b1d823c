//! A stop is a fence (semantics.md, sections 5 and 6): behind it no call starts and no request
//! leaves, in the whole subtree when asked, however many are being spawned meanwhile.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use midturn_core::engine::ports::{Model, ModelFactory, ModelFailure, Observer, RealClock, Request};
use midturn_core::engine::{AgentSpec, Coordinator, Templates, ToolSet};
use midturn_core::rules::conversation::{Block, Reply, ToolUse};
use midturn_core::rules::event::{Event, EventKind, Halt, Scope};
use midturn_core::rules::id::{AgentName, CallId};
use midturn_core::rules::mail::{Sender, Standing};
use midturn_core::rules::settings::Settings;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;

/// How many agents there are when the stop comes.
const CROWD: u32 = 60;

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

/// Spawns two agents in each turn, as all of them do.
struct Spawner {
    agent: AgentName,
    spawned: Arc<AtomicU32>,
}

#[async_trait]
impl Model for Spawner {
    async fn call(&mut self, request: Request<'_>) -> Result<Reply, ModelFailure> {
        request.progress.sent();
        if self.agent == name("lead") {
            // It is told of the end of the others, and says so.
            return Ok(Reply { blocks: vec![Block::Text("So be it.".to_owned())], ..Reply::default() });
        }
        tokio::task::yield_now().await;
        let call = |n: u32| {
            let input = json!({"name": format!("a{}", self.spawned.fetch_add(1, Ordering::Relaxed)), "prompt": "spawn"});
            let id = CallId::new(format!("{}-{}-{n}", self.agent, request.call));
            Block::ToolUse(ToolUse { id, name: "spawn_agent".into(), input })
        };
        Ok(Reply { blocks: vec![call(0), call(1)], ..Reply::default() })
    }
}

struct Spawners(Arc<AtomicU32>);

#[async_trait]
impl ModelFactory for Spawners {
    async fn model(&self, agent: &AgentName, _: &str) -> Result<Box<dyn Model>, ModelFailure> {
        Ok(Box::new(Spawner { agent: agent.clone(), spawned: self.0.clone() }))
    }
}

struct Anybody(Settings);

impl Templates for Anybody {
    fn names(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn resolve(&self, name: &AgentName, _: Option<&str>, _: &AgentName) -> Result<AgentSpec, String> {
        Ok(AgentSpec { settings: self.0.clone(), ..AgentSpec::new(name.clone(), "spawner") })
    }
}

#[derive(Default)]
struct Log {
    events: Mutex<Vec<Event>>,
    spawned: AtomicU32,
    crowded: Notify,
}

impl Observer for Log {
    fn event(&self, event: &Event) {
        self.events.lock().push(event.clone());
        let is_spawn = matches!(event.kind, EventKind::AgentSpawned { .. });
        if is_spawn && self.spawned.fetch_add(1, Ordering::Relaxed) + 1 == CROWD {
            self.crowded.notify_one();
        }
    }
}

async fn session(log: &Arc<Log>) -> Coordinator {
    let settings =
        Settings { max_depth: 1_000, max_agents: 100_000, max_spawns: 100_000, ..Settings::default() };
    let models = Arc::new(Spawners(Arc::default()));
    let coordinator = Coordinator::builder(models, Arc::new(ToolSet::default()))
        .clock(Arc::new(RealClock::start()))
        .templates(Arc::new(Anybody(settings.clone())))
        .settings(settings.clone())
        .observer(log.clone())
        .start()
        .await
        .unwrap();
    let lead = AgentSpec { prompt: None, ..AgentSpec::new(name("lead"), "spawner") };
    coordinator.spawn_agent(lead).await.unwrap();
    let root = AgentSpec { settings, ..AgentSpec::new(name("root"), "spawner") };
    let root = AgentSpec { parent: Some(name("lead")), prompt: Some("spawn".to_owned()), ..root };
    coordinator.spawn_agent(root).await.unwrap();
    log.crowded.notified().await;
    coordinator
}

fn starts_something(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::ModelStarted { .. } | EventKind::ToolStarted { .. } | EventKind::AgentSpawned { .. }
    )
}

/// What began behind the stop, and who is not at rest for good.
fn behind(coordinator: &Coordinator, log: &Log, told: usize) -> (Vec<Event>, Vec<AgentName>) {
    let events = log.events.lock();
    let is_below = |event: &&Event| event.at.agent != Some(name("lead"));
    let began = events[told..].iter().filter(|event| starts_something(event)).filter(is_below);
    let began = began.cloned().collect();
    let below = coordinator.agents().into_iter().filter(|agent| agent.name != name("lead"));
    // Who had not begun when the process ends begins at the next start, and rests till then.
    let restless = below.filter(|agent| !matches!(agent.standing, Standing::Resting(_)));
    (began, restless.map(|agent| agent.name).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn invariants_4_and_5_nothing_starts_behind_a_stop_of_the_whole_subtree() {
    for _ in 0..20 {
        let log = Arc::new(Log::default());
        let coordinator = session(&log).await;
        coordinator.stop("root", Sender::User, Scope::Subtree).await.unwrap();
        let told = log.events.lock().len();
        coordinator.quiet().await;
        assert_eq!(behind(&coordinator, &log, told), (vec![], vec![]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_starts_behind_a_close_or_a_shutdown() {
    for round in 0..20 {
        let log = Arc::new(Log::default());
        let coordinator = session(&log).await;
        if round % 2 == 0 {
            coordinator.close("root", Sender::User).await.unwrap();
        } else {
            coordinator.shutdown().await;
        }
        let told = log.events.lock().len();
        coordinator.quiet().await;
        assert_eq!(behind(&coordinator, &log, told), (vec![], vec![]));
        assert_eq!(runs_behind_a_shutdown(&log), vec![]);
    }
}

/// The runs that begin behind the place that a shutdown has in the record.
fn runs_behind_a_shutdown(log: &Log) -> Vec<Event> {
    let events = log.events.lock();
    let shuts =
        |event: &&Event| matches!(&event.kind, EventKind::StopRequested { reason: Halt::Shutdown, .. });
    let behind = events.iter().skip_while(|event| !shuts(event));
    behind.filter(|event| matches!(event.kind, EventKind::RunStarted { .. })).cloned().collect()
}
