//! A shutdown under load: fifty agents at work, ten senders that don't let up, and SIGTERM. It is
//! a fence, it ends, and what was accepted is there at the next start (semantics.md, section 9).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::api::{Answer, Api, Told};
use crate::breach::Breaches;
use crate::checker::log;
use crate::daemon::{Daemon, Settings};
use crate::model::Model;
use crate::rule::PERSON;
use crate::world::World;

const AGENTS: usize = 50;
const SENDERS: usize = 10;
/// How much has to be under way before the end: events of these types, so many of each.
const UNDER_WAY: [(&str, usize); 3] = [("run_started", AGENTS), ("tool_started", 40), ("message_queued", 60)];
/// How long until then, on a machine that does a lot besides.
const PATIENCE: Duration = Duration::from_secs(180);

/// What came of all sends.
#[derive(Debug, Default)]
struct Tally {
    accepted: Vec<String>,
    /// How often it was said that the process ends.
    refused: usize,
    /// What nobody should be answered.
    odd: Vec<String>,
}

/// Sends until the daemon is gone.
async fn sends(api: Api, session: String, sender: usize, tally: Arc<Mutex<Tally>>) {
    for n in 0.. {
        let id = format!("s{sender}-{n}");
        let to = (sender * 7 + n) % AGENTS;
        let urgency = ["follow_up", "after_tools", "next_boundary", "urgent"][(sender + n) % 4];
        let body = json!({"id": id, "text": format!("{PERSON} do {id}"), "urgency": urgency});
        let answer = api.post(&format!("/sessions/{session}/agents/{}/messages", name(to)), &body).await;
        let mut tally = tally.lock().unwrap();
        match &answer {
            Answer::Said(202, _) => tally.accepted.push(id),
            answer if answer.ends() => tally.refused += 1,
            Answer::Said(429, _) => {}
            Answer::Lost(_) => return,
            Answer::Said(..) | Answer::Silent => tally.odd.push(format!("{id}: {answer:?}")),
        }
    }
}

fn name(n: usize) -> String {
    if n == 0 { "lead".to_owned() } else { format!("w{n}") }
}

/// A session with all its agents.
async fn begun(api: &Api) -> Result<String> {
    let task = json!({"task": format!("{PERSON} Begin.")});
    let said = api.post("/sessions", &task).await.ok().context("no session begins")?;
    let session = said["session"].as_str().context("a session without an id")?.to_owned();
    for n in 1..AGENTS {
        let spawn = json!({"name": name(n), "prompt": format!("{PERSON} Begin, {n}.")});
        let answer = api.post(&format!("/sessions/{session}/agents"), &spawn).await;
        ensure!(matches!(answer, Answer::Said(201, _)), "{answer:?}");
    }
    Ok(session)
}

async fn until_under_way(api: &Api, session: &str) -> Result<()> {
    let mut events = api.events(session, 0, false).await?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    while UNDER_WAY.iter().any(|(kind, count)| counts.get(*kind) < Some(count)) {
        let Some(Told::Stored(_, event)) = events.next().await else { break };
        *counts.entry(event["type"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    Ok(())
}

fn is(event: &Value, kinds: &[&str]) -> bool {
    kinds.iter().any(|kind| event["type"] == *kind)
}

/// Nothing begins behind the first stop of the shutdown, no mail goes back, and no more requests
/// have left than are recorded.
fn is_a_fence(log: &[Value], requests: u64) {
    let first =
        log.iter().position(|event| event["type"] == "stop_requested" && event["reason"] == "shutdown");
    let behind = &log[first.expect("the shutdown is recorded")..];
    let begins = ["run_started", "model_started", "tool_started", "agent_spawned"];
    let began: Vec<&Value> = behind.iter().filter(|event| is(event, &begins)).collect();
    assert!(began.is_empty(), "behind the shutdown: {began:#?}");
    let back: Vec<&Value> = behind.iter().filter(|event| is(event, &["message_returned"])).collect();
    assert!(back.is_empty(), "a shutdown returns no mail: {back:#?}");
    let recorded = log.iter().filter(|event| is(event, &["model_started"])).count() as u64;
    assert!(requests <= recorded, "{requests} requests left and {recorded} are recorded");
}

/// Every message is known, and waits or was read.
async fn are_there(api: &Api, session: &str, ids: &[String]) -> Result<()> {
    for id in ids {
        let known = api.get(&format!("/sessions/{session}/messages/{id}")).await;
        let receipts = known.clone().ok().with_context(|| format!("{id} was accepted, and now {known:?}"))?;
        let state = receipts["receipts"][0]["state"].as_str();
        assert!(matches!(state, Some("queued" | "injected" | "sent" | "answered")), "{id}: {receipts}");
    }
    Ok(())
}

async fn played() -> Result<()> {
    let (world, breaches) = (World::new(false)?, Arc::new(Breaches::default()));
    let model = Model::start(world.ground.clone(), breaches.clone()).await?;
    let settings = Settings { model_url: model.url.clone(), ..Settings::default() };
    let mut daemon = Daemon::start(&world, &settings)?;
    let api = daemon.ready().await.context("the daemon never answered")?;
    let session = begun(&api).await?;
    let tally = Arc::new(Mutex::new(Tally::default()));
    let senders: Vec<_> = (0..SENDERS)
        .map(|n| AbortOnDropHandle::new(tokio::spawn(sends(api.clone(), session.clone(), n, tally.clone()))))
        .collect();
    tokio::time::timeout(PATIENCE, until_under_way(&api, &session)).await.context("little happens")??;
    let told = Instant::now();
    let ended = daemon.terminate().await?.context("told to end, it goes on")?;
    let took = told.elapsed();
    assert!(ended.status.success(), "{}: {}", ended.status, ended.said.join("\n"));
    for sender in senders {
        sender.await?;
    }
    assert!(world.until_empty(Duration::ZERO).is_empty(), "a command outlives its daemon");
    ensure!(model.quiet().await, "the model server still reads what a dead daemon sent");
    let requests = model.prompts.lock().unwrap().requests();
    is_a_fence(&log(&world, &session)?, requests);
    let tally = std::mem::take(&mut *tally.lock().unwrap());
    let (accepted, refused) = (tally.accepted.len(), tally.refused);
    println!("ended in {took:?}; {accepted} messages accepted, {refused} refused, {requests} requests");
    assert!(tally.odd.is_empty(), "{:#?}", tally.odd);
    let mut daemon = Daemon::start(&world, &settings)?;
    let api = daemon.ready().await.context("the next daemon never answered")?;
    are_there(&api, &session, &tally.accepted).await?;
    daemon.kill(false).await?;
    ensure!(!breaches.any(), "{:#?}", breaches.all());
    Ok(())
}

/// E1: after SIGTERM messages woke stopped agents, and kept the process alive for 45 s.
#[test]
fn e1_a_shutdown_under_load_is_a_fence_it_ends_and_loses_nothing() {
    crate::on_a_runtime(played()).unwrap();
}
