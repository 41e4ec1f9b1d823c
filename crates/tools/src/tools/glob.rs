//! `glob`: the files whose path is of a pattern.

use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::{CallTraits, Output, Returned, Tool, ToolCall, ToolSpec};
use midturn_core::rules::conversation::ToolUse;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::search::{Lines, Pattern, files};
use crate::arguments::spec;
use crate::ground::{Ground, search_ground};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The pattern, as `*.rs` (by name, at any depth) or `src/**/*.rs` (by path from the folder).
    pattern: String,
    /// The folder to look in, the whole working folder by default.
    #[serde(default = "here")]
    path: String,
    /// How many files at most.
    #[serde(default)]
    limit: Option<usize>,
}

fn here() -> String {
    ".".to_owned()
}

/// The tool.
pub(crate) struct Glob {
    spec: Arc<ToolSpec>,
    ground: Arc<Ground>,
}

impl Glob {
    pub(crate) fn new(ground: Arc<Ground>) -> Self {
        let text = "Lists the files of your working folder whose path is of a glob pattern, sorted by path; what \
                    .gitignore excludes is left out.";
        Self { spec: spec::<Arguments>("glob", text), ground }
    }
}

#[async_trait]
impl Tool for Glob {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn traits(&self, call: &ToolUse) -> CallTraits {
        CallTraits { subject: self.ground.subject(call, Some(".")), ..CallTraits::SAFE }
    }

    async fn call(&self, call: ToolCall) -> Returned {
        let cancel = call.cancel.clone();
        search_ground(&self.ground, &call, move |ground, asked| list(ground, asked, &cancel)).await.into()
    }
}

fn list(ground: &Ground, arguments: &Arguments, cancel: &CancellationToken) -> Result<Output, String> {
    let pattern = Pattern::new(ground, "pattern", &arguments.pattern, &arguments.path)?;
    let limit = arguments.limit.unwrap_or(ground.limits.search_results);
    let mut lines = Lines::new(limit, ground.limits.output_bytes);
    for found in files(ground, &arguments.path)?.take_while(|_| !cancel.is_cancelled()) {
        if found.is_meant(&pattern) && !lines.push(&found.shown()) {
            break;
        }
    }
    Ok(Output::ok(lines.finish(&format!("[no file is of the pattern {}]", arguments.pattern))))
}
