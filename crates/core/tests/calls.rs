//! A call is told of live while its arguments come (scenarios.md, section 4).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::*;
use midturn_core::engine::{AgentSpec, Coordinator, ToolSet};
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::{Block, Reply, StopReason, Usage};
use midturn_core::rules::event::{Event, EventKind, LiveEvent, LiveKind};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::secrets::Secrets;
use midturn_core::rules::settings::Settings;
use parking_lot::Mutex;

const KEY: &str = "sk-canary-0123456789";

/// The calls that were told of: the id, the tool, the bytes.
type Calls = Vec<(String, String, u64)>;

#[derive(Default)]
struct Heard {
    calls: Mutex<Calls>,
    summaries: Mutex<u64>,
}

impl Observer for Heard {
    fn event(&self, event: &Event) {
        let is_summary = matches!(event.kind, EventKind::ModelStarted { purpose: Purpose::Summary, .. });
        *self.summaries.lock() += u64::from(is_summary);
    }

    fn live(&self, event: &LiveEvent) {
        if let LiveKind::CallDelta { tool, name, bytes } = &event.kind {
            self.calls.lock().push((tool.to_string(), name.to_string(), *bytes));
        }
    }
}

/// Says two calls in pieces of so many bytes, one after the other. Its first reply fills the
/// context, so that a summary is asked for before the second.
#[derive(Clone, Copy)]
struct Writer {
    piece: usize,
    tool: &'static str,
}

#[async_trait]
impl ModelFactory for Writer {
    async fn model(&self, _: &AgentName, _: &str) -> Result<Box<dyn Model>, ModelFailure> {
        Ok(Box::new(*self))
    }
}

#[async_trait]
impl Model for Writer {
    async fn call(&mut self, request: Request<'_>) -> Result<Reply, ModelFailure> {
        let calls = [("a", 3_000), ("b", 100)];
        if request.purpose == Purpose::Summary || request.call == 1 {
            for (id, all) in calls {
                for bytes in (0..=all).step_by(self.piece) {
                    request.progress.call(id, self.tool, bytes as u64);
                }
            }
        }
        let usage = Usage { input: 950, ..Usage::default() };
        let blocks = vec![Block::Text(format!("answer {}", request.call))];
        Ok(Reply { blocks, stop_reason: StopReason::EndTurn, usage })
    }
}

/// What is told of its first turn, and of a second with a summary before it.
async fn told(writer: Writer) -> [Calls; 2] {
    let heard = Arc::new(Heard::default());
    let coordinator = Coordinator::builder(Arc::new(writer), Arc::new(ToolSet::default()))
        .secrets(Secrets::new([("API_KEY", KEY)]).unwrap())
        .observer(heard.clone())
        .start()
        .await
        .unwrap();
    let worker = AgentName::new("worker").unwrap();
    let settings = Settings { context_tokens: 1_000, compact_keep_turns: 0, ..Settings::default() };
    let spec = AgentSpec { prompt: Some("go".into()), settings, ..AgentSpec::new(worker, "writer") };
    coordinator.spawn_agent(spec).await.unwrap();
    coordinator.quiet().await;
    let turn = std::mem::take(&mut *heard.calls.lock());
    assert_eq!(*heard.summaries.lock(), 0);
    coordinator.send_message("worker", "go on", false).await.unwrap();
    coordinator.quiet().await;
    assert_eq!(*heard.summaries.lock(), 1);
    [turn, std::mem::take(&mut *heard.calls.lock())]
}

#[tokio::test]
async fn a_call_is_told_of_when_it_begins_and_once_for_each_kibibyte() {
    let call = |id: &str, bytes| (id.to_owned(), "write".to_owned(), bytes);
    for (piece, expected) in [
        (1, vec![call("a", 0), call("a", 1_024), call("a", 2_048), call("b", 0)]),
        (7, vec![call("a", 0), call("a", 1_029), call("a", 2_051), call("b", 0)]),
        (1_500, vec![call("a", 0), call("a", 1_500), call("a", 3_000), call("b", 0)]),
    ] {
        let [told, with_a_summary] = told(Writer { piece, tool: "write" }).await;
        assert_eq!(told, expected, "pieces of {piece}");
        assert_eq!(with_a_summary, [], "a summary is said to nobody");
    }
}

#[tokio::test]
async fn a_secret_in_a_tools_name_is_told_to_nobody() {
    let [told, _] = told(Writer { piece: 1_500, tool: KEY }).await;
    assert!(!told.is_empty() && told.iter().all(|(_, name, _)| name == "redacted"), "{told:?}");
}
