//! `glob`: the files whose path is of a pattern.

use std::sync::Arc;

use midturn_core::engine::ports::{Output, Tool};
use midturn_core::rules::characters::quoted;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::on_files::{Does, FileTool};
use super::search::{Lines, NAMES, Pattern, files, here, name_of};
use crate::context::ToolContext;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The pattern, as `*.rs` (by name, at any depth) or `src/**/*.rs` (by path from the folder).
    pattern: String,
    /// The folder to look in, the whole working folder by default.
    #[serde(default = "here")]
    path: String,
    /// How many files at most.
    limit: Option<usize>,
}

/// `glob` in the root of this agent.
pub(crate) fn tool(context: Arc<ToolContext>) -> Arc<dyn Tool> {
    let text = "Lists the files of your working folder whose path matches a glob pattern, sorted by path; what \
                .gitignore excludes is left out.";
    FileTool::make(("glob", &format!("{text} {NAMES}")), context, Does::Search, list)
}

fn list(context: &ToolContext, arguments: &Arguments, cancel: &CancellationToken) -> Result<Output, String> {
    let pattern = Pattern::new(&context.root, "pattern", &arguments.pattern, &arguments.path)?;
    let mut lines = Lines::new(arguments.limit);
    for path in files(context, &arguments.path)?.take_while(|_| !cancel.is_cancelled()) {
        if pattern.means(&path) && !lines.push(&quoted(&name_of(&path))) {
            break;
        }
    }
    Ok(Output::ok(lines.finish(&format!("[no file matches {}]", arguments.pattern))))
}
