//! What turn 1,000 of one conversation costs beside turn 10.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use midturn_core::engine::ports::{Model, ModelFactory, ModelFailure, Observer, RealClock, Request};
use midturn_core::engine::scripted::ScriptedModels;
use midturn_core::rules::conversation::{Reply, StopReason};
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::AgentName;
use parking_lot::Mutex;

use super::{cpu, fleet};

/// Turns around the one that is meant: one alone is too short to be measured.
const WINDOW: usize = 10;

/// A model that looks at nothing but the end of the conversation, as one does that keeps
/// what it encoded.
struct Fresh {
    turns: u64,
}

#[async_trait]
impl ModelFactory for Fresh {
    async fn model(&self, _: &AgentName, _: &str) -> Result<Box<dyn Model>, ModelFailure> {
        Ok(Box::new(Fresh { turns: self.turns }))
    }
}

#[async_trait]
impl Model for Fresh {
    async fn call(&mut self, request: Request<'_>) -> Result<Reply, ModelFailure> {
        request.progress.sent();
        let mut reply = fleet::reply(request.call);
        for word in reply.text().split_inclusive(' ') {
            request.progress.text(word);
        }
        if request.call > self.turns {
            (reply.blocks, reply.stop_reason) = (reply.blocks[..1].to_vec(), StopReason::EndTurn);
        }
        Ok(reply)
    }
}

/// Notes the processor time at which each turn begins.
#[derive(Default)]
struct Stamps(Mutex<Vec<Duration>>);

impl Observer for Stamps {
    fn event(&self, event: &Event) {
        if matches!(event.kind, EventKind::ModelStarted { .. }) {
            self.0.lock().push(cpu::used());
        }
    }
}

/// Prints the figures of both models.
pub fn table(measuring: bool) {
    let rounds = if measuring { 9 } else { 1 };
    println!(
        "\nturn 1,000 beside turn 10 of one conversation  (ns a turn: medians of {rounds} conversations)"
    );
    compare("a model that keeps what it encoded, streaming", rounds, |turns| Arc::new(Fresh { turns }));
    compare("the scripted model", rounds, |turns| {
        let script = fleet::script(u32::try_from(turns).unwrap(), "noop");
        let scripts = [(AgentName::new("agent-0").unwrap(), script)].into();
        Arc::new(ScriptedModels::new(Arc::new(RealClock::start()), scripts))
    });
}

fn compare(name: &str, rounds: usize, models: impl Fn(u64) -> Arc<dyn ModelFactory>) {
    let (mut early, mut late) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let stamps = converse(1_010, models(1_010));
        early.push(a_turn(&stamps, 10));
        late.push(a_turn(&stamps, 1_000));
    }
    early.sort_by(f64::total_cmp);
    late.sort_by(f64::total_cmp);
    let (early, late) = (early[rounds / 2], late[rounds / 2]);
    println!("  {name:<46} {early:>8.0} {late:>8.0}   {:>5.2}  (target: 1.5)", late / early);
}

fn a_turn(stamps: &[Duration], turn: usize) -> f64 {
    let (from, to) = (turn - WINDOW / 2, turn + WINDOW / 2);
    (stamps[to] - stamps[from]).as_nanos() as f64 / WINDOW as f64
}

fn converse(turns: usize, models: Arc<dyn ModelFactory>) -> Vec<Duration> {
    let stamps = Arc::new(Stamps(Mutex::new(Vec::with_capacity(turns + 1))));
    fleet::runtime().block_on(async {
        let coordinator = fleet::observed(models, stamps.clone()).await;
        coordinator.spawn_agent(fleet::prompted(0)).await.unwrap();
        coordinator.quiet().await;
    });
    let stamps = std::mem::take(&mut *stamps.0.lock());
    assert_eq!(stamps.len(), turns + 1);
    stamps
}
