//! The tools of one agent, on its root.

use std::sync::Arc;

use midturn_core::engine::ports::Tool;

use crate::context::ToolContext;
use crate::tools::{bash, commit, edit, glob, grep, network, read, write};

/// What makes a tool in its context.
type Make = fn(Arc<ToolContext>) -> Arc<dyn Tool>;

/// Where a tool is there.
#[derive(Clone, Copy)]
enum Offered {
    Everywhere,
    /// To an agent whose commits are made for it.
    ToCommit,
}

/// The names of all work tools.
pub fn work_tool_names() -> impl Iterator<Item = &'static str> {
    WORK_TOOLS.iter().map(|(name, ..)| *name).chain([network::NETWORK])
}

/// All work tools by name. There is no other way to make one, so no name gives another's tool.
const WORK_TOOLS: [(&str, Offered, Make); 7] = [
    ("bash", Offered::Everywhere, bash::tool),
    ("commit", Offered::ToCommit, commit::tool),
    ("edit", Offered::Everywhere, edit::tool),
    ("glob", Offered::Everywhere, glob::tool),
    ("grep", Offered::Everywhere, grep::tool),
    ("read", Offered::Everywhere, read::tool),
    ("write", Offered::Everywhere, write::tool),
];

/// All work tools of one agent, or of them those that `only` names, in any case.
pub(crate) fn work_tools(context: &Arc<ToolContext>, only: Option<&[String]>) -> Vec<Arc<dyn Tool>> {
    let is_wanted = |(name, offered, _): &(&str, Offered, Make)| {
        let is_there = match offered {
            Offered::Everywhere => true,
            Offered::ToCommit => context.commits.is_some(),
        };
        is_there && names(only, name)
    };
    let made = WORK_TOOLS.into_iter().filter(is_wanted).map(|(.., make)| make(context.clone()));
    made.chain(network::tool(context).filter(|_| names(only, network::NETWORK))).collect()
}

/// Whether such a list names a tool.
pub(crate) fn names(only: Option<&[String]>, tool: &str) -> bool {
    only.is_none_or(|only| only.iter().any(|word| word.eq_ignore_ascii_case(tool)))
}
