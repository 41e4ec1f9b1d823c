//! A client for which every refusal is an error, and that hears every event with its deltas. Every
//! wait in it has a bound.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::time::timeout;

use crate::real::door::{Blocks, Door};

/// How long an answer may take, whatever a hostile program does meanwhile.
const PATIENCE: Duration = Duration::from_secs(20);

/// The way to a daemon.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) door: Door,
}

impl Api {
    /// Out of `interface.json`.
    pub(crate) fn of(interface: &Value) -> Result<Self> {
        Door::of(interface).map(|door| Self { door })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        self.ask("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.ask("POST", path, Some(body)).await
    }

    async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let exchange = async {
            let (response, _connection) = self.door.send(method, path, body).await?;
            let status = response.status();
            let text = response.into_body().collect().await?.to_bytes();
            ensure!(status.is_success(), "{method} {path}: {status}: {}", String::from_utf8_lossy(&text));
            Ok(serde_json::from_slice(&text)?)
        };
        let seconds = PATIENCE.as_secs();
        timeout(PATIENCE, exchange)
            .await
            .with_context(|| format!("{method} {path}: silent for {seconds} s"))?
    }

    /// The events after a number, deltas too.
    pub(crate) async fn events(&self, session: &str, after: u64) -> Result<Events> {
        let blocks = timeout(PATIENCE, self.door.events(session, after, false)).await??;
        Ok(Events { blocks })
    }
}

/// An event stream.
pub(crate) struct Events {
    blocks: Blocks,
}

impl Events {
    /// The next event's type and JSON. `None`: the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            let block = self.blocks.next().await?;
            if let (Some(event), Some(data)) = (block.event, block.data) {
                return Some((event, data));
            }
        }
    }
}
