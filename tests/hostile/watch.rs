//! The event stream of the session, read as it comes: how each call ended, and which runs are
//! over. Every text that anybody could read is searched for secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::api::Api;
use crate::canary::Canaries;

/// How much of a running command's output is kept to look for a secret that came in pieces.
const TAIL: usize = 4 << 10;

/// How a call ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    run: u64,
    pub(crate) tool: String,
    pub(crate) status: String,
    pub(crate) is_error: bool,
    pub(crate) output: String,
}

/// What was told so far.
#[derive(Default)]
struct Heard {
    calls: BTreeMap<String, Vec<Ended>>,
    /// The last run of an agent that is over, and how it ended.
    runs: BTreeMap<String, (u64, String)>,
    started: BTreeSet<String>,
    tails: BTreeMap<String, String>,
}

/// Whoever listens to a session.
pub(crate) struct Watch {
    heard: Arc<Mutex<Heard>>,
    changed: watch::Receiver<u64>,
    _reading: AbortOnDropHandle<()>,
}

impl Watch {
    pub(crate) fn start(api: Api, session: String, canaries: Arc<Mutex<Canaries>>) -> Self {
        let heard = Arc::new(Mutex::new(Heard::default()));
        let (tell, changed) = watch::channel(0);
        let reading = read(api, session, heard.clone(), canaries, tell);
        Self { heard, changed, _reading: AbortOnDropHandle::new(tokio::spawn(reading)) }
    }

    /// Waits until a run of an agent is over; how it ended.
    pub(crate) async fn run(&self, agent: &str, run: u64, patience: Duration) -> Result<String> {
        self.until(patience, agent, |heard| {
            heard.runs.get(agent).filter(|(last, _)| *last >= run).map(|(_, outcome)| outcome.clone())
        })
        .await
    }

    /// Waits until an agent has made so many calls and the run of the last one is over, or until one
    /// failed. Reports of others may have it run in between.
    pub(crate) async fn calls_made(&self, agent: &str, count: usize, patience: Duration) -> Result<String> {
        let last = |heard: &Heard| heard.calls.get(agent)?.get(count.checked_sub(1)?).map(|call| call.run);
        let enough = |heard: &Heard| last(heard).or_else(|| heard.failed(agent));
        let run = self.until(patience, agent, enough).await?;
        self.run(agent, run, patience).await
    }

    /// Waits until a call has begun.
    pub(crate) async fn begun(&self, call: &str, patience: Duration) -> Result<()> {
        self.until(patience, call, |heard| heard.started.contains(call).then_some(())).await
    }

    async fn until<T>(&self, patience: Duration, who: &str, is: impl Fn(&Heard) -> Option<T>) -> Result<T> {
        let mut changed = self.changed.clone();
        let wait = async {
            loop {
                changed.borrow_and_update();
                if let Some(found) = is(&self.heard.lock().unwrap()) {
                    return Ok(found);
                }
                if changed.changed().await.is_err() {
                    bail!("the event stream ended");
                }
            }
        };
        timeout(patience, wait).await.with_context(|| format!("{who}: nothing for {patience:?}"))?
    }

    /// How an agent's calls ended, in order.
    pub(crate) fn calls(&self, agent: &str) -> Vec<Ended> {
        self.heard.lock().unwrap().calls.get(agent).cloned().unwrap_or_default()
    }
}

async fn read(
    api: Api,
    session: String,
    heard: Arc<Mutex<Heard>>,
    canaries: Arc<Mutex<Canaries>>,
    tell: watch::Sender<u64>,
) {
    let mut last = 0;
    // Whoever reads too slowly is cut off and comes back.
    while let Ok(mut events) = api.events(&session, last).await {
        while let Some((kind, event)) = events.next().await {
            if kind == "resync" {
                break;
            }
            if event.get("n").is_none() {
                last = event["seq"].as_u64().unwrap_or(last);
            }
            heard.lock().unwrap().take(&kind, &event, &canaries);
            tell.send_modify(|count| *count += 1);
        }
    }
}

impl Heard {
    /// The last run of an agent, if it is over because it failed.
    fn failed(&self, agent: &str) -> Option<u64> {
        self.runs.get(agent).filter(|(_, outcome)| outcome.starts_with("failed")).map(|(run, _)| *run)
    }

    fn take(&mut self, kind: &str, event: &Value, canaries: &Mutex<Canaries>) {
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let (agent, tool) = (text("agent"), text("tool"));
        let mut canaries = canaries.lock().unwrap();
        canaries.look(&format!("an event {kind} of {agent}"), event.to_string().as_bytes());
        match kind {
            "tool_output" => {
                let tail = self.tails.entry(tool).or_default();
                tail.push_str(&text("text"));
                canaries.look_in_output(&format!("the live output of {agent}"), tail);
                if tail.len() > TAIL {
                    let cut = (tail.len() - TAIL / 2..tail.len()).find(|at| tail.is_char_boundary(*at));
                    tail.drain(..cut.unwrap_or(tail.len()));
                }
            }
            "tool_started" => {
                self.started.insert(tool);
            }
            "tool_finished" => {
                let output = text("output");
                canaries.look_in_output(&format!("the output of {agent}"), &output);
                let is_error = event["is_error"] == true;
                let run = event["run"].as_u64().unwrap_or_default();
                let ended = Ended { run, tool: text("name"), status: text("status"), is_error, output };
                self.calls.entry(agent).or_default().push(ended);
            }
            "run_finished" => {
                let outcome = [text("outcome"), text("error")].join(" ").trim_end().to_owned();
                self.runs.insert(agent, (event["run"].as_u64().unwrap_or_default(), outcome));
            }
            _ => {}
        }
    }
}
