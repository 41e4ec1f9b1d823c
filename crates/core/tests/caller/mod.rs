//! A model that calls one tool, once in each run.

use async_trait::async_trait;
use midturn_core::engine::ports::*;
use midturn_core::rules::conversation::{Block, Reply, StopReason, ToolUse, Usage};
use midturn_core::rules::id::{AgentName, CallId};

/// Calls the tool of this name, then is done.
pub(crate) struct Caller(pub(crate) &'static str);

#[async_trait]
impl ModelFactory for Caller {
    async fn model(&self, _: &AgentName, _: &str) -> Result<Box<dyn Model>, ModelFailure> {
        Ok(Box::new(Self(self.0)))
    }
}

#[async_trait]
impl Model for Caller {
    async fn call(&mut self, request: Request<'_>) -> Result<Reply, ModelFailure> {
        let call = ToolUse { id: CallId::new("c"), name: self.0.into(), input: serde_json::json!({}) };
        let (block, stop_reason) = match request.call {
            1 => (Block::ToolUse(call), StopReason::ToolUse),
            _ => (Block::Text("done".to_owned()), StopReason::EndTurn),
        };
        Ok(Reply { blocks: vec![block], stop_reason, usage: Usage::default() })
    }
}
