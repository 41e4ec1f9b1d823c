//! `write`: a whole file, new or instead of what is there.

use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::{CallTraits, Output, Returned, Tool, ToolCall, ToolSpec};
use midturn_core::rules::conversation::ToolUse;
use schemars::JsonSchema;
use serde::Deserialize;

use super::edit::{Ending, edit_traits};
use super::read::text_of;
use crate::arguments::spec;
use crate::ground::{Ground, on_ground};
use crate::root::PathError;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The file: relative to your working folder, or absolute within it. (`file_path` is understood too.)
    #[serde(alias = "file_path")]
    path: String,
    /// All that the file is to hold.
    content: String,
}

/// The tool.
pub(crate) struct Write {
    spec: Arc<ToolSpec>,
    ground: Arc<Ground>,
}

impl Write {
    pub(crate) fn new(ground: Arc<Ground>) -> Self {
        let text = "Writes a whole file of your working folder, in one step; folders that are missing are made. A file \
                    that is there is replaced: it keeps its mode, and its line endings if they are CRLF. To change a \
                    part of a file use edit.";
        Self { spec: spec::<Arguments>("write", text), ground }
    }
}

#[async_trait]
impl Tool for Write {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn traits(&self, call: &ToolUse) -> CallTraits {
        edit_traits(&self.ground, call)
    }

    async fn call(&self, call: ToolCall) -> Returned {
        let work = |ground: &Ground, asked: &Arguments| write(ground, asked).map_err(|e| e.to_string());
        on_ground(&self.ground, &call.call, work).await.into()
    }
}

fn write(ground: &Ground, arguments: &Arguments) -> Result<Output, PathError> {
    let text = ground.root.place(&arguments.path, true, |place| {
        let was = place.present()?;
        let mut content = std::borrow::Cow::from(&arguments.content);
        if was.is_some() && !content.contains("\r\n") {
            let (mut file, stat) = place.read()?;
            // What is no text, or too large to look at, has no line endings to keep.
            let old = text_of(&mut file, &stat, &arguments.path, &ground.limits).unwrap_or_default();
            content = Ending::of(&old).applied_to(&arguments.content);
        }
        place.replace(content.as_bytes(), was.as_ref())?;
        let what = if was.is_some() { "Replaced" } else { "Created" };
        let kept = if content.len() == arguments.content.len() { "" } else { ", with its CRLF line endings" };
        Ok(format!("{what} {} ({} bytes{kept}).", arguments.path, content.len()))
    })?;
    ground.edited(&arguments.path);
    Ok(Output::ok(text))
}
