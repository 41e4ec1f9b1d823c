//! The tools of one agent, on its root.

use std::sync::Arc;

use midturn_core::engine::ToolSet;
use midturn_core::engine::ports::Tool;

use crate::context::ToolContext;
use crate::tools::{bash, edit, glob, grep, read, write};

/// What makes a tool in its context.
type Make = fn(Arc<ToolContext>) -> Arc<dyn Tool>;

/// The names of all work tools.
pub fn work_tool_names() -> impl Iterator<Item = &'static str> {
    WORK_TOOLS.iter().map(|(name, _)| *name)
}

/// All work tools by name. There is no other way to make one, so no name gives another's tool.
const WORK_TOOLS: [(&str, Make); 6] = [
    ("bash", bash::tool),
    ("edit", edit::tool),
    ("glob", glob::tool),
    ("grep", grep::tool),
    ("read", read::tool),
    ("write", write::tool),
];

/// All work tools of one agent, or of them those that `only` names, in any case.
pub(crate) fn work_tools(context: &Arc<ToolContext>, only: Option<&[String]>) -> ToolSet {
    let is_wanted = |(name, _): &(&str, Make)| {
        only.is_none_or(|only| only.iter().any(|word| word.eq_ignore_ascii_case(name)))
    };
    let tools = WORK_TOOLS.into_iter().filter(is_wanted).map(|(_, make)| make(context.clone()));
    ToolSet::new(tools.collect())
}
