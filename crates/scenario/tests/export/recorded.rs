//! Plays scenarios into stores that keep what they are given: at once, or after a while.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use midturn_core::engine::VirtualClock;
use midturn_core::engine::ports::archive::{SessionJournal, SessionRecord};
use midturn_core::engine::ports::{Clock, Commit, KeepingStore, Phase, Store, Transaction};
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::SessionId;
use midturn_core::rules::time::{Micros, Span};
use midturn_scenario::file;
use midturn_scenario::play::{Keeps, play_kept};
use midturn_scenario::scenario::{Scenario, Tools};

/// Keeps every transaction; each is durable so long after the one before it, or after it came.
struct Keeping {
    kept: Mutex<Vec<Arc<Transaction>>>,
    clock: Arc<VirtualClock>,
    /// How long commits take, one after the other, from the beginning again at the end.
    takes: Vec<Span>,
    last: Mutex<Micros>,
}

impl Keeping {
    fn new(clock: Arc<VirtualClock>, takes: Vec<Span>) -> Self {
        Self { kept: Mutex::default(), clock, takes, last: Mutex::default() }
    }

    /// When the next commit is durable.
    fn durable(&self, number: usize) -> Option<Micros> {
        let takes = *self.takes.get(number % self.takes.len().max(1))?;
        let mut last = self.last.lock().unwrap();
        *last = self.clock.now().after(takes).max(*last);
        Some(*last)
    }
}

impl Store for Keeping {
    fn submit(&self, transaction: Arc<Transaction>) -> Commit {
        let number = {
            let mut kept = self.kept.lock().unwrap();
            kept.push(transaction);
            kept.len()
        };
        let Some(at) = self.durable(number) else { return Commit::Done(Ok(())) };
        let (told, waits) = tokio::sync::oneshot::channel();
        let clock = self.clock.clone();
        tokio::spawn(async move {
            clock.until(at, Phase::Caused).await;
            // Whoever submitted it may be gone.
            told.send(Ok(())).ok();
        });
        Commit::Waits(waits)
    }
}

/// A session as an archive gives it.
pub(crate) struct Recorded {
    pub(crate) journal: SessionJournal,
    pub(crate) events: Vec<Event>,
}

/// Plays a scenario on virtual time as it is. `None`: that can't be done, or comes to no end.
pub(crate) fn played(scenario: &Scenario) -> Option<Recorded> {
    kept(scenario, Vec::new(), true)
}

/// Plays it as if on a machine whose store takes so long, again and again.
pub(crate) fn played_slowly(scenario: &Scenario, takes: Vec<Span>) -> Option<Recorded> {
    kept(scenario, takes, false)
}

fn kept(scenario: &Scenario, takes: Vec<Span>, virtual_time: bool) -> Option<Recorded> {
    let clock = Arc::new(VirtualClock::default());
    let store = Arc::new(Keeping::new(clock.clone(), takes));
    let played = play_kept(scenario, Keeps { store: store.clone(), clock, virtual_time }).ok()?;
    let kept = store.kept.lock().unwrap();
    played.record.stuck.is_none().then(|| recorded(kept.iter().map(|transaction| &**transaction)))
}

/// What transactions come to.
pub(crate) fn recorded<'a>(transactions: impl Iterator<Item = &'a Transaction>) -> Recorded {
    let record = SessionRecord {
        id: SessionId::new("s1"),
        began_at: 0,
        folder: "/project".into(),
        title: "Do it".into(),
        memo: serde_json::Value::Null,
    };
    let store = KeepingStore::default();
    let mut events = Vec::new();
    for transaction in transactions {
        // It is durable at once.
        drop(store.submit(Arc::new(transaction.clone())));
        events.extend(transaction.events.iter().cloned());
    }
    Recorded { journal: store.journal(record), events }
}

/// All scenarios of the repository with simulated tools, by their paths.
pub(crate) fn simulated() -> Vec<(PathBuf, Scenario)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut paths = Vec::new();
    below(&root, &mut paths);
    paths.sort();
    assert!(paths.len() > 90, "{} scenarios", paths.len());
    let read = paths.into_iter().map(|path| {
        let scenario = file::load(&path).unwrap();
        (path.strip_prefix(&root).unwrap().to_owned(), scenario)
    });
    read.filter(|(_, scenario)| scenario.tools == Tools::Simulated).collect()
}

fn below(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            below(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            paths.push(path);
        }
    }
}

/// Whether somebody has a run that has not ended.
pub(crate) fn is_unfinished(events: &[Event]) -> bool {
    let count = |wanted: fn(&EventKind) -> bool| events.iter().filter(|event| wanted(&event.kind)).count();
    count(|kind| matches!(kind, EventKind::RunStarted { .. }))
        > count(|kind| matches!(kind, EventKind::RunFinished { .. }))
}
