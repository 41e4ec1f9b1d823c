//! The tools of one agent, on its root.

use std::collections::BTreeMap;
use std::sync::Arc;

use midturn_core::engine::ports::{Tool, ToolSpec, Toolbox};
use midturn_core::rules::conversation::ToolUse;

use crate::ground::Ground;
use crate::tools::{bash::Bash, edit::Edit, glob::Glob, grep::Grep, read::Read, write::Write};

/// The names of all work tools, in the order in which they are offered.
pub const WORK_TOOLS: [&str; 6] = ["bash", "edit", "glob", "grep", "read", "write"];

/// The work tools of one agent.
pub struct WorkTools {
    tools: BTreeMap<&'static str, Arc<dyn Tool>>,
}

impl WorkTools {
    /// All of them, or of them those that `only` names, in any case.
    pub(crate) fn new(ground: &Arc<Ground>, only: Option<&[String]>) -> Self {
        let wanted =
            |name: &&str| only.is_none_or(|only| only.iter().any(|word| word.eq_ignore_ascii_case(name)));
        let tools = WORK_TOOLS.into_iter().filter(wanted).map(|name| (name, tool(name, ground.clone())));
        Self { tools: tools.collect() }
    }
}

fn tool(name: &str, ground: Arc<Ground>) -> Arc<dyn Tool> {
    match name {
        "edit" => Arc::new(Edit::new(ground)),
        "glob" => Arc::new(Glob::new(ground)),
        "grep" => Arc::new(Grep::new(ground)),
        "read" => Arc::new(Read::new(ground)),
        "write" => Arc::new(Write::new(ground)),
        _ => Arc::new(Bash::new(ground)),
    }
}

impl Toolbox for WorkTools {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        self.tools.values().map(|tool| tool.spec()).collect()
    }

    fn find(&self, call: &ToolUse) -> Option<Arc<dyn Tool>> {
        self.tools.get(&*call.name).cloned()
    }
}
