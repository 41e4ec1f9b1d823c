//! A scenario of about twenty events on virtual time, engine only: the example of
//! `docs/scenarios.md`, a correction between two edits. Reading the file and checking what
//! came of it is measured with the binary.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use midturn_core::engine::ports::{Clock, Observer, Phase};
use midturn_core::engine::scripted::{ScriptedCall, ScriptedModels, ScriptedReply, Scripts, SimulatedTools};
use midturn_core::engine::{AgentSpec, Coordinator, Message, VirtualClock};
use midturn_core::rules::event::Event;
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::{Role, Sender};
use midturn_core::rules::time::{Micros, Span};

use super::{Case, Row, cpu, fleet};

pub fn row() -> Row {
    Row {
        name: "a scenario on virtual time",
        target: None,
        per_round: 200,
        countable: true,
        cases: vec![Case::measured("the example of docs/scenarios.md", |n| {
            let scripts = scripts();
            cpu::measure(|| {
                for _ in 0..n {
                    let events = replay(&scripts);
                    assert!((15..=25).contains(&events), "{events} events");
                }
            })
        })],
    }
}

fn scripts() -> Scripts {
    let takes = |id: &str, tool: &str, takes| {
        Arc::new(ScriptedCall {
            takes,
            result: "fn main() {}".to_owned(),
            ..fleet::call(id.to_owned(), tool)
        })
    };
    let tools = vec![
        takes("e1", "edit", Span::secs(1)),
        takes("e2", "edit", Span::secs(1)),
        takes("r1", "read", Span::millis(500)),
    ];
    let first = ScriptedReply {
        text: "Three calls to make.".to_owned(),
        takes: Span::secs(1),
        tools,
        ..ScriptedReply::default()
    };
    let last = ScriptedReply { text: "Done as corrected.".to_owned(), ..ScriptedReply::default() };
    Scripts::from([(worker(), Arc::from([first, last]))])
}

fn worker() -> AgentName {
    AgentName::new("worker").unwrap()
}

#[derive(Default)]
struct Counts(AtomicU64);

impl Observer for Counts {
    fn event(&self, _: &Event) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Plays it and returns how many events there were.
fn replay(scripts: &Scripts) -> u64 {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let counts = Arc::new(Counts::default());
    let clock = Arc::new(VirtualClock::default());
    runtime.block_on(async {
        let models = Arc::new(ScriptedModels::new(clock.clone(), scripts.clone()));
        let tools = Arc::new(SimulatedTools::new(clock.clone(), scripts.clone()));
        let builder = Coordinator::builder(models, tools).clock(clock.clone()).observer(counts.clone());
        let coordinator = builder.start().await.unwrap();
        spawn_both(&coordinator).await;
        let sending = {
            let (clock, coordinator) = (clock.clone(), coordinator.clone());
            async move {
                clock.until(Micros(1_500_000), Phase::Arrival(0)).await;
                let fix = Message::new(
                    Sender::Agent(lead()),
                    "worker",
                    "Stop: use the new name `load`, not `open`.",
                );
                coordinator.send(fix).await.unwrap();
            }
        };
        tokio::spawn(sending);
        clock.drive().await.unwrap();
    });
    counts.0.load(Ordering::Relaxed)
}

fn lead() -> AgentName {
    AgentName::new("lead").unwrap()
}

async fn spawn_both(coordinator: &Coordinator) {
    let above = AgentSpec { role: Role::Lead, model: None, ..AgentSpec::new(lead(), "") };
    let below = AgentSpec {
        parent: Some(lead()),
        prompt: Some("Rename the five call sites.".to_owned()),
        ..AgentSpec::new(worker(), "scripted")
    };
    for spec in [above, below] {
        coordinator.spawn_agent(spec).await.unwrap();
    }
}
