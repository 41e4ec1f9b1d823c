//! A client that says what came of a request, the request's loss included, and which events are
//! stored ones.

use std::time::Duration;

use anyhow::{Context, Result};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::time::timeout;

use crate::real::door::{Block, Blocks, Door};

/// How long an answer may take: a daemon that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// What came of a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// A status and a body.
    Said(u16, Value),
    /// The connection broke: nobody knows what came of it.
    Lost(#[allow(dead_code, reason = "shown where an answer is shown")] String),
    /// The daemon lives and says nothing.
    Silent,
}

impl Answer {
    pub(crate) fn ok(self) -> Option<Value> {
        match self {
            Self::Said(200..300, body) => Some(body),
            Self::Said(..) | Self::Lost(_) | Self::Silent => None,
        }
    }

    /// Whether it says that the process ends.
    pub(crate) fn ends(&self) -> bool {
        matches!(self, Self::Said(503, _)) && self.code() == Some("shutting_down")
    }

    /// The stable word of a refusal.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Self::Said(400.., body) => body["code"].as_str(),
            Self::Said(..) | Self::Lost(_) | Self::Silent => None,
        }
    }
}

/// The way to a daemon.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    door: Door,
}

impl Api {
    /// Out of `interface.json`.
    pub(crate) fn of(interface: &Value) -> Result<Self> {
        Door::of(interface).map(|door| Self { door })
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, Some(body)).await
    }

    async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        match timeout(PATIENCE, self.exchange(method, path, body)).await {
            Ok(Ok((status, body))) => Answer::Said(status, body),
            Ok(Err(error)) => Answer::Lost(format!("{error:#}")),
            Err(_) => Answer::Silent,
        }
    }

    async fn exchange(&self, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        let (response, _connection) = self.door.send(method, path, body).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        let body = serde_json::from_slice(&body).with_context(|| format!("status {status} and no JSON"))?;
        Ok((status, body))
    }

    /// The events after a number, as they come; whoever reads them may answer what agents ask.
    pub(crate) async fn events(&self, session: &str, after: u64, answers: bool) -> Result<Events> {
        let blocks = timeout(PATIENCE, self.door.events(session, after, answers)).await??;
        Ok(Events { blocks })
    }
}

/// An event as it came.
#[derive(Debug)]
pub(crate) enum Told {
    /// A stored one: its number as the stream has it, and its JSON.
    Stored(u64, Value),
    /// The stream has to be begun anew.
    Resync(Value),
}

/// An event stream.
pub(crate) struct Events {
    blocks: Blocks,
}

impl Events {
    /// The next event that is no delta. `None`: the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some(told) = told(self.blocks.next().await?) {
                return Some(told);
            }
        }
    }
}

fn told(block: Block) -> Option<Told> {
    match (block.id, block.event.as_deref()) {
        (Some(id), _) => Some(Told::Stored(id.parse().ok()?, block.data?)),
        (None, Some("resync")) => Some(Told::Resync(block.data.unwrap_or_default())),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<Told> {
        super::told(Block::read(text))
    }

    #[test]
    fn stored_events_have_an_id_and_deltas_have_none() {
        assert!(matches!(told("id: 3\nevent: a\ndata: {\"seq\":3}\n\n"), Some(Told::Stored(3, _))));
        assert!(matches!(told("event: resync\ndata: {\"last\":2}\n\n"), Some(Told::Resync(_))));
        assert!(told("event: text_delta\ndata: {}\n\n").is_none());
        assert!(told(": still here\n\n").is_none());
    }
}
