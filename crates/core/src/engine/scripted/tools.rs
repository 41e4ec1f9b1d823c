//! Tools that only take time (scenarios.md, section 1).

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Anchors, EndsAfter, ScriptedCall, Scripts};
use crate::engine::ports::{
    CallTraits, Changes, Clock, Output, Phase, Returned, Tool, ToolCall, ToolError, ToolSpec, Toolbox,
    Workplace,
};
use crate::engine::tools;
use crate::rules::approval::Effect;
use crate::rules::conversation::ToolUse;
use crate::rules::id::{AgentName, CallId, RunId};
use crate::rules::time::{Micros, Span};

/// Gives every agent the tools of its script.
pub struct SimulatedTools {
    clock: Arc<dyn Clock>,
    scripts: Scripts,
    anchors: Arc<Anchors>,
}

impl SimulatedTools {
    /// Tools that do what these scripts say, by agent.
    pub fn new(clock: Arc<dyn Clock>, scripts: Scripts) -> Self {
        Self { clock, scripts, anchors: Arc::default() }
    }

    /// What tells of the events that `ends_after` names; without it none of them comes.
    #[must_use]
    pub fn anchored(self, anchors: &Arc<Anchors>) -> Self {
        let calls = self.scripts.values().flat_map(|script| script.iter()).flat_map(|entry| &entry.tools);
        for after in calls.filter_map(|call| call.ends_after.as_ref()) {
            anchors.watch(&after.anchor);
        }
        Self { anchors: anchors.clone(), ..self }
    }
}

#[async_trait]
impl Workplace for SimulatedTools {
    async fn open(&self, agent: &AgentName) -> Result<Arc<dyn Toolbox>, ToolError> {
        let replies = self.scripts.get(agent).cloned().unwrap_or_default();
        let calls = replies.iter().flat_map(|reply| reply.tools.iter());
        let calls = calls.map(|call| (call.id.clone(), call.clone())).collect();
        Ok(Arc::new(Simulated { clock: self.clock.clone(), anchors: self.anchors.clone(), calls }))
    }

    async fn run_ended(&self, _: &AgentName, _: RunId) -> Result<Changes, ToolError> {
        Ok(Changes::default())
    }
}

struct Simulated {
    clock: Arc<dyn Clock>,
    anchors: Arc<Anchors>,
    calls: HashMap<CallId, Arc<ScriptedCall>>,
}

impl Toolbox for Simulated {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        Vec::new()
    }

    fn find(&self, call: &ToolUse) -> Option<Arc<dyn Tool>> {
        let script = self.calls.get(&call.id)?.clone();
        let (clock, anchors) = (self.clock.clone(), self.anchors.clone());
        Some(Arc::new(SimulatedTool { clock, anchors, script }))
    }

    fn own(&self, call: &ToolUse, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        let Some(after) = self.calls.get(&call.id).and_then(|call| call.ends_after.clone()) else {
            return tool;
        };
        let (clock, anchors) = (self.clock.clone(), self.anchors.clone());
        Arc::new(Held { tool, after, clock, anchors })
    }
}

/// A call of the coordinator's whose end waits for an event. It has acted by then.
struct Held {
    tool: Arc<dyn Tool>,
    after: EndsAfter,
    clock: Arc<dyn Clock>,
    anchors: Arc<Anchors>,
}

#[async_trait]
impl Tool for Held {
    fn spec(&self) -> Arc<ToolSpec> {
        self.tool.spec()
    }

    fn traits(&self, call: &ToolUse) -> CallTraits {
        self.tool.traits(call)
    }

    async fn call(&self, call: ToolCall) -> Returned {
        let (agent, cancel, end) = (call.agent.clone(), call.cancel.clone(), end_of(&call));
        let returned = self.tool.call(call).await;
        tokio::select! {
            biased;
            at = self.anchors.ends(&agent, &self.after) => self.clock.until(at, end).await,
            () = cancel.cancelled() => self.clock.turn(end).await,
        }
        returned
    }
}

/// A call's turn among those that end.
fn end_of(call: &ToolCall) -> Phase {
    Phase::ToolEnd(call.agent_index, u32::try_from(call.index).unwrap_or(u32::MAX))
}

struct SimulatedTool {
    clock: Arc<dyn Clock>,
    anchors: Arc<Anchors>,
    script: Arc<ScriptedCall>,
}

#[async_trait]
impl Tool for SimulatedTool {
    fn spec(&self) -> Arc<ToolSpec> {
        let (name, description) = (self.script.name.clone(), "simulated".into());
        Arc::new(ToolSpec { name, description, input_schema: serde_json::json!({"type": "object"}) })
    }

    fn traits(&self, call: &ToolUse) -> CallTraits {
        let safe = self.script.safe.unwrap_or_else(|| tools::is_safe(&call.name));
        let effect = match &*call.name {
            "edit" | "write" => Effect::Edits,
            _ if safe => Effect::Reads,
            _ => Effect::Runs,
        };
        let file = file_of(call);
        let command = || call.input.get("command")?.as_str().map(Arc::from);
        CallTraits {
            safe,
            abortable: self.script.abortable,
            edits: file.clone().filter(|_| effect == Effect::Edits),
            effect,
            subject: file.or_else(command),
            command: false,
        }
    }

    async fn call(&self, call: ToolCall) -> Returned {
        let begun = self.clock.now();
        let working = Working { clock: self.clock.clone(), script: self.script.clone(), call, begun };
        let end = async {
            match &self.script.ends_after {
                Some(after) => self.anchors.ends(&working.call.agent, after).await,
                None => begun.after(self.script.takes),
            }
        };
        if !working.runs_to(end).await {
            return working.so_far().into();
        }
        match self.script.continues {
            None => working.result().into(),
            Some(more) => Returned::Continues(Box::pin(working.goes_on(more))),
        }
    }
}

fn file_of(call: &ToolUse) -> Option<Arc<str>> {
    let name = ["path", "file_path"].iter().find_map(|key| call.input.get(*key)?.as_str());
    name.map(Arc::from)
}

struct Working {
    clock: Arc<dyn Clock>,
    script: Arc<ScriptedCall>,
    call: ToolCall,
    begun: Micros,
}

impl Working {
    async fn goes_on(self, more: Span) -> Output {
        let end = self.clock.now().after(more);
        if self.runs_to(std::future::ready(end)).await { self.result() } else { self.so_far() }
    }

    /// Waits for the end. `false`: it was told to abort, and has aborted.
    async fn runs_to(&self, end: impl Future<Output = Micros>) -> bool {
        let turn = end_of(&self.call);
        let ends = async { self.clock.until(end.await, turn).await };
        tokio::pin!(ends);
        tokio::select! {
            biased;
            () = &mut ends => return true,
            () = self.call.cancel.cancelled() => {}
        }
        self.call.output.write(&self.said(self.clock.now().since(self.begun)));
        let aborted = self.clock.now().after(self.script.abort_takes);
        self.clock.until(aborted, turn).await;
        false
    }

    /// What had been said after so long.
    fn said(&self, ran: Span) -> String {
        let lines = self.script.output.iter().filter(|(at, _)| *at <= ran);
        lines.map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// The driver takes what was written so far.
    fn so_far(&self) -> Output {
        Output::default()
    }

    fn result(&self) -> Output {
        match &self.script.error {
            Some(error) => Output::error(error),
            None => Output::ok(&self.script.result),
        }
    }
}
