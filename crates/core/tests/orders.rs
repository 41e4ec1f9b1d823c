//! Orders that matter (decision 0028): each of these fails when what it is about is done the other
//! way round.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use midturn_core::engine::ports::store::{Hurry, Unhurried};
use midturn_core::engine::ports::{
    CallTraits, Clock, Commit, Observer, Output, RealClock, Returned, Store, StoreError, Tool, ToolCall,
    ToolSpec, Transaction, Workplace,
};
use midturn_core::engine::scripted::{ScriptedCall, ScriptedModels, ScriptedReply, Scripts, SimulatedTools};
use midturn_core::engine::{AgentSpec, Coordinator, Meant, Message, ToolSet};
use midturn_core::rules::approval::{Answer, Mode, Policy};
use midturn_core::rules::conversation::ToolUse;
use midturn_core::rules::event::{Event, EventKind, Scope};
use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::mail::Sender;
use midturn_core::rules::time::Span;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

type Told = oneshot::Sender<Result<(), StoreError>>;

fn worker() -> AgentName {
    AgentName::new("worker").unwrap()
}

fn call(id: &str, takes: Span) -> Arc<ScriptedCall> {
    let input = serde_json::json!({});
    Arc::new(ScriptedCall { takes, safe: Some(true), ..ScriptedCall::new(id, "work", input) })
}

/// A worker that has begun to do what the script says.
async fn begun(
    calls: &[(&str, Span)],
    store: Arc<dyn Store>,
    observer: Arc<dyn Observer>,
    workplace: impl FnOnce(Arc<dyn Clock>, Scripts) -> Arc<dyn Workplace>,
) -> Coordinator {
    let coordinator = started(Policy::default(), calls, store, observer, workplace).await;
    begin(&coordinator).await;
    coordinator
}

async fn started(
    policy: Policy,
    calls: &[(&str, Span)],
    store: Arc<dyn Store>,
    observer: Arc<dyn Observer>,
    workplace: impl FnOnce(Arc<dyn Clock>, Scripts) -> Arc<dyn Workplace>,
) -> Coordinator {
    let tools = calls.iter().map(|(id, takes)| call(id, *takes)).collect();
    let said = [ScriptedReply { tools, ..ScriptedReply::says("I look.") }, ScriptedReply::says("Done.")];
    let scripts = Scripts::from([(worker(), said.into())]);
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let models = Arc::new(ScriptedModels::new(clock.clone(), scripts.clone()));
    let builder = Coordinator::builder(models, workplace(clock.clone(), scripts)).approvals(policy);
    builder.clock(clock).store(store).observer(observer).start().await.unwrap()
}

async fn begin(coordinator: &Coordinator) {
    let spec = AgentSpec { prompt: Some("Go.".into()), ..AgentSpec::new(worker(), "scripted") };
    coordinator.spawn_agent(spec).await.unwrap();
}

fn simulated(clock: Arc<dyn Clock>, scripts: Scripts) -> Arc<dyn Workplace> {
    Arc::new(SimulatedTools::new(clock, scripts))
}

/// Makes nothing durable before somebody waits for it.
#[derive(Debug, Default)]
struct Unasked(Mutex<Vec<Told>>);

impl Hurry for Unasked {
    fn hurry(&self) {
        self.0.lock().drain(..).for_each(|told| drop(told.send(Ok(()))));
    }
}

struct Lazy(Arc<Unasked>);

impl Store for Lazy {
    fn submit(&self, _: Arc<Transaction>) -> Commit {
        let (told, waits) = oneshot::channel();
        self.0.0.lock().push(told);
        Commit::Unhurried(Unhurried::new(waits, self.0.clone()))
    }
}

/// When each call's end was told.
struct Ends {
    began: Instant,
    told: Mutex<Vec<(String, Duration)>>,
}

impl Observer for Ends {
    fn event(&self, event: &Event) {
        if let EventKind::ToolFinished { tool, .. } = &event.kind {
            self.told.lock().push((tool.to_string(), self.began.elapsed()));
        }
    }
}

/// What is put off is durable before the driver waits for anything but the store.
#[tokio::test(start_paused = true)]
async fn a_result_is_told_while_the_turns_other_calls_run() {
    let ends = Arc::new(Ends { began: Instant::now(), told: Mutex::default() });
    let store = Arc::new(Lazy(Arc::default()));
    let calls = [("short", Span::ZERO), ("long", Span::secs(60))];
    let coordinator = begun(&calls, store, ends.clone(), simulated).await;
    coordinator.quiet().await;
    let told = ends.told.lock();
    let [(short, at), (long, end)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((&**short, &**long), ("short", "long"));
    assert!(*at < Duration::from_secs(1) && *end >= Duration::from_secs(60), "{told:?}");
}

/// Holds what tells that a call starts, or is asked about.
#[derive(Default)]
struct HoldsStarts {
    held: Mutex<Vec<Told>>,
    holds: Notify,
}

impl HoldsStarts {
    fn let_go(&self) {
        self.held.lock().drain(..).for_each(|told| told.send(Ok(())).unwrap());
    }
}

impl Store for HoldsStarts {
    fn submit(&self, transaction: Arc<Transaction>) -> Commit {
        let starts = |event: &Event| {
            matches!(event.kind, EventKind::ToolStarted { .. } | EventKind::ApprovalRequested { .. })
        };
        if !transaction.events.iter().any(starts) {
            return Commit::Done(Ok(()));
        }
        let (told, waits) = oneshot::channel();
        self.held.lock().push(told);
        self.holds.notify_one();
        Commit::Waits(waits)
    }
}

/// Counts the calls that begin.
#[derive(Default)]
struct Counts(AtomicUsize);

#[async_trait]
impl Tool for Counts {
    fn spec(&self) -> Arc<ToolSpec> {
        let input_schema = serde_json::json!({"type": "object"});
        Arc::new(ToolSpec { name: "work".into(), description: "counted".into(), input_schema })
    }

    fn traits(&self, _: &ToolUse) -> CallTraits {
        CallTraits::SERIAL
    }

    async fn call(&self, _: ToolCall) -> Returned {
        self.0.fetch_add(1, Ordering::Relaxed);
        Output::ok("done").into()
    }
}

struct Nobody;

impl Observer for Nobody {
    fn event(&self, _: &Event) {}
}

/// The token is looked at behind the record of the start as well as before it.
#[tokio::test]
async fn a_call_that_is_stopped_while_its_start_becomes_durable_never_runs() {
    let (store, tool) = (Arc::new(HoldsStarts::default()), Arc::new(Counts::default()));
    let tools: Vec<Arc<dyn Tool>> = vec![tool.clone()];
    let workplace = |_, _| -> Arc<dyn Workplace> { Arc::new(ToolSet::new(tools)) };
    let coordinator = begun(&[("a", Span::ZERO)], store.clone(), Arc::new(Nobody), workplace).await;
    store.holds.notified().await;
    coordinator.stop("worker", Sender::User, Scope::Agent).await.unwrap();
    store.let_go();
    coordinator.quiet().await;
    assert_eq!(tool.0.load(Ordering::Relaxed), 0);
}

/// A crash takes back a request that is not durable, and with it the word of whoever has answered it.
/// Who is told of it may answer at once.
#[tokio::test]
async fn a_person_is_asked_what_is_durable() {
    let (store, tool) = (Arc::new(HoldsStarts::default()), Arc::new(Counts::default()));
    let tools: Vec<Arc<dyn Tool>> = vec![tool.clone()];
    let workplace = |_, _| -> Arc<dyn Workplace> { Arc::new(ToolSet::new(tools)) };
    let ask = Policy { mode: Mode::Ask, ..Policy::default() };
    let answers = Arc::new(Answers::default());
    let coordinator = started(ask, &[("a", Span::ZERO)], store.clone(), answers.clone(), workplace).await;
    let _present = coordinator.attach();
    assert!(answers.0.set(coordinator.clone()).is_ok());
    begin(&coordinator).await;
    store.holds.notified().await;
    assert_eq!(coordinator.approvals().len(), 0);
    assert!(coordinator.answer("worker", "a", Meant::Only, Answer::Once).is_err());
    store.let_go();
    store.holds.notified().await;
    store.let_go();
    coordinator.quiet().await;
    assert_eq!(tool.0.load(Ordering::Relaxed), 1);
}

/// Says yes as soon as it is told of a question.
#[derive(Default)]
struct Answers(OnceLock<Coordinator>);

impl Observer for Answers {
    fn event(&self, event: &Event) {
        if let (Some(coordinator), EventKind::ApprovalRequested { tool, .. }) = (self.0.get(), &event.kind) {
            coordinator.answer("worker", tool.as_str(), Meant::Only, Answer::Once).unwrap();
        }
    }
}

/// Looks at a message's receipt when it is told that the message is there.
#[derive(Default)]
struct Looks {
    coordinator: OnceLock<Coordinator>,
    receipts: Mutex<Vec<usize>>,
}

impl Observer for Looks {
    fn event(&self, event: &Event) {
        let (Some(coordinator), EventKind::MessageQueued { message, .. }) =
            (self.coordinator.get(), &event.kind)
        else {
            return;
        };
        self.receipts.lock().push(coordinator.receipts(&Sender::User, message).len());
    }
}

/// Receipts move before anybody is told why.
#[tokio::test]
async fn who_is_told_of_a_message_finds_its_receipt() {
    let looks = Arc::new(Looks::default());
    let store = Arc::new(Lazy(Arc::default()));
    let coordinator = begun(&[("a", Span::ZERO)], store, looks.clone(), simulated).await;
    coordinator.quiet().await;
    assert!(looks.coordinator.set(coordinator.clone()).is_ok());
    let id = Some(MessageId::new("m"));
    coordinator.send(Message { id, ..Message::new(Sender::User, "worker", "more") }).await.unwrap();
    coordinator.quiet().await;
    assert_eq!(*looks.receipts.lock(), [1]);
}
