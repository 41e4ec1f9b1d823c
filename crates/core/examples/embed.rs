//! Midturn as a library, offline: `cargo run -p midturn-core --example embed`.

use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::scripted::{ScriptedCall, ScriptedModels, ScriptedReply, Scripts};
use midturn_core::engine::{AgentSpec, Coordinator, ports::*};
use midturn_core::rules::{conversation::ToolUse, id::*, mail::ReceiptState};
use serde_json::json;
use tokio::sync::Notify;

/// A tool of one's own: a test suite that takes an hour, unless its token is cancelled.
#[derive(Clone)]
struct Suite(Arc<Notify>);

#[async_trait]
impl Tool for Suite {
    fn spec(&self) -> Arc<ToolSpec> {
        let (name, description) = ("suite".into(), "Runs all tests".into());
        Arc::new(ToolSpec { name, description, input_schema: json!({"type": "object"}) })
    }
    fn traits(&self, _: &ToolUse) -> CallTraits {
        CallTraits::SERIAL
    }
    async fn call(&self, call: ToolCall) -> Returned {
        call.output.write("3 of 9,000 tests passed");
        self.0.notify_one();
        let hour = std::time::Duration::from_secs(3_600);
        let ended = tokio::time::timeout(hour, call.cancel.cancelled());
        Output::ok(if ended.await.is_ok() { "" } else { "all passed" }).into()
    }
}
