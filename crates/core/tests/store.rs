//! A store that fails is waited for, and then ends every run: no request leaves and no message is
//! accepted (semantics.md, section 7), wherever in a run it happens.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use midturn_core::engine::ports::archive::KeptMail;
use midturn_core::engine::ports::store::MemoryStore;
use midturn_core::engine::ports::{Clock, Commit, Observer, RealClock, Store, StoreError, Transaction};
use midturn_core::engine::scripted::{ScriptedModels, ScriptedReply, Scripts, SimulatedTools};
use midturn_core::engine::{AgentSpec, Coordinator, Message};
use midturn_core::rules::event::{Event, EventKind, Outcome, Scope};
use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::mail::{ReceiptState, Refusal, Sender};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

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

type Held = (Arc<Transaction>, oneshot::Sender<Result<(), StoreError>>);

/// Fails after so many transactions, and is waited for until it is mended.
#[derive(Default)]
struct Waiting {
    room: Mutex<Option<u64>>,
    held: Mutex<Vec<Held>>,
    fails: Notify,
    kept: Mutex<Vec<Arc<Transaction>>>,
}

impl Waiting {
    fn after(room: u64) -> Self {
        Self { room: Mutex::new(Some(room)), ..Self::default() }
    }

    fn mend(&self) {
        *self.room.lock() = None;
        for (transaction, told) in std::mem::take(&mut *self.held.lock()) {
            self.kept.lock().push(transaction);
            // Nobody has to wait for it.
            let _ = told.send(Ok(()));
        }
    }

    /// How many model calls are told that are durable.
    fn calls(&self) -> usize {
        let kept = self.kept.lock();
        let events = kept.iter().flat_map(|transaction| &transaction.events);
        events.filter(|event| matches!(event.kind, EventKind::ModelStarted { .. })).count()
    }
}

#[async_trait]
impl Store for Waiting {
    fn submit(&self, transaction: Arc<Transaction>) -> Commit {
        let mut room = self.room.lock();
        match &mut *room {
            Some(0) => {
                let (told, waits) = oneshot::channel();
                self.held.lock().push((transaction, told));
                self.fails.notify_one();
                return Commit::Waits(waits);
            }
            Some(left) => *left -= 1,
            None => {}
        }
        self.kept.lock().push(transaction);
        Commit::Done(Ok(()))
    }

    fn trouble(&self) -> Option<Arc<str>> {
        (*self.room.lock() == Some(0)).then(|| "it is being waited for".into())
    }

    async fn known(&self, from: &Sender, id: &MessageId) -> Result<Vec<KeptMail>, StoreError> {
        let kept = self.kept.lock();
        let mut known = Vec::new();
        for transaction in &*kept {
            let accepted = transaction.accepted.iter().filter(|a| a.mail.from == *from && a.mail.id == *id);
            known.extend(accepted.map(|accepted| KeptMail {
                accepted: accepted.clone(),
                seq: 0,
                state: ReceiptState::Queued,
            }));
            for moved in transaction.receipts.iter().filter(|moved| moved.from == *from && moved.id == *id) {
                known.iter_mut().for_each(|kept| kept.state = moved.state.clone());
            }
        }
        Ok(known)
    }
}

/// A session with an agent that has two turns of work and another one to write to.
async fn begun(store: &Arc<Waiting>) -> (Coordinator, Arc<ScriptedModels>) {
    let worker = AgentName::new("worker").unwrap();
    let scripts: Scripts = HashMap::from([(
        worker.clone(),
        vec![ScriptedReply::says("one"), ScriptedReply::says("two")].into(),
    )]);
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let models = Arc::new(ScriptedModels::recording(clock.clone(), scripts.clone()));
    let tools = Arc::new(SimulatedTools::new(clock.clone(), scripts));
    let builder = Coordinator::builder(models.clone(), tools).clock(clock).store(store.clone());
    let coordinator = builder.start().await.unwrap();
    coordinator.spawn_agent(AgentSpec::new(worker, "scripted")).await.unwrap();
    (coordinator, models)
}

/// Lets everybody else go as far as they can.
async fn all_wait() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}

/// A16: whatever is being recorded when the store fails, no request leaves before it is there, a
/// message is refused at once, and when the store answers again all goes on.
#[tokio::test]
async fn while_a_store_is_waited_for_nothing_starts_and_mail_is_refused_at_once() {
    let mut failed_at_all = 0;
    for room in 2..64 {
        let store = Arc::new(Waiting::after(room));
        let (coordinator, models) = begun(&store).await;
        let works = tokio::spawn({
            let coordinator = coordinator.clone();
            async move {
                for text in ["go", "on"] {
                    coordinator.send_message("worker", text, false).await.ok();
                    coordinator.quiet().await;
                }
            }
        });
        all_wait().await;
        assert!(models.asked().len() <= store.calls(), "no request leaves unrecorded (room {room})");
        if store.trouble().is_some() {
            failed_at_all += 1;
            for (to, text) in [("worker", "more"), ("nobody", "more"), ("worker", " ")] {
                let refused = coordinator.send_message(to, text, false).await.unwrap_err();
                if (to, text) == ("worker", "more") {
                    assert_eq!(refused, Refusal::Store("it is being waited for".into()));
                }
            }
        }
        store.mend();
        works.await.unwrap();
        coordinator.quiet().await;
        assert_eq!(coordinator.broken(), None);
        let end = coordinator.agent("worker").unwrap().last_end;
        assert!(end.is_none_or(|end| end.outcome == Outcome::Finished), "room {room}");
        assert_eq!(models.asked().len(), store.calls());
        coordinator.send_message("worker", "again", false).await.unwrap();
    }
    assert!(failed_at_all > 5, "{failed_at_all}");
}

/// A16: a stop acts while the store is waited for.
#[tokio::test]
async fn a_stop_acts_while_the_store_is_waited_for() {
    for room in 2..64 {
        let store = Arc::new(Waiting::after(room));
        let (coordinator, models) = begun(&store).await;
        let sends = tokio::spawn({
            let coordinator = coordinator.clone();
            async move { coordinator.send_message("worker", "go", false).await.is_ok() }
        });
        all_wait().await;
        if store.trouble().is_none() {
            break;
        }
        let asked = models.asked().len();
        let stops = tokio::spawn({
            let coordinator = coordinator.clone();
            async move { coordinator.stop("worker", Sender::User, Scope::Agent).await.unwrap() }
        });
        all_wait().await;
        store.mend();
        let (_, stopped) = (sends.await.unwrap(), stops.await.unwrap());
        coordinator.quiet().await;
        if !stopped.stopped.is_empty() {
            assert_eq!(models.asked().len(), asked, "nothing leaves behind a stop (room {room})");
        }
    }
}

/// A18: an id that the coordinator has forgotten is no new message.
#[tokio::test]
async fn an_old_id_stands_for_its_message_however_many_came_after_it() {
    let store = Arc::new(Waiting::default());
    let (coordinator, _) = begun(&store).await;
    // Whatever is sent to it has come to its end at once.
    coordinator.close("worker", Sender::User).await.unwrap();
    let message = |id: &str, text: &str| {
        let id = Some(MessageId::new(id));
        Message { id, ..Message::new(Sender::User, "worker", text) }
    };
    coordinator.send(message("first", "hello")).await.unwrap();
    for n in 0..16_384 {
        coordinator.send(message(&format!("m{n}"), "x")).await.unwrap();
    }
    assert!(coordinator.receipts(&Sender::User, &MessageId::new("first")).is_empty(), "it is forgotten");
    let kept = store.kept.lock().len();
    let again = coordinator.send(message("first", "hello")).await.unwrap();
    assert!(matches!(again.state(), ReceiptState::Returned(_)), "{:?}", again.state());
    let other = coordinator.send(message("first", "something else")).await.unwrap_err();
    assert_eq!(other, Refusal::DuplicateId(MessageId::new("first")));
    let accepted: usize = store.kept.lock()[kept..].iter().map(|kept| kept.accepted.len()).sum();
    assert_eq!(accepted, 0, "nothing was accepted twice");
}
