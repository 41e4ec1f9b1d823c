//! The simplest workplace: the same tools for every agent, and nothing to wind up.

use std::sync::Arc;

use async_trait::async_trait;

use super::ports::{Changes, Tool, ToolError, ToolSpec, Toolbox, Workplace};
use crate::rules::conversation::ToolUse;
use crate::rules::id::{AgentName, RunId};

/// Tools that all agents share, for whoever embeds the engine.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: Vec<Arc<dyn Tool>>,
}

impl ToolSet {
    /// These tools, offered in this order.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { tools }
    }
}

impl Toolbox for ToolSet {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        self.tools.iter().map(|tool| tool.spec()).collect()
    }

    fn find(&self, call: &ToolUse) -> Option<Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == call.name).cloned()
    }
}

#[async_trait]
impl Workplace for ToolSet {
    async fn open(&self, _: &AgentName) -> Result<Arc<dyn Toolbox>, ToolError> {
        Ok(Arc::new(self.clone()))
    }

    async fn run_ended(&self, _: &AgentName, _: RunId) -> Result<Changes, ToolError> {
        Ok(Changes::default())
    }
}
