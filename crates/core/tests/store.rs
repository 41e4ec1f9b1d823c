//! A store that fails ends every run: no request leaves and no message is accepted
//! (semantics.md, section 7), wherever in a run it happens.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use midturn_core::engine::ports::store::MemoryStore;
use midturn_core::engine::ports::{Clock, Commit, Observer, RealClock, Store, StoreError, Transaction};
use midturn_core::engine::scripted::{ScriptedModels, ScriptedReply, Scripts, SimulatedTools};
use midturn_core::engine::{AgentSpec, Coordinator};
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::AgentName;

/// Takes so many transactions and then no more.
struct Full {
    room: AtomicU64,
}

impl Store for Full {
    fn submit(&self, transaction: Arc<Transaction>) -> Commit {
        let took = self.room.fetch_update(Ordering::AcqRel, Ordering::Acquire, |room| room.checked_sub(1));
        match took {
            Ok(_) => MemoryStore.submit(transaction),
            Err(_) => Commit::Done(Err(StoreError::Failed("the disk is full".into()))),
        }
    }
}

#[derive(Default)]
struct Log(parking_lot::Mutex<Vec<Event>>);

impl Observer for Log {
    fn event(&self, event: &Event) {
        self.0.lock().push(event.clone());
    }
}

/// Two turns' worth of work in a session whose store takes `room` transactions; gives how
/// many requests left, how many events were told, and whether a message was accepted at the end.
async fn play(room: u64) -> (usize, u64, bool) {
    let worker = AgentName::new("worker").unwrap();
    let scripts: Scripts = HashMap::from([(
        worker.clone(),
        vec![ScriptedReply::says("one"), ScriptedReply::says("two")].into(),
    )]);
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let models = Arc::new(ScriptedModels::recording(clock.clone(), scripts.clone()));
    let tools = Arc::new(SimulatedTools::new(clock.clone(), scripts));
    let log = Arc::new(Log::default());
    let builder = Coordinator::builder(models.clone(), tools).clock(clock).observer(log.clone());
    let Ok(coordinator) = builder.store(Arc::new(Full { room: room.into() })).start().await else {
        return (0, 0, false);
    };
    let spec = AgentSpec { prompt: Some("go".into()), ..AgentSpec::new(worker, "scripted") };
    let spawned = coordinator.spawn_agent(spec).await;
    coordinator.quiet().await;
    let accepted = coordinator.send_message("worker", "more", false).await.is_ok();
    coordinator.quiet().await;
    assert!(spawned.is_ok() || !accepted);
    let told = log.0.lock().len() as u64;
    let requests = log.0.lock().iter().filter(|e| matches!(e.kind, EventKind::ModelStarted { .. })).count();
    assert_eq!(models.asked().len(), requests, "a request leaves only once it is recorded");
    (requests, told, accepted)
}

#[tokio::test]
async fn a_store_that_fails_at_any_instant_ends_everything_and_nothing_unrecorded_is_told() {
    let (requests, all, accepted) = play(u64::MAX).await;
    assert_eq!((requests, accepted), (2, true));
    let mut before = 0;
    for room in 0..all {
        let (requests, told, accepted) = play(room).await;
        assert!(told >= before && told <= all, "{told} events with room for {room}");
        assert!(requests <= 2);
        assert!(!accepted || told > all / 2, "a message was accepted into memory only");
        before = told;
    }
}
