//! A session whose store failed is taken up again in the same process (E2).

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use midturn_conformance::around::{Around, Layer};
use midturn_core::engine::ports::{Commit, StoreError, Transaction};
use midturn_store::OpenMode;

use super::super::*;
use crate::args::StoreArgs;
use crate::project::Project;

/// A store that takes nothing while it fails.
struct Failing {
    store: Arc<dyn Store>,
    fails: Arc<AtomicBool>,
}

struct Fails(Arc<AtomicBool>);

impl Layer for Fails {
    fn store(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(Failing { store, fails: self.0.clone() })
    }
}

impl Store for Failing {
    fn submit(&self, transaction: Arc<Transaction>) -> Commit {
        if self.fails.load(Ordering::Relaxed) {
            return Commit::Done(Err(StoreError::Failed("its disk is gone".into())));
        }
        self.store.submit(transaction)
    }
}

const SCENARIO: &str = "midturn: 1
name: words
agents:
  - name: lead
    role: lead
    prompt: go
    model: [{text: one}, {text: two}, {text: three}]
expect: []
";

async fn carrier(folder: &Path, fails: &Arc<AtomicBool>) -> (Carrier, Prepared) {
    std::fs::write(folder.join("models.yaml"), SCENARIO).unwrap();
    let path = folder.display().to_string();
    let env = Env::of([("HOME", path.as_str()), ("XDG_STATE_HOME", path.as_str())]);
    let layer = LayerArgs {
        model: Some(format!("scripted:{path}/models.yaml")),
        set: vec!["sandbox.tier=none".into()],
        cwd: Some(folder.into()),
    };
    let prepared = prepare::prepare(&layer, &env, &Earlier::default(), &Reached::default()).unwrap();
    let store = midturn_store::open_sqlite(folder.join("store.db"), OpenMode::Write).await.unwrap();
    let project = Project::named_by(folder, &StoreArgs::default(), &env).unwrap();
    let holding = Holding::of(Arc::new(Around::new(Arc::new(store), Fails(fails.clone()))), project);
    (Carrier::new(holding, &env, &layer), prepared)
}

/// E2: once the store answers again `resume` goes on with what was recorded, under a new epoch.
#[tokio::test]
async fn a_session_whose_store_failed_is_taken_up_again_where_it_lives() {
    let folder = tempfile::tempdir().unwrap();
    let fails = Arc::new(AtomicBool::new(false));
    let (carrier, prepared) = carrier(folder.path(), &fails).await;
    let begun = carrier.begin_with("go", prepared, Audience::default()).await.unwrap();
    let id = begun.live.record.id.clone();
    carrier.quiet().await;
    fails.store(true, Ordering::Relaxed);
    let lost = begun.live.coordinator.send_message("lead", "lost", false).await.unwrap_err();
    assert!(lost.to_string().contains("its disk is gone"), "{lost}");
    fails.store(false, Ordering::Relaxed);
    let again = begun.live.coordinator.send_message("lead", "lost", false).await.unwrap_err();
    assert_eq!(again, lost, "this one records nothing any more");
    let (begun, _) = carrier.take_up(&id, &[], Audience::default()).await.unwrap().unwrap();
    assert_eq!((begun.live.epoch, carrier.all().len()), (2, 1));
    begun.live.coordinator.send_message("lead", "on", false).await.unwrap();
    carrier.quiet().await;
    let end = begun.live.coordinator.agent("lead").unwrap().last_end.unwrap();
    assert_eq!((end.run, &*end.text), (2, "two"));
    // One that is well is not taken up twice.
    let (same, _) = carrier.take_up(&id, &[], Audience::default()).await.unwrap().unwrap();
    assert_eq!(same.live.epoch, 2);
    carrier.close(false).await;
}
