//! What the tools that work on files have in common: they read their arguments, do the work off
//! the runtime, and tell the model what went wrong.

use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::{CallTraits, Output, Returned, Tool, ToolCall, ToolSpec};
use midturn_core::rules::approval::Effect;
use midturn_core::rules::conversation::ToolUse;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::arguments::{noted, parse, spec};
use crate::context::{ToolContext, off_the_runtime};

/// What a tool does to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// Reads one.
    Read,
    /// Looks through the folder that it is told, by default the whole root.
    Search,
    /// Changes one.
    Edit,
}

/// What a tool does with its arguments; and what it says when that can't be done.
pub(super) type Work<A> = fn(&ToolContext, &A, &CancellationToken) -> Result<Output, String>;

/// A tool whose arguments are an `A`.
pub(super) struct FileTool<A> {
    spec: Arc<ToolSpec>,
    context: Arc<ToolContext>,
    does: Does,
    work: Work<A>,
}

impl<A: JsonSchema + DeserializeOwned + Send + 'static> FileTool<A> {
    pub(super) fn make(
        (name, description): (&str, &str),
        context: Arc<ToolContext>,
        does: Does,
        work: Work<A>,
    ) -> Arc<dyn Tool> {
        Arc::new(Self { spec: spec::<A>(name, description), context, does, work })
    }

    async fn work(&self, call: &ToolCall) -> Output {
        let (arguments, ignored): (A, _) = match parse(&call.call) {
            Ok(parsed) => parsed,
            Err(output) => return output,
        };
        let (context, cancel, work) = (self.context.clone(), call.cancel.clone(), self.work);
        let changes = self.does == Does::Edit;
        let work = move || {
            let ready = if changes { context.run_begins() } else { Ok(()) };
            ready.and_then(|()| work(&context, &arguments, &cancel)).unwrap_or_else(Output::error)
        };
        let done = off_the_runtime(work).await;
        let bug =
            |error| Output::error(format!("The tool itself failed, which is a bug in midturn: {error}"));
        noted(done.unwrap_or_else(bug), ignored)
    }
}

#[async_trait]
impl<A: JsonSchema + DeserializeOwned + Send + 'static> Tool for FileTool<A> {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn traits(&self, call: &ToolUse) -> CallTraits {
        let subject = self.context.subject(call, (self.does == Does::Search).then_some("."));
        if self.does != Does::Edit {
            return CallTraits { subject, ..CallTraits::SAFE };
        }
        let edits = subject.clone();
        CallTraits { abortable: false, edits, effect: Effect::Edits, subject, ..CallTraits::SERIAL }
    }

    /// An edit is one step that takes milliseconds: it is let finish, so that what became of the
    /// file is known for sure. All else changes nothing, so its thread may finish behind our back
    /// when it is told to end, or when a search waits for what an agent put where a list of ignored
    /// files is meant to be.
    async fn call(&self, call: ToolCall) -> Returned {
        let patience = self.context.limits.timeout_max;
        let output = tokio::select! {
            biased;
            output = self.work(&call) => output,
            () = call.cancel.cancelled(), if self.does != Does::Edit => Output::error(""),
            () = tokio::time::sleep(patience), if self.does == Does::Search => {
                Output::error(format!("The search did not end within {} s: narrow it.", patience.as_secs()))
            }
        };
        output.into()
    }
}
