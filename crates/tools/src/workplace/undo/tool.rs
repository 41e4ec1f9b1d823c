//! A work tool in the project folder, whose turns can be undone.

use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::{CallTraits, Output, Returned, Tool, ToolCall, ToolSpec};
use midturn_core::rules::approval::Effect;
use midturn_core::rules::conversation::ToolUse;

use super::recorder::Recorder;
use crate::arguments::with_note;
use crate::tools::commit::COMMIT;

/// The tool, and who keeps what it changes.
pub(in super::super) struct Recorded {
    pub(in super::super) tool: Arc<dyn Tool>,
    pub(in super::super) recorder: Arc<Recorder>,
}

#[async_trait]
impl Tool for Recorded {
    fn spec(&self) -> Arc<ToolSpec> {
        self.tool.spec()
    }

    fn traits(&self, call: &ToolUse) -> CallTraits {
        self.tool.traits(call)
    }

    async fn call(&self, call: ToolCall) -> Returned {
        if !matches!(self.traits(&call.call).effect, Effect::Reads | Effect::Coordinates) {
            let (recorder, agent, run) = (self.recorder.clone(), call.agent.clone(), call.run);
            // Goes on though the call is cut meanwhile: the turn may have other calls.
            let begins = tokio::spawn(async move { recorder.begins(&agent, run).await });
            tokio::select! {
                () = call.cancel.cancelled() => {}
                _ = begins => {}
            }
        }
        let is_commit = call.call.name.as_ref() == COMMIT;
        let returned = self.tool.call(call).await;
        let Returned::Done(output) = returned else { return returned };
        if is_commit && !output.is_error {
            self.recorder.committed().await;
        }
        match self.recorder.take_untold() {
            Some(note) => Output { text: with_note(output.text, &note), ..output }.into(),
            None => output.into(),
        }
    }
}
