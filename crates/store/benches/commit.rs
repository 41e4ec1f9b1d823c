//! What it costs to be durable: `cargo bench -p midturn-store` (docs/performance.md).
//!
//! Every figure of the store stands beside what the disk itself takes for the same bytes,
//! measured in the same run, in alternating rounds.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark that can't go on should end"
)]

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use midturn_core::engine::ports::store::{Accepted, AgentRecord, IN_FLIGHT, Row, Store};
use midturn_core::engine::ports::{Archive, Commit, SessionRecord, Transaction};
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::{Block, Reply, StopReason, ToolResult, ToolStatus, ToolUse};
use midturn_core::rules::event::{Event, EventKind, Place, VERSION};
use midturn_core::rules::id::{AgentName, CallId, MessageId, SessionId};
use midturn_core::rules::mail::{Mail, MailKind, Role, Sender, Urgency};
use midturn_core::rules::record::Line;
use midturn_core::rules::settings::Settings;
use midturn_core::rules::time::Micros;
use midturn_store::{OpenMode, SqlArchive, open_sqlite};

const ROUNDS: usize = 15;
const SESSIONS: usize = 8;
const A_SECOND: usize = 2_000;
const SECONDS: usize = 5;
const ENTRIES: u32 = 100_000;
/// About what a person or an agent writes.
const TEXT: &str = "Please have another look at the parser: the test that you added last fails on an empty file, and the error should name the line.";

fn main() {
    // `cargo test --benches` only wants to know that it starts.
    if !std::env::args().any(|word| word == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let archive = open_sqlite(folder.path().join("store.db"), OpenMode::Write).await.unwrap();
        let mut senders = Vec::new();
        for n in 0..SESSIONS {
            senders.push(Sending::new(&archive, n).await);
        }
        batches(folder.path(), &mut senders).await;
        latency(&mut senders).await;
        sustained(&mut senders).await;
        archive.close().await;
        recovery(folder.path()).await;
    });
}

/// Sends messages in one session.
struct Sending {
    store: Arc<dyn Store>,
    seq: u64,
}

impl Sending {
    async fn new(archive: &SqlArchive, n: usize) -> Self {
        Self { store: archive.begin(session(&format!("session-{n}"))).await.unwrap(), seq: 0 }
    }

    /// Accepts one message, in a transaction of its own.
    fn send(&mut self) -> Commit {
        let (accepted, event) = self.message();
        let (accepted, events) = (vec![accepted], vec![event]);
        self.store.submit(Arc::new(Transaction { accepted, events, ..Transaction::default() }))
    }

    /// Accepts so many at once.
    fn send_all(&mut self, messages: usize) -> Commit {
        let (accepted, events) = (0..messages).map(|_| self.message()).unzip();
        self.store.submit(Arc::new(Transaction { accepted, events, ..Transaction::default() }))
    }

    fn message(&mut self) -> (Accepted, Event) {
        self.seq += 1;
        let id = format!("0199f3a2-7c11-7000-8000-{:012}", self.seq);
        let mail = Mail {
            id: MessageId::new(id.as_str()),
            from: Sender::User,
            to: name("worker"),
            text: TEXT.into(),
            urgency: Urgency::AfterTools,
            kind: MailKind::Words,
            only_run: None,
            expires_at: None,
        };
        let kind = EventKind::MessageQueued {
            message: mail.id.clone(),
            from: "user".to_owned(),
            urgency: mail.urgency,
            text: mail.text.clone(),
        };
        let accepted = Accepted { mail: Arc::new(mail), address: "worker".into(), urgency: None };
        (accepted, event(self.seq, kind))
    }
}

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

fn session(id: &str) -> SessionRecord {
    let memo = serde_json::json!({});
    SessionRecord { id: SessionId::new(id), began_at: 0, folder: "/p".into(), title: "t".into(), memo }
}

fn event(seq: u64, kind: EventKind) -> Event {
    Event { v: VERSION, seq, t: Micros(seq * 1_000), at: Place::of(&name("worker"), 1, 1), kind }
}

/// What one commit costs, beside the same bytes written and synced by hand.
async fn batches(folder: &Path, senders: &mut [Sending]) {
    println!(
        "| messages in a commit | durable after | bytes written | written and fdatasync by hand | ratio |"
    );
    println!("| --- | --- | --- | --- | --- |");
    let plain = Plain::new(folder);
    // The log is as long as it gets, as it is in a store that is used.
    senders[0].send_all(4_000).await.unwrap();
    for messages in [1, 10, 100, 1_000] {
        let (mut ours, mut by_hand, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let before = written();
            let began = Instant::now();
            senders[0].send_all(messages).await.unwrap();
            ours.push(began.elapsed());
            let round = written() - before;
            bytes.push(Duration::from_nanos(round));
            by_hand.push(plain.write(round));
        }
        let (ours, by_hand) = (Spread::of(ours), Spread::of(by_hand));
        println!(
            "| {messages} | {} | {} | {} | {:.2} |",
            ours.told(),
            Spread::of(bytes).median.as_nanos(),
            by_hand.told(),
            ours.median.as_secs_f64() / by_hand.median.as_secs_f64()
        );
    }
    println!();
}

/// How many bytes the process has handed to files.
fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.unwrap().parse().unwrap()
}

/// A file that is written over, as the log of the database is.
struct Plain {
    file: File,
    bytes: Vec<u8>,
}

impl Plain {
    fn new(folder: &Path) -> Self {
        let mut open = OpenOptions::new();
        let file = open.create_new(true).write(true).open(folder.join("plain")).unwrap();
        let bytes = vec![0x5a; 8 << 20];
        file.write_all_at(&bytes, 0).unwrap();
        file.sync_all().unwrap();
        Self { file, bytes }
    }

    fn write(&self, bytes: u64) -> Duration {
        let began = Instant::now();
        let bytes = usize::try_from(bytes).unwrap().min(self.bytes.len());
        self.file.write_all_at(&self.bytes[..bytes], 0).unwrap();
        self.file.sync_data().unwrap();
        began.elapsed()
    }
}

/// Messages at a fixed rate, whoever else still waits.
async fn latency(senders: &mut [Sending]) {
    let mut tasks = Vec::with_capacity(A_SECOND * SECONDS);
    let began = Instant::now();
    for n in 0..A_SECOND * SECONDS {
        let due = began + Duration::from_secs_f64(n as f64 / A_SECOND as f64);
        tokio::time::sleep_until(due.into()).await;
        let commit = senders[n % SESSIONS].send();
        tasks.push(tokio::spawn(async move {
            commit.await.unwrap();
            due.elapsed()
        }));
    }
    let mut took = Vec::with_capacity(tasks.len());
    for task in tasks {
        took.push(task.await.unwrap());
    }
    took.sort_unstable();
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
    println!(
        "accept at {A_SECOND} messages a second, {SECONDS} s: p50 {:?}, p99 {:?}, max {:?}",
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

/// As many as go through when as many wait as may.
async fn sustained(senders: &mut [Sending]) {
    let mut counts = Vec::new();
    for _ in 0..SECONDS {
        let began = Instant::now();
        let mut waiting: Vec<VecDeque<Commit>> =
            senders.iter_mut().map(|sender| (0..IN_FLIGHT).map(|_| sender.send()).collect()).collect();
        let mut count = 0;
        while began.elapsed() < Duration::from_secs(1) {
            for (sender, waiting) in senders.iter_mut().zip(&mut waiting) {
                for _ in 0..IN_FLIGHT / 4 {
                    waiting.pop_front().unwrap().await.unwrap();
                    waiting.push_back(sender.send());
                    count += 1;
                }
            }
        }
        counts.push(count);
        for commit in waiting.into_iter().flatten() {
            commit.await.unwrap();
        }
    }
    counts.sort_unstable();
    println!(
        "sustained: {} messages a second (each of {SECONDS} seconds: {counts:?})",
        counts[counts.len() / 2]
    );
}

/// A long conversation, taken up by the next process.
async fn recovery(folder: &Path) {
    let path = folder.join("long.db");
    let archive = open_sqlite(&path, OpenMode::Write).await.unwrap();
    fill(&*archive.begin(session("long")).await.unwrap()).await;
    archive.close().await;
    let mut took = Vec::new();
    for _ in 0..9 {
        let began = Instant::now();
        let archive = open_sqlite(&path, OpenMode::Write).await.unwrap();
        let taken = archive.take_up(&SessionId::new("long")).await.unwrap().unwrap();
        took.push(began.elapsed());
        assert_eq!(taken.journal.agents[0].rows.len(), ENTRIES as usize);
        archive.close().await;
    }
    println!("open and take up a session of {ENTRIES} entries: {}", Spread::of(took).told());
}

async fn fill(store: &dyn Store) {
    let agent = AgentRecord {
        index: 0,
        name: name("worker"),
        role: Role::Lead,
        parent: None,
        prompt: None,
        model: Some("m".into()),
        system: TEXT.into(),
        settings: Arc::new(Settings::default()),
        memo: serde_json::Value::Null,
    };
    store.submit(Arc::new(Transaction { agents: vec![agent], ..Transaction::default() })).await.unwrap();
    for part in 0..ENTRIES / 1_000 {
        let entries = part * 1_000..(part + 1) * 1_000;
        let events = entries.clone().map(|n| {
            let turn = n / 2 + 1;
            let kind = EventKind::ModelStarted { call: u64::from(turn), messages: 1, purpose: Purpose::Turn };
            Event { at: Place::of(&name("worker"), 1, turn), ..event(u64::from(n) + 1, kind) }
        });
        let events = events.collect();
        let rows = entries.map(|n| Row { agent: name("worker"), run: 1, turn: n / 2 + 1, line: line(n) });
        let rows = rows.collect();
        store.submit(Arc::new(Transaction { rows, events, ..Transaction::default() })).await.unwrap();
    }
}

/// Replies with a call, and their results.
fn line(n: u32) -> Line {
    let id = CallId::new(format!("toolu_{:020}", n / 2));
    if n % 2 == 1 {
        return Line::Result(ToolResult {
            id,
            name: "bash".into(),
            status: ToolStatus::Completed,
            is_error: false,
            text: TEXT.repeat(4).into(),
            messages: Arc::default(),
            cost: Default::default(),
        });
    }
    let input = serde_json::json!({"command": "cargo test -p parser -- empty_file"});
    Line::Reply(Arc::new(Reply {
        blocks: vec![
            Block::Text(TEXT.to_owned()),
            Block::ToolUse(ToolUse { id, name: "bash".into(), input }),
        ],
        stop_reason: StopReason::ToolUse,
        usage: Default::default(),
    }))
}

/// What several rounds took.
struct Spread {
    median: Duration,
    least: Duration,
    most: Duration,
}

impl Spread {
    fn of(mut rounds: Vec<Duration>) -> Self {
        rounds.sort_unstable();
        Self { median: rounds[rounds.len() / 2], least: rounds[0], most: rounds[rounds.len() - 1] }
    }

    fn told(&self) -> String {
        format!("{:.2?} ({:.2?}–{:.2?})", self.median, self.least, self.most)
    }
}
