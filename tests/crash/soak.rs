//! A week in an hour: sessions that come and go, twenty agents in each, readers that vanish. What
//! the process holds grows with what is kept, and nothing else does.
//!
//! `MIDTURN_SOAK=N` sends N messages (2,000); docs/performance.md has the figures of 100,000.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::time::{Instant, Interval, timeout};

use crate::api::{Answer, Api};
use crate::daemon::{Daemon, Settings};
use crate::model::Plain;
use crate::number;
use crate::world::World;

const AGENTS: u64 = 20;
/// How many folders an agent holds open, and how many sessions live at once.
const HELD: u64 = 2;
const LIVE: u64 = 16;
/// How often each session's agents are written to.
const ROUNDS: u64 = 50;
const MESSAGES: u64 = 2_000;
/// How many read each session's events for a while and vanish.
const READERS: usize = 3;
/// A token may ask 200 times a second (docs/protocol.md).
const PACE: Duration = Duration::from_millis(6);
/// How long one session may take, on a machine that does a lot besides.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the process and its store take.
#[derive(Clone, Copy, Debug)]
struct Sample {
    messages: u64,
    resident: u64,
    /// What is resident and no file's page.
    own: u64,
    /// But for the connections to the model: as many as agents once asked at the same time wait to
    /// be used again.
    descriptors: u64,
    store: u64,
}

impl Sample {
    fn of(pid: u32, store: &Path, model: &Plain, messages: u64) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let field = |name: &str| -> Option<u64> {
            let line = status.lines().find(|line| line.starts_with(name))?;
            Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
        };
        let open = fs::read_dir(format!("/proc/{pid}/fd"))?.count();
        let wal = store.with_extension("db-wal");
        let size = |path: &Path| fs::metadata(path).map_or(0, |known| known.len());
        Ok(Self {
            messages,
            resident: field("VmRSS:").context("no resident size")?,
            own: field("RssAnon:").context("no anonymous size")?,
            descriptors: open.saturating_sub(model.connections()) as u64,
            store: size(store) + size(&wal),
        })
    }
}

/// A daemon, asked at the pace that one token may ask at.
struct Client {
    api: Api,
    pace: Interval,
}

impl Client {
    async fn post(&mut self, path: &str, body: serde_json::Value) -> Result<serde_json::Value> {
        self.pace.tick().await;
        let answer = self.api.post(path, &body).await;
        answer.clone().ok().with_context(|| format!("POST {path}: {answer:?}"))
    }

    /// One session from its begin to its end.
    async fn session(&mut self) -> Result<()> {
        let said = self.post("/sessions", json!({"task": "Begin."})).await?;
        let session = format!("/sessions/{}", said["session"].as_str().context("a session without an id")?);
        for n in 1..AGENTS {
            self.post(&format!("{session}/agents"), json!({"name": format!("w{n}"), "prompt": "Begin."}))
                .await?;
        }
        let id = session.rsplit('/').next().unwrap_or_default();
        let mut readers = Vec::new();
        for n in 0..ROUNDS {
            if readers.len() < READERS {
                readers.push(self.api.events(id, 0, false).await?);
            }
            let urgency = ["follow_up", "after_tools", "next_boundary", "urgent"][n as usize % 4];
            let body = json!({"id": format!("m{n}"), "text": format!("Do {n}."), "urgency": urgency});
            self.post(&format!("{session}/agents/all/messages"), body).await?;
            if n == ROUNDS / 2 {
                // One has read on, the others never have; all of them go without a word.
                readers[0].next().await;
                readers.truncate(1);
            }
        }
        drop(readers);
        self.until_they_rest(&session).await?;
        self.post(&format!("{session}/shutdown"), json!({})).await?;
        Ok(())
    }

    async fn until_they_rest(&mut self, session: &str) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.pace.tick().await;
            let Answer::Said(200, agents) = self.api.get(&format!("{session}/agents")).await else {
                anyhow::bail!("the daemon says nothing of its agents");
            };
            let rests = |agent: &serde_json::Value| agent["state"] == "idle" && agent["pending"] == 0;
            if agents["agents"].as_array().is_some_and(|agents| agents.iter().all(rests)) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "they go on and on: {agents}");
        }
    }
}

async fn played(messages: u64) -> Result<Vec<Sample>> {
    let (world, model) = (World::new(false)?, Plain::start().await?);
    let settings = Settings { model_url: model.url.clone(), ..Settings::default() };
    let mut daemon = Daemon::start(&world, &settings)?;
    let api = daemon.ready().await.context("the daemon never answered")?;
    let pid = daemon.id().context("the daemon has no process")?;
    let store = world.store().context("the daemon has no store")?;
    let mut client = Client { api, pace: tokio::time::interval(PACE) };
    let mut samples = vec![Sample::of(pid, &store, &model, 0)?];
    for n in 1..=messages.div_ceil(AGENTS * ROUNDS) {
        timeout(PATIENCE, client.session())
            .await
            .with_context(|| format!("session {n} takes too long"))??;
        samples.push(Sample::of(pid, &store, &model, n * AGENTS * ROUNDS)?);
    }
    // The daemon hears of the last readers that vanished a moment after they have.
    let deadline = Instant::now() + PATIENCE;
    let (most, last) = (most_descriptors(&samples), samples.len() - 1);
    while samples[last].descriptors > most && Instant::now() < deadline {
        client.pace.tick().await;
        samples[last] = Sample::of(pid, &store, &model, samples[last].messages)?;
    }
    let ended = daemon.terminate().await?.context("told to end, it goes on")?;
    ensure!(ended.status.success(), "{}: {}", ended.status, ended.said.join("\n"));
    Ok(samples)
}

/// What the sessions that live may hold open, after as many as there are samples behind the first.
fn most_descriptors(samples: &[Sample]) -> u64 {
    let live = (samples.len() as u64 - 1).min(LIVE);
    samples[0].descriptors + live * (AGENTS * HELD + 8)
}

/// The store grows with the messages, and descriptors with the sessions that live: both are counted.
fn grows_with_what_is_kept(samples: &[Sample]) {
    let (first, half, last) = (samples[0], samples[samples.len() / 2], samples[samples.len() - 1]);
    assert!(last.descriptors <= most_descriptors(samples), "{first:?} and at last {last:?}");
    let per_message =
        |from: Sample, to: Sample| (to.store - from.store) / (to.messages - from.messages).max(1);
    if last.messages > half.messages {
        let (before, after) = (per_message(samples[0], half), per_message(half, last));
        assert!(after <= before + before / 2, "{before} and then {after} bytes are stored of a message");
    }
}

#[test]
fn sessions_that_come_and_go_leave_what_is_kept_and_nothing_else() {
    let samples = crate::on_a_runtime(played(number("MIDTURN_SOAK", MESSAGES))).unwrap();
    let shown = (samples.len() / 20).max(1);
    for sample in samples.iter().step_by(shown).chain(samples.last()) {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        println!(
            "{:>7} messages: resident {:.1} MB, own {:.1} MB, {} descriptors, store {:.1} MB",
            sample.messages,
            megabytes(sample.resident),
            megabytes(sample.own),
            sample.descriptors,
            megabytes(sample.store),
        );
    }
    grows_with_what_is_kept(&samples);
}
