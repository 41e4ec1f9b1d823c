//! The tools of one agent, on its root.

use std::collections::BTreeMap;
use std::sync::Arc;

use midturn_core::engine::ports::{Tool, ToolSpec, Toolbox};
use midturn_core::rules::conversation::ToolUse;

use crate::ground::Ground;
use crate::tools::{bash::Bash, edit::Edit, glob::Glob, grep::Grep, read::Read, write::Write};

/// What makes a tool on its ground.
type Make = fn(Arc<Ground>) -> Arc<dyn Tool>;

/// The names of all work tools.
pub fn work_tool_names() -> impl Iterator<Item = &'static str> {
    WORK_TOOLS.iter().map(|(name, _)| *name)
}

/// All work tools by name. There is no other way to make one, so no name gives another's tool.
const WORK_TOOLS: [(&str, Make); 6] = [
    ("bash", |ground| Arc::new(Bash::new(ground))),
    ("edit", |ground| Arc::new(Edit::new(ground))),
    ("glob", |ground| Arc::new(Glob::new(ground))),
    ("grep", |ground| Arc::new(Grep::new(ground))),
    ("read", |ground| Arc::new(Read::new(ground))),
    ("write", |ground| Arc::new(Write::new(ground))),
];

/// The work tools of one agent.
pub struct WorkTools {
    tools: BTreeMap<&'static str, Arc<dyn Tool>>,
}

impl WorkTools {
    /// All of them, or of them those that `only` names, in any case.
    pub(crate) fn new(ground: &Arc<Ground>, only: Option<&[String]>) -> Self {
        let wanted = |(name, _): &(&str, Make)| {
            only.is_none_or(|only| only.iter().any(|word| word.eq_ignore_ascii_case(name)))
        };
        let tools = WORK_TOOLS.into_iter().filter(wanted).map(|(name, make)| (name, make(ground.clone())));
        Self { tools: tools.collect() }
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
