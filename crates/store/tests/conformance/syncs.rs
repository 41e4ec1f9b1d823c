//! How often the disk is waited for, and how much is written to it, counted in the `-wal` file:
//! a transaction ends with a frame that says so, and is synced there.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use midturn_conformance::maker::{name, rows, said, session};
use midturn_core::engine::ports::{Archive, Clock, RealClock};
use midturn_core::engine::scripted::{ScriptedCall, ScriptedModels, ScriptedReply, Scripts, SimulatedTools};
use midturn_core::engine::{AgentSpec, Coordinator};
use midturn_store::{OpenMode, open_sqlite};
use serde_json::json;

use super::needs::{Need, has};

/// What was written so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Written {
    syncs: usize,
    bytes: usize,
}

impl Written {
    /// What is in the log of the store at this path.
    fn of(path: &Path) -> Self {
        let log = std::fs::read(path.with_extension("db-wal")).unwrap();
        let word = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
        let (page, salt) = (word(8) as usize, &log[16..24]);
        let frames = log[32..].chunks_exact(24 + page).take_while(|frame| frame[8..16] == *salt);
        frames.fold(Self::default(), |so_far, frame| Self {
            syncs: so_far.syncs + usize::from(frame[4..8] != [0; 4]),
            bytes: so_far.bytes + frame.len(),
        })
    }

    fn since(self, before: Self) -> Self {
        Self { syncs: self.syncs - before.syncs, bytes: self.bytes - before.bytes }
    }
}

/// About as long as what a model says between two calls.
const SAYS: &str = "I have looked at the five call sites; next I change the one in the parser, because the \
                    others follow from it, and then I run the tests of that module.";

/// A turn that asks for so many calls, one after the other.
fn turn(number: usize, calls: usize) -> ScriptedReply {
    let call = |i| {
        let input = json!({"command": "cargo test -p parser"});
        let result = "ok: 40 passed; 0 failed\n".repeat(40);
        Arc::new(ScriptedCall {
            result,
            safe: Some(false),
            ..ScriptedCall::new(&format!("c{number}-{i}"), "bash", input)
        })
    };
    ScriptedReply { tools: (0..calls).map(call).collect(), ..ScriptedReply::says(SAYS) }
}

/// What an agent writes that takes so many turns of so many calls each, and a last word.
async fn written(turns: usize, calls: usize) -> Written {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let archive = open_sqlite(&path, OpenMode::Write).await.unwrap();
    let store = archive.begin(session("s")).await.unwrap();
    let before = Written::of(&path);
    let said = (0..turns).map(|number| turn(number, calls)).chain([ScriptedReply::says("Done.")]);
    let scripts = Scripts::from([(name("lead"), said.collect())]);
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let models = Arc::new(ScriptedModels::new(clock.clone(), scripts.clone()));
    let workplace = Arc::new(SimulatedTools::new(clock.clone(), scripts));
    let builder = Coordinator::builder(models, workplace).session(session("s").id).clock(clock).store(store);
    let coordinator = builder.start().await.unwrap();
    let spec = AgentSpec { prompt: Some("Rename them.".to_owned()), ..AgentSpec::new(name("lead"), "m") };
    coordinator.spawn_agent(spec).await.unwrap();
    coordinator.quiet().await;
    assert_eq!(coordinator.agents()[0].turn as usize, turns + 1, "it came to its last word");
    Written::of(&path).since(before)
}

#[tokio::test]
async fn a_turn_with_a_tool_is_synced_twice_and_one_with_n_serial_tools_n_and_one_times() {
    let mut told = String::new();
    for calls in 1..=3 {
        let (few, many) = (written(2, calls).await, written(12, calls).await);
        let ten = many.since(few);
        writeln!(told, "{calls} calls: {ten:?} in ten turns").unwrap();
        assert_eq!(ten.syncs, 10 * (calls + 1), "{told}");
    }
    println!("{told}");
}

#[tokio::test]
async fn a_turn_with_a_tool_writes_40_kilobytes_at_most() {
    let twenty = written(22, 1).await.since(written(2, 1).await);
    println!("{twenty:?} in twenty turns");
    assert!(twenty.bytes <= 20 * 40_000, "{twenty:?} in twenty turns");
}

/// Names the store to the test when it is started once more, to be watched.
const STARTS: &str = "MIDTURN_STARTS_STORE";

/// Opens a store, begins a session and records in it: what a start does before anybody is told anything.
async fn starts(path: &Path, id: &str) {
    let archive = open_sqlite(path, OpenMode::Write).await.unwrap();
    let store = archive.begin(session(id)).await.unwrap();
    store.submit(rows(vec![said("lead", "one")])).await.unwrap();
    store.submit(rows(vec![said("lead", "two")])).await.unwrap();
    // No tidying up at the end: that is nobody's start.
    std::process::exit(0);
}

/// How often a start syncs a file or a folder.
fn syncs_of_a_start(folder: &Path) -> usize {
    let traced = folder.join("traced");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-e", "trace=fsync,fdatasync", "-e", "signal=none", "-o"]).arg(&traced);
    strace
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "syncs::a_start_syncs_what_somebody_waits_for"]);
    let ended = strace.env(STARTS, folder.join("store.db")).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let traced = std::fs::read_to_string(traced).unwrap();
    traced.lines().filter(|line| line.contains("sync(")).count()
}

/// A new file and its name, a new log and its name, and the two records: nobody waits for more. The
/// second start finds a log.
#[tokio::test]
async fn a_start_syncs_what_somebody_waits_for() {
    if let Some(path) = std::env::var_os(STARTS) {
        return starts(Path::new(&path), &std::process::id().to_string()).await;
    }
    if !has(Need::Strace, Command::new("strace").arg("-V").output().is_ok()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(syncs_of_a_start(folder.path()), 6, "with a new store");
    assert_eq!(syncs_of_a_start(folder.path()), 3, "with one that is there");
}
