//! The engine itself: agents that wait for each other, work, write and are stopped at random,
//! on virtual time. Nobody hangs, and what is refused would have.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use midturn_core::engine::ports::{Clock, Observer, Phase};
use midturn_core::engine::scripted::{ScriptedCall, ScriptedModels, ScriptedReply, Scripts, SimulatedTools};
use midturn_core::engine::{AgentSpec, Coordinator, Message, VirtualClock};
use midturn_core::rules::event::{Event, EventKind, Scope};
use midturn_core::rules::id::{AgentName, CallId};
use midturn_core::rules::mail::{Sender, Urgency};
use midturn_core::rules::settings::{Concurrency, Settings};
use midturn_core::rules::time::{Micros, Span};
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{Waits, World, stuck};

const AGENTS: usize = 5;

/// The longest timeout that a script names; the longest wait without one is 10 minutes.
const LONGEST: u64 = 900;

/// A call of a script.
#[derive(Clone, Debug)]
enum Asks {
    Wait { names: Vec<usize>, all: bool, timeout: Option<u64> },
    Work(u64),
    Write { to: usize, urgency: Urgency },
}

/// Something that a person does.
#[derive(Clone, Debug)]
enum Person {
    Stop(usize),
    Close(usize),
    Write(usize, Urgency),
}

#[derive(Clone, Debug)]
struct Plan {
    /// For each agent the turns, for each turn the calls.
    scripts: Vec<Vec<Vec<Asks>>>,
    person: Vec<(u64, Person)>,
    all_at_once: bool,
}

fn asks() -> impl Strategy<Value = Asks> {
    let names = proptest::collection::btree_set(0..AGENTS, 1..=3);
    let timeout = proptest::option::of(1..LONGEST);
    prop_oneof![
        4 => (names, any::<bool>(), timeout).prop_map(|(names, all, timeout)| Asks::Wait {
            names: names.into_iter().collect(), all, timeout
        }),
        2 => (0..400u64).prop_map(Asks::Work),
        1 => (0..AGENTS, 0..3usize).prop_map(|(to, urgency)| Asks::Write { to, urgency: Urgency::ALL[urgency] }),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let turn = proptest::collection::vec(asks(), 1..=3);
    let script = proptest::collection::vec(turn, 0..=3);
    let person = prop_oneof![
        1 => (0..AGENTS).prop_map(Person::Stop),
        1 => (0..AGENTS).prop_map(Person::Close),
        2 => (0..AGENTS, 0..4usize).prop_map(|(to, urgency)| Person::Write(to, Urgency::ALL[urgency])),
    ];
    (
        proptest::collection::vec(script, AGENTS),
        proptest::collection::vec((0..1_500u64, person), 0..6),
        any::<bool>(),
    )
        .prop_map(|(scripts, person, all_at_once)| Plan { scripts, person, all_at_once })
}

fn letter(agent: usize) -> String {
    format!("a{agent}")
}

fn name(agent: usize) -> AgentName {
    AgentName::new(letter(agent)).unwrap()
}

fn call(id: String, asks: &Asks) -> Arc<ScriptedCall> {
    let (tool, input) = match asks {
        Asks::Wait { names, all, timeout } => {
            let names: Vec<String> = names.iter().map(|name| letter(*name)).collect();
            let mut input = json!({"names": names, "mode": if *all { "all" } else { "any" }});
            if let Some(seconds) = timeout {
                input["timeout"] = format!("{seconds}s").into();
            }
            ("wait_agents", input)
        }
        Asks::Work(_) => ("bash", json!({})),
        Asks::Write { to, urgency } => {
            ("send_message", json!({"to": letter(*to), "text": "hello", "urgency": urgency.as_str()}))
        }
    };
    let takes = if let Asks::Work(seconds) = asks { Span::secs(*seconds) } else { Span::ZERO };
    Arc::new(ScriptedCall { takes, ..ScriptedCall::new(&id, tool, input) })
}

/// The turns of the plan, and an answer for every run that mail may start besides.
fn scripts(plan: &Plan) -> Scripts {
    let script = |(agent, turns): (usize, &Vec<Vec<Asks>>)| {
        let turn = |(t, calls): (usize, &Vec<Asks>)| ScriptedReply {
            tools: calls.iter().enumerate().map(|(c, asks)| call(format!("t{t}c{c}"), asks)).collect(),
            ..ScriptedReply::default()
        };
        let turns = turns.iter().enumerate().map(turn);
        let answers = std::iter::repeat_n(ScriptedReply::says("done"), 200);
        (name(agent), turns.chain(answers).collect())
    };
    plan.scripts.iter().enumerate().map(script).collect::<HashMap<_, _>>()
}

#[derive(Default)]
struct Log(Mutex<Vec<Event>>);

impl Observer for Log {
    fn event(&self, event: &Event) {
        self.0.lock().push(event.clone());
    }
}

async fn acts(coordinator: &Coordinator, person: &Person) {
    // A refusal (an agent that is closed already, say) is as good as anything here.
    match person {
        Person::Stop(agent) => {
            let _ = coordinator.stop(&letter(*agent), Sender::User, Scope::Agent).await;
        }
        Person::Close(agent) => {
            let _ = coordinator.close(&letter(*agent), Sender::User).await;
        }
        Person::Write(agent, urgency) => {
            let message = Message::new(Sender::User, letter(*agent), "hello");
            let _ = coordinator.send(Message { urgency: Some(*urgency), ..message }).await;
        }
    }
}

/// Everything that happened, to the end of time.
fn played(plan: &Plan) -> Vec<Event> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let log = Arc::new(Log::default());
    runtime.block_on(async {
        let clock = Arc::new(VirtualClock::default());
        let scripts = scripts(plan);
        let models = Arc::new(ScriptedModels::new(clock.clone(), scripts.clone()));
        let tools = Arc::new(SimulatedTools::new(clock.clone(), scripts));
        let builder = Coordinator::builder(models, tools).clock(clock.clone()).observer(log.clone());
        let coordinator = builder.start().await.unwrap();
        let concurrency = if plan.all_at_once { Concurrency::All } else { Concurrency::Safe };
        let settings = Settings { concurrency, ..Settings::default() };
        for agent in 0..AGENTS {
            let parent = (agent > 0).then(|| name(agent - 1));
            let spec = AgentSpec::new(name(agent), "scripted");
            let spec = AgentSpec { parent, prompt: Some("Go.".into()), settings: settings.clone(), ..spec };
            coordinator.cast_agent(spec).await.unwrap();
        }
        for ((at, person), order) in plan.person.iter().cloned().zip(0..) {
            let (clock, coordinator) = (clock.clone(), coordinator.clone());
            tokio::spawn(async move {
                clock.until(Micros(at * 1_000_000), Phase::Arrival(order)).await;
                acts(&coordinator, &person).await;
            });
        }
        clock.drive().await.unwrap();
    });
    std::mem::take(&mut *log.0.lock())
}

/// The waits that are under way, as the events tell.
#[derive(Default)]
struct Reader {
    open: BTreeMap<(String, CallId), Open>,
    /// How many were refused, and how many came to their end.
    refused: usize,
    ended: usize,
}

struct Open {
    wait: Waits,
    since: Micros,
    timeout: Span,
    /// Whether it would have been for ever when it began.
    closes: bool,
}

impl Reader {
    fn world(&self) -> World {
        let mut world = World::new();
        for ((agent, _), open) in &self.open {
            world.entry(agent.clone()).or_default().push(open.wait.clone());
        }
        world
    }

    fn read(&mut self, event: &Event) -> Result<(), TestCaseError> {
        let Some(agent) = event.at.agent.as_ref().map(|name| name.as_str().to_owned()) else { return Ok(()) };
        match &event.kind {
            EventKind::ToolStarted { tool, name, input, .. } if &**name == "wait_agents" => {
                let key = (agent.clone(), tool.clone());
                let open =
                    Open { wait: waits(input), since: event.t, timeout: timeout(input), closes: false };
                self.open.insert(key.clone(), open);
                let closes = stuck(&self.world()).contains(&agent);
                self.open.get_mut(&key).unwrap().closes = closes;
            }
            EventKind::ToolFinished { tool, name, output, .. } if &**name == "wait_agents" => {
                let key = (agent.clone(), tool.clone());
                let closes = stuck(&self.world()).contains(&agent);
                // A call that was skipped never began.
                let Some(open) = self.open.remove(&key) else { return Ok(()) };
                prop_assert!(event.t.since(open.since) <= open.timeout, "{agent} waited beyond its deadline");
                if output.contains("would never end") {
                    self.refused += 1;
                    prop_assert!(
                        closes || open.closes,
                        "{agent}'s wait was refused and is in no circle: {output}"
                    );
                    prop_assert!(
                        output.contains(&format!("({agent} waits for ")),
                        "it isn't named: {output}"
                    );
                } else {
                    self.ended += 1;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn waits(input: &Value) -> Waits {
    let names = input["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
    Waits { names: names.collect(), all: input["mode"] == "all" }
}

fn timeout(input: &Value) -> Span {
    input["timeout"].as_str().map_or(Span::secs(600), |timeout| timeout.parse().unwrap())
}

/// What holds of every course of events. How many waits were refused, and how many ended.
fn holds(events: &[Event]) -> Result<(usize, usize), TestCaseError> {
    let mut reader = Reader::default();
    for (index, event) in events.iter().enumerate() {
        reader.read(event)?;
        // Within an instant a refused wait is still to be told of.
        let instant_is_over = events.get(index + 1).is_none_or(|next| next.t > event.t);
        if instant_is_over {
            let hang = stuck(&reader.world());
            prop_assert!(hang.is_empty(), "{hang:?} wait for each other at {} s", event.t);
        }
    }
    prop_assert!(reader.open.is_empty(), "{:?} still wait at the end", reader.open.keys());
    let count = |wanted: fn(&EventKind) -> bool| events.iter().filter(|event| wanted(&event.kind)).count();
    let began = count(|kind| matches!(kind, EventKind::RunStarted { .. }));
    let ended = count(|kind| matches!(kind, EventKind::RunFinished { .. }));
    prop_assert_eq!(began, ended, "a run has no end");
    Ok((reader.refused, reader.ended))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nobody_hangs_and_only_what_would_hang_is_refused(plan in plan()) {
        holds(&played(&plan))?;
    }
}

#[test]
fn the_random_plans_have_waits_that_end_and_waits_that_are_refused() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut refused, mut ended) = (0, 0);
    for _ in 0..60 {
        let plan = plan().new_tree(&mut runner).unwrap().current();
        let (of_plan, over) = holds(&played(&plan)).unwrap();
        (refused, ended) = (refused + of_plan, ended + over);
    }
    assert!(refused > 20 && ended > 60, "{refused} refused, {ended} ended");
}
