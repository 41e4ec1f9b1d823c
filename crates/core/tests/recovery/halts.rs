//! A7: what was answered of a close or a stop holds wherever the process ends, between the two
//! records of one step too.

use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::{ErrorKind, Model, ModelFactory, ModelFailure, Request};
use midturn_core::engine::{AgentSpec, Coordinator, Message, ToolSet};
use midturn_core::rules::conversation::Reply;
use midturn_core::rules::event::{Event, EventKind, Scope};
use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::mail::{ReceiptState, Rest, ReturnReason, Role, Sender, Standing};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::ledger::Ledger;
use crate::name;

/// A model that says when it is asked, and speaks no word until it is cut.
#[derive(Clone, Default)]
struct Waits(Arc<Notify>);

#[async_trait]
impl Model for Waits {
    async fn call(&mut self, request: Request<'_>) -> Result<Reply, ModelFailure> {
        request.progress.sent();
        self.0.notify_one();
        request.cancel.cancelled().await;
        Err(ModelFailure::new(ErrorKind::Cancelled, "cut"))
    }
}

#[async_trait]
impl ModelFactory for Waits {
    async fn model(&self, _: &AgentName, _: &str) -> Result<Box<dyn Model>, ModelFailure> {
        Ok(Box::new(self.clone()))
    }
}

/// Which of them the person asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    Close,
    Stop,
}

/// What was answered with a yes.
#[derive(Default)]
struct Answered {
    halted: bool,
    sent: Vec<&'static str>,
}

async fn begin(ledger: &Arc<Ledger>, waits: &Waits) -> Option<Coordinator> {
    let builder = Coordinator::builder(Arc::new(waits.clone()), Arc::new(ToolSet::default()));
    let builder = builder.store(ledger.clone());
    let begun = ledger.len() > 0;
    let builder = if begun { builder.resume(ledger.journal()) } else { builder };
    builder.start().await.ok()
}

/// The first process: a worker is at work, is halted, and a peer writes to it before and after.
async fn first_life(asks: Asks, ledger: &Arc<Ledger>, answered: &Mutex<Answered>) -> Option<()> {
    let waits = Waits::default();
    let coordinator = begin(ledger, &waits).await?;
    let prompt = Some("Begin.".to_owned());
    let worker = AgentSpec { role: Role::Lead, prompt, ..AgentSpec::new(name("worker"), "waits") };
    let peer = AgentSpec { parent: Some(name("worker")), ..AgentSpec::new(name("peer"), "waits") };
    for spec in [worker, peer] {
        coordinator.spawn_agent(spec).await.ok()?;
    }
    tokio::select! {
        () = waits.0.notified() => {}
        // The process has ended before.
        () = coordinator.quiet() => return None,
    }
    writes(&coordinator, "before", answered).await;
    answered.lock().halted = match asks {
        Asks::Close => coordinator.close("worker", Sender::User).await.is_ok(),
        Asks::Stop => coordinator.stop("worker", Sender::User, Scope::Agent).await.is_ok(),
    };
    coordinator.quiet().await;
    writes(&coordinator, "after", answered).await;
    Some(())
}

async fn writes(coordinator: &Coordinator, id: &'static str, answered: &Mutex<Answered>) {
    let peer = Sender::Agent(name("peer"));
    let message = Message { id: Some(MessageId::new(id)), ..Message::new(peer, "worker", "Do.") };
    if coordinator.send(message).await.is_ok() {
        answered.lock().sent.push(id);
    }
}

/// How often it was told that the worker is closed.
fn closes(events: &[Event]) -> usize {
    let own = events.iter().filter(|event| event.at.agent == Some(name("worker")));
    own.filter(|event| matches!(event.kind, EventKind::AgentClosed {})).count()
}

/// The second process, and what has to hold in it.
async fn second_life(asks: Asks, ledger: &Arc<Ledger>, answered: &Answered) {
    ledger.live(usize::MAX);
    let coordinator = begin(ledger, &Waits::default()).await.unwrap();
    coordinator.go_on().await;
    if !answered.halted {
        return;
    }
    coordinator.quiet().await;
    let (rest, reason) = match asks {
        Asks::Close => (Rest::Closed, ReturnReason::Closed),
        Asks::Stop => (Rest::Stopped, ReturnReason::Stopped),
    };
    assert_eq!(coordinator.agent("worker").unwrap().standing, Standing::Resting(rest));
    assert_eq!(closes(&ledger.events()), usize::from(asks == Asks::Close));
    for id in &answered.sent {
        let receipts = coordinator.receipts(&Sender::Agent(name("peer")), &MessageId::new(*id));
        let states: Vec<ReceiptState> = receipts.iter().map(|receipt| receipt.state()).collect();
        assert_eq!(states, [ReceiptState::Returned(reason)], "{id}");
    }
}

/// Ends the first process after each of its transactions.
async fn end_everywhere(asks: Asks) {
    let whole = Arc::new(Ledger::default());
    whole.live(usize::MAX);
    assert!(first_life(asks, &whole, &Mutex::default()).await.is_some());
    for transactions in 1..=whole.len() {
        let (ledger, answered) = (Arc::new(Ledger::default()), Mutex::default());
        ledger.live(transactions);
        first_life(asks, &ledger, &answered).await;
        println!("{asks:?}, ended after {transactions} of {} transactions", whole.len());
        second_life(asks, &ledger, &answered.into_inner()).await;
    }
}

#[tokio::test]
async fn a7_a_close_that_was_answered_holds_wherever_the_process_ends() {
    end_everywhere(Asks::Close).await;
}

#[tokio::test]
async fn a7_a_stop_that_was_answered_holds_wherever_the_process_ends() {
    end_everywhere(Asks::Stop).await;
}
