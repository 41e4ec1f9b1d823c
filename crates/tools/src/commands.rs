//! A command of an agent's, in its confinement: what has to be kept from it is looked up before, what
//! it planted is taken away afterwards. What the command is for is not known here.

use std::io;
use std::sync::Arc;

use midturn_core::engine::ports::OutputSink;
use midturn_core::rules::capture::{Capture, Decoder};
use tokio_util::sync::CancellationToken;

use crate::confined::Confined;
use crate::context::{OUTPUT_BYTES, ToolContext, off_the_runtime};
use crate::process::{Command, Ended, RunError};
use crate::protect::guard::Before;
use crate::sandbox::Confinement;
use crate::seen::Running;

/// A command that is over.
pub(crate) struct Done {
    /// How it ended.
    pub(crate) ended: Result<Ended, RunError>,
    /// What it said, the middle left out where that is long.
    pub(crate) said: Capture,
    /// What it planted, which no command may do.
    pub(crate) planted: Vec<String>,
    /// What else there is to say.
    pub(crate) notes: Vec<String>,
}

/// Runs a command to its end; what it says is told while it comes.
///
/// # Errors
/// What has to be kept from it can't be looked up: it was not started.
pub(crate) async fn run(
    context: &Arc<ToolContext>,
    mut command: Command,
    cancel: &CancellationToken,
    output: &dyn OutputSink,
) -> io::Result<Done> {
    let Begun { confinement, before, running } = begin(context).await?;
    command.confinement = confinement;
    command.gate.clone_from(&context.gate);
    let mut said = Capture::new(OUTPUT_BYTES);
    let mut decoder = Decoder::default();
    let mut told = |bytes: &[u8]| {
        said.write(bytes);
        output.tell(&decoder.decode(bytes));
    };
    let ended = context.supervisor.run(&command, cancel, &mut told).await;
    let rest = decoder.finish();
    if !rest.is_empty() {
        output.tell(&rest);
    }
    let (planted, mut notes) = look_after(context, before, running).await;
    notes.extend(context.gate.iter().flat_map(|gate| gate.take_notes()));
    Ok(Done { ended, said, planted, notes })
}

/// What there is to know before a command.
struct Begun {
    /// Where there is a sandbox.
    confinement: Option<Arc<Confinement>>,
    /// What is to be compared afterwards.
    before: Option<Arc<Before>>,
    /// Where others work in the same folder: what the agent knows of its files.
    running: Option<Running>,
}

async fn begin(context: &Arc<ToolContext>) -> io::Result<Begun> {
    if context.confined.is_none() && context.seen.is_none() {
        return Ok(Begun { confinement: None, before: None, running: None });
    }
    let context = context.clone();
    let look = move || {
        let confined = context.confined.as_ref().map(Confined::before).transpose()?;
        let running = context.seen.as_ref().map(|seen| seen.command_begins(context.root.path()));
        let (confinement, before) = confined.unzip();
        Ok(Begun { confinement, before, running })
    };
    off_the_runtime(look).await.flatten()
}

/// What a command planted is taken away; what there is to say of it, and what else there is to say.
async fn look_after(
    context: &Arc<ToolContext>,
    before: Option<Arc<Before>>,
    running: Option<Running>,
) -> (Vec<String>, Vec<String>) {
    if before.is_none() && running.is_none() {
        return Default::default();
    }
    let context = context.clone();
    let after = move || {
        let notes = context.confined.as_ref().zip(before).map(|(confined, before)| confined.after(&before));
        if let Some((seen, running)) = context.seen.as_ref().zip(running) {
            seen.command_ended(context.root.path(), &running);
        }
        notes.unwrap_or_default()
    };
    let failed =
        |error| (vec![format!("what it planted and changed was not looked for: {error}")], Vec::new());
    off_the_runtime(after).await.unwrap_or_else(failed)
}
