//! Agents that spawn without end, from many threads and through their own calls.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use midturn_core::engine::ports::{Observer, RealClock};
use midturn_core::engine::scripted::{ScriptedCall, ScriptedModels, ScriptedReply, Scripts, SimulatedTools};
use midturn_core::engine::{AgentSpec, Coordinator, SpawnError, Templates, VirtualClock};
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Role;
use midturn_core::rules::settings::Settings;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::json;

/// The limits of one session.
#[derive(Clone, Copy, Debug)]
struct Limits {
    depth: u32,
    agents: u32,
    spawns: u32,
}

impl Limits {
    fn settings(self) -> Settings {
        Settings {
            max_depth: self.depth,
            max_agents: self.agents,
            max_spawns: self.spawns,
            ..Settings::default()
        }
    }
}

fn limits() -> impl Strategy<Value = Limits> {
    (1..5u32, 1..24u32, 1..24u32).prop_map(|(depth, agents, spawns)| Limits { depth, agents, spawns })
}

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

#[derive(Default)]
struct Log(Mutex<Vec<Event>>);

impl Observer for Log {
    fn event(&self, event: &Event) {
        self.0.lock().push(event.clone());
    }
}

/// Who stands where, read from the events alone.
#[derive(Default)]
struct Family {
    parents: BTreeMap<String, Option<String>>,
    /// Nobody is closed in these sessions.
    open: u32,
}

impl Family {
    fn of(events: &[Event]) -> Self {
        let mut family = Self::default();
        for event in events {
            let Some(agent) = event.at.agent.as_ref().map(ToString::to_string) else { continue };
            if let EventKind::AgentSpawned { parent, .. } = &event.kind {
                family.parents.insert(agent, parent.as_ref().map(ToString::to_string));
                family.open += 1;
            }
        }
        family
    }

    fn above(&self, agent: &str) -> Vec<&String> {
        let parent = |name: &String| self.parents.get(name).and_then(Option::as_ref);
        std::iter::successors(self.parents.get(agent).and_then(Option::as_ref), |name| parent(name)).collect()
    }

    /// How many were ever spawned below each.
    fn below(&self) -> BTreeMap<&String, u32> {
        let mut below = BTreeMap::new();
        for above in self.parents.keys().flat_map(|agent| self.above(agent)) {
            *below.entry(above).or_default() += 1;
        }
        below
    }

    fn is_within(&self, limits: Limits) -> Result<(), TestCaseError> {
        let depth = self.parents.keys().map(|agent| self.above(agent).len() as u32).max().unwrap_or_default();
        prop_assert!(depth <= limits.depth, "{depth} deep");
        prop_assert!(self.open <= limits.agents, "{} open", self.open);
        let below = self.below().into_values().max().unwrap_or_default();
        prop_assert!(below <= limits.spawns, "{below} below one agent");
        Ok(())
    }
}

/// Many threads spawn below whoever is there. What was refused, by its reason.
async fn from_many_threads(limits: Limits, log: Arc<Log>) -> BTreeMap<&'static str, usize> {
    let clock = Arc::new(RealClock::start());
    let models = Arc::new(ScriptedModels::new(clock.clone(), Scripts::default()));
    let tools = Arc::new(SimulatedTools::new(clock.clone(), Scripts::default()));
    let builder = Coordinator::builder(models, tools).clock(clock).observer(log);
    let coordinator = builder.settings(limits.settings()).start().await.unwrap();
    let lead = AgentSpec { role: Role::Lead, ..AgentSpec::new(name("t0-0"), "scripted") };
    coordinator.spawn_agent(lead).await.unwrap();
    let threads = (1..=4).map(|thread: usize| {
        let coordinator = coordinator.clone();
        tokio::spawn(async move {
            let mut refused: BTreeMap<&'static str, usize> = BTreeMap::new();
            for n in 0..20usize {
                let parent = match n % 3 {
                    0 => name("t0-0"),
                    // One that this thread or another may have spawned.
                    _ => name(&format!("t{}-{}", 1 + (thread + n) % 4, n / 2)),
                };
                let spec = AgentSpec::new(name(&format!("t{thread}-{n}")), "scripted");
                let spawned = coordinator.spawn_agent(AgentSpec { parent: Some(parent), ..spec }).await;
                if let Some(reason) = spawned.err().map(|error| reason(&error)) {
                    *refused.entry(reason).or_default() += 1;
                }
                tokio::task::yield_now().await;
            }
            refused
        })
    });
    let mut refused: BTreeMap<&'static str, usize> = BTreeMap::new();
    for thread in threads.collect::<Vec<_>>() {
        for (reason, times) in thread.await.unwrap() {
            *refused.entry(reason).or_default() += times;
        }
    }
    refused
}

fn reason(error: &SpawnError) -> &'static str {
    match error {
        SpawnError::TooDeep(_) => "depth",
        SpawnError::TooMany(_) => "agents",
        SpawnError::TooManyBelow { .. } => "spawns",
        SpawnError::UnknownParent(_) => "parent",
        SpawnError::NameTaken(_)
        | SpawnError::Settings(_)
        | SpawnError::Stopped
        | SpawnError::Limit(_)
        | SpawnError::ShuttingDown
        | SpawnError::Store(_) => "other",
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn threads_that_spawn_at_once_stay_within_all_limits(limits in limits()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
        let log = Arc::new(Log::default());
        let refused = runtime.block_on(from_many_threads(limits, log.clone()));
        let family = Family::of(&log.0.lock());
        family.is_within(limits)?;
        prop_assert!(!refused.contains_key("other"), "{:?}", refused);
        // As many were asked for as no such session may hold.
        let full = limits.agents < 20 || limits.spawns < 20;
        prop_assert!(!full || refused.keys().any(|reason| *reason != "parent"), "{:?}", refused);
    }
}

/// A model of every name: it spawns four at once, and those do the same.
struct Endless(Settings);

impl Templates for Endless {
    fn resolve(&self, name: &AgentName, _: Option<&str>, _: &AgentName) -> Result<AgentSpec, String> {
        Ok(AgentSpec { settings: self.0.clone(), ..AgentSpec::new(name.clone(), "scripted") })
    }
}

/// All names down to a depth that is never reached, each with a turn of spawns.
fn without_end(name: &str, depth: usize, scripts: &mut HashMap<AgentName, Arc<[ScriptedReply]>>) {
    let children: Vec<String> = (0..3).map(|n| format!("{name}{n}")).collect();
    let spawn = |child: &String| {
        let input = json!({"name": child, "prompt": "Spawn three."});
        Arc::new(ScriptedCall::new(&format!("s-{child}"), "spawn_agent", input))
    };
    let turn = ScriptedReply { tools: children.iter().map(spawn).collect(), ..ScriptedReply::default() };
    let answers = std::iter::repeat_n(ScriptedReply::says("spawned"), 60);
    scripts.insert(self::name(name), std::iter::once(turn).chain(answers).collect());
    if depth > 0 {
        children.iter().for_each(|child| without_end(child, depth - 1, scripts));
    }
}

fn played_without_end(limits: Limits) -> Vec<Event> {
    let mut scripts = HashMap::new();
    without_end("a", 5, &mut scripts);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let log = Arc::new(Log::default());
    runtime.block_on(async {
        let clock = Arc::new(VirtualClock::default());
        let models = Arc::new(ScriptedModels::new(clock.clone(), scripts.clone()));
        let tools = Arc::new(SimulatedTools::new(clock.clone(), scripts));
        let settings = limits.settings();
        let builder = Coordinator::builder(models, tools).clock(clock.clone()).observer(log.clone());
        let builder = builder.settings(settings.clone()).templates(Arc::new(Endless(settings.clone())));
        let coordinator = builder.start().await.unwrap();
        let spec = AgentSpec {
            role: Role::Lead,
            prompt: Some("Spawn three.".into()),
            settings,
            ..AgentSpec::new(name("a"), "scripted")
        };
        coordinator.spawn_agent(spec).await.unwrap();
        clock.drive().await.unwrap();
    });
    std::mem::take(&mut *log.0.lock())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn models_that_spawn_without_end_stay_within_all_limits(limits in limits()) {
        let events = played_without_end(limits);
        let family = Family::of(&events);
        family.is_within(limits)?;
        let refused = events.iter().any(|event| {
            matches!(&event.kind, EventKind::ToolFinished { output, .. } if output.starts_with("Not spawned: max_"))
        });
        prop_assert!(refused, "none was refused of {:?}", limits);
        // Nobody above the limits is refused: what may be there is there.
        let full = family.open == limits.agents
            || family.below().into_values().max().unwrap_or_default() == limits.spawns
            || family.parents.len() as u32 == (0..=limits.depth).map(|depth| 3u32.pow(depth)).sum::<u32>();
        prop_assert!(full, "{} agents under {:?}", family.parents.len(), limits);
    }
}
