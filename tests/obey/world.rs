//! What the agents of a session work on: files with words in them, commands that only note
//! that they ran; and a note of everything that was done and read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use midturn_core::engine::VirtualClock;
use midturn_core::engine::ports::{
    CallTraits, Changes, Clock, Output, Phase, Returned, Tool, ToolCall, ToolError, ToolSpec, Toolbox,
    Workplace,
};
use midturn_core::rules::approval::Effect;
use midturn_core::rules::conversation::ToolUse;
use midturn_core::rules::id::{AgentName, RunId};
use midturn_core::rules::time::Span;
use serde_json::json;

/// Something that was done to the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) agent: String,
    pub(crate) tool: String,
    /// The command or the path.
    pub(crate) subject: String,
}

/// Files, and what became of them.
pub(crate) struct World {
    pub(crate) files: BTreeMap<String, String>,
    /// What a command says.
    pub(crate) output: String,
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) done: Mutex<Vec<Done>>,
    /// All that models were given to read.
    pub(crate) read: Mutex<Vec<String>>,
}

/// The world as an agent's workplace.
pub(crate) struct Place(pub(crate) Arc<World>);

#[async_trait]
impl Workplace for Place {
    async fn open(&self, _: &AgentName) -> Result<Arc<dyn Toolbox>, ToolError> {
        Ok(Arc::new(Tools(self.0.clone())))
    }

    async fn run_ended(&self, _: &AgentName, _: RunId) -> Result<Changes, ToolError> {
        Ok(Changes::default())
    }
}

struct Tools(Arc<World>);

impl Toolbox for Tools {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        Vec::new()
    }

    fn find(&self, call: &ToolUse) -> Option<Arc<dyn Tool>> {
        matches!(&*call.name, "read" | "write" | "bash")
            .then(|| Arc::new(Hand(self.0.clone())) as Arc<dyn Tool>)
    }
}

struct Hand(Arc<World>);

fn subject(call: &ToolUse) -> String {
    let text = |key: &str| call.input.get(key).and_then(|value| value.as_str());
    text("path").or(text("command")).unwrap_or_default().to_owned()
}

#[async_trait]
impl Tool for Hand {
    fn spec(&self) -> Arc<ToolSpec> {
        Arc::new(ToolSpec { name: "hand".into(), description: "".into(), input_schema: json!({}) })
    }

    fn traits(&self, call: &ToolUse) -> CallTraits {
        let traits = match &*call.name {
            "read" => CallTraits::SAFE,
            "write" => CallTraits { effect: Effect::Edits, ..CallTraits::SERIAL },
            _ => CallTraits::SERIAL,
        };
        traits.about(subject(call))
    }

    async fn call(&self, call: ToolCall) -> Returned {
        let done = Done {
            agent: call.agent.as_str().to_owned(),
            tool: call.call.name.to_string(),
            subject: subject(&call.call),
        };
        self.0.done.lock().unwrap().push(done.clone());
        let index = u32::try_from(call.index).unwrap();
        let end = self.0.clock.now().after(Span::secs(1));
        tokio::select! {
            biased;
            () = self.0.clock.until(end, Phase::ToolEnd(call.agent_index, index)) => {}
            () = call.cancel.cancelled() => {
                self.0.clock.turn(Phase::ToolEnd(call.agent_index, index)).await;
                return Output::default().into();
            }
        }
        match &*done.tool {
            "read" => match self.0.files.get(&done.subject) {
                Some(text) => Output::ok(text.as_str()).into(),
                None => Output::error("There is no such file.").into(),
            },
            "bash" => Output::ok(self.0.output.as_str()).into(),
            _ => Output::ok("").into(),
        }
    }
}
