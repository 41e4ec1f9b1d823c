//! Sessions over a store that holds back what the test says.

mod broken;

use std::time::Duration;

use midturn_conformance::around::{Around, Layer};
use midturn_core::engine::ports::{Commit, Transaction};
use midturn_core::rules::event::EventKind;
use midturn_core::rules::time::Span;
use midturn_server::Host as _;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::args::StoreArgs;
use crate::host::holding::{self, Opened};
use crate::project::Project;

/// What takes so long will never come.
const NEVER: Duration = Duration::from_secs(60);

/// Which transactions are durable only when the test says so.
type Which = fn(&Transaction) -> bool;

/// A store that tells of some transactions that they came, and says that they are durable when
/// it is let.
struct Gated {
    inner: Arc<dyn Store>,
    gate: Gate,
}

#[derive(Clone)]
struct Gate {
    which: Which,
    came: mpsc::Sender<()>,
    opens: CancellationToken,
}

impl Layer for Gate {
    fn store(&self, inner: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(Gated { inner, gate: self.clone() })
    }
}

impl Store for Gated {
    fn submit(&self, transaction: Arc<Transaction>) -> Commit {
        let is_held = (self.gate.which)(&transaction);
        let commit = self.inner.submit(transaction);
        if !is_held {
            return commit;
        }
        let (durable, waits) = oneshot::channel();
        let (came, opens) = (self.gate.came.clone(), self.gate.opens.clone());
        // It ends when the gate opens, or with the test.
        drop(tokio::spawn(async move {
            came.send(()).await.unwrap();
            opens.cancelled().await;
            durable.send(commit.await).unwrap();
        }));
        Commit::Waits(waits)
    }
}

/// A process in a folder of its own, and the gate of its store.
struct Place {
    carrier: Arc<Carrier>,
    came: mpsc::Receiver<()>,
    opens: CancellationToken,
    layer: LayerArgs,
    env: Env,
    folder: tempfile::TempDir,
}

impl Place {
    /// With a lead that works for ever.
    async fn new(which: Which) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        std::fs::create_dir(at("work")).unwrap();
        let scenario = "midturn: 1\nname: test\nagents:\n  - name: lead\n    role: lead\n    model:\n      \
            - {text: Late., takes: 1h}\n";
        std::fs::write(at("scenario.yaml"), scenario).unwrap();
        let env = Env::of([("HOME", &*at("home")), ("XDG_STATE_HOME", &*at("state"))]);
        let layer = LayerArgs {
            model: Some(format!("scripted:{}", at("scenario.yaml"))),
            set: vec!["sandbox.tier=none".to_owned()],
            cwd: Some(at("work").into()),
        };
        let project = Project::of(&folder.path().join("work"), &StoreArgs::default(), &env).unwrap();
        let Ok(Opened::Ours(holding)) = holding::open(&project, Span::secs(30)).await else {
            panic!("it is ours")
        };
        let (told, came) = mpsc::channel(64);
        let opens = CancellationToken::new();
        let mut carrier = Carrier::new(holding, &env, &layer);
        let inner = carrier.holding.archive.clone();
        let gate = Gate { which, came: told, opens: opens.clone() };
        carrier.holding.archive = Arc::new(Around::new(inner, gate));
        Self { carrier: Arc::new(carrier), came, opens, layer, env, folder }
    }

    /// Begins a session in a task of its own.
    fn begins(&self) -> JoinHandle<Result<Begun, HostError>> {
        let prepared =
            prepare::prepare(&self.layer, &self.env, &Earlier::default(), &Reached::default()).unwrap();
        let carrier = self.carrier.clone();
        tokio::spawn(async move { carrier.begin_with("the task", prepared, Audience::default()).await })
    }

    /// Waits until so many transactions are held back.
    async fn held(&mut self, count: usize) {
        for n in 0..count {
            let came = tokio::time::timeout(NEVER, self.came.recv()).await;
            came.unwrap_or_else(|_| panic!("only {n} of {count} were asked for while none was durable"));
        }
    }

    async fn ends(self) {
        self.opens.cancel();
        self.carrier.shutdown().await;
        self.carrier.close(true).await;
        self.folder.close().unwrap();
    }
}

/// E5: nobody finds a session before its lead is recorded.
#[tokio::test]
async fn a_session_is_found_when_its_lead_is_there() {
    let mut place = Place::new(|transaction| !transaction.agents.is_empty()).await;
    let begins = place.begins();
    place.held(1).await;
    assert!(place.carrier.all().is_empty() && place.carrier.live().is_empty());
    place.opens.cancel();
    let begun = begins.await.unwrap().unwrap();
    let found = place.carrier.find(begun.live.record.id.as_str()).unwrap();
    assert!(found.coordinator.agent("lead").is_some());
    place.ends().await;
}

fn is_stop(transaction: &Transaction) -> bool {
    transaction.events.iter().any(|event| matches!(event.kind, EventKind::StopRequested { .. }))
}

/// A2: a process that ends stops all sessions at once: no agent works on while the stop of
/// another session is being written. And none begins any more.
#[tokio::test]
async fn sessions_are_shut_down_at_once() {
    let mut place = Place::new(is_stop).await;
    for _ in 0..3 {
        place.begins().await.unwrap().unwrap();
    }
    let carrier = place.carrier.clone();
    let shutdown = tokio::spawn(async move { carrier.shutdown().await });
    place.held(3).await;
    assert!(!shutdown.is_finished());
    assert!(matches!(place.begins().await.unwrap(), Err(HostError::ShuttingDown(_))));
    place.opens.cancel();
    shutdown.await.unwrap();
    place.ends().await;
}
