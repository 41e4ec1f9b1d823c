//! `write`: a whole file, new or instead of what is there.

use std::sync::Arc;

use midturn_core::engine::ports::{Output, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::edit::Ending;
use super::on_files::{Does, FileTool};
use super::read::text_of;
use crate::context::ToolContext;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The file: relative to your working folder, or absolute within it. (`file_path` is understood too.)
    #[serde(alias = "file_path")]
    path: String,
    /// All that the file is to hold.
    content: String,
}

/// `write` in the root of this agent.
pub(crate) fn tool(context: Arc<ToolContext>) -> Arc<dyn Tool> {
    let text = "Writes a whole file of your working folder, in one step; folders that are missing are made. A file \
                that is there is replaced: it keeps its mode, and its line endings if they are CRLF. To change a \
                part of a file use edit.";
    FileTool::make(("write", text), context, Does::Edit, write)
}

fn write(context: &ToolContext, arguments: &Arguments, _: &CancellationToken) -> Result<Output, String> {
    let seen = context.seen(&arguments.path);
    let text = context.root.place(&arguments.path, true, |place| {
        let was = place.present()?;
        let mut content = std::borrow::Cow::from(&arguments.content);
        // What is no text, or too large to look at, has no line endings to keep.
        let old = was.map(|_| Ok::<_, String>(text_of(place.read()?, &arguments.path).unwrap_or_default()));
        let old = old.transpose()?;
        if let Some((seen, name)) = &seen {
            let now = was.as_ref().zip(old.as_ref()).map(|(was, old)| (was.into(), old.as_bytes()));
            seen.may_change(name, now, true)?;
        }
        if let Some(old) = old.filter(|_| !content.contains("\r\n")) {
            content = Ending::of(&old).applied_to(&arguments.content);
        }
        let new = place.replace(content.as_bytes(), was.as_ref())?;
        if let Some((seen, name)) = &seen {
            seen.has_written(name, (&new).into(), content.as_bytes());
        }
        let what = if was.is_some() { "Replaced" } else { "Created" };
        let kept = if content.len() == arguments.content.len() { "" } else { ", with its CRLF line endings" };
        Ok::<_, String>(format!("{what} {} ({} bytes{kept}).", arguments.path, content.len()))
    })?;
    context.edited(&arguments.path);
    Ok(Output::ok(text))
}
