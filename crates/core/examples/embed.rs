//! Midturn as a library, offline: `cargo run -p midturn-core --example embed`.
//! A tool of one's own, a coordinator, two subagents, an urgent message and its receipt.

use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::{AgentSpec, Coordinator, ports::*};
use midturn_core::rules::{conversation::*, id::*, mail::ReceiptState};
use tokio::sync::Notify;

/// The tool: a test suite that never ends unless it is told to. It is also the whole toolbox,
/// and the workplace that gives it to every agent.
#[derive(Clone, Default)]
struct Suite(Arc<Notify>);

#[async_trait]
impl Tool for Suite {
    fn spec(&self) -> Arc<ToolSpec> {
        let input_schema = serde_json::json!({"type": "object"});
        let (name, description) = ("suite".into(), "Runs all tests".into());
        Arc::new(ToolSpec { name, description, input_schema })
    }
    fn traits(&self, _: &ToolUse) -> CallTraits {
        CallTraits::SERIAL
    }
    async fn call(&self, call: ToolCall) -> Returned {
        call.output.write("3 of 9,000 passed");
        self.0.notify_one();
        call.cancel.cancelled().await;
        Output::default().into()
    }
}

impl Toolbox for Suite {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        vec![self.spec()]
    }
    fn find(&self, call: &ToolUse) -> Option<Arc<dyn Tool>> {
        (&*call.name == "suite").then(|| Arc::new(self.clone()) as Arc<dyn Tool>)
    }
}

#[async_trait]
impl Workplace for Suite {
    async fn open(&self, _: &AgentName) -> Result<Arc<dyn Toolbox>, ToolError> {
        Ok(Arc::new(self.clone()))
    }
    async fn run_ended(&self, _: &AgentName, _: RunId) -> Result<Changes, ToolError> {
        Ok(Changes::default())
    }
}

/// The model: it runs the suite, then answers. Real ones are in `midturn-providers`.
struct Script;

#[async_trait]
impl Model for Script {
    async fn call(&mut self, request: Request<'_>) -> Result<Reply, ModelFailure> {
        request.progress.sent();
        let call = ToolUse { id: CallId::new("t1"), name: "suite".into(), input: serde_json::json!({}) };
        let (block, stop_reason) = match request.call {
            1 => (Block::ToolUse(call), StopReason::ToolUse),
            _ => (Block::Text("Only the parser's, then.".into()), StopReason::EndTurn),
        };
        Ok(Reply { blocks: vec![block], stop_reason, usage: Usage::default() })
    }
}

#[async_trait]
impl ModelFactory for Script {
    async fn model(&self, _: &AgentName, _: &str) -> Result<Box<dyn Model>, ModelFailure> {
        Ok(Box::new(Script))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let suite = Suite::default();
    let coordinator = Coordinator::builder(Arc::new(Script), Arc::new(suite.clone())).start().await?;
    for name in ["linter", "tester"] {
        let mut agent = AgentSpec::new(AgentName::new(name)?, "script");
        agent.prompt = Some("Run the tests.".into());
        coordinator.spawn_agent(agent).await?;
        suite.0.notified().await;
    }
    let mut receipt = coordinator.send_message("tester", "Run only the parser's tests.", true).await?;
    let state = receipt.reached(|state| matches!(state, ReceiptState::Answered { .. })).await;
    println!("the receipt of {}: {} ({:#?})", receipt.id, state.as_str(), state.injection());
    let stopped = coordinator.shutdown().await.stopped;
    println!("answered: {:?}; stopped: {stopped:?}", coordinator.agent("tester").and_then(|a| a.last_end));
    Ok(())
}
