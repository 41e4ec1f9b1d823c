//! A session over a slow store that looks at what is cancelled whenever it begins or ends
//! something; and models that wait, speak, fail or panic, as their names say.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use midturn_core::engine::ports::{
    Commit, ErrorKind, Model, ModelFactory, ModelFailure, Observer, RealClock, Request, Store, Transaction,
    Workplace,
};
use midturn_core::engine::{AgentSpec, Builder, Coordinator, ToolSet};
use midturn_core::rules::conversation::{Block, Reply, ToolUse};
use midturn_core::rules::event::{Event, EventKind, Outcome};
use midturn_core::rules::id::{AgentName, CallId};
use midturn_core::rules::mail::Role;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

/// How long the store takes for a transaction.
const SLOW: Duration = Duration::from_millis(300);
/// When a test that waits for something has waited too long, in the paused clock's time.
const NEVER: Duration = Duration::from_secs(600);

pub(crate) fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

/// The tokens of the requests that are under way.
#[derive(Default)]
pub(crate) struct Tokens(Mutex<Vec<CancellationToken>>);

impl Tokens {
    /// How many requests there were, and how many of them are cancelled.
    pub(crate) fn count(&self) -> (usize, usize) {
        let tokens = self.0.lock();
        (tokens.len(), tokens.iter().filter(|token| token.is_cancelled()).count())
    }
}

/// Takes its time for each transaction, and says how many requests were cancelled whenever it
/// began one or ended one.
#[derive(Default)]
pub(crate) struct Slow {
    pub(crate) tokens: Arc<Tokens>,
    /// Set when the session stands: what comes before takes no time.
    pub(crate) is_slow: Arc<AtomicBool>,
    pub(crate) seen: Arc<Mutex<Vec<usize>>>,
    /// How many stops each transaction tells of, if any.
    pub(crate) stops: Arc<Mutex<Vec<usize>>>,
    /// How many transactions had ended when each one with a resume came.
    pub(crate) resumes: Arc<Mutex<Vec<usize>>>,
    ended: Arc<AtomicUsize>,
}

impl Store for Slow {
    fn submit(&self, transaction: Arc<Transaction>) -> Commit {
        if !self.is_slow.load(Relaxed) {
            return Commit::Done(Ok(()));
        }
        self.seen.lock().push(self.tokens.count().1);
        let is_stop = |event: &&Event| matches!(event.kind, EventKind::StopRequested { .. });
        let stops = transaction.events.iter().filter(is_stop).count();
        self.stops.lock().extend((stops > 0).then_some(stops));
        let ended = self.ended.load(Relaxed);
        self.resumes.lock().extend((!transaction.resumes.is_empty()).then_some(ended));
        let (done, commit) = oneshot::channel();
        let done_at = tokio::time::Instant::now() + SLOW;
        let (seen, tokens, ended) = (self.seen.clone(), self.tokens.clone(), self.ended.clone());
        tokio::spawn(async move {
            // On the paused clock: it passes as soon as nobody else has anything to do.
            tokio::time::timeout_at(done_at, std::future::pending::<()>()).await.ok();
            seen.lock().push(tokens.count().1);
            ended.fetch_add(1, Relaxed);
            done.send(Ok(())).ok();
        });
        Commit::Waits(commit)
    }
}

/// Every event, and a wait for what it is to tell.
#[derive(Default)]
pub(crate) struct Log {
    events: Mutex<Vec<Event>>,
    told: Notify,
}

impl Observer for Log {
    fn event(&self, event: &Event) {
        self.events.lock().push(event.clone());
        self.told.notify_waiters();
    }
}

impl Log {
    /// Waits until there are so many such events.
    pub(crate) async fn until(&self, count: usize, wanted: impl Fn(&EventKind, &str) -> bool) {
        let waited = tokio::time::timeout(NEVER, async {
            loop {
                let told = self.told.notified();
                if self.count(&wanted) >= count {
                    return;
                }
                told.await;
            }
        });
        if waited.await.is_err() {
            panic!("it was never told: {:#?}", self.events.lock());
        }
    }

    pub(crate) fn count(&self, wanted: impl Fn(&EventKind, &str) -> bool) -> usize {
        let of = |event: &Event| event.at.agent.as_ref().map(ToString::to_string).unwrap_or_default();
        self.events.lock().iter().filter(|event| wanted(&event.kind, &of(event))).count()
    }

    /// How an agent's runs have ended.
    pub(crate) fn ends(&self, of: &str) -> Vec<(Outcome, String)> {
        let events = self.events.lock();
        let own = events.iter().filter(|event| event.at.agent.as_ref() == Some(&name(of)));
        own.filter_map(|event| match &event.kind {
            EventKind::RunFinished { outcome, error, .. } => {
                Some((*outcome, error.as_deref().unwrap_or_default().to_owned()))
            }
            _ => None,
        })
        .collect()
    }
}

/// What a model does, by its name; `once` says that it speaks from its second request on.
struct Does {
    what: String,
    tokens: Arc<Tokens>,
}

#[async_trait]
impl Model for Does {
    async fn call(&mut self, request: Request<'_>) -> Result<Reply, ModelFailure> {
        request.progress.sent();
        self.tokens.0.lock().push(request.cancel.clone());
        let says = Reply { blocks: vec![Block::Text("Done.".to_owned())], ..Reply::default() };
        let (what, is_once) = match self.what.strip_suffix(" once") {
            Some(what) => (what, true),
            None => (&*self.what, false),
        };
        if is_once && request.call > 1 {
            return Ok(says);
        }
        match what {
            "waits" => {
                request.cancel.cancelled().await;
                Err(ModelFailure::new(ErrorKind::Cancelled, "cut"))
            }
            "panics when cut" => {
                request.cancel.cancelled().await;
                panic!("a model's own fault")
            }
            "panics" => panic!("a model's own fault"),
            "fails" => Err(ModelFailure::new(ErrorKind::InvalidRequest, "no")),
            "calls" => {
                let call = ToolUse { id: CallId::new("c1"), name: "tool".into(), input: json!({}) };
                Ok(Reply { blocks: vec![Block::ToolUse(call)], ..Reply::default() })
            }
            _ => Ok(says),
        }
    }
}

struct Models(Arc<Tokens>);

#[async_trait]
impl ModelFactory for Models {
    async fn model(&self, _: &AgentName, model: &str) -> Result<Box<dyn Model>, ModelFailure> {
        Ok(Box::new(Does { what: model.to_owned(), tokens: self.0.clone() }))
    }
}

/// A session with a lead that rests, and all that looks at it.
pub(crate) struct World {
    pub(crate) coordinator: Coordinator,
    pub(crate) log: Arc<Log>,
    pub(crate) tokens: Arc<Tokens>,
    seen: Arc<Mutex<Vec<usize>>>,
    pub(crate) stops: Arc<Mutex<Vec<usize>>>,
    pub(crate) resumes: Arc<Mutex<Vec<usize>>>,
    is_slow: Arc<AtomicBool>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::of(Arc::new(ToolSet::default()), |builder| builder).await
    }

    pub(crate) async fn of(workplace: Arc<dyn Workplace>, more: impl FnOnce(Builder) -> Builder) -> Self {
        let (log, store) = (Arc::new(Log::default()), Slow::default());
        let (tokens, is_slow) = (store.tokens.clone(), store.is_slow.clone());
        let (seen, stops, resumes) = (store.seen.clone(), store.stops.clone(), store.resumes.clone());
        let models = Arc::new(Models(tokens.clone()));
        let builder = Coordinator::builder(models, workplace).clock(Arc::new(RealClock::start()));
        let builder = more(builder.store(Arc::new(store)).observer(log.clone()));
        let coordinator = builder.start().await.unwrap();
        let lead = AgentSpec { role: Role::Lead, ..AgentSpec::new(name("lead"), "says") };
        coordinator.spawn_agent(lead).await.unwrap();
        Self { coordinator, log, tokens, seen, stops, resumes, is_slow }
    }

    /// One more agent, below another.
    pub(crate) fn spec(agent: &str, model: &str, parent: &str) -> AgentSpec {
        let spec = AgentSpec::new(name(agent), model);
        AgentSpec { parent: Some(name(parent)), prompt: Some("Begin.".to_owned()), ..spec }
    }

    /// One more agent below the lead, when its first run has asked its model.
    pub(crate) async fn agent(&self, agent: &str, model: &str) {
        self.coordinator.spawn_agent(Self::spec(agent, model, "lead")).await.unwrap();
        self.log.until(1, |kind, of| of == agent && matches!(kind, EventKind::ModelStarted { .. })).await;
        let asked = async {
            while self.tokens.count().0 == 0 {
                tokio::task::yield_now().await;
            }
        };
        asked.await;
    }

    /// From now on the store takes its time, and looks.
    pub(crate) fn slow_down(&self) {
        self.is_slow.store(true, Relaxed);
    }

    /// How many requests were cancelled whenever the store began or ended something.
    pub(crate) fn seen(&self) -> Vec<usize> {
        self.seen.lock().clone()
    }

    /// Waits until so many runs of an agent have ended.
    pub(crate) async fn until_ended(&self, agent: &str, runs: usize) {
        let ended = |kind: &EventKind, of: &str| of == agent && matches!(kind, EventKind::RunFinished { .. });
        self.log.until(runs, ended).await;
    }
}
