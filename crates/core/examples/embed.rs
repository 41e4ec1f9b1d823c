//! Midturn as a library, offline: `cargo run -p midturn-core --example embed`.
//! A tool of one's own, a coordinator, two subagents, an urgent message and its receipt.

use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::scripted::{ScriptedCall, ScriptedModels, ScriptedReply, Scripts};
use midturn_core::engine::{AgentSpec, Coordinator, ToolSet, ports::*};
use midturn_core::rules::{conversation::ToolUse, id::AgentName, mail::ReceiptState};
use tokio::sync::Notify;

/// The tool: a test suite that never ends unless it is told to.
#[derive(Default)]
struct Suite(Notify);

#[async_trait]
impl Tool for Suite {
    fn spec(&self) -> Arc<ToolSpec> {
        let input_schema = serde_json::json!({"type": "object"});
        Arc::new(ToolSpec { name: "suite".into(), description: "Runs all tests".into(), input_schema })
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

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let suite = Arc::new(Suite::default());
    // The models are scripted here; real ones are in `midturn-providers`.
    let script: Arc<[ScriptedReply]> = Arc::new([
        ScriptedReply::calls(ScriptedCall::new("t1", "suite", serde_json::json!({}))),
        ScriptedReply::says("Only the parser's, then."),
    ]);
    let names = [AgentName::new("linter")?, AgentName::new("tester")?];
    let scripts = names.iter().map(|name| (name.clone(), script.clone())).collect::<Scripts>();
    let models = Arc::new(ScriptedModels::new(Arc::new(RealClock::start()), scripts));
    let tools = Arc::new(ToolSet::new(vec![suite.clone()]));
    let coordinator = Coordinator::builder(models, tools).start().await?;
    for name in names {
        let mut agent = AgentSpec::new(name, "scripted");
        agent.prompt = Some("Run the tests.".into());
        coordinator.spawn_agent(agent).await?;
        suite.0.notified().await;
    }
    let mut receipt = coordinator.send_message("tester", "Run only the parser's tests.", true).await?;
    let state = receipt.reached(|state| matches!(state, ReceiptState::Answered { .. })).await;
    println!("the receipt of {}: {} ({:#?})", receipt.id, state.as_str(), state.injection());
    println!("stopped: {:?}", coordinator.shutdown().await.stopped);
    Ok(())
}
